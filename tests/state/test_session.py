"""One process's end of shared state, with its agent played by the test."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cascade_runtime.agent.protocol import StateAsk, StateStand, StateUpdate, View, Welcome
from cascade_runtime.rank import zombie
from cascade_runtime.rank.link import AgentLost
from cascade_runtime.state import api
from cascade_runtime.state import coming as module
from cascade_runtime.state.api import State
from cascade_runtime.state.replica import Replica
from cascade_runtime.state.session import StateSession
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from tests.agent.facts import view

WAIT_S = 20.0
ME, OTHER, AGENT = Actor(0), Actor(1), Actor(2)


class Link:
    """Keeps what was sent; the agent answers an ask as ``answers`` says."""

    def __init__(self, first: View) -> None:
        self.inbox: deque[Any] = deque([Welcome(first, AGENT, "enforce")])
        self.sent: list[Any] = []
        self.answers: list[Any] = []
        self.epoch, self.fd, self.agent = -1, -1, AGENT
        self.on_return: Callable[[], None] | None = None

    def send(self, message: Any) -> None:
        self.sent.append(message)
        if message == StateAsk([]):
            self.inbox.extend(self.answers)
            self.answers = []

    def receive(self, timeout_s: float) -> Any:
        del timeout_s
        return self.inbox.popleft() if self.inbox else None

    def pump(self) -> None:
        pass


class Recorder:
    """Keeps rows as (table, fields)."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.rows: list[tuple[str, dict[str, Any]]] = []

    def row(self, table: type, **fields: Any) -> None:
        self.rows.append((table.__name__, fields))

    def set_view(self, epoch: int, regime: Any) -> None:
        pass

    def close(self) -> None:
        pass


class Player:
    """A session, not begun."""

    def __init__(self, actor: Actor = ME, first: View | None = None) -> None:
        self.link = Link(view(0, 1) if first is None else first)
        self.word: Any = SimpleNamespace(fenced=False, write=lambda *word: None)
        config: Any = SimpleNamespace(
            mode="enforce", num_ranks=2, exit_path=lambda a: None, stop_path=lambda: None
        )
        recorder: Any = Recorder(actor)
        link: Any = self.link
        self.session = StateSession(config, recorder, link, self.word)


def put_before() -> list[Any]:
    """What the others had put, as updates."""
    other = Replica(causal=True)
    return [StateUpdate(other.put(OTHER, "plan", "route", b"%d" % n)) for n in range(3)]


def in_thread(call: Callable[[], object]) -> list[BaseException]:
    """What it raised; fails where it does not return."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    assert not thread.is_alive(), "it hangs"
    return raised


@pytest.mark.parametrize(
    ("actor", "first"),
    [(Actor(0, 1), view(1, epoch=1)), (Actor(0, 1), view(0, 1)), (Actor(3), view(0, 1))],
)
def test_who_comes_later_knows_what_was_put_before_its_first_put(actor: Actor, first: View) -> None:
    player = Player(actor, first)
    player.link.answers = [*put_before(), StateAsk([])]
    player.session._join()
    assert player.session.put("plan", "route", "plan", b"new").version == 4


def test_all_that_the_others_hold_will_do_as_well() -> None:
    other = Replica(causal=True)
    for _ in range(3):
        other.put(OTHER, "plan", "route", b"v")
    player = Player(Actor(0, 1))
    player.link.answers = [StateStand(other.stand("stand")), StateAsk(other.clock())]
    player.session._join()
    assert player.session.put("plan", "route", "plan", b"new").version == 4


def test_who_is_there_from_the_beginning_waits_for_nobody() -> None:
    player = Player()
    player.session._join()
    assert player.session.put("plan", "route", "plan", b"first").version == 1


def test_an_agent_that_does_not_say_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CATCH_UP_PATIENCE_S", 0.05)
    player = Player(Actor(0, 1))
    player.link.answers = put_before()
    with pytest.raises(AgentLost, match="what the others have put"):
        player.session._join()


USES: dict[str, Callable[[StateSession], object]] = {
    "put": lambda s: s.put("plan", "route", "plan", b"v"),
    "read": lambda s: s.read("plan", "route", "plan"),
    "wait": lambda s: s.wait("plan", "route", 1, 0.1),
    "act": lambda s: s.act(put_before()[0].update, "plan"),
    "entries": lambda s: s.entries("plan"),
    "why_not": lambda s: s.why_not("plan", "route"),
}


@pytest.mark.parametrize("use", USES)
def test_a_fork_is_refused_though_nobody_there_lets_go_of_the_lock(use: str) -> None:
    player = Player()
    player.session._join()
    player.session._pid = -1  # as a fork sees it
    with player.session._lock:  # the thread held it when the process was forked
        (error,) = in_thread(lambda: USES[use](player.session))
    assert isinstance(error, BadUsage) and "this is a fork of it" in str(error)
    assert in_thread(player.session.finish) == []


def test_a_fork_that_opens_a_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api._Process, "pid", -1)
    with api._Process.opening:
        (error,) = in_thread(lambda: State("plan"))
    assert isinstance(error, BadUsage) and "this is a fork of it" in str(error)


def test_who_could_not_open_one_may_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CASCADE_RUN_DIR", raising=False)
    monkeypatch.setattr(api._Process, "pid", None)
    for _ in range(2):
        with pytest.raises(BadUsage, match="cascade run -n N"):
            State("plan")
        assert api._Process.pid is None


def test_a_thread_that_fails_ends_the_process_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In silence the job's next walk would wait for it for ever."""
    player = Player()
    player.session._join()
    note = tmp_path / "exit-0-0"
    monkeypatch.setattr(player.session._config, "exit_path", lambda actor: note)
    ended: list[int] = []
    monkeypatch.setattr(zombie.os, "_exit", ended.append)

    def broken() -> None:
        raise KeyError("of a kind that nobody thought of")

    monkeypatch.setattr(player.link, "pump", broken)
    assert in_thread(player.session._serve) == []
    assert (ended, note.read_text()) == ([zombie.EXIT_LEFT_BEHIND], str(zombie.EXIT_LEFT_BEHIND))
    told = capsys.readouterr().err
    assert "rank 0 cannot serve its States any more (KeyError: " in told
    assert "the job went on without it" in told
