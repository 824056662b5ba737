"""`ScannerBuilder` and `LanceScanner`: reads of a dataset being put together, and run."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import pyarrow as pa
import pyarrow.dataset

from .._plan import check_int64, check_unsigned
from . import _blob_frames
from .._sql import as_sql
from ..exceptions import EvaluationError, InvalidInputError, ScanEvaluationError
from ._data import to_queries
from ._refuse import refusal, refuse_arguments
from ._substrait import to_sql as substrait_to_sql
from .fragment import LanceFragment

if TYPE_CHECKING:
    from ._dataset import LanceDataset


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
            apply_option(self, name, value)
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


def apply_option(builder: ScannerBuilder, name: str, value) -> None:
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
