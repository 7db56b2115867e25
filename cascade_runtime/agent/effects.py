"""Performs what the walk (walk.py, pure) asks for: persist, send, halt, drain, propose, install."""

from __future__ import annotations

import asyncio
import contextlib
import time

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.plan import Plan
from cascade_runtime.agent.protocol import (
    LENGTH,
    Commit,
    Drain,
    Halt,
    History,
    Proposed,
    View,
    Welcome,
    pack_frame,
    unpack_frame,
)
from cascade_runtime.agent.trace_file import write_trace_end
from cascade_runtime.agent.walk_effects import (
    AskLocal,
    DrainLocal,
    Effect,
    HaltLocal,
    Installed,
    Persist,
    ProposedNow,
    Send,
)


class Effects:
    """The walker's hands."""

    def __init__(self, host: HostState, newcomers: Newcomers) -> None:
        self._host = host
        self._newcomers = newcomers

    def perform(self) -> None:
        """Do what the walker asks, in its order, until it asks for nothing more."""
        while effects := self._host.walker.take():
            for effect in effects:
                self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Persist(what=what, value=value):
                self._host.journal.append(what, value)
            case Send(to=to, message=message):
                self._host.post.send(to, message)
            case HaltLocal(graceful=graceful, ranks=ranks, ask=ask):
                self._host.rendezvous.give_up(graceful=graceful)
                for actor in ranks:
                    self._host.post.tell(actor, Halt(self._host.walker.epoch + 1, graceful, ask))
            case DrainLocal(step=step, ranks=ranks, ask=ask):
                for actor in ranks:
                    self._host.post.tell(actor, Drain(step, ask))
            case AskLocal(view=view, ballot=ballot, ranks=ranks):
                for actor in ranks:
                    self._host.post.tell(actor, Proposed(view, ballot))
            case ProposedNow(view=view, plan=plan):
                self._on_proposed(view, plan)
            case Installed(view=view):
                self._on_installed(view)

    def _on_proposed(self, view: View, plan: Plan | None) -> None:
        if plan is not None and plan.trigger is not None and plan.decision is not None:
            to, changed, reason = plan.decision
            self._host.rows.decision(
                plan.trigger, self._host.walker.view.regime, to, changed, reason
            )
        self._host.rows.transition("proposed", view)

    def _on_installed(self, view: View) -> None:
        now = asyncio.get_running_loop().time()
        self._host.watch.install(view, now)
        self._host.judge.install(view, self._host.walker.log, now)
        self._host.shipper.start()
        self._host.rendezvous.install(view.epoch)
        self._host.recorder.set_view(view.epoch, view.regime)
        if view.proposer == self._host.actor:
            if view.epoch > 0:
                self._host.rows.transition("committed", view)
                self._announce(view)
            if view.joined or view.departed:
                self._host.rows.membership(view)
        for peer in self._host.post.peers.values():
            peer.set_hello(self._host.hello())
        for actor in self._host.local({*view.members, *view.departed}):
            first = view.epoch == 0
            told = (
                Welcome(view, self._host.actor, self._host.config.mode) if first else Commit(view)
            )
            self._host.post.tell(actor, told)
        self._newcomers.installed(view)
        if view.departed:
            for call in self._host.on_departed:
                call()
        if not view.members:
            self._leave_history()
        if not view.members and view.member_reason == "finished":
            lowest = min(view.departed)
            if self._host.config.host_of(lowest.rank) == self._host.index:
                write_trace_end(self._host.config, time.time_ns())
                self._host.shipper.run_ended()

    def note_early_end(self) -> None:
        """Somebody ended the job: trace.json says when, and that it was before its end."""
        view = self._host.walker.view if self._host.walker.log else None
        if self._host.stopped_by and self._host.index == 0 and view is not None and view.members:
            write_trace_end(self._host.config, time.time_ns(), clean=False)
            self._host.shipper.run_ended()

    def _announce(self, view: View) -> None:
        members = ", ".join(str(m) for m in view.members)
        if not view.members:
            self._host.say(f"the job is over in {view.regime}: {view.reason}")
        elif view.regime is view.from_regime:
            self._host.say(f"epoch {view.epoch}: {view.regime}, members {members} ({view.reason})")
        else:
            walk = f"{view.from_regime} -> {view.regime}"
            self._host.say(f"epoch {view.epoch}: {walk}, members {members} ({view.reason})")

    def _leave_history(self) -> None:
        """The job is over, and soon nobody is here who could tell an agent that was away."""
        path = self._host.config.over_path()
        draft = path.with_suffix(f".{self._host.index}")
        draft.write_bytes(pack_frame(History(self._host.walker.log)))
        draft.replace(path)

    def read_history(self) -> None:
        """No other agent can be reached: perhaps they have ended, because the job is over."""
        with contextlib.suppress(OSError):
            body = unpack_frame(self._host.config.over_path().read_bytes()[LENGTH.size :]).body
            self._host.walker.on_message(self._host.index, body)
