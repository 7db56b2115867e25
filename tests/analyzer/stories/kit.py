"""For every rule: one story that trips it, ones that almost do, ones where evidence is missing.

A story returns (the story or a source of it, rows that must be reported). ``trips`` must report exactly those rows under
its code and nothing under any other code; ``almost`` must be ok in all; ``unknown`` must be unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.story import MemorySource, Story

Told = tuple[Story | MemorySource, list[dict[str, Any]]]
STORIES: list[tuple[str, str, Callable[[], Told]]] = []


def story(code: str, kind: str) -> Callable[[Callable[[], Told]], Callable[[], Told]]:
    def keep(tell: Callable[[], Told]) -> Callable[[], Told]:
        STORIES.append((code, kind, tell))
        return tell

    return keep


def commit_of(s: Story, epoch: int, rank: int) -> dict[str, Any]:
    return next(
        r
        for t, r in s.rows
        if t == "transitions" and r["phase"] == "committed" and r["new_epoch"] == epoch
        and r["rank"] == rank
    )  # fmt: skip


def proposal_of(s: Story, epoch: int) -> dict[str, Any]:
    return next(
        r
        for t, r in s.rows
        if t == "transitions" and r["phase"] == "proposed" and r["new_epoch"] == epoch
    )


def fallen(agents: int = 1, ranks: int = 3) -> Story:
    """STRONG to CAUSAL on skew, with its debt."""
    s = Story(ranks=ranks, agents=agents)
    s.walk("CAUSAL", "RANK_SKEW_HIGH")
    return s
