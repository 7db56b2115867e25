"""A newcomer inside attach: it takes a member's snapshot, replays its log, and is let in when level.

It acts in no epoch before it is a member: it acknowledges a view only when it stands exactly at that
view's cut, by the log of a source that is still a member. Whatever goes wrong before that costs
nobody but itself: it begins again with another source, and at last ends with a sentence.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NoReturn

from cascade_runtime.agent.protocol import (
    Commit,
    Joining,
    Level,
    Message,
    NotWanted,
    Proposed,
    View,
    Welcome,
)
from cascade_runtime.rank.bucket_map import Layout
from cascade_runtime.rank.heard_queue import Heard
from cascade_runtime.rank.link import AgentLink, AgentLost, wait_readable
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.receiver import Receiver
from cascade_runtime.rank.snapshot import TrainingState
from cascade_runtime.rank.taken_state import TakenState, Unlike
from cascade_runtime.rank.zombie import end_newcomer, end_refused
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.errors import NotSupported
from cascade_runtime.vocabulary.identity import Actor

ASK_AGAIN_S = 5.0
"""When no source has come so long after it was asked for, another one is asked."""

AGENT_PATIENCE_S = 60.0
ASK_SOON_S = 0.1
MAX_SNAPSHOTS = 5
MAX_UNLIKE = 2
"""Snapshots whose log led elsewhere than their source went: once may be a flipped bit."""

STATES = 16
"""A message may be so many times as large as the model: optimizer state, and room for what is new."""

ROOM_BYTES = 64 << 20


class Newcomer:
    """One process's way from nothing to membership.

    Args:
        member: its consistency state; holds the view that the agent told first.
        state: the training state to be replaced.
        address: a path for its socket.
        exit_note: where its exit code is left when it ends here.
        refusal_note: where it says why when nobody like it can join.
    """

    def __init__(
        self,
        member: Member,
        link: AgentLink,
        recorder: Recorder,
        state: TrainingState,
        address: Path,
        exit_note: Path,
        refusal_note: Path,
    ) -> None:
        self._member = member
        self._link = link
        self._recorder = recorder
        self._state = state
        self._trained = state.trained
        self._taken = TakenState(member, state, recorder)
        self._address = address
        self._exit_note = exit_note
        self._refusal_note = refusal_note
        self._receiver = Receiver(address, STATES * state.num_bytes + ROOM_BYTES)
        self._feed = 0
        """Number of the connection whose snapshot was taken; 0 when there is none."""
        self._serving: Actor | None = None
        """Who is connected, with or without a snapshot."""
        self._num_snapshots = 0
        self._num_unlike = 0
        self._num_asked = 0
        self._ask_at = 0.0
        self._told: Level | None = None
        self._acknowledged: View | None = None
        """If this view is committed, the state is right, whatever became of its source since."""

    @property
    def layout(self) -> Layout:
        """The members' buckets, by names of parameters."""
        return self._taken.layout

    @property
    def has_frozen_or_thawed(self) -> bool:
        """Other parameters are trained now than when this was made."""
        return self._state.trained != self._trained

    def join(self) -> View:
        """Until a view with this newcomer is committed: that view."""
        self._link.on_return = self._tell_again
        away_since = time.monotonic()
        while True:
            self._ask()
            if self._link.fd >= 0:
                away_since = time.monotonic()
            elif time.monotonic() - away_since > AGENT_PATIENCE_S:
                raise AgentLost(
                    f"its host agent has been away for {AGENT_PATIENCE_S:.0f} s, so it cannot join",
                    where=f"rank {self._member.actor}",
                    hint="the launcher's output says why the agent was not started again",
                )
            while (heard := self._receiver.take()) is not None:
                self._hear(heard)
            self._link.pump()
            while self._link.inbox:
                view = self._on_message(self._link.inbox.popleft())
                if view is not None:
                    self._receiver.close()
                    return view
            self._tell_level()
            if self._receiver.is_idle:
                wait_readable([self._link.fd, self._receiver.fd], 0.2)

    # ---- asking ----------------------------------------------------------------------------------

    def _ask(self) -> None:
        now = time.monotonic()
        if self._taken.source is None and now >= self._ask_at:
            self._link.send(Joining(self._member.actor, str(self._address), self._num_asked))
            self._num_asked += 1
            self._ask_at = now + ASK_AGAIN_S

    def _tell_level(self) -> None:
        """Tell the agent how far this newcomer is, when there is nothing left to replay."""
        taken = self._taken
        if not taken.is_whole or not self._receiver.is_idle:
            return
        level = Level(self._member.actor, taken.source, taken.epoch, self._member.decided)
        if level != self._told:
            self._told = level
            self._link.send(level)

    def _tell_again(self) -> None:
        self._told = None
        self._ask_at = 0.0

    def _begin_again(self) -> None:
        """What was taken is worth nothing any more."""
        if self._told is not None:
            self._told = None
            self._link.send(Level(self._member.actor, None, -1, -1))
        self._feed = 0
        self._taken.forget()
        self._acknowledged = None
        self._ask_at = time.monotonic() + ASK_SOON_S

    def _end(self, why: str, code: int) -> NoReturn:
        end_newcomer(
            f"rank {self._member.actor} {why}", code, self._exit_note, self._recorder.close
        )

    def _refuse(self, why: object) -> NoReturn:
        end_refused(
            f"it cannot join: {why}", 75, self._refusal_note, self._exit_note, self._recorder.close
        )

    # ---- the agent -------------------------------------------------------------------------------

    def _on_message(self, message: Message) -> View | None:
        member = self._member
        match message:
            case Welcome(view=view) | Commit(view=view):
                return self._on_view(view)
            case Proposed(view=view) if member.actor in view.members:
                if not self._taken.is_level(view):
                    # The others count on an answer, and the honest one is that it isn't there.
                    self._end("fell behind at the moment of joining", 75)
                self._acknowledged = view
                member.acknowledge(message)
            case NotWanted(why=why, code=code):
                self._end(f"came too late: {why}", code)
            case _:
                pass
        return None

    def _on_view(self, view: View) -> View | None:
        member = self._member
        if view.epoch <= member.view.epoch:
            return None
        if member.actor in view.members:
            if not self._taken.is_level(view):
                self._end("was let in without being level", 75)
            return view
        if len(view.cohorts) == 1 < len(member.view.cohorts) and self._serving is None:
            self._ask_at = 0.0  # nobody could serve it while cohorts were apart
        member.note_view(view)
        if not view.members:
            self._end("came too late: the job is over", 0)
        whom = self._taken.source or self._serving
        if self._acknowledged is not None or whom not in (None, *view.members):
            # Not the view it was let in by; and a lost source may have decided a step alone that the
            # others have made void.
            self._receiver.let_go()
            self._begin_again()
        return None

    # ---- the source ------------------------------------------------------------------------------

    def _hear(self, heard: Heard) -> None:
        if heard.kind == "hello":
            with contextlib.suppress(KeyError, TypeError):
                self._serving = Actor(*heard.body["source"])
            return
        if heard.kind == "snapshot":
            self._num_snapshots += 1
            self._feed = heard.feed
        elif heard.feed != self._feed and heard.kind != "refused":
            if heard.kind == "lost":
                self._serving = None
                self._ask_at = min(self._ask_at, time.monotonic() + ASK_SOON_S)
            return  # the rest of a connection that was let go
        try:
            self._take(heard)
        except NotSupported as error:
            self._refuse(error)
        except Unlike as error:
            self._num_unlike += 1
            if self._num_unlike >= MAX_UNLIKE:
                self._refuse(f"{error} (tried {self._num_unlike} times)")
            self._fail(str(error))
        except Exception as error:  # torch and the script's schedulers raise what they like
            self._fail(f"its state could not be read ({type(error).__name__}: {error})")

    def _take(self, heard: Heard) -> None:
        match heard.kind:
            case "snapshot":
                self._taken.take_snapshot(heard.body)
            case "entry":
                self._taken.take_entry(heard.body)
            case "refused":
                self._refuse(heard.body.get("why"))
            case "lost":
                self._serving = None
                if self._acknowledged is None:
                    self._fail("its sources ended, or it could not keep up with them")
            case _:
                raise ValueError(f"a message of kind {heard.kind!r}"[:80])

    def _fail(self, why: str) -> None:
        """This snapshot is lost; another one may do."""
        if self._num_snapshots >= MAX_SNAPSHOTS:
            self._end(f"cannot join: {why} (tried {self._num_snapshots} times)", 75)
        self._receiver.let_go()
        self._begin_again()
