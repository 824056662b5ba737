"""Blocking operations on one table, shared by the sync and the async class."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _embed, _ingest
from ._plan import Plan, check_count, check_positions
from ._progress import report
from ._results import AddResult, DeleteResult
from ._sql import as_sql
from ._unsupported import refuse
from .exceptions import (
    AlreadyExistsError,
    InvalidInputError,
    InvalidRefError,
    InvalidTypeError,
    NotFoundError,
    OutOfRangeError,
    RefExistsError,
    RefNotFoundError,
)

if TYPE_CHECKING:
    import pyarrow

_U64 = 2**64 - 1


def check_version(version: Union[int, str]) -> Union[int, str]:
    """A version number or the name of a tag; TypeError for anything else, OverflowError for a negative number."""
    if isinstance(version, str):
        return version
    if isinstance(version, bool) or not hasattr(version, "__index__"):
        raise InvalidTypeError(f"a version is a number or the name of a tag, not {version!r}")
    number = check_count("version", version, _U64)
    if number >= 2**63:  # no table gets that far
        raise _no_version(number)
    return number


def list_indices(native) -> list:
    """No index is no error; what an index is cannot be told yet."""
    if native.stats()["num_indices"]:
        raise refuse("list_indices of a table that has indices")
    return []


def index_stats(native, index_name: str):
    """None for an index that does not exist, as LanceDB has it."""
    if not isinstance(index_name, str):
        raise InvalidTypeError(f"an index name is text, not {index_name!r}")
    if native.stats()["num_indices"]:
        raise refuse("index_stats of a table that has indices")
    return None


def check_filter(filter: Optional[str]) -> Optional[str]:
    if filter is None:
        return None
    filter = as_sql(filter)
    if not isinstance(filter, str):
        raise InvalidTypeError(f"a filter must be SQL text or an Expr, not {type(filter).__name__}")
    if not filter.strip():
        raise InvalidInputError("the filter is empty: an expression is expected")
    return filter


def add(native, data, mode, on_bad_vectors, fill_value, progress, write_parallelism, allow_external_blobs) -> AddResult:
    mode = "append" if mode is None else mode
    if mode not in ("append", "overwrite"):
        raise InvalidInputError(f"Invalid mode: {mode}; 'append' or 'overwrite' is expected")
    if write_parallelism is not None and check_count("write_parallelism", write_parallelism) == 0:
        raise InvalidInputError("write_parallelism must be greater than 0")
    if allow_external_blobs:
        raise refuse("add with allow_external_blob_outside_bases")
    if mode == "append":
        schema = native.schema()
        incoming = _ingest.for_append(data, schema, on_bad_vectors, fill_value)
        if incoming.schema is not schema:
            _ingest.check_not_computed(schema, incoming.schema.names)
    else:
        incoming = _ingest.for_new_table(data, None, on_bad_vectors, fill_value)
        _ingest.check_not_computed(native.schema(), incoming.schema.names)
    callback = report(progress, incoming.total_rows, incoming.bytes_for)
    version = incoming.send(lambda payload: native.add(payload, mode=mode, progress=callback))
    if callback is not None:
        callback.finish()
    return AddResult(version)


def delete(native, where) -> DeleteResult:
    where = as_sql(where)
    if where is None or not isinstance(where, str):
        raise InvalidTypeError(f"a predicate must be SQL text or an Expr, not {type(where).__name__}")
    deleted, version = native.delete(check_filter(where))
    return DeleteResult(deleted, version)


def checkout(native, version) -> None:
    version = check_version(version)
    try:
        native.checkout(version)
    except NotFoundError:
        raise _no_version(version) from None


def restore(native, version) -> None:
    if version is None:
        native.restore()
        return
    version = check_version(version)
    try:
        native.restore(version)
    except NotFoundError:
        raise _no_version(version) from None


def _no_version(version) -> NotFoundError:
    return NotFoundError(f"Version {version} no longer exists. Was it cleaned up?")


def list_versions(native) -> List[Dict[str, Any]]:
    return [
        {
            "version": v["version"],
            "timestamp": datetime.fromtimestamp(v["timestamp_us"] // 1_000_000).replace(microsecond=v["timestamp_us"] % 1_000_000),
            "metadata": v["metadata"],
        }
        for v in native.list_versions()
    ]


def head(native, n) -> "pyarrow.Table":
    return native.head(check_count("n", n))


def take_offsets(native, offsets) -> Plan:
    plan = Plan(native)
    plan.offsets = sorted(check_positions("offsets", offsets))
    return plan


def take_row_ids(native, row_ids) -> Plan:
    plan = Plan(native)
    plan.row_ids = sorted(set(check_positions("row_ids", row_ids)))
    return plan


def embedding_functions(native) -> dict:
    return _embed.functions_of(native.schema())


def embedding_for(native, column: Optional[str]):
    """(vector column, its function) for a search by text or other value; (column, None) when there is no function."""
    functions = embedding_functions(native)
    if column is None and len(functions) == 1:
        column = next(iter(functions))
    if column is None:
        column = "vector" if "vector" in functions else None
    return column, functions[column].function if column in functions else None


def dataset(native, options):
    """The table's present version as a `glaive.lance.LanceDataset`."""
    from . import lance

    branch = native.current_branch()
    if branch is None:
        options.setdefault("version", native.version())
        return lance.dataset(native.uri, **options)
    version = options.pop("version", native.version())
    if not isinstance(version, tuple):
        version = (branch, version)
    return lance.dataset(native.uri, **options).checkout_version(version)


