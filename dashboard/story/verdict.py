"""The line on top, in plain words. What is not known is never called fine."""

from __future__ import annotations

from collections.abc import Sequence

from cascade_runtime.vocabulary.report import Report
from dashboard.story.actors import Cast
from dashboard.story.excursions import Excursion
from dashboard.story.facts import Facts
from dashboard.story.losses import lost_count, lost_words
from dashboard.story.model import Check, Regimes, VerdictPart
from dashboard.story.reasons import but_so_far, detail_of, pending, reasons_of
from dashboard.story.returns import back_words, returns_of
from dashboard.story.stuck import stuck_of
from dashboard.story.violations import counts, in_order
from dashboard.story.words import (
    count,
    count_word,
    duration,
    moment,
    plain,
    sentence,
    stopped,
    who,
)

MAX_DETAIL = 12
MAX_CAUSES = 4
"""Where STRONG was left for more reasons than these, only who was lost is told."""

_NAMES = ("STRONG", "CAUSAL", "EVENTUAL")


def verdict_of(
    facts: Facts, cast: Cast, regimes: Regimes, excursions: Sequence[Excursion]
) -> VerdictPart:
    """The verdict with its sentence."""
    report = facts.report
    num_inferred = 0 if report is None else sum(v.inferred for v in report.violations)
    state = _state(facts, report)
    said = _said(state, facts, cast, regimes, excursions)
    if facts.state == "live" and state in ("violated", "ok", "unknown"):
        said = f"{_running(facts, cast, regimes)} {said}"
    elif facts.state != "live" and (stuck := stuck_of(facts)) is not None:
        said = f"{stuck.words()} {said}"
    return VerdictPart(
        state=state,
        sentence=said,
        detail=_detail(facts, cast, report),
        checks=[] if report is None else _checks(facts, report),
        num_violations=0 if report is None else len(report.violations) - num_inferred,
        num_inferred=num_inferred,
        judged_upto_ns=_upto(facts),
    )


def _said(
    state: str, facts: Facts, cast: Cast, regimes: Regimes, excursions: Sequence[Excursion]
) -> str:
    if state == "none":
        return _none(facts)
    if state == "judging":
        return _judging(facts, cast, regimes, excursions)
    if state == "ok":
        return _ok(facts, cast, regimes, excursions)
    return _violated(facts) if state == "violated" else _unknown(facts)


def _state(facts: Facts, report: Report | None) -> str:
    if not facts.num_rows:
        return "none"
    if report is None:
        return "unknown" if facts.problem else "judging"
    if report.verdict == "violated":
        return "violated"
    if report.verdict == "unknown" and facts.state == "live" and pending(report):
        return "judging"  # it fell silent, and rows may still come
    return report.verdict if facts.is_whole else "judging"


def _upto(facts: Facts) -> int | None:
    if facts.judged is None:
        return None
    if facts.is_whole:
        return facts.since(facts.t1_ns)
    return None if facts.judged.upto_ns is None else facts.since(facts.judged.upto_ns)


def _none(facts: Facts) -> str:
    if facts.state == "waiting":
        return "Waiting: no row has come yet."
    return "This run has no rows, so there is nothing to tell and nothing to judge."


def _judging(facts: Facts, cast: Cast, regimes: Regimes, excursions: Sequence[Excursion]) -> str:
    upto, is_live = _upto(facts), facts.state == "live"
    but = "" if facts.report is None else but_so_far(facts.report, is_live=is_live)
    if is_live:
        said = _running(facts, cast, regimes)
        if facts.judged is None:
            return f"{said} Not judged yet."
        ago = "" if upto is None else f" up to {duration(facts.since(facts.t1_ns) - upto)} ago"
        return f"{said} Judged{ago}: no promise broken so far{but}."
    ends = _end_words(facts)
    if facts.judged is None:
        return sentence(
            f"being judged; until then nothing is known. {_tale(facts, excursions, ends)}"
        )
    at = "" if upto is None else f" up to {moment(upto)}"
    return f"Being judged; no promise broken{at}{but}. {_tale(facts, excursions, ends)}".strip()


def _cut(facts: Facts) -> str:
    """Why the run has no clean end."""
    if facts.is_stopped_early:
        return "The run was stopped before its scripts had ended."
    return "The run's end is missing: it is still running, or was cut off."


def _ok(facts: Facts, cast: Cast, regimes: Regimes, excursions: Sequence[Excursion]) -> str:
    tale = _tale(facts, excursions, _end_words(facts)) or _calm(facts, cast, regimes)
    cut = (
        _cut(facts)
        if facts.state in ("stopped", "unclean") and facts.meta.mode != "imported"
        else ""
    )
    return " ".join(part for part in ("No promise was broken.", tale, cut) if part)


def _violated(facts: Facts) -> str:
    assert facts.report is not None
    broken = [v for v in in_order(facts.report) if counts(v)]
    total = sum(c.num_violations for c in facts.report.checks if c.verdict == "violated")
    number = max(len(broken), total)
    if not broken:
        return sentence(count(number, "promise was", "promises were") + " broken")
    first = broken[0]
    if number == 1:
        head = f"{count_word(1, 'promise')} was broken, at"
    elif len({c.code for c in facts.report.checks if c.verdict == "violated"}) == 1:
        head = f"{count_word(1, 'promise')} was broken {number:,} times, first at"
    else:
        head = f"{number:,} promises were broken, the first at"
    return f"{head} {moment(facts.since(first.wall_ns))}: {stopped(plain(first.sentence, 400))}"


