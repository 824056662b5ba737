"""Overwriting writers that race for one table: each of them succeeds, one after the other."""

import threading

import glaive
import pyarrow as pa


def test_every_overwriter_gets_its_version(tmp_path):
    glaive.connect(tmp_path).create_table("t", pa.table({"who": [-1]}))
    errors = []

    def overwrite(who):
        try:
            db = glaive.connect(tmp_path)
            for _ in range(5):
                db.create_table("t", pa.table({"who": [who] * (who + 1), f"only_{who}": range(who + 1)}), mode="overwrite")
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=overwrite, args=(who,)) for who in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    t = glaive.connect(tmp_path).open_table("t")
    assert t.version == 21
    for version in range(2, 22):
        t.checkout(version)
        rows = t.to_arrow()
        who = rows["who"][0].as_py()
        assert rows["who"].to_pylist() == [who] * (who + 1)
        assert rows[f"only_{who}"].to_pylist() == list(range(who + 1))


def test_overwriters_of_a_table_that_does_not_exist_yet(tmp_path):
    errors = []
    start = threading.Barrier(4)

    def overwrite(who):
        try:
            db = glaive.connect(tmp_path)
            start.wait()
            db.create_table("t", pa.table({"who": [who]}), mode="overwrite")
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=overwrite, args=(who,)) for who in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert glaive.connect(tmp_path).open_table("t").count_rows() == 1
