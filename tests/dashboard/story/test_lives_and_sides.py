"""Ranks that come again, groups that fall at once, sides that cannot reach each other."""

from __future__ import annotations

import msgspec
import pytest

from dashboard.story.teller import Teller as Speaker
from dashboard.story.trace_source import TraceRun
from tests.analyzer.stories.every import STORIES
from tests.dashboard.story.kit import DEADLINE_S, story_of, trace_of
from tests.story import Story, Teller

SECOND = 10**9


@pytest.fixture
def speak(tmp_path):
    runs = []

    def made(told, **how):
        run = TraceRun(trace_of(told, tmp_path / f"t{len(runs)}", judged=True, **how))
        runs.append(run)
        assert run.wait_until_judged(DEADLINE_S)
        return Speaker(run)

    yield made
    for run in runs:
        run.close()


def restarted():
    """Rank 1 comes again as incarnation 1, and no view says that it had left."""
    s = Story(ranks=2)
    a, b = s.ranks
    again = Teller(s, 1, 1)
    for step in range(120):
        if step == 20:
            s.wait(20_000)
            again.start()
        for one in (a, b if step < 20 else again):
            one.begin(step)
        s.wait(200)
        for one in (a, b if step < 20 else again):
            one.end()
    return s


def test_an_incarnation_that_comes_again_ends_the_silence_before(speak):
    speaker = speak(restarted())
    story = speaker.story().story
    first, again = (a for a in story.actors if a.rank == 1)
    # Rank 0 was silent as long: nothing came from anybody, which is no silence of its own.
    (silence,) = [s for s in story.silent if s.rank == 1]
    assert (silence.incarnation, silence.from_ns, silence.to_ns) == (
        0,
        first.last_ns,
        again.first_ns,
    )
    states = {
        (r["rank"], r["incarnation"]): (r["state"], r["regime"])
        for r in speaker.state(story.t1_ns - SECOND)["ranks"]
    }
    assert states == {(0, 0): ("present", "STRONG"), (1, 1): ("present", "STRONG")}
    regimes = story.regimes
    ends = zip(regimes.rank, regimes.incarnation, regimes.end_ns, strict=True)
    assert max(end for rank, life, end in ends if (rank, life) == (1, 1)) == again.last_ns


def test_a_rank_that_came_back_is_not_missing(speak):
    s = Story(ranks=3, agents=1)
    a, b, dead = s.ranks
    for step in range(3):
        for one in s.ranks:
            one.begin(step)
        s.all_reduce(*s.ranks)
        for one in s.ranks:
            one.end()
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[dead])
    again = Teller(s, 2, 1)
    again.epoch, again.regime = a.epoch, "CAUSAL"
    again.start()
    s.walk("CAUSAL", "NODE_CHURN_HIGH", members=[a, b, again], leaving=())
    s.wait(100)
    a.begin(9)
    speaker = speak(s, clean=False)
    story = speaker.story().story
    assert [(w.members, w.missing) for w in story.walks] == [([0, 1], [2]), ([0, 1, 2], [])]
    assert "without" not in story.walks[1].sentence
    assert speaker.state(story.t1_ns)["groups"][0]["missing"] == []


def two_groups_fall():
    """In epoch 1 of each: the link of dp0 is slow, and rank 3 of dp1 dies."""
    s = Story(ranks=4, agents=1)
    for one in s.ranks:
        one.begin(0)
        one.end()
    s.group = "dp0"
    s.walk("CAUSAL", "LINK_DELAY_HIGH", members=s.ranks[:2])
    for one in (*s.ranks, *s.agents):
        one.epoch, one.regime = 0, "STRONG"
    s.wait(20)
    s.group = "dp1"
    s.walk(
        "CAUSAL", "GPU_FAIL_STOP", members=[s.ranks[2]], departed=[s.ranks[3]], leader=s.agents[0]
    )
    s.wait(500)
    s.group = "dp0"
    s.ranks[0].begin(9)
    return s


def test_who_died_in_one_group_did_not_in_another(tmp_path):
    story = story_of(trace_of(two_groups_fall(), tmp_path / "t", judged=True, clean=False))
    titles = {i.sel: i.title for i in story.incidents if i.kind == "excursion"}
    assert titles["walk:dp0:1"].startswith("A link became slow: ")
    assert titles["walk:dp1:1"].startswith("Rank 3 died: ")


@pytest.mark.parametrize("also_died", [False, True])
def test_who_was_stopped_did_not_die(speak, also_died):
    s = Story(ranks=4, agents=1)
    a, b, c, d = s.ranks
    a.begin(0)
    s.wait(1)
    seen = [s.agents[0].health("stopped", c, "GPU_FAIL_STOP")]
    s.walk(
        "CAUSAL", "GPU_FAIL_STOP", members=[a, b] if also_died else [a, b, d],
        departed=[c, d] if also_died else [c], reason="failed" if also_died else "stopped",
        evidence=seen,
    )  # fmt: skip
    s.wait(100)
    s.settle_all()
    story = speak(s).story().story
    (title,) = [i.title for i in story.incidents if i.kind == "excursion"]
    said = "Rank 3 died and rank 2 was stopped: " if also_died else "Rank 2 was stopped: "
    assert title.startswith(said)
    head = "One rank died and one rank was stopped" if also_died else "One rank was stopped"
    assert head in story.verdict.sentence, story.verdict
    (walk,) = story.walks
    assert "died" not in walk.sentence


