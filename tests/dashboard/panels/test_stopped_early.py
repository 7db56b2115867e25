"""A run that somebody stopped: its page opens where something happened, and says nothing twice in two ways."""

from __future__ import annotations

import msgspec
import pytest

from cascade_runtime.vocabulary.trace_meta import parse_trace_meta
from collector.trace.trace_writer import write_meta
from tests.analyzer.runs import kill_one_run
from tests.dashboard.panels.conftest import Theatre
from tests.dashboard.story.kit import trace_of
from tests.story import Story

pytestmark = pytest.mark.browser


def calm_run():
    s = Story(ranks=3)
    for step in range(20):
        for one in s.ranks:
            one.begin(step)
            one.end()
        s.wait(10)
    return s


def stopped_run():
    told = kill_one_run()
    kept = [row for row in told.rows if row[1].get("reason") != "finished"]
    told.rows[:] = kept
    return told


@pytest.fixture
def play(act, tmp_path):
    """play(story): opens the page of a trace that Ctrl-C has ended."""
    theatres = []

    def begin(told):
        path = trace_of(told, tmp_path / "t", clean=False)
        meta = parse_trace_meta((path / "trace.json").read_bytes(), "trace.json")
        write_meta(path, msgspec.structs.replace(meta, ended_ns=told.now, clean_end=False))
        theatres.append(Theatre(path))
        return act(theatres[-1])

    yield begin
    for theatre in theatres:
        theatre.close()


def test_it_opens_at_the_worst_that_happened(play):
    a = play(stopped_run())
    story = a.view("story")
    assert story["run"]["state"] == "stopped"
    assert story["incidents"][0]["id"] != "loss:end" or len(story["incidents"]) > 1
    assert a.view("sel").startswith("walk:")


def test_where_nothing_happened_the_whole_run_is_shown(play):
    a = play(calm_run())
    story = a.view("story")
    assert [i["id"] for i in story["incidents"]] == ["loss:end"]
    assert a.view("a") <= 0 and a.view("b") >= story["t1_ns"]


def test_it_is_not_called_a_lost_end(play):
    a = play(calm_run())
    assert not a.page.get_by_role("region", name="Problems").is_visible()
    assert "stopped early" in a.page.get_by_role("region", name="Verdict").inner_text()


def test_lattice_and_table_agree_on_who_is_there_at_the_last_row(play):
    a = play(calm_run())
    a.set(t=a.view("story")["t1_ns"])
    a.page.locator('tr[data-rank="0"]').wait_for()
    assert "present" in a.page.locator('tr[data-rank="0"]').inner_text()
    lattice = a.page.locator(".cr-lattice")
    assert "Not there" not in lattice.inner_text()
    assert lattice.locator(".cr-svg-chiptext").all_text_contents() == ["0", "1", "2"]
