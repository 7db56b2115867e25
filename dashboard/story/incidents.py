"""What a person should look at, worst first, each with a window of time that shows it."""

from __future__ import annotations

from dashboard.story.actor_incidents import actor_incidents
from dashboard.story.actor_names import ActorNames
from dashboard.story.excursions import Excursion
from dashboard.story.marks import gap_words
from dashboard.story.model import Gap, Incident, ViolationPart
from dashboard.story.seen import Seen, incident
from dashboard.story.silence import quiet_ns
from dashboard.story.stuck import stuck_of
from dashboard.story.words import count, duration, moment, plain, seconds, sentence, stopped, who

MAX_INCIDENTS = 200
MAX_EACH = 8
"""Violations of one rule above this are one incident."""

HANG_NS = 30_000_000_000
LARGE_WAIT_PCT = 10.0

_SEVERITY = {"error": 0, "warning": 1, "info": 2}
_KIND = (
    "violation",
    "hang",
    "loss",
    "excursion",
    "silent",
    "gap",
    "return",
    "join",
    "agent",
    "wait",
)


def incidents_of(seen: Seen) -> list[Incident]:
    """At most MAX_INCIDENTS, worst first."""
    found = [
        *_violations(seen),
        *_stuck(seen),
        *_hang(seen),
        *_losses(seen),
        *(_excursion(seen, e) for e in seen.excursions),
        *actor_incidents(seen),
        *_gaps(seen),
        *_waits(seen),
    ]
    lost = {f"excursion:{e.walks[0].id}" for e in seen.excursions if e.died or e.stopped}
    return sorted(found, key=lambda one: _badness(one, one.id in lost))[:MAX_INCIDENTS]


def _badness(one: Incident, lost: bool) -> tuple[int, int, int, int, int]:
    """For sorting: of one kind those in which a rank was lost come first, then the longest."""
    length = 0 if one.kind == "violation" else one.end_ns - one.at_ns
    severity = _SEVERITY.get(one.severity, 2)
    return severity, _KIND.index(one.kind), int(not lost), -length, one.at_ns


def _violations(seen: Seen) -> list[Incident]:
    by_code: dict[str, list[ViolationPart]] = {}
    for violation in seen.violations:
        by_code.setdefault(violation.code, []).append(violation)
    found = []
    for code, those in by_code.items():
        if len(those) > MAX_EACH:
            found.append(_many(seen, code, those))
            continue
        for one in those:
            times = [s.at_ns for s in one.steps if s.at_ns is not None]
            at, end = min([one.at_ns, *times]), max([one.at_ns, *times])
            title = f"{code} {one.name}"
            said = sentence(one.sentence)
            found.append(
                incident(
                    seen, "violation", one.id, one.severity, at, end, title, said,
                    f"violation:{one.id}",
                )
            )  # fmt: skip
    return found


def _many(seen: Seen, code: str, those: list[ViolationPart]) -> Incident:
    first = those[0]
    checks = [] if seen.facts.report is None else seen.facts.report.checks
    total = max([len(those), *(c.num_violations for c in checks if c.code == code)])
    at, end = min(v.at_ns for v in those), max(v.at_ns for v in those)
    title = f"{code} {first.name}, {total:,} times"
    said = f"{total:,} times, the first at {moment(at)}: {stopped(first.sentence)}"
    severity = min((v.severity for v in those), key=lambda s: _SEVERITY.get(s, 2))
    return incident(
        seen, "violation", f"{code}:all", severity, at, end, title, said, f"violation:{first.id}"
    )


def _stuck(seen: Seen) -> list[Incident]:
    stuck = stuck_of(seen.facts)
    if stuck is None:
        return []
    by = stuck.by[0]
    return [
        incident(
            seen, "hang", f"held:{by}", "error", stuck.at_ns, stuck.end_ns, stuck.title(),
            stuck.words(), f"rank:{by}",
        )
    ]  # fmt: skip


def _hang(seen: Seen) -> list[Incident]:
    quiet = quiet_ns(seen.facts)
    if quiet < HANG_NS:
        return []
    last = seen.last_ns
    said = f"Nothing has come from any rank for {duration(quiet)}, and the run has not ended."
    return [
        incident(
            seen, "hang", "all", "error", last, last + quiet, "Nothing comes any more", said, None
        )
    ]


