"""What every route of the picture reads of a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from collector.wire.run_ids import LONGEST, RULE

RunId = Annotated[str, Path(min_length=1, max_length=LONGEST, description=RULE)]


def takes_gzip(accepted: str) -> bool:
    """By Accept-Encoding (RFC 9110): gzip or * is named, and not with q=0."""
    return _takes(accepted, "gzip", "*")


def takes_zstd(accepted: str) -> bool:
    """By Accept-Encoding: zstd itself is named, and not with q=0; who says * may mean older packings."""
    return _takes(accepted, "zstd")


def _takes(accepted: str, *names: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in names:
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
