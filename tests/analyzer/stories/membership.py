"""Who takes part."""

from __future__ import annotations

from tests.analyzer.stories.kit import Told, story
from tests.story import Story, Teller


@story("M3", "trips")
def _() -> Told:
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    again = Teller(s, 2, incarnation=1)
    again.start()
    again.epoch, again.regime = 1, "CAUSAL"
    again.row("steps", phase="begin")
    c.epoch, c.regime = 1, "CAUSAL"
    c.recv(a.send(c))
    zombie = c.read(version=0)
    return s, [zombie]


@story("M3", "almost")
def _() -> Told:
    # It still acts, but in the epoch before the fence.
    s = Story(ranks=3, agents=1)
    a, b, c = s.ranks
    s.walk("CAUSAL", "GPU_FAIL_STOP", members=[a, b], departed=[c])
    s.settle_all()
    c.read(version=0)
    return s, []


def _grouped(
    s: Story, comm: str, members: list[Teller], label: str = "dp", **columns: object
) -> None:
    for one in members:
        one.join(comm, members, label=label, **columns)


@story("M2", "trips")
def _() -> Told:
    s = Story(ranks=4)
    _grouped(s, "c0", s.ranks)
    s.all_reduce(comm="c0")
    _grouped(s, "c1", s.ranks[:3], replaces="c0")
    return s, [s.all_reduce(*s.ranks[:3], comm="c1")[0]]


@story("M2", "trips")
def by_label_alone() -> Told:
    s = Story(ranks=4)
    a, b, c, d = s.ranks
    _grouped(s, "c0", [a, b, c])
    s.all_reduce(a, b, c, comm="c0")
    _grouped(s, "c1", [a, b, d])
    row = s.all_reduce(a, b, d, comm="c1")[0]
    a.epoch = 1
    a.view([a, b, d], departed=[c])  # too late
    return s, [row]


@story("M2", "almost")
def _() -> Told:
    # Told in two rows; groups side by side, of other ranks or labels, or not used before.
    s = Story(ranks=4)
    a, b, c, d = s.ranks
    _grouped(s, "c0", s.ranks)
    _grouped(s, "c9", s.ranks, label="unused")
    s.all_reduce(comm="c0")
    a.view([a, b, c], departed=[d])["epoch"] = 1
    a.tell(b)
    b.view([a, b], departed=[c])["epoch"] = 2
    b.tell(a)
    _grouped(s, "c1", [a, b], replaces="c0")
    s.all_reduce(a, b, comm="c1")
    _grouped(s, "c2", [a, c], label="tp")
    s.all_reduce(a, c, comm="c2")
    _grouped(s, "c3", [b, d], label="tp")
    s.all_reduce(b, d, comm="c3")
    _grouped(s, "c4", [a, b], label="unused")
    s.all_reduce(a, b, comm="c4")
    return s, []


@story("M2", "unknown")
def _() -> Told:
    s = Story(ranks=4)
    a, b, c, _ = s.ranks
    _grouped(s, "c0", s.ranks)
    s.all_reduce(comm="c0")
    a.gap(*a.lose(), tables=["membership"])
    _grouped(s, "c1", [a, b, c], replaces="c0")
    s.all_reduce(a, b, c, comm="c1")
    return s, []
