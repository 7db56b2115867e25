"""Policies: which regime a fault event walks to, as data; ``decide`` asks the table.

"Policy is when. Protocol is how." (article, Finding 2). A policy is a TOML file: ``name``, one
``[[row]]`` a move, and optional thresholds. NO_MAJORITY walks any regime to EVENTUAL in every policy.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from cascade_runtime.vocabulary.errors import BadPolicy
from cascade_runtime.vocabulary.fault import RECOVERIES, FaultEvent
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.trace_meta import PolicyRow, PolicyTable

_Positive = Annotated[float, Meta(gt=0)]
_PositiveInt = Annotated[int, Meta(ge=1)]
_DEEP_FALLS = frozenset({FaultEvent.STATE_CORRUPTION, FaultEvent.NO_MAJORITY})
_PACKAGED = ("default", "seed")


class WalkLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[walk]``: how often to walk and what counts as calm."""

    min_interval_ms: _Positive = 500
    stable_rounds: _PositiveInt = 5
    recovery_quiet_s: _Positive = 1.0


class LinkDelayLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[link_delay]``: when LINK_DELAY_HIGH fires and clears."""

    times_median: _Positive = 4.0
    median_window_s: _Positive = 60.0
    min_ms: _Positive = 20.0
    fires_in: _PositiveInt = 3
    of_steps: _PositiveInt = 5
    dwell_s: _Positive = 1.0
    clears_after: _PositiveInt = 20
    warm_up: _PositiveInt = 20


class RankSkewLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[rank_skew]``: when RANK_SKEW_HIGH fires and clears."""

    share_of_step: _Positive = 0.25
    min_ms: _Positive = 20.0
    fires_in: _PositiveInt = 5
    of_steps: _PositiveInt = 8
    dwell_s: _Positive = 1.0
    stall_medians: _Positive = 3.0
    stall_min_ms: _Positive = 500.0
    clears_after: _PositiveInt = 20


class NodeChurnLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[node_churn]``: when NODE_CHURN_HIGH fires and clears."""

    changes: _PositiveInt = 2
    window_s: _Positive = 60.0
    quiet_s: _Positive = 30.0


class FrozenLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[frozen]``: when a stopped process is suspected (GPU_FAIL_STOP)."""

    dwell_s: _Positive = 0.08
    samples: _PositiveInt = 3


class DeadLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[dead]``: when an actor of another host that is silent is suspected (GPU_FAIL_STOP)."""

    silent_s: _Positive = 10.0
    times_longest: _Positive = 4.0


class SlowLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[slow]``: when a rank that others wait for is named slow; no fault follows."""

    min_s: _Positive = 0.5
    times_median: _Positive = 5.0


class NvmlLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[nvml]``: when a GPU is named for what its counters say."""

    busy_pct: _Positive = 90.0
    spin_power_share: _Positive = 0.4
    dwell_s: _Positive = 5.0


class _PolicyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"rows": "row"}):
    name: Annotated[str, Meta(min_length=1)]
    rows: list[PolicyRow]
    walk: WalkLimits = WalkLimits()
    link_delay: LinkDelayLimits = LinkDelayLimits()
    rank_skew: RankSkewLimits = RankSkewLimits()
    node_churn: NodeChurnLimits = NodeChurnLimits()
    frozen: FrozenLimits = FrozenLimits()
    dead: DeadLimits = DeadLimits()
    slow: SlowLimits = SlowLimits()
    nvml: NvmlLimits = NvmlLimits()


class Decision(NamedTuple):
    """The policy's answer; ``changed`` is False for "stay", which is recorded too."""

    to: Regime
    changed: bool
    reason: str


