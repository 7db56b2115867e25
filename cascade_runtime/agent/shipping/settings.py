"""Where rows go, with what token, and how long a job's end may wait for them."""

from __future__ import annotations

import math
import os

from cascade_runtime.vocabulary.collector_address import checked_url, token_from_environment
from cascade_runtime.vocabulary.errors import BadUsage

DEADLINE_VARIABLE = "CASCADE_SHIP_DEADLINE_S"
DEADLINE_S = 5.0


def check_collector(url: str) -> str:
    """The collector's address without a final slash; see collector_address.checked_url."""
    return checked_url(url, "--collector or CASCADE_COLLECTOR")


def token() -> str | None:
    """The bearer token of this environment; see collector_address.token_from_environment."""
    return token_from_environment()


def deadline_s() -> float:
    """Seconds that an agent may go on shipping after its part of the job has ended.

    Raises:
        BadUsage: the variable holds no number of seconds.
    """
    text = os.environ.get(DEADLINE_VARIABLE)
    try:
        value = DEADLINE_S if text is None else float(text)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise BadUsage(
            f"{text!r} is no number of seconds",
            where=DEADLINE_VARIABLE,
            hint=f"give 0 or more, or leave it out ({DEADLINE_S:g})",
        )
    return value
