"""Numbers of a window: waits as the lanes have them, regimes of one group, devices in percent."""

from __future__ import annotations

import msgspec
import pytest

from analyzer import analyze
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_results
from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun
from dashboard.tiles import tiles_of
from tests.dashboard.story.kit import DEADLINE_S, trace_of
from tests.story import Story

SECOND = 10**9


@pytest.fixture
def speak(tmp_path):
    runs = []

    def made(told, *, judged=True, **how):
        run = TraceRun(trace_of(told, tmp_path / f"t{len(runs)}", judged=judged, **how))
        runs.append(run)
        if judged:
            assert run.wait_until_judged(DEADLINE_S)
        else:
            run.report = lambda: None
            run._judge_once = lambda: None
        assert tiles_of(run).wait(DEADLINE_S)
        return Speaker(run)

    yield made
    for run in runs:
        tiles_of(run).close()
        run.close()


def waited(window):
    return {row["rank"]: row["waited_s"] for row in window["by_rank"]}


def hang():
    """Ranks 0 and 1 wait for rank 2 for minutes."""
    s = Story(ranks=3)
    for one in s.ranks:
        one.join("c0", s.ranks)
        one.begin(0)
    s.all_reduce()
    for one in s.ranks[:2]:
        one.enter("c0", s.cseq["c0"])
    for _ in range(40):
        s.wait(5000)
        for one in s.ranks[:2]:
            one.row("health", detector="x", signal="s", value=1.0)
    s.ranks[2].row("health", detector="x", signal="s", value=1.0)
    return s


def test_a_wait_that_began_minutes_before_the_window_counts(speak):
    speaker = speak(hang(), clean=False)
    window = speaker.window(100 * SECOND, 110 * SECOND)
    assert waited(window) == {0: 10.0, 1: 10.0, 2: 0.0}
    assert window["source"] == "judged"


def test_a_provisional_wait_that_ends_after_the_window_counts(speak):
    s = Story(ranks=3)
    for one in s.ranks:
        one.join("c0", s.ranks)
        one.begin(0)
    rows = [s.ranks[0].enter("c0", 0), s.ranks[1].enter("c0", 0)]
    s.wait(10_000)
    rows.append(s.ranks[2].enter("c0", 0))
    for one, row in zip(s.ranks, rows, strict=True):
        one.done(row)
    window = speak(s, judged=False).window(2 * SECOND, 8 * SECOND)
    assert waited(window) == {0: 6.0, 1: 6.0, 2: 0.0}
    assert {row["rank"]: row["caused_s"] for row in window["by_rank"]} == {0: 0.0, 1: 0.0, 2: 12.0}
    assert window["source"] == "provisional"


def test_caused_is_what_the_waits_table_says_one_rank_is_to_blame_for(tmp_path):
    """The lanes name one rank a wait; what nobody has at least half of is nobody's. The report's blame
    has the shares too, so it is never less in sum."""
    folder = sample_traces()["kill-one"]
    with open_trace(folder) as trace:
        analysis = analyze(trace)
    run = TraceRun(folder)
    assert run.wait_until_judged(DEADLINE_S) and tiles_of(run).wait(DEADLINE_S)
    speaker = Speaker(run)
    story = speaker.story().story
    window = speaker.window(-SECOND, story.t1_ns + SECOND)
    want: dict[int, int] = {}
    for wait in analysis.results["waits"].to_pylist():
        if wait["root_rank"] is not None:
            want[wait["root_rank"]] = want.get(wait["root_rank"], 0) + wait["wait_ns"]
    caused = {row["rank"]: row["caused_s"] for row in window["by_rank"]}
    assert caused == pytest.approx({rank: ns / 1e9 for rank, ns in want.items()}, rel=1e-6)
    paired: dict[int, float] = {}
    for pair in story.waits.pairs:
        paired[pair["caused_by"]] = paired.get(pair["caused_by"], 0.0) + pair["wait_s"]
    assert caused == pytest.approx(paired, rel=1e-6)
    lanes = tiles_of(run).window_sums(-SECOND, story.t1_ns + SECOND)
    assert {rank: sums[1] for rank, sums in lanes.items()} == caused
    assert waited(window) == pytest.approx(
        {row.rank: row.waited_s for row in analysis.report.waits.by_rank}, rel=1e-6
    )
    run.close()


