"""Ends of rank processes: certified by the kernel of their own host, told to all, kept in the journal."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable

from cascade_runtime.agent.fencing import put_up
from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.protocol import (
    Facts,
    StopJob,
    Trigger,
    pack_frame,
)
from cascade_runtime.agent.rank_process import RankProcess, describe_status
from cascade_runtime.agent.stopped_ranks import StoppedRanks
from cascade_runtime.progress import read_progress, read_standing
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor


class Deaths:
    """What follows when a rank of this host ends."""

    def __init__(
        self,
        host: HostState,
        stopped: StoppedRanks,
        newcomers: Newcomers,
        stop_job: Callable[[], None],
    ) -> None:
        self._host = host
        self._newcomers = newcomers
        self._stopped = stopped
        self._stop_job = stop_job

    def on_exit(self, process: RankProcess) -> None:
        """A rank process of this host has ended."""
        actor = process.actor
        self._host.shipper.actor_ended(actor)
        self._stopped.stop_watch.forget(actor)
        status = process.status if process.status is not None else 0
        if actor in self._host.fenced:
            self._stopped.on_exit(actor, status)
        if actor in self._host.certified:
            return
        self._host.certified.add(actor)
        self._host.journal.append("exited", (actor, status))
        self._host.post.connections.pop(actor, None)
        if self._host.stopped_by:
            self._host.tick()  # all end together, and nobody died of anything
            return
        if not self._host.walker.log:
            self._on_early_exit(actor, status)
        elif actor in self._host.walker.view.members:
            refused = self._host.refusals.note_lost(actor)
            if status == 0 and actor in self._host.judge.leaving:
                self._note_left(actor)
            else:
                if process.is_going and self._host.config.mode == "enforce":
                    self._fence(actor)
                self._certify(actor, status, refused)
                self._newcomers.after_end(actor)
        elif actor in self._newcomers:
            self._newcomers.on_exit(actor, status)
        self._host.perform()
        self._host.tick()

    def _on_early_exit(self, actor: Actor, status: int) -> None:
        """A rank ended before there was a view: there is no state to protect, so all are stopped."""
        if status == 0 and actor not in self._host.attached:
            return
        if status == -signal.SIGTERM and self._host.stopping:
            return
        self._host.refusals.note_early_end(actor, status)
        for peer in self._host.post.peers.values():
            peer.send(pack_frame(StopJob()))
        self._stop_job()

    def _note_left(self, actor: Actor) -> None:
        """A rank said LEAVE and ended before the last view (observe mode does not wait for it long)."""
        progress = read_progress(self._host.config.progress_path(actor))
        decided = progress.decided if progress else 0
        facts = Facts(decided=decided, dead=True, leaving=True)
        self._host.journal.append("dead", (actor, facts))
        self._host.walker.on_death(actor, facts)

    def _fence(self, actor: Actor) -> None:
        """It runs none of its code; a fence besides costs nothing, and needs no trust in that."""
        with contextlib.suppress(OSError):
            put_up(self._host.config.progress_path(actor), time.monotonic_ns())

    def _certify(self, actor: Actor, status: int, refused: bool = False) -> None:
        """The death of a member, seen by the kernel of its own host."""
        decided, issued = read_standing(self._host.config.progress_path(actor))
        facts = Facts(decided=decided, issued=issued, dead=True)
        self._host.journal.append("dead", (actor, facts))
        how = f"{'refused, ' if refused else ''}{describe_status(status)}"
        evidence = self._host.rows.dead(actor, status)
        self._host.journal.append("evidence", (actor, evidence))
        self._host.rendezvous.give_up()
        self._host.say(f"rank {actor} died ({how})")
        # Told before the walker knows: it may propose at once, and a proposal names its evidence.
        self._host.post.broadcast(
            Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], f"rank {actor} died ({how})", True)
        )
        self._host.walker.on_death(actor, facts)

    def remember(self) -> None:
        """After a restart: deaths that were certified and perhaps never judged, or not yet certified."""
        if not self._host.walker.log:
            return
        memory = self._host.journal.memory
        for actor, facts in memory.dead:
            if actor in self._host.walker.view.members:
                evidence = memory.evidence.get(actor) or self._host.rows.dead(actor, None)
                reason = f"rank {actor} {'stopped' if facts.stopped else 'died'}"
                told = Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason, certified=True)
                self._host.judge.add(told)
            self._host.walker.on_death(actor, facts)
        certified = {actor for actor, _ in memory.dead}
        for actor, status in memory.exited:
            if actor in certified:
                continue
            if actor in self._host.walker.view.members:
                self._certify(actor, status)
            elif not any(actor in view.members for view in self._host.walker.log):
                self._newcomers.note_ended(actor)
