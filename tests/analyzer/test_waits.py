"""Who waited, for whom, and who caused it."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer import analyze
from tests.story import MS, Story, Teller


def meet(s: Story, late: dict[int, float] | None = None, op: str = "all_reduce", comm: str = "c0", **columns: Any) -> list[dict[str, Any]]:  # fmt: skip
    """All ranks enter one collective, some of them late (in milliseconds), and leave together."""
    begin = s.now
    rows = []
    cseq = s.cseq.get(comm, 0)
    s.cseq[comm] = cseq + 1
    for one in s.ranks:
        s.now = begin + int((late or {}).get(one.rank, 0) * MS)
        rows.append(one.enter(comm, cseq, op, **columns))
    s.now = begin + int((max((late or {0: 0}).values()) + 1) * MS)
    s.step_ns = 0
    for one, row in zip(s.ranks, rows, strict=True):
        one.done(row)
    s.step_ns = 1
    return rows


def quick(ranks: int = 4, **kinds: Any) -> Story:
    s = Story(ranks=ranks, **kinds)
    s.step_ns = 1
    return s


def waits_of(s: Story, **source: Any) -> tuple[Any, list[dict[str, Any]]]:
    analysis = analyze(s.source(**source))
    return analysis.report.waits, analysis.results["waits"].to_pylist()


def test_a_straggler_is_named_and_waits_least():
    s = quick()
    for step in range(20):
        for one in s.ranks:
            one.step = step
        s.wait(10)
        meet(s, {2: 50})
    waits, rows = waits_of(s)
    assert waits.kind == "raw"
    assert waits.total_rank_s == pytest.approx(3.0, rel=1e-3)
    by_rank = {r.rank: r for r in waits.by_rank}
    assert by_rank[2].caused_s == pytest.approx(3.0, rel=1e-3)
    assert by_rank[2].last_s == pytest.approx(3.0, rel=1e-3)
    assert by_rank[2].waited_s == pytest.approx(0.0, abs=1e-4)
    assert (waits.chronic_straggler.rank, waits.chronic_straggler.share_of_steps) == (2, 1.0)
    assert {r["root_rank"] for r in rows if r["wait_ns"] > MS} == {2}
    assert {r["cause"] for r in rows if r["wait_ns"] > MS} == {"late rank"}
    assert {r["transfer_ns"] for r in rows} == {MS - 1}  # the clock ticks once when they leave


def test_nobody_is_chronic_when_it_takes_turns():
    s = quick()
    for step in range(12):
        for one in s.ranks:
            one.step = step
        meet(s, {step % 4: 20})
    waits, _ = waits_of(s)
    assert waits.chronic_straggler is None


def test_arrivals_that_are_close_share_the_blame():
    s = quick()
    meet(s)
    meet(s, {2: 30, 3: 30.05})
    waits, _ = waits_of(s)
    by_rank = {r.rank: r for r in waits.by_rank}
    assert by_rank[2].last_s == pytest.approx(by_rank[3].last_s, rel=0.01)
    assert by_rank[2].last_s == pytest.approx(0.03, rel=0.01)


def test_root_blame_goes_past_the_victim():
    # Rank 0 is late in the group {0, 1}; that makes rank 1 late in the group {1, 2}.
    s = quick(ranks=3)
    a, b, c = s.ranks
    s.all_reduce()
    first = b.enter("ab", 0)
    s.wait(40)
    other = a.enter("ab", 0)
    b.done(first)
    a.done(other)
    s.wait(1)
    waiting = c.enter("bc", 0)
    waiting["enter_ns"] = first["enter_ns"]
    late = b.enter("bc", 0)
    for one, row in ((b, late), (c, waiting)):
        one.done(row)
    waits, rows = waits_of(s)
    by_rank = {r.rank: r for r in waits.by_rank}
    victim = next(r for r in rows if r["comm_id"] == "bc" and r["rank"] == 2)
    assert victim["last_rank"] == 1
    assert victim["root_rank"] == 0
    assert by_rank[0].caused_s == pytest.approx(0.08, rel=0.05)
    assert by_rank.get(1) is None or by_rank[1].caused_s < 0.002


def test_a_rank_that_waits_in_two_buckets_at_once_waits_once():
    s = quick(ranks=2)
    a, b = s.ranks
    rows = [a.enter("c0", i, is_async=True) for i in range(3)]
    s.wait(30)
    rows += [b.enter("c0", i, is_async=True) for i in range(3)]
    for one, row in zip((a, a, a, b, b, b), rows, strict=True):
        one.done(row)
    waits, _ = waits_of(s)
    assert waits.total_rank_s == pytest.approx(0.03, rel=0.01)


@pytest.mark.parametrize(("op", "late", "expected"), [
    ("broadcast", {0: 20}, {1: 20, 2: 20}),  # everyone waits for the root
    ("broadcast", {1: 20}, {}),  # nobody waits for a receiver
    ("reduce", {1: 20}, {0: 20}),  # the root waits for the last
    ("reduce", {0: 20}, {}),  # nobody waits for the root
    ("barrier", {2: 20}, {0: 20, 1: 20}),
])  # fmt: skip
def test_waits_by_kind_of_operation(op, late, expected):
    s = quick(ranks=3)
    meet(s, late, op=op, root=0)
    _, rows = waits_of(s)
    got = {r["rank"]: r["wait_ns"] / MS for r in rows if r["wait_ns"] > MS}
    assert got == pytest.approx(expected, rel=0.01)


def test_device_start_counts_before_entry():
    s = quick(ranks=2)
    rows = meet(s)
    rows[0]["start_ns"] = rows[0]["enter_ns"]
    rows[1]["start_ns"] = rows[1]["enter_ns"] + MS // 2
    _, found = waits_of(s)
    assert {r["rank"]: r["wait_ns"] for r in found} == pytest.approx({0: MS // 2, 1: 0}, abs=10)


def test_an_operation_that_never_completed_counts_to_the_next_commit():
    s = quick(ranks=3, agents=1)
    a, b, c = s.ranks
    for one in s.ranks:
        one.join("c0", s.ranks)
    meet(s)
    rows = [a.enter("c0", 1), b.enter("c0", 1)]
    s.wait(25)
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    waits, found = waits_of(s)
    last = [r for r in found if r["cseq"] == 1]
    assert [r["cause"] for r in last] == ["dead rank", "dead rank"]
    assert [r["root_rank"] for r in last] == [2, 2]
    assert [r["is_open"] for r in last] == [False, False]
    assert last[0]["wait_ns"] == pytest.approx(25 * MS, rel=0.01)
    assert rows[0]["seq"] > 0
    assert next(r for r in waits.by_rank if r.rank == 2).caused_s == pytest.approx(0.05, rel=0.01)


def test_without_a_commit_it_is_open():
    s = quick(ranks=2)
    a, b = s.ranks
    for one in s.ranks:
        one.join("c0", s.ranks)
    a.enter("c0", 0)
    s.wait(10)
    a.row("health", signal="alive")
    b.row("steps", phase="begin")
    _, found = waits_of(s, clean=False)
    assert [(r["rank"], r["is_open"], r["cause"]) for r in found] == [(0, True, "absent rank")]
    assert found[0]["wait_ns"] == pytest.approx(10 * MS, rel=0.01)


@pytest.mark.filterwarnings("error")
def test_times_that_no_64_bits_hold_apart_are_no_fault_of_ours():
    """The doorway refuses them; a Parquet file may hold any number."""
    s = quick(2)
    for one in s.ranks:
        one.join("c0", s.ranks)
    s.ranks[0].enter("c0", 0)  # and the other never comes
    for number, (_, row) in enumerate(s.rows):
        row["wall_ns"] = (2**63 - 1) * (-1) ** number
    _, found = waits_of(s, clean=False)
    assert [(r["rank"], r["is_open"]) for r in found] == [(0, True)]


def test_wall_anchors_of_one_host_are_corrected_by_its_monotonic_clock():
    s = quick(ranks=2)
    s.ranks[1].skew_ns = 7 * MS
    meet(s, {1: 20})
    for _, row in s.rows:
        if row["rank"] == 1:
            row["mono_ns"] -= 7 * MS
    _, found = waits_of(s)
    assert next(r for r in found if r["rank"] == 0)["wait_ns"] == pytest.approx(20 * MS, rel=0.01)


def two_hosts(skew_ms: float) -> Story:
    s = Story(ranks=2, start=False)
    s.step_ns = 1
    s.ranks[1].host = "host-b"
    s.ranks[1].skew_ns = int(skew_ms * MS)
    for one in s.ranks:
        one.start()
    return s


def test_hosts_with_two_way_evidence_are_brought_to_one_scale():
    s = two_hosts(500)
    a, b = s.ranks
    for _ in range(3):
        sent = a.send(b)
        s.wait(0.2)
        b.recv(sent)
        sent = b.send(a)
        s.wait(0.2)
        a.recv(sent)
    meet(s, {1: 20})
    analysis = analyze(s.source())
    report = analysis.report
    assert report.waits.refused is None
    assert (report.clock.num_hosts, report.clock.connected) == (2, True)
    assert report.clock.max_error_ns < MS
    assert report.waits.total_rank_s == pytest.approx(0.02, rel=0.05)
    fit = {r["host"]: r for r in analysis.results["clock_fit"].to_pylist()}
    assert fit["host-b"]["offset_ns"] == pytest.approx(-500 * MS, abs=MS)


def test_hosts_on_one_machine_keep_their_clock():
    s = two_hosts(0)
    a, b = s.ranks
    sent = a.send(b)
    s.wait(0.1)
    b.recv(sent)
    sent = b.send(a)
    s.wait(3)
    a.recv(sent)
    fit = {r["host"]: r for r in analyze(s.source()).results["clock_fit"].to_pylist()}
    assert fit["host-b"]["offset_ns"] == 0
    assert fit["host-b"]["error_ns"] >= 3 * MS


def test_unconnected_hosts_are_refused_in_words():
    s = two_hosts(500)
    a, b = s.ranks
    b.recv(a.send(b))
    meet(s, {0: 20}, op="broadcast", root=0)
    report = analyze(s.source()).report
    assert not report.clock.connected
    assert "host-b" in report.waits.refused
    assert report.waits.total_rank_s == 0


def test_exposed_where_the_device_was_idle():
    s = quick(ranks=2)
    rows = meet(s, {1: 20})
    begin = rows[0]["enter_ns"]
    s.ranks[0].row("compute", start_ns=begin - MS, end_ns=begin + 5 * MS)
    s.ranks[1].row("compute", start_ns=begin - MS, end_ns=begin + 20 * MS)
    waits, found = waits_of(s)
    assert waits.kind == "exposed"
    assert waits.exposed_rank_s == pytest.approx(0.015, rel=0.01)
    assert waits.total_rank_s == pytest.approx(0.02, rel=0.01)
    assert {r["rank"]: round(r["exposed_ns"] / MS) for r in found} == {0: 15, 1: 0}


def test_blame_is_conserved_where_each_exit_is_known():
    s = quick(ranks=3)
    for step in range(5):
        for one in s.ranks:
            one.step = step
        s.wait(5)
        meet(s, {step % 3: 10 + step})
        meet(s, {(step + 1) % 3: 3})
    waits, _ = waits_of(s)
    assert sum(r.last_s for r in waits.by_rank) == pytest.approx(waits.total_rank_s, rel=1e-6)
    assert sum(r.caused_s for r in waits.by_rank) <= waits.total_rank_s * (1 + 1e-9)
    assert sum(r.waited_s for r in waits.by_rank) == pytest.approx(waits.total_rank_s, rel=1e-6)


def test_agents_and_other_incarnations_are_counted_apart():
    s = quick(ranks=2)
    meet(s, {1: 10})
    again = Teller(s, 1, incarnation=1)
    again.start()
    s.ranks[1] = again
    meet(s, {1: 10}, comm="c1")
    waits, _ = waits_of(s)
    assert next(r for r in waits.by_rank if r.rank == 1).caused_s == pytest.approx(0.02, rel=0.01)


def test_a_host_agent_lives_no_ranks_time():
    s = quick(ranks=2, agents=1)
    s.agents[0].health("alive")
    for _ in range(5):
        meet(s, {1: 30})
    without = waits_of(s)[0].share_pct
    s.now += 60_000 * MS
    s.agents[0].health("alive")
    assert waits_of(s)[0].share_pct == without > 0
