"""The journal's log is kept short: at the start, and while rows come in."""

from __future__ import annotations

import os

import pytest

from collector.hot import publisher, run_files
from collector.storage import embedded as embedded_module
from tests.collector.store.rows import (
    RUN,
    check,
    copy_of,
    done,
    entered,
    gap,
    queried,
    rows_of,
    send,
    sent_meta,
    step,
    steps,
)

NEVER = 1 << 40
SENT = [*steps(0, 9), entered(10), entered(11), *steps(12, 20)]
LATER = [done(10), gap(21, 21, 25), *steps(26, 30)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """views.duckdb has tests of its own."""
    monkeypatch.setattr(embedded_module, "write_views_file", lambda data: False)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def test_each_kill_leaves_the_next_start_as_much_as_the_first(embedded, tmp_path):
    store = embedded(long_log_bytes=NEVER)
    store.put_meta(sent_meta())
    sent, sizes = [], []
    for life in range(5):
        for first in range(0, 200, 20):
            records = steps(200 * life + first, 200 * life + first + 19)
            send(store, *records)
            sent += records
        sizes.append(store._journal.log_bytes())
        data = copy_of(store.data, tmp_path / f"life-{life}")  # killed now
        store = embedded(data, long_log_bytes=1)
        assert store._journal.log_bytes() < sizes[0] // 4
        assert queried(store) == rows_of(sent)
    assert max(sizes[1:]) < sizes[0] * 1.5
    check(store, sent)


@pytest.mark.parametrize(("module", "name"), [
    (run_files, "write_parquet"), (publisher, "write_file"), (publisher, "write_views"),
])  # fmt: skip
@pytest.mark.parametrize("after", range(3))
def test_a_start_whose_catching_up_fails_has_every_row(
    embedded, tmp_path, monkeypatch, module, name, after
):
    store = embedded(long_log_bytes=NEVER)
    send(store, *SENT)
    send(store, *LATER)
    data = copy_of(store.data, tmp_path / "killed")
    works, calls = getattr(module, name), []

    def fails(*args, **more):
        calls.append(name)
        if len(calls) > after:
            raise OSError(28, "No space left on device")
        return works(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, fails)
        store = embedded(data, long_log_bytes=1)
        again = copy_of(data, tmp_path / "killed-again")  # in the middle of it
        assert queried(store) == rows_of([*SENT, *LATER])
    check(store, [*SENT, *LATER])
    store = embedded(again, long_log_bytes=1)
    send(store, done(11), step(31))
    check(store, [*SENT, *LATER, done(11), step(31)])


def test_the_log_is_folded_in_while_rows_come(embedded):
    store = embedded(fold_log_bytes=1)
    sent = []
    for first in range(0, 400, 20):
        send(store, *steps(first, first + 19))
        sent += steps(first, first + 19)
    size = store._journal.log_bytes()
    store._publisher.publish_all()
    assert store._journal.log_bytes() < size // 4
    check(store, sent)


def test_a_short_log_stays(embedded, tmp_path):
    store = embedded()
    send(store, *SENT)
    size = store._journal.log_bytes()
    store = embedded(copy_of(store.data, tmp_path / "killed"))
    assert store._journal.log_bytes() == size > 0
    assert store.run(RUN).num_rows == len(rows_of(SENT))
