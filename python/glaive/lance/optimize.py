"""Compaction: folds small fragments into larger ones, at once or in steps that may run in several processes.

    plan = Compaction.plan(ds, {"target_rows_per_fragment": 1_000_000})
    done = [task.execute(ds) for task in plan.tasks]  # anywhere: tasks and results can be pickled
    Compaction.commit(ds, done)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict

from .. import _glaive
from .fragment import FragmentMetadata

if TYPE_CHECKING:
    from ._dataset import LanceDataset

__all__ = ["Compaction", "CompactionMetrics", "CompactionOptions", "CompactionPlan", "CompactionTask", "RewriteResult"]


class CompactionOptions(TypedDict, total=False):
    """Options of a compaction; absent or None: the dataset's setting `lance.compaction.NAME`, else the default."""

    target_rows_per_fragment: Optional[int]
    """Fragments below this are folded, into fragments of at least this size. Default 1,048,576."""
    max_rows_per_group: Optional[int]
    """Without effect: of the legacy file format."""
    max_bytes_per_file: Optional[int]
    """A data file ends at this size."""
    materialize_deletions: Optional[bool]
    """Rewrite fragments with many deleted rows. Default True."""
    materialize_deletions_threshold: Optional[float]
    """Share of deleted rows that is too many. Default 0.1."""
    num_threads: Optional[int]
    """1: tasks run one after the other; otherwise on all threads of the engine."""
    batch_size: Optional[int]
    """Most rows read at a time."""
    io_buffer_size: Optional[int]
    """Without effect: reads are bounded by themselves."""
    compaction_mode: Optional[Literal["reencode", "try_binary_copy", "force_binary_copy"]]
    """"force_binary_copy" raises NotImplementedError."""
    binary_copy_read_batch_bytes: Optional[int]
    """Without effect, as nothing is copied without decoding."""
    defer_index_remap: Optional[bool]
    """Raises NotImplementedError on datasets with indices, and has no effect on others."""
    max_source_fragments: Optional[int]
    """Stop before a task would bring the fragments read above this number."""
    max_source_rows: Optional[int]
    """Stop before a task would bring the live rows read above this number."""
    max_source_bytes: Optional[int]
    """Stop before a task would bring the bytes of files read above this number."""
    excluded_fragment_ids: Optional[List[int]]
    """Fragments that stay as they are; nothing is folded across them."""
    data_storage_version: Optional[str]
    """Of the new files. Default: the dataset's."""


