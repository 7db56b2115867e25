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
