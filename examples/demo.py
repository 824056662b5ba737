#!/usr/bin/env python3
"""Searches the descriptions of all Debian packages by meaning, in a Lance table.

Writes, asks, appends, deletes, travels to an older version, and opens the same folder with the real
pylance to compare. Run it with `make demo`.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import debian_packages as packages  # noqa: E402
import pyarrow as pa  # noqa: E402
from tqdm import tqdm  # noqa: E402

if os.environ.get("GLAIVE_DEMO_MODULE") == "lancedb":  # the same program on the real package
    import lancedb as glaive
else:
    import glaive

UPSTREAM = packages.ROOT / ".venv-upstream" / "bin" / "python"

QUESTIONS = [
    ("image editor", "section = 'graphics'"),
    ("play chess against the computer", "section = 'games' AND installed_kb < 20000"),
    ("convert documents to PDF", "section IN ('text', 'tex', 'utils')"),
    ("monitor network traffic", "section LIKE 'net%'"),
    ("read and write electronic mail", "section = 'mail'"),
    ("fast compression library", "section = 'libs' AND size_bytes BETWEEN 10000 AND 500000"),
]


class Step:
    """Prints a title and how long the body took."""

    def __init__(self, title):
        self.title = title

    def __enter__(self):
        print(f"\n== {self.title}")
        self.began = time.perf_counter()
        return self

    @property
    def seconds(self):
        return time.perf_counter() - self.began

    def __exit__(self, kind, *rest):
        if kind is None:
            print(f"   ({self.seconds:.2f} s)")


def human(size):
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000


def bytes_below(path):
    return sum(p.stat().st_size for p in pathlib.Path(path).rglob("*") if p.is_file())


def batches(table, bar, rows=4096):
    for batch in table.to_batches(max_chunksize=rows):
        yield batch
        bar.update(batch.num_rows)


def ask(table, model, question, where, limit=4):
    search = table.search(model.vectors([question])[0], vector_column_name="vector").distance_type("cosine")
    if where:
        search = search.where(where)
    return search.select(["id", "name", "section", "description"]).limit(limit).to_arrow()


def show(rows):
    for row in rows.to_pylist():
        print(f"     {row['_distance']:.3f}  {row['name']:<28.28} {row['section']:<10.10} {row['description']:.60}")


def main():
    began = time.perf_counter()
    with Step("The data: this machine's Debian package index"):
        data, model = packages.load(say=lambda line: print("   " + line))
        print(f"   {data.num_rows:,} packages, {human(data.nbytes)} in memory")

    folder = packages.CACHE / "db"
    shutil.rmtree(folder, ignore_errors=True)
    db = glaive.connect(str(folder))
    uri = str(folder / "packages.lance")

    with Step("Writing them to a table") as step, tqdm(total=data.num_rows, unit=" rows", unit_scale=True) as bar:
        table = db.create_table("packages", batches(data, bar), schema=data.schema)
        bar.close()
        size = bytes_below(uri)
        print(f"   {table.count_rows():,} rows, {human(size)} on disk, {human(data.nbytes / step.seconds)}/s")

    with Step("Asking by meaning"):
        ask(table, model, "warm up", None)
        for question, where in QUESTIONS:
            asked = time.perf_counter()
            found = ask(table, model, question, where)
            milliseconds = (time.perf_counter() - asked) * 1000
            print(f"   “{question}”" + (f" where {where}" if where else "") + f": {milliseconds:.1f} ms")
            show(found)

    with Step("Appending three packages that Debian does not have"):
        table.tags.create("as-shipped", table.version)
        new = [
            ("moonlight-painter", "graphics", "image editor for pictures taken by moonlight"),
            ("chessmaster-of-the-attic", "games", "play chess against a very patient computer"),
            ("teapot-mail", "mail", "read and write electronic mail on a teapot"),
        ]
        rows = [
            {"name": n, "section": s, "description": d, "tags": [], "installed_kb": 1, "size_bytes": 1}
            for n, s, d in new
        ]
        table.add(packages.to_table(rows, model.vectors([d for _, _, d in new]), first_id=data.num_rows))
        print(f"   version {table.version}, {table.count_rows():,} rows; “image editor” in graphics is now answered by")
        show(ask(table, model, "image editor", "section = 'graphics'", limit=3))

    with Step("Deleting the debugging symbols and everything larger than 100 MB"):
        before = table.count_rows()
        table.delete("section = 'debug' OR size_bytes > 100000000")
        print(f"   version {table.version}: {before - table.count_rows():,} rows gone, {table.count_rows():,} left")

    with Step("Travelling to the version as it was shipped"):
        for version in table.list_versions():
            print(f"   version {version['version']}: {version['timestamp']:%H:%M:%S}")
        table.checkout("as-shipped")
        print(f"   as-shipped is version {table.version} with {table.count_rows():,} rows")
        assert table.count_rows() == data.num_rows
        table.checkout_latest()

    with Step("Opening the same folder with the real pylance"):
        compare(db, table, model, uri)

    print(f"\nAll done in {time.perf_counter() - began:.0f} s. The table is {uri}, {human(bytes_below(uri))}.")


PYLANCE = """
import json, sys
import lance
request = json.load(sys.stdin)
dataset = lance.dataset(request["uri"])
answers = []
for vector, where in request["questions"]:
    found = dataset.to_table(columns=["id"], filter=where, prefilter=True,
        nearest={"column": "vector", "q": vector, "k": 4, "metric": "cosine", "use_index": False})
    answers.append([found["id"].to_pylist(), found["_distance"].to_pylist()])
