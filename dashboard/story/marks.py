"""Single moments: walks, departures, joins, faults, gaps, violations."""

from __future__ import annotations

from dashboard.story.actor_names import ActorNames
from dashboard.story.facts import Facts
from dashboard.story.fault_words import fault_words
from dashboard.story.model import Gap, Mark, ViolationPart, Walk
from dashboard.story.words import count, plain, sentence

MAX_MARKS = 2_000

_ORDER = {"error": 0, "warning": 1, "info": 2}
_CALM = ("RECOVERY_DETECTED", "STABLE_SYNC")


def marks_of(
    facts: Facts,
    names: ActorNames,
    walks: list[Walk],
    gaps: list[Gap],
    violations: list[ViolationPart],
) -> tuple[list[Mark], int]:
    """At most MAX_MARKS, errors first and then in time; and how many there are."""
    found = [
        *_walks(walks),
        *_changes(facts, names),
        *_faults(facts, names),
        *_gaps(gaps, names),
        *_violations(violations),
    ]
    found.sort(key=lambda m: (_ORDER.get(m.severity, 2), m.at_ns, m.rank, m.kind))
    return found[:MAX_MARKS], len(found)


def gaps_of(facts: Facts) -> list[Gap]:
    """Events that are known to be missing, in time."""
    return [
        Gap(
            rank=row["rank"],
            incarnation=row["incarnation"],
            at_ns=facts.since(row["wall_ns"]),
            num_events=row["num_events"],
            reason=row["reason"],
        )
        for row in facts.rows.gaps
    ]


def _walks(walks: list[Walk]) -> list[Mark]:
    return [
        Mark(
            at_ns=walk.at_ns,
            kind="transition",
            severity="info" if _is_climb(walk) else "warning",
            rank=-1 if walk.proposer is None else walk.proposer,
            incarnation=0,
            fault=walk.fault,
            epoch=walk.epoch,
            sentence=walk.sentence,
        )
        for walk in walks
        if walk.from_regime != walk.to_regime
    ]


def _is_climb(walk: Walk) -> bool:
    return walk.from_regime == "EVENTUAL" or walk.to_regime == "STRONG"


def _changes(facts: Facts, names: ActorNames) -> list[Mark]:
    """Who left other than in order, and who came later."""
    found = []
    for row in facts.rows.changes:
        gone = row["what"] == "departed"
        if row["reason"] in (("finished",) if gone else ("started", None)):
            continue
        why = f": {plain(row['reason'], 60)}" if row["reason"] not in (None, "joined") else ""
        name = names(row["rank"], row["incarnation"] if gone else 0)
        back = f" as {row['rank']}.{row['incarnation']}" if row["incarnation"] and not gone else ""
        found.append(
            Mark(
                at_ns=facts.since(row["wall_ns"]),
                kind="departure" if gone else "join",
                severity="warning" if gone else "info",
                rank=row["rank"],
                incarnation=row["incarnation"],
                fault=None,
                epoch=row["epoch"],
                sentence=sentence(f"{name} {'left' if gone else 'joined'} the view{back}{why}"),
            )
        )
    return found


def _faults(facts: Facts, names: ActorNames) -> list[Mark]:
    return [
        Mark(
            at_ns=facts.since(row["wall_ns"]),
            kind="health",
            severity="info" if row["fault"] in _CALM else "warning",
            rank=row["rank"],
            incarnation=row["incarnation"],
            fault=row["fault"],
            epoch=row["epoch"],
            sentence=sentence(fault_words(row, names(row["rank"], row["incarnation"]))),
        )
        for row in facts.rows.faults
    ]


def _gaps(gaps: list[Gap], names: ActorNames) -> list[Mark]:
    return [
        Mark(
            at_ns=gap.at_ns,
            kind="gap",
            severity="warning",
            rank=gap.rank,
            incarnation=gap.incarnation,
            fault=None,
            epoch=None,
            sentence=gap_words(gap, names),
        )
        for gap in gaps
    ]


def gap_words(gap: Gap, names: ActorNames) -> str:
    """A gap as a sentence."""
    num = gap.num_events
    many = "an unknown number of events" if num is None else count(num, "event")
    why = f" ({gap.reason.replace('_', ' ')})" if gap.reason else ""
    is_one = "is" if num == 1 else "are"
    return sentence(f"{many} of {names(gap.rank, gap.incarnation)} {is_one} missing{why}")


def _violations(violations: list[ViolationPart]) -> list[Mark]:
    return [
        Mark(
            at_ns=v.at_ns,
            kind="violation",
            severity=v.severity,
            rank=v.rank,
            incarnation=v.incarnation,
            fault=None,
            epoch=v.epoch,
            sentence=f"{v.code} {v.name}: {v.sentence}",
        )
        for v in violations
    ]
