// Blobs of the second kind (lance.blob.v2, version 2.2): where the bytes go, and the
// descriptors that the data file keeps in their place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "base/status.h"
#include "file/page_sink.h"
#include "file/schema.h"

namespace glaive::io {
class ObjectStore;
class ObjectWriter;
}  // namespace glaive::io

namespace glaive::file {

// Where the bytes of a blob are.
enum class BlobKind : uint8_t { kInline = 0, kPacked = 1, kDedicated = 2, kExternal = 3 };

// The folder of the files beside a data file, "data/x.lance" -> "data/x/", and the name
// of one of them: the 32 binary digits of its number, lowest first.
std::string BlobDirectory(std::string path);
std::string BlobFileName(uint32_t id);

// True when a blob of the second kind lies at or below `field`.
bool HoldsBlobsV2(const Field& field);

// NotSupported or InvalidInput where such blobs cannot be stored: below maps and vectors,
// or as structs of other members than data, uri, position and size.
Status CheckBlobsV2(const Field& field);

// InvalidInput names the first row that is neither null nor exactly one of data and uri;
// NotSupported when it has a uri, unless `outside`. `data` has the layout of
// CastForStorage.
Status CheckBlobValues(const Field& field, const arrow::ArrayData& data, bool outside);

// Not thread-safe. Small values go into the data file, those of middle size one after the
// other into shared files, large ones into files of their own, all in a directory named
// after the data file. The limits can be set in the metadata of the field.
class BlobV2Writer {
 public:
  // `path`: of the data file.
  BlobV2Writer(io::ObjectStore& store, std::string path);
  ~BlobV2Writer();

  // `data` of a top-level field that passed the checks, blobs replaced by descriptors, as
  // Schema::WithBlobDescriptors has the field. Of blobs with a uri only that is kept.
  Result<std::shared_ptr<arrow::ArrayData>> Write(const Field& field,
                                                  const arrow::ArrayData& data,
                                                  PageSink* sink);
  // Ends the open files; all are durable then.
  Status Finish();
  // Removes all files. Also for after Finish, when the data file fails.
  void Abort();
  // Paths of the files made so far.
  const std::vector<std::string>& files() const { return files_; }

 private:
  struct Limits;
  struct Place;

  Result<std::shared_ptr<arrow::ArrayData>> WriteBlobs(const Field& field,
                                                       const arrow::ArrayData& data,
                                                       const std::vector<bool>& visible,
                                                       PageSink* sink);
  Result<std::shared_ptr<arrow::ArrayData>> WriteField(const Field& field,
                                                       const arrow::ArrayData& data,
                                                       const std::vector<bool>& visible,
                                                       PageSink* sink);
  Result<Place> Put(std::span<const uint8_t> bytes, const Limits& limits, PageSink* sink);
  Result<std::unique_ptr<io::ObjectWriter>> NewFile(uint32_t* id);

  io::ObjectStore& store_;
  const std::string directory_;
  std::unique_ptr<io::ObjectWriter> pack_;  // the shared file that is open, if any
  uint32_t pack_id_ = 0;
  uint32_t last_id_ = 0;
  std::vector<std::string> files_;
};

}  // namespace glaive::file
