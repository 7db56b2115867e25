"""Which hosts are out of reach: pure, with the clock passed in."""

from __future__ import annotations

import pytest

from cascade_runtime.agent.hosts import SILENT_S, SUSPECT_S, HostWatch, lifeline_hosts
from cascade_runtime.agent.patience import FIRST_S, TIMES, Patience, no_majority, not_answered
from cascade_runtime.agent.walk_proposer import Waiting
from tests.agent.facts import actors

MINE = actors(2, 3)


@pytest.mark.parametrize(
    ("index", "num_hosts", "to"),
    [(0, 1, []), (0, 2, [1]), (1, 2, [0]), (2, 3, [0, 1]), (3, 4, [0, 1]), (6, 8, [7, 0])],
)
def test_lifelines_go_to_the_next_hosts(index, num_hosts, to):
    assert lifeline_hosts(index, num_hosts) == to


def watch(*open_lines: bool) -> HostWatch:
    hosts = HostWatch()
    hosts.up(1, 0.0)
    for actor, is_open in zip(MINE, open_lines, strict=False):
        hosts.lifeline(actor, is_open=True)
        if not is_open:
            hosts.lifeline(actor, is_open=False)
    return hosts


def test_an_agent_that_ended_alone_is_waited_for():
    hosts = watch(True, True)
    hosts.down(1, 5.0)
    assert not hosts.is_lost(1, MINE)
    assert not hosts.is_gone(1, MINE, 5.0 + SUSPECT_S)
    assert hosts.is_gone(1, MINE, 5.1 + SUSPECT_S)


def test_ranks_that_ended_while_their_agent_lives_are_its_business():
    assert not watch(False, False).is_gone(1, MINE, 1.0)


@pytest.mark.parametrize("lines", [(False, True), (False,), ()])
def test_who_may_still_live_keeps_its_host(lines):
    hosts = watch(*lines)
    hosts.down(1, 5.0)
    assert not hosts.is_lost(1, MINE)


def test_a_host_whose_agent_and_ranks_ended_is_lost_at_once():
    hosts = watch(False, False)
    hosts.down(1, 5.0)
    assert hosts.is_gone(1, MINE, 5.0)
    assert not hosts.is_lost(1, [])  # no member was there
    hosts.up(1, 6.0)
    assert not hosts.is_gone(1, MINE, 6.0)


def test_what_another_agent_saw_counts_where_the_agent_is_away_too():
    hosts = watch()
    hosts.told_lost(1)
    assert not hosts.is_lost(1, MINE)
    hosts.down(1, 5.0)
    assert not hosts.is_lost(1, MINE), "told before: perhaps of an earlier life"
    hosts.told_lost(1)
    assert hosts.is_lost(1, MINE)


def test_silence_without_an_end():
    hosts = watch()
    hosts.heard(1, 3.0)
    assert not hosts.is_silent(1, 3.0 + SILENT_S)
    assert hosts.is_silent(1, 3.1 + SILENT_S)
    assert hosts.is_gone(1, MINE, 3.1 + SUSPECT_S)
    hosts.slept()  # it was we who heard nothing
    assert not hosts.is_gone(1, MINE, 3.1 + SUSPECT_S)


def test_a_host_that_is_away_when_its_peer_starts_again_is_not_waited_for_for_ever():
    hosts = HostWatch()  # the life before this one knew it
    hosts.down(1, 5.0)
    assert not hosts.is_gone(1, MINE, 5.0 + SUSPECT_S)
    assert hosts.is_gone(1, MINE, 5.1 + SUSPECT_S)
    hosts.up(1, 20.0)
    assert not hosts.is_gone(1, MINE, 20.0)


def test_nothing_is_known_of_a_host_that_never_came():
    assert not HostWatch().is_gone(1, MINE, 1e9)


# ---- saying why a walk stands still -----------------------------------------------------------------


def test_patience_tells_ever_more_rarely():
    patience = Patience()
    told = [t for t in range(300) if patience.is_due(4, True, float(t))]
    assert told == [FIRST_S, FIRST_S * TIMES, FIRST_S * TIMES * TIMES]
    assert not patience.is_due(5, True, 300.0)  # another walk
    assert patience.is_due(5, True, 300.0 + FIRST_S)


def test_a_walk_that_ended_is_forgotten():
    patience = Patience()
    patience.is_due(4, True, 0.0)
    patience.is_due(4, False, 1.0)
    assert not patience.is_due(4, True, 2.5)


def test_the_sentences():
    waiting = Waiting(3, 4, set(actors(0, 1)), [])
    said = no_majority(waiting, [1])
    assert "of the 4 members of epoch 3 only 2 can be heard (ranks 0, 1)" in said
    assert "until agent 1 can be reached again" in said
    assert "waits for agents 1, 2, which have not" in not_answered(waiting, [1, 2])
