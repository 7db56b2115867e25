"""An agent's watch over real rings and words of its ranks: what it tells, records and hands on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.judge import Judge
from cascade_runtime.agent.local_rank import LocalRank, account_of
from cascade_runtime.agent.protocol import Trigger, Waits, pack_frame, unpack_frame
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.agent.watch import ROW_S, Watch
from cascade_runtime.detectors._steps import StepBook
from cascade_runtime.progress import BACKWARD, WAITING, ProgressWord
from cascade_runtime.step_ring import StepRing, StepTimes
from cascade_runtime.vocabulary.events import Decisions, Health
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import actors, view
from tests.runtime.test_judge import Rows

POLICY = load_policy()
PERIOD_S = 1 / 8
MS = 1_000_000


class Job:
    """Four ranks on two hosts, told step by step how they do; each agent looks after each step."""

    def __init__(
        self, folder: Any, hosts: int = 2, offsets: tuple[int, ...] = (0, 0, 0, 0)
    ) -> None:
        self.config = JobConfig(
            run_id="run",
            name="job",
            num_ranks=4,
            num_hosts=hosts,
            mode="enforce",
            policy="default",
            trace_dir=str(folder),
            run_dir=str(folder),
            host="here",
            command=[],
            master_port=1,
        )
        self.offsets = offsets
        self.rings = [StepRing(self.config.steps_path(Actor(r))) for r in range(4)]
        self.words = [ProgressWord(self.config.progress_path(Actor(r))) for r in range(4)]
        self.rows = [Rows() for _ in range(hosts)]
        self.watches = []
        for host in range(hosts):
            rows = AgentRows(self.rows[host])  # type: ignore[arg-type]
            judge = Judge(POLICY, rows, Reconciler())
            self.watches.append((Watch(self.config, host, judge, rows), judge))
        self.now_s, self.step, self.epoch = 0.0, 0, 0
        self.leader = 0
        self.handed: list[tuple[int, Trigger]] = []
        self.observe = False
        self.not_level: dict[int, list[Actor]] = {}
        """Newcomers that are not level yet, by host."""
        self.silent: set[int] = set()
        """Hosts whose agents say nothing."""

    def install(self, *ranks: int, regime: Regime = Regime.STRONG, **fields: Any) -> None:
        new = view(*ranks, regime=regime, epoch=self.epoch, **fields)
        for watch, judge in self.watches:
            watch.install(new, self.now_s)
            judge.install(new, [new], self.now_s)

    def steps(
        self, number: int, late: dict[int, int] | None = None, transfer: int = 2 * MS
    ) -> None:
        """Steps in which some ranks are late (ns, by rank)."""
        late = late or {}
        longest = max(late.values(), default=0)
        for _ in range(number):
            self.step += 1
            self.now_s += PERIOD_S + longest / 1e9
            now = int(self.now_s * 1e9)
            for rank, ring in enumerate(self.rings):
                done = now + self.offsets[rank]
                ring.entered_ns = done - transfer - longest + late.get(rank, 0)
                ring.end(self.step, self.epoch, done, 77)
            self.look()

    def look(self) -> None:
        told = [
            watch.waits(self.now_s, self.not_level.get(host, []))
            for host, (watch, _) in enumerate(self.watches)
        ]
        for watch, _ in self.watches:
            for host, waits in enumerate(told):
                if host in self.silent:
                    continue
                sent = unpack_frame(pack_frame(waits)[4:]).body
                assert isinstance(sent, Waits)
                watch.on_waits(Actor(4 + host), sent, self.now_s)
        for host, (watch, judge) in enumerate(self.watches):
            found = watch.decide(self.now_s, host == self.leader, self.observe)
            assert host == self.leader or not found
            for trigger in found:
                assert isinstance(trigger, Trigger)
                self.handed.append((self.step, trigger))
                for _, other in self.watches:
                    other.add(trigger)
            del judge

    def fired(self, host: int = 0) -> list[dict[str, Any]]:
        return [r for r in self.rows[host].of(Health) if r["fault"] is not None]


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path)
    made.install(0, 1, 2, 3)
    return made


def test_silent_while_all_is_well_and_what_is_measured_is_recorded_once_a_second(job):
    job.steps(300)
    assert job.handed == [] and job.fired() == []
    measured = job.rows[0].of(Health)
    assert {(r["detector"], r["signal"]) for r in measured} == {
        ("link_delay", "transfer"),
        ("rank_skew", "late"),
    }
    assert len(measured) == pytest.approx(2 * 300 * PERIOD_S / ROW_S, abs=6)
    assert job.rows[1].of(Health) == [], "only the leading agent speaks"


def test_a_late_rank_is_handed_on_once_with_its_row_and_stands_until_it_is_in_time(job):
    job.steps(20)
    job.steps(200, late={2: 50 * MS})
    ((_, trigger),) = job.handed
    assert (trigger.fault, trigger.subject) == (FaultEvent.RANK_SKEW_HIGH, Actor(2))
    (row,) = job.fired()
    assert (row["detector"], row["subject_rank"], row["unit"]) == ("rank_skew", 2, "ms")
    assert row["value"] == pytest.approx(50, abs=0.1)
    assert job.rows[0].rows[trigger.evidence[0].seq][1] is row
    for _, judge in job.watches:
        assert [t.subject for t in judge.standing] == [Actor(2)]
    job.steps(25)
    assert [judge.standing for _, judge in job.watches] == [[], []]
    assert len(job.handed) == 1


@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_the_clocks_of_hosts_may_differ_by_anything(tmp_path, hosts):
    found = []
    for number, offsets in enumerate([(0, 0, 0, 0), (10**15, 3, 7 * 10**17, 10**9)]):
        (tmp_path / str(number)).mkdir()
        job = Job(tmp_path / str(number), hosts, offsets)
        job.install(0, 1, 2, 3)
        job.steps(30)
        job.steps(60, late={1: 60 * MS})
        found.append([(step, t.reason) for step, t in job.handed])
    assert found[0] == found[1] and len(found[0]) == 1


def test_a_slow_link_is_no_late_rank(job):
    job.steps(40)
    job.steps(60, transfer=80 * MS)
    ((_, trigger),) = job.handed
    assert (trigger.fault, trigger.subject) == (FaultEvent.LINK_DELAY_HIGH, None)


def test_an_agent_that_takes_over_says_what_stands_and_walks_on_nothing_again(job):
    job.steps(20)
    job.steps(60, late={2: 50 * MS})
    job.leader = 1
    job.steps(60, late={2: 50 * MS})
    assert len(job.handed) == 1
    (row,) = job.fired(1)
    assert row["subject_rank"] == 2
    evidence = [t.evidence[0].seq for t in job.watches[1][1].standing]
    assert [job.rows[1].rows[seq][1] for seq in evidence] == [row]


def test_observe_hands_nothing_on_and_says_what_would_be(job):
    job.observe = True
    job.steps(20)
    job.steps(60, late={2: 50 * MS})
    assert job.handed == []
    (decision,) = job.rows[0].of(Decisions)
    assert (decision["to_regime"], decision["changed"]) == (Regime.CAUSAL, True)


def test_a_member_that_went_takes_what_stood_of_it_along(job):
    job.steps(20)
    job.steps(60, late={2: 50 * MS})
    job.epoch = 1
    job.install(0, 1, 3, departed=actors(2), member_reason="failed")
    job.steps(30)
    assert [judge.standing for _, judge in job.watches] == [[], []]


def test_two_losses_within_a_minute_are_churn_and_the_end_of_the_job_is_none(job):
    job.steps(5)
    for epoch, gone, left in ((1, 3, (0, 1, 2)), (2, 2, (0, 1))):
        job.epoch = epoch
        job.install(*left, departed=actors(gone), member_reason="failed")
        job.steps(1)
    assert [t.fault for _, t in job.handed] == [FaultEvent.NODE_CHURN_HIGH]
    job.epoch = 3
    job.install(departed=actors(0, 1), member_reason="finished")
    assert len(job.fired()) == 1


def churns(job):
    """Whether each agent takes it for churn."""
    return [
        any(t.fault is FaultEvent.NODE_CHURN_HIGH for t in judge.standing)
        for _, judge in job.watches
    ]


QUIET_STEPS = int(POLICY.node_churn.quiet_s / PERIOD_S)


def test_a_newcomer_is_churn_on_all_agents_until_it_is_level_and_then_for_a_quiet_time(job):
    job.steps(5)
    job.not_level = {1: [Actor(5)]}
    job.steps(1)
    ((_, trigger),) = job.handed
    assert trigger.fault is FaultEvent.NODE_CHURN_HIGH
    assert trigger.reason.endswith("rank 5 is not level yet")
    (row,) = job.fired()
    assert (row["value"], row["threshold"]) == (1.0, 0.0)
    job.steps(2 * QUIET_STEPS)
    assert churns(job) == [True, True], "for as long as it takes"
    job.not_level = {}
    job.steps(QUIET_STEPS - 1)
    assert churns(job) == [True, True]
    job.steps(2)
    assert churns(job) == [False, False]
    assert len(job.handed) == 1


def test_a_newcomer_that_is_let_in_is_no_newcomer_any_more(job):
    job.steps(5)
    job.not_level = {0: [Actor(5)]}
    job.steps(1)
    job.epoch, job.not_level = 1, {}
    job.install(0, 1, 2, 3, 5, joined=actors(5), member_reason="joined")
    job.steps(QUIET_STEPS + 2)
    assert churns(job) == [False, False]
    assert len(job.handed) == 1, "coming and joining are one churn"


def test_newcomers_of_a_host_that_is_silent_for_long_hold_nobody_in_causal(job):
    job.steps(5)
    job.not_level = {1: [Actor(5)]}
    job.steps(1)
    job.silent = {1}
    job.steps(int(POLICY.dead.silent_s / PERIOD_S))
    assert churns(job) == [True, True]
    job.steps(QUIET_STEPS + 3)
    assert churns(job) == [False, False]


def test_an_agent_that_takes_over_knows_of_newcomers(job):
    job.not_level = {0: [Actor(5)]}
    job.steps(5)
    job.leader = 1
    job.steps(5)
    assert [r["fault"] for r in job.fired(1)] == [FaultEvent.NODE_CHURN_HIGH]
    assert len(job.handed) == 1


def test_a_rank_that_stands_still_is_named_and_handed_to_nobody(job):
    job.steps(20)
    now = int(job.now_s * 1e9)
    for rank, word in enumerate(job.words):
        word.write(20, 20, BACKWARD if rank == 2 else WAITING)
        with job.config.progress_path(Actor(rank)).open("r+b") as file:
            file.seek(16)  # the word's own stamp
            file.write(now.to_bytes(8, "little"))
    job.now_s += 0.55
    job.look()
    named = [r for r in job.rows[0].of(Health) if r["detector"] == "slow"]
    assert [(r["subject_rank"], r["fault"]) for r in named] == [(2, None)]
    assert [t.fault for _, t in job.handed] == [FaultEvent.RANK_SKEW_HIGH]  # a stall, no fail-stop


def test_a_differing_digest_is_said_and_the_job_goes_on(job):
    job.steps(3)
    job.step += 1
    for rank, ring in enumerate(job.rings):
        ring.entered_ns = int(job.now_s * 1e9) + MS
        ring.end(job.step, 0, int(job.now_s * 1e9) + 2 * MS, 77 if rank != 1 else 78)
    job.look()
    assert job.handed == []
    (row,) = job.fired()
    assert (row["fault"], row["subject_rank"]) == (FaultEvent.STATE_CORRUPTION, 1)
    assert [d["changed"] for d in job.rows[0].of(Decisions)] == [False]


@given(
    st.integers(0, 2**62),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=2, max_size=30),
)
def test_accounts_hold_only_differences_of_one_clock(offset, gaps):
    def accounts(start):
        found, before, at = [], None, start
        for step, (way, wait) in enumerate(gaps):
            times = StepTimes(step, 1, at + way, at + way + wait, 0)
            found.append(account_of(Actor(0), before, times))
            before, at = times, times.done_ns
        return found

    told = accounts(0)
    assert told == accounts(offset)
    assert told[0] is None
    for account, (way, wait) in list(zip(told, gaps, strict=True))[1:]:
        assert account is not None
        assert (account.wait_s, account.period_s) == (wait / 1e9, (way + wait) / 1e9)


@pytest.mark.parametrize(
    "times",
    [
        StepTimes(6, 1, 110, 120, 0),  # a step is missing
        StepTimes(5, 2, 110, 120, 0),  # another epoch: a walk came in between
        StepTimes(5, 1, 130, 120, 0),  # words that cannot be
        StepTimes(5, 1, 90, 120, 0),
    ],
)
def test_a_step_that_something_came_into_has_no_account(times):
    assert account_of(Actor(0), StepTimes(4, 1, 50, 100, 0), times) is None


def test_a_rank_that_never_got_so_far_has_no_place(job, tmp_path):
    assert LocalRank(job.config, Actor(9)).place(1.0) is None
    assert LocalRank(job.config, Actor(9)).steps() == []
    book = StepBook()
    assert book.take() == []


def test_a_rank_by_itself_is_no_late_rank_and_is_named_when_it_keeps_the_pace(job):
    cohorts = [actors(0, 1, 3), actors(2)]
    job.install(0, 1, 2, 3, regime=Regime.CAUSAL, cohorts=cohorts)
    job.steps(40, late={2: 300 * MS})
    assert [t for _, t in job.handed if t.fault is FaultEvent.RANK_SKEW_HIGH] == []
    before = len(job.handed)
    job.steps(60, late={2: 0})
    told = [t for _, t in job.handed[before:]]
    assert [(t.fault, t.subject) for t in told] == [(None, Actor(2))]
    assert told[0].evidence, "the row that says so"
    job.epoch = 1
    job.install(0, 1, 2, 3, regime=Regime.CAUSAL)
    for _, judge in job.watches:
        judge.add(told[0])
        assert judge.triggers == [], "it steps with the others already"


def test_what_stood_of_a_straggler_ends_where_it_is_set_apart(job):
    job.install(0, 1, 2, 3)
    job.steps(40, late={2: 300 * MS})
    assert any(t.subject == Actor(2) for _, judge in job.watches for t in judge.standing)
    job.epoch = 1
    job.install(0, 1, 2, 3, regime=Regime.CAUSAL, cohorts=[actors(0, 1, 3), actors(2)])
    job.look()
    assert not any(judge.standing for _, judge in job.watches)
