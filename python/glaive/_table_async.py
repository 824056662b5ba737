"""Tables for async code; see table.py."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from . import _changes, _handle, _later, _pool
from . import merge as _merge
from ._blob_methods import AsyncBlobMethods
from ._branches import AsyncBranches
from ._lazy import lazy
from ._lsm import AsyncLsmMethods
from ._maintenance import AsyncMaintenance
from ._plan import Plan
from ._schema_changes import AsyncSchemaChanges
from ._results import AddResult, DeleteResult, MergeResult, UpdateResult
from ._unsupported import not_built, refuse
from .exceptions import InvalidInputError, InvalidTypeError
from .merge import LanceMergeInsertBuilder
from .query import AsyncQuery, AsyncTakeQuery, AsyncVectorQuery
from .types import AddMode, BlobMode, OnBadVectorsType, QueryType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

    from ._glaive import Table as _NativeTable
    from .common import DATA, VEC
    from .lance import LanceDataset

_blob = lazy("_blob")


@not_built(*_later.TABLE, *_later.TABLE_WARM, "create_index", asynchronous=True)
class AsyncTable(AsyncMaintenance, AsyncSchemaChanges, AsyncLsmMethods, AsyncBlobMethods):
    """A table for async code. Get one from `AsyncConnection.create_table` or `open_table`.

    Methods are coroutines unless noted; each engine call runs on a thread of a pool of its own. See `LanceTable` for what they do.
    """

    def __init__(
        self,
        table: "_NativeTable",
        *,
        namespace_path: Optional[List[str]] = None,
        namespace_client: Optional[Any] = None,
        pushdown_operations: Optional[set] = None,
        route_pushdown_to_rust: bool = False,
        _interval: Optional[timedelta] = None,
    ):
        if namespace_client or pushdown_operations or route_pushdown_to_rust:
            raise refuse("opening a table through a namespace client")
        self._inner = table
        self._namespace_path = list(namespace_path or [])
        self._interval = _interval

    def __repr__(self) -> str:
        from ._database import describe_interval

        if not self.is_open():
            return f"ClosedTable({self.name})"
        return f"NativeTable({self.name}, uri={self._inner.uri}, read_consistency_interval={describe_interval(self._interval)})"

    def __enter__(self) -> "AsyncTable":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # --- not coroutines ---

    @property
    def name(self) -> str:
        """The table's name."""
        return self._inner.name

    @property
    def tags(self) -> "AsyncTags":
        """Names for versions."""
        return AsyncTags(self)

    @property
    def branches(self) -> "AsyncBranches":
        """Lines of versions of their own."""
        return AsyncBranches(self)

    def is_open(self) -> bool:
        """False after `close`."""
        return self._inner.is_open

    def close(self) -> None:
        """Lets go of the table; later calls raise RuntimeError "is closed"."""
        self._inner.close()

    def current_branch(self) -> Optional[str]:
        """The branch that the handle is on: None, the main one."""
        return self._inner.current_branch()

    def query(self) -> AsyncQuery:
        """Starts a scan; `nearest_to` makes a search of it."""
        return AsyncQuery(Plan(self._inner), self)

    def vector_search(self, query_vector: "Union[VEC, Tuple]") -> AsyncVectorQuery:
        """Same as `query().nearest_to(query_vector)`."""
        return self.query().nearest_to(query_vector)

    def take_offsets(self, offsets: List[int]) -> AsyncTakeQuery:
        """The rows at these positions, in the table's order."""
        return AsyncTakeQuery(_handle.take_offsets(self._inner, offsets), self)

    def take_row_ids(self, row_ids: List[int]) -> AsyncTakeQuery:
        """The rows with these `_rowid`s, each once, in the table's order."""
        return AsyncTakeQuery(_handle.take_row_ids(self._inner, row_ids), self)

    # --- what it is ---

    async def schema(self) -> "pyarrow.Schema":
        """The columns, as an Arrow schema."""
        return await _pool.run(self._inner.schema)

    async def version(self) -> int:
        """The number of the version that reads see."""
        return await _pool.run(self._inner.version)

    async def uri(self) -> str:
        """Where the table is stored."""
        return self._inner.uri

    async def embedding_functions(self) -> Dict[str, Any]:
        """See `LanceTable.embedding_functions`."""
        return await _pool.run(_handle.embedding_functions, self._inner)

    async def stats(self) -> Dict[str, Any]:
        """See `LanceTable.stats`."""
        return await _pool.run(self._inner.stats)

    async def list_indices(self) -> Iterable[Any]:
        """See `LanceTable.list_indices`."""
        return await _pool.run(_handle.list_indices, self._inner)

    async def index_stats(self, index_name: str) -> Optional[Any]:
        """See `LanceTable.index_stats`."""
        return await _pool.run(_handle.index_stats, self._inner, index_name)

    async def uses_v2_manifest_paths(self) -> bool:
        """Whether manifests are named so that the newest is found first."""
        return await _pool.run(self._inner.uses_v2_manifest_paths)

    async def migrate_manifest_paths_v2(self) -> None:
        """See `LanceTable.migrate_v2_manifest_paths`."""
        await _pool.run(self._inner.migrate_manifest_names)

    async def initial_storage_options(self) -> Optional[Dict[str, str]]:
        """Options of the object store: None for a local one."""
        return None

    async def latest_storage_options(self) -> Optional[Dict[str, str]]:
        """Options of the object store: None for a local one."""
        return None

    # --- reading ---

    async def count_rows(self, filter: Optional[str] = None) -> int:
        """See `LanceTable.count_rows`."""
        return await _pool.run_cancellable(self._inner.count_rows, _handle.check_filter(filter))

    async def head(self, n: int = 5) -> "pyarrow.Table":
        """The first `n` rows."""
        return await _pool.run(_handle.head, self._inner, n)

    async def to_arrow(self) -> "pyarrow.Table":
        """All rows as a `pa.Table`, in insertion order."""
        return await _pool.run_cancellable(Plan(self._inner).to_table)

    async def to_pandas(self, blob_mode: BlobMode = "lazy", **kwargs) -> "pd.DataFrame":
        """All rows as a pandas frame."""
        _blob.validate_blob_mode(blob_mode)
        plan = Plan(self._inner)
        if await _pool.run(_blob.plan_shows_blobs, plan):
            return await _pool.run(_blob.plan_frame, plan, blob_mode, None, None, kwargs)
        return (await self.to_arrow()).to_pandas(**kwargs)

    async def to_lance(self, **kwargs) -> "LanceDataset":
        """See `LanceTable.to_lance`."""
        return await _pool.run(_handle.dataset, self._inner, kwargs)

    async def search(
        self,
        query: "Optional[Union[VEC, str, Tuple]]" = None,
        vector_column_name: Optional[str] = None,
        query_type: QueryType = "auto",
        ordering_field_name: Optional[str] = None,
        fts_columns: Optional[Union[str, List[str]]] = None,
    ) -> Union[AsyncQuery, AsyncVectorQuery]:
        """Starts a search, or a scan with `query=None`. See `LanceTable.search`."""
        if query_type not in ("auto", "vector", "fts", "hybrid"):
            raise InvalidInputError(f"Unknown query type: '{query_type}'")
        if query_type == "hybrid":
            raise refuse("hybrid search")
        if query is None:
            return self.query()
        if query_type != "fts" and not isinstance(query, (list, tuple)) and not hasattr(query, "dtype"):
            column, function = await _pool.run(_handle.embedding_for, self._inner, vector_column_name)
            if function is not None:
                import asyncio

                from .background_loop import embedding_executor

                compute = function.compute_query_embeddings_with_retry
                vectors = await asyncio.get_running_loop().run_in_executor(embedding_executor(), compute, query)
                return self.query().nearest_to(vectors[0]).column(column)
        if isinstance(query, str):
            if query_type == "vector":
                raise InvalidInputError(f"Column '{vector_column_name or 'vector'}' has no registered embedding function.")
            raise refuse("full text search")
        if query_type == "fts":
            raise InvalidTypeError(f"'fts' query must be a string or FullTextQuery: {type(query)}")
        if not hasattr(query, "__len__") or isinstance(query, (dict, bytes)):
            raise InvalidTypeError(f"Unsupported query type: {type(query)}")
        found = self.query().nearest_to(query)
        return found if vector_column_name is None else found.column(vector_column_name)

    # --- writing ---

    async def add(
        self,
        data: "DATA",
        *,
        mode: Optional[AddMode] = "append",
        on_bad_vectors: Optional[OnBadVectorsType] = None,
        fill_value: Optional[float] = None,
        progress: Optional[Union[bool, Callable, Any]] = None,
        write_parallelism: Optional[int] = None,
        allow_external_blob_outside_bases: bool = False,
    ) -> AddResult:
        """See `LanceTable.add`."""
        return await _pool.run(
            _handle.add,
            self._inner,
            data,
            mode,
            on_bad_vectors,
            fill_value,
            progress,
            write_parallelism,
            allow_external_blob_outside_bases,
        )

    async def delete(self, where: str) -> DeleteResult:
        """See `LanceTable.delete`."""
        return await _pool.run(_handle.delete, self._inner, where)

    async def update(
        self,
        updates: Optional[Dict[str, Any]] = None,
        *,
        where: Optional[str] = None,
        updates_sql: Optional[Dict[str, str]] = None,
    ) -> UpdateResult:
        """See `LanceTable.update`; `updates` are its `values`."""
        return await _pool.run(_changes.update, self._inner, where, updates, updates_sql)

    def merge_insert(self, on: Union[str, Iterable[str]]) -> LanceMergeInsertBuilder:
        """See `LanceTable.merge_insert`. No coroutine; `execute` of the result is one."""
        return LanceMergeInsertBuilder(self, _merge.check_on(on))

    async def _do_merge(self, builder, new_data, on_bad_vectors, fill_value, timeout) -> MergeResult:
        return await _pool.run(_merge.execute, self._inner, builder, new_data, on_bad_vectors, fill_value, timeout)

    # --- versions ---

    async def list_versions(self) -> List[Dict[str, Any]]:
        """See `LanceTable.list_versions`."""
        return await _pool.run(_handle.list_versions, self._inner)

    async def checkout(self, version: Union[int, str]) -> None:
        """See `LanceTable.checkout`."""
        await _pool.run(_handle.checkout, self._inner, version)

    async def checkout_latest(self) -> None:
        """See `LanceTable.checkout_latest`."""
        await _pool.run(self._inner.checkout_latest)

    async def restore(self, version: Optional[Union[int, str]] = None) -> None:
        """See `LanceTable.restore`."""
        await _pool.run(_handle.restore, self._inner, version)


class AsyncTags:
    """See `Tags`; the methods are coroutines."""

    def __init__(self, table: AsyncTable):
        self._inner = table._inner

    async def list(self) -> Dict[str, Dict[str, int]]:
        """Tag -> `{"version": int, "manifest_size": int}`."""
        return await _pool.run(_handle.list_tags, self._inner)

    async def get_version(self, tag: str) -> int:
        """The version that the tag names."""
        return await _pool.run(_handle.tag_version, self._inner, tag)

    async def create(self, tag: str, version: int) -> None:
        """Names a version."""
        await _pool.run(_handle.create_tag, self._inner, tag, version)

    async def update(self, tag: str, version: int) -> None:
        """Moves a tag to another version."""
        await _pool.run(_handle.update_tag, self._inner, tag, version)

    async def delete(self, tag: str) -> None:
        """Removes a tag."""
        await _pool.run(_handle.delete_tag, self._inner, tag)
