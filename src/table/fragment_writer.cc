#include "table/fragment_writer.h"

#include <algorithm>
#include <utility>

#include <arrow/record_batch.h>

#include "file/file_writer.h"
#include "format/table.pb.h"
#include "io/object_store.h"
#include "table/in_flight.h"
#include "table/names.h"
#include "table/unsynced_files.h"

namespace glaive::table {

using lance::table::DataFragment;

FragmentWriter::FragmentWriter(const TableEnv& env, file::Schema schema,
                               FragmentWriterOptions options)
    : store_(*env.store),
      owned_store_(env.store),
      in_flight_(std::make_shared<InFlightFiles>(*env.store)),
      unsynced_(std::make_unique<UnsyncedFiles>(*env.store)),
      schema_(std::move(schema)),
      options_(options) {}

FragmentWriter::~FragmentWriter() {
  writer_.reset();
  if (kept_) return;
  for (const std::string& path : files_) {
    Status ignored = store_.Delete(path);
    static_cast<void>(ignored.ok());
  }
}

Status FragmentWriter::Write(const arrow::RecordBatch& batch) {
  int64_t start = 0;
  while (start < batch.num_rows()) {
    if (!writer_) GLAIVE_RETURN_NOT_OK(OpenFile());
    const int64_t room = options_.max_rows_per_file - writer_->num_rows();
    const int64_t count = std::min(room, batch.num_rows() - start);
    if (start == 0 && count == batch.num_rows()) {
      GLAIVE_RETURN_NOT_OK(writer_->Write(batch));
    } else {
      GLAIVE_RETURN_NOT_OK(writer_->Write(*batch.Slice(start, count)));
    }
    start += count;
    num_rows_ += count;
    if (writer_->num_rows() >= options_.max_rows_per_file ||
        writer_->bytes_written() >= options_.max_bytes_per_file) {
      GLAIVE_RETURN_NOT_OK(CutFragment());
    }
  }
  return Status::OK();
}

Status FragmentWriter::OpenFile() {
  name_ = NewDataFileName();
  in_flight_->Add(DataFilePath(name_));
  file::FileWriterOptions options;
  options.version = options_.version;
  options.outside_blob_fields = options_.outside_blob_fields;
  GLAIVE_ASSIGN_OR_RETURN(
      writer_, file::FileWriter::Make(store_, DataFilePath(name_), schema_, options));
  return Status::OK();
}

Status FragmentWriter::CutFragment() { return EndFile(LastFile::kDurable); }

Status FragmentWriter::EndFile(LastFile last) {
  if (!writer_) return Status::OK();
  // Before Finish: it may publish and still fail.
  files_.push_back(DataFilePath(name_));
  std::unique_ptr<io::ObjectWriter> complete;
  const bool later = last == LastFile::kLeftToCommit;
  GLAIVE_ASSIGN_OR_RETURN(const file::FileWriteSummary summary,
                          writer_->Finish(later ? &complete : nullptr));
  if (later) unsynced_->Add(DataFilePath(name_), std::move(complete));
  writer_.reset();
  files_.insert(files_.end(), summary.blob_files.begin(), summary.blob_files.end());
  DataFragment fragment;
  fragment.set_physical_rows(static_cast<uint64_t>(summary.num_rows));
  auto* file = fragment.add_files();
  file->set_path(name_);
  file->mutable_fields()->Add(summary.field_ids.begin(), summary.field_ids.end());
  file->mutable_column_indices()->Add(summary.column_indices.begin(),
                                      summary.column_indices.end());
  const auto [major, minor] = file::DataFileVersion(options_.version);
  file->set_file_major_version(major);
  file->set_file_minor_version(minor);
  file->set_file_size_bytes(static_cast<uint64_t>(summary.size_bytes));
  fragments_.push_back(std::move(fragment));
  return Status::OK();
}

Result<std::vector<DataFragment>> FragmentWriter::Finish(LastFile last) {
  GLAIVE_RETURN_NOT_OK(EndFile(last));
  return std::move(fragments_);
}

}  // namespace glaive::table
