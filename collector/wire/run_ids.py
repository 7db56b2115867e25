"""Which run_ids are taken: those that can be part of a path, or nobody could ask for the run."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from collector.wire.batch import BadBatch

LONGEST = 200
RULE = f"a run_id has 1 to {LONGEST} characters, no slash and no control character"


def fits_a_path(run_id: str) -> bool:
    """False for dot names, slashes, control characters, surrogates, and what is very long."""
    return 0 < len(run_id) <= LONGEST and _fits(run_id)


@lru_cache(maxsize=256)  # every body names one, and few runs are live at a time
def _fits(run_id: str) -> bool:
    return (
        run_id not in (".", "..")
        and "/" not in run_id
        and not any(unicodedata.category(c) in ("Cc", "Cs") for c in run_id)
    )


def check_run_id(run_id: str, where: str) -> None:
    """Refuse a run_id that nobody could ask for.

    Raises:
        BadBatch: it does not fit a path.
    """
    if not fits_a_path(run_id):
        raise BadBatch("this cannot be the id of a run", where=where, hint=RULE)
