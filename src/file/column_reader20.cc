#include "file/column_reader20.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/type.h>

#include "file/assemble.h"
#include "file/decode20.h"
#include "format/encodings.pb.h"

namespace glaive::file {
namespace {

using encoding::ValiditySink;
using encoding::ValueRange;
using encoding::ValueShape;
using encoding::ValueSink;
using lance::encodings::ArrayEncoding;

// The rows wanted from one page, counted from its first.
struct PageRows {
  size_t page = 0;
  int64_t num_rows = 0;
  std::vector<ValueRange> rows;
};

class Reader20 {
 public:
  Reader20(io::RandomAccessObject& object, const ColumnLookup20& lookup)
      : object_(object), lookup_(lookup) {}

  Result<std::shared_ptr<arrow::ArrayData>> Read(const Field& field,
                                                 int64_t num_column_rows,
                                                 std::span<const ValueRange> rows);

 private:
  Result<std::vector<PageRows>> Split(const Field& field, const ColumnInfo& column,
                                      int64_t num_column_rows,
                                      std::span<const ValueRange> rows) const;
  Result<std::shared_ptr<arrow::ArrayData>> ReadLeaf(const Field& field,
                                                     const ColumnInfo& column,
                                                     const std::vector<PageRows>& pages);
  Result<std::shared_ptr<arrow::ArrayData>> ReadList(const Field& field,
                                                     const ColumnInfo& column,
                                                     const std::vector<PageRows>& pages);
  Status AtPage(const Field& field, size_t page, const Status& status) const {
    return WithContext(status, "file '" + object_.path() + "', column '" + field.name +
                                   "', page " + std::to_string(page));
  }
  Result<ArrayEncoding> EncodingOf(const Field& field, const ColumnInfo& column,
                                   size_t page) const {
    ArrayEncoding encoding;
    if (!encoding.ParseFromString(column.pages[page].encoding)) {
      return AtPage(field, page, Corruption("the page encoding cannot be parsed"));
    }
    return encoding;
  }

