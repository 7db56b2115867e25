"""Whether all ranks of a job go on from the same checkpoint of another run, agreed on before its first view.

Counters and versions are shared: a rank that moved its own alone would differ from the others for good.
So each rank notes in the run's folder what it has loaded before it says to its agent that it is there.
The first view follows all of that, so whoever has heard it reads the same notes and decides alike.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.checkpoints.loads import Load
from cascade_runtime.checkpoints.records import Record
from cascade_runtime.vocabulary.identity import Actor


def start_of(load: Load) -> Record | None:
    """The record to go on from: this rank's, or where the saved job had no such rank, another's."""
    return load.mine or next(iter(load.others), None)


def note_loads(config: JobConfig, actor: Actor, identity: str, loads: list[Load]) -> None:
    """Say where this rank would go on; where it cannot be written, nobody does.

    Args:
        config: of the job.
        actor: this rank, of the job's beginning.
        identity: of its model's objects.
        loads: what it has loaded so far.
    """
    starts = [_told(start_of(load)) for load in loads]
    path = config.loads_path(actor)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(msgspec.json.encode((identity, starts)))
        temporary.replace(path)
    except OSError:
        return


def all_loaded_alike(config: JobConfig) -> bool:
    """All ranks that the job began with noted the same; to be asked once the first view is heard."""
    notes = {_read(config.loads_path(Actor(rank))) for rank in range(config.num_ranks)}
    return len(notes) == 1 and None not in notes


def _told(start: Record | None) -> tuple[object, ...] | None:
    if start is None:
        return None
    names = (start.run_id, start.lineage, start.identity)
    return (*names, start.version, start.frontier, start.last_dots)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
