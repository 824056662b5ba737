#include "table/field_ids.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "format/table.pb.h"
#include "table/snapshot.h"

namespace glaive::table {

int32_t RememberedFieldId(const lance::table::Manifest& header) {
  const auto found = header.config().find(kMaxFieldIdKey);
  if (found == header.config().end()) return -1;
  const std::string& text = found->second;
  int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  // Anybody may write to the config; what is no number says nothing.
  return error == std::errc() && end == text.data() + text.size() ? std::max(id, -1) : -1;
}

int32_t MaxFieldIdOf(const lance::table::DataFragment& fragment) {
  int32_t max = -1;
  for (const auto& file : fragment.files()) {
    for (int32_t id : file.fields()) max = std::max(max, id);
  }
  return max;
}

Result<int32_t> MaxFieldId(const Snapshot& snapshot) {
  int32_t max =
      std::max(snapshot.schema->schema.max_id(), RememberedFieldId(*snapshot.header));
  for (int i = 0; i < snapshot.fragments->size(); ++i) {
    FragmentState& state = snapshot.fragments->state(i);
    GLAIVE_RETURN_NOT_OK(state.status());
    max = std::max(max, MaxFieldIdOf(state.message()));
  }
  return max;
}

}  // namespace glaive::table
