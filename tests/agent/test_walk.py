"""Single moments of the walk that a simulation meets rarely. Agent 0 hosts ranks 0, 1; agent 1: 2, 3."""

from __future__ import annotations

import pytest

from cascade_runtime.agent.plan import plan_next
from cascade_runtime.agent.protocol import (
    NO_BALLOT,
    Accepted,
    Answer,
    Ballot,
    DrainRanks,
    History,
    Lag,
    Propose,
    Query,
    Rejected,
)
from cascade_runtime.agent.walk import Walker
from cascade_runtime.agent.walk_effects import AskLocal, DrainLocal, HaltLocal, Persist, Send
from cascade_runtime.vocabulary.policy import load_policy
from tests.agent.facts import AGENT, actors, at, dead, view

FIRST = view(0, 1, 2, 3)
NEXT = view(0, 1, 2, epoch=1)
MINE, OTHER = Ballot(1, 0), Ballot(2, 1)
POLICY = load_policy()


def planner(current, facts):
    return plan_next(current, facts, [], [], POLICY, AGENT)


def agent(index=0, **restored) -> Walker:
    walker = Walker(index, 2, lambda actor: actor.rank // 2, planner)
    told = {"log": [FIRST], "promised": NO_BALLOT, "accepted": None, **restored}
    walker.restore(**told)
    return walker


def sent(walker: Walker) -> list:
    return [e.message for e in walker.take() if isinstance(e, Send)]


def halt(walker: Walker) -> None:
    for rank in (m for m in walker.local_members() if m not in walker.dead):
        walker.on_facts(rank, at(5))


def answer(ballot: Ballot, *, accepted=None, **fields) -> Answer:
    facts = [(m, fields.get(f"r{m.rank}", at(5))) for m in actors(2, 3)]
    return Answer(ballot, 1, accepted, facts)


def proposing() -> Walker:
    walker = agent()
    walker.coordinate(graceful=False)
    halt(walker)
    walker.on_message(1, answer(MINE, r3=dead(5)))
    assert walker.proposing
    return walker


def test_a_promise_is_in_the_journal_before_the_query_leaves():
    walker = agent()
    walker.coordinate(graceful=True)
    kinds = [(type(e), getattr(e, "what", None)) for e in walker.take()]
    assert kinds == [(Persist, "promised"), (HaltLocal, None), (Send, None)]


def test_what_was_accepted_is_in_the_journal_before_ranks_are_asked_or_the_answer_leaves():
    walker = agent(1)
    walker.on_death(actors(3)[0], dead(5))
    walker.on_message(0, Propose(MINE, NEXT))
    walker.on_ack(actors(2)[0], 1, MINE)
    effects = walker.take()
    assert [e.what for e in effects[:2]] == ["promised", "accepted"]
    assert effects[2:] == [
        AskLocal(NEXT, MINE, actors(2)),
        Send(0, Accepted(MINE, 1, actors(2, 3))),
    ]


def test_a_restarted_agent_uses_no_ballot_twice():
    walker = agent(promised=Ballot(7, 1))
    walker.coordinate(graceful=True)
    assert Query(Ballot(8, 0), 1, True) in sent(walker)


def test_an_agent_that_died_inside_a_walk_goes_on_walking():
    # The reason for the walk may have died with it, and its ranks stand halted.
    walker = agent(promised=MINE, walking=True)
    assert walker.walking
    walker.on_message(1, History([NEXT]))
    assert not walker.walking


def test_a_coordinator_that_lost_its_ballot_comes_back_with_a_higher_one():
    walker = proposing()
    walker.on_message(1, Query(OTHER, 1, False))
    assert not walker.coordinating
    told = [m for m in sent(walker) if isinstance(m, Answer)]
    assert told == [
        Answer(OTHER, 1, (MINE, walker.accepted[1]), [(a, at(5)) for a in actors(0, 1)])
    ]
    walker.on_message(1, Accepted(MINE, 1, actors(2, 3)))
    assert walker.epoch == 0
    walker.coordinate(graceful=False)
    assert Query(Ballot(3, 0), 1, False) in sent(walker)


def test_a_proposal_under_too_low_a_ballot_is_answered():
    # Silence would leave its coordinator saying it forever, when the higher one is gone.
    other = agent(1, promised=OTHER)
    other.on_message(0, Propose(MINE, NEXT))
    assert sent(other) == [Rejected(MINE, 1, OTHER)]
    walker = proposing()
    walker.take()
    walker.on_message(1, Rejected(MINE, 1, OTHER))
    assert not walker.proposing
    assert Query(Ballot(3, 0), 1, False) in sent(walker)
    walker.on_message(1, Rejected(MINE, 1, OTHER))  # once more, of the old ballot
    assert sent(walker) == []


def test_a_proposal_above_the_ballot_that_halted_the_ranks():
    other = agent(1)
    other.on_message(0, Query(MINE, 1, True))
    halt(other)
    other.take()
    other.on_message(0, Propose(Ballot(4, 0), NEXT))
    assert (other.promised, other.accepted) == (Ballot(4, 0), (Ballot(4, 0), NEXT))
    for rank in actors(2, 3):
        other.on_ack(rank, 1, MINE)  # of another proposal: none
        other.on_facts(rank, at(5))
    assert sent(other) == []
    for rank in actors(2, 3):
        other.on_ack(rank, 1, Ballot(4, 0))
    assert sent(other) == [Accepted(Ballot(4, 0), 1, actors(2, 3))]


def test_what_some_agent_accepted_is_proposed_again():
    walker = agent()
    walker.coordinate(graceful=False)
    halt(walker)
    walker.take()
    walker.on_message(1, answer(MINE, accepted=(Ballot(0, 1), NEXT), r2=dead(5)))
    assert Propose(MINE, NEXT) in sent(walker)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_two_accepted_views_the_one_of_the_higher_ballot_is_proposed(order):
    walker = Walker(0, 3, lambda actor: actor.rank, planner)
    walker.restore([view(0, 1, 2)], NO_BALLOT, None)
    walker.coordinate(graceful=False)
    walker.on_facts(actors(0)[0], at(5))
    views = {1: view(0, 1, epoch=1), 2: view(0, 2, epoch=1)}
    for index in order:
        accepted = (Ballot(0, index), views[index])
        walker.on_message(index, Answer(MINE, 1, accepted, [(actors(index)[0], at(5))]))
    assert Propose(MINE, views[2]) in sent(walker)


def test_history_ends_the_walk_that_it_overtakes():
    walker = proposing()
    walker.take()
    walker.on_message(1, History([NEXT]))
    assert (walker.epoch, walker.walking) == (1, False)
    walker.on_message(1, Accepted(MINE, 1, actors(2, 3)))
    walker.on_message(1, History([NEXT]))
    assert (walker.epoch, sent(walker)) == (1, [])


def test_history_with_a_hole_is_asked_for_again():
    walker = agent()
    walker.on_message(1, History([view(0, 1, epoch=2)]))
    assert walker.take() == [Send(1, Lag(0))]


@pytest.mark.parametrize("ahead", [Query(OTHER, 3, True), Propose(OTHER, view(0, epoch=3))])
def test_who_is_behind_asks_and_who_is_ahead_teaches(ahead):
    walker = agent()
    walker.on_message(1, ahead)
    assert walker.take() == [Send(1, Lag(0))]
    other = agent(1, log=[FIRST, NEXT])
    other.on_message(0, Lag(0))
    other.on_message(0, Query(MINE, 1, True))
    assert sent(other) == [History([NEXT])] * 2


# ---- where ranks really are ------------------------------------------------------------------


def asks(walker: Walker) -> list[int]:
    return [e.ask for e in walker.take() if isinstance(e, HaltLocal | DrainLocal)]


def test_an_answer_from_before_a_drain_does_not_count_after_it():
    other = agent(1)
    other.on_message(0, Query(MINE, 1, True))
    other.on_message(0, Query(MINE, 1, True))  # said again: both halts are under way
    early, late = asks(other)
    for rank in actors(2, 3):
        other.on_facts(rank, at(5), early)
    other.on_message(0, DrainRanks(MINE, 1, 6, actors(2, 3)))
    (drain,) = asks(other)
    for rank in actors(2, 3):
        other.on_facts(rank, at(5), late)
    assert other.halted == {}
    for rank in actors(2, 3):
        other.on_facts(rank, at(6), drain)
    assert sent(other) == [Answer(MINE, 1, None, [(r, at(6)) for r in actors(2, 3)])]


def test_an_answer_from_before_an_epoch_does_not_count_in_it():
    walker = agent()
    walker.on_message(1, Query(OTHER, 1, True))
    (old,) = asks(walker)
    walker.on_message(1, History([NEXT]))
    walker.on_facts(actors(0)[0], at(5), old)
    assert walker.halted == {}


def test_an_answer_to_the_last_life_does_not_count_in_this_one():
    first, second = agent(num_starts=0), agent(num_starts=1)
    for walker in (first, second):
        walker.on_message(1, Query(OTHER, 1, True))
    (old,), (new,) = asks(first), asks(second)
    second.on_facts(actors(0)[0], at(5), old)
    assert second.halted == {}
    second.on_facts(actors(0)[0], at(5), new)
    assert list(second.halted) == actors(0)


def test_a_loss_after_a_drain_asks_everybody_again():
    # Those who were let go may have decided the step, or not: their last answer is no ground.
    walker = agent()
    walker.coordinate(graceful=True)
    walker.on_facts(actors(0)[0], at(6))
    walker.on_facts(actors(1)[0], at(6))
    walker.on_message(1, answer(MINE))
    assert DrainRanks(MINE, 1, 6, actors(2, 3)) in sent(walker)
    walker.on_death(actors(1)[0], dead(6))
    walker.on_message(1, answer(MINE))  # said before the drain
    assert not walker.proposing
    assert Query(Ballot(2, 0), 1, False) in sent(walker)


@pytest.mark.parametrize("accepted", [None, (MINE, NEXT)])
def test_a_rank_that_connects_anew_is_asked_anew(accepted):
    walker = agent(accepted=accepted, promised=MINE)
    if accepted is None:
        walker.on_hello(actors(0)[0])
        assert walker.take() == []
        walker.on_message(1, Query(OTHER, 1, True))
        walker.take()
    walker.on_hello(actors(0)[0])
    (effect,) = walker.take()
    if accepted is None:
        assert (type(effect), effect.ranks) == (HaltLocal, actors(0))
    else:
        assert effect == AskLocal(NEXT, MINE, actors(0))


def test_a_rank_that_connects_anew_to_a_newer_ballot_is_halted_not_asked_to_acknowledge():
    walker = agent(accepted=(MINE, NEXT), promised=MINE)
    walker.on_message(1, Query(OTHER, 1, True))
    walker.take()
    walker.on_hello(actors(0)[0])
    (effect,) = walker.take()
    assert isinstance(effect, HaltLocal)


# ---- suspects and the empty view -------------------------------------------------------------


@pytest.mark.parametrize("local_dead", [False, True])
def test_half_of_the_members_is_no_majority(local_dead):
    walker = agent()
    if local_dead:
        walker.on_death(actors(1)[0], dead(5))
    walker.coordinate(graceful=False)
    halt(walker)
    walker.suspect(frozenset({1}))
    assert not walker.proposing


def test_a_majority_goes_on_without_a_suspect():
    walker = Walker(0, 2, lambda actor: int(actor.rank == 2), planner)
    walker.restore([view(0, 1, 2)], NO_BALLOT, None)
    walker.coordinate(graceful=False)
    halt(walker)
    assert not walker.proposing
    walker.suspect(frozenset({1}))
    for rank in actors(0, 1):
        walker.on_ack(rank, 1, MINE)
    assert walker.view.departed == actors(2)
    assert History([walker.view]) in sent(walker)


def test_the_empty_view_is_the_last():
    walker = Walker(0, 1, lambda actor: 0, planner)
    walker.restore([view(0)], NO_BALLOT, None)
    walker.coordinate(graceful=False)
    walker.on_death(actors(0)[0], dead(5))
    assert (walker.epoch, walker.view.members) == (1, [])
    walker.coordinate(graceful=False)
    assert (walker.epoch, walker.walking) == (1, False)
