"""A good run is proved good; what is done to the trace must not change what it says."""

from __future__ import annotations

import random

import msgspec
import pytest

from analyzer import analyze, judge
from analyzer.codes import NOT_IN_RELEASE
from analyzer.judge import rules
from tests.analyzer.runs import kill_one_run
from tests.analyzer.stories.every import STORIES
from tests.story import Story

_RANKS = ("rank", "origin_rank", "peer", "subject_rank")


@pytest.mark.parametrize(("dead", "agents"), [(2, 1), (0, 1), (3, 2)])
def test_a_run_that_loses_a_rank_is_proved_ok(dead, agents):
    report = analyze(kill_one_run(dead, agents).source()).report
    assert [v.sentence for v in report.violations] == []
    assert [(c.code, c.reason) for c in report.checks if c.verdict == "unknown"] == []
    assert report.verdict == "ok"
    by_code = {c.code: c for c in report.checks}
    for code in rules():
        assert by_code[code].verdict == "ok", by_code[code].reason
    for code in (
        "A1",
        "A5",
        "S1",
        "S2",
        "G1",
        "G2",
        "L1",
        "L2",
        "L3",
        "L4",
        "L5",
        "L6",
        "R3",
        "R4",
    ):
        assert by_code[code].num_checked > 0, code
    left = [r for r in range(4) if r != dead]
    assert [(w.from_regime, w.to_regime, w.fault, w.members, w.missing) for w in report.transitions] == [
        ("STRONG", "CAUSAL", "GPU_FAIL_STOP", left, [dead]),
        ("CAUSAL", "STRONG", "STABLE_SYNC", left, []),
        ("STRONG", "STRONG", None, [], []),
    ]  # fmt: skip
    assert (report.debt.opened, report.debt.settled, report.debt.open) == (2, 2, 0)
    assert report.suspects == []
    assert report.not_supplied == []
    assert sum(share.share_pct for share in report.regimes) == pytest.approx(100.0, abs=0.01)


def test_the_dead_rank_is_the_cause_of_what_was_waited_for_it():
    results = analyze(kill_one_run().source()).results
    waits = [w for w in results["waits"].to_pylist() if w["cause"] == "dead rank"]
    assert {w["rank"] for w in waits} == {0, 1, 3}
    assert {(w["root_rank"], w["last_rank"]) for w in waits} == {(2, 2)}
    assert not any(w["is_open"] for w in results["waits"].to_pylist())


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_without_the_events_of_one_actor_it_is_unknown(rank):
    report = analyze(kill_one_run().source(without=[rank])).report
    assert [v.sentence for v in report.violations] == []
    assert report.verdict == "unknown"
    assert f"rank {rank}: no events" in report.not_supplied
    reasons = {c.reason for c in report.checks if c.verdict == "unknown"}
    assert any(f"rank {rank} has no events" in reason for reason in reasons)


def _without_time(report):
    """The report without what the order of inputs may change (nothing may)."""
    return msgspec.to_builtins(report)


@pytest.mark.parametrize("seed", range(3))
def test_order_and_files_do_not_matter(seed):
    story = kill_one_run()
    assert _without_time(analyze(story.source()).report) == _without_time(
        analyze(story.source(shuffle=seed)).report
    )


@pytest.mark.parametrize("seed", range(3))
def test_exact_copies_change_nothing_but_the_count(seed):
    rng = random.Random(seed)
    story = kill_one_run()
    before = analyze(story.source()).report
    story.rows += [(t, dict(r)) for t, r in rng.sample(story.rows, 40)]
    after = analyze(story.source(shuffle=seed)).report
    assert after.not_supplied == ["40 exact duplicates were dropped"]
    assert after.verdict == "ok"
    assert after.checks == before.checks


def renumbered(story: Story, new: dict[int, int]) -> Story:
    """The same run with the ranks called by other numbers."""

    def of(value, key=""):
        if isinstance(value, dict):
            return {k: of(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [of(v) for v in value]
        if key in _RANKS and value is not None:
            return new[value]
        return value

    other = Story(ranks=len(story.ranks), agents=len(story.agents), start=False)
    other.rows = [(table, of(row)) for table, row in story.rows]
    other.now = story.now
    return other


@pytest.mark.parametrize("seed", range(3))
def test_names_of_ranks_do_not_matter(seed):
    story = kill_one_run()
    ranks = list(range(4))
    random.Random(seed).shuffle(ranks)
    new = dict(enumerate(ranks)) | {4: 4}
    a = analyze(story.source()).report
    b = analyze(renumbered(story, new).source()).report
    assert b.verdict == a.verdict == "ok"
    assert [(c.code, c.verdict, c.num_checked) for c in b.checks] == [
        (c.code, c.verdict, c.num_checked) for c in a.checks
    ]
    assert {new[r.rank]: round(r.waited_s, 6) for r in a.waits.by_rank} == {
        r.rank: round(r.waited_s, 6) for r in b.waits.by_rank
    }


@pytest.mark.parametrize(
    ("code", "tell"),
    [(c, t) for c, k, t in STORIES if k == "trips"],
    ids=[f"{c}-{i}" for i, (c, k, _) in enumerate(STORIES) if k == "trips"],
)
def test_a_violation_stays_one_in_any_order(code, tell):
    told, _ = tell()
    one = analyze(told.source()).report
    two = analyze(told.source(shuffle=7)).report
    assert one.violations == two.violations


def test_codes_of_later_releases_do_not_decide(monkeypatch):
    known = {code: rule for code, rule in rules().items() if code != "T2"}
    monkeypatch.setattr(judge, "rules", lambda: known)
    report = analyze(kill_one_run().source()).report
    assert [c.code for c in report.checks if c.reason == NOT_IN_RELEASE] == ["T2"]
    assert report.verdict == "ok"
