#!/usr/bin/env python3
"""Tables: ours and the real packages in one run, on the same bytes, each in a process of its own.

Both processes answer in turn, so that a noisy moment hits both; medians after warm-ups. Where a physical
limit is known (a plain read or write of the same bytes) it is measured in the same run and the share of it
that we reach is printed.

    bench_tables.py [--only TEXT] [--rounds N] [--rows N] [--versions N] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import side

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv" / "bin" / "python"
UPSTREAM = ROOT / ".venv-upstream" / "bin" / "python"


class Row:
    def __init__(self, name, ours, theirs, target, reached, limit=None, note=""):
        self.name, self.ours, self.theirs, self.target = name, ours, theirs, target
        self.reached, self.limit, self.note = reached, limit, note


def shown(seconds):
    if seconds is None:
        return "–"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms" if seconds < 2 else f"{seconds:.2f} s"


def print_table(rows):
    head = ["workload", "ours", "theirs", "ratio", "limit", "share", "to reach", ""]
    lines = [head]
    for r in rows:
        ratio = f"{r.theirs / r.ours:.1f} ×" if r.theirs and r.ours else "–"
        share = f"{r.limit / r.ours:.0%}" if r.limit and r.ours else "–"
        reached = {True: "reached", False: "MISSED", None: ""}[r.reached]
        lines.append([r.name, shown(r.ours), shown(r.theirs), ratio, shown(r.limit), share, r.target, reached])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for number, line in enumerate(lines):
        print("  ".join(cell.ljust(w) if i in (0, 6, 7) else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))
    for r in rows:
        if r.note:
            print(f"  {r.name}: {r.note}")


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.rows = []
        self.ours, self.theirs = self.start("ours"), self.start("theirs")
        self.data = f"{folder}/data.lance"
        self.vector_bytes = options.rows * 384 * 4

    def start(self, name, upkeep=False):
        if name == "theirs" or self.options.ours == "upstream":
            return side.Side(name, str(UPSTREAM), "lance", "lancedb")
        env = {"PYTHONPATH": str(ROOT / "python"), "GLAIVE_AUTO_MAINTENANCE": "1" if upkeep else "0"}
        if upkeep:
            env["GLAIVE_AUTO_MAINTENANCE_RETENTION"] = "1s"  # so that this run sees what a week would bring
        return side.Side(name, str(VENV), "glaive.lance", "glaive", env)

    def pair(self, workload, rounds=None, warm=2, same=True, **args):
        """Medians of both sides; the answers must be the same."""
        rounds = rounds or self.options.rounds
        times = {"ours": [], "theirs": []}
        for number in range(warm + rounds):
            answers = []
            for one in (self.ours, self.theirs) if number % 2 else (self.theirs, self.ours):
                seconds, answer = one.call(workload, **args)
                answers.append(answer)
                if number >= warm:
                    times[one.name].append(seconds)
            if same and answers[0] != answers[1]:
                raise SystemExit(f"{workload} {args}: the answers differ: {answers[0]!r:.200} and {answers[1]!r:.200}")
        return statistics.median(times["ours"]), statistics.median(times["theirs"])

    def add(self, name, pair, target, reached, **more):
        ours, theirs = pair
        row = Row(name, ours, theirs, target, reached(ours, theirs), **more)
        self.rows.append(row)
        print(f"  … {name}: {shown(ours)}, theirs {shown(theirs)}", file=sys.stderr, flush=True)
        return row

    # --- limits

    def read_limit(self, size, path):
        """A plain sequential read of `size` bytes of the file, on as many threads as there are CPUs."""
        threads = len(os.sched_getaffinity(0))
        part = size // threads

        def read(index):
            buffer = bytearray(1 << 20)
            with open(path, "rb", buffering=0) as f:
                f.seek(index * part)
                left = part
                while left > 0:
                    left -= f.readinto(memoryview(buffer)[: min(left, len(buffer))]) or left

        best = []
        for _ in range(9):
            began = time.perf_counter()
            workers = [threading.Thread(target=read, args=(i,)) for i in range(threads)]
            [w.start() for w in workers]
            [w.join() for w in workers]
            best.append(time.perf_counter() - began)
        return statistics.median(best)

    def write_limit(self, size):
        """A plain write and sync of `size` bytes."""
        block = os.urandom(1 << 20)
        times = []
        for number in range(3):
            path = f"{self.folder}/plain{number}"
            began = time.perf_counter()
            with open(path, "wb", buffering=0) as f:
                for _ in range(size >> 20):
                    f.write(block)
                f.write(block[: size & ((1 << 20) - 1)])
                os.fsync(f.fileno())
            times.append(time.perf_counter() - began)
            os.unlink(path)
        return statistics.median(times)

    def files_limit(self, sizes):
        """Writing and syncing files of these sizes, and the folder after each."""
        folder = tempfile.mkdtemp(dir=self.folder)
        began = time.perf_counter()
        for part, size in enumerate(sizes):
            with open(f"{folder}/{part}", "wb", buffering=0) as f:
                f.write(b"x" * size)
                os.fsync(f.fileno())
            handle = os.open(folder, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        seconds = time.perf_counter() - began
        shutil.rmtree(folder)
        return seconds

    # --- the workloads

    def run(self):
        for name in ("imports", "load", "search", "scan", "take", "appends", "columns", "changes", "compaction", "upkeep"):
            if not self.options.only or any(o in name for o in self.options.only):
                if name in ("search", "scan", "take") and not os.path.exists(self.data):
                    self.theirs.call("make", uri=self.data, rows=self.options.rows)
                getattr(self, name)()
        self.ours.close()
        self.theirs.close()

    def imports(self):
        code = "import time; b = time.perf_counter(); import {}; print(time.perf_counter() - b)"
        times = {}
        for name, python, module, path in [
            ("theirs", UPSTREAM, "lancedb", None),
            ("ours", VENV, "glaive", str(ROOT / "python")),
        ]:
            if self.options.ours == "upstream":
                python, module = UPSTREAM, "lancedb"
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | ({"PYTHONPATH": path} if path else {})
            found = [
                float(subprocess.run([str(python), "-c", code.format(module)], env=env, capture_output=True, text=True, check=True).stdout)
                for _ in range(5)
            ]
            times[name] = statistics.median(found[1:])
        self.add("import", (times["ours"], times["theirs"]), "≤ 150 ms", lambda o, t: o <= 0.150)

    def load(self):
        rows, per_batch = self.options.rows, 10_000
        times, facts = {"ours": [], "theirs": []}, {}
        for number in range(4):
            for name in ("ours", "theirs"):
                os.sync()  # what the other side left unwritten must not be paid for by this one
                one = self.start(name)  # a fresh process: its memory has no past
                seconds, facts[name] = one.call("bulk_load", uri=f"{self.folder}/load-{name}.lance", rows=rows, per_batch=per_batch)
                times[name].append(seconds)
                one.close()
        limit = self.write_limit(facts["ours"]["bytes"])
        pair = statistics.median(times["ours"]), statistics.median(times["theirs"])
        self.add("bulk load, synced (theirs is not)", pair, "≥ 0.8 × a plain write and sync", lambda o, t: o <= limit / 0.8, limit=limit)
        peak, batch = facts["ours"]["peak"], facts["ours"]["batch"]
        self.rows[-1].note = (
            f"peak memory {peak / batch:.1f} × the batch of {batch / 1e6:.0f} MB"
            f" (to reach: 3 ×; theirs {facts['theirs']['peak'] / batch:.1f} ×)"
        )
        self.rows[-1].reached = self.rows[-1].reached and peak < 3 * batch
        for one in ("ours", "theirs"):
            shutil.rmtree(f"{self.folder}/load-{one}.lance")

    def search(self):
        limit = self.read_limit(self.vector_bytes, max(pathlib.Path(self.data, "data").iterdir(), key=lambda p: p.stat().st_size))
        shape = f"{self.options.rows // 1000} k × 384"
        self.add(f"exact search, {shape}, k = 10", self.pair("search", uri=self.data),
                 "≥ 15 ×, ≤ 1.25 × the read", lambda o, t: t / o >= 15 and o <= 1.25 * limit, limit=limit)
        self.add("32 queries at once", self.pair("search_many", uri=self.data, count=32), "≥ 12 ×", lambda o, t: t / o >= 12, limit=limit)
        self.add("search, filter keeps 0.1 %", self.pair("search", uri=self.data, where="bucket = 7"), "≤ 1 ms", lambda o, t: o <= 1e-3)

    def scan(self):
        path = max(pathlib.Path(self.data, "data").iterdir(), key=lambda p: p.stat().st_size)
        limit = self.read_limit(self.vector_bytes, path)
        row = self.add("scan of the vectors to Arrow", self.pair("scan_vectors", uri=self.data), "≥ 10 ×", lambda o, t: t / o >= 10, limit=limit)
        row.note = f"{self.vector_bytes / row.ours / 1e9:.1f} GB/s, theirs {self.vector_bytes / row.theirs / 1e9:.1f} GB/s"
        self.add("the same, every cache line read", self.pair("scan_and_read_vectors", uri=self.data), "≥ 10 ×", lambda o, t: t / o >= 10, limit=limit)
        self.add("scan, filter keeps 0.1 %", self.pair("scan_filtered", uri=self.data, where="bucket = 7"), "≥ 10 ×", lambda o, t: t / o >= 10)
        self.add("count with a filter", self.pair("count_filtered", uri=self.data, where="bucket = 7"), "≥ 10 ×", lambda o, t: t / o >= 10)

    def take(self):
        rounds = max(self.options.rounds, 20)
        rows = [(i * 7919) % self.options.rows for i in range(100)]
        for call, name in (("take", "pylance"), ("take_offsets", "lancedb")):
            self.add(f"take 1 row ({name} API)", self.pair(call, rounds=rounds, warm=3, uri=self.data, rows=rows[:1]),
                     "≤ 40 µs", lambda o, t: o <= 40e-6)
            self.add(f"take 100 rows ({name} API)", self.pair(call, rounds=rounds, warm=3, uri=self.data, rows=rows),
                     "≥ 15 ×", lambda o, t: t / o >= 15)

    def columns(self):
        pair = self.pair("add_computed", uri=f"{self.folder}/narrow", rows=1_000_000)
        self.add("add a computed column, 1 M narrow rows", pair, "≥ 3 ×", lambda o, t: t / o >= 3)

    def changes(self):
        rows = 1_000_000
        pair = self.pair("point_filter", uri=f"{self.folder}/changed", rows=rows, number=41)
        self.add("point filter id = x, 1 M narrow rows", pair, "≥ 5 ×", lambda o, t: t / o >= 5)
        for kind, number, name, times in (
            ("upsert", 1, "upsert 1 row", 10),
            ("upsert", 10_000, "upsert 10 k rows", 3),
            ("update", 0, "update 0.1 % by predicate", 4),
            ("delete", 0, "delete 0.1 % by predicate", 4),
        ):
            pair = self.pair("change_rows", uri=f"{self.folder}/changed", rows=rows, kind=kind, number=number)
            self.add(f"{name}, 1 M narrow rows", pair, f"≥ {times} ×", lambda o, t, times=times: t / o >= times)
        seconds, _ = self.ours.call("delete_ids", uri=f"{self.folder}/deletes", rows=rows, count=self.options.versions)
        pair = statistics.median(seconds[-50:]), statistics.median(seconds[:50])
        self.add(f"{self.options.versions:,} deletes of one id: the last 50 (theirs: the first 50)", pair, "≤ 1.5 ×", lambda o, t: o / t <= 1.5)

    def appends(self):
        total, block, rounds = self.options.versions, 50, 30
        uris = {name: f"{self.folder}/appends-{name}.lance" for name in ("ours", "theirs")}
        few = {name: f"{self.folder}/few-{name}.lance" for name in uris}
        for first in range(0, total - rounds, block):
            for one in (self.ours, self.theirs):
                one.call("append_rows", uri=uris[one.name], count=min(block, total - rounds - first), first=first)
        for one in (self.ours, self.theirs):
            one.call("append_rows", uri=few[one.name], count=50 - rounds // 2, first=0)
        # Small and large table, both sides, and the plain writes in turn: all see the same disk.
        early, late, plain = {"ours": [], "theirs": []}, {"ours": [], "theirs": []}, {"early": [], "late": []}
        for number in range(rounds):
            for one in (self.ours, self.theirs):
                early[one.name].append(one.call("append_one", uri=few[one.name], number=number))
                late[one.name].append(one.call("append_one", uri=uris[one.name], number=total + number))
            plain["early"].append(self.files_limit(self.newest_files(few["ours"])))
            plain["late"].append(self.files_limit(self.newest_files(uris["ours"])))
        early, late, plain = ({k: statistics.median(v) for k, v in d.items()} for d in (early, late, plain))
        self.add("one-row append, the 50th", (early["ours"], early["theirs"]), "≤ 1.5 × write + sync",
                 lambda o, t: o <= 1.5 * plain["early"], limit=plain["early"])
        row = self.add(f"one-row append, the {total:,}th", (late["ours"], late["theirs"]), "≤ 1.5 × write + sync",
                       lambda o, t: o <= 1.5 * plain["late"], limit=plain["late"])
        growth = late["ours"] / early["ours"]
        row.note = f"{growth:.2f} × the 50th (to reach: 1.2 ×; theirs {late['theirs'] / early['theirs']:.2f} ×); theirs never syncs"
        row.reached = row.reached and growth <= 1.2
        one_version = f"{self.folder}/one-version.lance"
        self.theirs.call("make", uri=one_version, rows=1000)
        one_open = self.pair("open", rounds=30, uri=one_version)
        many = self.pair("open", rounds=30, uri=uris["theirs"])
        self.add("open, 1 version", one_open, "≥ 5 ×", lambda o, t: t / o >= 5)
        many_datasets = self.pair("open_dataset", rounds=30, uri=uris["theirs"])
        row = self.add(f"open, {total:,} versions", many, "≥ 5 ×", lambda o, t: t / o >= 5)
        row.note = f"{many[0] / one_open[0]:.2f} × the time for one version (to reach: 1.5 ×)"
        row.reached = row.reached and many[0] <= 1.5 * one_open[0]
        self.add(f"open, {total:,} versions (pylance API)", many_datasets, "≥ 5 ×", lambda o, t: t / o >= 5)
        self.add(f"search over {total:,} one-row fragments", self.pair("search", uri=uris["theirs"]), "≥ 20 ×", lambda o, t: t / o >= 20)

    def compaction(self):
        uris = {name: f"{self.folder}/small-{name}.lance" for name in ("ours", "theirs")}
        source = f"{self.folder}/small.lance"
        self.ours.call("make_fragments", uri=source, fragments=1000, rows=100)
        times = {"ours": [], "theirs": []}
        for number in range(5):
            for one in (self.ours, self.theirs) if number % 2 else (self.theirs, self.ours):
                shutil.rmtree(uris[one.name], ignore_errors=True)
                shutil.copytree(source, uris[one.name])
                os.sync()
                seconds, answer = one.call("compact", uri=uris[one.name])
                if answer != [1000, 1, 100_000]:
                    raise SystemExit(f"{one.name} compacted to {answer}")
                if number:
                    times[one.name].append(seconds)
        pair = statistics.median(times["ours"]), statistics.median(times["theirs"])
        written = max(p.stat().st_size for p in pathlib.Path(uris["ours"], "data").iterdir())
        self.add("compaction, 1,000 × 100 × 384-d (theirs is not synced)", pair, "≥ 3 ×", lambda o, t: t / o >= 3, limit=self.write_limit(written))

    def upkeep(self):
        """Nobody calls optimize."""
        total = self.options.versions
        found, sizes, notes = {}, {}, []
        for name in ("ours", "theirs"):
            one = self.start(name, upkeep=True)
            uri = f"{self.folder}/nobody-{name}.lance"
            seconds = []
            for first in range(0, total, 50):
                seconds += one.call("append_rows", uri=uri, count=min(50, total - first), first=first)[0]
            time.sleep(3)  # the retention
            found[name] = statistics.median(one.call("search", uri=uri, number=i)[0] for i in range(11))
            payload = total * (384 * 4 + 8 + 4 + 40)
            sizes[name] = sum(p.stat().st_size for p in pathlib.Path(uri).rglob("*") if p.is_file()) / payload
            growth = statistics.median(seconds[-50:]) / statistics.median(seconds[25:75])
            notes.append(f"{name}: {growth:.2f} × the 50th append at the end, {sizes[name]:.1f} × the payload on disk")
            one.close()
        row = self.add(f"search after {total:,} one-row adds, nobody calls optimize", (found["ours"], found["theirs"]),
                       "≤ 5 ms, disk ≤ 3 ×", lambda o, t: o <= 5e-3 and sizes["ours"] <= 3)
        row.note = "; ".join(notes)

    def newest_files(self, uri):
        """Sizes of the files of the newest append."""
        sizes = []
        for folder in ("data", "_transactions", "_versions"):
            files = [p for p in pathlib.Path(uri, folder).iterdir() if p.suffix != ".json"]
            if files:
                sizes.append(max(files, key=lambda p: p.stat().st_mtime_ns).stat().st_size)
        return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="imports, load, search, scan, take, appends, columns, changes, compaction or upkeep; may be repeated")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=2000)
    parser.add_argument("--folder", help="where tables are made (default: a temporary folder)")
    parser.add_argument("--ours", default="glaive", choices=["glaive", "upstream"], help="upstream: checks the bench itself")
    parser.add_argument("--json", help="also write the results to this file")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="glaive-bench-")
    try:
        bench = Bench(options, folder)
        bench.run()
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(os.sched_getaffinity(0))} CPUs, medians, both sides in one run")
    print_table(bench.rows)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps([vars(r) for r in bench.rows], indent=1))


if __name__ == "__main__":
    main()
