"""The table of all runs: when each began and how it ended, whenever its rows came."""

from __future__ import annotations

from types import SimpleNamespace

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
    assert row["started"] == moment(T0)
    assert row["duration"] == "1 min 30 s"


@pytest.mark.parametrize(
    ("clean", "said"), [(True, "ended"), (False, "stopped early"), (None, "ended, not cleanly")]
)
def test_how_it_ended(clean, said):
    assert row_of(ended_ns=T0 + 1, clean_end=clean)["state"] == said
