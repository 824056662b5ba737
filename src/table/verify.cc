#include "table/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include <arrow/record_batch.h>

#include "file/file_reader.h"
#include "format/table.pb.h"
#include "format/transaction.pb.h"
#include "io/object_store.h"
#include "runtime/cancel.h"
#include "runtime/runtime.h"
#include "table/data_file.h"
#include "table/deletion_file.h"
#include "table/deletion_vector.h"
#include "table/fragment_reader.h"
#include "table/in_flight.h"
#include "table/manifest.h"
#include "table/names.h"
#include "table/references.h"
#include "table/snapshot.h"
#include "table/version_directory.h"

namespace glaive::table {
namespace {

using lance::table::DataFragment;

constexpr int64_t kRowsAtOnce = 16384;
constexpr std::string_view kIndicesDir = "_indices";

// Errors that say something about the table; others are the store's.
bool IsDamage(const Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == ErrorKind::kNotFound || kind == ErrorKind::kCorruption;
}

struct FragmentFinding {
  std::vector<VerifyProblem> problems;
  bool rows_lost = false;
  bool deletions_lost = false;
  int64_t files = 0;
  int64_t rows = 0;
};

class Verifier {
 public:
  Verifier(const TableEnv& env, const VerifyOptions& options)
      : env_(env), store_(*env.store), options_(options) {}

  Result<VerifyReport> Run() {
    GLAIVE_ASSIGN_OR_RETURN(dataset_, Dataset::Open(env_));
    report_.version = dataset_->version();
    GLAIVE_RETURN_NOT_OK(ListFiles());
    GLAIVE_RETURN_NOT_OK(CheckNewest());
    GLAIVE_RETURN_NOT_OK(CheckVersions());
    AddForeign();
    if (options_.repair && (!report_.lost.empty() || !report_.undeleted.empty())) {
      GLAIVE_RETURN_NOT_OK(Repair());
    }
    return std::move(report_);
  }

 private:
  Status ListFiles() {
    for (std::string_view directory :
         {std::string_view(kDataDir), std::string_view(kDeletionsDir),
          std::string_view(kTransactionsDir), kIndicesDir}) {
      GLAIVE_ASSIGN_OR_RETURN(auto listed, store_.List(directory, /*recursive=*/true));
      for (io::ObjectInfo& info : listed) sizes_[info.path] = info.size_bytes;
    }
    return Status::OK();
  }

  Status CheckNewest() {
    const int count = dataset_->num_fragments();
    std::vector<FragmentFinding> findings(static_cast<size_t>(count));
    constexpr int kStep = 64;
    for (int begin = 0; begin < count; begin += kStep) {
      if (options_.cancel != nullptr) {
        GLAIVE_RETURN_NOT_OK(options_.cancel->CheckOnCaller());
      }
      const int end = std::min(count, begin + kStep);
      GLAIVE_RETURN_NOT_OK(env_.runtime->ParallelFor(
          end - begin,
          [&](int64_t i) {
            const int index = begin + static_cast<int>(i);
            return CheckFragment(index, &findings[static_cast<size_t>(index)]);
          },
          options_.cancel));
      if (options_.progress) options_.progress(end, count);
    }
    for (int i = 0; i < count; ++i) {
      DataFragment fragment = dataset_->fragment(i);
      NoteFiles(&fragment);
      FragmentFinding& finding = findings[static_cast<size_t>(i)];
      report_.files_checked += finding.files;
      report_.rows_checked += finding.rows;
      for (VerifyProblem& problem : finding.problems) {
        problem.version = report_.version;
        problem.fragment_id = dataset_->fragment_id(i);
        reported_.insert(problem.path);
        report_.problems.push_back(std::move(problem));
      }
      if (finding.rows_lost) {
        report_.lost.push_back({dataset_->fragment_id(i), dataset_->live_rows(i)});
      } else if (finding.deletions_lost) {
        report_.undeleted.push_back(
            {dataset_->fragment_id(i),
             dataset_->physical_rows(i) - dataset_->live_rows(i)});
      }
    }
    return Status::OK();
  }

  // Missing, or smaller or larger than it should be. True when there is a problem.
  bool CheckSize(const std::string& path, uint64_t expected, FragmentFinding* finding) {
    auto found = sizes_.find(path);
    if (found == sizes_.end()) {
      finding->problems.push_back({ProblemKind::kMissing, path, "there is no such file"});
      return true;
    }
    const auto actual = static_cast<uint64_t>(found->second);
    if (expected == 0 || actual == expected) return false;
    finding->problems.push_back(
        {actual < expected ? ProblemKind::kTruncated : ProblemKind::kCorrupt, path,
         "it has " + std::to_string(actual) + " bytes, the manifest says " +
             std::to_string(expected)});
    return true;
  }

  Status CheckFragment(int index, FragmentFinding* finding) {
    GLAIVE_RETURN_NOT_OK(
        CheckFiles(dataset_->fragment(index), dataset_->physical_rows(index), finding));
    if (options_.decode && !finding->rows_lost) {
      GLAIVE_RETURN_NOT_OK(Decode(index, finding));
    }
    return Status::OK();
  }

