#include "memwal/text_index_files.h"

#include <cstring>
#include <utility>

#include <arrow/array.h>
#include <arrow/chunked_array.h>
#include <arrow/type.h>

#include "index/text/partition.h"
#include "index/text/partition_files.h"
#include "io/object_store.h"
#include "table/names.h"

namespace glaive::memwal {
namespace {

bool IsText(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

// The type of the elements of lists; null for others.
const arrow::DataType* ElementType(const arrow::DataType& type) {
  if (type.id() != arrow::Type::LIST && type.id() != arrow::Type::LARGE_LIST) {
    return nullptr;
  }
  return static_cast<const arrow::BaseListType&>(type).value_type().get();
}

std::string_view TextAt(const arrow::Array& texts, int64_t i) {
  if (texts.type_id() == arrow::Type::STRING) {
    return static_cast<const arrow::StringArray&>(texts).GetView(i);
  }
  return static_cast<const arrow::LargeStringArray&>(texts).GetView(i);
}

// What the partition holds counts in the budget as long as this lives.
class Counted {
 public:
  explicit Counted(MemoryBudget& budget) : budget_(budget) {}
  ~Counted() { budget_.Release(bytes_); }
  void Set(int64_t bytes) {
    budget_.Release(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  MemoryBudget& budget_;
  int64_t bytes_ = 0;
};

class Rows {
 public:
  Rows(text::Partition* partition, MemoryBudget& budget)
      : partition_(*partition), counted_(budget) {}

  Status Add(const arrow::Array& chunk) {
    if (IsText(*chunk.type())) {
      return Each(chunk, [&](int64_t i) { return TextAt(chunk, i); });
    }
    if (chunk.type_id() == arrow::Type::LIST) {
      return AddLists(static_cast<const arrow::ListArray&>(chunk));
    }
    return AddLists(static_cast<const arrow::LargeListArray&>(chunk));
  }

 private:
  // To upstream's writer what is null, tombstones too, is an empty text: no document to
  // most tokenizers, but the raw one keeps it, and counts it in scores.
  template <typename TextOf>
  Status Each(const arrow::Array& chunk, const TextOf& text_of) {
    constexpr int64_t kCountEvery = 256;
    for (int64_t i = 0; i < chunk.length(); ++i, ++row_) {
      GLAIVE_RETURN_NOT_OK(
          partition_.Add(row_, chunk.IsNull(i) ? std::string_view() : text_of(i)));
      if (row_ % kCountEvery == 0) counted_.Set(partition_.size_bytes());
    }
    counted_.Set(partition_.size_bytes());
    return Status::OK();
  }

  template <typename ListArray>
  Status AddLists(const ListArray& lists) {
    const arrow::Array& elements = *lists.values();
    return Each(lists, [&](int64_t i) -> std::string_view {
      joined_.clear();
      for (auto e = lists.value_offset(i); e < lists.value_offset(i + 1); ++e) {
        if (elements.IsNull(e)) continue;
        // Empty ones at the beginning leave no blank, as upstream.
        if (!joined_.empty()) joined_.push_back(' ');
        joined_ += TextAt(elements, e);
      }
      return joined_;
    });
  }

  text::Partition& partition_;
  Counted counted_;
  uint64_t row_ = 0;
  std::string joined_;
};

}  // namespace

bool IsTextIndexType(const arrow::DataType& type) {
  const arrow::DataType* element = ElementType(type);
  return IsText(element == nullptr ? type : *element);
}

Result<bool> WriteTextIndexFiles(io::ObjectStore& store, const std::string& directory,
                                 const arrow::ChunkedArray& texts,
                                 const text::TokenizerParams& params,
                                 file::FileVersion version, MemoryBudget& budget) {
  if (!IsTextIndexType(*texts.type())) {
    return InternalError("a full-text index over values of type ",
                         texts.type()->ToString());
  }
  text::TokenizerParams written = params;
  written.block_size = text::kTextBlockSize;  // whatever the base's index has
  GLAIVE_ASSIGN_OR_RETURN(text::Partition partition, text::Partition::Make(written));
  Rows rows(&partition, budget);
  for (const auto& chunk : texts.chunks()) GLAIVE_RETURN_NOT_OK(rows.Add(*chunk));
  if (partition.empty()) return false;
  // Any number will do, as long as it is nobody else's.
  uint64_t id = 0;
  std::memcpy(&id, table::NewUuidBytes().data(), sizeof(id));
  GLAIVE_RETURN_NOT_OK(
      text::WriteTextIndex(store, directory, partition, id, version).status());
  return true;
}

}  // namespace glaive::memwal
