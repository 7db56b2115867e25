"""Walks between regimes."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, commit_of, fallen, proposal_of, story
from tests.story import Story


@story("L1", "trips")
def _() -> Told:
    s = Story(ranks=3, agents=1)
    s.walk("CAUSAL", "STABLE_SYNC")
    s.settle_all()
    return s, [commit_of(s, 1, 3)]


@story("L1", "almost")
def _() -> Told:
    s = Story(ranks=3, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH")
    s.walk("EVENTUAL", "NO_MAJORITY")  # in no row of the seed policy, legal in all
    s.settle_all()
    return s, []


@story("L1", "almost")
def operator_down() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("CAUSAL", "OPERATOR")
    s.settle_all()
    return s, []


@story("L1", "trips")
def operator_up() -> Told:
    s = fallen()
    s.settle_all()
    s.walk("STRONG", "OPERATOR")
    return s, [commit_of(s, 2, 3)]


@story("L1", "unknown")
def _() -> Told:
    s = fallen()
    s.settle_all()
    return s.source(policy=None), []


@story("L2", "trips")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("EVENTUAL", "STATE_CORRUPTION")
    s.settle_all()
    s.walk("STRONG", "OPERATOR")
    # L1 stands beside it: no policy has this move.
    return s, [commit_of(s, 2, 2)]


@story("L2", "almost")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("EVENTUAL", "STATE_CORRUPTION")
    s.settle_all()
    s.walk("CAUSAL", "RECOVERY_DETECTED")
    return s, []


@story("L3", "trips")
def _() -> Told:
    s = fallen()
    s.ranks[0].tell(*s.agents)  # the debt happens-before the climb
    s.walk("STRONG", "STABLE_SYNC")
    s.settle_all()
    return s, [commit_of(s, 2, 3)]


@story("L3", "almost")
def _() -> Told:
    s = fallen()
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC")
    return s, []


@story("L3", "almost")
def opened_concurrently() -> Told:
    # Opened by a rank after its last word to the agent: no order to the climb, no accusation.
    s = Story(ranks=2, agents=1, regime="CAUSAL")
    s.walk("STRONG", "STABLE_SYNC")
    s.ranks[0].open_debt("late", new_epoch=0)
    s.settle_all()
    return s, []


@story("L3", "unknown")
def _() -> Told:
    s = fallen()
    s.ranks[0].tell(*s.agents)
    s.ranks[0].gap(*s.ranks[0].lose(2), tables=["debt"])
    s.walk("STRONG", "STABLE_SYNC")
    s.settle_all()
    return s, []


@story("L4", "trips")
def _() -> Told:
    s = fallen()
    s.settle_all()
    s.ranks[1].regime = "STRONG"
    rows = s.all_reduce()
    return s, [rows[1]]


@story("L4", "trips")
def no_committed_row() -> Told:
    s = Story(ranks=3)
    s.ranks[1].regime = "CAUSAL"
    return s, s.all_reduce()


@story("L4", "trips")
def cohorts_under_strong() -> Told:
    s = fallen()
    s.settle_all()
    a, b, c = s.ranks
    s.walk("STRONG", "STABLE_SYNC", cohorts=[[a, b], [c]])
    return s, [commit_of(s, 2, rank) for rank in range(4)]


@story("L4", "trips")
def differing_commits() -> Told:
    s = fallen()
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC")
    odd = commit_of(s, 2, 1)
    odd["to_regime"] = "CAUSAL"
    s.ranks[1].regime = "STRONG"
    return s, [commit_of(s, 2, rank) for rank in range(4)]


@story("L4", "almost")
def partition() -> Told:
    # Two sides of a partition commit the same epoch; the small one fell by NO_MAJORITY.
    s = Story(ranks=3, agents=2)
    a, b, c = s.ranks
    s.agents, alone = s.agents[:1], s.agents[1]
    s.walk("CAUSAL", "LINK_DELAY_HIGH", members=[a, b])
    s.agents = [alone]
    s.walk("EVENTUAL", "NO_MAJORITY", members=[c])
    s.all_reduce(a, b, comm="ab")
    s.all_reduce(c, comm="c")
    s.agents = []
    s.settle_all()
    return s.source(world_size=5), []


@story("L5", "trips")
def _() -> Told:
    # Rank 1 acts in the new epoch before rank 0 has acknowledged it.
    s = Story(ranks=2, agents=1)
    a, b = s.ranks
    (g,) = s.agents
    (seen,) = (g.health("skew", b, "RANK_SKEW_HIGH"),)
    g.decide("RANK_SKEW_HIGH", "STRONG", "CAUSAL", [seen])
    common = {
        "fault": "RANK_SKEW_HIGH", "from_regime": "STRONG", "new_epoch": 1, "proposer": g,
        "evidence": [seen],
    }  # fmt: skip
    g.walk_row("proposed", "CAUSAL", s.ranks, **common)
    g.tell(b)
    b.walk_row("acknowledged", "CAUSAL", s.ranks, **common)
    b.tell(g)
    b.walk_row("committed", "CAUSAL", s.ranks, **common)
    early = b.read(version=0)
    g.tell(a)
    a.walk_row("acknowledged", "CAUSAL", s.ranks, **common)
    a.tell(g)
    g.walk_row("committed", "CAUSAL", s.ranks, **common)
    g.tell(a)
    a.walk_row("committed", "CAUSAL", s.ranks, **common)
    a.open_debt("d1", new_epoch=1)
    a.settle("d1")
    return s, [early]


@story("L5", "trips")
def old_epoch_after_commit() -> Told:
    s = fallen()
    s.settle_all()
    one = s.ranks[1]
    one.epoch, one.regime = 0, "STRONG"
    late = one.read(version=0)
    one.epoch, one.regime = 1, "CAUSAL"
    return s, [late]


@story("L5", "almost")
def certified_death() -> Told:
    # Rank 2 never acknowledged; its host certified its death before the commit.
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    s.agents[0].health("dead", c, "GPU_FAIL_STOP")
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    s.all_reduce(a, b, comm="ab")
    return s, []


@story("L5", "almost")
def fenced_member_of_the_view() -> Told:
    # Rank 2 was stopped while the walk was under way; its host fenced it before the commit.
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    s.agents[0].health("fenced", c)
    s.walk("CAUSAL", "RANK_SKEW_HIGH", silent=[c])
    a.read(version=0)
    s.walk("EVENTUAL", "GPU_FAIL_STOP", members=[a, b], departed=[c], reason="stopped")
    s.settle_all()
    return s, []


@story("L5", "almost")
def old_update_applied_late() -> Told:
    s = Story(ranks=3, agents=1)
    a, b, _ = s.ranks
    dot = a.issue(version=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH")
    s.settle_all()
    b.epoch, b.regime = 0, "STRONG"
    b.apply(dot, version=1)
    return s, []


@story("L5", "unknown")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    a, b = s.ranks
    b.lose(3)  # its acknowledgement, perhaps
    seen = s.agents[0].health("skew", b, "RANK_SKEW_HIGH")
    s.agents[0].decide("RANK_SKEW_HIGH", "STRONG", "CAUSAL", [seen])
    s.agents[0].tell(a)
    for one in (s.agents[0], a, b):
        one.walk_row(
            "committed", "CAUSAL", s.ranks, fault="RANK_SKEW_HIGH", new_epoch=1,
            proposer=s.agents[0],
        )  # fmt: skip
    a.read(version=0)
    return s, []


@story("L6", "trips")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH", evidence=[])
    s.settle_all()
    return s, [proposal_of(s, 1)]


@story("L6", "trips")
def of_another_fault() -> Told:
    s = Story(ranks=2, agents=1)
    seen = s.agents[0].health("delay", None, "LINK_DELAY_HIGH")
    s.walk("CAUSAL", "RANK_SKEW_HIGH", evidence=[seen])
    s.settle_all()
    return s, [proposal_of(s, 1)]


@story("L6", "trips")
def not_before() -> Told:
    # Rank 0 saw it, but nobody told the agent.
    s = Story(ranks=2, agents=1)
    seen = s.ranks[0].health("skew", None, "RANK_SKEW_HIGH")
    s.walk("CAUSAL", "RANK_SKEW_HIGH", evidence=[seen])
    s.settle_all()
    return s, [proposal_of(s, 1)]


@story("L6", "almost")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    seen = s.ranks[0].health("skew", None, "RANK_SKEW_HIGH")
    s.ranks[0].tell(s.agents[0])
    s.walk("CAUSAL", "RANK_SKEW_HIGH", evidence=[seen])
    s.settle_all()
    return s, []


@story("L6", "unknown")
def _() -> Told:
    s = Story(ranks=2, agents=1)
    first, last = s.agents[0].lose()
    s.agents[0].gap(first, last, tables=["health"])
    s.walk("CAUSAL", "RANK_SKEW_HIGH", evidence=[(2, 0, first)])
    s.settle_all()
    return s, []


@story("L7", "trips")
def _() -> Told:
    s = Story(ranks=3, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH")
    s.settle_all()
    lag = s.ranks[2]
    s.rows.remove(("transitions", commit_of(s, 1, 2)))
    # Renumber what came after, as if it had never been written.
    for _, row in s.rows:
        if row["rank"] == 2 and row["seq"] > 5:
            row["seq"] -= 1
    lag.seq -= 1
    lag.epoch, lag.regime = 0, "STRONG"
    s.agents[0].tell(lag)
    last = lag.row("steps", phase="end")
    return s, [last]


@story("L7", "almost")
def _() -> Told:
    # It commits a later epoch instead.
    s = Story(ranks=3, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH")
    s.settle_all()
    s.rows.remove(("transitions", commit_of(s, 1, 2)))
    for _, row in s.rows:
        if row["rank"] == 2 and row["seq"] > 5:
            row["seq"] -= 1
    s.ranks[2].seq -= 1
    s.walk("STRONG", "STABLE_SYNC")
    return s, []


@story("L7", "unknown")
def _() -> Told:
    s = Story(ranks=3, agents=1)
    s.walk("CAUSAL", "RANK_SKEW_HIGH")
    s.settle_all()
    s.rows.remove(("transitions", commit_of(s, 1, 2)))
    for _, row in s.rows:
        if row["rank"] == 2 and row["seq"] > 5:
            row["seq"] -= 1
    s.ranks[2].seq -= 1
    s.agents[0].tell(s.ranks[2])
    return s.source(clean=False), []


@story("L8", "trips")
def _() -> Told:
    s = fallen()
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC")
    for table, row in s.rows:
        if table == "decisions" and row["fault"] == "STABLE_SYNC":
            row["to_regime"], row["changed"] = "CAUSAL", False
    return s, [commit_of(s, 2, 3)]


@story("L8", "almost")
def _() -> Told:
    s = fallen()
    s.settle_all()
    s.walk("STRONG", "STABLE_SYNC")
    return s, []


@story("L8", "unknown")
def _() -> Told:
    s = fallen()
    s.settle_all()
    s.agents[0].gap(*s.agents[0].lose(), tables=["decisions"])
    s.walk("STRONG", "STABLE_SYNC")
    return s, []
