#include "exec/merge_keys.h"

#include <memory>
#include <utility>

#include <arrow/array.h>
#include <arrow/compute/api.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/bit_util.h>

#include "file/json_columns.h"

namespace glaive::exec {
namespace {

using ArrayPtr = std::shared_ptr<arrow::Array>;

constexpr size_t kMaxDescribedChars = 200;

// Bytes per value of types whose values are a fixed number of bytes; 0 for others, -1 for
// bits.
int FixedBytes(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return -1;
    case arrow::Type::INT8:
    case arrow::Type::UINT8:
    case arrow::Type::INT16:
    case arrow::Type::UINT16:
    case arrow::Type::INT32:
    case arrow::Type::UINT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT64:
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DURATION:
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
    case arrow::Type::FIXED_SIZE_BINARY:
      return static_cast<const arrow::FixedWidthType&>(type).bit_width() / 8;
    default:
      return 0;
  }
}

bool IsBytes(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return true;
    default:
      return false;
  }
}

// Whether values of this type can be told to be equal by their bytes.
Status CheckType(const arrow::DataType& type, const std::string& column) {
  if (FixedBytes(type) != 0 || IsBytes(type) || type.id() == arrow::Type::NA) {
    return Status::OK();
  }
  switch (type.id()) {
    case arrow::Type::DICTIONARY:
      return CheckType(*static_cast<const arrow::DictionaryType&>(type).value_type(),
                       column);
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::STRUCT:
      for (const auto& child : type.fields()) {
        GLAIVE_RETURN_NOT_OK(CheckType(*child->type(), column));
      }
      return Status::OK();
    default:
      return NotSupported("column '", column, "' of type ", type.ToString(),
                          " as key of a merge");
  }
}

const uint8_t* FixedValues(const arrow::Array& array, int width) {
  return array.data()->buffers[1]->data() + array.offset() * width;
}

template <typename T>
void Widen(const arrow::Array& array, std::vector<uint64_t>* out) {
  const auto* values =
      reinterpret_cast<const T*>(FixedValues(array, static_cast<int>(sizeof(T))));
  for (size_t i = 0; i < out->size(); ++i) (*out)[i] = values[i];
}

void DecodeWords(const arrow::Array& array, KeyBatch* out) {
  const int width = FixedBytes(*array.type());
  if (width == 8) {
    const uint8_t* values = FixedValues(array, 8);
    if (reinterpret_cast<uintptr_t>(values) % 8 == 0) {
      out->words = reinterpret_cast<const uint64_t*>(values);
      return;
    }
  }
  out->own_words.resize(static_cast<size_t>(array.length()));
  switch (width) {
    case -1: {
      const uint8_t* bits = array.data()->buffers[1]->data();
      for (int64_t i = 0; i < array.length(); ++i) {
        out->own_words[static_cast<size_t>(i)] =
            arrow::bit_util::GetBit(bits, array.offset() + i);
      }
      break;
    }
    case 1:
      Widen<uint8_t>(array, &out->own_words);
      break;
    case 2:
      Widen<uint16_t>(array, &out->own_words);
      break;
    case 4:
      Widen<uint32_t>(array, &out->own_words);
      break;
    default: {
      const uint8_t* values = FixedValues(array, width);
      for (size_t i = 0; i < out->own_words.size(); ++i) {
        uint64_t word = 0;
        std::memcpy(&word, values + i * static_cast<size_t>(width),
                    static_cast<size_t>(width));
        out->own_words[i] = word;
      }
    }
  }
  out->words = out->own_words.data();
}

template <typename ArrayType>
void ViewsOf(const arrow::Array& array, std::vector<std::string_view>* out) {
  const auto& values = static_cast<const ArrayType&>(array);
  for (int64_t i = 0; i < array.length(); ++i) out->push_back(values.GetView(i));
}

