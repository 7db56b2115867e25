"""The pages beside the timeline: the same moments, ids and sums as the timeline has."""

from __future__ import annotations

import json

import duckdb
import msgspec
import pyarrow as pa
import pytest

from cascade_runtime.vocabulary.plug import discover
from dashboard import panels
from dashboard.shell.pages.violations import _again, _content
from dashboard.shell.paths import Place
from dashboard.shell.replay import ReplayStore
from dashboard.story import sources_of_trace
from dashboard.story.teller import Teller as Speaker
from tests.analyzer.stories.every import STORIES
from tests.dashboard.story.kit import trace_of
from tests.story import START

SECOND = 10**9


@pytest.fixture
def early(tmp_path):
    """A trace that was made two hours before its first row: time counts from the row."""
    told = next(tell for _, kind, tell in STORIES if kind == "trips")()[0]
    folder = trace_of(told, tmp_path / "t", judged=True)
    path = folder / "trace.json"
    meta = json.loads(path.read_bytes())
    meta["created_ns"] = START - 7200 * SECOND
    path.write_text(json.dumps(meta))
    opened = sources_of_trace(folder)
    yield opened.only
    opened.close()


def rows_of(component):
    """The rows of the grid in a page."""
    found = getattr(component, "rowData", None)
    if found is not None:
        return found
    children = getattr(component, "children", component)
    if isinstance(children, (list, tuple)):
        return next((rows for one in children if (rows := rows_of(one)) is not None), None)
    return None if isinstance(children, str) or children is component else rows_of(children)


def test_violations_are_told_at_the_story_s_times(early):
    class Shell:
        def source(self, run_id):
            return early

    story = Speaker(early).story().story
    rows = rows_of(_content(Shell(), Place("violations", early.run_id), {}))
    want = {v.id: v.at_ns / SECOND for v in story.violations}
    assert sorted(row["after_s"] for row in rows) == pytest.approx(sorted(want.values()), abs=2e-3)
    for row in rows:
        assert any(ident in row["code_href"].replace("%3A", ":") for ident in want)


def test_a_replay_s_run_begins_where_its_picture_does(early):
    story = Speaker(early).story().story
    (run,) = ReplayStore(early).runs()
    assert run.first_seen_ns == int(story.t0_ns)
    assert run.last_seen_ns == int(story.t0_ns) + story.t1_ns


def test_findings_at_one_row_are_numbered_as_in_the_story():
    one = {"code": "C1", "rank": 0, "incarnation": 0, "seq": 7, "inferred": False}
    rows = [one | {"sentence": s} for s in ("b", "a", "c")] + [one | {"seq": 8, "sentence": "a"}]
    assert _again(rows) == [2, 1, 3, 1]


def test_of_many_steps_who_caused_most_of_a_bar_has_caused_no_more_than_it_did():
    panel = discover(panels)["waste-by-step"]
    steps = pa.table(
        {
            "step": list(range(1200)),
            "waited_s": [1.0] * 1200,
            "worst_rank": [step % 2 for step in range(1200)],
            "worst_s": [0.75 if step % 2 else 0.5 for step in range(1200)],
        }
    )
    with duckdb.connect() as store:
        store.register("wasted_by_step", steps)
        table = store.sql(panel.sql).to_arrow_table()
    assert table.num_rows == 600
    assert set(table["worst_rank"].to_pylist()) == {1}
    assert set(table["worst_s"].to_pylist()) == {0.75}  # not 1.25, which two ranks caused
    assert sum(table["waited_s"].to_pylist()) == 1200.0
    first = panel.figure(table)["data"][0]
    assert (
        "caused most of the bar" in first["name"]
        and "of which it caused most" in first["hovertemplate"]
    )
    assert msgspec.json.encode(panel.figure(table))
