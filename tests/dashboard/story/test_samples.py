"""The story of the packaged samples, against the analyzer's own answers."""

from __future__ import annotations

import pytest

from analyzer import analyze
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from dashboard.story.model import REGIME_CODES
from dashboard.story.teller import Teller
from dashboard.story.trace_source import TraceRun
from dashboard.story.words import duration, moment
from dashboard.tiles.run_tiles import tiles_of
from tests.collector.traces import everything_under
from tests.dashboard.story.kit import DEADLINE_S, check

SAMPLES = ("clean", "kill-one")


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request):
    """(teller before it was judged, its first story, the source's analysis)."""
    before = everything_under(sample_traces()[request.param])
    run = TraceRun(request.param)
    run.report = lambda: None  # the answer of a run that is being judged
    first = Teller(run).story()
    del run.report
    assert run.wait_until_judged(DEADLINE_S)
    assert tiles_of(run).wait(DEADLINE_S)  # windows are summed from them
    with open_trace(sample_traces()[request.param]) as source:
        analysis = analyze(source)
    yield request.param, first, Teller(run), analysis
    run.close()
    assert everything_under(sample_traces()[request.param]) == before


def spans(story):
    regimes = story.regimes
    return sorted(zip(*(getattr(regimes, n) for n in regimes.__struct_fields__), strict=True))


def test_regimes_are_the_analyzers_before_and_after_judging(sample):
    _, first, teller, analysis = sample
    story = teller.story().story
    t0 = int(story.t0_ns)
    agents = {(a.rank, a.incarnation) for a in story.actors if a.kind == "agent"}
    want = sorted(
        (
            row["rank"], row["incarnation"], row["group_id"], row["epoch"],
            REGIME_CODES[row["regime"]], row["start_ns"] - t0, row["end_ns"] - t0,
        )
        for row in analysis.results["regime_intervals"].to_pylist()
        if (row["rank"], row["incarnation"]) not in agents
    )  # fmt: skip
    assert want
    assert spans(first.story) == want
    assert spans(story) == want


def test_walks_debts_and_waits_are_the_analyzers(sample):
    _, first, teller, analysis = sample
    story, report = teller.story().story, analysis.report
    check(story)
    check(first.story)
    t0 = int(story.t0_ns)
    want = [
        (w.group_id, w.new_epoch, w.wall_ns - t0, w.from_regime, w.to_regime, w.fault, w.members, w.missing)
        for w in report.transitions
    ]  # fmt: skip
    got = [
        (w.group, w.epoch, w.at_ns, w.from_regime, w.to_regime, w.fault, w.members, w.missing)
        for w in story.walks
    ]
    assert sorted(got) == sorted(want)
    assert len(story.debts) == report.debt.opened
    assert sum(d.fate is not None for d in story.debts) == report.debt.settled
    assert story.waits.total_rank_s == report.waits.total_rank_s
    assert first.story.waits.source == "provisional"
    # Blame is told once it is found, and is not called as the lanes' figure is, which is another.
    assert all(row.keys() == {"rank", "waited_s", "last_s"} for row in first.story.waits.by_rank)
    blamed = {row.rank: row.caused_s for row in report.waits.by_rank}
    assert {row["rank"]: row["blamed_s"] for row in story.waits.by_rank} == blamed
    assert not any("caused_s" in row for row in story.waits.by_rank)
    assert first.story.verdict.state == "judging"
    assert story.run.state == "ended" and story.missing == [] and story.ranks == [0, 1, 2, 3]


def test_pairs_add_up_to_the_waits_that_have_a_cause(sample):
    _, _, teller, analysis = sample
    waits = analysis.results["waits"].to_pylist()
    total = sum(w["wait_ns"] for w in waits if w["root_rank"] is not None) / 1e9
    pairs = teller.story().story.waits.pairs
    assert sum(p["wait_s"] for p in pairs) == pytest.approx(total)
    assert [p["wait_s"] for p in pairs] == sorted((p["wait_s"] for p in pairs), reverse=True)