def _unknown(facts: Facts) -> str:
    if facts.report is None:
        return sentence(f"cannot be decided: the analysis failed ({plain(facts.problem, 200)})")
    reasons = reasons_of(facts.report.checks)
    if not reasons:
        return "Cannot be decided: nothing in this run could be checked."
    why = reasons[0][0]
    more = len(reasons) - 1
    rest = f" {count_word(more, 'more reason')}: see what was checked." if more else ""
    num = sum(len(c) for _, c in reasons)
    return (
        f"Cannot be decided: {plain(why, 300).rstrip('.')}. {count_word(num, 'check')} could not be "
        f"answered; those that could found no promise broken.{rest}"
    )


def _tale(facts: Facts, excursions: Sequence[Excursion], ends: str) -> str:
    """What happened: one excursion in full, several in sum, who came back; nothing for a calm run."""
    if not excursions:
        return ""
    said = _one(excursions[0], ends) if len(excursions) == 1 else _sum_of(excursions, ends)
    return f"{said} {back_words(returns_of(facts))}".rstrip()


def _one(one: Excursion, ends: str) -> str:
    if lost := lost_count(one.died, one.stopped):
        head, whom = lost, "the others"
    else:
        head, whom = sentence(one.cause)[:-1], "the ranks"
    if len(one.passed) == 1:
        parts = [f"went on in {one.lowest} for {duration(one.span_ns)}"]
    else:
        parts = [f"went down to {one.lowest}", f"were out of STRONG for {duration(one.span_ns)}"]
    written_off = sum(debt.fate == "written_off" for debt in one.debts)
    settled = len(one.debts) - one.num_open - written_off
    if settled:
        parts.append(f"settled {count(settled, 'debt')}")
    if written_off:
        what = f"{written_off:,}" if settled else count(written_off, "debt")
        parts.append(f"wrote off {what}")
    if one.num_open:
        parts.append(f"left {count(one.num_open, 'debt')} open")
    parts.append("are back in STRONG" if one.is_back else f"{ends} out of STRONG")
    said = ", ".join(parts[:-1]) + " and " + parts[-1]
    return f"{head} {one.when}; {whom} {said}."


def _sum_of(excursions: Sequence[Excursion], ends: str) -> str:
    span = sum(e.span_ns for e in excursions)
    debts, num_open = sum(len(e.debts) for e in excursions), sum(e.num_open for e in excursions)
    causes = list(dict.fromkeys(e.cause for e in excursions))
    lost = lost_words(
        sorted({rank for e in excursions for rank in e.died}),
        sorted({rank for e in excursions for rank in e.stopped}),
    )
    why = ", ".join(causes) if len(causes) <= MAX_CAUSES else lost
    known = f" ({why})" if why else ""
    times = "twice" if len(excursions) == 2 else f"{len(excursions):,} times"
    said = f"STRONG was left {times}{known}, for {duration(span)} in all"
    if debts:
        said += f"; {count(debts, 'debt')} opened, " + (
            f"{num_open:,} still open" if num_open else "none open"
        )
    back = all(e.is_back for e in excursions)
    return f"{said}; {'the ranks are back in STRONG' if back else f'the ranks {ends} out of it'}."


def _end_words(facts: Facts) -> str:
    return "are" if facts.state == "live" else "ended"


def _calm(facts: Facts, cast: Cast, regimes: Regimes) -> str:
    held = {_NAMES[code] for code in set(regimes.regime)}
    if len(held) != 1:
        return ""
    span = duration(facts.t1_ns - facts.t0_ns)
    return f"{count_word(len(cast.ranks), 'rank')} stayed in {held.pop()} for all of {span}."


def _running(facts: Facts, cast: Cast, regimes: Regimes) -> str:
    if (stuck := stuck_of(facts)) is not None:
        return stuck.words()
    here = {a.rank for a in cast.actors if a.kind != "agent" and a.end is None}
    expected = len(set(cast.ranks) | set(cast.missing))
    said = [f"{len(here):,} of {expected:,} ranks"]
    last: dict[tuple[str, int], int] = {}
    for group, rank, code in zip(regimes.group, regimes.rank, regimes.regime, strict=True):
        if rank in here:
            last[group, rank] = code
    if last:
        weakest = max(last.values())
        said.append(_NAMES[weakest])
    if facts.activity is not None:
        keys = [k for k in facts.activity.spans if k not in cast.agents]
        step = max((facts.activity.spans[k].highest_step for k in keys), default=-1)
        if step >= 0:
            said.append(f"step {step:,}")
    return f"Running: {', '.join(said)}."


def _detail(facts: Facts, cast: Cast, report: Report | None) -> list[str]:
    found = []
    if facts.state in ("stopped", "unclean") and facts.num_rows and facts.meta.mode != "imported":
        found.append(_cut(facts))
    if cast.missing:
        found.append(f"No rows came from {who(cast.missing)}.")
    if report is not None:
        is_live = facts.state == "live"
        found += detail_of(report, is_whole=facts.is_whole, is_live=is_live)
        found += [sentence(plain(line, 300)) for line in report.not_supplied]
    return list(dict.fromkeys(found))[:MAX_DETAIL]


def _checks(facts: Facts, report: Report) -> list[Check]:
    is_live = facts.state == "live"
    later = set() if facts.is_whole and not is_live else {c.code for c in pending(report)}
    return [
        Check(
            code=check.code,
            name=check.name,
            verdict=check.verdict,
            num_checked=check.num_checked,
            num_violations=check.num_violations,
            reason=plain(check.reason, 300) or None,
            is_pending=check.code in later,
        )
        for check in report.checks
    ]
