"""All stories of all rules."""

from __future__ import annotations

from tests.analyzer.stories import (
    causes,
    debt,
    groups,
    membership,
    resuming,
    sessions,
    sources,
    staleness,
    trace,
    walks,
)
from tests.analyzer.stories.kit import STORIES

__all__ = [
    "STORIES",
    "causes",
    "debt",
    "groups",
    "membership",
    "resuming",
    "sessions",
    "sources",
    "staleness",
    "trace",
    "walks",
]
