"""Walks, regimes and debt of a report, as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.render_page import Page, clock_time, count_of, numbers
from cascade_runtime.vocabulary.report import DebtSummary, Report, TransitionSummary


def walk_lines(report: Report, page: Page) -> Iterator[str]:
    """A line a walk: when, from where to where, on what, with whom."""
    begin = min((w.wall_ns for w in report.transitions), default=0)
    members: dict[str, list[int]] = {}
    for walk in report.transitions:
        stay = members.get(walk.group_id) == walk.members
        members[walk.group_id] = walk.members
        after = (walk.wall_ns - begin) / 1e9
        when = clock_time(walk.wall_ns) if walk.wall_ns == begin else f"+{after:.3f} s"
        group = "" if walk.group_id == "world" else f" of {walk.group_id}"
        yield from page.wrap(f"{when}  {_move(walk, stay)}{group}: {_members(walk)}", "  - ")


def _ended(walk: TransitionSummary) -> bool:
    """The last view: whoever was in it has finished and left."""
    return not walk.members and walk.fault is None


def _move(walk: TransitionSummary, members_stay: bool) -> str:
    fault = f" on {walk.fault}" if walk.fault else ""
    if _ended(walk):
        return f"epoch {walk.new_epoch}: the job ended in {walk.to_regime}"
    if walk.from_regime == walk.to_regime:
        what = f" ({walk.reason})" if members_stay and walk.reason else ", members change"
        return f"epoch {walk.new_epoch}: stays {walk.to_regime}{what}{fault}"
    return f"epoch {walk.new_epoch}: {walk.from_regime} to {walk.to_regime}{fault}"


def _members(walk: TransitionSummary) -> str:
    if _ended(walk):
        return walk.reason or "everybody left"
    members = f"members {numbers(walk.members)}"
    return f"{members}, missing {numbers(walk.missing)}" if walk.missing else members


def regime_lines(report: Report, page: Page) -> Iterator[str]:
    """Each group's shares of the ranks' time, and what became of the debts."""
    by_group: dict[str, list[str]] = {}
    for share in report.regimes:
        by_group.setdefault(share.group_id, []).append(f"{share.regime} {share.share_pct:.1f} %")
    for group, shares in by_group.items():
        yield from page.wrap(f"{group}: {', '.join(shares)} of the ranks' time")
    debt = report.debt
    if debt.opened:
        yield from page.wrap(f"{count_of(debt.opened, 'debt')} opened, {_fate(debt)}")


def _fate(debt: DebtSummary) -> str:
    """``1 settled, 1 written off``, as the page says it."""
    fates = (
        (debt.settled - debt.written_off, "settled"),
        (debt.written_off, "written off"),
        (debt.open, "still open"),
    )
    told = [f"{number} {word}" for number, word in fates if number]
    return f"all {told[0].split(' ', 1)[1]}" if len(told) == 1 else ", ".join(told)
