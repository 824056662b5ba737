#include "memwal/btree_files.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/compute/api.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include "file/file_writer.h"
#include "io/object_store.h"

namespace glaive::memwal {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// Integers of the width of a type whose values are ordered like them; null for others.
std::shared_ptr<arrow::DataType> AsInteger(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::DATE32:
    case arrow::Type::TIME32:
      return arrow::int32();
    case arrow::Type::DATE64:
    case arrow::Type::TIME64:
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DURATION:
      return arrow::int64();
    default:
      return nullptr;
  }
}

bool IsFloat(const arrow::DataType& type) {
  return type.id() == arrow::Type::HALF_FLOAT || type.id() == arrow::Type::FLOAT ||
         type.id() == arrow::Type::DOUBLE;
}

// The bits of floats as integers of the same order.
template <typename Word>
Status AppendOrdered(const arrow::Array& values, arrow::Int64Builder* out) {
  const auto* words =
      reinterpret_cast<const Word*>(values.data()->buffers[1]->data()) + values.offset();
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsNull(i)) {
      GLAIVE_RETURN_NOT_OK(out->AppendNull());
      continue;
    }
    const Word word = words[i];
    // Negative ones are ordered the wrong way round: turn all bits below the sign.
    const Word ordered =
        word < 0 ? static_cast<Word>(word ^ std::numeric_limits<Word>::max()) : word;
    GLAIVE_RETURN_NOT_OK(out->Append(ordered));
  }
  return Status::OK();
}

Result<ArrayPtr> OrderedFloats(const arrow::Array& values) {
  arrow::Int64Builder builder;
  GLAIVE_RETURN_NOT_OK(builder.Reserve(values.length()));
  if (values.type_id() == arrow::Type::DOUBLE) {
    GLAIVE_RETURN_NOT_OK(AppendOrdered<int64_t>(values, &builder));
  } else if (values.type_id() == arrow::Type::FLOAT) {
    GLAIVE_RETURN_NOT_OK(AppendOrdered<int32_t>(values, &builder));
  } else {
    GLAIVE_RETURN_NOT_OK(AppendOrdered<int16_t>(values, &builder));
  }
  return builder.Finish();
}

bool IsDecimal(const arrow::DataType& type) {
  return type.id() == arrow::Type::DECIMAL128 || type.id() == arrow::Type::DECIMAL256;
}

// Values of a fixed number of bytes as Binary of the same order.
Result<ArrayPtr> OrderedBytes(const arrow::Array& values) {
  const auto& fixed = static_cast<const arrow::FixedSizeBinaryArray&>(values);
  const bool number = IsDecimal(*values.type());
  const auto width = static_cast<size_t>(fixed.byte_width());
  arrow::BinaryBuilder builder;
  GLAIVE_RETURN_NOT_OK(builder.Reserve(values.length()));
  std::string bytes(width, '\0');
  for (int64_t i = 0; i < values.length(); ++i) {
    if (values.IsNull(i)) {
      GLAIVE_RETURN_NOT_OK(builder.AppendNull());
      continue;
    }
    const auto* value = reinterpret_cast<const char*>(fixed.GetValue(i));
    if (number) {
      // Little-endian with a sign: the other way round, negative ones first.
      std::reverse_copy(value, value + width, bytes.begin());
      bytes[0] = static_cast<char>(bytes[0] ^ '\x80');
      GLAIVE_RETURN_NOT_OK(builder.Append(bytes));
    } else {
      GLAIVE_RETURN_NOT_OK(builder.Append(std::string_view(value, width)));
    }
  }
  return builder.Finish();
}

uint64_t Prefix(std::string_view key, size_t skip) {
  uint64_t word = 0;
  if (key.size() > skip) {
    std::memcpy(&word, key.data() + skip, std::min<size_t>(8, key.size() - skip));
  }
  return __builtin_bswap64(word);
}

Status WriteTable(io::ObjectStore& store, const std::string& path,
                  const std::shared_ptr<arrow::RecordBatch>& rows, int64_t page_rows,
                  file::FileVersion version,
                  const std::vector<std::pair<std::string, std::string>>& metadata,
                  int64_t* size_bytes) {
  GLAIVE_ASSIGN_OR_RETURN(file::Schema schema, file::Schema::FromArrow(*rows->schema()));
  file::FileWriterOptions options;
  options.version = version;
  GLAIVE_ASSIGN_OR_RETURN(
      auto writer, file::FileWriter::Make(store, path, std::move(schema), options));
  for (const auto& [key, value] : metadata) writer->AddSchemaMetadata(key, value);
  for (int64_t at = 0; at < rows->num_rows(); at += page_rows) {
    GLAIVE_RETURN_NOT_OK(writer->Write(*rows->Slice(at, page_rows)));
  }
  GLAIVE_ASSIGN_OR_RETURN(const file::FileWriteSummary summary, writer->Finish());
  *size_bytes = summary.size_bytes;
  return Status::OK();
}

Result<ArrayPtr> TakeRows(const ArrayPtr& values, const ArrayPtr& rows) {
  GLAIVE_ASSIGN_OR_RETURN(
      const arrow::Datum taken,
      arrow::compute::Take(values, rows, arrow::compute::TakeOptions::NoBoundsCheck()));
  return taken.make_array();
}

}  // namespace

