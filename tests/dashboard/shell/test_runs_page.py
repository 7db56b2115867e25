"""The table of all runs: when each began and how it ended, whenever its rows came."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from collector.storage._interface import StoreDown
from dashboard.shell.pages.runs import _content
from dashboard.shell.paths import HOME
from dashboard.shell.words import moment
from tests.collector.traces import RUN, make_meta
from tests.collector.web.stores import MemoryStore


class Store(MemoryStore):
    def query(self, sql, run_id=None, max_age_s=0.0):
        raise StoreDown("no SQL here")


T0 = 1_785_000_000_000_000_000


def row_of(**meta):
    store = Store()
    store.put_meta(make_meta(run_id=RUN, created_ns=T0, **meta))
    page = _content(SimpleNamespace(store=store, runs=store.runs), HOME, {})
    (row,) = page[1].children.rowData
    return row


def test_a_pushed_run_began_when_its_trace_says_so_and_took_as_long():
    row = row_of(ended_ns=T0 + 90_000_000_000, clean_end=True)
    assert f"{row['started']} UTC" == moment(T0)  # the zone is in the heading
    assert row["duration"] == "1 min 30 s"


@pytest.mark.parametrize(
    ("clean", "said"), [(True, "ended"), (False, "stopped early"), (None, "ended, not cleanly")]
)
def test_how_it_ended(clean, said):
    assert row_of(ended_ns=T0 + 1, clean_end=clean)["state"] == said


@pytest.mark.parametrize(
    ("ago_s", "said"), [(1, "live"), (59, "live"), (61, "quiet for 1 min 01 s"), (7260, "quiet for 2 h 01 min")]
)  # fmt: skip
def test_a_run_without_an_end_is_live_while_rows_come(ago_s, said, monkeypatch):
    """What was pushed without an end, or whose machine went down, is not called live for ever."""
    store = Store()
    store.put_meta(make_meta(run_id=RUN, created_ns=T0, ended_ns=None, clean_end=None))
    (run,) = store.runs()
    now_ns = run.last_seen_ns + ago_s * 1_000_000_000
    monkeypatch.setattr("dashboard.shell.words.time.time_ns", lambda: now_ns)
    run = msgspec.structs.replace(run, num_rows=7)
    page = _content(SimpleNamespace(store=store, runs=lambda: [run]), HOME, {})
    (row,) = page[1].children.rowData
    assert row["state"] == said
    assert f"1 in all, {int(said == 'live')} live" in str(page[0])


@pytest.mark.parametrize(("ago_s", "said"), [(1, "waiting"), (7260, "waiting for 2 h 01 min")])
def test_a_run_that_was_announced_and_sent_nothing_is_waiting(ago_s, said, monkeypatch):
    store = Store()
    store.put_meta(make_meta(run_id=RUN, created_ns=T0, ended_ns=None, clean_end=None))
    (run,) = store.runs()
    now_ns = run.last_seen_ns + ago_s * 1_000_000_000
    monkeypatch.setattr("dashboard.shell.words.time.time_ns", lambda: now_ns)
    page = _content(SimpleNamespace(store=store, runs=store.runs), HOME, {})
    (row,) = page[1].children.rowData
    assert (row["state"], row["verdict"], row["duration"]) == (said, "no row yet", "")
    assert "1 in all, 0 live, 1 waiting" in str(page[0])
