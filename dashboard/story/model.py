"""The story's JSON. Every time is in nanoseconds since ``t0``, which alone is a wall clock."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from dashboard.story.spans import Spans, spans_of

REGIME_CODES = {"STRONG": 0, "CAUSAL": 1, "EVENTUAL": 2}
"""Regime to the number that stands for it in columns."""


class RunPart(msgspec.Struct, kw_only=True):
    """What the run is.

    ``state``: waiting (no row yet), live, ended, stopped (early, by somebody), unclean (its end is
    missing: it still runs elsewhere, or was cut off).
    """

    run_id: str
    name: str
    mode: str
    state: str
    world_size: int
    policy: str | None
    num_rows: int
    judged_ns: int | None


class Actor(msgspec.Struct, kw_only=True):
    """Who took part; ``end`` is why it left the view, None while it has not."""

    rank: int
    incarnation: int
    kind: str
    host: str | None
    name: str | None
    first_ns: int
    last_ns: int
    end: str | None


class Regimes(msgspec.Struct, kw_only=True, dict=True):
    """Which rank held which regime when, in columns, by (group, rank, start)."""

    rank: list[int] = []
    incarnation: list[int] = []
    group: list[str] = []
    epoch: list[int] = []
    regime: list[int] = []
    start_ns: list[int] = []
    end_ns: list[int] = []

    @cached_property
    def spans(self) -> Spans:
        """The same as arrays."""
        who = (self.group, self.rank, self.incarnation, self.epoch, self.regime)
        return spans_of(*who, self.start_ns, self.end_ns)


class Walk(msgspec.Struct, kw_only=True, rename={"from_regime": "from", "to_regime": "to"}):
    """A committed walk, once however many members wrote it.

    ``id``: ``<group>:<epoch>``; of several sides of one epoch the second and later end with
    ``:<lowest member>``.
    """

    id: str
    group: str
    epoch: int
    at_ns: int
    from_regime: str | None
    to_regime: str | None
    fault: str | None
    reason: str | None
    members: list[int]
    missing: list[int]
    cohorts: list[list[int]]
    proposer: int | None
    sentence: str


class Mark(msgspec.Struct, kw_only=True):
    """One thing that happened at one moment."""

    at_ns: int
    kind: str
    severity: str
    rank: int
    incarnation: int
    fault: str | None
    epoch: int | None
    sentence: str


class Debt(msgspec.Struct, kw_only=True):
    """What was relaxed, and what became of it; ``fate`` is None while it is open."""

    id: str
    group: str
    relaxed: str | None
    object: str | None
    epoch: int | None
    opened_ns: int
    closed_ns: int | None
    fate: str | None
    resolution: str | None
    num_in_flight: int
    drift_l2: float | None
    drift_max: float | None
    rank: int
    waits_for: str


class Silence(msgspec.Struct, kw_only=True):
    """A time without a row of an actor that had not ended; ``to_ns`` is None while it lasts.

    Where a rank comes again without having left, its next incarnation ends it.
    """

    rank: int
    incarnation: int
    from_ns: int
    to_ns: int | None


class Gap(msgspec.Struct, kw_only=True):
    """Events known to be missing."""

    rank: int
    incarnation: int
    at_ns: int
    num_events: int | None
    reason: str | None


class Check(msgspec.Struct, kw_only=True):
    """One rule's answer; ``is_pending``: it is unknown only because rows are still to come."""

    code: str
    name: str
    verdict: str
    num_checked: int
    num_violations: int
    reason: str | None
    is_pending: bool = False


class VerdictPart(msgspec.Struct, kw_only=True):
    """The line on top; ``state``: ok, violated, unknown, judging, none (no rows)."""

    state: str
    sentence: str
    detail: list[str]
    checks: list[Check]
    num_violations: int
    num_inferred: int
    judged_upto_ns: int | None


class Step(msgspec.Struct, kw_only=True):
    """One step of the way to a violation."""

    text: str
    rank: int
    incarnation: int
    seq: int
    at_ns: int | None
    edge: str | None


class ViolationPart(msgspec.Struct, kw_only=True):
    """A promise broken, with the events that show it."""

    id: str
    code: str
    name: str
    severity: str
    rank: int
    incarnation: int
    seq: int
    group: str
    epoch: int | None
    regime: str | None
    at_ns: int
    sentence: str
    inferred: bool
    steps: list[Step]
    witness: list[dict[str, Any]]


class WaitsPart(msgspec.Struct, kw_only=True):
    """Who waited for whom; seconds are summed over ranks."""

    source: str
    kind: str
    total_rank_s: float
    exposed_rank_s: float | None
    share_pct: float
    joules: float | None
    refused: str | None
    sentence: str
    by_rank: list[dict[str, float]]
    pairs: list[dict[str, Any]]
    chronic: dict[str, float] | None


class Incident(msgspec.Struct, kw_only=True):
    """What a person should look at, with a window that shows it."""

    id: str
    at_ns: int
    end_ns: int
    severity: str
    title: str
    sentence: str
    kind: str
    sel: str | None
    a_ns: int
    b_ns: int


class Story(msgspec.Struct, kw_only=True):
    """All of it."""

    version: str
    t0_ns: str
    t1_ns: int
    run: RunPart
    plan: list[str]
    actors: list[Actor]
    ranks: list[int]
    missing: list[int]
    groups: list[str]
    regimes: Regimes
    walks: list[Walk]
    marks: list[Mark]
    num_marks: int
    debts: list[Debt]
    silent: list[Silence]
    gaps: list[Gap]
    verdict: VerdictPart
    violations: list[ViolationPart]
    waits: WaitsPart | None
    incidents: list[Incident]
    measured: dict[str, dict[str, str]]
    sql: dict[str, str]