bool IsBtreeType(const arrow::DataType& type) {
  return IsKeyType(type) || IsFloat(type) || AsInteger(type) != nullptr ||
         IsDecimal(type) || type.id() == arrow::Type::FIXED_SIZE_BINARY;
}

Result<EncodedKeys> SortKeys(const ArrayPtr& values) {
  ArrayPtr ordered = values;
  if (const auto integer = AsInteger(*values->type())) {
    GLAIVE_ASSIGN_OR_RETURN(ordered, values->View(integer));
  } else if (IsFloat(*values->type())) {
    GLAIVE_ASSIGN_OR_RETURN(ordered, OrderedFloats(*values));
  } else if (IsDecimal(*values->type()) ||
             values->type_id() == arrow::Type::FIXED_SIZE_BINARY) {
    GLAIVE_ASSIGN_OR_RETURN(ordered, OrderedBytes(*values));
  } else if (!IsKeyType(*values->type())) {
    return NotSupported("a BTree over values of type ", values->type()->ToString());
  }
  return EncodeKeys(std::span(&ordered, 1));
}

std::vector<uint32_t> SortedRows(const EncodedKeys& keys) {
  const int64_t n = keys.size();
  std::vector<uint32_t> rows(static_cast<size_t>(n));
  bool sorted = true;
  // The first byte says only whether the value is null.
  bool no_nulls = true;
  bool whole = true;  // eight bytes after the first are all of a key
  for (int64_t i = 0; i < n; ++i) {
    rows[static_cast<size_t>(i)] = static_cast<uint32_t>(i);
    const std::string_view key = keys[i];
    sorted = sorted && (i == 0 || keys[i - 1] <= key);
    no_nulls = no_nulls && !key.empty() && key[0] != 0;
    whole = whole && key.size() == 9;
  }
  if (sorted) return rows;
  whole = whole && no_nulls;
  struct Entry {
    uint64_t prefix;
    uint32_t row;
  };
  std::vector<Entry> entries(rows.size());
  for (int64_t i = 0; i < n; ++i) {
    entries[static_cast<size_t>(i)] = {Prefix(keys[i], no_nulls ? 1 : 0),
                                       static_cast<uint32_t>(i)};
  }
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    if (!whole) {
      const int order = keys[a.row].compare(keys[b.row]);
      if (order != 0) return order < 0;
    }
    return a.row < b.row;
  });
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = entries[i].row;
  return rows;
}

Result<BtreeFiles> WriteBtreeFiles(io::ObjectStore& store, const std::string& directory,
                                   const ArrayPtr& values,
                                   const std::vector<uint32_t>& order,
                                   file::FileVersion version, int64_t page_rows) {
  const auto n = static_cast<int64_t>(order.size());
  if (n == 0 || n != values->length()) {
    return InternalError("a BTree of ", n, " of ", values->length(), " rows");
  }
  const auto places = std::make_shared<arrow::UInt32Array>(
      n, arrow::Buffer::Wrap(order.data(), order.size()));
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr sorted, TakeRows(values, places));
  std::vector<uint64_t> ids(order.begin(), order.end());

  arrow::UInt32Builder firsts, lasts, null_counts, pages;
  for (int64_t at = 0; at < n; at += page_rows) {
    const int64_t rows = std::min(page_rows, n - at);
    GLAIVE_RETURN_NOT_OK(firsts.Append(static_cast<uint32_t>(at)));
    GLAIVE_RETURN_NOT_OK(lasts.Append(static_cast<uint32_t>(at + rows - 1)));
    GLAIVE_RETURN_NOT_OK(
        null_counts.Append(static_cast<uint32_t>(sorted->Slice(at, rows)->null_count())));
    GLAIVE_RETURN_NOT_OK(pages.Append(static_cast<uint32_t>(at / page_rows)));
  }
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr first_rows, firsts.Finish());
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr last_rows, lasts.Finish());
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr null_count, null_counts.Finish());
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr page_idx, pages.Finish());
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr min, TakeRows(sorted, first_rows));
  GLAIVE_ASSIGN_OR_RETURN(const ArrayPtr max, TakeRows(sorted, last_rows));

  BtreeFiles files;
  const auto data = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("values", values->type()),
                     arrow::field("ids", arrow::uint64(), /*nullable=*/false)}),
      n,
      {sorted, std::make_shared<arrow::UInt64Array>(
                   n, arrow::Buffer::Wrap(ids.data(), ids.size()))});
  GLAIVE_RETURN_NOT_OK(WriteTable(store, directory + "/" + kPageDataFile, data, page_rows,
                                  version, {}, &files.data_bytes));
  const auto lookup = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("min", values->type()),
                     arrow::field("max", values->type()),
                     arrow::field("null_count", arrow::uint32(), false),
                     arrow::field("page_idx", arrow::uint32(), false)}),
      page_idx->length(), {min, max, null_count, page_idx});
  GLAIVE_RETURN_NOT_OK(WriteTable(
      store, directory + "/" + kPageLookupFile, lookup, lookup->num_rows(), version,
      {{"range_partitioned", "false"}, {"batch_size", std::to_string(page_rows)}},
      &files.lookup_bytes));
  return files;
}

}  // namespace glaive::memwal
