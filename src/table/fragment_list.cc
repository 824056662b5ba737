#include "table/fragment_list.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "format/table.pb.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"
#include "table/wire.h"

namespace glaive::table {
namespace {

// Field numbers of DataFragment, DataFile and DeletionFile that the summary looks at.
enum : uint32_t {
  kId = 1,
  kFiles = 2,
  kDeletionFile = 3,
  kPhysicalRows = 4,
  kInlineRowIds = 5,
  kSpilledRowIds = 12,
  kSpilledUpdated = 13,
  kSpilledCreated = 14,
};
constexpr uint32_t kFileSizeBytes = 6;   // in DataFile
constexpr uint32_t kNumDeletedRows = 4;  // in DeletionFile

Status Malformed() { return Corruption("a fragment of the manifest does not decode"); }

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Sets `*value` to the last value of a varint field; other fields are skipped.
bool ScanVarint(std::span<const uint8_t> message, uint32_t wanted, uint64_t* value) {
  WireReader reader(message);
  while (!reader.done()) {
    uint32_t field, type;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field == wanted && type == WireReader::kVarint) {
      if (!reader.ReadVarint(value)) return false;
    } else if (!reader.Skip(type)) {
      return false;
    }
  }
  return true;
}

std::atomic<uint64_t> next_serial{1};

}  // namespace

SharedBytes SharedBytes::FromString(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const std::string_view view(*owner);
  return {std::move(owner), view};
}

bool ScanFragment(std::string_view message, FragmentSummary* summary) {
  WireReader reader(AsBytes(message));
  uint64_t id = 0, physical_rows = 0, deleted_rows = 0;
  while (!reader.done()) {
    uint32_t field, type;
    if (!reader.ReadTag(&field, &type)) return false;
    std::span<const uint8_t> bytes;
    if (field == kId && type == WireReader::kVarint) {
      if (!reader.ReadVarint(&id)) return false;
    } else if (field == kPhysicalRows && type == WireReader::kVarint) {
      if (!reader.ReadVarint(&physical_rows)) return false;
    } else if (type == WireReader::kBytes) {
      if (!reader.ReadBytes(&bytes)) return false;
      switch (field) {
        case kFiles:
          summary->has_files = true;
          break;
        case kDeletionFile:
          summary->has_deletion_file = true;
          if (!ScanVarint(bytes, kNumDeletedRows, &deleted_rows)) return false;
          break;
        case kInlineRowIds:
          summary->has_inline_row_ids = true;
          break;
        case kSpilledRowIds:
          summary->has_spilled_row_ids = true;
          summary->has_spilled_lineage = true;
          break;
        case kSpilledUpdated:
        case kSpilledCreated:
          summary->has_spilled_lineage = true;
          break;
        default:
          break;
      }
    } else if (field <= kPhysicalRows || !reader.Skip(type)) {
      return false;  // a known field with another wire type
    }
  }
  // Row offsets and fragment ids share one 64-bit address, 32 bits each. The largest id
  // marks deleted rows.
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  if (id >= kMax || physical_rows > kMax || deleted_rows > kMax) return false;
  if (physical_rows != 0 && deleted_rows > physical_rows) return false;
  summary->id = static_cast<uint32_t>(id);
  summary->physical_rows = static_cast<uint32_t>(physical_rows);
  summary->deleted_rows = static_cast<uint32_t>(deleted_rows);
  summary->length = static_cast<uint32_t>(message.size());
  return true;
}

Result<FragmentSummary> SummarizeFragment(std::string_view message) {
  FragmentSummary summary;
  if (!ScanFragment(message, &summary)) return Malformed();
  return summary;
}

Result<FragmentFiles> SummarizeFiles(std::string_view message) {
  FragmentFiles files;
  WireReader reader(AsBytes(message));
  while (!reader.done()) {
    uint32_t field, type;
    if (!reader.ReadTag(&field, &type)) return Malformed();
    std::span<const uint8_t> bytes;
    if (field != kFiles || type != WireReader::kBytes) {
      if (!reader.Skip(type)) return Malformed();
      continue;
    }
    uint64_t size_bytes = 0;
    if (!reader.ReadBytes(&bytes) || !ScanVarint(bytes, kFileSizeBytes, &size_bytes)) {
      return Malformed();
    }
    files.count++;
    files.bytes += size_bytes;
  }
  return files;
}

FragmentState::FragmentState(std::string serialized)
    : serialized_(std::move(serialized)), serial_(next_serial.fetch_add(1)) {}

