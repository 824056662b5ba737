"""`LanceDataset`, its scanner, and `write_dataset`."""

from __future__ import annotations

import contextlib
import copy
import os
import random
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import pyarrow as pa
import pyarrow.dataset

from .. import _glaive
from .._plan import check_int64, check_sequence, check_unsigned
from .._changes import check_expressions, check_retries, check_where, seconds
from . import _blob_frames
from ._branches import BranchMethods, check_reference, resolve
from .._sql import as_sql
from ..exceptions import CorruptionError, EvaluationError, InvalidInputError, ScanEvaluationError
from ._data import to_local_time, to_microseconds, to_queries, to_stream
from ._merge import MergeInsertBuilder
from .mem_wal import MemWalMethods
from ._refuse import not_built, refusal, refuse_arguments
from ._schema import SchemaChanges
from ._substrait import to_sql as substrait_to_sql
from .fragment import LanceFragment
from .optimize import CleanupMethods

# How long pylance tries to commit unless told otherwise.
_COMMIT_TIMEOUT = timedelta(seconds=1800)

__all__ = ["LanceDataset", "LanceScanner", "ScannerBuilder", "Tags", "write_dataset"]


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


# --- scanning -------------------------------------------------------------------------------------------


@dataclass
class _Nearest:
    """A vector search, checked as far as that needs no data."""

    column: str
    q: Any
    k: Optional[int] = None
    metric: Optional[str] = None
    nprobes: Optional[int] = None
    minimum_nprobes: Optional[int] = None
    maximum_nprobes: Optional[int] = None
    refine_factor: Optional[int] = None
    use_index: bool = True
    ef: Optional[int] = None
    query_parallelism: Optional[int] = None
    approx_mode: str = "normal"
    distance_range: Optional[Tuple[Optional[float], Optional[float]]] = None
    search_effort: Optional[float] = None

    def __post_init__(self):
        if self.k is not None and check_int64("k", self.k) <= 0:
            raise ValueError(f"Nearest-K must be > 0 but got {self.k}")
        # These tune an index; the search is exact without one, so they only have to make sense.
        for name in ("nprobes", "minimum_nprobes", "maximum_nprobes", "refine_factor"):
            value = getattr(self, name)
            if value is not None and int(value) < 1:
                raise ValueError(f"{name} must be >= 1 but got {value}")
        if self.minimum_nprobes and self.maximum_nprobes and self.minimum_nprobes > self.maximum_nprobes:
            raise ValueError("minimum_nprobes must be <= maximum_nprobes")
        if self.approx_mode not in ("fast", "normal", "accurate"):
            raise ValueError(f"approx_mode must be fast, normal or accurate, not {self.approx_mode!r}")


