"""What is slow to make and kept on disk: numba's compiled passes, Hypothesis' tables of characters.

Two workers of a fresh clone would make all of it twice, and coverage would watch them.
"""

from __future__ import annotations

import os
from pathlib import Path

from dashboard import compiled

ROOT = Path(__file__).parents[1]

CHARACTERS = "import hypothesis.strategies as st; st.text().validate()"


def missing() -> list[str]:
    """Programs that make what is not there, or is older than its source."""
    are_there = (ROOT / ".hypothesis" / "unicode_data").exists()
    return [*compiled.missing(), *([] if are_there else [CHARACTERS])]


def make() -> None:
    """Make what is missing, side by side and unmeasured; a failure is left for the tests to show."""
    unmeasured = {name: value for name, value in os.environ.items() if "COV" not in name}
    compiled.make(missing(), unmeasured, ROOT)
