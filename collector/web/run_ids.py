"""Which run_ids may be part of a path."""

from __future__ import annotations

import unicodedata

LONGEST = 200
RULE = f"a run_id in a path has 1 to {LONGEST} characters, no slash and no control character"


def fits_a_path(run_id: str) -> bool:
    """False for dot names, slashes, control characters, surrogates, and what is very long."""
    return (
        0 < len(run_id) <= LONGEST
        and run_id not in (".", "..")
        and "/" not in run_id
        and not any(unicodedata.category(c) in ("Cc", "Cs") for c in run_id)
    )