class ScannerBuilder:
    """Collects the options of a scan; `to_scanner` makes it."""

    def __init__(self, ds: LanceDataset):
        self.ds = ds
        self._columns = None
        self._filter = None
        self._expression = None
        self._limit = None
        self._offset = None
        self._nearest = None
        self._batch_size = None
        self._batch_size_bytes = None
        self._in_order = True
        self._fragments = None
        self._prefilter = False
        self._with_row_id = False
        self._with_row_address = False
        self._score_autoprojection = True
        self._blob_bytes = False

    def apply_defaults(self, default_opts: Dict[str, Any]) -> ScannerBuilder:
        """Options by the names of the arguments of `LanceDataset.scanner`."""
        for name, value in default_opts.items():
            _apply(self, name, value)
        return self

    def columns(self, cols: Optional[Union[List[str], Dict[str, str]]] = None) -> ScannerBuilder:
        if cols is not None and not isinstance(cols, dict):
            if isinstance(cols, str) or not all(isinstance(c, str) for c in cols):
                raise TypeError("columns must be a list of names or a dict of name -> expression")
            cols = list(cols)
        self._columns = cols
        return self

    def filter(self, filter) -> ScannerBuilder:
        """SQL text, an `Expr`, or a pyarrow expression (those that SQL cannot say are evaluated by pyarrow, after the scan)."""
        filter = as_sql(filter)
        if isinstance(filter, pa.compute.Expression):
            text = substrait_to_sql(filter, self.ds.schema)
            self._filter, self._expression = text, filter if text is None else None
        elif filter is None or isinstance(filter, str):
            self._filter, self._expression = filter, None
        else:
            raise refusal(f"a filter of type {type(filter).__name__}")
        return self

    def limit(self, n: Optional[int] = None) -> ScannerBuilder:
        if n is not None and check_int64("limit", n) < 0:
            raise ValueError("Limit must be non-negative")
        self._limit = n
        return self

    def offset(self, n: Optional[int] = None) -> ScannerBuilder:
        if n is not None and check_int64("offset", n) < 0:
            raise ValueError("Offset must be non-negative")
        self._offset = n
        return self

    def nearest(
        self,
        column: str,
        q,
        k: Optional[int] = None,
        metric: Optional[str] = None,
        nprobes: Optional[int] = None,
        minimum_nprobes: Optional[int] = None,
        maximum_nprobes: Optional[int] = None,
        refine_factor: Optional[int] = None,
        use_index: bool = True,
        ef: Optional[int] = None,
        query_parallelism: Optional[int] = None,
        approx_mode: str = "normal",
        distance_range: Optional[Tuple[Optional[float], Optional[float]]] = None,
        search_effort: Optional[float] = None,
    ) -> ScannerBuilder:
        """The `k` (10) rows whose vectors are nearest to `q`; exact, so what tunes an index has no effect."""
        self._nearest = _Nearest(
            column, q, k, metric, nprobes, minimum_nprobes, maximum_nprobes, refine_factor, use_index, ef,
            query_parallelism, approx_mode, distance_range, search_effort,
        )  # fmt: skip
        return self

    def batch_size(self, batch_size: int) -> ScannerBuilder:
        self._batch_size = None if batch_size is None else check_unsigned("batch_size", batch_size)
        if self._batch_size is not None and not 0 < self._batch_size < 2**32:
            raise InvalidInputError(f"batch_size must be positive and less than 2^32, not {batch_size}")
        return self

    def batch_size_bytes(self, batch_size_bytes: int) -> ScannerBuilder:
        # 0 is no limit, as in pylance.
        self._batch_size_bytes = (check_unsigned("batch_size_bytes", batch_size_bytes) or None) if batch_size_bytes is not None else None
        return self

    def scan_in_order(self, scan_in_order: bool = True) -> ScannerBuilder:
        self._in_order = scan_in_order
        return self

    def with_fragments(self, fragments: Optional[Iterable[LanceFragment]]) -> ScannerBuilder:
        if fragments is not None:
            fragments = list(fragments)
            if not all(isinstance(f, LanceFragment) for f in fragments):
                raise TypeError("fragments must be an iterable of LanceFragment")
        self._fragments = fragments
        return self

    def prefilter(self, prefilter: bool) -> ScannerBuilder:
        self._prefilter = prefilter
        return self

    def with_row_id(self, with_row_id: bool = True) -> ScannerBuilder:
        self._with_row_id = with_row_id
        return self

    def with_row_address(self, with_row_address: bool = True) -> ScannerBuilder:
        self._with_row_address = with_row_address
        return self

    def disable_scoring_autoprojection(self, disable: bool = True) -> ScannerBuilder:
        """Leaves `_distance` out unless `columns` names it."""
        self._score_autoprojection = not disable
        return self

    # Hints on how to run: the engine decides by itself, results are the same.

    def batch_readahead(self, nbatches: Optional[int] = None) -> ScannerBuilder:
        if nbatches is not None and _whole("batch_readahead", nbatches) <= 0:
            raise InvalidInputError("batch_readahead must be greater than 0")
        return self

    def fragment_readahead(self, nfragments: Optional[int] = None) -> ScannerBuilder:
        if nfragments is not None and _whole("fragment_readahead", nfragments) < 0:
            raise InvalidInputError("fragment_readahead must be non-negative")
        return self

    def io_buffer_size(self, io_buffer_size: int) -> ScannerBuilder:
        check_unsigned("io_buffer_size", io_buffer_size)
        return self

    def late_materialization(self, late_materialization: Union[bool, List[str]]) -> ScannerBuilder:
        return self

    def use_stats(self, use_stats: bool = True) -> ScannerBuilder:
        return self

    def use_scalar_index(self, use_scalar_index: bool = True) -> ScannerBuilder:
        return self

    # What would change the result is refused.

    def blob_handling(self, blob_handling: Optional[str]) -> ScannerBuilder:
        """"all_binary" shows the bytes of blobs, "blobs_descriptions" (the default) and "all_descriptions" what describes them."""
        if blob_handling not in (None, "all_binary", "all_descriptions", "blobs_descriptions"):
            raise ValueError(
                f"Invalid blob_handling: {blob_handling}. Expected one of: all_binary, all_descriptions, blobs_descriptions"
            )
        self._blob_bytes = blob_handling == "all_binary"
        return self

    def strict_batch_size(self, strict_batch_size: bool = False) -> ScannerBuilder:
        refuse_arguments("scanner", {"strict_batch_size": strict_batch_size})
        return self

    def fast_search(self, flag: bool) -> ScannerBuilder:
        refuse_arguments("scanner", {"fast_search": flag})
        return self

    def include_deleted_rows(self, flag: bool) -> ScannerBuilder:
        refuse_arguments("scanner", {"include_deleted_rows": flag})
        return self

    def order_by(self, orderings) -> ScannerBuilder:
        if orderings:
            raise refusal("the argument order_by of scanner")
        return self

    def full_text_search(self, query, columns: Optional[List[str]] = None) -> ScannerBuilder:
        raise refusal("ScannerBuilder.full_text_search")

    def minhash_search(self, query) -> ScannerBuilder:
        raise refusal("ScannerBuilder.minhash_search")

    def row_addr_prefilter(self, allowlist=None, blocklist=None) -> ScannerBuilder:
        refuse_arguments("scanner", {"row_addr_allowlist": allowlist, "row_addr_blocklist": blocklist})
        return self

    def scan_stats_callback(self, callback) -> ScannerBuilder:
        refuse_arguments("scanner", {"scan_stats_callback": callback})
        return self

    def substrait_aggregate(self, aggregate: bytes) -> ScannerBuilder:
        raise refusal("ScannerBuilder.substrait_aggregate")

    def with_index_segments(self, index_segments) -> ScannerBuilder:
        refuse_arguments("scanner", {"index_segments": index_segments})
        return self

    def to_scanner(self) -> LanceScanner:
        return LanceScanner(copy.copy(self))