class Policy:
    """A validated policy."""

    def __init__(self, file: _PolicyFile) -> None:
        self.name = file.name
        self.rows = file.rows
        self.walk = file.walk
        self.link_delay = file.link_delay
        self.rank_skew = file.rank_skew
        self.node_churn = file.node_churn
        self.frozen = file.frozen
        self.dead = file.dead
        self.slow = file.slow
        self.nvml = file.nvml
        self._moves = {(r.from_regime, r.fault): r.to_regime for r in file.rows}

    def target(self, regime: Regime, fault: FaultEvent) -> Regime:
        """The table's cell; cells without a row stay put."""
        if fault is FaultEvent.NO_MAJORITY:
            return Regime.EVENTUAL
        return self._moves.get((regime, fault), regime)

    def decide(
        self, regime: Regime, fault: FaultEvent, open_debts: Iterable[Regime] = ()
    ) -> Decision:
        """What to do in ``regime`` on ``fault`` while debts with these ``relaxed`` values stand open.

        A climb to a regime is refused while a debt stands that relaxed that guarantee or a weaker one.
        """
        to = self.target(regime, fault)
        if to == regime:
            return Decision(
                regime, False, f"{self.name} policy has no move from {regime} on {fault}"
            )
        if to > regime:
            standing = sum(1 for relaxed in open_debts if relaxed <= to)
            if standing:
                debts = "debt is" if standing == 1 else "debts are"
                return Decision(regime, False, f"{standing} {debts} open, so no climb to {to}")
        return Decision(to, True, f"{self.name} policy: {regime} on {fault} walks to {to}")

    def table(self) -> PolicyTable:
        """The rows as trace.json keeps them."""
        return PolicyTable(self.name, list(self.rows))


def parse_policy(text: str, where: str = "policy") -> Policy:
    """A policy from TOML text.

    Raises:
        BadPolicy: not TOML, an unknown word or field (named), a move that a walk may not make.
    """
    try:
        file = msgspec.convert(tomllib.loads(text), _PolicyFile)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadPolicy(f"this is not TOML: {error}", where=where) from error
    except msgspec.ValidationError as error:
        raise BadPolicy(
            str(error), where=where, hint="compare with the policies that come with the package"
        ) from error
    seen: set[tuple[Regime, FaultEvent]] = set()
    for row in file.rows:
        problem = _problem(row, seen)
        if problem:
            raise BadPolicy(f"row {row.from_regime} on {row.fault}: {problem}", where=where)
        seen.add((row.from_regime, row.fault))
    return Policy(file)


def _problem(row: PolicyRow, seen: set[tuple[Regime, FaultEvent]]) -> str | None:
    climb = row.to_regime.level - row.from_regime.level
    if (row.from_regime, row.fault) in seen:
        return "this cell has two rows"
    if row.fault is FaultEvent.OPERATOR:
        return "OPERATOR is a person's request and stands in no table"
    if climb == 0:
        return "a row that stays put says nothing; leave it out"
    if climb > 0 and row.fault not in RECOVERIES:
        return "only RECOVERY_DETECTED and STABLE_SYNC may climb"
    if climb > 1:
        return "a climb goes one level at a time"
    if climb < -1 and row.fault not in _DEEP_FALLS:
        return "only STATE_CORRUPTION and NO_MAJORITY may fall two levels"
    if row.fault is FaultEvent.NO_MAJORITY and row.to_regime is not Regime.EVENTUAL:
        return "without a majority only EVENTUAL can be promised"
    return None


def load_policy(name_or_path: str | Path = "default") -> Policy:
    """A packaged policy by name (``default``, ``seed``) or one from a TOML file.

    Raises:
        BadPolicy: no such file, or as parse_policy.
    """
    if name_or_path in _PACKAGED:
        packaged = resources.files("cascade_runtime.vocabulary") / "policies"
        return parse_policy((packaged / f"{name_or_path}.toml").read_text(), str(name_or_path))
    path = Path(name_or_path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadPolicy(
            "this policy cannot be read",
            where=str(path),
            hint=f"give a TOML file, or one of {', '.join(_PACKAGED)}",
        ) from error
    return parse_policy(text, str(path))
