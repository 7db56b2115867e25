"""One analysis, end to end: a trace source in, the report and the result tables out."""

from __future__ import annotations

import json
from typing import Any

from analyzer import Analysis
from analyzer.arrow_types import arrow_table, of_run
from analyzer.debts import debts_of
from analyzer.divergence import first_divergence
from analyzer.explain import event
from analyzer.history import History
from analyzer.judge import Judgement, judge, rules
from analyzer.regimes import regime_intervals, regime_shares
from analyzer.rules._base import Accused
from analyzer.transitions import transition_summaries
from analyzer.waits import measure_waits
from cascade_runtime.vocabulary.events import SCHEMA_VERSION
from cascade_runtime.vocabulary.ports import TraceSource
from cascade_runtime.vocabulary.report import DebtSummary, Report, Suspect


def run(source: TraceSource) -> Analysis:
    """Judge and measure a trace; see ``analyzer.analyze``."""
    history = History(source)
    judgement = judge(history)
    clocks = history.clocks
    waits = measure_waits(history, clocks)
    intervals = regime_intervals(history)
    suspects = _merged(judgement.suspects)
    report = Report(
        schema_version=SCHEMA_VERSION,
        run_id=source.meta.run_id,
        verdict=judgement.verdict,
        checks=judgement.checks,
        violations=judgement.violations,
        suspects=[_suspect(history, accused) for accused in suspects],
        first_divergence=first_divergence(history),
        waits=waits.summary,
        clock=clocks.summary(),
        regimes=regime_shares(history, intervals),
        transitions=transition_summaries(history),
        debt=_debt(history),
        gaps=history.evidence.report({c: r.watches for c, r in rules().items() if r.watches}),
        not_supplied=_not_supplied(history),
        inputs=list(source.inputs),
    )
    results = {
        "regime_intervals": arrow_table("regime_intervals", intervals),
        "waits": waits.table,
        "violations": arrow_table("violations", _violation_rows(judgement)),
        "checks": arrow_table("checks", [_fields(check) for check in judgement.checks]),
        "suspects": arrow_table("suspects", [_suspect_row(history, a) for a in suspects]),
        "clock_fit": arrow_table("clock_fit", clocks.fit_rows()),
    }
    return Analysis(report, {n: of_run(t, source.meta.run_id) for n, t in results.items()})


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _violation_rows(judgement: Judgement) -> list[dict[str, Any]]:
    return [
        {**_fields(violation), "witness": json.dumps(violation.witness)}
        for violation in judgement.violations
    ]


def _merged(suspects: list[Accused]) -> list[Accused]:
    """One entry an actor; what convicts it goes before what only points at it."""
    best: dict[int, Accused] = {}
    for accused in suspects:
        known = best.get(accused.actor)
        if known is None or (accused.certain and not known.certain):
            best[accused.actor] = accused
    return [best[actor] for actor in sorted(best)]


def _suspect(history: History, accused: Accused) -> Suspect:
    actor = history.rows.actors[accused.actor]
    return Suspect(
        rank=actor.rank, incarnation=actor.incarnation, certain=accused.certain, why=accused.why
    )


def _suspect_row(history: History, accused: Accused) -> dict[str, Any]:
    evidence = [event(history, row) for row in accused.witness]
    return {**_fields(_suspect(history, accused)), "evidence": json.dumps(evidence)}


def _debt(history: History) -> DebtSummary:
    debts = debts_of(history.rows)
    settled = sum(bool(debt.closed_rows) for debt in debts)
    return DebtSummary(
        opened=len(debts),
        settled=settled,
        open=len(debts) - settled,
        written_off=sum(debt.is_written_off for debt in debts),
    )


def _not_supplied(history: History) -> list[str]:
    """What the trace does not hold, in words."""
    out = [f"{history.who(actor)}: no events" for actor in history.evidence.missing]
    if history.evidence.unclean:
        meta = history.rows.meta
        stopped = meta.clean_end is False and meta.ended_ns is not None
        why = "it was stopped early" if stopped else "the trace was not closed cleanly"
        out.append(f"end of the run: {why}")
    if history.rows.num_duplicates:
        out.append(f"{history.rows.num_duplicates} exact duplicates were dropped")
    out += [f"{note.where}: {note.what}" for note in history.rows.notes]
    return out
