"""The article's case, recorded: a rank joins mid-task, and what happens without the downgrade or the debt."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import pytest

from benchmarks.join_mid_task import ratio_of
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace

OTHERS, NEW = (0, 1, 2, 3), 5
COLD_STEPS, COLD_MS = 12, 400.0
LIMIT = 1.10
"""What the others' median step may be of what it was before somebody came."""

Rows = dict[str, list[dict[str, Any]]]


def rows_of(name: str) -> Rows:
    with open_trace(sample_traces()[name]) as source:
        return {t: source.table(t).to_pylist() for t in ("steps", "transitions", "debt", "groups")}


def walks(rows: Rows) -> list[dict[str, Any]]:
    """As rank 0 committed them."""
    found = [w for w in rows["transitions"] if w["phase"] == "committed" and w["rank"] == 0]
    return sorted(found, key=lambda w: w["new_epoch"])


def cohorts(walk: dict[str, Any]) -> list[list[int]]:
    return sorted([a["rank"] for a in cohort] for cohort in walk["cohorts"])


def steps_ms(rows: Rows, rank: int, begin_ns: float, end_ns: float) -> list[float]:
    ends = sorted(
        s["mono_ns"]
        for s in rows["steps"]
        if s["rank"] == rank and s["phase"] == "end" and begin_ns <= s["mono_ns"] <= end_ns
    )
    return [(b - a) / 1e6 for a, b in itertools.pairwise(ends)]


def test_the_newcomer_is_a_cohort_of_its_own_until_it_is_level() -> None:
    rows = rows_of("join-mid-task")
    fell, came, met, climbed, _ = walks(rows)
    assert (fell["to_regime"], fell["fault"]) == ("CAUSAL", "NODE_CHURN_HIGH")
    assert cohorts(fell) == cohorts(came) == [[*OTHERS], [NEW]]
    assert [len(w["members"]) for w in (fell, came, met)] == [4, 5, 5]
    assert cohorts(met) == cohorts(climbed) == [[*OTHERS, NEW]]
    assert (climbed["to_regime"], climbed["fault"]) == ("STRONG", "STABLE_SYNC")
    opened, settled = rows["debt"]
    assert opened["mono_ns"] < came["mono_ns"] < met["mono_ns"] < settled["mono_ns"]
    assert settled["mono_ns"] < climbed["mono_ns"]
    first = min(g["mono_ns"] for g in rows["groups"] if g["label"] == "cohort/1/1")
    assert fell["mono_ns"] - 50e6 < first < came["mono_ns"]


@pytest.mark.parametrize("rank", OTHERS)
def test_the_others_step_as_before(rank: int) -> None:
    rows = rows_of("join-mid-task")
    fell, _, met, *_ = walks(rows)
    before = statistics.median(steps_ms(rows, rank, 0, fell["mono_ns"])[5:])
    during = steps_ms(rows, rank, fell["mono_ns"], met["mono_ns"])
    assert len(during) > 4 * COLD_STEPS
    assert statistics.median(during) <= LIMIT * before
    slow = steps_ms(rows, NEW, fell["mono_ns"], met["mono_ns"])[: COLD_STEPS - 1]
    assert min(slow) >= COLD_MS


def test_the_benchmark_finds_both() -> None:
    spared = ratio_of(rows_of("join-mid-task"), COLD_STEPS)
    stalled = ratio_of(rows_of("join-no-downgrade"), COLD_STEPS)
    assert spared.median <= LIMIT and spared.mean <= LIMIT
    assert stalled.median > 3


def test_without_the_downgrade_everybody_waits(ask) -> None:
    answer = ask("analyze", "join-no-downgrade", "--json")
    assert answer.json["verdict"] == "ok", "slow is not wrong"
    assert {r["regime"] for r in answer.json["regimes"]} == {"STRONG"}
    rows = rows_of("join-no-downgrade")
    came, _ = walks(rows)
    for rank in OTHERS:
        stalled = [ms for ms in steps_ms(rows, rank, came["mono_ns"], 1e30) if ms >= COLD_MS]
        assert len(stalled) >= COLD_STEPS - 1
    blamed = {told["rank"]: told["caused_s"] for told in answer.json["waits"]["by_rank"]}
    stall_s = len(OTHERS) * COLD_STEPS * COLD_MS / 1000
    assert blamed[NEW] >= 0.9 * stall_s
    with_it = ask("analyze", "join-mid-task", "--json").json["waits"]["by_rank"]
    assert next(told["caused_s"] for told in with_it if told["rank"] == NEW) < 0.1 * stall_s


def test_without_the_debt_the_climb_is_a_lie_that_is_found(ask) -> None:
    answer = ask("analyze", "join-no-debt", "--json")
    rows = rows_of("join-no-debt")
    (climb,) = [
        w
        for w in rows["transitions"]
        if w["phase"] == "committed"
        and w["to_regime"] == "STRONG" != w["from_regime"]
        and w["rank"] == w["proposer"]["rank"]
    ]
    (opened,) = rows["debt"]
    assert opened["mono_ns"] < climb["mono_ns"]
    # The climb over it, and that nobody closed it.
    places = [("L3", climb), ("R3", opened)]
    assert answer.broken == [(c, r["rank"], r["incarnation"], r["seq"]) for c, r in places]
    climbed = next(v for v in answer.json["violations"] if v["code"] == "L3")
    assert f"while debt {opened['debt_id']} stood open" in climbed["sentence"]
    assert {(w["rank"], w["seq"]) for w in climbed["witness"] if "seq" in w} >= {
        (opened["rank"], opened["seq"]),
        (climb["rank"], climb["seq"]),
    }
    assert (answer.code, answer.codes("violated")) == (1, {"L3", "R3"})
    assert "VIOLATED" in ask("analyze", "join-no-debt").words
