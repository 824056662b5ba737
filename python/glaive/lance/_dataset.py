"""`LanceDataset` and `write_dataset`."""

from __future__ import annotations

import contextlib
import os
import random
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import pyarrow as pa
import pyarrow.dataset

from .. import _glaive
from .._plan import check_sequence, check_unsigned
from .._changes import check_expressions, check_retries, check_where, seconds
from ._branches import BranchMethods, check_reference, resolve
from ..exceptions import CorruptionError, InvalidInputError
from ._data import to_local_time, to_microseconds, to_stream
from ._dataset_parts import LanceSchema, LanceStats, Tags
from ._merge import MergeInsertBuilder
from .mem_wal import MemWalMethods
from ._refuse import not_built, refusal, refuse_arguments
from ._scanner import LanceScanner, ScannerBuilder, apply_option
from ._schema import SchemaChanges
from ._substrait import to_sql as substrait_to_sql
from .fragment import LanceFragment
from .optimize import CleanupMethods

# How long pylance tries to commit unless told otherwise.
_COMMIT_TIMEOUT = timedelta(seconds=1800)

__all__ = ["LanceDataset", "write_dataset"]


def _uri_text(uri) -> str:
    return os.fspath(uri) if isinstance(uri, os.PathLike) else str(uri)


def open_dataset(uri, version=None, asof=None, *, storage_options=None, default_scan_options=None, refused=None):
    """Body of `glaive.lance.dataset`."""
    refuse_arguments("dataset", refused or {})
    if uri is None:
        raise ValueError("Must specify uri of the dataset")
    if version is not None and asof is not None:
        raise ValueError("give version or asof, not both")
    engine = _glaive.Dataset.open(
        _uri_text(uri),
        check_reference(version),
        asof_us=None if asof is None else to_microseconds(asof),
        storage_options=storage_options,
    )
    return LanceDataset._wrap(engine, storage_options, default_scan_options)


