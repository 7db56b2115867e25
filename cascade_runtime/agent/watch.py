"""Feeds the detectors of a host agent, records what they find, and hands fault events to the judge.

Every agent feeds its detectors with the same: the accounts of all members, its own and those that the
other agents tell. Only the leading agent speaks; another that takes over knows as much. Deaths and
stopped processes are not judged here: the agent of their host acts on those itself. What else would be
a fail-stop (a silent agent, a lost GPU) is only named: their processes tell for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from cascade_runtime import detectors
from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.gpu_samples import Look
from cascade_runtime.agent.judge import Judge
from cascade_runtime.agent.local_rank import LocalRank
from cascade_runtime.agent.protocol import Trigger, View, Waits
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.detectors import pace
from cascade_runtime.detectors._base import Detector, Measures, Verdict
from cascade_runtime.detectors._steps import StepBook
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, EventRef
from cascade_runtime.vocabulary.plug import discover

LOOK_S = 0.05
"""Between two looks; longer in jobs of many hosts, where everybody tells everybody."""

_MANY_HOSTS = 4
ROW_S = 1.0
"""What is measured, and what stands unchanged, is recorded once in this time."""

SIGNALS = (
    "feed_step", "feed_place", "feed_beat", "feed_joined", "feed_lost", "feed_level", "feed_gpu",
    "feed_cohorts", "feed_wait", "feed_alone",
)  # fmt: skip
"""What is fed here; a detector takes those that it has a method for."""

ACTED_ON_ELSEWHERE = FaultEvent.GPU_FAIL_STOP

_Key = tuple[str, str, Actor | None]


class Watch:
    """One agent's detectors and what came of them.

    Args:
        config: the job.
        index: this agent's host.
        judge: gets what stands, and is asked what a fault event is to lead to.
        rows: where findings are recorded.
    """

    def __init__(self, config: JobConfig, index: int, judge: Judge, rows: AgentRows) -> None:
        self.look_s = LOOK_S * max(1.0, config.num_hosts / _MANY_HOSTS)
        self._config = config
        self._index = index
        self._judge = judge
        self._rows = rows
        specs = discover(detectors)
        self._detectors: list[Detector] = [s.under(judge.policy) for s in specs.values()]
        self._feeds: dict[str, list[Callable[..., None]]] = {
            signal: [getattr(d, signal) for d in self._detectors if hasattr(d, signal)]
            for signal in SIGNALS
        }
        self._book = StepBook()
        self._local: list[LocalRank] = []
        self._together: frozenset[Actor] = frozenset()
        """Members that step with others, who may wait for them."""
        self._alone: frozenset[Actor] = frozenset()
        """Members that step by themselves while others do not."""
        self._is_parted = False
        self._joinable: set[Actor] = set()
        """Ranks that step by themselves, of which was told in this epoch that they need not."""
        self._not_level: dict[int, tuple[float, frozenset[Actor]]] = {}
        """Newcomers that each agent (by its rank) told of last, and when (s)."""
        self._evidence: dict[_Key, EventRef] = {}
        self._recorded_s: dict[_Key, float] = {}
        self._measured_s = 0.0

    def install(self, view: View, now_s: float) -> None:
        """A view was committed: other members, other steps to come."""
        # Whoever steps by itself keeps nobody waiting, and has steps of its own numbers.
        together = [m for c in view.cohorts if len(c) > 1 or len(view.cohorts) == 1 for m in c]
        self._together, self._is_parted = frozenset(together), len(view.cohorts) > 1
        self._book.install(view.epoch, together)
        self._joinable.clear()
        known = {rank.actor: rank for rank in self._local}
        self._local = [
            known.get(actor) or LocalRank(self._config, actor)
            for actor in view.members
            if self._config.host_of(actor.rank) == self._index
        ]
        for actor in view.joined if view.epoch > 0 else ():
            self._feed("feed_joined", actor, now_s)
        for actor in view.departed:
            if view.member_reason != "finished":
                self._feed("feed_lost", actor, now_s)
            self._forget(actor, self._detectors)
        self._alone = frozenset(view.members) - self._together
        for actor in self._alone:
            among = [d for d in self._detectors if not hasattr(d, "feed_cohorts")]
            self._forget(actor, among)
        self._feed("feed_cohorts", view.epoch, view.cohorts, now_s)

    def _forget(self, actor: Actor, detectors_: list[Detector]) -> None:
        for detector in detectors_:
            detector.forget(actor)
        for kept in (self._evidence, self._recorded_s):
            for key in [key for key in kept if key[2] == actor]:
                del kept[key]

    def on_waits(self, agent: Actor, told: Waits, now_s: float) -> None:
        """What an agent (this one too) tells of its ranks."""
        self._feed("feed_beat", agent, now_s)
        for account in told.steps:
            self._book.feed(account)
            self._feed("feed_wait", account, now_s)
        for step in self._book.take():
            self._feed("feed_step", step, now_s)
        for place in told.places:
            if place.actor in self._together:
                self._feed("feed_place", place)
            elif place.actor in self._alone:
                self._feed("feed_alone", place)
        self._on_newcomers(agent.rank, frozenset(told.not_level), now_s)

    def _on_newcomers(self, agent: int, not_level: frozenset[Actor], now_s: float) -> None:
        """One agent's newcomers; who is named no more is level, or is not waited for any more."""
        _, before = self._not_level.pop(agent, (0.0, frozenset[Actor]()))
        for actor in sorted(before - not_level):
            self._feed("feed_level", actor, True, now_s)
        for actor in sorted(not_level):
            self._feed("feed_level", actor, False, now_s)
        if not_level:
            self._not_level[agent] = now_s, not_level

    @property
    def not_level(self) -> set[Actor]:
        """Newcomers of all hosts that are not level, as their agents told of last."""
        return {actor for _, told in self._not_level.values() for actor in told}

    def on_gpus(self, looks: Iterable[Look], pids: Mapping[int, Actor], now_s: float) -> None:
        """Samples of this host's GPUs, with the ranks by their process numbers."""
        for look in looks:
            self._rows.gpu(look.sample)
            users = [pids[pid] for pid in look.pids if pid in pids]
            self._feed("feed_gpu", look.sample, now_s, users[0] if len(users) == 1 else None)

    def _feed(self, signal: str, *what: Any) -> None:
        for feed in self._feeds[signal]:
            feed(*what)

    def waits(self, now_s: float, not_level: list[Actor]) -> Waits:
        """What this agent has to tell of its ranks, and its newcomers that are not level yet."""
        steps = [account for rank in self._local for account in rank.steps()]
        places = [place for rank in self._local if (place := rank.place(now_s)) is not None]
        return Waits(steps, places, not_level)

    def decide(self, now_s: float, leading: bool, observe: bool) -> list[Trigger]:
        """Let the detectors decide; record it and say what everybody must know, where this one leads."""
        silent_s = self._judge.policy.dead.silent_s
        for agent, (at_s, _) in list(self._not_level.items()):
            if now_s - at_s > silent_s:  # its newcomers are nobody's concern before it is back
                self._on_newcomers(agent, frozenset(), now_s)
        new = [verdict for detector in self._detectors for verdict in detector.decide(now_s)]
        for verdict in new:
            if leading:
                self._record(verdict, now_s)
            if verdict.cleared:
                self._evidence.pop(verdict.key, None)
                self._recorded_s.pop(verdict.key, None)
        if leading:
            self._record_what_goes_on(now_s)
        self._judge.stands([self._trigger(v) for v in self._standing() if _counts(v)])
        if not leading:
            return []
        begun = [self._trigger(v) for v in new if not v.cleared and _counts(v)]
        wanted = [trigger for trigger in begun if self._judge.consider(trigger, observe)]
        return wanted + self._joinable_again()

    def _joinable_again(self) -> list[Trigger]:
        """Ranks that step by themselves and keep the others' pace: once an epoch each."""
        found = [v for v in self._standing() if v.detector == pace.NAME and self._is_parted]
        new = [v for v in found if v.subject not in self._joinable]
        self._joinable.update(v.subject for v in new if v.subject is not None)
        return [self._trigger(verdict) for verdict in new]

    def _standing(self) -> list[Verdict]:
        return [verdict for detector in self._detectors for verdict in detector.standing]

    def _trigger(self, verdict: Verdict) -> Trigger:
        evidence = self._evidence.get(verdict.key)
        told = [] if evidence is None else [evidence]
        return Trigger(verdict.fault, verdict.subject, told, verdict.why)

    def _record(self, verdict: Verdict, now_s: float) -> None:
        acted_on = _counts(verdict) or verdict.fault is None
        told = verdict if acted_on else msgspec.structs.replace(verdict, fault=None)
        row = self._rows.verdict(told)
        self._recorded_s[verdict.key] = now_s
        self._evidence[verdict.key] = row

    def _record_what_goes_on(self, now_s: float) -> None:
        """Once a second: what stands (as a fault where that was never recorded), what is measured."""
        standing = self._standing()
        for verdict in standing:
            if verdict.key not in self._evidence:  # begun under another agent's lead
                self._record(verdict, now_s)
            elif now_s - self._recorded_s[verdict.key] >= ROW_S:
                self._recorded_s[verdict.key] = now_s
                self._rows.reading(verdict)
        if now_s - self._measured_s >= ROW_S:
            self._measured_s = now_s
            stands = {verdict.key for verdict in standing}
            for detector in self._detectors:
                for verdict in detector.readings if isinstance(detector, Measures) else ():
                    if verdict.key not in stands:
                        self._rows.reading(verdict)


def _counts(verdict: Verdict) -> bool:
    """A fault event for the judge."""
    return verdict.fault is not None and verdict.fault is not ACTED_ON_ELSEWHERE