def _whole(name: str, value: Any) -> int:
    """Text counts when it reads as a number, as pylance has it."""
    return check_int64(name, int(value) if isinstance(value, str) else value)


# Argument of `LanceDataset.scanner` -> method of the builder where the names differ.
_BUILDER_METHODS = {
    "fragments": "with_fragments",
    "full_text_query": "full_text_search",
    "index_segments": "with_index_segments",
}


def _apply(builder: ScannerBuilder, name: str, value) -> None:
    if value is None:
        return
    if name == "nearest":
        if not isinstance(value, dict):
            raise refusal(f"nearest of type {type(value).__name__}")
        builder.nearest(**value)
    elif name == "row_addr_allowlist":
        builder.row_addr_prefilter(allowlist=value)
    elif name == "row_addr_blocklist":
        builder.row_addr_prefilter(blocklist=value)
    else:
        method = getattr(builder, _BUILDER_METHODS.get(name, name), None)
        if method is None or name.startswith("_"):
            raise TypeError(f"scanner() got an unexpected keyword argument {name!r}")
        method(value)


@contextlib.contextmanager
def _scan_errors():
    """pylance raises ValueError where an expression fails amid a scan."""
    try:
        yield
    except EvaluationError as error:
        raise ScanEvaluationError(str(error)) from None


def _batches(reader):
    with _scan_errors():
        yield from reader


def _snapshot_of(ds: "LanceDataset", fragments: Iterable[LanceFragment]):
    """The version to scan: that of `ds` when it holds the fragments as they are, else the one that they come from.

    ValueError for fragments of another dataset, of several versions, and of a version with other columns.
    """
    others = {}
    for fragment in fragments:
        if fragment._engine is not ds._ds and ds._ds.fragment(fragment.fragment_id) != fragment._info:
            others[fragment._engine.uri, fragment._engine.version] = fragment
    if not others:
        return ds._ds
    fragment, *more = others.values()
    theirs = fragment._engine
    if any(uri != ds._ds.uri for uri, _ in others):
        raise InvalidInputError(f"fragment {fragment.fragment_id} belongs to {theirs.uri}, not to {ds._ds.uri}")
    if more or any(theirs.fragment(f.fragment_id) != f._info for f in fragments):
        raise InvalidInputError(f"the fragments to scan are of several versions of {ds._ds.uri}: no version holds all of them")
    if not theirs.schema.equals(ds._ds.schema):
        raise InvalidInputError(
            f"fragment {fragment.fragment_id} is of version {theirs.version} of {theirs.uri}, which has other columns "
            f"than version {ds._ds.version}"
        )
    return theirs