  io::RandomAccessObject& object_;
  const ColumnLookup20& lookup_;
};

Result<std::vector<PageRows>> Reader20::Split(const Field& field,
                                              const ColumnInfo& column,
                                              int64_t num_column_rows,
                                              std::span<const ValueRange> rows) const {
  std::vector<PageRows> out;
  size_t next = 0;
  int64_t consumed = 0;
  int64_t page_start = 0;
  for (size_t p = 0; p < column.pages.size(); ++p) {
    const int64_t num_rows = column.pages[p].num_rows;
    if (num_rows > num_column_rows - page_start) {
      return Corruption("file '", object_.path(), "', column '", field.name,
                        "': the pages hold more than ", num_column_rows, " rows");
    }
    PageRows part;
    part.page = p;
    part.num_rows = num_rows;
    while (next < rows.size() && rows[next].start + consumed < page_start + num_rows) {
      const int64_t from = rows[next].start + consumed;
      const int64_t n =
          std::min(rows[next].count - consumed, page_start + num_rows - from);
      part.rows.push_back({from - page_start, n});
      consumed += n;
      if (consumed == rows[next].count) {
        ++next;
        consumed = 0;
      }
    }
    page_start += num_rows;
    // Empty parts stay: lists need the item counts of all pages.
    out.push_back(std::move(part));
  }
  if (page_start != num_column_rows || next != rows.size()) {
    return Corruption("file '", object_.path(), "', column '", field.name,
                      "': the pages hold ", page_start, " rows instead of ",
                      num_column_rows);
  }
  return out;
}

Result<std::shared_ptr<arrow::ArrayData>> Reader20::ReadLeaf(
    const Field& field, const ColumnInfo& column, const std::vector<PageRows>& pages) {
  GLAIVE_ASSIGN_OR_RETURN(auto shape, ValueShape::Of(ReadType(field)));
  const bool blob = IsBlobV1(field);
  if (blob != column.is_blob) {
    return Corruption("file '", object_.path(), "', column '", field.name,
                      "': blob marks of schema and column differ");
  }
  ValueSink values(shape);
  ValiditySink validity;
  for (const PageRows& part : pages) {
    if (part.rows.empty()) continue;
    GLAIVE_ASSIGN_OR_RETURN(auto encoding, EncodingOf(field, column, part.page));
    Page20 page(object_, column.pages[part.page]);
    Status s = page.Decode(encoding, part.num_rows, part.rows, &values, &validity);
    if (s.ok() && values.length() != validity.length()) {
      s = Corruption(values.length(), " values, ", validity.length(),
                     " of known validity");
    }
    if (!s.ok()) return AtPage(field, part.page, s);
  }
  const int64_t nulls = validity.null_count();
  return values.Finish(validity.Finish(), nulls);
}

Result<std::shared_ptr<arrow::ArrayData>> Reader20::ReadList(
    const Field& field, const ColumnInfo& column, const std::vector<PageRows>& pages) {
  ValiditySink validity;
  std::vector<int64_t> ends;  // of the lists, in the array of items that is read
  std::vector<ValueRange> items;
  int64_t page_items_start = 0;
  int64_t taken = 0;
  for (const PageRows& part : pages) {
    GLAIVE_ASSIGN_OR_RETURN(auto encoding, EncodingOf(field, column, part.page));
    if (!encoding.has_list()) {
      return AtPage(field, part.page,
                    Corruption("a list column with pages of another kind"));
    }
    const auto& list = encoding.list();
    if (list.num_items() > (uint64_t{1} << 60)) {
      return AtPage(field, part.page,
                    Corruption("a page of ", list.num_items(), " items"));
    }
    const auto num_items = static_cast<int64_t>(list.num_items());
    const uint64_t adjust = list.null_offset_adjustment();
    std::vector<ValueRange> with_previous(part.rows);
    for (ValueRange& range : with_previous) {
      if (range.start == 0) continue;
      --range.start;
      ++range.count;
    }
    std::vector<uint64_t> stored;
    Page20 page(object_, column.pages[part.page]);
    Status s = page.DecodeNumbers(list.offsets(), with_previous, &stored);
    if (!s.ok()) return AtPage(field, part.page, s);
    size_t at = 0;
    for (const ValueRange& range : part.rows) {
      auto end_of = [&](uint64_t value) { return adjust > 0 ? value % adjust : value; };
      uint64_t start = range.start > 0 ? end_of(stored[at++]) : 0;
      const uint64_t first = start;
      for (int64_t r = 0; r < range.count; ++r) {
        const uint64_t value = stored[at++];
        const uint64_t end = end_of(value);
        if (end < start || end > static_cast<uint64_t>(num_items)) {
          return AtPage(
              field, part.page,
              Corruption("a list from ", start, " to ", end, " of ", num_items));
        }
        const bool null = adjust > 0 && value >= adjust;
        GLAIVE_RETURN_NOT_OK(null ? validity.AppendNulls(1) : validity.AppendValid(1));
        taken += static_cast<int64_t>(end - start);
        ends.push_back(taken);
        start = end;
      }
      if (start > first) {
        items.push_back({page_items_start + static_cast<int64_t>(first),
                         static_cast<int64_t>(start - first)});
      }
    }
    if (__builtin_add_overflow(page_items_start, num_items, &page_items_start)) {
      return AtPage(field, part.page, Corruption("too many items"));
    }
  }
  // Neighbouring ranges become one: fewer reads, and no copy where one suffices.
  std::vector<ValueRange> merged;
  for (const ValueRange& range : items) {
    if (!merged.empty() && merged.back().start + merged.back().count == range.start) {
      merged.back().count += range.count;
    } else {
      merged.push_back(range);
    }
  }
  GLAIVE_ASSIGN_OR_RETURN(auto child, Read(field.children[0], page_items_start, merged));
  if (child->length != taken) {
    return Corruption("file '", object_.path(), "', column '", field.name, "': ", taken,
                      " list items, ", child->length, " are there");
  }
  const bool large = field.type->id() == arrow::Type::LARGE_LIST;
  if (!large && taken > std::numeric_limits<int32_t>::max()) {
    return ResourceExhausted(
        "column '", field.name,
        "': more than 2^31 list items in one batch: read fewer rows");
  }
  encoding::ByteSink offsets;
  GLAIVE_RETURN_NOT_OK(offsets.AppendZeros(large ? 8 : 4));
  for (int64_t end : ends) {
    GLAIVE_RETURN_NOT_OK(
        offsets.Append(reinterpret_cast<const uint8_t*>(&end), large ? 8 : 4));
  }
  const int64_t nulls = validity.null_count();
  return arrow::ArrayData::Make(ReadType(field), static_cast<int64_t>(ends.size()),
                                {validity.Finish(), offsets.Finish()}, {std::move(child)},
                                nulls);
}

Result<std::shared_ptr<arrow::ArrayData>> Reader20::Read(
    const Field& field, int64_t num_column_rows, std::span<const ValueRange> rows) {
  GLAIVE_ASSIGN_OR_RETURN(const ColumnInfo* column, lookup_(field));
  GLAIVE_ASSIGN_OR_RETURN(auto pages, Split(field, *column, num_column_rows, rows));
  const auto id = field.type->id();
  if (id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST) {
    return ReadList(field, *column, pages);
  }
  if (field.owns_column() && !(id == arrow::Type::STRUCT && field.is_leaf())) {
    return ReadLeaf(field, *column, pages);
  }
  if (id != arrow::Type::STRUCT) {
    return NotSupported("column '", field.name, "' of type ", field.type->ToString(),
                        " in a file of version 2.0");
  }
  int64_t count = 0;
  for (const ValueRange& range : rows) count += range.count;
  std::vector<std::shared_ptr<arrow::ArrayData>> children;
  for (const Field& child : field.children) {
    GLAIVE_ASSIGN_OR_RETURN(auto data, Read(child, num_column_rows, rows));
    children.push_back(std::move(data));
  }
  return arrow::ArrayData::Make(ReadType(field), count, {nullptr}, std::move(children),
                                0);
}

}  // namespace

Result<std::shared_ptr<arrow::ArrayData>> ReadField20(io::RandomAccessObject& object,
                                                      const Field& field,
                                                      int64_t num_column_rows,
                                                      std::span<const ValueRange> rows,
                                                      const ColumnLookup20& lookup) {
  return Reader20(object, lookup).Read(field, num_column_rows, rows);
}

}  // namespace glaive::file
