"""Who caused a wait: one pass backward over collective instances (numba).

Definition (design findings, after Scalasca's delay costs, Boehme et al. 2010): of a wait for the
last arriver l, the waiter's own part is how much longer l computed since its previous sync exit
than the waiter did; the rest moves to that previous instance, where the last arriver absorbs what
it computed longer than the median of the others. Chains are cut at each step; what is left there is structural
and blames nobody.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from analyzer.columns import Ints

Floats = npt.NDArray[np.float64]


@numba.njit(cache=True)
def root_blame(
    begin: Ints,
    backward: Ints,
    place: Ints,
    arrival: Floats,
    wait: Floats,
    last: Floats,
    previous: Ints,
    gap: Floats,
    usual_gap: Floats,
    instance_of: Ints,
    step: Ints,
    actor: Ints,
    num_actors: int,
    num_steps: int,
    tolerance: float,
) -> tuple[Floats, Floats, Ints]:
    """Root and direct blame.

    Args:
        begin: where each instance's entries begin, and the end.
        backward: instances from the latest to the earliest.
        place: position of each instance in time (the inverse of backward, ascending).
        arrival, wait: per entry, nanoseconds.
        last: per instance, the arrival that the others waited for; NaN to leave it out here.
        previous: per entry, the entry of the same actor that it left last before; -1 for none.
        gap: per entry, time since that exit; NaN where there is none.
        usual_gap: per instance, the median gap of those that did not arrive last.
        instance_of, actor: per entry.
        step: per instance, index of its step.
        tolerance: arrivals this close to the last share the blame.

    Returns:
        (root blame [step, actor], direct blame [actor], root actor per entry or -1).
    """
    num = begin.shape[0] - 1
    root = np.zeros((num_steps, num_actors))
    direct = np.zeros(num_actors)
    carried = np.zeros(num)
    waiters = np.zeros(num)
    absorber = np.full(num, -1, dtype=np.int64)
    onward = np.full(num, -1, dtype=np.int64)
    moved_to = np.full(arrival.shape[0], -1, dtype=np.int64)
    named = np.full(arrival.shape[0], -1, dtype=np.int64)
    for instance in backward:
        if np.isnan(last[instance]):
            continue
        low, high = begin[instance], begin[instance + 1]
        num_last = 0
        for entry in range(low, high):
            if last[instance] - arrival[entry] <= tolerance:
                num_last += 1
        for waiter in range(low, high):
            if wait[waiter] <= 0.0:
                continue
            among = num_last
            if last[instance] - arrival[waiter] <= tolerance:
                among -= 1
            if among == 0:
                continue
            share = wait[waiter] / among
            best = 0.0
            for entry in range(low, high):
                if entry == waiter or last[instance] - arrival[entry] > tolerance:
                    continue
                blamed = actor[entry]
                direct[blamed] += share
                # Without an exit to measure from, the last arriver itself is the best answer.
                local = share
                if not (np.isnan(gap[entry]) or np.isnan(gap[waiter])):
                    local = min(max(gap[entry] - gap[waiter], 0.0), wait[waiter]) / among
                root[step[instance], blamed] += local
                if local > best:
                    best = local
                    named[waiter] = blamed
                rest = share - local
                if rest <= 0.0 or previous[entry] < 0:
                    continue
                before = instance_of[previous[entry]]
                if place[before] < place[instance] and step[before] == step[instance]:
                    carried[before] += rest
                    waiters[before] += 1.0 / among
                    if rest > best:
                        moved_to[waiter] = before
            if best < 0.5 * share:
                named[waiter] = -1
        if carried[instance] <= 0.0:
            continue
        for entry in range(low, high):
            if last[instance] - arrival[entry] > tolerance:
                continue
            part = carried[instance] / num_last
            taken = 0.0
            if not np.isnan(gap[entry]):
                excess = max(gap[entry] - usual_gap[instance], 0.0)
                taken = min(part, excess * waiters[instance] / num_last)
            root[step[instance], actor[entry]] += taken
            if taken >= 0.5 * part:
                absorber[instance] = actor[entry]
            rest = part - taken
            if rest <= 0.0 or previous[entry] < 0:
                continue
            before = instance_of[previous[entry]]
            if place[before] < place[instance] and step[before] == step[instance]:
                carried[before] += rest
                waiters[before] += waiters[instance] / num_last
                onward[instance] = before
    for at in range(num - 1, -1, -1):
        instance = backward[at]
        if absorber[instance] < 0 and onward[instance] >= 0:
            absorber[instance] = absorber[onward[instance]]
    for entry in range(arrival.shape[0]):
        if named[entry] < 0 and moved_to[entry] >= 0:
            named[entry] = absorber[moved_to[entry]]
    return root, direct, named
