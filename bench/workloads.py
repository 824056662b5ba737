"""The workloads of the table benches; the same code runs on both sides.

Each returns the seconds of one execution (or a list of them). What it needs is opened outside the clock.
"""

import gc
import os
import pathlib
import shutil
import time

import numpy as np
import pyarrow as pa
from lsm_workloads import LsmWorkloads, RocksWorkloads

DIM = 384
TEXT = "a title of ordinary length, number "


def schema():
    return pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("bucket", pa.int32()),
            pa.field("text", pa.utf8()),
            pa.field("vector", pa.list_(pa.float32(), DIM)),
        ]
    )


def batch(first, rows, seed):
    rng = np.random.default_rng(seed)
    vectors = pa.array(rng.standard_normal(rows * DIM, dtype=np.float32))
    return pa.record_batch(
        [
            pa.array(np.arange(first, first + rows, dtype=np.int64)),
            pa.array(rng.integers(0, 1000, rows, dtype=np.int32)),
            pa.array([TEXT + str(i) for i in range(first, first + rows)]),
            pa.FixedSizeListArray.from_arrays(vectors, DIM),
        ],
        schema=schema(),
    )


def queries(count):
    return np.random.default_rng(77).standard_normal((count, DIM), dtype=np.float32)


def clocked(call):
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def clocked_often(call, times=20):
    """The median of a few calls in a row, for calls that take microseconds: the first finds cold what the other process took."""
    found = [clocked(call) for _ in range(times)]
    return sorted(seconds for seconds, _ in found)[times // 2], found[-1][1]


def memory(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024


class Context(LsmWorkloads, RocksWorkloads):
    def __init__(self, lance, lancedb):
        self.lance, self.lancedb = lance, lancedb
        self.tables, self.datasets, self.turns = {}, {}, {}

    def import_time(self):
        return self.import_seconds

    def table(self, uri):
        if uri not in self.tables:
            folder, name = os.path.split(uri)
            self.tables[uri] = self.lancedb.connect(folder).open_table(name.removesuffix(".lance"))
        return self.tables[uri]

    def dataset(self, uri):
        if uri not in self.datasets:
            self.datasets[uri] = self.lance.dataset(uri)
        return self.datasets[uri]

    # --- making data

    def make(self, uri, rows, per_batch=10_000):
        """The table that both sides read."""
        batches = (batch(first, min(per_batch, rows - first), first) for first in range(0, rows, per_batch))
        reader = pa.RecordBatchReader.from_batches(schema(), batches)
        self.lance.write_dataset(reader, uri, schema=schema())

    # --- search

    def search(self, uri, number=0, where=None):
        table, query = self.table(uri), queries(number + 1)[number]

        def run():
            search = table.search(query, vector_column_name="vector").limit(10)
            if where:
                search = search.where(where)
            return search.select(["id"]).to_arrow()

        seconds, found = clocked(run)
        return seconds, found["id"].to_pylist()

    def search_many(self, uri, count):
        table, many = self.table(uri), list(queries(count))
        run = lambda: table.search(many, vector_column_name="vector").limit(10).select(["id"]).to_arrow()  # noqa: E731
        seconds, found = clocked(run)
        return seconds, sorted(zip(found["query_index"].to_pylist(), found["id"].to_pylist()))

    # --- scan and count

    def scan_vectors(self, uri):
        dataset = self.dataset(uri)

        def run():
            table = dataset.to_table(columns=["vector"])
            return table.num_rows

        return clocked(run)

    def scan_and_read_vectors(self, uri):
        """The scan, and one pass over every value: buffers over a mapped file cost nothing until then."""
        dataset = self.dataset(uri)

        def run():
            table = dataset.to_table(columns=["vector"])
            return sum(np.frombuffer(c.flatten().buffers()[1], np.uint8)[::64].max() for c in table["vector"].chunks) > 0

        return clocked(run)

    def scan_filtered(self, uri, where):
        seconds, found = clocked(lambda: self.dataset(uri).to_table(filter=where))
        return seconds, found["id"].to_pylist()

    def count_filtered(self, uri, where):
        return clocked(lambda: self.dataset(uri).count_rows(where))

    # --- take

    def take(self, uri, rows):
        dataset = self.dataset(uri)
        seconds, found = clocked_often(lambda: dataset.take(rows, columns=["id", "text", "vector"]))
        return seconds, found["id"].to_pylist()

    def take_offsets(self, uri, rows):
        table = self.table(uri)
        take = lambda: table.take_offsets(rows).select(["id", "text", "vector"]).to_arrow()  # noqa: E731
        seconds, found = clocked_often(take)
        return seconds, sorted(found["id"].to_pylist())

    # --- open

    def open(self, uri):
        folder, name = os.path.split(uri)
        database, name = self.lancedb.connect(folder), name.removesuffix(".lance")
        seconds, version = clocked(lambda: database.open_table(name).version)
        return seconds, version

    def open_dataset(self, uri):
        return clocked(lambda: self.lance.dataset(uri).version)

    # --- write

    def append_one(self, uri, number):
        table = self.table(uri)
        row = pa.Table.from_batches([batch(number, 1, number)])
        return clocked(lambda: table.add(row))[0]

    def append_rows(self, uri, count, first):
        """One-row appends, the first one makes the table; the time of each."""
        path = pathlib.Path(uri)
        if first == 0 and path.exists():
            shutil.rmtree(path)
        folder, name = os.path.split(uri)
        database, name = self.lancedb.connect(folder), name.removesuffix(".lance")
        row = pa.Table.from_batches([batch(first, 1, first)])
        seconds = []
        if first == 0:
            database.create_table(name, row)
            count -= 1
            first = 1
        table = database.open_table(name)
        for i in range(first, first + count):
            row = pa.Table.from_batches([batch(i, 1, i)])
            seconds.append(clocked(lambda: table.add(row))[0])  # noqa: B023
        return seconds, table.version

    def add_computed(self, uri, rows):
        """A computed column on a narrow table of this side's own, which loses it again outside the clock."""
        path = f"{uri}-{self.lance.__name__}.lance"
        if not os.path.exists(path):
            rng = np.random.default_rng(3)
            columns = {
                "id": np.arange(rows),
                "a": rng.integers(0, 1000, rows, dtype=np.int32),
                "b": rng.standard_normal(rows),
            }
            self.lance.write_dataset(pa.table(columns), path)
        dataset = self.lance.dataset(path)
        seconds, _ = clocked(lambda: dataset.add_columns({"c": "id * 2 + a"}))
        found = dataset.to_table(columns=["c"], limit=5)["c"].to_pylist()
        dataset.drop_columns(["c"])
        return seconds, found

    def narrow_table(self, uri, rows):
        """A narrow table of this side's own, made at the first call."""
        path = f"{uri}-{self.lance.__name__}.lance"
        folder, name = os.path.split(path.removesuffix(".lance"))
        database = self.lancedb.connect(folder)
        if not os.path.exists(path):
            rng = np.random.default_rng(4)
            ids = np.arange(rows)
            columns = {"id": ids, "a": (ids * 7919) % 1000, "b": rng.standard_normal(rows), "text": [f"t{i % 100}" for i in ids]}
            database.create_table(name, pa.table(columns))
        return database.open_table(name)

    def point_filter(self, uri, rows, number):
        table = self.narrow_table(uri, rows)
        seconds, found = clocked(lambda: table.search().where(f"id = {(number * 7919) % rows}").limit(10).to_arrow())
        return seconds, found["a"].to_pylist()

    def change_rows(self, uri, rows, kind, number):
        """An upsert of `number` rows, half of them new ones; or an update or delete of one row in a thousand."""
        table = self.narrow_table(uri, rows)
        turn = self.turns[kind, number] = self.turns.get((kind, number), -1) + 1
        if kind == "upsert":
            old = (np.arange((number + 1) // 2) * 97 + turn) % rows
            new = 10 * rows + turn * number + np.arange(number // 2)
            ids = np.concatenate([old, new])
            source = pa.table({"id": ids, "a": ids % 1000, "b": ids * 0.5, "text": ["new"] * number})
            merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            seconds, done = clocked(lambda: merge.execute(source))
            return seconds, [done.num_updated_rows, done.num_inserted_rows]
        if kind == "update":
            seconds, done = clocked(lambda: table.update(where=f"a = {turn}", values={"b": 1.5}))
            return seconds, done.rows_updated
        seconds, _ = clocked(lambda: table.delete(f"a = {999 - turn}"))
        return seconds, table.count_rows()

    def delete_ids(self, uri, rows, count):
        """Rows deleted one at a time; the time of each."""
        table = self.narrow_table(uri, rows)
        return [clocked(lambda: table.delete(f"id = {(i * 7919) % rows}"))[0] for i in range(count)], table.count_rows()  # noqa: B023

    def make_fragments(self, uri, fragments, rows):
        """A dataset of many small fragments, written in one go."""
        batches = (batch(i * rows, rows, i) for i in range(fragments))
        reader = pa.RecordBatchReader.from_batches(schema(), batches)
        self.lance.write_dataset(reader, uri, max_rows_per_file=rows)

    def compact(self, uri):
        dataset = self.lance.dataset(uri)
        seconds, metrics = clocked(lambda: dataset.optimize.compact_files())
        return seconds, [metrics.fragments_removed, metrics.fragments_added, self.lance.dataset(uri).count_rows()]

    def bulk_load(self, uri, rows, per_batch):
        """Seconds, bytes in, and how far memory rose above what it was before."""
        shutil.rmtree(uri, ignore_errors=True)
        one = batch(0, per_batch, 5)
        # One row first: modules that load at the first write are no part of the load.
        shutil.rmtree(uri + ".first", ignore_errors=True)
        self.lance.write_dataset(pa.Table.from_batches([one.slice(0, 1)]), uri + ".first")
        shutil.rmtree(uri + ".first")
        reader = pa.RecordBatchReader.from_batches(schema(), (one for _ in range(rows // per_batch)))
        gc.collect()
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
        before = memory("VmRSS")
        seconds, _ = clocked(lambda: self.lance.write_dataset(reader, uri, schema=schema()))
        peak = memory("VmHWM") - before
        return seconds, {"bytes": one.nbytes * (rows // per_batch), "peak": peak, "batch": one.nbytes}
