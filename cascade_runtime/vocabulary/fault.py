"""Fault events: what the policy is asked about.

The first six are the article's (Finding 2, its table and code). RANK_SKEW_HIGH and NO_MAJORITY are
ours: the article names skew as a signal but gives it no row, and without a majority of the last
agreed view nothing stronger than EVENTUAL can be promised.
"""

from __future__ import annotations

from enum import Enum


class FaultEvent(Enum):
    """A signal that was judged to be a fault (or a recovery)."""

    GPU_FAIL_STOP = "GPU_FAIL_STOP"
    LINK_DELAY_HIGH = "LINK_DELAY_HIGH"
    NODE_CHURN_HIGH = "NODE_CHURN_HIGH"
    STATE_CORRUPTION = "STATE_CORRUPTION"
    RECOVERY_DETECTED = "RECOVERY_DETECTED"
    STABLE_SYNC = "STABLE_SYNC"
    RANK_SKEW_HIGH = "RANK_SKEW_HIGH"
    NO_MAJORITY = "NO_MAJORITY"
    OPERATOR = "OPERATOR"
    """Not a fault: a person asked for a downward walk. It stands in no policy table."""

    def __str__(self) -> str:
        return self.value


SEED_FAULTS = (
    FaultEvent.GPU_FAIL_STOP,
    FaultEvent.LINK_DELAY_HIGH,
    FaultEvent.NODE_CHURN_HIGH,
    FaultEvent.STATE_CORRUPTION,
    FaultEvent.RECOVERY_DETECTED,
    FaultEvent.STABLE_SYNC,
)
"""The article's six, in its order."""

RECOVERIES = frozenset({FaultEvent.RECOVERY_DETECTED, FaultEvent.STABLE_SYNC})
"""The only events that may climb."""
