"""Workloads of the LSM write path; the same code runs on both sides, but for the keywords that only one has."""

import statistics
import threading
import time
import uuid

import numpy as np
import pyarrow as pa

SHARD = str(uuid.uuid5(uuid.NAMESPACE_URL, "bench"))


def lsm_schema(dim, payload):
    fields = [
        pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
        pa.field("text", pa.utf8()),
    ]
    if dim:
        fields.append(pa.field("vector", pa.list_(pa.float32(), dim)))
    if payload:
        fields.append(pa.field("payload", pa.binary()))
    return pa.schema(fields)


def lsm_rows(first, rows, dim, payload, seed=0):
    rng = np.random.default_rng(seed + first)
    columns = [pa.array(np.arange(first, first + rows, dtype=np.int64)), pa.array([f"text {i}" for i in range(first, first + rows)])]
    if dim:
        vectors = pa.array(rng.standard_normal(rows * dim, dtype=np.float32))
        columns.append(pa.FixedSizeListArray.from_arrays(vectors, dim))
    if payload:
        body = rng.integers(0, 256, rows * payload, dtype=np.uint8).tobytes()
        columns.append(pa.array([body[i * payload : (i + 1) * payload] for i in range(rows)], pa.binary()))
    return pa.record_batch(columns, schema=lsm_schema(dim, payload))


