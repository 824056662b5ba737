"""Fills the vector columns of incoming rows by the embedding functions of a table."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ._lazy import np, pa
from .exceptions import InvalidInputError

if TYPE_CHECKING:
    import pyarrow

_KEY = b"embedding_functions"


def functions_of(schema: "pyarrow.Schema") -> Dict[str, Any]:
    """Vector column -> EmbeddingFunctionConfig, out of a table's schema. KeyError for a function that is not registered."""
    if _KEY not in (schema.metadata or {}):
        return {}
    from .embeddings.registry import get_registry

    return get_registry().parse_functions(schema.metadata)


class _Entry:
    """A function as the metadata describes it. It is made when it is needed: data that brings its vectors never asks for it."""

    def __init__(self, description: Dict[str, Any]):
        self._description = description
        self.vector_column: str = description["vector_column"]
        self.source_column: str = description["source_column"]

    @functools.cached_property
    def function(self) -> Any:
        from .embeddings.registry import get_registry

        return get_registry()._parse(self._description).function


def entries_of(schema: "pyarrow.Schema") -> Dict[str, Any]:
    """Like `functions_of`, with functions that are made only when they are used."""
    text = (schema.metadata or {}).get(_KEY)
    return {} if text is None else {entry["vector_column"]: _Entry(entry) for entry in json.loads(text)}


def with_functions(schema: "pyarrow.Schema", configs: Optional[List[Any]]) -> "pyarrow.Schema":
    """The schema with these functions in its metadata."""
    if not configs:
        return schema
    from .embeddings.registry import get_registry

    metadata = get_registry().get_table_metadata(list(configs)) or {}
    encoded = {key.encode(): value.encode() for key, value in metadata.items()}
    return schema.with_metadata({**(schema.metadata or {}), **encoded})


def vector_type(config: Any) -> "pyarrow.DataType":
    """What a vector column has that the schema does not mention: float32 vectors of the function's dimension."""
    return pa.list_(pa.float32(), config.function.ndims())


class Filler:
    """Computes the vectors that batches of one schema lack: columns that are missing, or null in all rows of a batch."""

    def __init__(self, source: "pyarrow.Schema", target: Optional["pyarrow.Schema"], configs: Dict[str, Any]):
        self.schema = source
        self._work: List[Tuple[Any, Any]] = []
        for name, config in configs.items():
            index = -1 if target is None else target.get_field_index(name)
            wanted = None if index < 0 else target.field(index).type
            there = source.get_field_index(name)
            if there < 0 and source.get_field_index(config.source_column) < 0:
                raise InvalidInputError(
                    f"column {name!r} is made from column {config.source_column!r} by an embedding function, and the data has "
                    "neither"
                )
            if there >= 0 and not pa.types.is_null(source.field(there).type):
                wanted = source.field(there).type
            elif wanted is None:
                wanted = vector_type(config)
            if there < 0:
                self.schema = self.schema.append(pa.field(name, wanted))
            else:
                self.schema = self.schema.set(there, pa.field(name, wanted))
            self._work.append((config, wanted))

    @property
    def names(self) -> List[str]:
        """The vector columns."""
        return [config.vector_column for config, _ in self._work]

    def __call__(self, batch: "pyarrow.RecordBatch") -> "pyarrow.RecordBatch":
        columns = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
        for config, wanted in self._work:
            vectors = columns.get(config.vector_column)
            if vectors is not None and vectors.null_count < len(vectors):
                continue
            source = columns.get(config.source_column)
            if source is None or len(source) == 0:
                columns[config.vector_column] = pa.nulls(len(batch), wanted)
                continue
            columns[config.vector_column] = _vectors(config, source, wanted)
        return pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)


def _vectors(config: Any, source: "pyarrow.Array", wanted: "pyarrow.DataType") -> "pyarrow.Array":
    made = config.function.compute_source_embeddings_with_retry(source)
    if len(made) != len(source):
        raise InvalidInputError(
            f"the embedding function of column {config.vector_column!r} returned {len(made)} vectors for {len(source)} values"
        )
    if not pa.types.is_fixed_size_list(wanted):
        return pa.array([None if vector is None else list(vector) for vector in made], wanted)
    size = wanted.list_size
    good = [vector is not None and len(vector) == size for vector in made]
    numbers = np.zeros((len(made), size), np.float64)
    for row, (vector, fits) in enumerate(zip(made, good)):
        if fits:
            numbers[row] = vector
    values = pa.array(numbers.ravel()).cast(wanted.value_type, safe=False)
    return pa.FixedSizeListArray.from_arrays(values, type=wanted, mask=pa.array([not fits for fits in good]))