  // `rows`: 0 when the manifest does not say.
  Status CheckFiles(const DataFragment& fragment, int64_t rows,
                    FragmentFinding* finding) {
    for (const auto& file : fragment.files()) {
      if (file.has_base_id()) continue;  // of another table
      const std::string path = DataFilePath(file.path());
      ++finding->files;
      if (CheckSize(path, file.file_size_bytes(), finding)) {
        finding->rows_lost = true;
        continue;
      }
      ForgetDataFile(env_, file);
      auto reader = OpenDataFile(env_, file);
      Status status = reader.status();
      if (status.ok() && rows > 0 && (*reader)->num_rows() != rows) {
        status = Corruption("it has ", (*reader)->num_rows(), " rows, the manifest says ",
                            rows);
      }
      if (status.ok()) continue;
      if (!IsDamage(status)) {
        if (KindOf(status) == ErrorKind::kNotSupported) continue;
        return status;
      }
      finding->problems.push_back({ProblemKind::kCorrupt, path, status.message()});
      finding->rows_lost = true;
    }
    if (fragment.has_deletion_file() && !fragment.deletion_file().has_base_id()) {
      GLAIVE_RETURN_NOT_OK(CheckDeletions(fragment, rows, finding));
    }
    return Status::OK();
  }

  Status CheckDeletions(const DataFragment& fragment, int64_t rows,
                        FragmentFinding* finding) {
    const std::string path = DeletionFilePath(fragment.id(), fragment.deletion_file());
    ++finding->files;
    if (CheckSize(path, 0, finding)) {
      finding->deletions_lost = true;
      return Status::OK();
    }
    if (rows == 0) return Status::OK();
    auto deletions = ReadDeletionFile(env_, fragment, rows);
    Status status = deletions.status();
    const auto expected =
        static_cast<int64_t>(fragment.deletion_file().num_deleted_rows());
    if (status.ok() && expected > 0 && (*deletions)->size() != expected) {
      status = Corruption("it lists ", (*deletions)->size(), " rows, the manifest says ",
                          expected);
    }
    if (status.ok()) return status;
    if (!IsDamage(status)) return status;
    finding->problems.push_back({ProblemKind::kCorrupt, path, status.message()});
    finding->deletions_lost = true;
    return Status::OK();
  }

  // Reads all rows, the deleted ones included.
  Status Decode(int index, FragmentFinding* finding) {
    if (finding->deletions_lost) return Status::OK();  // the reader does not open then
    auto decode = [&]() -> Status {
      GLAIVE_ASSIGN_OR_RETURN(auto reader, dataset_->OpenFragment(index));
      GLAIVE_ASSIGN_OR_RETURN(auto projection,
                              reader->Bind(dataset_->schema().WithBlobDescriptors()));
      const int64_t rows = reader->physical_rows();
      for (int64_t start = 0; start < rows; start += kRowsAtOnce) {
        const int64_t count = std::min(kRowsAtOnce, rows - start);
        GLAIVE_ASSIGN_OR_RETURN(auto batch, reader->ReadRange(projection, start, count));
        Status valid = batch->ValidateFull();
        if (!valid.ok()) return Corruption(valid.message());
        finding->rows += count;
      }
      return Status::OK();
    };
    const Status status = decode();
    if (status.ok() || KindOf(status) == ErrorKind::kNotSupported) return Status::OK();
    if (!IsDamage(status)) return status;
    std::string path;
    for (const auto& file : dataset_->fragment(index).files()) {
      // The message names the file; with a single one there is no doubt.
      if (path.empty() || status.message().find(file.path()) != std::string::npos) {
        path = DataFilePath(file.path());
      }
    }
    finding->problems.push_back({ProblemKind::kCorrupt, path, status.message()});
    finding->rows_lost = true;
    return Status::OK();
  }

  // Manifests of all versions, and the files that only older ones name.
  Status CheckVersions() {
    GLAIVE_ASSIGN_OR_RETURN(auto refs, ListVersionRefs(store_));
    for (auto ref = refs.rbegin(); ref != refs.rend(); ++ref) {
      if (options_.cancel != nullptr) {
        GLAIVE_RETURN_NOT_OK(options_.cancel->CheckOnCaller());
      }
      const auto version = static_cast<int64_t>(ref->version);
      const std::string path = ManifestPath(ref->version, ref->scheme);
      ++report_.files_checked;
      auto manifest = LoadManifest(store_, *ref);
      if (!manifest.ok()) {
        if (KindOf(manifest.status()) == ErrorKind::kNotFound) continue;  // cleaned up
        if (!IsDamage(manifest.status())) return manifest.status();
        GLAIVE_ASSIGN_OR_RETURN(const bool torn, ManifestIsTorn(store_, *ref));
        report_.problems.push_back(
            {torn ? ProblemKind::kTruncated : ProblemKind::kCorrupt, path,
             manifest.status().message(), version, -1});
        continue;
      }
      if (Status status = known_.Add(*manifest); !status.ok()) {
        report_.problems.push_back(
            {ProblemKind::kCorrupt, path, status.message(), version, -1});
        continue;
      }
      GLAIVE_RETURN_NOT_OK(CheckOldFiles(*manifest, version));
    }
    return Status::OK();
  }

