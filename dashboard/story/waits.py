"""Who waited for whom."""

from __future__ import annotations

from cascade_runtime.vocabulary.report import WaitSummary
from dashboard.story.actors import Cast
from dashboard.story.facts import Facts
from dashboard.story.losses import LOST
from dashboard.story.model import WaitsPart
from dashboard.story.words import plain, seconds


def waits_of(facts: Facts, cast: Cast) -> WaitsPart | None:
    """As judged; provisional until then; None where there is nothing to say."""
    if facts.judged is None:
        return facts.provisional
    waits = facts.judged.report.waits
    if not waits.by_rank and not waits.refused:
        return None
    chronic = waits.chronic_straggler if waits.main_cause() is not None else None
    return WaitsPart(
        source="judged",
        kind=waits.kind,
        total_rank_s=waits.total_rank_s,
        exposed_rank_s=waits.exposed_rank_s,
        share_pct=waits.share_pct,
        joules=waits.joules,
        refused=plain(waits.refused, 400) or None,
        sentence=_sentence(waits, cast),
        by_rank=[
            {"rank": r.rank, "waited_s": r.waited_s, "blamed_s": r.caused_s, "last_s": r.last_s}
            for r in waits.by_rank
        ],
        pairs=facts.judged.pairs,
        chronic=None
        if chronic is None
        else {"rank": chronic.rank, "share_of_steps": chronic.share_of_steps},
    )


def _sentence(waits: WaitSummary, cast: Cast) -> str:
    if not waits.by_rank:
        return plain(waits.refused, 400)
    said = (
        f"The ranks waited {seconds(waits.total_rank_s)} in collectives, summed over ranks: "
        f"{waits.share_pct:.1f}% of everyone's time."
    )
    if waits.exposed_rank_s is not None:
        said += f" For {seconds(waits.exposed_rank_s)} of it the device was idle."
    top = waits.main_cause()
    if top is None:
        even = any(r.caused_s > 0 for r in waits.by_rank)
        return f"{said} The blame is about even: nobody in particular." if even else said
    # Of those that did not come back.
    last = max((a.incarnation for a in cast.actors if a.rank == top.rank), default=0)
    lost = cast.left.get((top.rank, last))
    if lost is not None and lost.reason in LOST:
        how = "was stopped" if lost.reason == "stopped" else "died"
        return (
            f"{said} Rank {top.rank}, which {how}, has the largest blame, "
            f"{seconds(top.caused_s)} of it."
        )
    return f"{said} Rank {top.rank} has the largest blame, {seconds(top.caused_s)} of it."
