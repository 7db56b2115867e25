"""Who leads, when a walk is asked for, which hosts are suspected, and what a walk that stands waits for."""

from __future__ import annotations

import asyncio
import time

from cascade_runtime.agent.host_state import HostState
from cascade_runtime.agent.hosts import SUSPECT_S
from cascade_runtime.agent.newcomers import Newcomers
from cascade_runtime.agent.patience import (
    Patience,
    no_majority,
    not_acknowledged,
    not_answered,
    not_halted,
)
from cascade_runtime.agent.protocol import (
    HostLost,
    SettleOrder,
    Trigger,
    pack_frame,
)
from cascade_runtime.progress import Progress, read_progress
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.regime import Regime

RETRY_S = 0.25
TAKEOVER_S = 1.0


class Leading:
    """Drives the walk where this agent leads."""

    def __init__(self, host: HostState, newcomers: Newcomers) -> None:
        self._host = host
        self._newcomers = newcomers
        self._patience = Patience()
        self._suspected: frozenset[int] = frozenset()
        self._last_said = 0.0
        self._walking_since = 0.0

    def is_leader(self) -> bool:
        """The lowest reachable agent drives the walk."""
        now = asyncio.get_running_loop().time()
        return not any(
            self._host.post.peers[i].up and not self._host.hosts.is_silent(i, now)
            for i in range(self._host.index)
        )

    def leader_sleeps(self, now: float) -> bool:
        """A walk is under way here, and whoever should lead it does not (it may know of none)."""
        if not self._host.walker.walking:
            self._walking_since = now
            return False
        return now - self._walking_since > TAKEOVER_S * (1 + self._host.index)

    def lead(self, now: float) -> None:
        """Begin a walk, or carry on with it, when it is due."""
        walker, judge = self._host.walker, self._host.judge
        self._newcomers.look(now)
        if walker.coordinating:
            if judge.deaths and walker.graceful and not walker.proposing:
                walker.coordinate(graceful=False)
                self._last_said = now
            elif now - self._last_said > RETRY_S:
                walker.retry()
                self._last_said = now
            return
        stalled = walker.walking and now - self._last_said > RETRY_S
        if stalled or (not walker.walking and self._wants_walk(now)):
            walker.coordinate(graceful=not judge.deaths)
            self._last_said = now

    def _wants_walk(self, now: float) -> bool:
        if self._host.config.mode == "observe":
            self._host.judge.observe()
            return self._host.judge.wants_last_view()
        if (order := self._host.judge.wants_opened(now)) is not None:
            self._host.post.send(self._host.config.host_of(order.actor.rank), order)
        wanted, settle = self._host.judge.wants_walk(now)
        if settle is not None:
            opener = min(self._host.walker.view.members)
            self._host.post.send(
                self._host.config.host_of(opener.rank), SettleOrder(opener, settle)
            )
        return wanted or self._newcomers.wants_walk()

    def is_busy(self) -> bool:
        """Something waits for time to go by: a walk, a fault event, a leaving, a climb."""
        if not self._host.walker.log:
            return False
        return bool(
            self._host.walker.walking
            or self._host.judge.triggers
            or self._host.judge.leaving
            or self._host.walker.view.regime is not Regime.STRONG
        )

    def watch_agents(self, now: float) -> None:
        """Tell the walker which hosts are not to be waited for."""
        gone = frozenset(
            index
            for index in self._host.post.peers
            if self._host.hosts.is_gone(index, self._host.members_on(index), now)
        )
        for index in gone - self._suspected:
            self._suspect_host(index, now)
        self._suspected = gone
        self._host.walker.suspect(gone)

    def _suspect_host(self, index: int, now: float) -> None:
        members = self._host.members_on(index)
        away_s = self._host.hosts.away_s(index, now)
        if lost := self._host.hosts.is_lost(index, members):
            for peer in self._host.post.peers.values():
                peer.send(pack_frame(HostLost(index)))
        for actor in members:
            why = "is lost" if lost else f"has been out of reach for {away_s:.1f} s"
            evidence = self._host.rows.unreachable(actor, away_s, 0.0 if lost else SUSPECT_S)
            reason = f"rank {actor}'s host {why}"
            self._host.judge.add(Trigger(FaultEvent.GPU_FAIL_STOP, actor, [evidence], reason))
        if members:
            names = ", ".join(str(m) for m in members)
            how = (
                "its agent and all its ranks have ended"
                if lost
                else f"nothing was heard of it for {away_s:.1f} s"
            )
            self._host.say(f"host {index} (ranks {names}) is suspected: {how}")

    def tell_wait(self, now: float) -> None:
        """Where the walk stands still for too long: say why, on stderr and in the trace."""
        walker, waiting = self._host.walker, self._host.walker.waiting
        if not self._patience.is_due(walker.epoch, walker.walking, now):
            return
        fault = next((t.fault for t in self._host.judge.triggers if t.fault is not None), None)
        said: list[tuple[str, FaultEvent | None]] = []
        if waiting is not None:
            others = [i for i in waiting.agents if i != self._host.index]
            if others:
                said.append((not_answered(waiting, others), fault))
            elif not waiting.agents and 2 * len(waiting.heard) <= waiting.num_members:
                away = sorted(self._suspected)
                said.append((no_majority(waiting, away), FaultEvent.NO_MAJORITY))
        heard = set(walker.halted) | (waiting.heard if waiting is not None else set())
        for actor in walker.not_halted:
            held = [str(a) for a in sorted(heard & set(walker.view.members))]
            text = not_halted(walker.epoch, str(actor), *self._where(actor), held)
            said.append((text, fault))
        for actor in walker.not_acknowledged:
            text = not_acknowledged(walker.epoch, str(actor), *self._where(actor))
            said.append((text, fault))
        for text, about in said:
            self._host.say(text)
            regime = walker.view.regime
            evidence = [e for t in self._host.judge.triggers for e in t.evidence]
            self._host.rows.decision(
                Trigger(about, None, evidence, text), regime, regime, False, text
            )

    def _where(self, actor: Actor) -> tuple[Progress | None, float, int | None]:
        """A rank of this host: its word, for how long (s) it has said so, and its process."""
        progress = read_progress(self._host.config.progress_path(actor))
        since_s = (time.monotonic_ns() - progress.mono_ns) / 1e9 if progress else 0.0
        here = self._host.ranks.get(actor.rank)
        return progress, since_s, here.pid if here is not None and here.actor == actor else None
