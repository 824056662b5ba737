#!/usr/bin/env python3
"""The LSM write path: ours, pylance and RocksDB in one run, and what a plain file costs on this disk.

Each side runs in a process of its own on the same rows. The durability of each line is named: `os` rows survive the death of
the process, `fsync` rows a power cut; pylance never syncs. RocksDB (`.venv-upstream/bin/pip install rocksdict`) is for
orientation: a key-value store without columns or files of a table format.

    bench_lsm.py [--only TEXT] [--rows N] [--json FILE] [--folder DIR]
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import bench_tables
import side
from bench_tables import Row, print_table, shown


def plain_file(folder, size, sync, count=200):
    """The median of writing a file and linking it into place, and, with `sync`, of syncing it and its directory.

    The files stay: for seconds after a deletion ext4 looks at each inode that it may not give away again yet, which made
    whatever was measured next twice as slow.
    """
    os.makedirs(folder)
    body = os.urandom(size)
    seconds = []
    for i in range(count):
        began = time.perf_counter()
        temporary = f"{folder}/.tmp{i}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, body)
        if sync:
            os.fsync(descriptor)
        os.close(descriptor)
        os.link(temporary, f"{folder}/{i}")
        os.unlink(temporary)
        if sync:
            directory = os.open(folder, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.rows = options, folder, []
        self.env = {"PYTHONPATH": str(bench_tables.ROOT / "python"), "GLAIVE_AUTO_MAINTENANCE": "0", "GLAIVE_LSM_UPKEEP": "0"}
        self.ours = side.Side("ours", str(bench_tables.VENV), "glaive.lance", "glaive", self.env)
        self.theirs = side.Side("theirs", str(bench_tables.UPSTREAM), "lance", "lancedb")
        self.serial = 0

    def path(self, name):
        self.serial += 1
        return f"{self.folder}/{name}-{self.serial}.lance"

    def add(self, name, ours, theirs, target, reached, limit=None, note=""):
        self.rows.append(Row(name, ours, theirs, target, reached, limit, note))
        print(f"  … {name}: {shown(ours)}, theirs {shown(theirs)} {note}", file=sys.stderr, flush=True)

    def wanted(self, name):
        return self.options.only in name

    def opened(self, one, name, make=None, **options):
        path = self.path(name)
        one.call("lsm_make", path=path, **(make or {}))
        one.call("lsm_open", path=path, **options)
        return path

    def rocks(self, **args):
        try:
            return self.theirs.call("rocks_put", path=f"{self.folder}/rocks{self.path('r')}".replace("/rocks/", "/rocks-"), **args)
        except RuntimeError:
            return None

    def puts(self):
        for rows in (1, 100):
            name = f"durable put of {rows} row{'s' if rows > 1 else ''}"
            if not self.wanted(name):
                continue
            self.opened(self.theirs, "default")
            theirs_default = self.theirs.call("lsm_put", first=0, rows=rows, count=15)
            self.theirs.call("lsm_close")
            self.opened(self.theirs, "best", max_wal_flush_interval_ms=1)
            for level in ("os", "fsync"):
                self.opened(self.ours, level, durability=level)
                limit = plain_file(self.path("plain"), 1200 + rows * 40, level == "fsync")
                ours, theirs = [], []
                for turn in range(3):  # in turn, so that a noisy moment hits both
                    ours.append(self.ours.call("lsm_put", first=turn * 10**6, rows=rows, count=100))
                    theirs.append(self.theirs.call("lsm_put", first=turn * 10**6, rows=rows, count=60))
                ours, theirs = statistics.median(ours), statistics.median(theirs)
                rocks = self.rocks(rows=rows, payload=40, count=200, sync=level == "fsync")
                self.ours.call("lsm_close")
                note = f"pylance as it comes {shown(theirs_default)} ({theirs_default / ours:.0f} ×); RocksDB {shown(rocks)}"
                reached = ours <= 1.5 * limit and (level == "fsync" or (theirs >= 3 * ours and theirs_default >= 300 * ours))
                target = "≤ 1.5 × limit, ≥ 3 × its best, ≥ 300 × its default" if level == "os" else "≤ 1.5 × limit"
                self.add(f"{name}, {level}", ours, theirs if level == "os" else None, target, reached, limit, note)
            self.theirs.call("lsm_close")

    def callers(self):
        if not self.wanted("16 callers"):
            return
        self.opened(self.ours, "callers", durability="fsync")
        one = self.ours.call("lsm_put_threads", first=0, threads=1, count=150)
        sixteen = self.ours.call("lsm_put_threads", first=10**6, threads=16, count=60)
        self.ours.call("lsm_close")
        rocks = self.rocks(rows=1, payload=40, count=60, sync=True, threads=16)
        note = f"{sixteen:,.0f} rows/s, one caller {one:,.0f} ({sixteen / one:.1f} ×); RocksDB {rocks or 0:,.0f} rows/s"
        self.add("16 callers of single rows, fsync", 1 / sixteen, None, "≥ 8 × the rows of one", sixteen >= 8 * one, None, note)

    def sustained(self):
        if not self.wanted("sustained"):
            return
        make = {"payload": 1600}
        self.opened(self.ours, "sustained", make, durability="os")
        self.opened(self.theirs, "sustained", make, max_wal_flush_interval_ms=5)
        ours = max(self.ours.call("lsm_sustained", first=i * 10**6, rows=1000, count=60) for i in range(3))
        theirs = max(self.theirs.call("lsm_sustained", first=i * 10**6, rows=1000, count=60) for i in range(2))
        self.theirs.call("lsm_close")
        self.opened(self.theirs, "lazy", make, durable_write=False)
        lazy = max(self.theirs.call("lsm_sustained", first=i * 10**6, rows=1000, count=60) for i in range(3))
        self.theirs.call("lsm_close")
        self.ours.call("lsm_close")
        # Rows that are only in memory are another thing: told, not compared.
        note = f"{ours:,.0f} rows/s ({ours * 1.6e-6:.2f} GB/s), theirs {theirs:,.0f}; {lazy:,.0f} without a log on the way (not durable)"
        self.add("sustained puts of 1,000 rows × 1.6 KB, os (per row)", 1 / ours, 1 / theirs, "≥ 2 ×", ours >= 2 * theirs, None, note)

    def lookups(self):
        if not self.wanted("lookup"):
            return
        rows = self.options.rows
        path = self.path("lookup")
        self.ours.call("lsm_make", path=path, base_rows=rows)
        self.ours.call("lsm_open", path=path)
        self.ours.call("lsm_put", first=2 * rows, rows=1000, count=5)
        self.ours.call("lsm_close")
        shard = next(pathlib.Path(path, "_mem_wal").iterdir())
        generations = [(1, next(p.name for p in shard.iterdir() if "_gen_" in p.name))]
        targets = {"generation": list(range(2 * rows, 2 * rows + 4000, 40)), "base": list(range(0, rows, rows // 100))}
        for where, keys in targets.items():
            times = {}
            for one in (self.ours, self.theirs):
                one.call("lsm_lookup", path=path, generations=generations, keys=keys)
                times[one.name] = one.call("lsm_lookup", path=path, generations=generations, keys=keys)
            ours, theirs = times["ours"], times["theirs"]
            self.add(f"point lookup in the {where} ({rows:,} rows in the base)", ours, theirs, "≤ 25 µs", ours <= 25e-6)
        times = {}
        for one in (self.ours, self.theirs):
            self.opened(one, "memtable")
            one.call("lsm_put", first=0, rows=100, count=20)
            one.call("lsm_scan_key", keys=range(0, 2000, 40))
            times[one.name] = one.call("lsm_scan_key", keys=range(0, 2000, 20))
            one.call("lsm_close")
        ours, theirs = times["ours"], times["theirs"]
        self.add("point lookup in the memtable (scan by key)", ours, theirs, "≤ 25 µs", ours <= 25e-6)

    def search(self):
        if not self.wanted("vector search"):
            return
        base, fresh, dim = 100_000, 10_000, 128
        self.ours.call("lsm_make", path=f"{self.folder}/plain.lance", base_rows=base + fresh, dim=dim)
        self.ours.call("lsm_make", path=f"{self.folder}/fresh.lance", base_rows=base, dim=dim)
        self.ours.call("lsm_open", path=f"{self.folder}/fresh.lance")
        self.ours.call("lsm_put", first=base, rows=1000, count=fresh // 1000)
        plain, _ = self.ours.call("lsm_table_search", path=self.folder, name="plain")
        seconds, _ = self.ours.call("lsm_table_search", path=self.folder, name="fresh")
        self.ours.call("lsm_close")
        note = f"a plain table of {base + fresh:,} rows: {shown(plain)}"
        self.add("vector search, base 100 k + log 10 k", seconds, None, "≤ 1.3 × plain", seconds <= 1.3 * plain, plain, note)

    def replay(self):
        if not self.wanted("replay"):
            return
        path = self.path("replay")
        self.theirs.call("lsm_make", path=path)
        self.theirs.call("lsm_open", path=path, max_wal_flush_interval_ms=1, max_memtable_rows=200_000)
        self.theirs.call("lsm_put", first=0, rows=1000, count=100)
        saved = self.path("saved")
        shutil.copytree(path, saved)
        times = {"ours": [], "theirs": []}
        for _ in range(3):
            for one in (self.ours, self.theirs):
                copy = self.path("copy")
                shutil.copytree(saved, copy)
                level = {"durability": "os"} if one is self.ours else {}
                times[one.name].append(one.call("lsm_open", path=copy, max_memtable_rows=200_000, **level))
                one.call("lsm_drop")
        ours, theirs = min(times["ours"]), min(times["theirs"])
        self.add("replay of 100 k rows at open", ours, theirs, "≥ 5 ×", theirs >= 5 * ours)

    def compaction(self):
        for level in ("os", "fsync"):
            name = f"p99 of single rows while upkeep compacts, {level}"
            if not self.wanted(name):
                continue
            one = side.Side("ours", str(bench_tables.VENV), "glaive.lance", "glaive", {**self.env, "GLAIVE_LSM_UPKEEP": "1"})
            alone, beside, compactions = one.call(
                "lsm_put_while_compacting",
                folder=self.folder,
                name=f"compaction-{level}",
                durability=level,
                base_rows=min(self.options.rows, 1_000_000),
                rounds=8,
                quiet=300,
                most=4000,
            )
            one.close()
            p99 = [sorted(each)[len(each) * 99 // 100] for each in (alone, beside)]
            middle = [statistics.median(each) for each in (alone, beside)]
            note = (
                f"without {shown(p99[0])} ({p99[1] / p99[0]:.1f} ×); medians {shown(middle[1])}, without {shown(middle[0])}; "
                f"{len(beside)} rows beside {len(compactions)} compactions of {shown(statistics.median(compactions))}"
            )
            self.add(name, p99[1], None, "≤ 3 × p99 without", p99[1] <= 3 * p99[0], p99[0], note)

    def run(self):
        for part in (self.puts, self.callers, self.sustained, self.lookups, self.search, self.replay, self.compaction):
            part()
        self.ours.close()
        self.theirs.close()
        print_table(self.rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="lines whose name holds this")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the base in look-ups")
    parser.add_argument("--folder", default=None, help="where the tables go (a real disk)")
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="glaive-lsm-", dir=options.folder)
    try:
        bench = Bench(options, folder)
        bench.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump([vars(row) for row in bench.rows], out, indent=1)


if __name__ == "__main__":
    main()
