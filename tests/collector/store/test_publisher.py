"""What a round of the publisher does: whom it serves first, what it repeats, what it does not."""

from __future__ import annotations

import pytest

from collector.hot import publisher as publisher_module
from collector.hot.group import MOST_RUNS
from collector.hot.journal import Journal, RunRow
from collector.wire.batch import BadBatch
from tests.collector.store.rows import (
    arrow_batch,
    batch,
    check,
    json_batch,
    queried,
    send,
    sent_meta,
    step,
    steps,
)

pytestmark = pytest.mark.usefixtures("no_views_file")


def test_views_are_renewed_once_a_round_and_again_until_it_worked(embedded, monkeypatch):
    store = embedded()
    told = []
    answers = iter([False, False, True])

    def renew():
        told.append(sorted(f.name for f in (store.data / "runs").iterdir()))
        return next(answers)

    monkeypatch.setattr(store._publisher, "_on_new_files", renew)
    for run in ("a", "b", "c"):
        send(store, step(0, run=run))
    store._publisher.publish_all()
    assert told == [["a", "b", "c"]]
    store._publisher.publish_all()
    store._publisher.publish_all()
    store._publisher.publish_all()
    assert len(told) == 3
    monkeypatch.undo()


def test_a_round_begins_with_the_run_that_is_behind_for_longest(embedded, monkeypatch):
    store = embedded()
    for run in ("a", "b", "c"):
        send(store, step(0, run=run))
        store.publish(run)
    for run in ("c", "a", "b"):
        send(store, step(1, run=run))
    store.publish("a")
    send(store, step(2, run="a"))
    order = []
    for run in store._catalog.all():
        write = run.files.write_open
        monkeypatch.setattr(
            run.files,
            "write_open",
            lambda rows, commit, run=run, write=write: (
                order.append(run.run_id),
                write(rows, commit),
            ),
        )
    store._publisher.publish_all()
    assert order == ["b", "c", "a"]


def test_folders_of_cold_runs_are_measured_once(embedded, monkeypatch):
    wall = [10**18]
    store = embedded(keep_bytes=1 << 40, wall_ns=lambda: wall[0], mono_s=lambda: wall[0] / 1e9)
    for run in ("a", "b"):
        store.put_meta(sent_meta(run))
        send(store, *steps(0, 9, run=run))
    send(store, *steps(0, 9, run="live"))
    wall[0] += 10**11
    measured = []
    size = publisher_module._size
    monkeypatch.setattr(
        publisher_module, "_size", lambda root: (measured.append(root.name), size(root))[1]
    )
    store._publisher.publish_all()
    assert sorted(measured) == ["a", "b", "live"]
    measured.clear()
    store._publisher.publish_all()
    assert measured == ["live"]
    measured.clear()
    send(store, *steps(10, 11, run="b"))
    wall[0] += 10**11
    store._publisher.publish_all()
    assert sorted(measured) == ["b", "live"]
    # An analysis puts its results into the folder.
    (store.data / "runs" / "a" / "results").mkdir()
    measured.clear()
    store._publisher.publish_all()
    assert sorted(measured) == ["a", "live"]


@pytest.mark.parametrize("form", [batch, json_batch, arrow_batch])
def test_a_batch_names_a_few_runs_at_most(embedded, form):
    store = embedded()
    rows = [step(0, run=f"run-{n}") for n in range(MOST_RUNS + 1)]
    with pytest.raises(BadBatch, match="17 runs"):
        store.append(form(rows)).result(20)
    assert store.runs() == []
    assert store.append(form(rows[:-1])).result(20).num_rows == MOST_RUNS
    assert len(store.runs()) == MOST_RUNS


def test_a_batch_without_records_is_taken(embedded):
    """An agent asks with one whether anything is taken at all."""
    store = embedded()
    receipt = send(store)
    assert (receipt.num_rows, receipt.marks) == (0, [])


def test_rows_of_the_catalog_take_the_place_of_older_ones(tmp_path):
    journal = Journal(tmp_path)
    runs = [RunRow(f"r{n}", "hot", None, n, n, n, 0, None) for n in range(16)]
    journal.commit(1, [], runs)
    assert journal.runs() == runs
    changed = [row._replace(meta=b"{}", orphans=b"x", num_rows=9) for row in runs[:3]]
    journal.commit(2, [], changed)
    assert sorted(journal.runs()) == sorted([*changed, *runs[3:]])
    journal.flushed(changed[0], [("r0", 0, 0, "stored", 0, 5)], [(0, 0), (-1, -1)])
    assert journal.spans() == [("r0", 0, 0, "stored", 0, 5)]
    assert journal.damaged() == [("r0", 0, 0), ("r0", -1, -1)]
    journal.close()


def test_runs_of_one_batch_are_all_there_after_a_start(embedded):
    store = embedded()
    send(store, *[step(n, run=f"run-{n % 5}") for n in range(20)])
    store = embedded()
    for run in range(5):
        rows = [step(n, run=f"run-{run}") for n in range(20) if n % 5 == run]
        check(store, rows, f"run-{run}")
    assert len(queried(store, None)) == 20
