"""Loads: what they take back, and whether they go back further than they need."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Dot, Story, Teller


def _restarted(scope: str = "group") -> tuple[Story, Teller, list[Dot]]:
    """Rank 0 saves its first update, issues another, and comes back from the save."""
    s = Story(ranks=3, agents=1)
    a, b, _ = s.ranks
    one = a.issue()
    a.checkpoint("saved", "k", [one], scope)
    b.apply(one)
    two = a.issue()
    again = Teller(s, 0, incarnation=1)
    again.start(started_from="k")
    again.checkpoint("loaded", "k", [one], scope)
    return s, again, [one, two]


@story("A2", "trips")
def _() -> Told:
    s, again, (_, two) = _restarted()
    b = s.ranks[1]
    again.tell(b)
    return s, [b.read(dot=two), b.apply(two)]


@story("A2", "trips")
def folded_and_of_its_own_state() -> Told:
    s, again, (_, two) = _restarted("self")
    b = s.ranks[1]
    b.declare(update_kind="delta")
    again.tell(b)
    return s, [b.apply(two), b.read(frontier=[two])]


@story("A2", "trips")
def what_the_loader_itself_had_issued() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    a.checkpoint("saved", "k", [])
    dot = a.issue()
    for rank in s.ranks:
        rank.checkpoint("loaded", "k", [])
    return s, [b.read(dot=dot)]


@story("A2", "almost")
def _() -> Told:
    # Before the load, or ordered neither way; and what the checkpoint holds.
    s, again, (one, two) = _restarted()
    s.ranks[1].apply(two)
    again.tell(s.ranks[1])
    s.ranks[1].read(dot=one)
    return s, []


@story("A2", "almost")
def of_its_own_state_others_had_it() -> Told:
    s, again, (_, two) = _restarted("self")
    _, b, c = s.ranks
    b.apply(two)
    again.tell(c)
    c.apply((0, 0, 1))
    c.apply(two)
    return s, []


@story("A2", "unknown")
def _() -> Told:
    s, again, (_, two) = _restarted("self")
    _, b, c = s.ranks
    c.gap(*c.lose(), tables=["updates"])
    again.tell(b)
    b.apply(two)
    return s, []


def _saved(s: Story, name: str, dots: list[Dot], scope: str = "group", **columns: bool) -> None:
    a = s.ranks[0]
    a.checkpoint("saved", name, dots, scope, **columns)
    a.tell(s.ranks[1])


def _comes_back(s: Story, **columns: object) -> Teller:
    """Rank 2 is lost; rank 1 says that its successor is admitted."""
    again = Teller(s, 2, incarnation=1)
    again.start()
    s.ranks[1].view([*s.ranks[:2], again], joined=[again], reason="joined")
    return again


@story("M1", "trips")
def _() -> Told:
    s = Story(ranks=3)
    one, two = s.ranks[0].issue(), s.ranks[0].issue()
    _saved(s, "step-80", [one])
    _saved(s, "step-100", [two])
    return s, [_comes_back(s).checkpoint("loaded", "step-80", [one])]


@story("M1", "trips")
def nobody_admitted_the_loader() -> Told:
    s = Story(ranks=2, start=False)
    a, b = s.ranks
    one, two = b.issue(), b.issue()
    b.checkpoint("saved", "old", [one], "self")
    b.checkpoint("saved", "new", [two], "self")
    a.row("steps", phase="end")
    return s, [b.checkpoint("loaded", "old", [one], "self")]


@story("M1", "almost")
def _() -> Told:
    # The newer ones are not durable, another rank's own, not older but other, or saved too late.
    s = Story(ranks=3)
    a = s.ranks[0]
    one, two = a.issue(), a.issue()
    other = s.ranks[1].issue()
    _saved(s, "old", [one, other])
    _saved(s, "snapshot", [two, other], durable=False)
    _saved(s, "own", [two, other], "self")
    _saved(s, "branch", [two])
    again = _comes_back(s)
    _saved(s, "late", [two, other])
    again.checkpoint("loaded", "old", [one, other])
    return s, []


@story("M1", "almost")
def ranks_of_two_cohorts_saved_it_at_two_frontiers() -> Told:
    s = Story(ranks=2, regime="CAUSAL")
    a, b = s.ranks
    one, two = a.issue(), a.issue()
    a.checkpoint("saved", "k", [two])
    b.checkpoint("saved", "k", [one])
    a.tell(b)
    b.checkpoint("loaded", "k", [one])
    return s, []


@story("M1", "almost")
def a_rank_that_is_no_more_had_saved_it_further_on() -> Told:
    s = Story(ranks=1)
    a = s.ranks[0]
    for rank, counter in ((0, 80), (1, 100)):
        a.checkpoint("saved", "k", [(0, 0, counter)], source_run="before", source_rank=rank)
    a.checkpoint("loaded", "k", [(0, 0, 80)])
    return s, []


@story("M1", "almost")
def it_received_a_snapshot_before_it_acted() -> Told:
    s = Story(ranks=3)
    a = s.ranks[0]
    one, two = a.issue(), a.issue()
    # Not its random state nor its position either: what it received counts.
    own = {"source_run": "before", "source_rank": 2, "rng_digest": "r2", "data_position": 640}
    _saved(s, "old", [one])
    _saved(s, "new", [two])
    a.checkpoint("saved", "live", [two], durable=False)
    again = _comes_back(s)
    again.checkpoint("saved", "old", [one], params_digest="p", world_size=1, **own)
    again.checkpoint("loaded", "old", [one], params_digest="q", rng_digest="r", data_position=0)
    again.checkpoint("received", "live", [two])
    again.read(dot=two)
    return s, []


def _resumed(ranks: int = 2, **how: dict[int, object]) -> tuple[Story, list[dict[str, object]]]:
    """A job of two ranks, saved in another run and loaded by ``ranks``; ``how`` replaces columns by rank."""
    s = Story(ranks=ranks)
    dots = [(0, 0, 100)]
    held = {"world_size": 2, "params_digest": "p", "data_position": 640}
    if ranks < 2:
        lost = {**held, "rng_digest": "r1", "data_shard": "s1"}
        s.ranks[0].checkpoint("saved", "k", dots, source_run="before", source_rank=1, **lost)
    loads = []
    for rank, teller in enumerate(s.ranks):
        own = {**held, "rng_digest": f"r{rank}", "data_shard": f"s{rank}"}
        if rank < 2:
            teller.checkpoint("saved", "k", dots, source_run="before", source_rank=rank, **own)
        in_force = {**own, **{c: by_rank[rank] for c, by_rank in how.items() if rank in by_rank}}
        loads.append(teller.checkpoint("loaded", "k", dots, **in_force))
    return s, loads


@story("M1", "trips")
def with_another_ranks_random_state() -> Told:
    s, loads = _resumed(rng_digest={1: "r0"})
    return s, loads[1:]


@story("M1", "trips")
def with_a_random_state_of_its_own() -> Told:
    s, loads = _resumed(rng_digest={0: "fresh"})
    return s, loads[:1]


@story("M1", "trips")
def without_the_data_position() -> Told:
    return _resumed(data_position={0: None, 1: 0})


@story("M1", "trips")
def without_the_data_position_where_another_rank_has_no_record() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    dots, held = [(0, 0, 100)], {"world_size": 2, "data_position": 640}
    a.checkpoint("saved", "k", dots, source_run="before", source_rank=0, **held)
    load = a.checkpoint("loaded", "k", dots, world_size=2)
    b.checkpoint("loaded", "k", dots)
    return s, [load]


@story("M1", "trips")
def with_other_parameters() -> Told:
    s, loads = _resumed(params_digest={1: "q"})
    return s, loads[1:]


@story("M1", "trips")
def a_shard_is_read_by_nobody() -> Told:
    s, loads = _resumed(data_shard={1: "s0"})
    return s, loads[1:]


@story("M1", "trips")
def a_shard_of_a_rank_that_is_no_more() -> Told:
    return _resumed(ranks=1)


@story("M1", "trips")
def another_run_had_saved_a_newer_one() -> Told:
    s = Story(ranks=2)
    a, b = s.ranks
    columns = {"source_run": "before", "source_rank": 0, "params_digest": "p"}
    a.checkpoint("saved", "step-100", [(0, 0, 100)], **columns)
    a.checkpoint("saved", "step-80", [(0, 0, 80)], **columns)
    load = a.checkpoint("loaded", "step-80", [(0, 0, 80)], params_digest="q")
    b.row("steps", phase="end")
    return s, [load]


@story("M1", "almost")
def everything_is_as_it_was_saved() -> Told:
    s, _ = _resumed()
    return s, []


@story("M1", "almost")
def fewer_ranks_share_the_data_anew() -> Told:
    s, _ = _resumed(ranks=1, data_shard={0: "s0, s1"}, data_position={0: 0})
    return s, []


@story("M1", "almost")
def more_ranks_share_the_data_anew() -> Told:
    s, _ = _resumed(ranks=3, data_shard={2: "s2"}, rng_digest={2: "new"})
    return s, []


@story("M1", "almost")
def the_name_is_used_again_later() -> Told:
    s, _ = _resumed()
    s.ranks[0].checkpoint("saved", "k", [(0, 0, 200)], rng_digest="later", data_position=900)
    return s, []


@story("M1", "unknown")
def a_part_of_a_wrong_resume_is_lost() -> Told:
    s, _ = _resumed(rng_digest={1: "r0"})
    b = s.ranks[1]
    b.gap(*b.lose(), tables=["checkpoints"])
    return s, []


@story("M1", "unknown")
def _() -> Told:
    s = Story(ranks=3)
    again = _comes_back(s)
    again.gap(*again.lose(), tables=["checkpoints"])
    return s, []
