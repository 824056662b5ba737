#include "file/column_reader.h"

#include <algorithm>
#include <utility>

namespace glaive::file {

using encoding::CheckedMultiply;
using encoding::LevelBatch;
using encoding::PathLayer;
using encoding::StructureSink;
using encoding::ValueRange;
using encoding::ValueShape;
using encoding::ValueSink;

Result<std::unique_ptr<ColumnReader>> ColumnReader::Make(
    std::shared_ptr<io::RandomAccessObject> object, const ColumnInfo& info,
    std::string name, std::shared_ptr<arrow::DataType> type, std::vector<PathLayer> path,
    int64_t num_file_rows, int64_t max_decoded_bytes) {
  auto out = std::unique_ptr<ColumnReader>(new ColumnReader());
  out->object_ = std::move(object);
  out->info_ = &info;
  out->name_ = std::move(name);
  out->path_ = std::move(path);
  out->max_decoded_bytes_ = max_decoded_bytes;
  auto fail = [&](const Status& status) {
    return WithContext(
        status, "file '" + out->object_->path() + "', column '" + out->name_ + "'");
  };
  auto shape = ValueShape::Of(type);
  if (!shape.ok()) return fail(shape.status());
  out->shape_ = std::move(*shape);
  // Items of fixed-size lists of structs outside of all lists are counted by the pages.
  for (auto it = out->path_.rbegin(); it != out->path_.rend() && !it->is_list; ++it) {
    out->slots_per_row_ = CheckedMultiply(out->slots_per_row_, it->dimension);
    if (out->slots_per_row_ < 0)
      return fail(Corruption("fixed-size lists of too many items"));
  }
  int64_t slots = 0;
  for (const PageInfo& page : info.pages) {
    out->first_slot_.push_back(slots);
    if (__builtin_add_overflow(slots, page.num_rows, &slots)) {
      return fail(Corruption("pages of too many rows"));
    }
  }
  out->first_slot_.push_back(slots);
  if (slots != CheckedMultiply(num_file_rows, out->slots_per_row_)) {
    return fail(Corruption("the pages hold ", slots / out->slots_per_row_,
                           " rows, the file ", num_file_rows));
  }
  out->pages_ = std::vector<std::atomic<const PageReader*>>(info.pages.size());
  out->memory_bytes_ =
      static_cast<int64_t>(sizeof(ColumnReader) + info.pages.size() * 16);
  return out;
}

ColumnReader::~ColumnReader() {
  for (auto& page : pages_) delete page.load(std::memory_order_relaxed);
}

Status ColumnReader::AtPage(size_t page, const Status& status) const {
  return WithContext(status, "file '" + object_->path() + "', column '" + name_ +
                                 "', page " + std::to_string(page));
}

Result<const PageReader*> ColumnReader::Page(size_t page) const {
  if (const PageReader* ready = pages_[page].load(std::memory_order_acquire))
    return ready;
  std::lock_guard lock(preparing_);
  if (const PageReader* ready = pages_[page].load(std::memory_order_acquire))
    return ready;
  const PageInfo& info = info_->pages[page];
  PageContext context;
  context.object = object_.get();
  context.buffers = info.buffers;
  context.num_rows = info.num_rows;
  context.shape = &shape_;
  context.path = path_;
  context.max_decoded_bytes = max_decoded_bytes_;
  auto made = MakePageReader(context, info.encoding);
  if (!made.ok()) return AtPage(page, made.status());
  memory_bytes_.fetch_add((*made)->memory_bytes(), std::memory_order_relaxed);
  const PageReader* reader = made->release();
  pages_[page].store(reader, std::memory_order_release);
  return reader;
}

Status ColumnReader::Read(std::span<const ValueRange> rows, StructureSink* structure,
                          ValueSink* values) const {
  if (slots_per_row_ == 1) return ReadPages(rows, structure, values);
  std::vector<ValueRange> slots(rows.begin(), rows.end());
  for (ValueRange& range : slots) {
    range.start *= slots_per_row_;
    range.count *= slots_per_row_;
  }
  return ReadPages(slots, structure, values);
}

Status ColumnReader::ReadPages(std::span<const ValueRange> rows, StructureSink* structure,
                               ValueSink* values) const {
  int64_t left = 0;  // rows still to come
  for (const ValueRange& range : rows) left += range.count;
  LevelBatch levels;
  std::vector<ValueRange> in_page;
  size_t next = 0;
  int64_t consumed = 0;  // of rows[next]
  bool reserved = false;
  while (next < rows.size()) {
    const int64_t start = rows[next].start + consumed;
    auto it = std::upper_bound(first_slot_.begin(), first_slot_.end() - 1, start);
    const auto page = static_cast<size_t>(it - first_slot_.begin()) - 1;
    const int64_t page_start = first_slot_[page];
    const int64_t page_end = first_slot_[page + 1];
    in_page.clear();
    int64_t count = 0;
    while (next < rows.size() && rows[next].start + consumed < page_end) {
      const int64_t from = rows[next].start + consumed;
      const int64_t n = std::min(rows[next].count - consumed, page_end - from);
      in_page.push_back({from - page_start, n});
      count += n;
      consumed += n;
      if (consumed == rows[next].count) {
        ++next;
        consumed = 0;
      }
    }
    GLAIVE_ASSIGN_OR_RETURN(const PageReader* reader, Page(page));
    // A lone zero-copy range takes no memory of its own.
    const bool borrowed = reader->is_zero_copy() && count == left && in_page.size() == 1;
    if (!reserved && !borrowed) {
      if (Status s = values->ReserveValues(left); !s.ok()) return AtPage(page, s);
      reserved = true;
    }
    levels.Clear();
    levels.has_rep = levels.has_def = false;
    Status read = reader->Read(in_page, &levels, values);
    if (read.ok()) read = structure->Append(reader->rules(), levels);
    if (!read.ok()) return AtPage(page, read);
    left -= count;
  }
  return Status::OK();
}

std::vector<int64_t> ColumnReader::PageBoundaries() const {
  std::vector<int64_t> out = first_slot_;
  for (int64_t& slot : out) slot /= slots_per_row_;
  return out;
}

}  // namespace glaive::file
