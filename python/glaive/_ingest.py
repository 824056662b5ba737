"""Turns whatever may be given as data into the stream of batches that the engine takes.

`for_new_table` and `for_append` return an `Incoming`. Data in memory stays as it is when nothing has to change; iterators are
drawn batch by batch while the engine writes, and an exception of theirs is kept so that the caller sees it as it was raised.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable, FrozenSet, Iterable, Iterator, List, Optional

from . import _embed, _vectors
from ._fit import fit_batch
from ._lazy import pa
from ._rows import complete, has_null, is_model, is_model_class, refuse_single, rows_to_table
from ._unsupported import refuse
from .common import validate_schema
from .exceptions import InvalidInputError, InvalidTypeError, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow

# Batches read ahead to learn the dimension of vectors when leading rows have none.
_LOOK_AHEAD = 64
# Rows of a batch while bad vectors are handled: bounds the memory of the index matrices.
_POLICY_ROWS = 8192
_END = object()


class Incoming:
    """Batches of one schema on their way to the engine: a table in memory, or batches that come one by one.

    `batches` is called for an iterator over them.
    """

    def __init__(self, schema: "pyarrow.Schema", table=None, batches: Optional[Callable[[], Iterator]] = None):
        self.schema = schema
        self.table = table
        self.untyped: FrozenSet[str] = frozenset()  # columns of Python rows that hold nothing but None
        self._batches = batches
        self._error: Optional[BaseException] = None
        self._bytes = 0  # of the batches that were drawn

    @property
    def total_rows(self) -> Optional[int]:
        """Rows in all, when that is known before the write."""
        return None if self.table is None else self.table.num_rows

    def bytes_for(self, rows: int) -> int:
        """Bytes that the first `rows` rows take in memory, as far as they were handed on."""
        if self.table is None:
            return self._bytes
        return self.table.nbytes * rows // self.table.num_rows if self.table.num_rows else 0

    def batches(self) -> Iterator["pyarrow.RecordBatch"]:
        return iter(self.table.to_batches()) if self.table is not None else self._batches()

    def map(self, schema, function, max_rows: Optional[int] = None) -> "Incoming":
        """The same data with `function` applied to each batch."""

        def mapped():
            for batch in self.batches():
                if max_rows is None or batch.num_rows <= max_rows:
                    yield function(batch)
                    continue
                for start in range(0, batch.num_rows, max_rows):
                    yield function(batch.slice(start, max_rows))

        out = Incoming(schema, batches=mapped)
        out.untyped = self.untyped
        return out

    def payload(self):
        """What the engine is given."""
        if self.table is not None:
            return self.table
        return pa.RecordBatchReader.from_batches(self.schema, self._guarded())

    def _guarded(self):
        try:
            for batch in self._batches():
                self._bytes += batch.nbytes
                yield batch
        except BaseException as e:
            self._error = e
            raise

    def send(self, call):
        """`call(payload)`; an exception that the data itself raised comes out unwrapped."""
        try:
            return call(self.payload())
        except Exception:
            if self._error is not None:
                raise self._error from None
            raise


# --- what data may be ---------------------------------------------------------------------------------------


def as_incoming(data: Any, target: Optional["pyarrow.Schema"] = None) -> Incoming:
    """`data` as batches with the types it has by itself; the schema `target` only helps with rows of Python values.

    ValueError for a single row or nothing to tell a schema from, TypeError for a type that is no data.
    """
    refuse_single(data)
    if isinstance(data, pa.Table):
        return Incoming(data.schema, data)
    if isinstance(data, pa.RecordBatch):
        return _from_table(pa.Table.from_batches([data]))
    if isinstance(data, pa.RecordBatchReader):
        return _from_reader(data)
    if isinstance(data, (list, tuple)):
        return _from_list(list(data), target)
    if isinstance(data, (str, bytes, pa.Array, pa.ChunkedArray)):
        raise _unknown(data)
    kind = type(data).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(data, "columns"):
        return _from_table(_without_pandas_metadata(pa.Table.from_pandas(data, preserve_index=False)))
    if kind == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        if hasattr(frame, "columns"):
            return _from_table(frame.to_arrow())
    if kind == "datasets":
        raise refuse("Hugging Face datasets as data")
    if kind == "numpy":
        raise _unknown(data)
    if hasattr(data, "to_reader"):  # an Arrow or Lance scanner
        return _from_reader(data.to_reader())
    if hasattr(data, "scanner"):  # an Arrow or Lance dataset
        return _from_reader(data.scanner().to_reader())
    if hasattr(data, "__arrow_c_stream__"):
        return _from_reader(pa.RecordBatchReader.from_stream(data))
    if hasattr(data, "__arrow_c_array__"):
        return _from_table(pa.Table.from_batches([pa.record_batch(data)]))
    if hasattr(data, "__next__"):
        return _from_iterator(data, target)
    raise _unknown(data)


def _unknown(data):
    return InvalidTypeError(
        f"Unknown data type {type(data)}. Supported types: list of dicts, list of LanceModels, pandas and polars frames, pyarrow "
        "tables, batches, readers, datasets and scanners, and iterators of these."
    )


def _from_table(table) -> Incoming:
    return Incoming(table.schema, table)


def _from_reader(reader) -> Incoming:
    return Incoming(reader.schema, batches=lambda: iter(reader))


def _without_pandas_metadata(table):
    metadata = {k: v for k, v in (table.schema.metadata or {}).items() if k != b"pandas"}
    return table.replace_schema_metadata(metadata or None)


def _from_list(rows: List[Any], target) -> Incoming:
    if not rows:
        raise InvalidInputError("Cannot create table from empty list without a schema")
    first = rows[0]
    if isinstance(first, pa.RecordBatch):
        return _from_table(pa.Table.from_batches(rows))
    if isinstance(first, pa.Table):
        return _from_table(pa.concat_tables(rows))
    if is_model(first):
        schema = type(first).to_arrow_schema()
        return _from_table(_fit_table(rows_to_table(rows, schema), schema))
    incoming = _from_table(rows_to_table(rows, target))
    incoming.untyped = frozenset(name for name, c in zip(incoming.schema.names, incoming.table.columns) if c.null_count == len(c))
    return incoming


def _fit_table(table, schema):
    return pa.Table.from_batches([fit_batch(batch, schema) for batch in table.to_batches()], schema)


def _from_iterator(items: Iterable[Any], target) -> Incoming:
    """Each item is data by itself; the first one fixes the schema, later ones are cast to it.

    A column of which nothing but nulls was seen takes its type from the next items.
    """
    items = iter(items)
    read: List[Incoming] = []
    schema = None
    while schema is None or len(read) < _LOOK_AHEAD and any(has_null(field.type) for field in schema):
        item = next(items, _END)
        if item is _END:
            break
        read.append(as_incoming(item, target))
        schema = read[0].schema if schema is None else _complete_schema(schema, read[-1].schema)
    if schema is None:
        raise InvalidInputError("Cannot create table from empty iterator")

    def batches():
        for incoming in read:
            for batch in incoming.batches():
                yield fit_batch(batch, schema)
        for item in items:
            for batch in as_incoming(item, schema).batches():
                yield fit_batch(batch, schema)

    return Incoming(schema, batches=batches)


def _complete_schema(schema, later):
    """`schema` with the types of `later` where its own columns had nulls only."""
    for index, field in enumerate(schema):
        other = later.get_field_index(field.name)
        if other >= 0 and has_null(field.type):
            schema = schema.set(index, field.with_type(complete(field.type, later.field(other).type)))
    return schema


# --- new tables ---------------------------------------------------------------------------------------------


def for_new_table(
    data: Any,
    schema: Any,
    on_bad_vectors: Optional[str],
    fill_value: Optional[float],
    embedding_functions: Optional[List[Any]] = None,
) -> Incoming:
    """Data for a table that is created or overwritten; without `schema`, vector columns are inferred.

    Vectors that are missing come from the `embedding_functions`, or those in the metadata of the schema or the data.

    `schema` is a `pa.Schema` or a LanceModel class; columns, order, types and nullability are then as it says.
    """
    policy = _vectors.check_policy(on_bad_vectors)
    target = as_schema(schema)
    if target is not None:
        target = _embed.with_functions(target, embedding_functions)
        if isinstance(data, (list, tuple)) and not data:
            target = _with_vector_columns(target)
            validate_schema(target)
            return Incoming(target, target.empty_table())
    incoming = as_incoming(data, target)
    if target is None:
        target, incoming = _infer_target(incoming)
        target = _embed.with_functions(target, embedding_functions)
    target = _with_vector_columns(target)
    validate_schema(target)
    return _conform(incoming, target, policy, fill_value, fit=True, explicit=schema is not None)


def _with_vector_columns(target):
    """The schema with the columns that embedding functions fill, where it does not have them."""
    for name, config in _embed.entries_of(target).items():
        index = target.get_field_index(name)
        if index < 0:
            target = target.append(pa.field(name, _embed.vector_type(config)))
        elif pa.types.is_null(target.field(index).type):
            target = target.set(index, pa.field(name, _embed.vector_type(config)))
    return target


def as_schema(schema: Any) -> Optional["pyarrow.Schema"]:
    """A `pa.Schema` out of a schema or a LanceModel class; None stays None; TypeError for anything else."""
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    if is_model_class(schema):
        return schema.to_arrow_schema()
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    raise InvalidTypeError(f"schema must be a pyarrow.Schema or a LanceModel class, not {type(schema).__name__}")


def _infer_target(incoming: Incoming):
    """The schema of a new table for this data, and the data (looked into, not consumed)."""
    candidates = [field for field in incoming.schema if _vectors.wants_inference(field)]
    if not candidates:
        return incoming.schema, incoming
    if incoming.table is not None:
        column = incoming.table.column
    else:
        batches = incoming.batches()
        seen: list = []
        names = [field.name for field in candidates]
        while len(seen) < _LOOK_AHEAD:
            batch = next(batches, None)
            if batch is None:
                break
            seen.append(batch)
            if all(_vectors.common_length(pa.chunked_array([b.column(n) for b in seen])) for n in names):
                break
        ahead = pa.Table.from_batches(seen, incoming.schema)
        incoming = Incoming(incoming.schema, batches=lambda: itertools.chain(seen, batches))
        column = ahead.column
    target = incoming.schema
    for field in candidates:
        dim = _vectors.common_length(column(field.name))
        if dim is None:
            continue
        index = target.get_field_index(field.name)
        target = target.set(index, field.with_type(_vectors.inferred_type(field, column(field.name), dim)))
    return target, incoming


# --- tables that exist --------------------------------------------------------------------------------------


def for_append(data: Any, table_schema: "pyarrow.Schema", on_bad_vectors: Optional[str], fill_value: Optional[float]) -> Incoming:
    """Data for rows to append. Names, casts, nulls and NaN are the engine's business; other policies for bad vectors ours."""
    policy = _vectors.check_policy(on_bad_vectors)
    incoming = as_incoming(data, table_schema)
    if policy != "error" or b"embedding_functions" in (table_schema.metadata or {}):
        return _conform(incoming, table_schema, policy, fill_value, fit=False)
    return incoming


