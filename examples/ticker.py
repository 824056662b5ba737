"""A ticker of live prices: written, searched meanwhile, killed, opened again, checkpointed.

    python examples/ticker.py [FOLDER]

A child process upserts quotes into a table with an LSM write path and prints what was acknowledged. This process searches the
same table while that goes on, kills the child in the middle of it, and shows that nothing acknowledged is lost.
"""

import multiprocessing
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import glaive
import pyarrow as pa

SYMBOLS = [f"{a}{b}{c}" for a in "ABCDEFGHIJ" for b in "AEIOU" for c in "KLMNPRST"]
SCHEMA = pa.schema(
    [
        pa.field("symbol", pa.string(), nullable=False),
        pa.field("price", pa.float64()),
        pa.field("tick", pa.int64()),
        pa.field("shape", pa.list_(pa.float32(), 8)),  # the last eight moves
    ]
)


def write_quotes(folder, sent):
    """Upserts quotes until it is killed; `sent` gets the number of each tick once it is acknowledged."""
    table = glaive.connect(folder).open_table("quotes")
    upsert = table.merge_insert("symbol").when_matched_update_all().when_not_matched_insert_all()
    rng = random.Random(7)
    prices = {symbol: 100.0 for symbol in SYMBOLS}
    moves = {symbol: [0.0] * 8 for symbol in SYMBOLS}
    tick = 0
    while True:
        tick += 1
        rows = []
        for symbol in rng.sample(SYMBOLS, 20):
            move = rng.gauss(0, 1)
            prices[symbol] += move
            moves[symbol] = [*moves[symbol][1:], move]
            rows.append({"symbol": symbol, "price": prices[symbol], "tick": tick, "shape": moves[symbol]})
        upsert.execute(pa.Table.from_pylist(rows, schema=SCHEMA))
        sent.send(tick)


def newest_tick(table):
    rows = table.search().order_by([{"column_name": "tick", "ascending": False}]).limit(1).to_list()
    return rows[0]["tick"] if rows else 0


def main():
    given = sys.argv[1] if len(sys.argv) > 1 else None
    folder = pathlib.Path(given or tempfile.mkdtemp(prefix="ticker-"))
    db = glaive.connect(folder)
    table = db.create_table("quotes", schema=SCHEMA, mode="overwrite")
    table.set_unenforced_primary_key("symbol")
    table.set_lsm_write_spec(glaive.LsmWriteSpec.bucket("symbol", 2))

    context = multiprocessing.get_context("spawn")
    received, sent = context.Pipe(duplex=False)
    writer = context.Process(target=write_quotes, args=(str(folder), sent), daemon=True)
    writer.start()
    acknowledged = 0
    rising = [0.0] * 7 + [3.0]  # flat, then a jump
    for look in range(5):
        until = time.monotonic() + 0.5
        while time.monotonic() < until or not acknowledged:
            if received.poll(0.1):
                acknowledged = received.recv()
        began = time.perf_counter()
        found = table.search(rising).where("price > 95").limit(3).to_list()
        elapsed = (time.perf_counter() - began) * 1000
        print(f"{acknowledged:6,} ticks acknowledged; most like a jump: ", end="")
        print(", ".join(f"{r['symbol']} {r['price']:.2f}" for r in found) + f"  ({elapsed:.1f} ms)")

    writer.kill()
    writer.join()
    while received.poll(0):
        try:
            acknowledged = received.recv()
        except EOFError:
            break
    assert writer.exitcode == -signal.SIGKILL
    seen = newest_tick(glaive.connect(folder).open_table("quotes"))
    print(f"killed: {acknowledged:,} ticks were acknowledged, the newest in the table is {seen:,}")
    assert seen >= acknowledged

    done = table.checkpoint_lsm()
    base = table.search().use_lsm(False).limit(None).to_arrow()
    print(f"checkpoint: {done.generations_consumed} generations merged in {done.passes} passes; base table: {base.num_rows} rows")
    assert done.converged and newest_tick(table) == seen
    for bucket in table.get_lsm_stats()["buckets"]:
        print(f"  shard {bucket['shard_id']}: epoch {bucket['writer_epoch']}, {len(bucket['generations'])} generations left")
    if given is None:
        table.close_lsm_writers()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
