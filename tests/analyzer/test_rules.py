"""Each rule against its stories: it reports the ruled row and nothing else does."""

from __future__ import annotations

import pytest

from analyzer import analyze
from analyzer.codes import NAMES, NEVER_VIOLATED, NOT_IN_RELEASE, NOT_IN_TOTAL
from analyzer.judge import rules
from analyzer.rules_page import docs_of
from tests.analyzer.stories.every import STORIES
from tests.story import Story

BESIDE = {("L2", "L1")}
"""(code, other): the contract lets the other stand beside it."""


def sourced(told):
    return told.source() if isinstance(told, Story) else told


def _stories(kind):
    found = [(code, tell) for code, k, tell in STORIES if k == kind]
    return [
        pytest.param(code, tell, id=f"{code}-{tell.__name__.strip('_') or i}")
        for i, (code, tell) in enumerate(found)
    ]


@pytest.mark.parametrize(("code", "tell"), _stories("trips"))
def test_trips(code, tell):
    told, rows = tell()
    report = analyze(sourced(told)).report
    found = [
        (v.code, v.rank, v.incarnation, v.seq)
        for v in report.violations
        if (code, v.code) not in BESIDE
    ]
    want = [(code, r["rank"], r["incarnation"], r["seq"]) for r in rows]
    assert sorted(found) == sorted(want), [v.sentence for v in report.violations]
    check = next(c for c in report.checks if c.code == code)
    assert (check.verdict, check.num_violations) == ("violated", len(rows))
    assert report.verdict == "violated"
    for violation in report.violations:
        assert violation.sentence[-1] == "."
        assert violation.witness
        assert {"rank", "incarnation", "seq", "table", "what", "edge"} <= set(violation.witness[0])


@pytest.mark.parametrize(("code", "tell"), _stories("almost"))
def test_almost(code, tell):
    told, _ = tell()
    report = analyze(sourced(told)).report
    assert [v.sentence for v in report.violations] == []
    check = next(c for c in report.checks if c.code == code)
    assert check.verdict == "ok", check.reason


@pytest.mark.parametrize(("code", "tell"), _stories("unknown"))
def test_unknown(code, tell):
    told, _ = tell()
    report = analyze(sourced(told)).report
    check = next(c for c in report.checks if c.code == code)
    assert check.verdict == "unknown"
    assert check.reason
    assert report.verdict == "unknown", [v.sentence for v in report.violations]


@pytest.mark.parametrize(("code", "tell"), _stories("not_in_total"))
def test_what_the_total_does_not_go_by(code, tell):
    told, _ = tell()
    report = analyze(sourced(told)).report
    check = next(c for c in report.checks if c.code == code)
    assert (check.verdict, report.verdict, report.violations) == ("unknown", "ok", [])
    assert check.reason


def test_every_rule_has_its_stories():
    for code, rule in rules().items():
        kinds = {k for c, k, _ in STORIES if c == code}
        doubted = "not_in_total" if code in NOT_IN_TOTAL else "unknown"
        want = {"almost"} | ({doubted} if code in NEVER_VIOLATED else {"trips"})
        if rule.watches:
            want.add("unknown")
        assert want <= kinds, code


def test_rules_are_documented_and_named_by_the_one_list():
    for code, rule in rules().items():
        assert rule.name == NAMES[code]
        summary, texts = docs_of(rule)
        assert summary.endswith(".")
        assert all(texts.values())


def test_codes_without_a_rule_are_told():
    told, _ = STORIES[0][2]()
    report = analyze(sourced(told)).report
    assert [c.code for c in report.checks] == list(NAMES)
    for check in report.checks:
        if check.code not in rules():
            assert (check.verdict, check.reason) == ("not_checked", NOT_IN_RELEASE)


def test_a_table_that_was_not_recorded_is_not_checked():
    told, _ = STORIES[0][2]()
    source = sourced(told)
    source.meta.recorded_tables.remove("transitions")
    checks = {c.code: c for c in analyze(source).report.checks}
    assert checks["L1"].verdict == "not_checked"
    assert checks["L1"].reason == "transitions was not recorded"