@dataclass
class CompactionMetrics:
    """What a compaction replaced by what. Files are data and deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


def _options_text(options: Optional[Dict[str, Any]]) -> str:
    given = {name: value for name, value in (options or {}).items() if value is not None}
    for name, value in given.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            raise OverflowError(f"compaction option {name}: can't convert negative int to unsigned")
    return json.dumps(given)


def _fragments(values: List[dict]) -> List[FragmentMetadata]:
    return [FragmentMetadata.from_json(json.dumps(value)) for value in values]


class _Json:
    """Equality and pickling by the JSON of a native object."""

    def __init__(self, native):
        self._native = native

    @classmethod
    def from_json(cls, json: str):
        """The inverse of `json`. ValueError when the text is something else."""
        return cls(getattr(_glaive, cls.__name__).from_json(json))

    def json(self) -> str:
        """As text, which `from_json` reads."""
        return self._native.json()

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and self.json() == other.json()

    def __hash__(self) -> int:
        return hash(self.json())

    def __reduce__(self):
        return type(self).from_json, (self.json(),)

    @property
    def read_version(self) -> int:
        """The version that the fragments are of."""
        return json.loads(self.json())["read_version"]


class CompactionTask(_Json):
    """Neighbouring fragments to be rewritten together."""

    @property
    def fragments(self) -> List[FragmentMetadata]:
        """What is to be rewritten."""
        return _fragments(json.loads(self.json())["task"]["fragments"])

    def execute(self, dataset: LanceDataset) -> RewriteResult:
        """Writes the new files. No version names them before `Compaction.commit`."""
        return RewriteResult(self._native.execute(dataset._ds))

    def __repr__(self):
        return f"CompactionTask(read_version={self.read_version}, fragments={self.fragments!r})"


class RewriteResult(_Json):
    """What a task wrote."""

    @property
    def metrics(self) -> CompactionMetrics:
        """Of this task."""
        return CompactionMetrics(**json.loads(self.json())["metrics"])

    @property
    def original_fragments(self) -> List[FragmentMetadata]:
        """The fragments that go."""
        return _fragments(json.loads(self.json())["original_fragments"])

    @property
    def new_fragments(self) -> List[FragmentMetadata]:
        """The fragments that come; the commit gives them ids."""
        return _fragments(json.loads(self.json())["new_fragments"])

    def __repr__(self):
        return (
            f"RewriteResult(read_version={self.read_version}, new_fragments={self.new_fragments!r}, "
            f"old_fragments={self.original_fragments!r})"
        )


class CompactionPlan(_Json):
    """Tasks that may run in any order and place."""

    @property
    def tasks(self) -> List[CompactionTask]:
        """In the order of the fragments."""
        return [CompactionTask(task) for task in self._native.tasks]

    def num_tasks(self) -> int:
        """How many tasks there are."""
        return len(self._native.tasks)

    def __repr__(self):
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{self.num_tasks()} compaction tasks>)"


class Compaction:
    """Folds small fragments into larger ones."""

    @staticmethod
    def execute(dataset: LanceDataset, options: CompactionOptions) -> CompactionMetrics:
        """Plans, rewrites and commits; the dataset moves to the new version.

        What concurrent changes of rows make useless is done again. ValueError on an unknown option.
        """
        return _compact(dataset, options, None)

    @staticmethod
    def plan(dataset: LanceDataset, options: CompactionOptions) -> CompactionPlan:
        """The tasks for this version. Fragments that an index covers stay as they are."""
        return CompactionPlan(_glaive.plan_compaction(dataset._ds, _options_text(options)))

    @staticmethod
    def commit(
        dataset: LanceDataset, rewrites: List[RewriteResult], options: Optional[CompactionOptions] = None
    ) -> CompactionMetrics:
        """Commits any number of results as one version; the dataset moves there.

        OSError when rows of a rewritten fragment were changed since: plan again. The files are then left to `cleanup_old_versions`.
        """
        _options_text(options)
        metrics, dataset._ds = _glaive.commit_compaction(dataset._ds, [rewrite._native for rewrite in rewrites])
        return CompactionMetrics(*metrics)


def _compact(dataset, options, progress) -> CompactionMetrics:
    from .._progress import report

    callback = report(progress, None, lambda rows: 0)
    metrics, dataset._ds = _glaive.compact(dataset._ds, _options_text(options), callback)
    if callback is not None:
        callback.finish()
    return CompactionMetrics(*metrics)


class DatasetOptimizer:
    """Upkeep of a dataset: `ds.optimize`."""

    def __init__(self, dataset: LanceDataset):
        self._dataset = dataset

    def compact_files(
        self,
        *,
        target_rows_per_fragment: Optional[int] = None,
        max_rows_per_group: Optional[int] = None,
        max_bytes_per_file: Optional[int] = None,
        materialize_deletions: Optional[bool] = None,
        materialize_deletions_threshold: Optional[float] = None,
        defer_index_remap: Optional[bool] = None,
        num_threads: Optional[int] = None,
        batch_size: Optional[int] = None,
        compaction_mode: Optional[Literal["reencode", "try_binary_copy", "force_binary_copy"]] = None,
        binary_copy_read_batch_bytes: Optional[int] = None,
        max_source_fragments: Optional[int] = None,
        max_source_rows: Optional[int] = None,
        max_source_bytes: Optional[int] = None,
        excluded_fragment_ids: Optional[List[int]] = None,
        data_storage_version: Optional[str] = None,
        progress: Any = None,
    ) -> CompactionMetrics:
        """Folds small fragments, and takes deleted rows and dropped columns out of the files.

        Rows keep their order within a fold; folded fragments come after those that stay. See `CompactionOptions` for the
        arguments. `progress`: True for a bar, a callable that gets a dict, or an object like a tqdm bar.
        """
        options = {
            name: value for name, value in locals().items() if name not in ("self", "progress") and value is not None
        }
        return _compact(self._dataset, options, progress)

    def optimize_indices(self, **kwargs) -> None:
        """Not supported yet: raises NotImplementedError."""
        from ._refuse import refusal

        raise refusal("DatasetOptimizer.optimize_indices")

    def enable_auto_cleanup(self, auto_cleanup_config: Dict[str, int], **kwargs):
        """Lets each `interval`-th commit remove versions older than `older_than_seconds`."""
        self._dataset.update_config(
            {
                "lance.auto_cleanup.interval": str(auto_cleanup_config["interval"]),
                "lance.auto_cleanup.older_than": f"{auto_cleanup_config['older_than_seconds']}s",
            }
        )

    def disable_auto_cleanup(self, **kwargs):
        """Takes the settings of `enable_auto_cleanup` back."""
        self._dataset.delete_config_keys(["lance.auto_cleanup.interval", "lance.auto_cleanup.older_than"])


# --- old versions -------------------------------------------------------------------------------------------


@dataclass
class CleanupStats:
    """What a clean-up removed. `bytes_removed` counts manifests as well."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0

    def __repr__(self):
        return f"CleanupStats {{ {', '.join(f'{name}: {value}' for name, value in self.__dict__.items())} }}"


