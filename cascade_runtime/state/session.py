"""One process's end of shared state: its connection, the thread that serves it, and the rows.

Everything happens under one lock. The thread only takes in what arrives; puts are sent where they are
made. While the agent is away the process goes on with what it holds, and both sides tell each other
what they lack when it is back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.protocol import (
    Message,
    NotWanted,
    StateAsk,
    StateStand,
    StateUpdate,
)
from cascade_runtime.progress import BETWEEN, LEAVING, ProgressWord
from cascade_runtime.rank.link import AgentLink, wait_readable
from cascade_runtime.rank.zombie import end_newcomer, leave_behind
from cascade_runtime.recorder import Recorder
from cascade_runtime.state.coming import a_fork, catch_up, first_message
from cascade_runtime.state.replica import Replica, Stand, Update
from cascade_runtime.state.room import check_room
from cascade_runtime.state.rows import StateRows
from cascade_runtime.state.walking import PlainMember
from cascade_runtime.state.why_not import why_not
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Clock, Dot

LEAVE_PATIENCE_S = 60.0
OBSERVED_LEAVE_PATIENCE_S = 5.0
ASK_AGAIN_S = 1.0
_LOOK_S = 0.1


class StateSession:
    """The connection of this process, shared by all its States."""

    def __init__(
        self, config: JobConfig, recorder: Recorder, link: AgentLink, progress: ProgressWord
    ) -> None:
        self.actor = recorder.actor
        self.enforced = config.mode == "enforce"
        self._config = config
        self._recorder = recorder
        self._link = link
        self._progress = progress
        self._replica = Replica(causal=self.enforced)
        self._rows = StateRows(recorder)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._pid = os.getpid()
        self._over = False
        self._asked = 0.0
        self._num_stands = 0
        self._member: PlainMember | None = None

    def begin(self) -> None:
        """Wait for the job's first view, and serve from then on.

        Raises:
            BadUsage: the other ranks do not come.
            AgentLost: this process comes later, and is not told what was put before.
        """
        self._join()
        threading.Thread(target=self._serve, name="cascade-state", daemon=True).start()

    # ---- for the States --------------------------------------------------------------------------

    def put(self, state: str, key: str, kind: str, value: bytes) -> Update:
        """Issue an update and send it; see State.put.

        Raises:
            BadUsage: the job's keys would become too many or too large.
        """
        with self._turn():
            check_room(self._replica, state, key, value)
            update = self._replica.put(self.actor, state, key, value)
            self._rows.issued(update, kind)
            self._link.send(StateUpdate(update))
            self._take_in()
            self._changed.notify_all()
            return update

    def read(self, state: str, key: str, kind: str) -> Update | None:
        """The update that stands, with a row of having looked at it."""
        with self._turn():
            seen = self._replica.entry(state, key)
            self._rows.read(state, key, kind, "observe", seen)
            return seen

    def wait(self, state: str, key: str, at_least: int, timeout_s: float) -> bool:
        """Until the key has this version; False when it has not come in time."""
        with self._turn():
            return self._changed.wait_for(
                lambda: self._over or self._version(state, key) >= at_least, timeout_s
            )

    def act(self, seen: Update, kind: str) -> bool:
        """Whether to act on what was read: a row of it, unless it is replaced and that is prevented."""
        with self._turn():
            stands = self._replica.entry(seen.state, seen.key)
            if self.enforced and stands is not None and stands.dot != seen.dot:
                return False
            self._rows.read(seen.state, seen.key, kind, "act", seen)
            return True

    def version(self, state: str, key: str) -> int:
        """Of one key, without a row; 0 before the first put."""
        with self._turn():
            return self._version(state, key)

    def entries(self, state: str) -> dict[str, Update]:
        """All keys of one State, without rows."""
        with self._turn():
            return self._replica.entries(state)

    def why_not(self, state: str, key: str) -> str:
        """What a wait waits for, as far as it is known here."""
        self._check_process()
        with self._lock:
            members = self._member.view.members if self._member is not None else []
            away = sorted({*range(self._config.num_ranks)} - {m.rank for m in members})
            return why_not(self._replica, state, key, away, has_agent=self._link.agent is not None)

    # ---- its end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Say LEAVE and stay until a view without this process is committed; once."""
        if os.getpid() != self._pid or self._over or self._member is None:
            return
        with self._lock:
            stopped = self._config.stop_path().exists()
            if not stopped:
                self._progress.write(0, 0, LEAVING)
                self._member.leave()
                patience = LEAVE_PATIENCE_S if self.enforced else OBSERVED_LEAVE_PATIENCE_S
                self._changed.wait_for(lambda: self._over, patience)
            self._over = True
            self._changed.notify_all()
            self._recorder.close()
            self._link.close()

    # ---- inside ----------------------------------------------------------------------------------

    def _join(self) -> None:
        link = self._link
        message = first_message(link)
        if isinstance(message, NotWanted):
            self._end_unwanted(message)
        self._member = member = PlainMember(
            self.actor, message.view, self._recorder, link, self._leave_behind
        )
        link.on_return = self._on_return
        self._progress.write(0, 0, BETWEEN)
        link.send(StateAsk([]))
        if self.actor.incarnation or not member.is_member:
            with self._lock:
                catch_up(link, self.actor, self._take_in)

    def _serve(self) -> None:
        """The thread. Should it fail, nobody would answer a walk here any more: all would wait for ever.

        So the process ends, which the agent sees, and the others go on without it.
        """
        try:
            self._serve_until_left()
        except Exception as error:
            self._leave_behind(
                f"cannot serve its States any more ({type(error).__name__}: {error})"
            )

    def _serve_until_left(self) -> None:
        """Take in what arrives."""
        while True:
            with self._lock:
                if self._over:
                    return
                self._take_in()
                fd = self._link.fd
            if fd < 0:
                time.sleep(_LOOK_S / 2)
            else:
                wait_readable([fd], _LOOK_S)

    def _take_in(self) -> bool:
        """Whatever has arrived; True when the agent has asked for something among it."""
        link, member = self._link, self._member
        assert member is not None
        self._look_at_fence()
        link.pump()
        is_asked = False
        while link.inbox:
            message = link.inbox.popleft()
            is_asked = is_asked or isinstance(message, StateAsk)
            self._on_message(message, member)
        member.look()
        now = time.monotonic()
        if self._replica.has_waiting and now - self._asked > ASK_AGAIN_S:
            self._asked = now
            link.send(StateAsk(self._replica.clock()))
        if member.has_left and not self._over:
            self._over = True
            self._changed.notify_all()
        return is_asked

    def _on_message(self, message: Message, member: PlainMember) -> None:
        match message:
            case StateUpdate(update=update):
                self.deliver(update)
            case StateAsk(clock=clock):
                self._answer(clock)
            case StateStand(stand=stand):
                self._take(stand)
            case NotWanted():
                self._end_unwanted(message)
            case _:
                member.serve(message)

    def deliver(self, update: Update) -> None:
        """An update has arrived; what it makes ready is applied, with its rows."""
        with self._lock:
            applied = self._replica.receive(update)
            self._rows.applied(applied)
            if applied:
                self._changed.notify_all()

    def _answer(self, clock: list[Dot]) -> None:
        lacking = self._replica.since(clock)
        if lacking is not None:
            for update in lacking:
                self._link.send(StateUpdate(update))
            return
        self._num_stands += 1
        stand = self._replica.stand(f"stand/{self.actor}/{self._num_stands}")
        self._rows.stand("saved", stand, stand.clock)
        self._link.send(StateStand(stand))

    def _take(self, stand: Stand) -> None:
        frontier = Clock([*self._replica.clock(), *stand.clock])
        applied = self._replica.take(stand)
        if applied is not None:
            self._rows.stand("received", stand, frontier.dots())
            self._rows.applied(applied)
            self._changed.notify_all()

    def _on_return(self) -> None:
        if self._member is not None:
            self._member.tell_again()
        self._link.send(StateAsk(self._replica.clock()))

    def _version(self, state: str, key: str) -> int:
        stands = self._replica.entry(state, key)
        return stands.version if stands is not None else 0

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """While the script does something with its States."""
        self._check_process()
        with self._lock:
            if self._over:
                raise BadUsage("this process has left the job", where="State")
            self._look_at_fence()
            yield

    def _check_process(self) -> None:
        """Before the lock is taken: whose thread held it when this process was forked is not in it."""
        if os.getpid() != self._pid:
            raise a_fork()

    def _look_at_fence(self) -> None:
        if self._progress.fenced:
            self._leave_behind(f"was stopped for {self._progress.stopped_s:.1f} s")

    def _leave_behind(self, why: str) -> NoReturn:
        exit_note = self._config.exit_path(self.actor)
        leave_behind(f"rank {self.actor} {why}", exit_note, self._recorder.close)

    def _end_unwanted(self, told: NotWanted) -> NoReturn:
        exit_note = self._config.exit_path(self.actor)
        end_newcomer(f"rank {self.actor} {told.why}", told.code, exit_note, self._recorder.close)
