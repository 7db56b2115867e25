"""What ``cascade analyze --json`` prints (design contract 4.5)."""

from __future__ import annotations

from typing import Any

import msgspec

from cascade_runtime.vocabulary.results import CheckVerdict, Verdict


class CheckResult(msgspec.Struct, kw_only=True):
    """One rule's answer."""

    code: str
    name: str
    verdict: CheckVerdict
    num_checked: int
    num_violations: int
    reason: str | None = None


class Violation(msgspec.Struct, kw_only=True):
    """A rule broken, with a witness: ordered events and the edges between them."""

    code: str
    name: str
    severity: str = "error"
    rank: int
    incarnation: int
    seq: int
    group_id: str
    epoch: int | None
    regime: str | None
    wall_ns: int
    sentence: str
    witness: list[dict[str, Any]]
    inferred: bool = False


class Suspect(msgspec.Struct, kw_only=True):
    """An actor that the evidence points at; ``certain`` when it convicts."""

    rank: int
    incarnation: int
    certain: bool
    why: str


class FirstDivergence(msgspec.Struct, kw_only=True):
    """The first collective whose members disagree on what it is."""

    comm_id: str
    cseq: int
    ranks: list[int]
    why: str


STANDS_OUT = 1.5
"""Blame that is less than so many times an equal share is nobody's in particular."""


class RankWaits(msgspec.Struct, kw_only=True):
    """Seconds one rank waited, is blamed for (root blame) and was last for (direct blame).

    ``caused_s`` is its blame, in which ranks share a wait: reports always called it so. In SQL and on
    the page, caused is another figure: waits that go back to this rank alone (``waits.root_rank``).
    """

    rank: int
    waited_s: float
    caused_s: float
    last_s: float


class ChronicStraggler(msgspec.Struct, kw_only=True):
    """The rank with the largest root blame in at least half of the steps that have waits."""

    rank: int
    share_of_steps: float


class WaitSummary(msgspec.Struct, kw_only=True):
    """Wasted barrier time; seconds are summed over ranks."""

    kind: str
    total_rank_s: float
    exposed_rank_s: float | None
    share_pct: float
    joules: float | None
    refused: str | None
    by_rank: list[RankWaits]
    chronic_straggler: ChronicStraggler | None

    def main_cause(self) -> RankWaits | None:
        """The rank with the largest root blame, for words; None where the ranks are about even.

        It stands out with STANDS_OUT times an equal share of those that waited or made others wait.
        """
        total_s = sum(r.caused_s for r in self.by_rank)
        if total_s <= 0:
            return None
        top = max(self.by_rank, key=lambda r: (r.caused_s, -r.rank))
        return top if top.caused_s >= STANDS_OUT * total_s / len(self.by_rank) else None


class ClockSummary(msgspec.Struct, kw_only=True):
    """How well the hosts' clocks are tied together."""

    num_hosts: int
    connected: bool
    max_error_ns: int


class RegimeShare(msgspec.Struct, kw_only=True):
    """Share of the ranks' time spent in one regime."""

    group_id: str
    regime: str
    share_pct: float


class TransitionSummary(msgspec.Struct, kw_only=True):
    """One committed walk."""

    group_id: str
    from_regime: str
    to_regime: str
    fault: str | None
    reason: str | None
    new_epoch: int
    members: list[int]
    missing: list[int]
    wall_ns: int


class DebtSummary(msgspec.Struct, kw_only=True):
    """Debts by fate; written-off ones count as settled, and are told on their own too."""

    opened: int
    settled: int
    open: int
    written_off: int = 0


class Report(msgspec.Struct, kw_only=True):
    """The whole answer on one trace."""

    schema_version: int
    run_id: str
    verdict: Verdict
    checks: list[CheckResult]
    violations: list[Violation]
    suspects: list[Suspect]
    first_divergence: FirstDivergence | None
    waits: WaitSummary
    clock: ClockSummary
    regimes: list[RegimeShare]
    transitions: list[TransitionSummary]
    debt: DebtSummary
    gaps: list[dict[str, Any]]
    not_supplied: list[str]
    inputs: list[str]