# --- both ---------------------------------------------------------------------------------------------------


def _conform(incoming: Incoming, target, policy, fill_value, fit: bool, explicit: bool = True) -> Incoming:
    """Applies the policy for bad vectors and, with `fit`, casts to `target`."""
    fill = 0.0 if fill_value is None else fill_value
    embedded: List[str] = []
    functions = _embed.entries_of(target)
    if functions:
        filler = _embed.Filler(incoming.schema, target, functions)
        incoming = incoming.map(filler.schema, filler)
        embedded = filler.names
    names = [n for n in _vectors.checked_columns(incoming.schema, target if explicit else None, embedded) if n not in incoming.untyped]
    columns = []
    for name in names:
        index = target.get_field_index(name)
        wanted = target.field(index).type if index >= 0 else incoming.schema.field(name).type
        columns.append(_vectors.Checked(name, incoming.schema.field(name).type, wanted))
    if not columns:
        if not fit or incoming.schema.equals(target, check_metadata=True) and all(f.nullable for f in target):
            return incoming
        return incoming.map(target, lambda batch: fit_batch(batch, target))
    schema = target
    if not fit:
        schema = incoming.schema
        for column in columns:
            index = schema.get_field_index(column.name)
            schema = schema.set(index, pa.field(column.name, column.stored, True, schema.field(index).metadata))

    def conform(batch):
        for column in columns:
            batch = column.apply(batch, policy, fill)
        for column in columns:
            column.learn(batch)
        return fit_batch(batch, schema)

    if policy == "error" and incoming.table is not None and incoming.schema.equals(schema, check_metadata=True):
        for batch in incoming.table.to_batches():  # nothing to change: look, and pass the table on
            conform(batch)
        return incoming
    return incoming.map(schema, conform, None if policy == "error" else _POLICY_ROWS)


def check_not_computed(schema: "pyarrow.Schema", names: Iterable[str]) -> None:
    """ValueError when one of the columns to write is a computed one."""
    if any(field.metadata and b"computed_column" in field.metadata for field in schema):
        from ._computed import refuse_writes

        refuse_writes(schema, names)


def check_existing_schema(existing: "pyarrow.Schema", schema: "pyarrow.Schema") -> None:
    """SchemaMismatchError when a table that may exist has another schema than the one given."""
    if not existing.equals(schema, check_metadata=False):
        raise SchemaMismatchError("Schema Error: Provided schema does not match existing table schema")
