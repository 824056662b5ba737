// glaive._glaive.FileReader and FileWriter: single Lance files.
#include <algorithm>
#include <mutex>
#include <utility>

#include <arrow/api.h>

#include "arrow_interop.h"
#include "bindings.h"
#include "call.h"
#include "db/environment.h"
#include "file/file_metadata.h"
#include "file/file_reader.h"
#include "file/file_writer.h"
#include "format/encodings.pb.h"
#include "format/encodings21.pb.h"
#include "io/object_store.h"
#include "readable.h"

namespace glaive::python {
namespace {

using StringMap = std::map<std::string, std::string>;

struct Location {
  std::shared_ptr<io::ObjectStore> store;
  std::string name;
};

// The store of the file's directory, and its name there.
Result<Location> Locate(const std::string& path, bool create) {
  const size_t slash = path.rfind('/');
  Location location;
  location.name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (location.name.empty()) {
    return InvalidInput("Invalid input, '", path, "' does not name a file");
  }
  std::string directory = ".";
  if (slash == 0) {
    directory = "/";
  } else if (slash != std::string::npos) {
    directory = path.substr(0, slash);
  }
  auto store = io::OpenStore(directory, create);
  if (!store.ok() && KindOf(store.status()) == ErrorKind::kNotFound) {
    return NotFound("file ", path, " was not found");
  }
  GLAIVE_ASSIGN_OR_RETURN(location.store, std::move(store));
  return location;
}

struct PyFileReader {
  std::string path;
  std::shared_ptr<file::FileReader> reader;
  file::Projection projection;
};

Result<std::unique_ptr<PyFileReader>> OpenReader(
    const std::string& path, const std::optional<std::vector<std::string>>& columns) {
  auto out = std::make_unique<PyFileReader>();
  out->path = path;
  GLAIVE_RETURN_NOT_OK(db::DefaultRuntime().status());  // sets Arrow's kernels up
  GLAIVE_ASSIGN_OR_RETURN(auto location, Locate(path, /*create=*/false));
  GLAIVE_ASSIGN_OR_RETURN(auto object, location.store->Open(location.name));
  GLAIVE_ASSIGN_OR_RETURN(out->reader, file::FileReader::Open(std::move(object)));
  if (columns) {
    GLAIVE_ASSIGN_OR_RETURN(out->projection, out->reader->Project(*columns));
  } else {
    GLAIVE_ASSIGN_OR_RETURN(out->projection, out->reader->ProjectAll());
  }
  return out;
}

Status CheckRange(const PyFileReader& self, int64_t start, int64_t count) {
  if (start < 0 || count < 0 || start > self.reader->num_rows() - count) {
    return InvalidInput("Invalid input, rows ", start, " to ", start, " + ", count,
                        " are out of range: ", self.path, " has ",
                        self.reader->num_rows(), " rows");
  }
  return Status::OK();
}

// Batches of a range of one file.
class RangeStream : public arrow::RecordBatchReader {
 public:
  RangeStream(std::shared_ptr<file::FileReader> reader, file::Projection projection,
              int64_t start, int64_t end, int64_t batch_rows, CancelToken* cancel)
      : reader_(std::move(reader)),
        projection_(std::move(projection)),
        schema_(projection_.schema.ToArrow()),
        next_(start),
        end_(end),
        batch_rows_(batch_rows),
        cancel_(cancel) {}

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    out->reset();
    if (next_ >= end_) return Status::OK();
    GLAIVE_RETURN_NOT_OK(cancel_->CheckOnCaller());
    const int64_t count = std::min(batch_rows_, end_ - next_);
    GLAIVE_ASSIGN_OR_RETURN(*out, reader_->ReadRange(projection_, next_, count));
    next_ += count;
    return Status::OK();
  }

 private:
  std::shared_ptr<file::FileReader> reader_;
  file::Projection projection_;
  std::shared_ptr<arrow::Schema> schema_;
  int64_t next_;
  int64_t end_;
  int64_t batch_rows_;
  CancelToken* cancel_;
};

std::unique_ptr<PyBatchReader> Read(PyFileReader& self, int64_t start,
                                    std::optional<int64_t> num_rows, int64_t batch_size) {
  if (batch_size <= 0) Raise(InvalidInput("Invalid input, batch_size must be positive"));
  const int64_t count =
      num_rows.value_or(std::max<int64_t>(0, self.reader->num_rows() - start));
  Check(CheckRange(self, start, count));
  auto out = std::make_unique<PyBatchReader>();
  out->call = std::make_unique<Call>();
  out->stream = std::make_shared<RangeStream>(
      self.reader, self.projection, start, start + count, batch_size, out->call->token());
  out->schema = out->stream->schema();
  return out;
}

nb::object ReadRange(PyFileReader& self, int64_t start, int64_t count) {
  Call call;
  return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
    GLAIVE_RETURN_NOT_OK(CheckRange(self, start, count));
    return self.reader->ReadRange(self.projection, start, count);
  }));
}