def test_silence_is_no_regime(speak):
    s = Story(ranks=2)
    a, b = s.ranks
    for step in range(200):
        here = [a] if 50 <= step < 150 else [a, b]
        for one in here:
            one.begin(step)
        s.wait(400)
        for one in here:
            one.end()
    speaker = speak(s)
    story = speaker.story().story
    (silence,) = story.silent
    inside = (silence.from_ns + SECOND, silence.to_ns - SECOND)
    assert {row["rank"]: row["regimes"] for row in speaker.window(*inside)["by_rank"]} == {
        0: {"STRONG": 1.0},
        1: {},
    }
    spans = zip(story.regimes.rank, story.regimes.start_ns, story.regimes.end_ns, strict=True)
    mine = [(start, end) for rank, start, end in spans if rank == 1]
    assert [mine[0][1], mine[1][0]] == [silence.from_ns, silence.to_ns]
    after = next(r for r in speaker.state(silence.to_ns + SECOND)["ranks"] if r["rank"] == 1)
    assert (after["regime"], after["since_ns"]) == ("STRONG", mine[0][0])


def test_regimes_are_those_of_one_group(speak):
    s = Story(ranks=2)
    for one in s.ranks:
        one.begin(0)
    s.group = "plan"
    for one in s.ranks:
        one.regime = "EVENTUAL"
        one.decide("STABLE_SYNC", "EVENTUAL", "EVENTUAL")
    s.wait(1000)
    for one in s.ranks:
        one.end()
    s.group = "world"
    for one in s.ranks:
        one.regime = "STRONG"
        one.end()
    speaker = speak(s)
    inside = (SECOND // 10, 9 * SECOND // 10)
    assert speaker.window(*inside)["regime_share"] == {"STRONG": 1.0}
    plan = speaker.window(*inside, "plan")
    assert (plan["group"], plan["regime_share"]) == ("plan", {"EVENTUAL": 1.0})
    assert [row["regimes"] for row in plan["by_rank"]] == [{"EVENTUAL": 1.0}] * 2


def test_waits_that_were_not_measured_are_not_nought(speak):
    s = Story(ranks=2)
    for one in s.ranks:
        one.begin(0)
    speaker = speak(s)
    said = speaker.story().story.measured["waits"]
    assert said == {"state": "not_measured", "why": "no collective was recorded in this run"}
    window = speaker.window(0, SECOND)
    assert waited(window) == {0: None, 1: None} and window["source"] is None


def test_refused_waits_are_not_nought(tmp_path):
    s = Story(ranks=2)
    for one in s.ranks:
        one.join("c0", s.ranks)
        one.begin(0)
    s.all_reduce()
    folder = trace_of(s, tmp_path / "t")
    analysis = analyze(s.source())
    why = "no evidence ties the clocks of these hosts"
    waits = msgspec.structs.replace(analysis.report.waits, by_rank=[], refused=why)
    report = msgspec.structs.replace(analysis.report, waits=waits)
    write_results(folder, analysis.results, msgspec.json.encode(report))
    run = TraceRun(folder)
    speaker = Speaker(run)
    assert speaker.story().story.measured["waits"] == {"state": "not_measured", "why": why}
    assert waited(speaker.window(0, SECOND)) == {0: None, 1: None}
    run.close()


def test_a_busy_process_is_busy_for_a_hundred_percent_at_most(speak):
    s = Story(ranks=1)
    (one,) = s.ranks
    one.begin(0)
    for value, unit in ((250.0, "percent"), (7_000.0, "ms")):
        one.row(
            "health", detector="cpu", signal="cpu_busy", value=value, unit=unit, subject_rank=0,
            subject_incarnation=0,
        )  # fmt: skip
    one.end()
    speaker = speak(s)
    t1 = speaker.story().story.t1_ns
    assert speaker.window(0, t1 + 1)["by_rank"][0]["cpu_median"] == 100.0
    assert speaker.state(t1)["ranks"][0]["cpu"] == 100.0
