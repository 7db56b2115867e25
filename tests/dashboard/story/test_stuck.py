"""A job that hangs: who holds it up is told first, and nobody whom the evidence does not convict."""

from __future__ import annotations

import pytest

from collector.trace.trace_writer import write_tables
from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun
from tests.analyzer.test_hung import hung
from tests.analyzer.test_waits import quick
from tests.dashboard.story.kit import story_of, trace_of
from tests.story import MS


def test_who_holds_it_up_comes_first_and_is_in_the_headline(tmp_path):
    s = hung(quick(ranks=3, agents=1), (39.5,), waited_s=40)
    story = story_of(trace_of(s, tmp_path / "t", clean=False))
    said = "Stuck for 40 s at its end: ranks 0 and 1 waited in step 7 for rank 2."
    assert story.verdict.sentence.startswith(said + " Cannot be decided: ")
    first = story.incidents[0]
    assert (first.title, first.sentence, first.sel) == (
        "Rank 2 held up the others",
        said,
        "rank:2",
    )
    assert (first.kind, first.severity) == ("hang", "error")
    assert not [i for i in story.incidents if i.kind == "silent"]


@pytest.mark.parametrize("told_s", [(), (0.5,)])
def test_nobody_is_named_whom_nobody_saw(tmp_path, told_s):
    s = hung(quick(ranks=3, agents=1), told_s, waited_s=40)
    story = story_of(trace_of(s, tmp_path / "t", clean=False))
    assert "Stuck" not in story.verdict.sentence
    assert not [i for i in story.incidents if i.kind == "hang"]


def test_a_short_wait_at_the_end_is_no_hang(tmp_path):
    s = hung(quick(ranks=3, agents=1), (1.5,), waited_s=2)
    story = story_of(trace_of(s, tmp_path / "t", clean=False))
    assert "Stuck" not in story.verdict.sentence


class Later(TraceRun):
    """The same run, after which more may have come than was judged."""

    def is_judged_whole(self):
        return False


@pytest.mark.parametrize(("goes_on", "said"), [(False, "Stuck for 44 s"), (True, None)])
def test_what_came_after_the_analysis_counts(tmp_path, goes_on, said):
    s = hung(quick(ranks=3, agents=1), (39.5,), waited_s=40)
    path = trace_of(s, tmp_path / "t", clean=False, judged=True)
    s.now += 5_000 * MS
    for one in s.ranks[:-1]:
        one.step = 8 if goes_on else 7
        one.health("pending", one)
    source = s.source(clean=False)
    write_tables(path, {"health": source.table("health")})
    run = Later(path)
    try:
        told = Speaker(run).story().story.verdict.sentence
    finally:
        run.close()
    assert told.startswith(said) if said else "Stuck" not in told, told