nb::object TakeRows(PyFileReader& self, nb::object rows) {
  const auto wanted = ImportOffsets(rows, "rows");
  Call call;
  return ToPyArrow(call.Run([&]() -> Result<std::shared_ptr<arrow::RecordBatch>> {
    for (int64_t row : wanted) {
      if (row >= self.reader->num_rows()) {
        return InvalidInput("Invalid input, row ", row, " is out of range: ", self.path,
                            " has ", self.reader->num_rows(), " rows");
      }
    }
    return self.reader->Take(self.projection, wanted);
  }));
}

nb::bytes GlobalBuffer(PyFileReader& self, int index) {
  Call call;
  auto buffer = call.Run([&] { return self.reader->GlobalBuffer(index); });
  return nb::bytes(buffer->data(), static_cast<size_t>(buffer->size()));
}

nb::list ToPython(const std::vector<io::ByteRange>& ranges) {
  nb::list out;
  for (const auto& range : ranges) out.append(nb::make_tuple(range.offset, range.length));
  return out;
}

template <typename Message>
std::string DescribeAs(const std::string& serialized) {
  Message message;
  if (!message.ParseFromString(serialized)) return "(damaged)";
  return message.DebugString();
}

std::string DescribeEncoding(file::FileVersion version, const std::string& serialized) {
  if (version == file::FileVersion::k2_0) {
    return DescribeAs<lance::encodings::ArrayEncoding>(serialized);
  }
  return DescribeAs<lance::encodings21::PageLayout>(serialized);
}

int64_t TotalBytes(const std::vector<io::ByteRange>& ranges) {
  int64_t total = 0;
  for (const auto& range : ranges) total += range.length;
  return total;
}

nb::dict Metadata(PyFileReader& self) {
  const file::FileMetadata& metadata = self.reader->metadata();
  Call call;
  auto infos = call.Run([&]() -> Result<std::vector<file::ColumnInfo>> {
    std::vector<file::ColumnInfo> out;
    for (int i = 0; i < metadata.num_columns(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(auto info, metadata.ReadColumn(i));
      out.push_back(std::move(info));
    }
    return out;
  });
  nb::list columns;
  for (const auto& info : infos) {
    nb::list pages;
    for (const auto& page : info.pages) {
      nb::dict one;
      one["num_rows"] = page.num_rows;
      one["buffers"] = ToPython(page.buffers);
      one["encoding"] = DescribeEncoding(metadata.version, page.encoding);
      pages.append(std::move(one));
    }
    nb::dict column;
    column["pages"] = std::move(pages);
    column["column_buffers"] = ToPython(info.buffers);
    columns.append(std::move(column));
  }
  int64_t data_bytes = metadata.size_bytes;
  for (const auto& range : metadata.column_metadata) {
    data_bytes = std::min(data_bytes, range.offset);
  }
  nb::dict out;
  out["num_data_bytes"] = data_bytes;
  out["num_column_metadata_bytes"] = TotalBytes(metadata.column_metadata);
  out["num_global_buffer_bytes"] = TotalBytes(metadata.global_buffers);
  out["global_buffers"] = ToPython(metadata.global_buffers);
  out["columns"] = std::move(columns);
  return out;
}

// Not thread-safe below, so calls take turns.
struct PyFileWriter {
  std::mutex mutex;  // taken only without the GIL
  std::shared_ptr<io::ObjectStore> store;
  std::unique_ptr<file::FileWriter> writer;  // null once finished or aborted
  int64_t num_rows = 0;

  Status CheckOpen() const {
    return writer ? Status::OK() : Closed("the file writer is closed");
  }
};

std::unique_ptr<PyFileWriter> OpenWriter(const std::string& path, nb::object schema,
                                         std::optional<std::string> version,
                                         std::optional<int64_t> data_cache_bytes,
                                         std::optional<int64_t> max_page_bytes,
                                         std::optional<StringMap> /*storage_options*/) {
  file::FileWriterOptions options;
  if (version) options.version = Unwrap(file::ParseFileVersion(*version));
  for (auto bytes : {data_cache_bytes, max_page_bytes}) {
    if (bytes && *bytes <= 0)
      Raise(InvalidInput("Invalid input, byte counts must be positive"));
  }
  auto arrow_schema = ImportSchema(schema);
  // The cache is shared by the columns.
  if (data_cache_bytes) {
    options.page_bytes =
        std::max<int64_t>(1, *data_cache_bytes / std::max(1, arrow_schema->num_fields()));
  }
  if (max_page_bytes) options.max_page_bytes = *max_page_bytes;
  Call call;
  auto out = std::make_unique<PyFileWriter>();
  out->writer = call.Run([&]() -> Result<std::unique_ptr<file::FileWriter>> {
    GLAIVE_RETURN_NOT_OK(db::DefaultRuntime().status());
    GLAIVE_ASSIGN_OR_RETURN(auto location, Locate(path, /*create=*/true));
    out->store = location.store;
    GLAIVE_ASSIGN_OR_RETURN(auto lance_schema, file::Schema::FromArrow(*arrow_schema));
    return file::FileWriter::Make(*out->store, location.name, std::move(lance_schema),
                                  options);
  });
  return out;
}

void Write(PyFileWriter& self, nb::object data) {
  Call call;
  auto stream = ImportStream(data, &call);
  call.Run([&]() -> Status {
    std::lock_guard lock(self.mutex);
    GLAIVE_RETURN_NOT_OK(self.CheckOpen());
    while (true) {
      GLAIVE_RETURN_NOT_OK(call.token()->CheckOnCaller());
      GLAIVE_ASSIGN_OR_RETURN(auto batch, stream->Next());
      if (!batch) break;
      GLAIVE_RETURN_NOT_OK(self.writer->Write(*batch));
    }
    self.num_rows = self.writer->num_rows();
    stream.reset();
    return Status::OK();
  });
}

int AddGlobalBuffer(PyFileWriter& self, nb::bytes data) {
  auto buffer = arrow::Buffer::FromString(std::string(data.c_str(), data.size()));
  Call call;
  return call.Run([&]() -> Result<int> {
    std::lock_guard lock(self.mutex);
    GLAIVE_RETURN_NOT_OK(self.CheckOpen());
    return self.writer->AddGlobalBuffer(std::move(buffer));
  });
}

void AddSchemaMetadata(PyFileWriter& self, const std::string& key,
                       const std::string& value) {
  Call call;
  call.Run([&]() -> Status {
    std::lock_guard lock(self.mutex);
    GLAIVE_RETURN_NOT_OK(self.CheckOpen());
    self.writer->AddSchemaMetadata(key, value);
    return Status::OK();
  });
}

int64_t Finish(PyFileWriter& self) {
  Call call;
  return call.Run([&]() -> Result<int64_t> {
    std::lock_guard lock(self.mutex);
    GLAIVE_RETURN_NOT_OK(self.CheckOpen());
    GLAIVE_ASSIGN_OR_RETURN(auto summary, self.writer->Finish());
    self.writer.reset();
    return summary.num_rows;
  });
}

void Abort(PyFileWriter& self) {
  nb::gil_scoped_release release;
  std::lock_guard lock(self.mutex);
  if (self.writer) self.writer->Abort();
  self.writer.reset();
}

}  // namespace

