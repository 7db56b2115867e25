"""Runs that are empty, cut off, incomplete, hostile, or in two groups."""

from __future__ import annotations

import msgspec
import pytest

from analyzer import analyze
from cascade_runtime.vocabulary.trace_meta import parse_trace_meta
from collector.trace.trace_writer import write_meta
from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun
from tests.analyzer.runs import kill_one_run
from tests.analyzer.stories.every import STORIES
from tests.dashboard.story.kit import check, story_of, trace_of
from tests.story import Story

HOSTILE = "<img src=x onerror=alert(1)>\x00\x07\u202e\n'; DROP TABLE actors; --" + "x" * 10_000


def test_no_rows(tmp_path):
    story = story_of(trace_of(Story(ranks=0, start=False), tmp_path / "t"))
    assert story.verdict.state == "none"
    assert story.actors == [] and story.ranks == [] and story.t1_ns == 0
    run = TraceRun(tmp_path / "t")
    teller = Speaker(run)
    assert teller.state(0)["ranks"] == []
    assert teller.window(0, 10)["by_rank"] == []
    assert teller.pulse()["num_rows"] == 0
    run.close()


def test_a_run_that_was_cut_off(tmp_path):
    told = kill_one_run()
    del told.rows[len(told.rows) // 2 :]
    story = story_of(trace_of(told, tmp_path / "t", clean=False))
    assert story.run.state == "unclean"
    assert any(i.id == "loss:end" for i in story.incidents)
    assert "The run's end is missing: it is still running, or was cut off." in story.verdict.detail
    assert story.verdict.sentence.endswith(
        "The run's end is missing: it is still running, or was cut off."
    )


def test_a_run_that_somebody_stopped_has_not_lost_its_end(tmp_path):
    told = kill_one_run()
    del told.rows[len(told.rows) // 2 :]
    path = trace_of(told, tmp_path / "t", clean=False)
    meta = parse_trace_meta((path / "trace.json").read_bytes(), "trace.json")
    write_meta(path, msgspec.structs.replace(meta, ended_ns=meta.created_ns, clean_end=False))
    story = story_of(path)
    assert story.run.state == "stopped"
    end = next(i for i in story.incidents if i.id == "loss:end")
    assert (end.title, end.severity) == ("Stopped early", "info")
    assert "The run was stopped before its scripts had ended." in story.verdict.detail


UNKNOWN = [(code, tell) for code, kind, tell in STORIES if kind == "unknown"][::12]


@pytest.mark.parametrize("tell", [t for _, t in UNKNOWN], ids=[c for c, _ in UNKNOWN])
def test_what_is_not_known_is_not_called_fine(tmp_path, tell):
    told, _ = tell()
    report = analyze(told.source() if isinstance(told, Story) else told).report
    story = story_of(trace_of(told, tmp_path / "t", judged=True))
    assert story.verdict.state == report.verdict
    if report.verdict == "unknown":
        assert story.verdict.sentence.startswith("Cannot be decided: ")
        assert "No promise" not in story.verdict.sentence


def test_a_rank_without_rows(tmp_path):
    story = story_of(trace_of(kill_one_run(dead=2), tmp_path / "t", without=(3,)))
    assert story.missing == [3]
    assert story.verdict.state != "ok"
    assert any("rank 3" in line for line in story.verdict.detail)
    assert any(i.id == "loss:ranks" for i in story.incidents)


def test_an_excursion_of_a_told_run(tmp_path):
    story = story_of(trace_of(kill_one_run(dead=2), tmp_path / "t"))
    assert story.verdict.state == "ok"
    (one,) = [i for i in story.incidents if i.kind == "excursion"]
    assert one.title.startswith("Rank 2 died: CAUSAL for ")
    assert "back in STRONG" in one.sentence
    out, back = story.walks[0], story.walks[1]
    assert one.a_ns < out.at_ns < back.at_ns < one.b_ns


def two_groups():
    s = Story(ranks=3, agents=0)
    _, b, c = s.ranks
    for one in s.ranks:
        one.begin(1)
    s.group = "experts"
    for one in (b, c):
        one.epoch, one.regime = 0, "STRONG"
        one.view([b, c], joined=[b, c], reason="started")
        one.walk_row("committed", "EVENTUAL", [b, c], fault="STATE_CORRUPTION", proposer=b)
    s.group = "world"
    for one in (b, c):
        one.epoch, one.regime = 0, "STRONG"
    for one in s.ranks:
        one.end()
    s.wait(500)
    s.group = "experts"
    for one in (b, c):
        one.epoch, one.regime = 1, "EVENTUAL"
        one.walk_row("committed", "CAUSAL", [b, c], fault="RECOVERY_DETECTED", proposer=b)
        one.walk_row("committed", "STRONG", [b, c], fault="STABLE_SYNC", proposer=b)
    s.group = "world"
    for one in s.ranks:
        one.epoch, one.regime = 0, "STRONG"
        one.begin(2)
    return s


def test_two_groups_are_told_apart(tmp_path):
    folder = trace_of(two_groups(), tmp_path / "t")
    story = story_of(folder)
    assert story.groups == ["experts", "world"]
    (one,) = [i for i in story.incidents if i.kind == "excursion"]
    assert one.sel == "walk:experts:1"
    assert "from STRONG to EVENTUAL to CAUSAL" in one.sentence
    run = TraceRun(folder)
    assert run.wait_until_judged(120)
    middle = (story.walks[0].at_ns + story.walks[1].at_ns) // 2
    state = Speaker(run).state(middle)
    assert [r["regime"] for r in state["ranks"]] == ["STRONG", "EVENTUAL", "EVENTUAL"]
    by_group = {g["group"]: g for g in state["groups"]}
    assert by_group["experts"]["members"] == [1, 2]
    assert by_group["world"]["regime"] == "STRONG"
    run.close()


def hostile_run():
    s = kill_one_run(dead=1)
    for table, row in s.rows:
        for column in ("name", "host", "object", "reason", "debt_id", "label", "signal"):
            if isinstance(row.get(column), str) and (table, column) != ("membership", "reason"):
                row[column] = row[column] + HOSTILE
        row["group_id"] = "g" + HOSTILE
    return s


@pytest.mark.parametrize("judged", [True, False])
def test_hostile_names_do_no_harm(tmp_path, judged):
    story = story_of(trace_of(hostile_run(), tmp_path / "t", judged=judged, name=HOSTILE))
    text = msgspec.json.encode(story)
    assert len(text) < 1_000_000
    assert len(story.run.name) <= 120 and "\ufffd" in story.run.name
    assert len(story.groups) == 1 and len(story.groups[0]) <= 80
    assert max(len(a.host) for a in story.actors) <= 120


def test_long_group_names_stay_different(tmp_path):
    s = Story(ranks=2)
    for number, one in enumerate(s.ranks):
        s.group = "g" * 5_000 + str(number)
        one.begin(1)
    story = story_of(trace_of(s, tmp_path / "t"))
    assert len(story.groups) == 3  # the world of the first rows too
    assert all(len(name) <= 80 for name in story.groups)


def test_a_rank_that_says_nothing_for_long(tmp_path):
    s = Story(ranks=3)
    a, b, c = s.ranks
    for step in range(40):
        for one in (a, b, *([c] if step < 10 or step > 35 else [])):
            one.begin(step)
            one.end()
        s.wait(1000)
    story = story_of(trace_of(s, tmp_path / "t"))
    (silence,) = story.silent
    assert silence.rank == 2
    assert 24e9 < silence.to_ns - silence.from_ns < 28e9
    assert any(i.kind == "silent" and i.sel == "rank:2" for i in story.incidents)
    run = TraceRun(tmp_path / "t")
    middle = (silence.from_ns + silence.to_ns) // 2
    states = {r["rank"]: r["state"] for r in Speaker(run).state(middle)["ranks"]}
    assert states == {0: "present", 1: "present", 2: "silent"}
    run.close()


def test_lost_events(tmp_path):
    s = Story(ranks=2)
    a, _ = s.ranks
    a.gap(*a.lose(7))
    story = story_of(trace_of(s, tmp_path / "t"))
    assert [g.rank for g in story.gaps] == [0]
    assert any(i.kind == "gap" for i in story.incidents)
    assert story.verdict.state != "ok"
    check(story)
