"""A straggler in code of its own answers the one walk that sets it apart, and no other."""

from __future__ import annotations

import inspect
import os
import queue
import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from cascade_runtime.agent.protocol import (
    Acked,
    Ballot,
    Commit,
    Cut,
    Halt,
    Halted,
    Proposed,
    SumLevel,
    Value,
    View,
)
from cascade_runtime.progress import BACKWARD, HALTED
from cascade_runtime.rank.aside import Aside, sets_apart
from cascade_runtime.rank.reducer import StepReducer
from cascade_runtime.rank.walking import Walking
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import actors, view
from tests.runtime.apart_rig import World

ME = Actor(2)
WAIT_S = 20.0


def parting(**fields: Any) -> View:
    told = {"epoch": 1, "regime": Regime.CAUSAL, "cohorts": [actors(0, 1), actors(2)]}
    return view(0, 1, 2, **{**told, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"cohorts": [actors(0, 1, 2)]},
        {"cohorts": [actors(0), actors(1, 2)]},
        {"levels": [SumLevel(Actor(0), 9, 3, Actor(0))]},
        {"cuts": [Cut(actors(2), 4)]},
        {"optim_from": Actor(0)},
        {"source": Actor(0), "behind": actors(1)},
        {"joined": actors(7)},
        {"departed": actors(9), "member_reason": "failed"},
    ],
)
def test_only_a_view_that_needs_nothing_of_it_sets_it_apart(fields: dict[str, Any]) -> None:
    assert sets_apart(parting(), ME)
    assert not sets_apart(parting(**fields), ME)


class Ranks:
    """Rank 2 of three, with the walk's side of it; its link is played."""

    def __init__(self) -> None:
        self.world = World()
        self.rank = self.world[2]
        self.link = self.rank.link
        self.link.inbox = deque()
        self.link.pump = lambda: None
        waiting: Any = SimpleNamespace(feeds=None)
        none: Any = None
        self.walking = Walking(
            self.rank.member, self.link, self.rank.open_step, none, none, waiting,
            self.rank.apart, self.rank.channel,
        )  # fmt: skip

    def hear(self, *messages: Any) -> list[Any]:
        """What is left in the inbox, and was not answered."""
        self.link.inbox.extend(messages)
        self.walking.serve_aside()
        return list(self.link.inbox)


HALT, BALLOT = Halt(1, graceful=True, ask=5), Ballot(1, 0)


def test_the_walk_that_sets_it_apart_is_answered_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = Ranks()
    commit = Commit(parting())
    assert ranks.hear(HALT, Proposed(parting(), BALLOT), commit) == [commit]
    (halted,) = ranks.link.of(Halted)
    assert (halted.ask, halted.facts.decided) == (5, 0)
    assert ranks.link.of(Acked) == [Acked(1, BALLOT)]
    assert ranks.rank.recorder.of("digests") == [], "the script may be writing to its parameters"
    served: list[Any] = []
    ranks.link.receive = ranks.link.inbox.popleft
    monkeypatch.setattr(ranks.walking, "walk", served.append)
    ranks.walking._finish_aside()
    ranks.walking._finish_aside()
    assert served == [commit], "its script meets us again: it stands until the walk is over"


def test_its_word_goes_on_saying_where_its_script_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others come to wait for it at the bound, and it is named by its word; see detectors/slow.py."""
    ranks = Ranks()
    word: Any = ranks.rank.member._progress  # the rig's, which keeps what it is told
    words: list[tuple[int, int, int]] = word.told
    ranks.rank.member.tell_progress(BACKWARD)
    ranks.hear(HALT, Proposed(parting(), BALLOT), Commit(parting()))
    assert [phase for *_, phase in words] == [BACKWARD]
    held = Halt(1, graceful=True, ask=6)
    ranks.link.receive = lambda: Commit(parting(epoch=1))
    ranks.walking.has_left = True
    monkeypatch.setattr(ranks.walking, "_install", lambda view: None)
    ranks.walking.walk(held)
    assert [phase for *_, phase in words] == [BACKWARD, HALTED], "in our code it stands still"


def test_another_view_waits_for_its_script() -> None:
    ranks = Ranks()
    together = Proposed(parting(cohorts=[actors(0, 1, 2)]), BALLOT)
    assert ranks.hear(HALT, together) == [together]
    assert len(ranks.link.of(Halted)) == 1 and ranks.link.of(Acked) == []


@pytest.mark.parametrize("where", ["optimizer", "apart", "leaving"])
def test_where_its_stand_is_not_a_place_in_the_loop_nothing_is_answered(where: str) -> None:
    ranks = Ranks()
    if where == "optimizer":
        ranks.rank.open_step.is_decided = True
    elif where == "apart":
        ranks.rank.member.is_apart = True
    else:
        ranks.rank.member.leaving = True
    assert ranks.hear(HALT) == [HALT]
    assert ranks.link.of(Halted) == []


def test_what_came_before_is_served_first() -> None:
    ranks = Ranks()
    value = Value("k", b"v")
    assert ranks.hear(value, HALT) == [value, HALT]
    assert ranks.hear(Halt(0, graceful=True)) != []


class Turn:
    """The lock, and who has come to it."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.wanted: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> None:
        self.wanted.put(threading.current_thread().name)
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def test_the_thread_serves_when_the_agent_speaks_and_not_while_the_script_is_in_our_code() -> None:
    ear, mouth = os.pipe()
    link: Any = SimpleNamespace(fd=ear)
    served: queue.Queue[bytes] = queue.Queue()
    aside = Aside(link, lambda: served.put(os.read(ear, 1)))
    turn: Any = Turn(aside.turn)
    aside.turn = turn
    aside.start()
    os.write(mouth, b"a")
    assert served.get(timeout=WAIT_S) == b"a"
    assert turn.wanted.get(timeout=WAIT_S) == "cascade-aside"
    with turn:
        turn.wanted.get(timeout=WAIT_S)
        os.write(mouth, b"b")
        assert turn.wanted.get(timeout=WAIT_S) == "cascade-aside"
        assert served.empty()
    assert served.get(timeout=WAIT_S) == b"b"
    with turn:
        aside.stop()
        os.write(mouth, b"c")
    aside._thread.join(WAIT_S)
    assert not aside._thread.is_alive() and served.empty()
    os.close(ear)
    os.close(mouth)


def test_ddp_finds_the_hook_as_it_is_declared() -> None:
    reducer: Any = StepReducer.__new__(StepReducer)
    parameters = inspect.signature(reducer.hook).parameters
    assert list(parameters) == ["state", "bucket"]
    assert not isinstance(parameters["bucket"].annotation, str)


def test_our_code_holds_the_turn() -> None:
    reducer: Any = StepReducer.__new__(StepReducer)
    reducer.aside = SimpleNamespace(turn=threading.RLock())
    reducer.member = SimpleNamespace(is_apart=False)
    owned: list[bool] = []
    reducer._walking = SimpleNamespace(leave=lambda: owned.append(reducer.aside.turn._is_owned()))
    reducer.leave()
    assert owned == [True]
