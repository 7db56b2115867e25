"""What a part that several rules share has found, before a rule makes a finding of it."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """One row that breaks a promise, or of which nobody can say whether it does."""

    row: int
    sentence: str
    witness: tuple[int, ...]
    unknown: str | None = None
    """Why nobody can say; then the rest does not count."""
