"""All stories of all rules."""

from __future__ import annotations

from tests.analyzer.stories import debt, groups, membership, sessions, sources, trace, walks
from tests.analyzer.stories.kit import STORIES

__all__ = ["STORIES", "debt", "groups", "membership", "sessions", "sources", "trace", "walks"]
