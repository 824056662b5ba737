"""Single Lance files, without a dataset around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Union

import pyarrow as pa

from .. import _glaive, _not_built
from ._refuse import refusal, refuse_arguments

__getattr__ = _not_built.missing_names(__name__)

__all__ = [
    "LanceBufferDescriptor", "LanceColumnMetadata", "LanceFileMetadata", "LanceFileReader", "LanceFileSession",
    "LanceFileStatistics", "LanceFileWriter", "LancePageMetadata", "ReaderResults", "stable_version",
]  # fmt: skip


def stable_version() -> str:
    """The version of the file format that is written by default."""
    return "2.2"


class ReaderResults:
    """Rows that were asked for; read by one of the methods, once."""

    def __init__(self, reader: pa.RecordBatchReader):
        self.reader = reader

    def to_batches(self) -> pa.RecordBatchReader:
        return self.reader

    def to_table(self) -> pa.Table:
        return self.reader.read_all()


@dataclass
class LanceBufferDescriptor:
    position: int
    size: int


@dataclass
class LancePageMetadata:
    buffers: List[LanceBufferDescriptor]
    encoding: str


@dataclass
class LanceColumnMetadata:
    column_buffers: List[LanceBufferDescriptor]
    pages: List[LancePageMetadata]


@dataclass
class LanceFileMetadata:
    """What the footer of a file tells."""

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    major_version: int
    minor_version: int
    global_buffers: List[LanceBufferDescriptor] = field(default_factory=list)
    columns: List[LanceColumnMetadata] = field(default_factory=list)


@dataclass
class LanceColumnStatistics:
    num_pages: int
    size_bytes: int


@dataclass
class LanceFileStatistics:
    columns: List[LanceColumnStatistics]


class LanceFileReader:
    """Reads one Lance file of version 2.0, 2.1 or 2.2."""

    def __init__(
        self,
        path: str,
        storage_options: Optional[Dict[str, str]] = None,
        columns: Optional[List[str]] = None,
        *,
        namespace_client=None,
        table_id: Optional[List[str]] = None,
        _inner_reader=None,
    ):
        refuse_arguments("LanceFileReader", {"namespace_client": namespace_client, "table_id": table_id})
        self._reader = _inner_reader or _glaive.FileReader(str(path), columns=columns, storage_options=storage_options)

    def _results(self, start: int, num_rows: Optional[int], batch_size: int) -> ReaderResults:
        reader = self._reader.read(start, num_rows, batch_size=batch_size)
        return ReaderResults(pa.RecordBatchReader.from_batches(reader.schema, reader))

    def read_all(self, *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:
        return self._results(0, None, batch_size)

    def read_range(self, start: int, num_rows: int, *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:
        return self._results(start, num_rows, batch_size)

    def take_rows(self, indices, *, batch_size: int = 1024, batch_readahead: int = 16) -> ReaderResults:
        """Rows by number, in the order asked for."""
        if batch_size <= 0:
            raise ValueError("batch_size must be positive")
        batch = self._reader.take_rows(indices)
        slices = [batch.slice(at, batch_size) for at in range(0, batch.num_rows, batch_size)]
        return ReaderResults(pa.RecordBatchReader.from_batches(batch.schema, slices))

    def num_rows(self) -> int:
        return self._reader.num_rows

    def read_global_buffer(self, index: int) -> bytes:
        return self._reader.global_buffer(index)

    def metadata(self) -> LanceFileMetadata:
        facts = self._reader.metadata()
        major, minor = self._reader.version
        buffers = lambda pairs: [LanceBufferDescriptor(position, size) for position, size in pairs]
        return LanceFileMetadata(
            schema=self._reader.schema,
            num_rows=self._reader.num_rows,
            num_data_bytes=facts["num_data_bytes"],
            num_column_metadata_bytes=facts["num_column_metadata_bytes"],
            num_global_buffer_bytes=facts["num_global_buffer_bytes"],
            major_version=major,
            minor_version=minor,
            global_buffers=buffers(facts["global_buffers"]),
            columns=[
                LanceColumnMetadata(
                    column_buffers=buffers(column["column_buffers"]),
                    pages=[LancePageMetadata(buffers(page["buffers"]), page["encoding"]) for page in column["pages"]],
                )
                for column in facts["columns"]
            ],
        )

    def file_statistics(self) -> LanceFileStatistics:
        """Pages and bytes of each column."""
        return LanceFileStatistics(
            [
                LanceColumnStatistics(len(c.pages), sum(b.size for page in c.pages for b in page.buffers))
                for c in self.metadata().columns
            ]
        )


class LanceFileWriter:
    """Writes one Lance file, which appears at `close`. As a context manager: an exception leaves no file behind."""

    def __init__(
        self,
        path: str,
        schema: Optional[pa.Schema] = None,
        *,
        data_cache_bytes: Optional[int] = None,
        version: Optional[str] = None,
        storage_options: Optional[Dict[str, str]] = None,
        namespace_client=None,
        table_id: Optional[List[str]] = None,
        max_page_bytes: Optional[int] = None,
        _inner_writer=None,
        **kwargs,
    ):
        refuse_arguments("LanceFileWriter", {"namespace_client": namespace_client, "table_id": table_id, **kwargs})
        self._path = str(path)
        self._options = dict(
            data_cache_bytes=data_cache_bytes,
            version=version,
            storage_options=storage_options,
            max_page_bytes=max_page_bytes,
        )
        self._writer = _inner_writer
        self._closed = False
        # Given before the schema is known.
        self._metadata: Dict[str, str] = {}
        if schema is not None and self._writer is None:
            self._open(schema)

    def _open(self, schema: pa.Schema) -> None:
        self._writer = _glaive.FileWriter(self._path, schema, **self._options)
        for key, value in self._metadata.items():
            self._writer.add_schema_metadata(key, value)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the writer of {self._path} is closed")

    def write_batch(self, batch: Union[pa.RecordBatch, pa.Table]) -> None:
        self._check_open()
        if self._writer is None:
            self._open(batch.schema)
        self._writer.write(batch)

    def add_schema_metadata(self, key: str, value: str) -> None:
        self._check_open()
        if self._writer is None:
            self._metadata[key] = value
        else:
            self._writer.add_schema_metadata(key, value)

    def add_global_buffer(self, data: bytes) -> int:
        """Stores extra bytes; returns the index for `LanceFileReader.read_global_buffer`."""
        self._check_open()
        if self._writer is None:
            raise ValueError("give the schema when the writer is made, or write a batch, before adding a global buffer")
        return self._writer.add_global_buffer(data)

    def close(self) -> Optional[int]:
        """Finishes the file and returns the number of rows; None when it was closed before."""
        if self._closed:
            return None
        if self._writer is None:
            raise ValueError("No schema provided on writer open and no data provided. Schema is unknown and file cannot be created")
        self._closed = True
        return self._writer.finish()

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        if exc_type is None:
            self.close()
        else:
            self._closed = True
            if self._writer is not None:
                self._writer.abort()


class LanceFileSession:
    """Not supported yet: raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise refusal("LanceFileSession")
