"""Compaction and clean-up beside the real packages: the same plans, tables that both can read, the same files removed."""

import datetime as dt
import os
import random

import pyarrow as pa
import pytest
from testing import SEED, SOAK
from upstream import SideError

WRITE = "lance.write_dataset(data, uri, mode=mode, **options)"
DELETE = "lance.dataset(uri).delete(predicate)"
PLAN = """
from importlib import import_module
Compaction = import_module(lance.__name__ + ".optimize").Compaction
plan = Compaction.plan(lance.dataset(uri), options)
return [[fragment.id for fragment in task.fragments] for task in plan.tasks]
"""
COMPACT = """
metrics = lance.dataset(uri).optimize.compact_files(**options)
return [metrics.fragments_removed, metrics.fragments_added, metrics.files_removed, metrics.files_added]
"""
STATE = """
ds = lance.dataset(uri)
return ds.version, [f.count_rows() for f in ds.get_fragments()], ds.to_table(with_row_id=stable)
"""
ROW_VERSIONS = """
return lance.dataset(uri).to_table(columns=["a", "_row_created_at_version", "_row_last_updated_at_version"])
"""
VERSIONS = "return [v['version'] for v in lance.dataset(uri).versions()]"
CLEAN = """
stats = lance.dataset(uri, version=version).cleanup_old_versions(older_than, **options)
return {name: getattr(stats, name) for name in names}
"""
STATS = "bytes_removed old_versions data_files_removed transaction_files_removed deletion_files_removed failed_deletes".split()


def rows(start, count):
    ids = range(start, start + count)
    names = [f"s{i}" if i % 5 else None for i in ids]
    return pa.table({"a": pa.array(ids, pa.int64()), "s": pa.array(names, pa.utf8())})


def make(side, uri, sizes, predicates=(), **options):
    start = 0
    for i, size in enumerate(sizes):
        side.run(WRITE, uri=uri, data=rows(start, size), mode="append" if i else "create", options=options if i == 0 else {})
        start += size
    for predicate in predicates:
        side.run(DELETE, uri=uri, predicate=predicate)


def random_table(rng):
    sizes = [rng.choice([1, 2, 3, 5, 8, 13, 30]) for _ in range(rng.randrange(1, 14))]
    predicates = []
    for _ in range(rng.randrange(0, 3)):
        predicates.append(rng.choice([f"a % {rng.randrange(2, 9)} = 0", f"a < {rng.randrange(20)}", f"a = {rng.randrange(60)}"]))
    return sizes, predicates


def random_options(rng, fragments):
    options = {"target_rows_per_fragment": rng.choice([1, 3, 6, 10, 20, 50, 1000])}
    if rng.random() < 0.3:
        options["materialize_deletions_threshold"] = rng.choice([0.0, 0.2, 0.5, 0.9])
    if rng.random() < 0.2:
        options["materialize_deletions"] = rng.random() < 0.5
    if rng.random() < 0.3:
        options["excluded_fragment_ids"] = rng.sample(range(fragments + 2), rng.randrange(0, fragments + 1))
    limit = rng.choice(["max_source_fragments", "max_source_rows", None, None])
    if limit:
        options[limit] = rng.randrange(1, 60)
    return options


@pytest.mark.parametrize("case", range(60 if SOAK else 12))
def test_the_same_plans(case, ours, theirs, tmp_path):
    rng = random.Random(SEED * 1000 + case)
    sizes, predicates = random_table(rng)
    uri = str(tmp_path / "t")
    make(theirs, uri, sizes, predicates)
    for _ in range(6):
        options = random_options(rng, len(sizes))
        expected = theirs.run(PLAN, uri=uri, options=options)
        assert ours.run(PLAN, uri=uri, options=options) == expected, (sizes, predicates, options)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_compacted_by_one_read_by_the_other(version, stable, ours, theirs, tmp_path):
    rng = random.Random(f"{SEED} {version} {stable}")
    sizes, predicates = random_table(rng)
    options = {"target_rows_per_fragment": rng.choice([3, 10, 1000])}
    tables = {}
    for side in (ours, theirs):
        uri = tables[side] = str(tmp_path / side.name)
        make(ours, uri, sizes, predicates, data_storage_version=version, enable_stable_row_ids=stable)
    metrics = {side.name: side.run(COMPACT, uri=uri, options=options) for side, uri in tables.items()}
    states = [reader.run(STATE, uri=uri, stable=stable) for uri in tables.values() for reader in (ours, theirs)]
    # A task with rows for several fragments may be cut at other rows than upstream cuts it.
    exact = options["target_rows_per_fragment"] == 1000
    assert metrics[ours.name][::2] == metrics[theirs.name][::2], (sizes, predicates, options)
    assert not exact or metrics[ours.name] == metrics[theirs.name], (sizes, predicates, options)
    for state in states[1:]:
        assert state[0] == states[0][0], (sizes, predicates, options)
        assert not exact or state[1] == states[0][1], (sizes, predicates, options)
        assert state[2].equals(states[0][2]), (sizes, predicates, options)
    if stable:
        of_ours, of_theirs = (theirs.run(ROW_VERSIONS, uri=uri) for uri in tables.values())
        assert of_ours.equals(of_theirs)


