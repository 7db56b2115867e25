"""Who waited, and who is to blame for it, as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.render_page import Page
from cascade_runtime.vocabulary.report import Report

MAX_RANKS = 8


def wait_lines(report: Report, page: Page) -> Iterator[str]:
    """How long, whose fault, and a table by rank, most blamed first; nothing where none was measured."""
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
    by_blame = sorted(waits.by_rank, key=lambda r: -r.caused_s)
    if by_blame and by_blame[0].caused_s > 0:
        main = waits.main_cause()
        top = by_blame[0] if main is None else main
        least = min(waits.by_rank, key=lambda r: r.waited_s)
        dead = any(top.rank in walk.missing for walk in report.transitions)
        if main is None:
            said = "the blame is about even: nobody in particular"
        else:
            left = ", which left the view," if dead else ""
            said = f"rank {top.rank}{left} has the largest blame, {top.caused_s:.3f} s of it"
            if not dead and least.rank == top.rank and len(waits.by_rank) > 1:
                said += "; it waits least itself, and that is how one sees it"
        yield from page.wrap(said)
    if waits.chronic_straggler and waits.main_cause() is not None:
        who = waits.chronic_straggler
        yield from page.wrap(
            f"chronic straggler: rank {who.rank}, most blamed in {who.share_of_steps:.0%} of the "
            "steps that had waits"
        )
    yield "  rank    waited s    blamed s  blamed as last s"
    for rank in by_blame[:MAX_RANKS]:
        yield f"  {rank.rank:>4}  {rank.waited_s:>10.3f}  {rank.caused_s:>10.3f}  {rank.last_s:>16.3f}"
    if len(by_blame) > MAX_RANKS:
        yield f"  and {len(by_blame) - MAX_RANKS} more ranks"
