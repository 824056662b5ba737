#include "index/text/index_params.h"

#include <optional>
#include <string>

#include "file/file_reader.h"
#include "format/inverted_index.pb.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/names.h"

namespace glaive::text {
namespace {

using lance::table::IndexMetadata;

// A value of the schema's metadata of a file; nullopt: no such file.
Result<std::optional<std::string>> ReadValue(io::ObjectStore& store,
                                             const std::string& path,
                                             const std::string& key) {
  auto object = store.Open(path);
  if (!object.ok()) {
    if (KindOf(object.status()) == ErrorKind::kNotFound) return std::nullopt;
    return object.status();
  }
  GLAIVE_ASSIGN_OR_RETURN(const auto reader, file::FileReader::Open(*object));
  const auto& metadata = reader->schema().metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return Corruption(path, " does not say its ", key);
  return found->second;
}

}  // namespace

Result<TokenizerParams> ReadIndexParams(const table::Dataset& dataset,
                                        const IndexMetadata& index) {
  lance::table::InvertedIndexDetails details;
  if (!details.ParseFromString(index.index_details().value())) {
    return Corruption("the details of index '", index.name(), "' of table ",
                      dataset.env().store->root(), " do not decode");
  }
  if (details.document_granularity() != 0) {
    return NotSupported("index '", index.name(),
                        "', whose documents are elements of lists");
  }
  io::ObjectStore& store = *dataset.env().store;
  const std::string folder = "_indices/" + table::FormatUuid(index.uuid().uuid()) + "/";
  std::optional<std::string> json;
  if (!index.has_base_id()) {
    GLAIVE_ASSIGN_OR_RETURN(json, ReadValue(store, folder + "metadata.lance", "params"));
    if (!json) {  // as old writers have it
      GLAIVE_ASSIGN_OR_RETURN(json,
                              ReadValue(store, folder + "tokens.lance", "tokenizer"));
    }
  }
  Result<std::optional<TokenizerParams>> params = std::nullopt;
  if (json) {
    params = ParseTokenizerParams(*json).Map(
        [](TokenizerParams parsed) { return std::make_optional(std::move(parsed)); });
  } else {
    params = ParamsOfDetails(details);
  }
  if (!params.ok()) {
    return WithContext(params.status(),
                       "index '" + index.name() + "' of table " + store.root());
  }
  if (!*params) {
    return Corruption("nothing says how index '", index.name(), "' of table ",
                      store.root(), " makes tokens: ", folder, " has no metadata.lance");
  }
  return **std::move(params);
}

}  // namespace glaive::text