  // Leaves those files in the message that were in no other one yet.
  void NoteFiles(DataFragment* fragment) {
    auto* files = fragment->mutable_files();
    for (int i = files->size() - 1; i >= 0; --i) {
      const bool fresh = checked_.insert(DataFilePath(files->Get(i).path())).second;
      if (!fresh) files->DeleteSubrange(i, 1);
    }
    if (fragment->has_deletion_file() &&
        !checked_.insert(DeletionFilePath(fragment->id(), fragment->deletion_file()))
             .second) {
      fragment->clear_deletion_file();
    }
  }

  // Files that no newer version names: whether they are there, their sizes and footers.
  Status CheckOldFiles(const ManifestFile& manifest, int64_t version) {
    std::vector<DataFragment> fragments;
    for (const FragmentSummary& summary : manifest.fragments) {
      DataFragment fragment;
      const std::string_view message =
          manifest.bytes.view.substr(summary.offset, summary.length);
      // Versions share most of their fragments.
      if (!messages_.insert(std::string(message)).second) continue;
      if (!fragment.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
        return Corruption("fragment ", summary.id, " does not decode");
      }
      NoteFiles(&fragment);
      if (fragment.files_size() == 0 && !fragment.has_deletion_file()) continue;
      fragments.push_back(std::move(fragment));
    }
    std::vector<FragmentFinding> findings(fragments.size());
    GLAIVE_RETURN_NOT_OK(env_.runtime->ParallelFor(
        static_cast<int64_t>(fragments.size()),
        [&](int64_t i) {
          const DataFragment& fragment = fragments[static_cast<size_t>(i)];
          return CheckFiles(fragment, static_cast<int64_t>(fragment.physical_rows()),
                            &findings[static_cast<size_t>(i)]);
        },
        options_.cancel));
    for (FragmentFinding& finding : findings) {
      report_.files_checked += finding.files;
      for (VerifyProblem& problem : finding.problems) {
        if (!reported_.insert(problem.path).second) continue;
        problem.version = version;
        report_.problems.push_back(std::move(problem));
      }
    }
    return Status::OK();
  }

  void AddForeign() {
    for (const auto& [path, size] : sizes_) {
      const std::string_view full(path);
      bool known = false;
      if (full.starts_with("data/")) {
        known = known_.HasData(full.substr(sizeof(kDataDir)));
      } else if (full.starts_with("_deletions/")) {
        known = known_.deletions.count(path) > 0;
      } else if (full.starts_with("_transactions/")) {
        known = known_.transactions.count(path.substr(sizeof(kTransactionsDir))) > 0;
      } else {
        const std::string_view below = full.substr(kIndicesDir.size() + 1);
        known = known_.indices.count(std::string(below.substr(0, below.find('/')))) > 0;
      }
      if (known || IsInFlight(store_, path)) continue;
      report_.problems.push_back(
          {ProblemKind::kForeign, path,
           "no version names it, it has " + std::to_string(size) + " bytes", 0, -1});
    }
  }

  Status Repair() {
    lance::table::Transaction transaction;
    transaction.set_read_version(static_cast<uint64_t>(dataset_->version()));
    auto* drop = transaction.mutable_delete_();
    drop->set_predicate("repair: rows of files that are lost");
    for (const LostRows& lost : report_.lost) {
      drop->add_deleted_fragment_ids(static_cast<uint64_t>(lost.fragment_id));
    }
    for (const LostRows& back : report_.undeleted) {
      DataFragment* fragment = drop->add_updated_fragments();
      *fragment = dataset_->fragment(dataset_->FindFragment(back.fragment_id));
      fragment->clear_deletion_file();
    }
    GLAIVE_ASSIGN_OR_RETURN(auto repaired, dataset_->Commit(std::move(transaction)));
    report_.repaired_version = repaired->version();
    return Status::OK();
  }

  const TableEnv& env_;
  io::ObjectStore& store_;
  const VerifyOptions& options_;
  Dataset::Ptr dataset_;
  std::map<std::string, int64_t> sizes_;  // of what is there
  std::set<std::string> reported_;
  std::unordered_set<std::string> checked_;   // paths
  std::unordered_set<std::string> messages_;  // of fragments
  FileReferences known_;
  VerifyReport report_;
};

}  // namespace

const char* ProblemKindName(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kMissing:
      return "missing";
    case ProblemKind::kTruncated:
      return "truncated";
    case ProblemKind::kCorrupt:
      return "corrupt";
    case ProblemKind::kForeign:
      return "foreign";
  }
  return "";
}

bool VerifyReport::sound() const {
  return std::all_of(problems.begin(), problems.end(), [](const VerifyProblem& problem) {
    return problem.kind == ProblemKind::kForeign;
  });
}

Result<VerifyReport> Verify(const TableEnv& env, const VerifyOptions& options) {
  return Verifier(env, options).Run();
}

}  // namespace glaive::table