// Views of a column whose values lie in one piece each; false for other types.
bool PlainViews(const arrow::Array& array, std::vector<std::string_view>* out) {
  out->reserve(static_cast<size_t>(array.length()));
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      ViewsOf<arrow::BinaryArray>(array, out);
      return true;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      ViewsOf<arrow::LargeBinaryArray>(array, out);
      return true;
    default:
      break;
  }
  const int width = FixedBytes(*array.type());
  if (width <= 0) return false;
  const auto* values = reinterpret_cast<const char*>(FixedValues(array, width));
  for (int64_t i = 0; i < array.length(); ++i) {
    out->emplace_back(values + i * width, static_cast<size_t>(width));
  }
  return true;
}

void PutLength(uint64_t length, std::vector<char>* out) {
  const auto* bytes = reinterpret_cast<const char*>(&length);
  out->insert(out->end(), bytes, bytes + sizeof(length));
}

// One value of a nested column, so that different values give different bytes.
void EncodeValue(const arrow::Array& array, int64_t i, std::vector<char>* out) {
  const bool null = array.type_id() == arrow::Type::NA || array.IsNull(i);
  out->push_back(null ? 0 : 1);
  if (null) return;
  const auto items = [&](const arrow::Array& values, int64_t begin, int64_t end) {
    PutLength(static_cast<uint64_t>(end - begin), out);
    for (int64_t k = begin; k < end; ++k) EncodeValue(values, k, out);
  };
  switch (array.type_id()) {
    case arrow::Type::LIST: {
      const auto& list = static_cast<const arrow::ListArray&>(array);
      items(*list.values(), list.value_offset(i), list.value_offset(i + 1));
      return;
    }
    case arrow::Type::LARGE_LIST: {
      const auto& list = static_cast<const arrow::LargeListArray&>(array);
      items(*list.values(), list.value_offset(i), list.value_offset(i + 1));
      return;
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
      items(*list.values(), list.value_offset(i), list.value_offset(i + 1));
      return;
    }
    case arrow::Type::STRUCT: {
      const auto& parent = static_cast<const arrow::StructArray&>(array);
      for (int c = 0; c < parent.num_fields(); ++c) {
        EncodeValue(*parent.field(c), i, out);
      }
      return;
    }
    case arrow::Type::DICTIONARY: {
      const auto& words = static_cast<const arrow::DictionaryArray&>(array);
      EncodeValue(*words.dictionary(), words.GetValueIndex(i), out);
      return;
    }
    case arrow::Type::STRING:
    case arrow::Type::BINARY: {
      const auto view = static_cast<const arrow::BinaryArray&>(array).GetView(i);
      PutLength(view.size(), out);
      out->insert(out->end(), view.begin(), view.end());
      return;
    }
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: {
      const auto view = static_cast<const arrow::LargeBinaryArray&>(array).GetView(i);
      PutLength(view.size(), out);
      out->insert(out->end(), view.begin(), view.end());
      return;
    }
    case arrow::Type::BOOL:
      out->push_back(static_cast<const arrow::BooleanArray&>(array).Value(i) ? 1 : 0);
      return;
    default: {
      const int width = FixedBytes(*array.type());
      const auto* value =
          reinterpret_cast<const char*>(FixedValues(array, width)) + i * width;
      out->insert(out->end(), value, value + width);
    }
  }
}

// The part of each row's key that one column gives, for keys of several columns.
struct ColumnParts {
  size_t width = 0;                     // > 0: bytes of every value
  std::vector<uint64_t> words;          // of values of at most 8 bytes
  std::vector<std::string_view> views;  // else, with a length before each
  std::vector<char> bytes;              // behind views of nested values
};

ColumnParts PartsOf(const arrow::Array& array) {
  ColumnParts parts;
  const int width = FixedBytes(*array.type());
  if (width == -1 || (width > 0 && width <= 8)) {
    KeyBatch words;
    DecodeWords(array, &words);
    parts.words.assign(words.words, words.words + array.length());
    parts.width = width == -1 ? 1 : static_cast<size_t>(width);
    return parts;
  }
  if (PlainViews(array, &parts.views)) {
    if (width > 0) parts.width = static_cast<size_t>(width);
    return parts;
  }
  std::vector<size_t> ends;
  for (int64_t i = 0; i < array.length(); ++i) {
    EncodeValue(array, i, &parts.bytes);
    ends.push_back(parts.bytes.size());
  }
  size_t begin = 0;
  for (size_t end : ends) {
    parts.views.emplace_back(parts.bytes.data() + begin, end - begin);
    begin = end;
  }
  return parts;
}