def test_who_left_for_another_reason_did_not_die(tmp_path):
    s = Story(ranks=3)
    a, b, c = s.ranks
    a.begin(0)
    for one in (a, b):
        one.walk_row("committed", "CAUSAL", [a, b], fault="NODE_CHURN_HIGH", proposer=a)
        one.view([a, b], departed=[c], reason="preempted")
    s.wait(100)
    a.begin(1)
    story = story_of(trace_of(s, tmp_path / "t", clean=False))
    (title,) = [i.title for i in story.incidents if i.kind == "excursion"]
    assert title.startswith("Ranks came and went: ")


def test_each_side_of_an_epoch_has_a_name_of_its_own(tmp_path):
    s = Story(ranks=4)
    a, b, c, d = s.ranks
    a.begin(0)
    for side in ([a, b], [c, d]):
        for one in side:
            one.walk_row("committed", "EVENTUAL", side, fault="NO_MAJORITY", proposer=side[0])
    s.wait(100)
    a.begin(1)
    story = story_of(trace_of(s, tmp_path / "t", clean=False))
    assert [(w.id, w.members) for w in story.walks] == [
        ("world:1", [0, 1]),
        ("world:1:2", [2, 3]),
    ]


def in_flight(speaker):
    story = speaker.story().story
    return {r["rank"]: r["num_in_flight"] for r in speaker.state(story.t1_ns)["ranks"]}


def test_only_who_is_to_have_an_update_keeps_it_in_flight(speak):
    s = Story(ranks=4)
    a, b, _, _ = s.ranks
    for one in s.ranks:
        one.declare("expert/0", holders=[0, 1])
    for step in range(10):
        dot = a.issue("expert/0", version=step + 1)
        a.tell(b)
        b.apply(dot, "expert/0", version=step + 1)
    assert in_flight(speak(s)) == {0: 0, 1: 0, 2: 0, 3: 0}
    a.issue("expert/0", version=11)
    a.issue("params/0", version=1)
    a.discard(a.issue("params/0", version=2))
    late = Teller(s, 4)
    late.start()
    assert in_flight(speak(s)) == {0: 2, 1: 0, 2: 0, 3: 0, 4: 0}


def test_who_came_after_an_update_does_not_keep_it_in_flight(speak):
    s = Story(ranks=2)
    a, b = s.ranks
    b.apply(a.issue("params/0", version=1), version=1)
    late = Teller(s, 2)
    late.start()
    late.view([a, b, late], joined=[late], reason="joined")
    assert in_flight(speak(s))[0] == 0


def test_a_rank_with_nothing_but_its_introduction_is_missing(tmp_path):
    s = Story(ranks=3, start=False)
    for one in s.ranks:
        one.start()
    for one in s.ranks[:2]:
        one.begin(0)
    story = story_of(trace_of(s, tmp_path / "t", judged=True))
    assert story.missing == [2] and story.ranks == [0, 1, 2]
    assert any("rank 2" in line for line in story.verdict.detail)


def test_inferred_violations_are_a_number_of_their_own(tmp_path):
    told = next(tell for _, kind, tell in STORIES if kind == "trips")()[0]
    folder = trace_of(told, tmp_path / "t", judged=True)
    verdict = story_of(folder).verdict
    assert verdict.num_violations > 0 and verdict.num_inferred == 0
    path = folder / "results" / "report.json"
    report = msgspec.json.decode(path.read_bytes())
    for violation in report["violations"]:
        violation["inferred"] = True
    path.write_bytes(msgspec.json.encode(report))
    after = story_of(folder).verdict
    assert (after.num_violations, after.num_inferred) == (0, verdict.num_violations)


def test_a_growing_run_says_what_its_open_end_does_not_explain(tmp_path):
    s = Story(ranks=2)
    a, b = s.ranks
    for one in s.ranks:
        one.begin(0)
        one.read("params/0", version=0)
    a.gap(*a.lose(7))
    b.tell(a)
    run = TraceRun(trace_of(s, tmp_path / "t", judged=True, clean=False))
    run.is_open = lambda: True
    run.is_judged_whole = lambda: False
    verdict = Speaker(run).story().story.verdict
    run.close()
    assert verdict.state == "judging"
    assert "rank 0 lacks events" in verdict.sentence and "cannot be answered" in verdict.sentence


def test_in_a_run_that_goes_on_the_newest_spans_go_on(tmp_path):
    s = Story(ranks=3)
    a, b, c = s.ranks
    for one in s.ranks:
        one.begin(0)
    a.view([a, b], departed=[c], reason="failed")
    s.wait(1000)
    a.end()
    run = TraceRun(trace_of(s, tmp_path / "t", clean=False))
    run.is_open = lambda: True
    run.report = lambda: None
    run._judge_once = lambda: None
    story = Speaker(run).story().story
    run.close()
    assert story.run.state == "live"
    ends = dict(zip(story.regimes.rank, story.regimes.end_ns, strict=True))
    last = {actor.rank: actor.last_ns for actor in story.actors}
    assert ends == {0: story.t1_ns, 1: story.t1_ns, 2: last[2]} and last[1] < story.t1_ns
