"""Why STRONG was left, in words; a fault event's own name stands beside them."""

from __future__ import annotations

from dashboard.story.words import who

_OF_RANK = {
    "RANK_SKEW_HIGH": "{who} came late",
    "STATE_CORRUPTION": "{who} held other bytes than the others",
    "GPU_FAIL_STOP": "{who} failed",
}
_OF_ALL = {
    "RANK_SKEW_HIGH": "a rank came late",
    "LINK_DELAY_HIGH": "a link became slow",
    "NODE_CHURN_HIGH": "ranks came and went",
    "STATE_CORRUPTION": "ranks held different bytes",
    "NO_MAJORITY": "no majority could be reached",
    "OPERATOR": "somebody asked for it",
}


def cause_words(fault: str | None, rank: int | None) -> str:
    """``rank 3 came late`` for a fault event and whom it is about; its name where there are none."""
    if fault is None:
        return "a walk"
    if rank is not None and fault in _OF_RANK:
        return _OF_RANK[fault].format(who=who([rank]))
    return _OF_ALL.get(fault, fault)