void EncodeRows(const std::vector<ArrayPtr>& columns, KeyBatch* out) {
  std::vector<ColumnParts> parts;
  for (const ArrayPtr& column : columns) parts.push_back(PartsOf(*column));
  const auto rows = static_cast<size_t>(out->rows);
  std::vector<size_t> ends(rows);
  size_t total = 0;
  for (size_t i = 0; i < rows; ++i) {
    for (const ColumnParts& part : parts) {
      total += part.width > 0 ? part.width : sizeof(uint64_t) + part.views[i].size();
    }
    ends[i] = total;
  }
  out->own_bytes.resize(total);
  std::vector<size_t> at(rows);
  for (size_t i = 1; i < rows; ++i) at[i] = ends[i - 1];
  char* bytes = out->own_bytes.data();
  for (const ColumnParts& part : parts) {
    for (size_t i = 0; i < rows; ++i) {
      char* to = bytes + at[i];
      if (!part.words.empty()) {
        std::memcpy(to, &part.words[i], part.width);
        at[i] += part.width;
        continue;
      }
      const std::string_view view = part.views[i];
      if (part.width == 0) {
        const uint64_t length = view.size();
        std::memcpy(to, &length, sizeof(length));
        to += sizeof(length);
        at[i] += sizeof(length);
      }
      if (!view.empty()) std::memcpy(to, view.data(), view.size());
      at[i] += view.size();
    }
  }
  out->views.reserve(rows);
  size_t begin = 0;
  for (size_t end : ends) {
    out->views.emplace_back(bytes + begin, end - begin);
    begin = end;
  }
}

}  // namespace

Result<KeyCodec> KeyCodec::Make(std::vector<std::shared_ptr<arrow::Field>> fields) {
  for (const auto& field : fields) {
    if (file::HasStoredJson(*field)) {
      return NotSupported("column '", field->name(), "' of type JSON as key of a merge");
    }
    GLAIVE_RETURN_NOT_OK(CheckType(*field->type(), field->name()));
  }
  KeyCodec codec;
  if (fields.size() == 1) {
    const int width = FixedBytes(*fields[0]->type());
    codec.fixed_ = width == -1 || (width > 0 && width <= 8);
  }
  codec.fields_ = std::move(fields);
  return codec;
}

Result<KeyBatch> KeyCodec::Decode(const std::vector<ArrayPtr>& columns) const {
  KeyBatch batch;
  batch.rows = columns[0]->length();
  for (const ArrayPtr& column : columns) {
    ArrayPtr plain = column;
    if (column->type_id() == arrow::Type::DICTIONARY) {
      const auto& type = static_cast<const arrow::DictionaryType&>(*column->type());
      GLAIVE_ASSIGN_OR_RETURN(plain, arrow::compute::Cast(*column, type.value_type()));
    }
    if (plain->null_count() > 0) {
      batch.is_null.resize(static_cast<size_t>(batch.rows));
      for (int64_t i = 0; i < batch.rows; ++i) {
        if (plain->IsNull(i)) batch.is_null[static_cast<size_t>(i)] = 1;
      }
    }
    batch.arrays.push_back(std::move(plain));
  }
  if (batch.rows == 0) return batch;
  if (fixed_) {
    DecodeWords(*batch.arrays[0], &batch);
  } else if (batch.arrays.size() > 1 || !PlainViews(*batch.arrays[0], &batch.views)) {
    EncodeRows(batch.arrays, &batch);
  }
  return batch;
}

std::string KeyCodec::Describe(const std::vector<ArrayPtr>& columns, int64_t row) const {
  std::string text;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) text += ", ";
    text += fields_[c]->name() + " = ";
    auto scalar = columns[c]->GetScalar(row);
    std::string value = scalar.ok() ? (*scalar)->ToString() : "?";
    if (value.size() > kMaxDescribedChars) {
      value.resize(kMaxDescribedChars);
      value += "...";
    }
    text += value;
  }
  return text;
}

}  // namespace glaive::exec
