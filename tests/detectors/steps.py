"""Steps as members tell them, from when each arrived; and what a detector says of many."""

from __future__ import annotations

import math

from hypothesis import settings

from cascade_runtime.detectors._steps import WholeStep
from cascade_runtime.vocabulary.identity import Actor

RANKS = [Actor(r) for r in range(4)]
PERIOD_S = 1 / 8  # exact in binary
patient = settings(deadline=None, max_examples=40)
"""Hundreds of steps an example, on a machine that does other things besides."""


def whole(arrivals, transfer_s=0.002, step=1, period_s=PERIOD_S, digests=None):
    """A step whose members came to its last bucket at these times (s, rank by rank)."""
    last = max(arrivals)
    waits = {Actor(r): last - at + transfer_s for r, at in enumerate(arrivals)}
    return WholeStep(step, waits, period_s, digests or {})


def told(detector, steps, period_s=PERIOD_S, start_s=0.0):
    """(index of the step, verdict) of everything that these steps give."""
    found = []
    for i, step in enumerate(steps):
        now = start_s + i * period_s
        detector.feed_step(step, now)
        found += [(i, v) for v in detector.decide(now)]
    return found


def steps_in(seconds):
    """How many steps it takes until ``seconds`` have gone by."""
    return math.ceil(seconds / PERIOD_S)