def test_what_is_said(sample):
    name, _, teller, _ = sample
    story = teller.story().story
    assert story.verdict.state == "ok"
    excursions = [i for i in story.incidents if i.kind == "excursion"]
    if name == "clean":
        assert story.verdict.sentence == (
            f"No promise was broken. Four ranks stayed in STRONG for all of {duration(story.t1_ns)}."
        )
        assert excursions == []
        return
    (one,) = excursions
    out, back = story.walks[:2]
    at, span = moment(one.at_ns), duration(back.at_ns - out.at_ns)
    assert story.verdict.sentence == (
        f"No promise was broken. One rank died at {at}; the others went on in CAUSAL for {span}, "
        "settled 1 debt, wrote off 1 and are back in STRONG."
    )
    assert one.sentence == (
        f"Rank 2 died (SIGKILL) at {at} (GPU_FAIL_STOP): the others went from STRONG to CAUSAL, "
        "opened 2 debts "
        f"(1 settled and 1 written off) and were back in STRONG after {span}."
    )
    assert one.sel == "walk:world:1"
    (dead,) = [a for a in story.actors if a.end == "failed"]
    assert dead.rank == 2
    assert {m.kind for m in story.marks} == {"transition", "departure", "health"}


def test_state_at_every_walk(sample):
    name, _, teller, _ = sample
    story = teller.story().story
    early = teller.state(-1)
    assert {r["state"] for r in early["ranks"]} == {"not_yet"}
    assert {r["regime"] for r in early["ranks"]} == {None}
    end = teller.state(story.t1_ns)
    assert end["last_walk"] == len(story.walks) - 1
    if name == "clean":
        return
    died = next(a.last_ns for a in story.actors if a.rank == 2)
    at = teller.state((story.walks[0].at_ns + story.walks[1].at_ns) // 2)
    ranks = {r["rank"]: r for r in at["ranks"]}
    assert ranks[2]["state"] == "gone" and ranks[2]["end"] == "failed"
    assert [ranks[r]["regime"] for r in (0, 1, 3)] == ["CAUSAL"] * 3
    assert at["groups"][0]["members"] == [0, 1, 3] and at["groups"][0]["missing"] == [2]
    assert at["last_walk"] == 0
    before = {r["rank"]: r for r in teller.state(died)["ranks"]}
    assert before[2]["state"] == "present" and before[2]["regime"] == "STRONG"


def test_state_is_what_the_rows_say(sample):
    _, _, teller, _ = sample
    told = teller.story()
    source, t0 = told.facts.source, int(told.story.t0_ns)
    tables = told.facts.rows.counts
    for share in (0.1, 0.33, 0.5, 0.77, 0.99):
        t = int(told.story.t1_ns * share)
        state = {r["rank"]: r for r in teller.state(t)["ranks"]}
        rows = [
            row
            for table in tables
            for row in source.query(
                f"SELECT rank, seq, step FROM {table} WHERE wall_ns <= {t0 + t}"
            ).to_pylist()
        ]
        for rank in told.story.ranks:
            mine = [row for row in rows if row["rank"] == rank]
            assert state[rank]["seq"] == max((r["seq"] for r in mine), default=None)
            steps = [r["step"] for r in mine if r["step"] is not None]
            assert state[rank]["step"] == max(steps, default=None)
        updates = source.query(
            "SELECT rank, action, origin_rank, counter FROM updates WHERE action <> 'discarded' "
            f"AND wall_ns <= {t0 + t}"
        ).to_pylist()
        reads = source.query(
            f"SELECT rank, origin_rank, counter FROM reads WHERE wall_ns <= {t0 + t}"
        ).to_pylist()
        for rank in told.story.ranks:
            known: dict[int, int] = {}
            for row in (*updates, *reads):
                if row["rank"] == rank and row["counter"] is not None:
                    author = row["origin_rank"]
                    known[author] = max(known.get(author, 0), row["counter"])
            assert state[rank]["clock"] == [[a, 0, known[a]] for a in sorted(known)]


def test_window_shares(sample):
    _, _, teller, analysis = sample
    story = teller.story().story
    whole = teller.window(0, story.t1_ns + 1)
    assert sum(whole["regime_share"].values()) == pytest.approx(1.0)
    want = {s.regime: s.share_pct / 100 for s in analysis.report.regimes}
    for regime, share in whole["regime_share"].items():
        assert share == pytest.approx(want[regime], abs=1e-4)
    waited = sum(r["waited_s"] for r in whole["by_rank"])
    assert waited == pytest.approx(analysis.report.waits.total_rank_s, rel=1e-6)
    halves = [teller.window(0, story.t1_ns // 2), teller.window(story.t1_ns // 2, story.t1_ns + 1)]
    assert sum(r["waited_s"] for w in halves for r in w["by_rank"]) == pytest.approx(waited)
