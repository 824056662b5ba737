"""What `write_dataset` accepts, as Arrow streams; timestamps; query vectors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.dataset


def _cast(table, schema):
    return table if schema is None or table.schema.equals(schema) else table.cast(schema)


def _from_iterable(data, schema):
    if schema is None:
        raise ValueError("Must provide schema to write dataset from RecordBatch iterable")

    def batches():
        for item in data:
            if isinstance(item, pa.RecordBatch):
                yield item
            elif isinstance(item, pa.Table):
                yield from item.to_batches()
            elif isinstance(item, dict):
                yield pa.RecordBatch.from_pylist([item], schema=schema)
            else:
                raise TypeError(f"expected record batches, the iterable gave a {type(item).__name__}")

    return pa.RecordBatchReader.from_batches(schema, batches())


def to_stream(data, schema=None):
    """`data` as something the engine takes: a table, a batch reader, or a bare schema.

    Takes Arrow tables, batches, readers, datasets and scanners, pandas and polars frames, a list of dicts, a dict of
    columns, an iterable of batches with `schema`, and anything with `__arrow_c_stream__`.
    """
    if isinstance(data, pa.Schema):
        return data
    if isinstance(data, pa.Table):
        return _cast(data, schema)
    if isinstance(data, pa.RecordBatch):
        return _cast(pa.Table.from_batches([data]), schema)
    if isinstance(data, pa.RecordBatchReader):
        # Arrow casts streams through views, which refuse some nested nulls: only where a type changes.
        return data if schema is None or data.schema.equals(schema, check_metadata=True) else data.cast(schema)
    if isinstance(data, pyarrow.dataset.Dataset):
        return to_stream(data.scanner().to_reader(), schema)
    if isinstance(data, pyarrow.dataset.Scanner):
        return to_stream(data.to_reader(), schema)
    if isinstance(data, dict):
        return pa.Table.from_pydict(data, schema=schema)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return pa.Table.from_pylist(data, schema=schema)
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        table = pa.Table.from_pandas(data, schema=schema, preserve_index=False)
        return table.replace_schema_metadata({k: v for k, v in (table.schema.metadata or {}).items() if k != b"pandas"})
    if module == "polars":
        if type(data).__name__ == "LazyFrame":
            data = data.collect()
        return _cast(data.to_arrow(), schema)
    if hasattr(data, "__arrow_c_stream__"):
        return to_stream(pa.RecordBatchReader.from_stream(data), schema)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return _from_iterable(data, schema)
    raise TypeError(f"Unknown data type {type(data)}. Please check whether it is an Arrow table, a frame or an iterable")


def to_microseconds(when):
    """A point in time (datetime, ISO text, pandas timestamp) in microseconds since the epoch, UTC.

    Without zone it is local time, as `LanceDataset.versions` shows it.
    """
    if isinstance(when, str):
        try:
            when = dt.datetime.fromisoformat(when)
        except ValueError:
            raise ValueError(f"Failed to parse timestamp string {when}: give ISO text such as 2030-01-31 12:00:00") from None
    elif hasattr(when, "to_pydatetime"):
        when = when.to_pydatetime()
    if not isinstance(when, dt.datetime):
        if isinstance(when, dt.date):
            when = dt.datetime(when.year, when.month, when.day)
        else:
            raise TypeError(f"Unrecognized version timestamp {when!r} of type {type(when).__name__}")
    return (when.astimezone(dt.timezone.utc) - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(microseconds=1)


def to_local_time(timestamp_us):
    """Microseconds since the epoch as a datetime without zone, local time."""
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return (epoch + dt.timedelta(microseconds=timestamp_us)).astimezone().replace(tzinfo=None)


def to_queries(q):
    """Query vectors in a form that the engine takes."""
    if isinstance(q, pa.Scalar):
        q = q.values if hasattr(q, "values") else q.as_py()
    if hasattr(q, "detach") and hasattr(q, "numpy"):  # a torch tensor
        q = q.detach().cpu().numpy()
    return q
