"""Numbers, spans of time and names as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

S = 1_000_000_000

NAME_CHARS = 120
"""Names and texts from a trace are cut there, so that none can fill the page."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_MANY = 12


def plain(text: str | None, most: int = NAME_CHARS) -> str:
    """A text from a trace on one line: what is not seen becomes U+FFFD, what is too long is cut."""
    if text is None:
        return ""
    if len(text) <= most and text.isprintable():  # most are, and nothing printable is unseen
        return text
    head = text[: most + 1]
    shown = "".join("\ufffd" if unicodedata.category(c) in _UNSEEN else c for c in head)
    return shown if len(text) <= most else shown[: most - 1] + "…"


def duration(ns: float) -> str:
    """A span in a fitting unit: ``850 µs``, ``232 ms``, ``2.1 s``, ``3 m 20 s``, ``1 h 04 m``."""
    ns = abs(ns)
    if ns < 1e6:
        return f"{ns / 1e3:.0f} µs"
    if ns < 999.5e6:
        return f"{ns / 1e6:.0f} ms"
    if ns < 9.95e9:
        return f"{ns / 1e9:.1f} s"
    whole = round(ns / 1e9)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02} m"


def moment(ns: int) -> str:
    """A time since the start of the job: ``2.1 s``, ``1 m 12.3 s``, ``3 h 04 m 05.1 s``."""
    sign = "-" if ns < 0 else ""
    tenths = round(abs(ns) / 1e8)
    seconds, minutes, hours = tenths % 600 / 10, tenths // 600 % 60, tenths // 36000
    if hours:
        return f"{sign}{hours:,} h {minutes:02} m {seconds:04.1f} s"
    if minutes:
        return f"{sign}{minutes} m {seconds:04.1f} s"
    return f"{sign}{seconds:.1f} s"


def seconds(value: float) -> str:
    """Seconds that are summed over ranks, as a span."""
    return duration(value * 1e9)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 debt``, ``1,204 debts``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def count_word(number: int, noun: str) -> str:
    """As ``count``, with small numbers in words, for the begin of a sentence: ``One rank``."""
    small = ("No", "One", "Two", "Three", "Four", "Five", "Six")
    word = small[number] if number < len(small) else f"{number:,}"
    return f"{word} {noun}{'' if number == 1 else 's'}"


def percent(part: float, whole: float) -> float:
    """A share in percent; 0 of nothing."""
    return 100.0 * part / whole if whole else 0.0


def number_spans(ranks: Iterable[int]) -> str:
    """Numbers as ``0-2, 5``; the rest of many is counted."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    said = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in spans]
    if len(said) > _MANY:
        left = sum(b - a + 1 for a, b in spans[_MANY:])
        return ", ".join(said[:_MANY]) + f" and {left:,} more"
    return ", ".join(said)


def who(ranks: Iterable[int]) -> str:
    """``rank 2``, ``ranks 0-2, 5``; empty for nobody."""
    known = sorted(set(ranks))
    if not known:
        return ""
    return f"rank {known[0]}" if len(known) == 1 else f"ranks {number_spans(known)}"


def listed(items: Sequence[str]) -> str:
    """``a, b and c``."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def stopped(text: str) -> str:
    """The text with a full stop last."""
    text = text.strip()
    return text if not text or text[-1] in ".!?…" else text + "."


def sentence(text: str) -> str:
    """The text with a capital first and a full stop last."""
    text = stopped(text)
    return text[:1].upper() + text[1:]