class LanceScanner(pa.dataset.Scanner):
    """A scan or vector search that is ready to run; each `to_...` runs it."""

    def __init__(self, options: ScannerBuilder):
        self._options = options
        self._engine = _snapshot_of(options.ds, options._fragments or ())

    def _scan_arguments(self, **changes) -> dict:
        o = self._options
        arguments = dict(
            columns=o._columns,
            filter=o._filter,
            limit=o._limit,
            offset=o._offset,
            with_row_id=o._with_row_id,
            with_row_address=o._with_row_address,
            in_order=o._in_order,
            batch_size=o._batch_size,
            batch_size_bytes=o._batch_size_bytes,
        )
        if o._fragments is not None:
            arguments["fragment_ids"] = [f.fragment_id for f in o._fragments]
        arguments.update(changes)
        return arguments

    def _search(self) -> pa.Table:
        o, n = self._options, self._options._nearest
        if o._fragments is not None:
            raise refusal("vector search over chosen fragments")
        if o._expression is not None:
            raise refusal("a pyarrow expression as filter of a vector search (give SQL text)")
        lower, upper = n.distance_range or (None, None)
        columns, names_distance = o._columns, False
        if isinstance(columns, list) and "_distance" in columns:
            names_distance = True
            columns = [c for c in columns if c != "_distance"]
        table = self._engine.nearest(
            to_queries(n.q),
            n.column,
            10 if n.k is None else n.k,
            metric=n.metric or ("" if n.use_index else "l2"),
            filter=o._filter,
            prefilter=o._prefilter,
            lower_bound=lower,
            upper_bound=upper,
            columns=columns,
            with_row_id=o._with_row_id,
            with_row_address=o._with_row_address,
        )
        table = table.slice(o._offset or 0, o._limit)
        return table.select(self._order(table.column_names, names_distance))

    def _order(self, names: List[str], names_distance: bool) -> List[str]:
        """Columns of a search as upstream orders them: query_index first, row ids last."""
        o = self._options
        wanted = list(o._columns) if o._columns is not None else []
        asked = [m for m in ("_rowid", "_rowaddr") if m in names and m not in wanted]
        rest = [c for c in names if c not in ("query_index", "_distance", *asked)]
        if names_distance:
            rest = [c for c in wanted if c in names]
        elif o._score_autoprojection:
            rest.append("_distance")
        return [c for c in names if c == "query_index"] + rest + asked

    def _filtered(self) -> pa.Table:
        """A scan whose filter is a pyarrow expression: rows are read in full and filtered here."""
        o = self._options
        table = self._engine.to_table(
            **self._scan_arguments(columns=None, filter=None, limit=None, offset=None, with_row_id=True, with_row_address=True)
        )
        table = table.filter(o._expression).slice(o._offset or 0, o._limit)
        if isinstance(o._columns, dict):
            raise refusal("computed columns together with a pyarrow expression as filter (give SQL text)")
        names = o._columns if o._columns is not None else self._options.ds.schema.names
        extra = [m for m, on in (("_rowid", o._with_row_id), ("_rowaddr", o._with_row_address)) if on and m not in names]
        return table.select([*names, *extra])

    def to_table(self) -> pa.Table:
        if self._options._blob_bytes and self._options.ds._blob_columns():
            return self.to_reader().read_all()
        if self._options._nearest is not None:
            return self._search()
        if self._options._expression is not None:
            return self._filtered()
        with _scan_errors():
            return self._engine.to_table(**self._scan_arguments())

    def _described(self) -> LanceScanner:
        """The same with descriptors of blobs and row addresses, to fetch their contents by."""
        options = copy.copy(self._options)
        options._blob_bytes, options._with_row_address = False, True
        return LanceScanner(options)

    def _blob_reader(self) -> pa.RecordBatchReader:
        """The rows with the bytes of blobs, fetched batch by batch."""
        o = self._options
        keep = o._with_row_address or isinstance(o._columns, list) and "_rowaddr" in o._columns
        reader = self._described().to_reader()
        fields = [_blob_frames.binary_field(f) for f in reader.schema if keep or f.name != "_rowaddr"]
        schema = pa.schema(fields, reader.schema.metadata)
        return pa.RecordBatchReader.from_batches(
            schema, (_blob_frames.fill_batch(self._engine, batch, o._columns, keep) for batch in reader)
        )

    def to_reader(self) -> pa.RecordBatchReader:
        o = self._options
        if o._blob_bytes and o.ds._blob_columns():
            return self._blob_reader()
        if o._nearest is not None or o._expression is not None:
            table = self.to_table()
            return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=o._batch_size))
        with _scan_errors():
            reader = self._engine.scan(**self._scan_arguments())
        return pa.RecordBatchReader.from_batches(reader.schema, _batches(reader))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.to_reader()

    def scan_batches(self):
        for batch in self.to_batches():
            yield pa.dataset.TaggedRecordBatch(batch, None)

    def to_pandas(self, *, blob_mode: str = "lazy", **kwargs):
        """`kwargs` go to `pa.Table.to_pandas`.

        `blob_mode`: values of blob columns are files that read when they are used ("lazy"), bytes, or descriptions.
        """
        from .._blob import validate_blob_mode

        validate_blob_mode(blob_mode)
        o = self._options
        if blob_mode == "descriptions" or o._blob_bytes or not o.ds._blob_columns():
            return self.to_table().to_pandas(**kwargs)
        keep = o._with_row_address or isinstance(o._columns, list) and "_rowaddr" in o._columns
        return _blob_frames.to_frame(self._engine, self._described().to_table(), o._columns, blob_mode, keep, kwargs)

    def count_rows(self) -> int:
        o = self._options
        if o._nearest is not None or o._expression is not None:
            return self.to_table().num_rows
        if o._fragments is None and o._limit is None and not o._offset:
            return self._engine.count_rows(o._filter)
        return self._engine.to_table(**self._scan_arguments(columns=["_rowaddr"])).num_rows

    def head(self, num_rows: int) -> pa.Table:
        limit = self._options._limit
        options = copy.copy(self._options)
        options.limit(num_rows if limit is None else min(num_rows, limit))
        return LanceScanner(options).to_table()

    def take(self, indices):
        raise refusal("LanceScanner.take")

    @property
    def projected_schema(self) -> pa.Schema:
        o = self._options
        if o._nearest is not None:
            return self.head(0).schema
        schema = self._engine.output_schema(o._columns, with_row_id=o._with_row_id, with_row_address=o._with_row_address)
        if o._blob_bytes:
            schema = pa.schema([_blob_frames.binary_field(field) for field in schema], schema.metadata)
        return schema

    @property
    def dataset_schema(self) -> pa.Schema:
        return self._options.ds.schema

    def explain_plan(self, verbose: bool = False) -> str:
        o, n = self._options, self._options._nearest
        if n is not None:
            lower, upper = n.distance_range or (None, None)
            return self._engine.explain_nearest(
                to_queries(n.q), n.column, n.k or 10, metric=n.metric or ("" if n.use_index else "l2"), filter=o._filter, prefilter=o._prefilter,
                lower_bound=lower, upper_bound=upper, columns=o._columns, with_row_id=o._with_row_id,
            )  # fmt: skip
        return self._engine.explain_scan(
            o._columns, o._filter, o._limit, o._offset, with_row_id=o._with_row_id, with_row_address=o._with_row_address
        )

    def analyze_plan(self, count_rows: bool = False) -> str:
        raise refusal("LanceScanner.analyze_plan")

    @staticmethod
    def from_dataset(*args, **kwargs):
        raise NotImplementedError("from dataset")

    @staticmethod
    def from_fragment(*args, **kwargs):
        raise NotImplementedError("from fragment")

    @staticmethod
    def from_batches(*args, **kwargs):
        raise NotImplementedError("from batches")