FragmentState::~FragmentState() = default;

std::shared_ptr<FragmentState> FragmentState::ForView(
    std::string serialized, std::shared_ptr<const DeletionVector> deletions) {
  auto state = std::make_shared<FragmentState>(std::move(serialized));
  state->deletions = std::move(deletions);
  state->deletions_loaded = true;
  state->of_view_ = true;
  return state;
}

void FragmentState::Parse() const {
  const ForkGuard no_fork;
  std::call_once(once_, [this] {
    message_ = std::make_unique<lance::table::DataFragment>();
    parsed_ok_ = message_->ParseFromString(serialized_);
    if (!parsed_ok_) message_->Clear();
  });
}

Status FragmentState::status() const {
  Parse();
  return parsed_ok_ ? Status::OK() : Malformed();
}

const lance::table::DataFragment& FragmentState::message() const {
  Parse();
  return *message_;
}

Result<std::shared_ptr<const FragmentList>> FragmentList::Make(
    SharedBytes bytes, std::vector<FragmentSummary> summaries,
    const FragmentList* previous) {
  std::shared_ptr<FragmentList> list(new FragmentList());
  list->bytes_ = std::move(bytes);
  list->summaries_ = std::move(summaries);
  if (list->summaries_.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Corruption("the manifest lists too many fragments");
  }
  for (size_t i = 0; i < list->summaries_.size(); ++i) {
    const FragmentSummary& s = list->summaries_[i];
    if (i > 0 && s.id <= list->summaries_[i - 1].id) {
      return Corruption("fragment ids of the manifest are not ascending: ", s.id,
                        " follows ", list->summaries_[i - 1].id);
    }
    list->physical_rows_ += s.physical_rows;  // at most 2^31 * 2^32
    list->deleted_rows_ += s.deleted_rows;
    list->traits_.Add(s);
  }
  if (previous != nullptr && previous->states_built_.load(std::memory_order_acquire)) {
    list->inherited_.resize(list->summaries_.size());
    size_t j = 0;
    for (size_t i = 0; i < list->summaries_.size(); ++i) {
      while (j < previous->summaries_.size() &&
             previous->summaries_[j].id < list->summaries_[i].id) {
        ++j;
      }
      if (j == previous->summaries_.size()) break;
      if (previous->summaries_[j].id == list->summaries_[i].id &&
          previous->serialized(static_cast<int>(j)) ==
              list->serialized(static_cast<int>(i))) {
        list->inherited_[i] = previous->states_[j];
      }
    }
    list->BuildStates();
    list->inherited_ = {};
  }
  return list;
}

std::shared_ptr<const FragmentList> FragmentList::MakeView(
    const FragmentList& of, std::vector<FragmentSummary> summaries,
    std::vector<std::shared_ptr<FragmentState>> states) {
  std::shared_ptr<FragmentList> list(new FragmentList());
  list->bytes_ = of.bytes_;
  list->summaries_ = std::move(summaries);
  list->inherited_ = std::move(states);
  for (const FragmentSummary& s : list->summaries_) {
    list->physical_rows_ += s.physical_rows;
    list->deleted_rows_ += s.deleted_rows;
    list->traits_.Add(s);
  }
  list->BuildStates();
  list->inherited_ = {};
  return list;
}

void FragmentList::BuildStates() const {
  if (states_built_.load(std::memory_order_acquire)) return;
  const ForkGuard no_fork;
  std::call_once(states_once_, [this] {
    states_.resize(summaries_.size());
    for (size_t i = 0; i < summaries_.size(); ++i) {
      if (!inherited_.empty() && inherited_[i]) {
        states_[i] = inherited_[i];
      } else {
        states_[i] =
            std::make_shared<FragmentState>(std::string(serialized(static_cast<int>(i))));
      }
    }
    states_built_.store(true, std::memory_order_release);
  });
}

const std::shared_ptr<FragmentState>& FragmentList::shared_state(int index) const {
  BuildStates();
  return states_[index];
}

int FragmentList::Find(uint64_t id) const {
  auto it =
      std::lower_bound(summaries_.begin(), summaries_.end(), id,
                       [](const FragmentSummary& s, uint64_t v) { return s.id < v; });
  if (it == summaries_.end() || it->id != id) return -1;
  return static_cast<int>(it - summaries_.begin());
}

size_t FragmentList::memory_bytes() const {
  return summaries_.size() * (sizeof(FragmentSummary) + sizeof(FragmentState) + 600) +
         bytes_.view.size();
}

}  // namespace glaive::table
