"""Runs every rule of the contract over a history, and the one total that follows."""

from __future__ import annotations

from dataclasses import dataclass

import analyzer.rules
from analyzer.codes import NAMES, NEVER_VIOLATED, NOT_IN_RELEASE, NOT_IN_TOTAL
from analyzer.explain import witness
from analyzer.history import History
from analyzer.rules._base import Accused, Finding, Outcome, Rule
from cascade_runtime.vocabulary.plug import discover
from cascade_runtime.vocabulary.report import CheckResult, Violation
from cascade_runtime.vocabulary.results import CheckVerdict, Verdict

MAX_PATHS = 20
"""Findings of one rule that get a happens-before path; further ones name their rows only."""


@dataclass(frozen=True)
class Judgement:
    """All answers of all rules."""

    verdict: Verdict
    checks: list[CheckResult]
    violations: list[Violation]
    suspects: list[Accused]


def rules() -> dict[str, Rule]:
    """The rules of this release by code, in the contract's order of codes."""
    found: dict[str, Rule] = {rule.code: rule for rule in discover(analyzer.rules).values()}
    return {code: found[code] for code in NAMES if code in found}


def judge(history: History) -> Judgement:
    """Every code of the contract, judged on one history."""
    known = rules()
    checks: list[CheckResult] = []
    violations: list[Violation] = []
    suspects: list[Accused] = []
    told: dict[str, set[int]] = {}
    for code, name in NAMES.items():
        rule = known.get(code)
        if rule is None:
            checks.append(_not_checked(code, name, NOT_IN_RELEASE))
            continue
        outcome = _run(history, rule)
        for other in rule.yields_to:
            outcome.findings = [f for f in outcome.findings if f.row not in told.get(other, set())]
        told[code] = {finding.row for finding in outcome.findings}
        checks.append(_check(history, rule, outcome))
        violations += [
            _violation(history, rule, finding, with_paths=i < MAX_PATHS)
            for i, finding in enumerate(outcome.findings)
            if code not in NEVER_VIOLATED
        ]
        suspects += outcome.suspects
    return Judgement(total(checks), checks, violations, suspects)


def _run(history: History, rule: Rule) -> Outcome:
    """The rule's outcome; missing evidence that it watches turns ok into unknown."""
    lacking = rule.lacks(history.rows.recorded)
    if lacking:
        return Outcome(not_checked=lacking)
    outcome = rule.check(history)
    if rule.watches:
        outcome.cannot_say(history.evidence.lost(rule.watches))
    return outcome


def _check(history: History, rule: Rule, outcome: Outcome) -> CheckResult:
    certain = sum(not finding.inferred for finding in outcome.findings)
    verdict: CheckVerdict
    reason: str | None = None
    if outcome.not_checked:
        verdict, reason = "not_checked", outcome.not_checked
    elif outcome.findings and rule.code in NEVER_VIOLATED:
        # Listed nowhere, so the reason says how many and where.
        first = outcome.findings[0]
        verdict, certain = "unknown", 0
        place = f"event {history.rows.where(first.row)[2]}"
        reason = f"{len(outcome.findings)} found, the first at {place}: {first.sentence}"
    elif certain:
        verdict, reason = "violated", outcome.findings[0].sentence
    elif outcome.findings:
        verdict, reason = "unknown", "what was found rests on inferred facts"
    elif outcome.unknown:
        verdict, reason = "unknown", outcome.unknown
    else:
        verdict = "ok"
    return CheckResult(
        code=rule.code,
        name=rule.name,
        verdict=verdict,
        num_checked=outcome.num_checked,
        num_violations=certain,
        reason=reason,
    )


def _not_checked(code: str, name: str, reason: str) -> CheckResult:
    return CheckResult(
        code=code, name=name, verdict="not_checked", num_checked=0, num_violations=0, reason=reason
    )


def _violation(history: History, rule: Rule, finding: Finding, with_paths: bool) -> Violation:
    rows = history.rows
    rank, incarnation, seq = rows.where(finding.row)
    content = rows.content(finding.row)
    return Violation(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        rank=rank,
        incarnation=incarnation,
        seq=seq,
        group_id=content["group_id"],
        epoch=content["epoch"],
        regime=content["regime"],
        wall_ns=content["wall_ns"],
        sentence=finding.sentence,
        witness=witness(history, finding.witness, with_paths),
        inferred=finding.inferred,
    )


def total(checks: list[CheckResult]) -> Verdict:
    """Violated if any check is; else unknown if any is or nothing was judged; else ok.

    Source: design contract 4.4, "The total". Codes about the trace's own quality (Q) prove nothing
    of the job, so a trace on which only they could be checked is unknown.
    """
    counted = [c for c in checks if c.code not in NOT_IN_TOTAL]
    if any(c.verdict == "violated" for c in counted):
        return "violated"
    if any(c.verdict == "unknown" for c in counted):
        return "unknown"
    judged = [c for c in counted if c.verdict != "not_checked" and not c.code.startswith("Q")]
    return "ok" if judged else "unknown"
