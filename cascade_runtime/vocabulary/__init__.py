"""CASCADE's words as types: needs msgspec only, imports nothing of ours, everything derives from it."""

from cascade_runtime.vocabulary.errors import (
    BadPolicy,
    BadTrace,
    BadUsage,
    CascadeError,
    NotSupported,
)
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot, EventRef
from cascade_runtime.vocabulary.policy import Decision, Policy, load_policy
from cascade_runtime.vocabulary.regime import ProductRegime, Regime

__all__ = [
    "Actor",
    "BadPolicy",
    "BadTrace",
    "BadUsage",
    "CascadeError",
    "Clock",
    "Decision",
    "Dot",
    "EventRef",
    "FaultEvent",
    "NotSupported",
    "Policy",
    "ProductRegime",
    "Regime",
    "load_policy",
]
