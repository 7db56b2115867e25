"""Deliveries that are broken on purpose: the referee names the row, and blames nobody else.

The planner (0) puts a plan and a word; who has the word and not the plan acts on the wrong one.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cascade_runtime.state.replica import Replica
from cascade_runtime.vocabulary.identity import Dot
from collector.trace.trace_folder import open_trace
from tests.state.recorded import Group, Naive, found


def test_in_order_nothing_is_found(tmp_path):
    group = Group(tmp_path, [Naive(), Naive(), Naive()])
    planner, one, two = group.processes
    first, second = planner.put("a"), planner.put("a")
    for worker in (one, two):
        worker.receive(first)
        worker.act("a")
        worker.receive(second)
        worker.act("a")
    report = group.report()
    assert report.violations == []
    # How updates travel between agents is not recorded as messages: no way is known (decision 0034).
    assert {c.code for c in report.checks if c.verdict == "unknown"} == {"A4"}


def test_reordered_by_one_author(tmp_path):
    group = Group(tmp_path, [Naive(), Naive()])
    planner, worker = group.processes
    first, second = planner.put("a"), planner.put("b")
    worker.receive(second)
    early = worker.recorder.seq - 1
    worker.receive(first)
    assert found(group.report()) == {("S3", 1, early)}


def test_reordered_between_authors(tmp_path):
    group = Group(tmp_path, [Naive(), Naive(), Naive()])
    planner, relay, worker = group.processes
    plan = planner.put("a")
    relay.receive(plan)
    word = relay.put("go")
    assert word.deps == [plan.dot]
    worker.receive(word)
    early = worker.recorder.seq - 1
    worker.receive(plan)
    assert found(group.report()) == {("C1", 2, early)}


def test_duplicated_after_a_newer_one(tmp_path):
    group = Group(tmp_path, [Naive(), Naive()])
    planner, worker = group.processes
    first, second = planner.put("a"), planner.put("a")
    worker.receive(first, second, first)
    stale = worker.act("a")
    assert found(group.report()) == {("T1", 1, stale)}


def test_dropped_and_another_one_applied(tmp_path):
    group = Group(tmp_path, [Naive(), Naive()])
    planner, worker = group.processes
    planner.put("a")
    word = planner.put("go")
    worker.receive(word)
    early = worker.recorder.seq - 1
    stale = worker.act("a")
    assert found(group.report()) == {("S3", 1, early), ("T1", 1, stale)}


def test_withheld_while_its_effect_is_let_through(tmp_path):
    group = Group(tmp_path, [Naive(), Naive(), Naive()])
    planner, relay, worker = group.processes
    first, second = planner.put("a"), planner.put("a")
    worker.receive(first)
    fine = worker.act("a")
    relay.receive(first, second)
    worker.receive(relay.put("go"))
    early = worker.recorder.seq - 1
    stale, looked = worker.act("a"), worker.read("a")
    worker.receive(second)
    right = worker.act("a")
    report = group.report()
    assert found(report) == {("C1", 2, early), ("T1", 2, stale), ("C2", 2, looked)}
    assert not {fine, right} & {v.seq for v in report.violations}
    (act,) = [v for v in report.violations if v.code == "T1"]
    assert (
        "rank 2 acted on plan/a at update 0:1" in act.sentence
        and "0:2 (version 2) happened before" in act.sentence
    )


def test_a_plan_kept_in_hand_after_a_newer_one_was_read(tmp_path):
    group = Group(tmp_path, [Replica(causal=True), Replica(causal=True)])
    planner, worker = group.processes
    first, second = planner.put("a"), planner.put("a")
    worker.receive(first, second)
    worker.rows.read("plan", "a", "plan", "act", first)
    assert found(group.report()) == {("T1", 1, worker.recorder.seq - 1)}


def test_who_has_not_heard_of_the_newer_one_is_not_blamed(tmp_path):
    group = Group(tmp_path, [Naive(), Naive()])
    planner, worker = group.processes
    first = planner.put("a")
    worker.receive(first)
    planner.put("a")
    worker.act("a")
    assert group.report().violations == []


schedules = st.lists(
    st.tuples(
        st.sampled_from(["put", "deliver", "deliver", "deliver", "repeat", "act", "read"]),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    min_size=10,
    max_size=80,
)


def play(group: Group, schedule: list[tuple[str, int, int]]) -> None:
    on_the_way = []
    for move, one, other in schedule:
        who = group.processes[one % len(group.processes)]
        if move == "put":
            update = who.put("ab"[other % 2])
            on_the_way += [(p, update) for p in group.processes if p is not who]
        elif move in ("act", "read"):
            who.read("ab"[other % 2], {"act": "act", "read": "observe"}[move])
        elif on_the_way:
            at = other % len(on_the_way)
            receiver, update = on_the_way[at]
            receiver.receive(update)
            if move == "deliver":
                del on_the_way[at]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(schedule=schedules)
def test_causal_replicas_break_no_promise_whatever_the_network_does(tmp_path_factory, schedule):
    """Several writers a key, duplicates, any order, losses: the referee finds nothing."""
    group = Group(tmp_path_factory.mktemp("t"), [Replica(causal=True) for _ in range(3)])
    play(group, schedule)
    report = group.report()
    assert [(v.code, v.sentence) for v in report.violations] == []


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(schedule=schedules)
def test_what_is_applied_before_its_cause_is_found_and_nothing_else(tmp_path_factory, schedule):
    """Replicas that apply what comes: S3 and C1 name exactly the rows that came too early."""
    folder = tmp_path_factory.mktemp("t")
    group = Group(folder, [Replica(causal=False) for _ in range(3)])
    play(group, schedule)
    report = group.report()
    early = {"S3": set(), "C1": set()}
    for process in group.processes:
        for code, seq in too_early(folder, process.actor.rank):
            early[code].add((process.actor.rank, seq))
    for code, rows in early.items():
        assert {(v.rank, v.seq) for v in report.violations if v.code == code} == rows


def too_early(folder, rank: int) -> list[tuple[str, int]]:
    """By the rows alone: (rule, seq) of what one process applied before what it needed."""
    with open_trace(folder) as source:
        rows = sorted(source.table("updates").to_pylist(), key=lambda r: r["seq"])
    held: set[Dot] = set()
    found = []
    for row in (r for r in rows if r["rank"] == rank):
        dot = Dot(row["origin_rank"], row["origin_incarnation"], row["counter"])
        if row["action"] == "applied":
            if dot.counter > 1 and Dot(dot.rank, 0, dot.counter - 1) not in held:
                found.append(("S3", row["seq"]))
            if any(Dot(d["rank"], d["incarnation"], d["counter"]) not in held for d in row["deps"]):
                found.append(("C1", row["seq"]))
        held.add(dot)
    return found