@not_built(
    methods=[
        "add_bases", "all_files", "base_paths", "centroids",
        "commit_existing_index_segments", "create_index",
        "create_index_uncommitted", "create_scalar_index", "deep_clone", "delta",
        "drop_index", "get_ivf_model",
        "get_transactions", "index_statistics", "io_stats_incremental", "io_stats_snapshot",
        "latest_storage_options",
        "merge_existing_index_segments", "merge_index_metadata",
        "new_file_session", "prewarm_index", "read_transaction", "remap_row_addrs",
        "replace_schema", "session", "sql",
        "tracked_files", "version_refs",
        # of pyarrow's Dataset
        "filter", "join", "join_asof", "sort_by",
    ],
    properties=["partition_expression", "storage_options_accessor"],
)  # fmt: skip
class LanceDataset(BranchMethods, CleanupMethods, MemWalMethods, SchemaChanges, pa.dataset.Dataset):
    """One version of a Lance dataset. Writes through it move it to the version they commit."""

    def __init__(
        self,
        uri: Union[str, Path],
        version: Optional[Union[int, str]] = None,
        block_size: Optional[int] = None,
        index_cache_size: Optional[int] = None,
        metadata_cache_size: Optional[int] = None,
        commit_lock=None,
        storage_options: Optional[Dict[str, str]] = None,
        serialized_manifest: Optional[bytes] = None,
        default_scan_options: Optional[Dict[str, Any]] = None,
        metadata_cache_size_bytes: Optional[int] = None,
        index_cache_size_bytes: Optional[int] = None,
        read_params: Optional[Dict[str, Any]] = None,
        session=None,
        namespace_client=None,
        table_id: Optional[List[str]] = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params=None,
    ):
        refuse_arguments(
            "LanceDataset",
            {
                "commit_lock": commit_lock,
                "serialized_manifest": serialized_manifest,
                "read_params": read_params,
                "session": session,
                "namespace_client": namespace_client,
                "table_id": table_id,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
            },
        )
        self._ds = _glaive.Dataset.open(_uri_text(uri), check_reference(version), storage_options=storage_options)
        self._storage_options = storage_options
        self._default_scan_options = default_scan_options

    @classmethod
    def _wrap(cls, engine, storage_options=None, default_scan_options=None) -> LanceDataset:
        self = cls.__new__(cls)
        self._ds = engine
        self._storage_options = storage_options
        self._default_scan_options = default_scan_options
        return self

    def __reduce__(self):
        return _reopen, (self.uri, self.version, self._storage_options, self._default_scan_options)

    def __copy__(self):
        return self._wrap(self._ds, self._storage_options, self._default_scan_options)

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self):
        return f"LanceDataset(uri={self.uri!r}, version={self.version})"

    # Facts.

    @property
    def uri(self) -> str:
        return self._ds.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns; with default options of scans, those that a scan shows."""
        if self._default_scan_options:
            return self.scanner().projected_schema
        return self._ds.schema

    @property
    def lance_schema(self) -> LanceSchema:
        return LanceSchema(self._ds.fields, self._ds.schema)

    @property
    def schema_metadata(self) -> Dict[str, str]:
        return {k.decode(): v.decode() for k, v in (self._ds.schema.metadata or {}).items()}

    @property
    def data_storage_version(self) -> str:
        return self._ds.data_storage_version

    @property
    def has_stable_row_ids(self) -> bool:
        return self._ds.has_stable_row_ids

    @property
    def max_field_id(self) -> int:
        return self._ds.max_field_id

    @property
    def metadata(self) -> Dict[str, str]:
        return self._ds.table_metadata

    def config(self) -> Dict[str, str]:
        return self._ds.config

    @property
    def initial_storage_options(self) -> Optional[Dict[str, str]]:
        return self._storage_options

    @property
    def stats(self) -> LanceStats:
        return LanceStats(self)

    @property
    def has_index(self) -> bool:
        """Whether the version has an index, of whatever kind."""
        return self._ds.stats()["num_indices"] > 0

    def list_indices(self) -> List[dict]:
        """Empty for a version without indices. NotImplementedError for one that has some, which other programs can make."""
        return self._no_indices("list_indices")

    def describe_indices(self) -> List[Any]:
        """As `list_indices`."""
        return self._no_indices("describe_indices")

    def _no_indices(self, method: str) -> list:
        if self.has_index or self.mem_wal_index_details() is not None:
            raise refusal(f"LanceDataset.{method} of a dataset that has indices")
        return []

    def _blob_columns(self) -> List[str]:
        from .blob import is_blob_metadata

        return [f["name"] for f in self._ds.fields if is_blob_metadata(f["metadata"])]

    # Versions.

    @property
    def version(self) -> int:
        return self._ds.version

    @property
    def latest_version(self) -> int:
        return self._ds.latest_version()

    def versions(self) -> List[dict]:
        """Oldest first: `version`, `timestamp` (local time, without zone), `metadata`."""
        return [
            {"version": v["version"], "timestamp": to_local_time(v["timestamp_us"]), "metadata": v["metadata"]}
            for v in self._ds.list_versions()
        ]

    def get_version(self) -> dict:
        """The entry of `versions` for this version."""
        return next(v for v in self.versions() if v["version"] == self.version)

    def checkout_version(self, version: Union[int, str, Tuple[Optional[str], Optional[int]]]) -> LanceDataset:
        """Another version, by number, tag, or (branch, number). ValueError for none."""
        if version is None:
            raise InvalidInputError("Version must be an int, a str or a (int, str) tuple.")
        return self._wrap(resolve(self._ds, version), self._storage_options, self._default_scan_options)

    def checkout_latest(self) -> None:
        self._ds = self._ds.latest()

    def restore(self) -> None:
        """Makes this version's content the newest version."""
        self._ds = self._ds.restore()

    @property
    def tags(self) -> Tags:
        return Tags(self)

    # Reads.

    def scanner(
        self,
        columns: Optional[Union[List[str], Dict[str, str]]] = None,
        filter=None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        nearest: Optional[Dict[str, Any]] = None,
        batch_size: Optional[int] = None,
        batch_size_bytes: Optional[int] = None,
        batch_readahead: Optional[int] = None,
        fragment_readahead: Optional[int] = None,
        scan_in_order: Optional[bool] = None,
        fragments: Optional[Iterable[LanceFragment]] = None,
        index_segments=None,
        full_text_query=None,
        *,
        prefilter: Optional[bool] = None,
        with_row_id: Optional[bool] = None,
        with_row_address: Optional[bool] = None,
        use_stats: Optional[bool] = None,
        fast_search: Optional[bool] = None,
        io_buffer_size: Optional[int] = None,
        late_materialization: Optional[Union[bool, List[str]]] = None,
        blob_handling: Optional[str] = None,
        use_scalar_index: Optional[bool] = None,
        include_deleted_rows: Optional[bool] = None,
        scan_stats_callback=None,
        strict_batch_size: Optional[bool] = None,
        order_by=None,
        disable_scoring_autoprojection: Optional[bool] = None,
        row_addr_allowlist: Optional[bytes] = None,
        row_addr_blocklist: Optional[bytes] = None,
    ) -> LanceScanner:
        """A scan.

        Parameters
        ----------
        columns : list of str, or dict of str to str
            Columns to read, or output names with SQL expressions. None: all.
        filter : str or pyarrow expression
            Rows to keep.
        limit, offset : int
            Rows to return, and rows to leave out before.
        nearest : dict
            Vector search: `column`, `q`, `k`, `metric`, ... (see `ScannerBuilder.nearest`).
        prefilter : bool
            For vector search: filter first, then search (False: filter what was found).
        fragments : list of LanceFragment
            Read only these.
        with_row_id, with_row_address : bool
            Add `_rowid`, `_rowaddr`.
        """
        given = dict(locals())
        del given["self"]
        builder = ScannerBuilder(self)
        if self._default_scan_options:
            builder.apply_defaults(self._default_scan_options)
        for name, value in given.items():
            apply_option(builder, name, value)
        return builder.to_scanner()

    def to_table(self, columns=None, filter=None, limit=None, offset=None, nearest=None, batch_size=None,
                 batch_size_bytes=None, batch_readahead=None, fragment_readahead=None, scan_in_order=None, *,
                 prefilter=None, with_row_id=None, with_row_address=None, use_stats=None, fast_search=None,
                 full_text_query=None, io_buffer_size=None, late_materialization=None, blob_handling=None,
                 use_scalar_index=None, include_deleted_rows=None, order_by=None,
                 disable_scoring_autoprojection=None) -> pa.Table:  # fmt: skip
        """The rows as one table; the arguments are those of `scanner`."""
        given = dict(locals())
        del given["self"]
        return self.scanner(**given).to_table()

    def to_batches(self, columns=None, filter=None, limit=None, offset=None, nearest=None, batch_size=None,
                   batch_size_bytes=None, batch_readahead=None, fragment_readahead=None, scan_in_order=None, *,
                   prefilter=None, with_row_id=None, with_row_address=None, use_stats=None, full_text_query=None,
                   io_buffer_size=None, late_materialization=None, blob_handling=None, use_scalar_index=None,
                   strict_batch_size=None, order_by=None, disable_scoring_autoprojection=None,
                   **kwargs) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """The rows as a stream of batches; the arguments are those of `scanner`."""
        given = dict(locals())
        del given["self"], given["kwargs"]
        return self.scanner(**given, **kwargs).to_batches()

    def to_pandas(self, columns=None, filter=None, limit=None, offset=None, nearest=None, batch_size=None,
                  batch_readahead=None, fragment_readahead=None, scan_in_order=None, *, prefilter=None,
                  with_row_id=None, with_row_address=None, use_stats=None, fast_search=None, full_text_query=None,
                  io_buffer_size=None, late_materialization=None, blob_mode="lazy", use_scalar_index=None,
                  include_deleted_rows=None, order_by=None, disable_scoring_autoprojection=None, **kwargs):  # fmt: skip
        """The rows as a pandas frame; `kwargs` go to `pa.Table.to_pandas`."""
        given = dict(locals())
        del given["self"], given["kwargs"], given["blob_mode"]
        return self.scanner(**given).to_pandas(blob_mode=blob_mode, **kwargs)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._ds.scan().__arrow_c_stream__(requested_schema)

    def count_rows(self, filter=None, **kwargs) -> int:
        if filter is None or isinstance(filter, str):
            if not kwargs:
                return self._ds.count_rows(filter)
        return self.scanner(filter=filter, **kwargs).count_rows()

    def take(self, indices, columns: Optional[Union[List[str], Dict[str, str]]] = None) -> pa.Table:
        """Rows by position, in the order asked for, repeats included.

        A name with dots cuts a struct down to this member; a dict gives columns of their own.
        """
        return self._ds.take_offsets(_offsets(indices), columns, nested=True)

    def _take_rows(self, row_ids, columns=None, *, ignore_deletions: bool = False, **kwargs) -> pa.Table:
        """Rows by row id, in the order asked for."""
        refuse_arguments("_take_rows", {"ignore_deletions": ignore_deletions, **kwargs})
        return self._ds.take_row_ids(row_ids, columns, nested=True)

    def head(self, num_rows: int, **kwargs) -> pa.Table:
        return self.scanner(limit=num_rows, **kwargs).to_table()

    def slice(self, start: int, end: int, columns=None) -> pa.Table:
        """Rows `start` to `end`, the last excluded."""
        if start < 0 or end < start:
            raise ValueError(f"slice needs 0 <= start <= end, got {start} and {end}")
        return self.to_table(columns=columns, limit=end - start, offset=start)

    def sample(self, num_rows: int, columns=None, randomize_order: bool = True, **kwargs) -> pa.Table:
        """`num_rows` rows chosen at random, each at most once. ValueError when there are fewer."""
        rows = random.sample(range(self.count_rows()), num_rows)
        if not randomize_order:
            rows.sort()
        refuse_arguments("sample", kwargs)
        return self.take(rows, columns)

    # Fragments.

    def get_fragments(self, filter=None) -> List[LanceFragment]:
        refuse_arguments("get_fragments", {"filter": filter})
        return [LanceFragment(self, i) for i in self._ds.fragment_ids()]

    def get_fragment(self, fragment_id: int) -> Optional[LanceFragment]:
        fragment_id = check_unsigned("fragment_id", fragment_id)
        return LanceFragment(self, fragment_id) if self._ds.fragment(fragment_id) is not None else None

    @property
    def fragments(self) -> List[LanceFragment]:
        return self.get_fragments()

    def fragment_ids(self) -> List[int]:
        return self._ds.fragment_ids()

    # Writes.

    def insert(self, data, *, mode: str = "append", **kwargs) -> None:
        """Writes `data` to this dataset; `kwargs` as for `write_dataset`."""
        self._ds = write_dataset(data, self, mode=mode, **kwargs)._ds

    def delete(self, predicate, *, conflict_retries: int = 10, retry_timeout: timedelta = timedelta(seconds=30)) -> dict:
        """Deletes the rows for which the SQL predicate is true; `{"num_deleted_rows": n}`."""
        self._ds, deleted = self._ds.delete(
            self._predicate(predicate),
            conflict_retries=check_retries(conflict_retries),
            retry_timeout=seconds(retry_timeout, "retry_timeout"),
        )
        return {"num_deleted_rows": deleted}

    def update(
        self,
        updates: Dict[str, str],
        where=None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = timedelta(seconds=30),
        data_storage_version: Optional[str] = None,
    ) -> dict:
        """Gives columns new values in the rows for which `where` (SQL or a pyarrow expression) is true; `{"num_rows_updated": n}`.

        `updates`: column -> SQL expression over the row as it was.
        """
        self._ds, updated = self._ds.update(
            None if where is None else self._predicate(where),
            check_expressions(updates),
            conflict_retries=check_retries(conflict_retries),
            retry_timeout=seconds(retry_timeout, "retry_timeout"),
            data_storage_version=data_storage_version,
        )
        return {"num_rows_updated": updated}

    def merge_insert(self, on: Optional[Union[str, Iterable[str]]] = None) -> MergeInsertBuilder:
        """Starts a merge of new rows by key; `execute` of the result runs it. `on`: key columns; None: the unenforced primary key."""
        return MergeInsertBuilder(self, on)

    def _predicate(self, predicate) -> str:
        """SQL text; the rows that a pyarrow expression finds are named by their ids."""
        if isinstance(predicate, pa.compute.Expression):
            predicate = substrait_to_sql(predicate, self.schema) or predicate
        if not isinstance(predicate, pa.compute.Expression):
            return check_where(predicate)
        hits = self.scanner(filter=predicate, columns=["_rowid"]).to_table()["_rowid"].to_pylist()
        return f"_rowid IN ({', '.join(map(str, hits))})" if hits else "false"

    def truncate_table(self) -> None:
        """Deletes all rows."""
        self._ds, _ = self._ds.delete("true")

    @staticmethod
    def drop(base_uri: Union[str, Path], storage_options=None, ignore_not_found: Optional[bool] = None) -> None:
        """Removes a dataset and everything in its directory."""
        _glaive.Dataset.drop(_uri_text(base_uri), ignore_not_found=bool(ignore_not_found))

    @staticmethod
    def commit(
        base_uri: Union[str, Path, LanceDataset],
        operation,
        read_version: Optional[int] = None,
        commit_lock=None,
        storage_options: Optional[Dict[str, str]] = None,
        enable_v2_manifest_paths: Optional[bool] = None,
        detached: Optional[bool] = False,
        max_retries: int = 20,
        *,
        commit_message: Optional[str] = None,
        enable_stable_row_ids: Optional[bool] = None,
        namespace_client=None,
        table_id: Optional[List[str]] = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params=None,
        commit_timeout: Optional[timedelta] = _COMMIT_TIMEOUT,
    ) -> LanceDataset:
        """Makes a new version by an operation whose data files are there already (see `fragment.write_fragments`).

        Parameters
        ----------
        base_uri : str, Path or LanceDataset
            The dataset; an `Overwrite` may make a new one.
        operation : LanceOperation.BaseOperation or Transaction
            What changes.
        read_version : int, optional
            The version that the operation was made on; needed but for Overwrite and Restore. What others committed since is
            kept, or the call raises CommitConflictError.
        max_retries : int
            How often to try again when another commit was first.
        commit_lock : function, optional
            From the version that is to be made to a context that is entered around the commit.
        commit_timeout : timedelta, optional
            How long the commit may take, tries again included; TimeoutError then.

        Raises ValueError for operations that do not fit the dataset, and NotImplementedError for those that are not built:
        CreateIndex, Clone and what changes indices.
        """
        from . import _commits
        from ._operations import LanceOperation, Transaction

        dest = _commits.destination(base_uri, LanceDataset)
        _commits.check_lock(commit_lock)
        if (namespace_client is None) != (table_id is None):
            raise ValueError("Both 'namespace_client' and 'table_id' must be provided together.")
        refuse_arguments(
            "LanceDataset.commit",
            {
                "detached": detached,
                "namespace_client": namespace_client,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
            },
        )
        if isinstance(operation, Transaction):
            if commit_message is not None:
                raise ValueError("commit_message goes with an operation; a Transaction has it among its transaction_properties")
            transaction = operation
        elif isinstance(operation, LanceOperation.BaseOperation):
            free = (LanceOperation.Overwrite, LanceOperation.Restore)
            if read_version is None and not isinstance(operation, free):
                raise ValueError("read_version is required for all operations except Overwrite and Restore")
            transaction = Transaction(read_version or 0, operation)
            if commit_message is not None:
                transaction.transaction_properties["__lance_commit_message"] = commit_message
        else:
            raise TypeError(f"operation must be a LanceOperation.BaseOperation or Transaction, got {type(operation)}")
        engine = _commits.commit(
            dest,
            transaction,
            commit_lock=commit_lock,
            max_retries=max_retries,
            commit_timeout=commit_timeout,
            stable_row_ids=bool(enable_stable_row_ids),
            v2_manifest_paths=enable_v2_manifest_paths,
        )
        return LanceDataset._wrap(engine, storage_options)

    @staticmethod
    def commit_batch(
        dest: Union[str, Path, LanceDataset],
        transactions,
        commit_lock=None,
        storage_options: Optional[Dict[str, str]] = None,
        enable_v2_manifest_paths: Optional[bool] = None,
        detached: Optional[bool] = False,
        max_retries: int = 20,
        base_store_params=None,
        commit_timeout: Optional[timedelta] = _COMMIT_TIMEOUT,
    ):
        """Makes one new version of several appends.

        Parameters
        ----------
        dest : str, Path or LanceDataset
            The dataset, which must exist.
        transactions : list of Transaction
            Appends; NotImplementedError for other operations. Their properties are not kept.
        commit_lock, max_retries, commit_timeout
            As for `commit`.

        Returns a dict: "dataset" is the new version, "merged" the transaction that made it.
        """
        from . import _commits

        target = _commits.destination(dest, LanceDataset)
        _commits.check_lock(commit_lock)
        refuse_arguments("LanceDataset.commit_batch", {"detached": detached, "base_store_params": base_store_params})
        transaction = _commits.merged(transactions)
        engine = _commits.commit(
            target,
            transaction,
            commit_lock=commit_lock,
            max_retries=max_retries,
            commit_timeout=commit_timeout,
            stable_row_ids=False,
            v2_manifest_paths=enable_v2_manifest_paths,
        )
        return {"dataset": LanceDataset._wrap(engine, storage_options), "merged": transaction}

    @classmethod
    def from_pydantic_model(
        cls, model_class, data, uri: Optional[Union[str, Path]] = None, mode: str = "create", **kwargs
    ) -> LanceDataset:
        """Writes objects of a pydantic model.

        Parameters
        ----------
        model_class : type
            The class; its annotations give the schema.
        data : list
            Objects of the class, at least one.
        uri : str or Path, optional
            Where to write; the class's name in snake_case otherwise.
        mode, kwargs
            As for `write_dataset`.
        """
        from ..pydantic import pydantic_to_schema

        if not isinstance(model_class, type) or not hasattr(model_class, "model_fields"):
            raise TypeError(f"`model_class` must be a Pydantic BaseModel subclass, got {model_class!r}")
        data = list(data)
        for item in data:
            if not isinstance(item, model_class):
                raise TypeError(f"`data` must hold objects of {model_class.__name__}, not of {type(item).__name__}")
        if not data:
            raise ValueError("`data` must be a non-empty list of Pydantic model instances.")
        if uri is None:
            uri = re.sub(r"(?<!^)(?=[A-Z])", "_", model_class.__name__).lower()
        rows = [item.model_dump() for item in data]
        return write_dataset(pa.Table.from_pylist(rows, schema=pydantic_to_schema(model_class)), uri, mode=mode, **kwargs)

    def validate(self) -> None:
        """Checks that the files of this version are there and whole; CorruptionError (an OSError) names the first that is not."""
        from ..maintenance import verify

        for problem in verify(self.uri).problems:
            if problem.kind != "foreign" and (problem.version is None or problem.version >= self.version):
                raise CorruptionError(f"{problem.path} is {problem.kind}: {problem.detail}")

    def migrate_manifest_paths_v2(self) -> None:
        """Gives manifests of the old naming scheme new names; nothing happens when there are none. Nobody else may write meanwhile."""
        self._ds.migrate_manifest_names()
        self._ds = self._ds.checkout(self.version)

    # Blobs.

    def take_blobs(self, blob_column: str, ids=None, addresses=None, indices=None, *, buffer_size: int = 512 * 1024):
        """Files over the values of a blob column, by row id, row address or position, in the order asked for."""
        from .blob import take_blobs

        return take_blobs(self, blob_column, ids, addresses, indices, buffer_size)

    def read_blobs(self, blob_column: str, ids=None, addresses=None, indices=None, *, io_buffer_size=None,
                   preserve_order=None) -> List[Tuple[int, Optional[bytes]]]:  # fmt: skip
        """(row address, bytes) per row."""
        from .blob import read_blobs

        return read_blobs(self, blob_column, ids, addresses, indices)

    def read_blob_ranges(self, blob_column: str, requests, *, selector: str, io_buffer_size: Optional[int] = None,
                         preserve_order: Optional[bool] = None) -> List[Tuple[int, int, Optional[bytes]]]:  # fmt: skip
        """(request index, row address, bytes) for each (row, offset, length); None for a row without a blob.

        `selector` says what rows are named by: "ids", "addresses" or "indices". ValueError for a range behind a blob's end.
        """
        from .blob import read_blob_ranges

        return read_blob_ranges(self, blob_column, requests, selector)


