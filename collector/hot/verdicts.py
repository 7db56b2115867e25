"""The last verdict on a run, as its analysis left it in the run's folder."""

from __future__ import annotations

from pathlib import Path

import msgspec


class _VerdictOnly(msgspec.Struct):
    verdict: str


def last_verdict(root: Path) -> str | None:
    """ok, violated or unknown; None when the run was not analyzed yet."""
    try:
        text = (root / "results" / "report.json").read_bytes()
        return msgspec.json.decode(text, type=_VerdictOnly).verdict
    except (OSError, msgspec.MsgspecError):
        return None
