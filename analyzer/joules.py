"""Energy drawn while waiting, from power samples of the ranks' devices.

The same figure as the view ``wasted_barrier_time``, summed over ranks: each wait (its exposed part where
that is known) times the power of its device's last sample before it. Gross: what an idle device draws
is in it.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.history import History
from analyzer.root_blame import Floats
from analyzer.wait_entries import Entries


def wait_joules(history: History, entries: Entries, exposed: Floats) -> float | None:
    """Joules; None without samples of any waiting rank's device, or where samples were lost."""
    if history.evidence.lost(("gpu",)) is not None:
        return None
    samples = _samples(history)
    begun = history.instances.arrival()[entries.at]
    idle_ns = np.where(np.isnan(exposed), entries.wait, exposed)
    total, known = 0.0, False
    by_actor = np.argsort(entries.actor, kind="stable")
    in_order = entries.actor[by_actor]
    for actor, (at, power_mw) in samples.items():
        low, high = np.searchsorted(in_order, [actor, actor + 1])
        mine = by_actor[low:high]
        place = np.searchsorted(at, begun[mine], side="right") - 1
        mine, place = mine[place >= 0], place[place >= 0]
        known = known or len(mine) > 0
        total += float((power_mw[place] / 1e3 * idle_ns[mine] / 1e9).sum())
    return round(total, 9) if known else None


def _samples(history: History) -> dict[int, tuple[Ints, Ints]]:
    """Per rank with a device that was sampled: when, in order, and how many milliwatts."""
    rows, gpu, actors = history.rows, history.rows["gpu"], history.rows["actors"]
    if not len(gpu):
        return {}
    device = rows.codes("device", gpu, "device_uuid")
    power, wall = gpu.ints("power_mw"), rows.wall[gpu.rows]
    order = np.lexsort((wall, device))
    order = order[(power[order] != NULL) & (device[order] >= 0)]
    in_order = device[order]
    owner = rows.codes("device", actors, "device_uuid")
    found = {}
    for actor, code in zip(rows.actor[actors.rows].tolist(), owner.tolist(), strict=True):
        low, high = np.searchsorted(in_order, [code, code + 1])
        if code >= 0 and low < high and actor not in history.agents:
            mine = order[low:high]
            found[actor] = (wall[mine], power[mine])
    return found
