"""Numbers and other arguments that make no sense: refused, or taken, as the real packages do it, by errors of the same kinds."""

PROGRAM = """
ds = lance.write_dataset(pa.table({"a": list(range(10))}), uri)
answers = {}
def ask(name, run):
    try:
        answers[name] = str(run())
    except BaseException as error:
        answers[name] = [base.__name__ for base in type(error).__mro__]
VALUES = [0, -1, 1, 5, 2**33, 2**64, "x", 1.5, True, None]
for option in ["batch_readahead", "fragment_readahead", "io_buffer_size", "batch_size", "limit", "offset", "batch_size_bytes"]:
    for value in VALUES:
        ask(f"scanner {option}={value!r}", lambda: ds.scanner(**{option: value}).to_table().num_rows)
for value in [0, -1, 2**64, "x", 1.5, None]:
    ask(f"max_rows_per_group={value!r}", lambda: lance.write_dataset(pa.table({"a": [1]}), uri + "g", mode="overwrite", max_rows_per_group=value).count_rows())
for option in ["max_rows_per_file", "max_bytes_per_file"]:
    for value in [-1, "x", 1.5, None]:
        ask(f"{option}={value!r}", lambda: lance.write_dataset(pa.table({"a": [1]}), uri + "g", mode="overwrite", **{option: value}).count_rows())
for value in [0, 5, 10, 11, -1, 2**64]:
    ask(f"sample {value!r}", lambda: ds.sample(value).num_rows)
for value in [-1, 1, 2**33, 2**64, "x", 1.5, None]:
    ask(f"get_fragment {value!r}", lambda: ds.get_fragment(value))
for value in [-1, 2**64, "x", 1.5]:
    ask(f"take {value!r}", lambda: ds.take([value]).num_rows)
for value in [-1, 1, 99, 2**64, "x", None]:
    ask(f"checkout {value!r}", lambda: ds.checkout_version(value).version)
db = lancedb.connect(uri + "db")
table = db.create_table("t", pa.table({"a": [1, 2, 3]}))
ask("add []", lambda: table.add([]))
ask("add no rows", lambda: table.add(pa.table({"a": pa.array([], pa.int64())})).version)
for column in ["_rowid", "_rowaddr", "_row_created_at_version", "nope"]:
    ask(f"update of {column}", lambda: table.update(values_sql={column: "1"}))
    ask(f"update by {column}", lambda: table.update(values_sql={"a": column}))
ask("update where _rowid", lambda: table.update(where="_rowid >= 0", values={"a": 5}).rows_updated)
return answers
"""
KINDS = ("OverflowError", "TypeError", "ValueError", "OSError")


def test_arguments_are_taken_and_refused_as_upstream_does_it(ours, theirs, tmp_path):
    mine = ours.run(PROGRAM, uri=str(tmp_path / "ours"))
    real = theirs.run(PROGRAM, uri=str(tmp_path / "theirs"))
    wrong = []
    for name, b in real.items():
        a = mine[name]
        if isinstance(b, str):
            if a != b:
                wrong.append((name, a, b))
        elif isinstance(a, str) or next(kind for kind in KINDS if kind in b) not in a:
            wrong.append((name, a, b))
    assert not wrong, "\n".join(map(str, wrong))