# --- parts of a dataset -----------------------------------------------------------------------------------


def _tag(facts: dict) -> dict:
    def when(us):
        return None if us is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)

    times = {"created_at": when(facts["created_us"]), "updated_at": when(facts["updated_us"])}
    order = ("branch", "version", "created_at", "updated_at", "manifest_size", "metadata")
    return {key: times[key] if key in times else facts[key] for key in order}


class Tags:
    """Names for versions. A tagged version is not removed by clean-up."""

    def __init__(self, ds: LanceDataset):
        self._dataset = ds

    def _find(self, reference):
        """The engine's dataset of the branch that a reference is to, and the version."""
        engine = self._dataset._ds
        if isinstance(reference, int):
            return engine, reference
        found = resolve(engine, reference)
        return found, found.version

    def list(self) -> Dict[str, dict]:
        """Name -> `branch` (None: main), `version`, `created_at`, `updated_at`, `manifest_size`, `metadata`."""
        return {name: _tag(facts) for name, facts in self._dataset._ds.list_tags().items()}

    def list_ordered(self, order: Optional[str] = None) -> List[Tuple[str, dict]]:
        """By version, newest first; `order="asc"` turns it."""
        if order not in (None, "asc", "desc"):
            raise ValueError(f"order must be 'asc' or 'desc', not {order!r}")
        return sorted(self.list().items(), key=lambda item: (item[1]["version"], item[0]), reverse=order != "asc")

    def get_version(self, tag: str) -> int:
        return self._dataset._ds.tag_version(tag)

    def create(self, tag: str, reference=None) -> None:
        """Tags a version (the dataset's own by default)."""
        engine, version = self._find(reference)
        engine.create_tag(tag, check_int64("version", version))

    def update(self, tag: str, reference=None) -> None:
        engine, version = self._find(reference)
        engine.update_tag(tag, check_int64("version", version))

    def delete(self, tag: str) -> None:
        self._dataset._ds.delete_tag(tag)

    def replace_metadata(self, tag: str, metadata: Dict[str, str]) -> None:
        raise refusal("Tags.replace_metadata")


