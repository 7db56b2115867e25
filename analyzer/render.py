"""The report as a person reads it on a terminal: the verdict first, then why.

Colour is used only when asked for; the caller asks when the output is a terminal and NO_COLOR is not
set (no-color.org).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from analyzer.proofs import PROOFS
from cascade_runtime.vocabulary.report import (
    CheckResult,
    DebtSummary,
    Report,
    TransitionSummary,
    Violation,
)

MAX_VIOLATIONS = 10
MAX_WITNESS = 12
MAX_RANKS = 8

_BOLD, _RED, _YELLOW, _GREEN, _OFF = "\033[1m", "\033[31m", "\033[33m", "\033[32m", "\033[0m"
_HUES = {"ok": _GREEN, "violated": _RED, "unknown": _YELLOW}


def render(report: Report, width: int = 100, colour: bool = False) -> str:
    """The report as text, no line longer than ``width`` where words allow, ending in a newline."""
    page = _Page(width, colour)
    lines = [*_verdict(report, page)]
    for title, section in (
        ("Broken promises", _violations(report, page)),
        ("Not known", _unknown(report, page)),
        ("Proved", _proved(report, page)),
        ("Walks", _walks(report, page)),
        ("Regimes and debt", _regimes(report, page)),
        ("Suspects", _suspects(report, page)),
        ("Waits", _waits(report, page)),
        ("Not supplied", _not_supplied(report, page)),
    ):
        body = list(section)
        if body:
            lines += ["", page.bold(title), *body]
    return "\n".join(lines) + "\n"


class _Page:
    def __init__(self, width: int, colour: bool) -> None:
        self.width = max(40, width)
        self.colour = colour

    def bold(self, text: str) -> str:
        return f"{_BOLD}{text}{_OFF}" if self.colour else text

    def hue(self, text: str, verdict: str) -> str:
        return f"{_BOLD}{_HUES[verdict]}{text}{_OFF}" if self.colour else text

    def wrap(self, text: str, first: str = "  ", rest: str | None = None) -> list[str]:
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=" " * len(first) if rest is None else rest,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _verdict(report: Report, page: _Page) -> Iterator[str]:
    broken = sum(not v.inferred for v in report.violations)
    unknown = [c for c in report.checks if c.verdict == "unknown"]
    absent = sum(1 for c in report.checks if c.verdict == "not_checked")
    limits = (
        f" ({absent} of {len(report.checks)} checks were not made, named below)" if absent else ""
    )
    said = {
        "ok": f"OK: no promise was broken{limits}",
        "violated": f"VIOLATED: {_count(broken, 'broken promise')} found",
        "unknown": f"UNKNOWN: {_count(len(unknown), 'check')} cannot be answered on this evidence",
    }[report.verdict]
    if report.verdict == "unknown" and not unknown:
        said = "UNKNOWN: nothing in this trace could be checked"
    first, *more = page.wrap(said, "", "")
    yield page.hue(first, report.verdict)
    yield from (page.hue(line, report.verdict) for line in more)
    yield from page.wrap(f"run {report.run_id}" + "".join(f", {i}" for i in report.inputs), "")


def _violations(report: Report, page: _Page) -> Iterator[str]:
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


def _witness(violation: Violation, page: _Page) -> Iterator[str]:
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


def _unknown(report: Report, page: _Page) -> Iterator[str]:
    """One line a reason, with the checks that it took the answer from."""
    reasons: dict[str, list[str]] = {}
    for check in report.checks:
        if check.verdict == "unknown":
            reasons.setdefault(check.reason or "no reason was given", []).append(check.code)
    for reason, codes in reasons.items():
        yield from page.wrap(f"{reason} [{' '.join(codes)}]", "  - ")


def _proved(report: Report, page: _Page) -> Iterator[str]:
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


def _walks(report: Report, page: _Page) -> Iterator[str]:
    begin = min((w.wall_ns for w in report.transitions), default=0)
    for walk in report.transitions:
        after = (walk.wall_ns - begin) / 1e9
        when = _clock(walk.wall_ns) if walk.wall_ns == begin else f"+{after:.3f} s"
        group = "" if walk.group_id == "world" else f" of {walk.group_id}"
        yield from page.wrap(f"{when}  {_move(walk)}{group}: {_members(walk)}", "  - ")


def _ended(walk: TransitionSummary) -> bool:
    """The last view: whoever was in it has finished and left."""
    return not walk.members and walk.fault is None


def _move(walk: TransitionSummary) -> str:
    fault = f" on {walk.fault}" if walk.fault else ""
    if _ended(walk):
        return f"epoch {walk.new_epoch}: the job ended in {walk.to_regime}"
    if walk.from_regime == walk.to_regime:
        return f"epoch {walk.new_epoch}: stays {walk.to_regime}, members change{fault}"
    return f"epoch {walk.new_epoch}: {walk.from_regime} to {walk.to_regime}{fault}"


def _members(walk: TransitionSummary) -> str:
    if _ended(walk):
        return walk.reason or "everybody left"
    members = f"members {_numbers(walk.members)}"
    return f"{members}, missing {_numbers(walk.missing)}" if walk.missing else members


def _regimes(report: Report, page: _Page) -> Iterator[str]:
    by_group: dict[str, list[str]] = {}
    for share in report.regimes:
        by_group.setdefault(share.group_id, []).append(f"{share.regime} {share.share_pct:.1f} %")
    for group, shares in by_group.items():
        yield from page.wrap(f"{group}: {', '.join(shares)} of the ranks' time")
    debt = report.debt
    if debt.opened:
        yield from page.wrap(f"{_count(debt.opened, 'debt')} opened, {_fate(debt)}")


def _fate(debt: DebtSummary) -> str:
    """``1 settled, 1 written off``, as the page says it."""
    fates = (
        (debt.settled - debt.written_off, "settled"),
        (debt.written_off, "written off"),
        (debt.open, "still open"),
    )
    told = [f"{number} {word}" for number, word in fates if number]
    return f"all {told[0].split(' ', 1)[1]}" if len(told) == 1 else ", ".join(told)


def _suspects(report: Report, page: _Page) -> Iterator[str]:
    for suspect in report.suspects:
        sure = "convicted" if suspect.certain else "suspected"
        yield from page.wrap(f"rank {suspect.rank} ({sure}): {suspect.why}", "  - ")
    split = report.first_divergence
    if split:
        one = len(split.ranks) == 1
        ranks = f"rank {split.ranks[0]}" if one else f"ranks {_numbers(split.ranks)}"
        yield from page.wrap(
            f"first divergence: collective {split.cseq} of {split.comm_id}, {ranks}: {split.why}",
            "  - ",
        )


def _waits(report: Report, page: _Page) -> Iterator[str]:
    waits = report.waits
    if waits.refused:
        yield from page.wrap(waits.refused)
    if not waits.by_rank:
        return
    idle = (
        "raw: computing meanwhile is included"
        if waits.exposed_rank_s is None
        else f"{waits.exposed_rank_s:.3f} of them with the device idle"
    )
    yield from page.wrap(
        f"{waits.total_rank_s:.3f} rank-seconds spent waiting in collectives ({idle}), "
        f"{waits.share_pct:.1f} % of everyone's time"
    )
    by_cause = sorted(waits.by_rank, key=lambda r: -r.caused_s)
    if by_cause and by_cause[0].caused_s > 0:
        main = waits.main_cause()
        top = by_cause[0] if main is None else main
        least = min(waits.by_rank, key=lambda r: r.waited_s)
        dead = any(top.rank in walk.missing for walk in report.transitions)
        if main is None:
            said = "the blame is about even: nobody in particular made the others wait"
        elif dead:
            said = (
                f"the others waited {top.caused_s:.3f} s for rank {top.rank}, which left the view"
            )
        else:
            said = f"rank {top.rank} made the others wait {top.caused_s:.3f} s"
            if least.rank == top.rank and len(waits.by_rank) > 1:
                said += "; it waits least itself, and that is how one sees it"
        yield from page.wrap(said)
    if waits.chronic_straggler and waits.main_cause() is not None:
        who = waits.chronic_straggler
        yield from page.wrap(
            f"chronic straggler: rank {who.rank}, the cause in {who.share_of_steps:.0%} of the steps "
            "that had waits"
        )
    yield "  rank    waited s    caused s  arrived last s"
    for rank in by_cause[:MAX_RANKS]:
        yield f"  {rank.rank:>4}  {rank.waited_s:>10.3f}  {rank.caused_s:>10.3f}  {rank.last_s:>14.3f}"
    if len(by_cause) > MAX_RANKS:
        yield f"  and {len(by_cause) - MAX_RANKS} more ranks"


def _not_supplied(report: Report, page: _Page) -> Iterator[str]:
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


def _clock(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]


def _numbers(ranks: list[int]) -> str:
    """Ranks as ``{0-2, 5}``."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    words = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in spans]
    return "{" + ", ".join(words) + "}"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