def _offsets(indices):
    """What `take` is given, if nothing in it is negative; its types are checked by the engine."""
    check_sequence("indices", indices)
    if isinstance(indices, (list, tuple)):
        for index in indices:
            if isinstance(index, int) and index < 0:
                check_unsigned("a row index", index)
    return indices


def _reopen(uri, version, storage_options, default_scan_options):
    return LanceDataset(uri, version, storage_options=storage_options, default_scan_options=default_scan_options)


def write_dataset(
    data_obj,
    uri: Optional[Union[str, Path, LanceDataset]] = None,
    schema: Optional[pa.Schema] = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = 1024 * 1024,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int = 90 * 1024 * 1024 * 1024,
    data_cache_bytes: Optional[int] = None,
    max_page_bytes: Optional[int] = None,
    commit_lock=None,
    progress=None,
    storage_options: Optional[Dict[str, str]] = None,
    data_storage_version: Optional[str] = None,
    use_legacy_format: Optional[bool] = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options=None,
    commit_message: Optional[str] = None,
    transaction_properties: Optional[Dict[str, str]] = None,
    initial_bases=None,
    target_bases: Optional[List[str]] = None,
    target_all_bases: Optional[bool] = None,
    base_store_params=None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: Optional[int] = None,
    namespace_client=None,
    table_id: Optional[List[str]] = None,
    session=None,
) -> LanceDataset:
    """Writes rows to a dataset.

    Parameters
    ----------
    data_obj
        Arrow tables, batches, readers, datasets; pandas and polars frames; a list of dicts; an iterable of record
        batches together with `schema`.
    uri : str, Path or LanceDataset
        Where to write.
    mode : "create", "append" or "overwrite"
        "create" fails when there is a dataset. "append" and "overwrite" create one when there is none.
    max_rows_per_file, max_bytes_per_file : int
        A new file is begun at these sizes.
    data_storage_version : "stable", "2.0", "2.1" or "2.2"
        Version of the file format of a new dataset. Default 2.2.
    enable_stable_row_ids : bool
        Row ids of a new dataset stay the same through updates and compaction.

    Returns the dataset at the version that was committed. `max_rows_per_group` belongs to an older file format and
    has no effect; arguments that are not built yet raise NotImplementedError.
    """
    from . import _commits

    _commits.check_place(uri, namespace_client, table_id)
    _commits.check_lock(commit_lock)
    if max_rows_per_group is not None:
        check_unsigned("max_rows_per_group", max_rows_per_group)
    refuse_arguments(
        "write_dataset",
        {
            "data_cache_bytes": data_cache_bytes,
            "max_page_bytes": max_page_bytes,
            "progress": progress,
            "use_legacy_format": use_legacy_format,
            "auto_cleanup_options": auto_cleanup_options,
            "initial_bases": initial_bases,
            "target_bases": target_bases,
            "target_all_bases": target_all_bases,
            "base_store_params": base_store_params,
            "allow_external_blob_outside_bases": allow_external_blob_outside_bases,
            "blob_pack_file_size_threshold": blob_pack_file_size_threshold,
            "namespace_client": namespace_client,
            "session": session,
        },
    )
    if external_blob_mode != "reference":
        raise refusal(f"external_blob_mode={external_blob_mode!r}")
    properties = dict(transaction_properties or {})
    if commit_message is not None:
        properties["__lance_commit_message"] = commit_message
    target = uri._ds if isinstance(uri, LanceDataset) else _uri_text(uri)
    stream = to_stream(data_obj, schema)
    lock = contextlib.nullcontext() if commit_lock is None else _commits.locked(commit_lock, _commits.latest_version(target))
    with lock:
        engine = _glaive.Dataset.write(
            stream,
            target,
            mode=mode,
            max_rows_per_file=None if max_rows_per_file is None else check_unsigned("max_rows_per_file", max_rows_per_file),
            max_bytes_per_file=None if max_bytes_per_file is None else check_unsigned("max_bytes_per_file", max_bytes_per_file),
            data_storage_version=data_storage_version,
            enable_stable_row_ids=enable_stable_row_ids,
            enable_v2_manifest_paths=enable_v2_manifest_paths,
            transaction_properties=properties or None,
            storage_options=storage_options,
        )
    return LanceDataset._wrap(engine, storage_options)