def lazy_frame(native, batch_size):
    """A Polars LazyFrame; columns and row limits that Polars asks for are pushed into the scan."""
    import polars

    if batch_size is not None and check_count("batch_size", batch_size) == 0:
        raise InvalidInputError("batch_size must be greater than 0")
    schema = polars.from_arrow(native.schema().empty_table()).schema

    def scan(with_columns, predicate, n_rows, wanted_batch):
        plan = Plan(native)
        if with_columns is not None:
            plan.columns = [_quoted(name) for name in with_columns]
        plan.limit = n_rows if predicate is None else None
        for batch in plan.to_reader(wanted_batch or batch_size):
            frame = polars.from_arrow(batch)
            if with_columns is not None:
                frame.columns = with_columns
            yield frame if predicate is None else frame.filter(predicate)

    from polars.io.plugins import register_io_source

    return register_io_source(scan, schema=schema)


def _quoted(name: str) -> str:
    from ._glaive import format_field_path

    return format_field_path([name])


# --- tags ---------------------------------------------------------------------------------------------------


def _check_tag(tag) -> str:
    if not isinstance(tag, str):
        raise InvalidTypeError(f"a tag is text, not {tag!r}")
    return tag


def _tag_call(call, *args):
    """Engine errors of tag calls, as the RuntimeErrors that LanceDB raises there."""
    try:
        return call(*args)
    except NotFoundError as e:
        raise RefNotFoundError(str(e)) from None
    except AlreadyExistsError as e:
        raise RefExistsError(str(e)) from None
    except OutOfRangeError:
        raise
    except InvalidInputError as e:
        raise InvalidRefError(str(e)) from None


def ref_call(call, *args, **options):
    """Engine errors of branches and clones, likewise."""
    return _tag_call(lambda: call(*args, **options))


def list_tags(native) -> Dict[str, Dict[str, int]]:
    return {name: {"version": t["version"], "manifest_size": t["manifest_size"]} for name, t in native.list_tags().items()}


def tag_version(native, tag) -> int:
    return _tag_call(native.tag_version, _check_tag(tag))


def create_tag(native, tag, version) -> None:
    _tag_call(native.create_tag, _check_tag(tag), check_count("version", version, _U64))


def update_tag(native, tag, version) -> None:
    _tag_call(native.update_tag, _check_tag(tag), check_count("version", version, _U64))


def delete_tag(native, tag) -> None:
    _tag_call(native.delete_tag, _check_tag(tag))