def test_results_travel_between_the_sides(ours, theirs, tmp_path):
    """A task planned and run by one is committed by the other."""
    for planner, committer in ((ours, theirs), (theirs, ours)):
        uri = str(tmp_path / planner.name)
        make(ours, uri, [5, 5, 5, 5], ["a = 3", "a = 17"])
        result = planner.run(
            """
            from importlib import import_module
            Compaction = import_module(lance.__name__ + ".optimize").Compaction
            ds = lance.dataset(uri)
            return [task.execute(ds).json() for task in Compaction.plan(ds, {"target_rows_per_fragment": 10}).tasks]
            """,
            uri=uri,
        )
        committer.run(
            """
            from importlib import import_module
            optimize = import_module(lance.__name__ + ".optimize")
            optimize.Compaction.commit(lance.dataset(uri), [optimize.RewriteResult.from_json(text) for text in results])
            """,
            uri=uri,
            results=result,
        )
        for reader in (ours, theirs):
            _, counts, table = reader.run(STATE, uri=uri, stable=False)
            assert counts == [18]
            assert table["a"].to_pylist() == [i for i in range(20) if i not in (3, 17)]


def test_a_change_of_rows_wins_over_a_compaction_in_steps(ours, theirs, tmp_path):
    uri = str(tmp_path / "t")
    make(ours, uri, [5, 5, 5, 5])
    error = ours.run(
        """
        from importlib import import_module
        Compaction = import_module(lance.__name__ + ".optimize").Compaction
        ds = lance.dataset(uri)
        done = [task.execute(ds) for task in Compaction.plan(ds, {}).tasks]
        lance.dataset(uri).delete("a = 7")
        try:
            Compaction.commit(lance.dataset(uri), done)
        except OSError as error:
            return str(error)
        """,
        uri=uri,
    )
    assert "preempted by concurrent transaction Delete" in error
    assert theirs.run(STATE, uri=uri, stable=False)[2]["a"].to_pylist() == [i for i in range(20) if i != 7]


@pytest.mark.parametrize("options", [{"foo": 1}, {"compaction_mode": "x"}, {"max_source_rows": 0}, {"target_rows_per_fragment": -1}])
def test_options_refused_alike(options, ours, theirs, tmp_path):
    uri = str(tmp_path / "t")
    make(ours, uri, [2, 2])
    with pytest.raises(SideError) as their_error:
        theirs.run(PLAN, uri=uri, options=options)
    with pytest.raises(SideError) as our_error:
        ours.run(PLAN, uri=uri, options=options)
    assert set(their_error.value.bases) & {"ValueError", "OSError", "OverflowError"} & set(our_error.value.bases)


# --- old versions -------------------------------------------------------------------------------------------


def files_of(uri):
    return {os.path.relpath(os.path.join(path, name), uri) for path, _, names in os.walk(uri) for name in names}


def history(side, uri):
    """Every kind of file: seven versions, an overwrite, deletions, a tag."""
    make(side, uri, [10, 10, 10], ["a = 3", "a = 13"])
    side.run("lance.write_dataset(data, uri, mode='overwrite')", uri=uri, data=rows(0, 4))
    side.run("lance.dataset(uri).delete('a = 1')", uri=uri)
    side.run("lance.dataset(uri).tags.create('two', 2)", uri=uri)


@pytest.mark.parametrize(
    "older_than, version, options",
    [
        (dt.timedelta(0), None, {"error_if_tagged_old_versions": False}),
        (dt.timedelta(days=1), None, {}),
        (None, None, {"retain_versions": 3, "error_if_tagged_old_versions": False}),
        (dt.timedelta(0), 4, {"error_if_tagged_old_versions": False}),
        (None, None, {"versions": [1, 4, 7]}),
        (dt.timedelta(0), None, {"versions": [1, 3, 6], "retain_versions": 5}),
        (None, None, {}),
    ],
)
def test_the_same_versions_are_removed(older_than, version, options, ours, theirs, tmp_path):
    found = {}
    for side in (ours, theirs):
        uri = str(tmp_path / side.name)
        history(ours, uri)
        stats = side.run(CLEAN, uri=uri, version=version, older_than=older_than, options=options, names=STATS)
        kept = {reader.name: reader.run(VERSIONS, uri=uri) for reader in (ours, theirs)}
        for reader in (ours, theirs):
            for number in kept[reader.name]:
                reader.run("lance.dataset(uri, version=version).to_table()", uri=uri, version=number)
        # Names are random, so the numbers of files by kind must do.
        kinds = sorted(os.path.dirname(path) for path in files_of(uri))
        del stats["bytes_removed"]  # manifests of ours and of theirs differ in size
        found[side.name] = (stats, kept, kinds)
    assert found[ours.name] == found[theirs.name]


