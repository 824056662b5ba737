"""Functions that compute columns from batches of rows, for `LanceDataset.add_columns`."""

from __future__ import annotations

import contextlib
import os
import pickle
import sqlite3
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import pyarrow as pa

from .._glaive import InvalidInputError
from ._data import to_stream

__all__ = ["BatchUDF", "BatchUDFCheckpoint", "batch_udf", "normalize_transform"]


def _as_batch(result: Any) -> Any:
    """Frames of pandas as batches; everything else as it is."""
    if type(result).__module__.partition(".")[0] == "pandas":
        return pa.RecordBatch.from_pandas(result, preserve_index=False).replace_schema_metadata(None)
    return result


class BatchUDF:
    """A function from a batch of rows to a batch of new columns; calling it calls the function."""

    def __init__(self, func: Callable[[pa.RecordBatch], Any], output_schema: Optional[pa.Schema] = None, checkpoint_file=None):
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else BatchUDFCheckpoint(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return self.func(batch)

    def _call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The function's result, checked against `output_schema`."""
        if self.output_schema is None:
            raise ValueError("output_schema must be known before the function is run on the table")
        result = _as_batch(self.func(batch))
        if not isinstance(result, pa.RecordBatch):
            raise TypeError(f"the function must return a RecordBatch or a pandas frame, not {type(result).__name__}")
        if not result.schema.equals(self.output_schema):
            raise ValueError(
                "Output schema of function does not match the expected schema. "
                f"Expected:\n{self.output_schema}\nGot:\n{result.schema}"
            )
        return result


def batch_udf(output_schema: Optional[pa.Schema] = None, checkpoint_file=None) -> Callable[[Callable], BatchUDF]:
    """Decorator: makes a function a `BatchUDF`.

    Parameters
    ----------
    output_schema : pa.Schema, optional
        The columns that the function returns; found out by a call on one row when it is not given.
    checkpoint_file : str or Path, optional
        Keeps the results of batches. When the run fails, the next one with the same file goes on where it ended; after a run
        that succeeds the file is removed.
    """
    return lambda func: BatchUDF(func, output_schema, checkpoint_file)


class BatchUDFCheckpoint:
    """Results of batches in an SQLite file. Each call has a connection of its own, so any thread may use it."""

    class BatchInfo(NamedTuple):
        fragment_id: int
        batch_index: int

    def __init__(self, path):
        self.path = path
        self._execute("CREATE TABLE IF NOT EXISTS batches (fragment_id INT, batch_index INT, result BLOB)")
        self._execute("CREATE TABLE IF NOT EXISTS fragments (fragment_id INT, data BLOB)")

    def _execute(self, sql: str, *values) -> Optional[tuple]:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            row = connection.execute(sql, values).fetchone()
            connection.commit()
            return row

    def cleanup(self) -> None:
        """Removes the file."""
        os.remove(self.path)

    def get_batch(self, info: BatchInfo) -> Optional[pa.RecordBatch]:
        row = self._execute("SELECT result FROM batches WHERE fragment_id = ? AND batch_index = ?", *info)
        return None if row is None else pickle.loads(row[0])

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        self._execute("DELETE FROM batches WHERE fragment_id = ? AND batch_index = ?", *info)
        self._execute("INSERT INTO batches VALUES (?, ?, ?)", *info, pickle.dumps(batch))

    def get_fragment(self, fragment_id: int) -> Optional[str]:
        row = self._execute("SELECT data FROM fragments WHERE fragment_id = ?", fragment_id)
        return None if row is None else row[0]

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Keeps what a finished fragment is; the results of its batches are dropped."""
        self._execute("INSERT INTO fragments VALUES (?, ?)", fragment_id, fragment)
        self._execute("DELETE FROM batches WHERE fragment_id = ?", fragment_id)


def _scan_arguments(read_columns: Optional[List[str]]) -> dict:
    if read_columns is None:
        return {}
    return {
        "columns": [c for c in read_columns if c not in ("_rowid", "_rowaddr")],
        "with_row_id": "_rowid" in read_columns,
        "with_row_address": "_rowaddr" in read_columns,
    }


def _sample(function: Callable, dataset, read_columns) -> pa.Schema:
    """The schema of what the function makes of one row (of none, when the table is empty)."""
    scanner = dataset.scanner(limit=1, **_scan_arguments(read_columns))
    batch = next(iter(scanner.to_batches()), None)
    if batch is None:
        batch = pa.RecordBatch.from_pylist([], schema=scanner.projected_schema)
    return _as_batch(function(batch)).schema


def normalize_transform(udf_like, data_source, read_columns: Optional[List[str]] = None, reader_schema: Optional[pa.Schema] = None):
    """What `add_columns` was given, as one of a dict of expressions, a `BatchUDF` whose schema is known, or Arrow data."""
    if isinstance(udf_like, dict):
        for name, expression in udf_like.items():
            if not isinstance(name, str):
                raise TypeError(f"Column names must be a string. Got {type(name)}")
            if not isinstance(expression, str):
                raise TypeError(f"Column expressions must be a string. Got {type(expression)}")
        return udf_like
    if isinstance(udf_like, BatchUDF):
        if udf_like.output_schema is None:
            udf_like.output_schema = _sample(udf_like, data_source, read_columns)
        return udf_like
    kinds = "transforms must be a BatchUDF, dict, map function, or ReaderLike value.  Received "
    if callable(udf_like):
        try:
            return BatchUDF(udf_like, _sample(udf_like, data_source, read_columns))
        except Exception as error:
            raise TypeError(
                f"{kinds}{type(udf_like)}, which is callable, but gave an error when called with a batch of data: {error}"
            ) from error
    try:
        return to_stream(udf_like, reader_schema)
    except TypeError as error:
        raise TypeError(f"{kinds}{type(udf_like)}.  Could not coerce to a reader: {error}") from None


def run_udf(udf: BatchUDF, dataset, read_columns, batch_size) -> pa.RecordBatchReader:
    """The function's results over all rows of `dataset`, in order."""

    def result_of(batch: pa.RecordBatch, info: BatchUDFCheckpoint.BatchInfo) -> pa.RecordBatch:
        if udf.cache is not None:
            kept = udf.cache.get_batch(info)
            if kept is not None and kept.num_rows == batch.num_rows and kept.schema.equals(udf.output_schema):
                return kept
        try:
            result = udf._call(batch)
        except Exception as error:
            raise InvalidInputError(f"{type(error).__name__}: {error}") from error
        if result.num_rows != batch.num_rows:
            raise InvalidInputError(
                f"the function returned {result.num_rows} rows for a batch of {batch.num_rows}: "
                "there must be one for each"
            )
        if udf.cache is not None:
            udf.cache.insert_batch(info, result)
        return result

    def results() -> Iterator[pa.RecordBatch]:
        for fragment in dataset.get_fragments():
            scanner = dataset.scanner(fragments=[fragment], batch_size=batch_size, **_scan_arguments(read_columns))
            for index, batch in enumerate(scanner.to_batches()):
                yield result_of(batch, BatchUDFCheckpoint.BatchInfo(fragment.fragment_id, index))

    return pa.RecordBatchReader.from_batches(udf.output_schema, results())
