"""What a script says it has loaded, read from beside the checkpoint when it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
import xxhash

from cascade_runtime.checkpoints.records import Record, newer_beside, of_one_save, read_records


@dataclass(frozen=True)
class Load:
    """A resume, as the script tells it.

    Attributes:
        checkpoint_id: what it loaded.
        mine: what was recorded for this rank; None where nothing was.
        others: the records of the other ranks.
        newer: this rank's record of a checkpoint that lies further ahead.
        rng_digest: of the random generators as they are after the load.
        data_position: samples that the script goes on from.
        data_shard: shards that this rank goes on with.
    """

    checkpoint_id: str
    mine: Record | None
    others: list[Record] = field(default_factory=list)
    newer: Record | None = None
    rng_digest: str | None = None
    data_position: int | None = None
    data_shard: str | None = None


def read_load(
    rank: int,
    checkpoint_id: str,
    stored: Mapping[str, Any] | None,
    folder: Path | None,
    data_position: int | None,
    data_shard: str | None,
) -> Load:
    """Gather it: the records lie in ``folder``, or the script kept this rank's as ``stored``.

    Raises:
        msgspec.ValidationError: ``stored`` is none.
    """
    records = read_records(folder) if folder is not None else {}
    mine = msgspec.convert(stored, Record) if stored else records.get(rank)
    others = [
        record
        for other, record in sorted(records.items())
        if other != rank and (mine is None or of_one_save(record, mine))
    ]
    newer = newer_beside(folder, mine) if folder is not None and mine is not None else None
    return Load(checkpoint_id, mine, others, newer, rng_digest(), data_position, data_shard)


def rng_digest() -> str:
    """Of torch's generators: that of the CPU, and that of this process's GPU where it is in use."""
    digest = xxhash.xxh3_128(torch.get_rng_state().numpy().tobytes())
    cuda: Any = torch.cuda  # half of it has no annotations
    if cuda.is_initialized():
        digest.update(cuda.get_rng_state().numpy().tobytes())
    return digest.hexdigest()
