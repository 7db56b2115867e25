"""Why STRONG was left, who was lost when, and what was done about it: in words."""

from __future__ import annotations

import pytest

from dashboard.story.causes import cause_words
from dashboard.story.fault_words import signal_words
from tests.dashboard.story.kit import story_of, trace_of
from tests.story import Story, Teller


@pytest.mark.parametrize(
    ("fault", "rank", "said"),
    [
        ("RANK_SKEW_HIGH", 3, "rank 3 came late"),
        ("RANK_SKEW_HIGH", None, "a rank came late"),
        ("NODE_CHURN_HIGH", 3, "ranks came and went"),
        ("A_FAULT_TO_COME", 3, "A_FAULT_TO_COME"),
        (None, None, "a walk"),
    ],
)
def test_a_fault_in_words(fault, rank, said):
    assert cause_words(fault, rank) == said


@pytest.mark.parametrize(
    ("signal", "value", "unit", "said"),
    [
        ("late", 44.12, "ms", "late by 44.1 ms"),
        ("own_signal", 2.0, None, "own signal 2"),
        ("own_signal", None, "ms", "own signal"),
        (None, 2.0, "ms", ""),
    ],
)
def test_a_signal_in_words(signal, value, unit, said):
    assert signal_words({"signal": signal, "value": value, "unit": unit}) == said


def late_then_two_lost(churn, late_ms=2_000):
    """A late rank, and back; then two deaths a while apart, and back; of 4 ranks."""
    s = Story(ranks=4, agents=1)
    a, b, c, d = s.ranks
    (agent,) = s.agents
    a.begin(0)
    s.wait(1_000)
    s.walk("CAUSAL", "RANK_SKEW_HIGH", evidence=[agent.health("late", d, "RANK_SKEW_HIGH")])
    s.wait(late_ms)
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC")
    s.wait(1_000)
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b, d], departed=[c])
    s.wait(300)
    s.walk("EVENTUAL", "GPU_FAIL_STOP", members=[a, b], departed=[d])
    if churn:
        agent.health("changes", None, "NODE_CHURN_HIGH")
    s.wait(1_000)
    s.settle_all()
    s.walk("CAUSAL", "RECOVERY_DETECTED", members=[a, b])
    s.wait(10_000)
    s.walk("STRONG", "STABLE_SYNC", members=[a, b])
    a.begin(1)
    return s


@pytest.mark.parametrize("churn", [False, True])
def test_each_time_out_of_strong_is_one_sentence(tmp_path, churn):
    story = story_of(trace_of(late_then_two_lost(churn), tmp_path / "t", judged=True))
    lost, late = (i for i in story.incidents if i.kind == "excursion")
    assert late.title == "Rank 3 came late: CAUSAL for 2.0 s"
    assert late.sentence.startswith("Rank 3 came late at 1.0 s (RANK_SKEW_HIGH): the ranks went")
    assert lost.title == "Ranks 2, 3 died: down to EVENTUAL, 11 s out of STRONG"
    assert lost.sentence.startswith(
        "Ranks 2, 3 died between 4.1 s and 4.4 s (GPU_FAIL_STOP): the others went from STRONG to "
        "CAUSAL to EVENTUAL to CAUSAL, "
    )
    assert ("NODE_CHURN_HIGH" in lost.sentence) is churn
    assert "STRONG was left twice (rank 3 came late, ranks 2, 3 died), for 13 s in all" in (
        story.verdict.sentence
    )


def test_a_loss_comes_before_what_took_longer(tmp_path):
    story = story_of(trace_of(late_then_two_lost(False, 60_000), tmp_path / "t", judged=True))
    first, second = (i.title for i in story.incidents if i.kind == "excursion")
    assert first.startswith("Ranks 2, 3 died")
    assert second.startswith("Rank 3 came late: CAUSAL for 1 m")


def test_what_followed_from_others_is_no_warning(tmp_path):
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    a.begin(0)
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC", members=[a, b])
    again = Teller(s, 2, 1)
    again.start()
    s.wait(2_000)
    for one in (a, b, again):
        one.epoch = a.epoch
        one.view([a, b, again], joined=[again], reason="joined")
    s.ranks.append(again)
    (agent,) = s.agents
    seen = [agent.health("changes", None, "NODE_CHURN_HIGH")]
    s.walk("CAUSAL", "NODE_CHURN_HIGH", members=[a, b, again], evidence=seen)
    s.wait(30_000)
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC", members=[a, b, again])
    story = story_of(trace_of(s, tmp_path / "t", judged=True, world_size=4))
    told = [(i.kind, i.severity) for i in story.incidents if i.kind in ("excursion", "return")]
    assert told == [("excursion", "warning"), ("excursion", "info"), ("return", "info")]
    (join,) = [m for m in story.marks if m.kind == "join"]
    assert join.sentence == "Rank 2 joined the view as 2.1."


def test_an_agent_that_was_started_again(tmp_path):
    s = Story(ranks=2, agents=1)
    a, b = s.ranks
    a.begin(0)
    again = Teller(s, 2, 1, kind="agent")
    s.wait(500)
    again.start()
    b.begin(0)
    story = story_of(trace_of(s, tmp_path / "t", judged=True))
    (incident,) = [i for i in story.incidents if i.kind == "agent"]
    assert incident.severity == "info"
    assert incident.sentence.endswith("again after 502 ms; ranks go on without it.")


@pytest.mark.parametrize(
    ("status", "said"),
    [(-9.0, "died (SIGKILL) at"), (1.0, "died (exit code 1) at"), (None, "died at")],
)
def test_how_a_rank_died_is_told_as_the_terminal_tells_it(tmp_path, status, said):
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    (agent,) = s.agents
    a.begin(0)
    s.wait(1_000)
    seen = agent.health("dead", c, "GPU_FAIL_STOP")
    seen |= {"value": status, "unit": "exit status"}
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c], evidence=[seen])
    a.begin(1)
    story = story_of(trace_of(s, tmp_path / "t"))
    (one,) = (i for i in story.incidents if i.kind == "excursion")
    assert one.sentence.startswith(f"Rank 2 {said} 1.0 s (GPU_FAIL_STOP): ")
