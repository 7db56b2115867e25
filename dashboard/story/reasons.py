"""Why checks cannot be answered: because evidence is lost, or because it is only still to come."""

from __future__ import annotations

from typing import Any

from cascade_runtime.vocabulary.report import CheckResult, Report
from dashboard.story.words import count, count_word, plain, sentence

COMING = "rows still coming"

_NEVER_COMES = ("was not recorded", "names no policy", "inferred facts")
"""Parts of reasons that no further row changes."""


def reasons_of(checks: list[CheckResult]) -> list[tuple[str, list[CheckResult]]]:
    """Why checks are unknown; the reason that took most answers first."""
    found: dict[str, list[CheckResult]] = {}
    for check in checks:
        if check.verdict == "unknown":
            found.setdefault(check.reason or "no reason was given", []).append(check)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def lost_for_good(report: Report) -> list[CheckResult]:
    """The unknown checks that no row which may still come answers.

    A recorder said what it dropped, or a table was not recorded. What is only not there yet (a rank
    without a row, a hole between rows, the rows after the last one of a run that goes on, something
    open) may come.
    """
    dropped = {code for gap in report.gaps if _is_for_good(gap) for code in gap.get("checks", ())}
    return [
        check
        for check in report.checks
        if check.verdict == "unknown"
        and (check.code in dropped or any(part in (check.reason or "") for part in _NEVER_COMES))
    ]


def _is_for_good(gap: dict[str, Any]) -> bool:
    """A live analysis writes a gap behind each actor's last row, for the rows that are to come."""
    is_to_come = gap.get("reason") == "not_supplied" and gap.get("last_seq") is None
    return bool(gap.get("recorded")) and not is_to_come


def pending(report: Report) -> list[CheckResult]:
    """The unknown checks that rows which come may still answer."""
    lost = {check.code for check in lost_for_good(report)}
    return [c for c in report.checks if c.verdict == "unknown" and c.code not in lost]


def but_so_far(report: Report, *, is_live: bool) -> str:
    """What the rows so far cannot answer, as the rest of a sentence; empty when there is nothing."""
    lost, later = lost_for_good(report), pending(report)
    said = ""
    if lost:
        why = plain(reasons_of(lost)[0][0], 300).rstrip(".")
        said = f", but {count(len(lost), 'check')} cannot be answered: {why}"
    if later:
        what = COMING if is_live else "the last rows are being judged"
        said += f"; {count(len(later), 'check')} not judged yet: {what}"
    return said


def detail_of(report: Report, *, is_whole: bool, is_live: bool) -> list[str]:
    """A sentence a reason, each with the checks that it is about, by code and name."""
    later = [] if is_whole and not is_live else pending(report)
    codes = {check.code for check in later}
    found = [
        f"{sentence(plain(why, 300)).rstrip('.')}; this leaves open: {named(checks)}."
        for why, checks in reasons_of([c for c in report.checks if c.code not in codes])
    ]
    if later:
        what = COMING if is_live else "the last rows are being judged"
        found.append(f"Not judged yet, {what}: {named(later)}.")
    absent = [c for c in report.checks if c.verdict == "not_checked"]
    if absent:
        found.append(f"{count_word(len(absent), 'check')} not made: {named(absent)}.")
    return found


def named(checks: list[CheckResult]) -> str:
    """``A1 unknown source, G3 desync``."""
    return ", ".join(f"{check.code} {check.name}" for check in checks)
