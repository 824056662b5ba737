"""A table as a `pyarrow.dataset.Dataset`, for libraries that scan such datasets (DuckDB, Polars).

Only what scanning takes is there: columns, filter, batch size, number of rows. Tables offer `__arrow_c_stream__` too, which is all
that newer releases of these libraries ask for.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, List, Optional, Union

import pyarrow as pa
import pyarrow.compute  # `pa.compute` in annotations
import pyarrow.dataset

from .._unsupported import not_built, refuse
from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from ..table import Table

Filter = Union[str, "pa.compute.Expression"]

__all__ = ["PyarrowDatasetAdapter", "PyarrowScannerAdapter"]


@not_built("from_batches", "from_dataset", "from_fragment", "take")
class PyarrowScannerAdapter(pa.dataset.Scanner):
    """One scan of a table: `columns` of the rows for which `filter` is true."""

    def __init__(
        self,
        table: "Table",
        columns: Optional[List[str]] = None,
        filter: Optional[Filter] = None,
        batch_size: Optional[int] = None,
        batch_readahead: Optional[int] = None,
        fragment_readahead: Optional[int] = None,
        fragment_scan_options: Optional[Any] = None,
        use_threads: bool = True,
        memory_pool: Optional[Any] = None,
    ):
        if fragment_scan_options is not None:
            raise refuse("scanning with fragment_scan_options")
        if use_threads is False:
            raise refuse("scanning with use_threads=False")
        if memory_pool is not None:
            raise refuse("scanning with a memory_pool")
        for name, value in (("batch_readahead", batch_readahead), ("fragment_readahead", fragment_readahead)):
            if value is not None:
                logging.getLogger(__name__).debug("%s=%s has no effect: the engine reads ahead by itself", name, value)
        self.table = table
        self.columns = columns
        self.filter = filter
        self.batch_size = batch_size

    def count_rows(self) -> int:
        """How many rows the scan yields."""
        if isinstance(self.filter, pa.compute.Expression):
            return self._filtered().count_rows()
        return self.table.count_rows(self.filter)

    def _filtered(self) -> pa.dataset.Scanner:
        """The scan with an Arrow expression as filter, which pyarrow evaluates over the rows as they are read."""
        rows = self.table.search().to_batches(self.batch_size)
        return pa.dataset.Scanner.from_batches(rows, columns=self.columns, filter=self.filter)

    def _query(self, limit: Optional[int] = None):
        query = self.table.search()
        if limit is not None:
            query = query.limit(limit)
        if self.columns is not None:
            query = query.select(self.columns)
        if isinstance(self.filter, str):
            query = query.where(self.filter)
        return query

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._query().output_schema()

    @property
    def dataset_schema(self) -> pa.Schema:
        """The schema of the table."""
        return self.table.schema

    def to_reader(self, *, limit: Optional[int] = None) -> pa.RecordBatchReader:
        """The rows (at most `limit`) as a reader; it streams. ValueError for a limit below 1."""
        if limit is not None and limit <= 0:
            raise InvalidInputError("limit must be positive")
        if isinstance(self.filter, pa.compute.Expression):
            scan = self._filtered()
            return scan.to_reader() if limit is None else scan.head(limit).to_reader()
        return self._query(limit).to_batches(self.batch_size)

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows in batches."""
        return self.to_reader()

    def scan_batches(self) -> pa.RecordBatchReader:
        """Same as `to_batches`."""
        return self.to_reader()

    def to_table(self) -> pa.Table:
        """All rows."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """The first rows."""
        return self.to_reader(limit=num_rows).read_all()


@not_built("get_fragments", "join", "join_asof", "replace_schema", "sort_by", "take")
class PyarrowDatasetAdapter(pa.dataset.Dataset):
    """A table that looks like an Arrow dataset. Arguments of the scanning methods: see `PyarrowScannerAdapter`."""

    def __init__(self, table: "Table"):
        self.table = table

    @property
    def schema(self) -> pa.Schema:
        """The schema of the table."""
        return self.table.schema

    @property
    def partition_expression(self):
        """Not supported: tables are not partitioned."""
        raise refuse("PyarrowDatasetAdapter.partition_expression")

    def count_rows(self, filter: Optional[Filter] = None) -> int:
        """How many rows there are, or for how many `filter` is true."""
        return self.scanner(filter=filter).count_rows()

    def scanner(
        self,
        columns: Optional[List[str]] = None,
        filter: Optional[Filter] = None,
        batch_size: Optional[int] = None,
        batch_readahead: Optional[int] = None,
        fragment_readahead: Optional[int] = None,
        fragment_scan_options: Optional[Any] = None,
        use_threads: bool = True,
        memory_pool: Optional[Any] = None,
    ) -> PyarrowScannerAdapter:
        """A scan of the table."""
        return PyarrowScannerAdapter(
            self.table,
            columns,
            filter,
            batch_size,
            batch_readahead,
            fragment_readahead,
            fragment_scan_options,
            use_threads,
            memory_pool,
        )

    def head(
        self,
        num_rows: int,
        columns: Optional[List[str]] = None,
        filter: Optional[Filter] = None,
        batch_size: Optional[int] = None,
        batch_readahead: Optional[int] = None,
        fragment_readahead: Optional[int] = None,
        fragment_scan_options: Optional[Any] = None,
        use_threads: bool = True,
        memory_pool: Optional[Any] = None,
    ) -> pa.Table:
        """The first rows; the other arguments as for `scanner`."""
        scanner = self.scanner(
            columns, filter, batch_size, batch_readahead, fragment_readahead, fragment_scan_options, use_threads, memory_pool
        )
        return scanner.head(num_rows)

    def to_batches(
        self,
        columns: Optional[List[str]] = None,
        filter: Optional[Filter] = None,
        batch_size: Optional[int] = None,
        batch_readahead: Optional[int] = None,
        fragment_readahead: Optional[int] = None,
        fragment_scan_options: Optional[Any] = None,
        use_threads: bool = True,
        memory_pool: Optional[Any] = None,
    ) -> pa.RecordBatchReader:
        """The rows in batches; arguments as for `scanner`."""
        scanner = self.scanner(
            columns, filter, batch_size, batch_readahead, fragment_readahead, fragment_scan_options, use_threads, memory_pool
        )
        return scanner.to_batches()

    def to_table(
        self,
        columns: Optional[List[str]] = None,
        filter: Optional[Filter] = None,
        batch_size: Optional[int] = None,
        batch_readahead: Optional[int] = None,
        fragment_readahead: Optional[int] = None,
        fragment_scan_options: Optional[Any] = None,
        use_threads: bool = True,
        memory_pool: Optional[Any] = None,
    ) -> pa.Table:
        """All rows; arguments as for `scanner`."""
        scanner = self.scanner(
            columns, filter, batch_size, batch_readahead, fragment_readahead, fragment_scan_options, use_threads, memory_pool
        )
        return scanner.to_table()
