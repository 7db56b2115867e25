"""A rank's record beside a checkpoint: ``cascade-<rank>.json`` in the checkpoint's folder."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.identity import Clock, Dot

MOST_SIBLINGS = 256
"""Of the folders beside a checkpoint's, the newest so many are looked at."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank knew when a checkpoint was saved.

    Attributes:
        run_id: the run that saved it.
        rank: the rank that writes this.
        checkpoint_id: its name.
        lineage: the run that the first checkpoint of this training came from; resumed runs hand it on.
        identity: hash of the model's objects.
        frontier: clock of what is inside.
        last_dots: of each object the update that it holds.
        version: of every object.
        world_size: members then.
        params_digest, optim_digest, rng_digest: of parameters, optimizer state, random generators.
        data_position: samples that had been consumed.
        data_shard: shards of the data that this rank read, separated by commas.
    """

    run_id: str = ""
    rank: int | None = None
    checkpoint_id: str = ""
    lineage: str = ""
    identity: str = ""
    frontier: list[Dot] = []
    last_dots: list[Dot | None] = []
    version: int = 0
    world_size: int | None = None
    params_digest: str | None = None
    optim_digest: str | None = None
    rng_digest: str | None = None
    data_position: int | None = None
    data_shard: str | None = None


def record_path(folder: Path, rank: int) -> Path:
    """Where a rank's record lies."""
    return folder / f"cascade-{rank}.json"


def write_record(folder: Path, record: Record) -> None:
    """Write it so that it is there whole or not at all.

    Raises:
        OSError: the folder cannot be written to.
    """
    assert record.rank is not None
    path = record_path(folder, record.rank)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_record(path: Path) -> Record | None:
    """One record; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def read_records(folder: Path) -> dict[int, Record]:
    """The records of the checkpoint that lies there, by rank.

    Where it was saved over an older one by fewer ranks, records of that one are left; they are not
    among these as soon as the newer save is whole.
    """
    found: dict[int, Record] = {}
    for path in sorted(folder.glob("cascade-*.json")):
        record = read_record(path)
        if record is None or record.rank is None:
            continue
        if path.name == record_path(folder, record.rank).name:
            found[record.rank] = record
    wholes = [whole for record in found.values() if (whole := _whole_save(record, found))]
    return max(wholes, key=lambda whole: max(r.version for r in whole.values()), default=found)


def of_one_save(one: Record, other: Record) -> bool:
    """They were written by the same save (members that are apart differ in frontier and version)."""
    names = (one.run_id, one.checkpoint_id, one.world_size)
    return names == (other.run_id, other.checkpoint_id, other.world_size)


def _whole_save(record: Record, found: dict[int, Record]) -> dict[int, Record] | None:
    """All records of the save that ``record`` is of; None where some are lacking."""
    same = {rank: r for rank, r in found.items() if of_one_save(r, record)}
    if record.world_size is not None and len(same) > record.world_size:
        # One name again in one run, with other ranks: whoever is not there any more is behind.
        newest = max(r.version for r in same.values())
        same = {rank: r for rank, r in same.items() if r.version == newest}
    return same if len(same) == record.world_size else None


def newer_beside(folder: Path, mine: Record) -> Record | None:
    """Of this rank's records in folders beside this one the furthest ahead of ``mine``, if any.

    Counted are checkpoints of the same training that are whole: a record of every rank is there.
    """
    best = mine
    for other in _siblings(folder):
        record = read_record(record_path(other, mine.rank or 0))
        if record is None or (record.lineage, record.identity) != (mine.lineage, mine.identity):
            continue
        ahead = Clock(best.frontier) <= Clock(record.frontier) and record.frontier != best.frontier
        beside = [r for r in read_records(other).values() if of_one_save(r, record)]
        if ahead and len(beside) == record.world_size:
            best = record
    return best if best is not mine else None


def _siblings(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder.parent) as entries:
            found = [(e.stat().st_mtime, Path(e.path)) for e in entries if e.is_dir()]
    except OSError:
        return []
    newest = sorted(found, reverse=True)[:MOST_SIBLINGS]
    return [path for _, path in newest if path.name != folder.name]