@dataclass
class CleanupCandidateFile:
    """A file that a clean-up would remove. `unverified`: no version ever named it, as far as can be told."""

    path: str
    kind: str
    unverified: bool
    size_bytes: int


@dataclass
class CleanupReferencedBranch:
    """A branch that was made from one of the versions."""

    name: str
    referenced_version: int
    cleanup_candidate: bool


@dataclass
class CleanupExplanation:
    """What a clean-up would do."""

    read_version: int
    stats: CleanupStats
    candidate_files: List[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: List[CleanupReferencedBranch]
    warnings: List[str]


def _clean_up(dataset, older_than: Optional[timedelta], retain_versions, versions, **kwargs) -> dict:
    if older_than is None and retain_versions is None and versions is None:
        older_than = timedelta(days=14)
    # No age is a policy too: of the versions that others let go, all go.
    micros = None if older_than is None else max(0, older_than // timedelta(microseconds=1))
    return _glaive.clean_up(
        dataset._ds,
        older_than_us=micros or None,
        retain_versions=retain_versions,
        versions=None if versions is None else list(versions),
        **kwargs,
    )


class CleanupMethods:
    """Methods of `LanceDataset`."""

    @property
    def optimize(self) -> DatasetOptimizer:
        """Upkeep: `ds.optimize.compact_files()`."""
        return DatasetOptimizer(self)

    def cleanup_old_versions(
        self,
        older_than: Optional[timedelta] = None,
        retain_versions: Optional[int] = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: Optional[int] = None,
        versions: Optional[List[int]] = None,
        delete_concurrency: Optional[int] = None,
    ) -> CleanupStats:
        """Removes old versions, and the files that no version needs any more.

        A version goes when all policies that are given allow it. Never removed: this version and newer ones, tagged versions,
        versions that branches were made from, and what these and the branches need.

        Args:
            older_than: the age from which on versions may go. Without any policy: two weeks.
            retain_versions: so many newest versions stay.
            delete_unverified: remove files that no version ever named even if they are younger than 7 days. Only safe when no
                other process writes.
            error_if_tagged_old_versions: raise OSError, and remove nothing, when tagged versions are old enough to go.
            delete_rate_limit: most files removed per second.
            versions: only these may go.
            delete_concurrency: accepted for compatibility, must be positive.
        """
        if delete_concurrency is not None and not 1 <= delete_concurrency < 2**61:
            raise OSError(
                f"Invalid user input: delete_concurrency must be between 1 and {2**61 - 1}, got {delete_concurrency}"
            )
        found = _clean_up(
            self,
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
            delete_rate_limit=delete_rate_limit,
        )
        return CleanupStats(**found["stats"])

    def explain_cleanup_old_versions(
        self,
        older_than: Optional[timedelta] = None,
        retain_versions: Optional[int] = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: Optional[int] = None,
        versions: Optional[List[int]] = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """What `cleanup_old_versions` would remove; with `include_files` up to `max_files` files by name."""
        if max_files <= 0:
            raise ValueError("max_files must be positive")
        found = _clean_up(
            self,
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged=error_if_tagged_old_versions,
            dry_run=True,
            max_files=max_files if include_files else 0,
        )
        truncated = include_files and found["files_truncated"]
        warnings = list(found["warnings"])
        if truncated:
            warnings.append(f"candidate_files truncated to {max_files} entries")
        return CleanupExplanation(
            read_version=found["read_version"],
            stats=CleanupStats(**found["stats"]),
            candidate_files=[CleanupCandidateFile(*file) for file in found["files"]],
            candidate_files_truncated=truncated,
            candidate_file_limit=max_files,
            referenced_branches=[CleanupReferencedBranch(*branch) for branch in found["branches"]],
            warnings=warnings,
        )
