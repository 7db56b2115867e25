"""Why a version that somebody waits for is not here, as far as its process can know."""

from __future__ import annotations

from collections.abc import Collection

from cascade_runtime.state.replica import Replica


def why_not(
    replica: Replica, state: str, key: str, away: Collection[int], *, has_agent: bool
) -> str:
    """A clause or two.

    Args:
        replica: what is here.
        state: which State.
        key: the key that is waited for.
        away: ranks of the job that have left or were lost.
        has_agent: the host agent is connected.
    """
    stands = replica.entry(state, key)
    has = "nobody's put has arrived" if stands is None else f"version {stands.version} is here"
    if not has_agent:
        return f"{has}; the host agent is away"
    held = [(u, m) for u, m in replica.waiting() if (u.state, u.key) == (state, key)]
    if held:
        update, missing = held[-1]
        names = ", ".join(f"{d.actor}:{d.counter}" for d in missing)
        return (
            f"{has}; version {update.version} has arrived and is held back until "
            f"update {names}, its cause, is here"
        )
    if away:
        ranks = ", ".join(map(str, away))
        return f"{has}; rank{'s' if len(away) > 1 else ''} {ranks} left or were lost"
    return has
