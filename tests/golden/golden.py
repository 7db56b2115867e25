"""Compares a text with the file kept of it in this folder.

``UPDATE_GOLDEN=1 make test ARGS="tests/vocabulary"`` writes the files anew; look at what git shows as
changed before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent


def updating() -> bool:
    """True when the person who runs the tests asked for new golden files."""
    return os.environ.get("UPDATE_GOLDEN") == "1"


def read(name: str) -> str:
    """The kept text; empty when there is none yet."""
    path = FOLDER / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def check(name: str, text: str, what_to_do: str) -> None:
    """Fails, with ``what_to_do``, when ``text`` is not what tests/golden/``name`` holds."""
    if updating():
        (FOLDER / name).write_text(text, encoding="utf-8")
    assert text == read(name), f"tests/golden/{name} holds another text. {what_to_do}"