void BindFiles(nb::module_& m) {
  using nb::literals::operator""_a;
  const auto none = nb::none();
  nb::class_<PyFileReader>(m, "FileReader")
      .def(nb::new_([](const std::string& path,
                       std::optional<std::vector<std::string>> columns,
                       std::optional<StringMap> /*storage_options*/) {
             Call call;
             return call.Run([&] { return OpenReader(path, columns); });
           }),
           "path"_a, nb::kw_only(), "columns"_a = none, "storage_options"_a = none)
      .def_prop_ro("num_rows", [](PyFileReader& self) { return self.reader->num_rows(); })
      .def_prop_ro(
          "schema",
          [](PyFileReader& self) { return ToPyArrow(self.projection.schema.ToArrow()); })
      .def_prop_ro(
          "version",
          [](PyFileReader& self) { return file::FooterVersion(self.reader->version()); })
      .def("read_range", &ReadRange, "start"_a, "num_rows"_a)
      .def("take_rows", &TakeRows, "rows"_a)
      .def("read", &Read, "start"_a = 0, "num_rows"_a = none, nb::kw_only(),
           "batch_size"_a = 1024)
      .def("metadata", &Metadata)
      .def("num_global_buffers",
           [](PyFileReader& self) { return self.reader->num_global_buffers(); })
      .def("global_buffer", &GlobalBuffer, "index"_a);
  nb::class_<PyFileWriter>(m, "FileWriter")
      .def(nb::new_(&OpenWriter), "path"_a, "schema"_a, nb::kw_only(), "version"_a = none,
           "data_cache_bytes"_a = none, "max_page_bytes"_a = none,
           "storage_options"_a = none)
      .def("write", &Write, "data"_a)
      .def("add_global_buffer", &AddGlobalBuffer, "data"_a)
      .def("add_schema_metadata", &AddSchemaMetadata, "key"_a, "value"_a)
      .def_prop_ro("num_rows", [](PyFileWriter& self) { return self.num_rows; })
      .def("finish", &Finish)
      .def("abort", &Abort);
}

}  // namespace glaive::python