first = lance.dataset(request["uri"], version="as-shipped")
rows = dataset.to_table(columns=["id", "name", "description", "tags"])
sample = dataset.take(request["offsets"], columns=["id", "name", "section", "vector"])
lance.write_dataset(dataset.take(request["offsets"][:1]).set_column(0, "id", [[10_000_000]]), request["uri"], mode="append")
json.dump({"version": lance.__version__, "count": rows.num_rows, "first": first.count_rows(), "answers": answers,
           "ids": rows["id"].to_pylist(), "sample": sample.to_pylist()}, sys.stdout)
"""


def compare(db, table, model, uri):
    questions = [([float(x) for x in model.vectors([q])[0]], where) for q, where in QUESTIONS]
    offsets = list(range(0, table.count_rows(), 997))
    request = {"uri": uri, "questions": questions, "offsets": offsets}
    child = subprocess.run(
        [str(UPSTREAM), "-W", "ignore", "-c", PYLANCE], input=json.dumps(request), capture_output=True, text=True
    )
    if child.returncode:
        raise SystemExit(child.stderr)
    theirs = json.loads(child.stdout)
    ours = table.search().select(["id"]).to_arrow()["id"].to_pylist()
    assert theirs["ids"] == ours and theirs["count"] == len(ours), "pylance sees other rows"
    assert theirs["first"] == packages_count(table), "pylance sees another first version"
    print(f"   pylance {theirs['version']} sees the same {theirs['count']:,} rows, and {theirs['first']:,} in as-shipped")
    sample = table.search().select(["id", "name", "section", "vector"]).to_arrow().take(pa.array(offsets))
    assert theirs["sample"] == sample.to_pylist(), "pylance reads other values"
    print(f"   {len(offsets)} rows taken one by one have the same values, vectors included")
    for (question, where), (ids, distances) in zip(QUESTIONS, theirs["answers"]):
        mine = ask(table, model, question, where)
        same = mine["id"].to_pylist() == ids
        near = all(abs(a - b) < 1e-5 for a, b in zip(mine["_distance"].to_pylist(), distances))
        # Packages with one and the same description are at one distance: either order is right.
        print(f"   “{question}”: {'the same answer' if same else 'the same distances'}")
        assert same or near, f"{question}: {ids} there, {mine['id'].to_pylist()} here"
    table.checkout_latest()
    last = table.search().where("id = 10000000").to_arrow()
    assert last.num_rows == 1, "the row that pylance appended is not seen"
    print(f"   and the row that pylance appended is seen here, in version {table.version}: {last['name'][0]}")


def packages_count(table):
    table.checkout("as-shipped")
    count = table.count_rows()
    table.checkout_latest()
    return count


if __name__ == "__main__":
    main()
