"""The sheet that a report is written on: width, colour, and how ranks and counts are said."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime

_BOLD, _RED, _YELLOW, _GREEN, _OFF = "\033[1m", "\033[31m", "\033[33m", "\033[32m", "\033[0m"
_HUES = {"ok": _GREEN, "violated": _RED, "unknown": _YELLOW}


class Page:
    """Lines of at most ``width`` characters, at least 40; coloured where that was asked for."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width = max(40, width)
        self.colour = colour

    def bold(self, text: str) -> str:
        """A heading."""
        return f"{_BOLD}{text}{_OFF}" if self.colour else text

    def hue(self, text: str, verdict: str) -> str:
        """Text in the colour of a verdict (ok, violated, unknown)."""
        return f"{_BOLD}{_HUES[verdict]}{text}{_OFF}" if self.colour else text

    def wrap(self, text: str, first: str = "  ", rest: str | None = None) -> list[str]:
        """Lines that begin with ``first``, those after it with ``rest`` (else as far in)."""
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=" " * len(first) if rest is None else rest,
            break_long_words=False,
            break_on_hyphens=False,
        )


def clock_time(ns: int) -> str:
    """A wall clock in nanoseconds as ``12:04:05.250``, in UTC."""
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]


def numbers(ranks: list[int]) -> str:
    """Ranks as ``{0-2, 5}``."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    words = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in spans]
    return "{" + ", ".join(words) + "}"


def count_of(number: int, noun: str) -> str:
    """``1 check``, ``2,000 checks``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
