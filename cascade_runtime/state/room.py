"""Whether a put has room: all keys of a job together are few and small."""

from __future__ import annotations

from cascade_runtime.state.replica import Replica
from cascade_runtime.state.values import MOST_BYTES, MOST_KEYS
from cascade_runtime.vocabulary.errors import BadUsage

_REUSE = "put under keys that are used again; a State is for plans and the like, not for data"


def check_room(replica: Replica, state: str, key: str, value: bytes) -> None:
    """Refuse what would be too much.

    Raises:
        BadUsage: the job's keys would become too many or too large.
    """
    stands = replica.entry(state, key)
    grown = len(value) - (len(stands.value) if stands is not None else 0)
    if stands is None and replica.num_keys >= MOST_KEYS:
        raise BadUsage(f"there are {MOST_KEYS:,} keys already", where=f"{state}/{key}", hint=_REUSE)
    if replica.num_bytes + grown > MOST_BYTES:
        raise BadUsage(
            f"the values of all keys would take more than {MOST_BYTES:,} bytes",
            where=f"{state}/{key}",
            hint=_REUSE,
        )