def test_tags_in_the_way(ours, theirs, tmp_path):
    uri = str(tmp_path / "t")
    history(ours, uri)
    before = files_of(uri)
    messages = []
    for side in (ours, theirs):
        with pytest.raises(SideError) as error:
            side.run(CLEAN, uri=uri, version=None, older_than=dt.timedelta(0), options={}, names=STATS)
        assert "OSError" in error.value.bases or "ValueError" in error.value.bases
        messages.append(error.value.message)
    assert messages[0] == messages[1]
    assert files_of(uri) == before


def test_left_overs(ours, tmp_path):
    """Files that no version names: only on request, unless they are a week old."""
    uri = str(tmp_path / "t")
    make(ours, uri, [5, 5], ["a = 2"])
    old = dt.datetime.now().timestamp() - 8 * 24 * 3600
    names = ["data/x.lance", "data/sub/y.lance", "_deletions/0-1-5.arrow", "_transactions/3-abc.txn",
             "_indices/00000000-0000-0000-0000-000000000001/i.idx"]  # fmt: skip
    strangers = ["data/x.txt", "_transactions/foo", "foo.lance", "_versions/18446744073709551600.manifest-abc"]
    clean = files_of(uri)

    def litter(stamp):
        for name in names + strangers:
            path = os.path.join(uri, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write("zz")
            if stamp is not None:
                os.utime(path, (stamp, stamp))

    def clean_up(**options):
        ours.run(CLEAN, uri=uri, version=None, older_than=dt.timedelta(days=1), options=options, names=STATS)

    litter(None)
    clean_up()
    assert files_of(uri) == clean | set(names) | set(strangers)
    clean_up(delete_unverified=True)
    assert files_of(uri) == clean | set(strangers)
    litter(old)
    clean_up()
    assert files_of(uri) == clean | set(strangers)
    assert ours.run(STATE, uri=uri, stable=False)[2]["a"].to_pylist() == [0, 1, 3, 4, 5, 6, 7, 8, 9]


def test_branches_keep_what_they_need(ours, theirs, tmp_path):
    """The branch was made from version 2, which main then leaves behind."""
    uri = str(tmp_path / "t")
    make(theirs, uri, [5, 5, 5], ["a = 2"])
    theirs.run("lance.dataset(uri).create_branch('exp/one', 2)", uri=uri)
    theirs.run("lance.write_dataset(data, uri, mode='overwrite')", uri=uri, data=rows(100, 3))
    ours.run(CLEAN, uri=uri, version=None, older_than=dt.timedelta(0), options={"delete_unverified": True}, names=STATS)
    assert theirs.run(VERSIONS, uri=uri) == [2, 5]
    branch = theirs.run("return lance.dataset(uri).checkout_version(('exp/one', None)).to_table()", uri=uri)
    assert branch["a"].to_pylist() == list(range(10))
    assert theirs.run(STATE, uri=uri, stable=False)[2]["a"].to_pylist() == [100, 101, 102]


def test_a_setting_cleans_up_at_commits(ours, theirs, tmp_path):
    """As upstream, but for an interval alone, which takes no history away."""
    for name, settings, expected in (
        ("age", {"lance.auto_cleanup.interval": "3", "lance.auto_cleanup.older_than": "0s"}, [8, 9, 10]),
        ("count", {"lance.auto_cleanup.interval": "3", "lance.auto_cleanup.retain_versions": "2"}, [8, 9, 10]),
        ("young", {"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "1h"}, list(range(1, 11))),
        ("both", {"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "0s",
                  "lance.auto_cleanup.retain_versions": "4"}, [7, 8, 9, 10]),  # fmt: skip
        ("alone", {"lance.auto_cleanup.interval": "3"}, list(range(1, 11))),
        ("bad", {"lance.auto_cleanup.interval": "x", "lance.auto_cleanup.older_than": "0s"}, list(range(1, 11))),
    ):
        for side in (ours, theirs):
            if name == "alone" and side is theirs:
                continue
            uri = str(tmp_path / side.name / name)
            make(theirs, uri, [1])
            theirs.run("lance.dataset(uri).update_config(settings)", uri=uri, settings=settings)
            for i in range(8):
                side.run(WRITE, uri=uri, data=rows(i, 1), mode="append", options={})
            assert side.run(VERSIONS, uri=uri) == expected, (name, side.name)