class LsmWorkloads:
    """Mixed into `Context`, which has `lance`."""

    def lsm_make(self, path, base_rows=0, dim=0, payload=0):
        """A table with a primary key and an unsharded LSM write path."""
        self.dim, self.payload = dim, payload
        data = pa.Table.from_batches([lsm_rows(0, base_rows, dim, payload)] if base_rows else [], lsm_schema(dim, payload))
        dataset = self.lance.write_dataset(data, path)
        dataset.initialize_mem_wal(unsharded=True)

    def lsm_open(self, path, **options):
        """Seconds until the writer is there, the log replayed."""
        dataset = self.lance.dataset(path)
        began = time.perf_counter()
        self.lsm_path, self.writer = path, dataset.mem_wal_writer(SHARD, **options)
        return time.perf_counter() - began

    def lsm_close(self):
        self.writer.close()
        self.writer = None

    def lsm_drop(self):
        """Lets go of the writer without a clean close: its rows stay in the log."""
        self.writer = None

    def lsm_put(self, first, rows, count):
        """The median of `count` puts of `rows` rows, in seconds."""
        batches = [lsm_rows(first + i * rows, rows, self.dim, self.payload) for i in range(count)]
        seconds = []
        for batch in batches:
            began = time.perf_counter()
            self.writer.put(batch)
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)

    def lsm_put_threads(self, first, threads, count):
        """Rows per second of `threads` callers that put single rows."""
        batches = [[lsm_rows(first + t * count + i, 1, self.dim, self.payload) for i in range(count)] for t in range(threads)]
        gate = threading.Barrier(threads + 1)

        def put(own):
            gate.wait()
            for batch in own:
                self.writer.put(batch)

        workers = [threading.Thread(target=put, args=(own,)) for own in batches]
        for worker in workers:
            worker.start()
        gate.wait()
        began = time.perf_counter()
        for worker in workers:
            worker.join()
        return threads * count / (time.perf_counter() - began)

    def lsm_sustained(self, first, rows, count):
        """Rows per second of `count` puts one after the other; the batches exist before the clock starts."""
        same = lsm_rows(0, rows, self.dim, self.payload)
        columns = same.columns[1:]
        batches = [
            pa.record_batch([pa.array(np.arange(first + i * rows, first + (i + 1) * rows, dtype=np.int64)), *columns], schema=same.schema)
            for i in range(count)
        ]
        began = time.perf_counter()
        for batch in batches:
            self.writer.put(batch)
        return rows * count / (time.perf_counter() - began)

    def lsm_put_while_compacting(self, folder, name, durability, base_rows, rounds, quiet, most):
        """Latencies of rows added one by one: (without, with) a compaction by upkeep beside them, in turn; and how long each
        compaction took. At most `most` rows per compaction, as it would be a matter of luck how many it sees."""
        self.dim = self.payload = 0
        table = self.lancedb.connect(folder, storage_options={"lsm_upkeep_max_wait": "1h"}).create_table(
            name, pa.Table.from_batches([lsm_rows(0, base_rows, 0, 0)])
        )
        table.set_lsm_write_spec(self.lancedb.LsmWriteSpec.unsharded().with_writer_config_defaults({"durability": durability}))
        rows, alone, beside, compactions = base_rows // 20, [], [], []  # what a memtable holds is not reached
        fresh = iter(range(10 * base_rows, 2**40))

        def put(into):
            batch = lsm_rows(next(fresh), 1, 0, 0)
            began = time.perf_counter()
            table.add(batch)
            into.append(time.perf_counter() - began)

        for i in range(rounds):
            for _ in range(quiet):
                put(alone)
            for generation in range(4):  # the fourth starts the compaction; most of their keys are in the base
                table.add(lsm_rows(rows * (4 * i + generation), rows, 0, 0))
                table.flush_lsm()
            before, began = table.version, time.perf_counter()
            for n in range(most):
                put(beside)
                if n % 8 == 7 and table.version != before:
                    break
            while table.version == before:
                time.sleep(0.001)
                table.checkout_latest()
            compactions.append(time.perf_counter() - began)
        table.close_lsm_writers()
        return alone, beside, compactions

    def lsm_scan_key(self, keys):
        """The median of finding one key through the writer."""
        seconds = []
        for key in keys:
            began = time.perf_counter()
            found = self.writer.lsm_scanner().filter(f"id = {key}").to_table()
            seconds.append(time.perf_counter() - began)
            assert found.num_rows == 1
        return statistics.median(seconds)

    def lsm_lookup(self, path, generations, keys):
        """The median of a planned point lookup over base and generations."""
        mem_wal = self.lance.mem_wal
        dataset = self.lance.dataset(path)
        snapshot = mem_wal.ShardSnapshot(SHARD).with_current_generation(len(generations) + 1)
        for number, directory in generations:
            snapshot.with_sstable(number, directory)
        planner = mem_wal.LsmPointLookupPlanner(dataset, [snapshot])
        seconds = []
        for key in keys:
            began = time.perf_counter()
            found = planner.plan_lookup(pa.array([key], pa.int64())).to_table()
            seconds.append(time.perf_counter() - began)
            assert found.num_rows == 1
        return statistics.median(seconds)

    def lsm_table_search(self, path, name, k=10, rounds=15):
        """The median of an exact search through a table handle: (seconds, distances)."""
        table = self.lancedb.connect(path).open_table(name)
        query = np.random.default_rng(5).standard_normal(self.dim, dtype=np.float32)
        seconds = []
        for _ in range(rounds):
            began = time.perf_counter()
            found = table.search(query).limit(k).select(["id"]).to_arrow()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds), found["_distance"].to_pylist()


class RocksWorkloads:
    """RocksDB through rocksdict, for orientation: keys and values as bytes, one write per call."""

    def rocks_put(self, path, rows, payload, count, sync, threads=1):
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        db = rocksdict.Rdict(path, options)
        write = rocksdict.WriteOptions()
        write.sync = sync
        body = np.random.default_rng(0).integers(0, 256, payload, dtype=np.uint8).tobytes()
        seconds = []

        def put(first):
            batch = rocksdict.WriteBatch(raw_mode=True)
            for i in range(rows):
                batch.put((first + i).to_bytes(8, "big"), body)
            began = time.perf_counter()
            db.write(batch, write)
            seconds.append(time.perf_counter() - began)

        if threads == 1:
            for i in range(count):
                put(i * rows)
            result = statistics.median(seconds)
        else:
            workers = [threading.Thread(target=lambda t=t: [put((t * count + i) * rows) for i in range(count)]) for t in range(threads)]
            began = time.perf_counter()
            [w.start() for w in workers]
            [w.join() for w in workers]
            result = threads * count * rows / (time.perf_counter() - began)
        db.close()
        rocksdict.Rdict.destroy(path)
        return result
