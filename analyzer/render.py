"""The report as a person reads it on a terminal: the verdict first, then why.

Colour is used only when asked for; the caller asks when the output is a terminal and NO_COLOR is not
set (no-color.org).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.proofs import PROOFS
from analyzer.render_page import Page, count_of, numbers
from analyzer.render_waits import wait_lines
from analyzer.render_walks import regime_lines, walk_lines
from cascade_runtime.vocabulary.report import (
    CheckResult,
    Report,
    Violation,
)

MAX_VIOLATIONS = 10
MAX_WITNESS = 12


def render(report: Report, width: int = 100, colour: bool = False) -> str:
    """The report as text, no line longer than ``width`` where words allow, ending in a newline."""
    page = Page(width, colour)
    lines = [*_verdict(report, page)]
    for title, section in (
        ("Broken promises", _violations(report, page)),
        ("Not known", _unknown(report, page)),
        ("Proved", _proved(report, page)),
        ("Walks", walk_lines(report, page)),
        ("Regimes and debt", regime_lines(report, page)),
        ("Suspects", _suspects(report, page)),
        ("Waits", wait_lines(report, page)),
        ("Not supplied", _not_supplied(report, page)),
    ):
        body = list(section)
        if body:
            lines += ["", page.bold(title), *body]
    return "\n".join(lines) + "\n"


def _verdict(report: Report, page: Page) -> Iterator[str]:
    broken = sum(not v.inferred for v in report.violations)
    unknown = [c for c in report.checks if c.verdict == "unknown"]
    absent = sum(1 for c in report.checks if c.verdict == "not_checked")
    were = "was" if absent == 1 else "were"
    of_all = f"{absent} of {len(report.checks)} checks"
    limits = f" ({of_all} {were} not made, named below)" if absent else ""
    said = {
        "ok": f"OK: no promise was broken{limits}",
        "violated": f"VIOLATED: {count_of(broken, 'broken promise')} found",
        "unknown": f"UNKNOWN: {count_of(len(unknown), 'check')} cannot be answered on this evidence",
    }[report.verdict]
    if report.verdict == "unknown" and not unknown:
        said = "UNKNOWN: nothing in this trace could be checked"
    first, *more = page.wrap(said, "", "")
    yield page.hue(first, report.verdict)
    yield from (page.hue(line, report.verdict) for line in more)
    yield from page.wrap(f"run {report.run_id}" + "".join(f", {i}" for i in report.inputs), "")


def _violations(report: Report, page: Page) -> Iterator[str]:
    shown = report.violations[:MAX_VIOLATIONS]
    for number, violation in enumerate(shown, 1):
        yield from page.wrap(
            f"{violation.code} {violation.name}: {violation.sentence}", f"{number:>3}. "
        )
        yield from page.wrap(_place(violation), "     ")
        yield from _witness(violation, page)
    left = len(report.violations) - len(shown)
    if left:
        yield from page.wrap(f"and {left} more; --json lists them all", "     ")


def _place(violation: Violation) -> str:
    again = f".{violation.incarnation}" if violation.incarnation else ""
    epoch = "" if violation.epoch is None else f", epoch {violation.epoch}"
    regime = f", {violation.regime}" if violation.regime else ""
    inferred = ", inferred" if violation.inferred else ""
    return (
        f"at rank {violation.rank}{again}, event {violation.seq}, group {violation.group_id}"
        f"{epoch}{regime}{inferred}"
    )


def _witness(violation: Violation, page: Page) -> Iterator[str]:
    steps = violation.witness
    if len(steps) > MAX_WITNESS:
        half = MAX_WITNESS // 2
        left_out = {"what": f"... {len(steps) - 2 * half} more events ...", "edge": None}
        steps = [*steps[:half], left_out, *steps[-half:]]
    for number, step in enumerate(steps, 1):
        yield from page.wrap(_step_words(step), f"     {number:>3}) ")


def _step_words(step: dict[str, Any]) -> str:
    how = {None: "", "program order": "then "}.get(step["edge"], f"[{step['edge']}] ")
    place = f" (event {step['seq']})" if "seq" in step else ""
    return f"{how}{step['what']}{place}"


def _unknown(report: Report, page: Page) -> Iterator[str]:
    """One line a reason, with the checks that it took the answer from."""
    reasons: dict[str, list[str]] = {}
    for check in report.checks:
        if check.verdict == "unknown":
            reasons.setdefault(check.reason or "no reason was given", []).append(check.code)
    for reason, codes in reasons.items():
        yield from page.wrap(f"{reason} [{' '.join(codes)}]", "  - ")


def _proved(report: Report, page: Page) -> Iterator[str]:
    by_code = {check.code: check for check in report.checks}
    for code, one, several, predicate in PROOFS:
        check = by_code.get(code)
        if check and check.verdict == "ok" and check.num_checked:
            count = check.num_checked
            things = f"the only {one}" if count == 1 else f"each of {count:,} {several}"
            yield from page.wrap(f"{things} {predicate} [{code}]", "  - ")
    yield from page.wrap(_tally(report.checks), "  ")


def _tally(checks: list[CheckResult]) -> str:
    by_verdict: dict[str, list[str]] = {}
    for check in checks:
        by_verdict.setdefault(check.verdict, []).append(check.code)
    words = (("ok", "ok"), ("violated", "violated"), ("unknown", "unknown"))
    said = [f"{w}: {' '.join(by_verdict[v])}" for v, w in words if v in by_verdict]
    left = [c for c in checks if c.verdict == "not_checked"]
    if left:
        said.append(f"not checked: {' '.join(c.code for c in left)}")
    return "checks " + "; ".join(said)


def _suspects(report: Report, page: Page) -> Iterator[str]:
    for suspect in report.suspects:
        sure = "convicted" if suspect.certain else "suspected"
        yield from page.wrap(f"rank {suspect.rank} ({sure}): {suspect.why}", "  - ")
    split = report.first_divergence
    if split:
        one = len(split.ranks) == 1
        ranks = f"rank {split.ranks[0]}" if one else f"ranks {numbers(split.ranks)}"
        yield from page.wrap(
            f"first divergence: collective {split.cseq} of {split.comm_id}, {ranks}: {split.why}",
            "  - ",
        )


def _not_supplied(report: Report, page: Page) -> Iterator[str]:
    for line in report.not_supplied:
        yield from page.wrap(line, "  - ")
    for gap in report.gaps:
        span = _span(gap["first_seq"], gap["last_seq"])
        tables = "any table" if gap["tables"] is None else ", ".join(gap["tables"])
        took = f"; touches {' '.join(gap['checks'])}" if gap["checks"] else ""
        yield from page.wrap(f"gap at rank {gap['rank']}: {span} ({tables}){took}", "  - ")


def _span(first: int | None, last: int | None) -> str:
    """Which events a gap took."""
    if first is None:
        return "some events"
    if last is None:
        return f"events from {first} on"
    return f"event {first}" if first == last else f"events {first} to {last}"
