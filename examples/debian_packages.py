"""The demo's data: this machine's Debian package index as a table with one vector per description.

Made once and kept in demo-data/ (outside git): packages.arrow with the rows, model.pkl with what turns a
question into a vector. Only descriptive fields are kept; names and addresses of maintainers are not.
"""

import os
import pathlib
import pickle
import subprocess
import time

import numpy as np
import pyarrow as pa

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("GLAIVE_DEMO_DATA", ROOT / "demo-data"))
FIELDS = {"Package", "Section", "Description", "Tag", "Installed-Size", "Size"}
DIMENSIONS = 128


def paragraphs(lines):
    """Splits control data into dicts of the fields that are kept."""
    fields, name = {}, None
    for line in lines:
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            if name:
                fields[name] += " " + line.strip()
        else:
            name, _, value = line.partition(":")
            if name in FIELDS:
                fields[name] = value.strip()
            else:
                name = None
    if fields:
        yield fields


def read_index():
    """One row per package name, sorted by name."""
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    rows = {}
    for p in paragraphs(text.splitlines()):
        tags = [t.strip() for t in p.get("Tag", "").split(",") if t.strip()]
        rows[p["Package"]] = {
            "name": p["Package"],
            "section": p.get("Section", "").rpartition("/")[2],
            "description": p.get("Description", ""),
            "tags": tags,
            "installed_kb": int(p["Installed-Size"]) if "Installed-Size" in p else None,
            "size_bytes": int(p["Size"]) if "Size" in p else None,
        }
    if not rows:
        raise SystemExit("apt knows no packages here: run `apt-get update` (tools/setup_debian.sh --index does)")
    return [rows[name] for name in sorted(rows)]


class Model:
    """Text to vector: TF-IDF over words, reduced by truncated SVD, of length 1.

    The square root of the singular values is taken out, so that the few largest topics do not drown
    the rest.
    """

    def __init__(self, texts):
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.words = TfidfVectorizer(sublinear_tf=True, min_df=3, max_df=0.2, stop_words="english")
        matrix = self.words.fit_transform(texts)
        self.reduction = TruncatedSVD(DIMENSIONS, n_iter=4, random_state=1)
        self.reduction.fit(matrix)
        self.scale = self.reduction.singular_values_**-0.5

    def vectors(self, texts):
        found = (self.reduction.transform(self.words.transform(texts)) * self.scale).astype(np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return found / np.maximum(lengths, 1e-9)


# Facets that say how a program is made, not what it is about.
TECHNICAL = ("role", "uitoolkit", "interface", "implemented-in")


def text_of(row):
    tags = [tag.partition("::") for tag in row["tags"]]
    about = [value.replace("-", " ") for facet, _, value in tags if facet not in TECHNICAL]
    return " ".join([row["description"], *about])


def schema():
    return pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("name", pa.utf8()),
            pa.field("section", pa.utf8()),
            pa.field("description", pa.utf8()),
            pa.field("tags", pa.list_(pa.utf8())),
            pa.field("installed_kb", pa.int64()),
            pa.field("size_bytes", pa.int64()),
            pa.field("vector", pa.list_(pa.float32(), DIMENSIONS)),
        ]
    )


def to_table(rows, vectors, first_id=0):
    columns = {name: pa.array([row[name] for row in rows], schema().field(name).type) for name in rows[0]}
    flat = pa.array(np.ascontiguousarray(vectors).ravel(), pa.float32())
    arrays = [pa.array(range(first_id, first_id + len(rows)), pa.int64())]
    arrays += [columns[name] for name in schema().names[1:-1]]
    arrays.append(pa.FixedSizeListArray.from_arrays(flat, DIMENSIONS))
    return pa.Table.from_arrays(arrays, schema=schema())


def load(say=print):
    """The table and the model; makes both at the first call."""
    CACHE.mkdir(parents=True, exist_ok=True)
    data, model = CACHE / "packages.arrow", CACHE / "model.pkl"
    if not (data.exists() and model.exists()):
        began = time.perf_counter()
        rows = read_index()
        say(f"read {len(rows):,} packages; learning {DIMENSIONS}-dimensional vectors from their descriptions …")
        texts = [text_of(row) for row in rows]
        learnt = Model(texts)
        table = to_table(rows, learnt.vectors(texts))
        with pa.OSFile(str(data) + ".part", "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        with open(model, "wb") as sink:
            pickle.dump(learnt, sink)
        os.replace(str(data) + ".part", data)
        say(f"made {data} in {time.perf_counter() - began:.0f} s (kept for the next time)")
    with open(model, "rb") as source:
        learnt = pickle.load(source)
    with pa.memory_map(str(data)) as source:
        return pa.ipc.open_file(source).read_all(), learnt