class LanceField:
    """A field of the Lance schema."""

    def __init__(self, info: dict, arrow_field: pa.Field, children: List[LanceField]):
        self._info, self._arrow, self._children = info, arrow_field, children

    def name(self) -> str:
        return self._info["name"]

    def id(self) -> int:
        return self._info["id"]

    def children(self) -> List[LanceField]:
        return list(self._children)

    @property
    def metadata(self) -> Dict[str, str]:
        return dict(self._info["metadata"])

    def to_arrow(self) -> pa.Field:
        return self._arrow

    def __repr__(self):
        return f"LanceField(name={self.name()!r}, id={self.id()}, type={self._info['logical_type']!r})"


class LanceSchema:
    """The schema with Lance's field ids."""

    def __init__(self, infos: List[dict], schema: pa.Schema):
        self._schema = schema
        by_parent: Dict[int, List[dict]] = {}
        for info in infos:
            by_parent.setdefault(info["parent_id"], []).append(info)

        def build(parent: int, arrow_fields) -> List[LanceField]:
            fields = []
            for info, arrow_field in zip(by_parent.get(parent, []), arrow_fields):
                type_ = getattr(arrow_field.type, "storage_type", arrow_field.type)
                below = [type_.field(i) for i in range(type_.num_fields)]
                fields.append(LanceField(info, arrow_field, build(info["id"], below)))
            return fields

        self._fields = build(-1, list(schema))

    def fields(self) -> List[LanceField]:
        return list(self._fields)

    def field(self, name: str) -> Optional[LanceField]:
        return next((f for f in self._fields if f.name() == name), None)

    def to_pyarrow(self) -> pa.Schema:
        return self._schema

    def __repr__(self):
        return f"LanceSchema({self._fields!r})"


class LanceStats:
    """Sizes of a dataset."""

    def __init__(self, ds: LanceDataset):
        self._dataset = ds

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict:
        """`num_small_files` counts fragments of fewer than `max_rows_per_group` physical rows."""
        fragments = [self._dataset._ds.fragment(i) for i in self._dataset._ds.fragment_ids()]
        return {
            "num_deleted_rows": sum(f["num_deletions"] for f in fragments),
            "num_fragments": len(fragments),
            "num_small_files": sum(f["physical_rows"] < max_rows_per_group for f in fragments),
        }

    def index_stats(self, index_name: str):
        raise refusal("LanceStats.index_stats")

    def data_stats(self):
        raise refusal("LanceStats.data_stats")


# --- the dataset ------------------------------------------------------------------------------------------


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
            _apply(builder, name, value)
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
