"""Every result table the analyzer writes, once (design contract 4.3)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.scalars import Incarnation, Int64, Ns, Rank, Seq

CheckVerdict = Literal["ok", "violated", "unknown", "not_checked"]
Verdict = Literal["ok", "violated", "unknown"]

# Last in every table, and nullable: results of releases that knew no data folder do not have it.
RunId = Annotated[str | None, Meta(description="the run this row is about; null in old results")]


class Result(msgspec.Struct, frozen=True, gc=False):
    """Base of the result tables."""


class RegimeIntervals(Result, tag="regime_intervals", frozen=True, gc=False):
    """A span in which one actor held one regime in one group."""

    rank: Annotated[Rank, Meta(description="the actor's rank")]
    incarnation: Annotated[Incarnation, Meta(description="its incarnation")]
    group_id: Annotated[str, Meta(description="the consistency group")]
    epoch: Annotated[Int64, Meta(description="the epoch held")]
    regime: Annotated[Regime, Meta(description="the regime held")]
    start_ns: Annotated[Ns, Meta(description="first row in it")]
    end_ns: Annotated[Ns, Meta(description="first row after it, or the actor's last row")]
    fault: Annotated[FaultEvent | None, Meta(description="that led into it")] = None
    run_id: RunId = None


class Waits(Result, tag="waits", frozen=True, gc=False):
    """One member's wait in one collective."""

    comm_id: Annotated[str, Meta(description="the communicator")]
    cseq: Annotated[Int64, Meta(description="the collective's number there")]
    rank: Annotated[Rank, Meta(description="who waited")]
    incarnation: Annotated[Incarnation, Meta(description="its incarnation")]
    step: Annotated[Int64 | None, Meta(description="in which step")]
    wait_ns: Annotated[Ns, Meta(description="until the last needed arrival")]
    exposed_ns: Annotated[
        Ns | None, Meta(description="part with an idle device; null without compute rows")
    ]
    transfer_ns: Annotated[Ns | None, Meta(description="from the last arrival to completion")]
    last_rank: Annotated[
        Rank | None,
        Meta(description="who arrived last; of several that arrive together the lowest"),
    ]
    root_rank: Annotated[
        Rank | None,
        Meta(description="who caused it: who bears at least half of the blame; null where nobody"),
    ]
    cause: Annotated[str | None, Meta(description="cause label")]
    is_open: Annotated[bool, Meta(description="never completed nor void")]
    run_id: RunId = None


class Violations(Result, tag="violations", frozen=True, gc=False):
    """A rule broken, with a witness."""

    code: Annotated[str, Meta(description="the rule's code")]
    name: Annotated[str, Meta(description="the rule's name")]
    severity: Annotated[str, Meta(description="error, warning or info")]
    rank: Annotated[Rank, Meta(description="actor of the reported row")]
    incarnation: Annotated[Incarnation, Meta(description="its incarnation")]
    seq: Annotated[Seq, Meta(description="the reported row")]
    group_id: Annotated[str, Meta(description="the consistency group")]
    epoch: Annotated[Int64 | None, Meta(description="epoch of the reported row")]
    regime: Annotated[Regime | None, Meta(description="regime it was judged against")]
    wall_ns: Annotated[Ns, Meta(description="when")]
    sentence: Annotated[str, Meta(description="what broke, in words")]
    witness: Annotated[str, Meta(description="JSON: ordered events and edges")]
    inferred: Annotated[bool, Meta(description="rests on inferred facts")]
    run_id: RunId = None


class Checks(Result, tag="checks", frozen=True, gc=False):
    """What each rule said."""

    code: Annotated[str, Meta(description="the rule's code")]
    name: Annotated[str, Meta(description="the rule's name")]
    verdict: Annotated[CheckVerdict, Meta(description="four values")]
    num_checked: Annotated[Int64, Meta(description="how many facts were judged")]
    num_violations: Annotated[Int64, Meta(description="not counting inferred ones")]
    reason: Annotated[str | None, Meta(description="why unknown or not checked")]
    run_id: RunId = None


class Suspects(Result, tag="suspects", frozen=True, gc=False):
    """An actor that the evidence points at."""

    rank: Annotated[Rank, Meta(description="the suspect")]
    incarnation: Annotated[Incarnation, Meta(description="its incarnation")]
    certain: Annotated[bool, Meta(description="the evidence convicts")]
    why: Annotated[str, Meta(description="one sentence")]
    evidence: Annotated[str, Meta(description="JSON: event refs")]
    run_id: RunId = None


class ClockFit(Result, tag="clock_fit", frozen=True, gc=False):
    """A host's clock against the reference host."""

    host: Annotated[str, Meta(description="the host")]
    offset_ns: Annotated[Ns | None, Meta(description="to add to its times")]
    drift_ppm: Annotated[float | None, Meta(description="parts per million")]
    error_ns: Annotated[Ns | None, Meta(description="bound of the fit's error")]
    connected: Annotated[bool, Meta(description="both-way evidence ties it to the reference")]
    run_id: RunId = None


RESULT_TYPES: tuple[type[Result], ...] = (
    RegimeIntervals,
    Waits,
    Violations,
    Checks,
    Suspects,
    ClockFit,
)