def _losses(seen: Seen) -> list[Incident]:
    found, last = [], seen.last_ns
    facts, missing = seen.facts, seen.cast.missing
    told = facts.meta.mode != "imported" or facts.meta.clean_end is False
    if facts.state in ("stopped", "unclean") and facts.num_rows and told:
        still = [a.rank for a in seen.cast.actors if a.kind != "agent" and a.end is None]
        of = f"; {who(still)} had not left" if still else ""
        how, level, title = "is still running, or was cut off", "error", "The end is missing"
        if facts.is_stopped_early:
            how, level, title = "was stopped before its scripts had ended", "info", "Stopped early"
        said = f"The run {how}: its last row is at {moment(last)}{of}."
        found.append(incident(seen, "loss", "end", level, last, last, title, said, None))
    if missing and facts.state not in ("live", "waiting"):
        said = f"{sentence(who(missing))[:-1]} left no row, so what they did is not known."
        if len(missing) == 1:
            said = said.replace("what they did", "what it did")
        title = f"No rows of {who(missing)}"
        found.append(incident(seen, "loss", "ranks", "warning", 0, last, title, said, None))
    return found


def _excursion(seen: Seen, one: Excursion) -> Incident:
    walk = one.walks[0]
    bad = not one.is_back and seen.facts.state != "live"
    cause = sentence(one.cause)[:-1]
    span = duration(one.span_ns)
    several = len(one.passed) > 1
    how = f"down to {one.lowest}, {span} out of STRONG" if several else f"{one.lowest} for {span}"
    title = f"{cause}: {how}"
    severity = "error" if bad and one.num_open else "warning"
    if one.is_back and walk.fault == "NODE_CHURN_HIGH" and not one.died and not one.stopped:
        severity = "info"  # who came and went is told by incidents of their own
    return incident(
        seen, "excursion", walk.id, severity,
        one.fault_ns, one.end_ns, title, one.words(), f"walk:{walk.id}",
    )  # fmt: skip


def _gaps(seen: Seen) -> list[Incident]:
    by_rank: dict[int, list[Gap]] = {}
    for gap in seen.gaps:
        by_rank.setdefault(gap.rank, []).append(gap)
    found = []
    names = ActorNames(seen.cast)
    for rank, those in by_rank.items():
        at, end = those[0].at_ns, those[-1].at_ns
        whom = names(rank, those[0].incarnation)
        said = gap_words(those[0], names)
        if len(those) > 1:
            known = sum(gap.num_events or 0 for gap in those)
            said = f"{count(len(those), 'time')} events of {whom} are missing, {known:,} known."
        title = f"Events of {whom} are missing"
        found.append(
            incident(seen, "gap", str(rank), "warning", at, end, title, said, f"rank:{rank}")
        )
    return found


def _waits(seen: Seen) -> list[Incident]:
    waits = seen.waits
    if waits is None or waits.source != "judged":
        return []
    if waits.chronic is not None:
        rank, share = int(waits.chronic["rank"]), waits.chronic["share_of_steps"]
        blamed = next((r["blamed_s"] for r in waits.by_rank if r["rank"] == rank), 0.0)
        said = (
            f"Rank {rank} has the largest blame in {share:.0%} of the steps that had waits, "
            f"{seconds(blamed)} in all, summed over ranks."
        )
        return [
            incident(
                seen, "wait", f"chronic:{rank}", "warning", 0, seen.last_ns,
                f"Rank {rank} is a chronic straggler", said, f"rank:{rank}",
            )
        ]  # fmt: skip
    if waits.share_pct < LARGE_WAIT_PCT or not waits.pairs:
        return []
    top = waits.pairs[0]
    sel = f"wait:{top['caused_by']}:{top['waited']}"
    title = f"{waits.share_pct:.0f}% of the time was waiting"
    return [
        incident(
            seen, "wait", "all", "info", 0, seen.last_ns, title, plain(waits.sentence, 400), sel
        )
    ]
