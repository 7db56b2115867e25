"""``torch.distributed.checkpoint`` with what a resume needs to be right, and to be judged.

``save`` and ``load`` are torch's functions of that name, called with the same arguments, and do three
things more: each rank's random generators are saved and restored under keys of its own (entries of
one name are saved once, so a plain "rng" would give every rank the same), each rank's record is put
beside the checkpoint, and rows are written. What cannot be recorded is said, and costs nothing else.
docs/checkpoints.md
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint._storage_utils import _storage_setup

from cascade_runtime import job
from cascade_runtime.checkpoints.records import Record, read_records, record_path
from cascade_runtime.vocabulary.errors import BadUsage


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    data_position: int | None = None,
    data_shard: str | None = None,
    **arguments: Any,
) -> Any:
    """Save a checkpoint; what ``torch.distributed.checkpoint.save`` returns.

    Every rank calls it. Like torch's, it waits for all of the process group. Once a model is attached
    (from its first training forward on) each rank's record is put into the folder.

    Args:
        state_dict: as for torch's save.
        checkpoint_id: a folder that all ranks see; elsewhere there is no record.
        data_position: samples of the data that have been consumed so far.
        data_shard: the shards of the data that this rank reads, names separated by commas.
        **arguments: further ones of torch's save, ``storage_writer`` among them.

    Raises:
        BadUsage: this process does not know its rank.
    """
    rank = _rank()
    entries = {**state_dict, **{f"cascade/rng/{rank}/{k}": v for k, v in _generators().items()}}
    result = state_dict_saver.save(entries, checkpoint_id=checkpoint_id, **arguments)
    if job.attached() is None:
        if checkpoint_id is not None:
            with contextlib.suppress(OSError):  # one of what was here before
                record_path(Path(checkpoint_id), rank).unlink(missing_ok=True)
        if os.environ.get("CASCADE_RUN_DIR") is not None:
            _say(rank, f"{checkpoint_id} has no record: no model is attached yet")
        return result
    folder = _folder(rank, checkpoint_id)
    if checkpoint_id is None:
        return result
    job.checkpoint_saved(
        os.fspath(checkpoint_id).rstrip("/").rpartition("/")[2],
        folder=folder,
        data_position=data_position,
        data_shard=data_shard,
    )
    return result


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    **arguments: Any,
) -> Record:
    """Load a checkpoint in place, and this rank's random generators; returns this rank's record.

    Set up data and samplers from the record (``data_position``, ``data_shard``), then say so with
    ``checkpoint_loaded(folder=checkpoint_id, data_position=..., data_shard=...)``. A rank that the
    saved job did not have gets an empty record, and keeps its generators.

    Args:
        state_dict: as for torch's load.
        checkpoint_id: the folder given to ``save``; elsewhere the record is an empty one.
        storage_reader: as for torch's load.
        **arguments: further ones of torch's load.

    Raises:
        BadUsage: this process does not know its rank.
    """
    rank = _rank()
    reader: Any = _storage_setup(storage_reader, checkpoint_id, reader=True)
    known = reader.read_metadata().state_dict_metadata
    wanted = {f"cascade/rng/{rank}/{k}": torch.empty_like(v) for k, v in _generators().items()}
    own = {key: value for key, value in wanted.items() if key in known}
    entries = {**state_dict, **own}
    state_dict_loader.load(entries, checkpoint_id=checkpoint_id, storage_reader=reader, **arguments)
    for key in state_dict:  # entries that are no tensors are put in place of the old ones
        state_dict[key] = entries[key]
    for key, state in own.items():
        (torch.cuda if key.endswith("/cuda") else torch).set_rng_state(state)
    folder = _folder(rank, checkpoint_id)
    return read_records(folder).get(rank, Record()) if folder is not None else Record()


def _folder(rank: int, checkpoint_id: str | os.PathLike[str] | None) -> Path | None:
    """Where records lie; None, which is said, where this is no folder."""
    if checkpoint_id is not None and "://" not in os.fspath(checkpoint_id):
        folder = Path(checkpoint_id)
        if folder.is_dir():
            return folder
    which = "a storage without checkpoint_id" if checkpoint_id is None else f"{checkpoint_id}"
    _say(rank, f"{which} is no folder, so there are no records of cascade in it")
    return None


_said: set[str] = set()


def _say(rank: int, what: str) -> None:
    if rank == 0 and what not in _said:
        _said.add(what)
        sys.stderr.write(f"cascade: {what}, and a resume from it is not judged (M1)\n")


def _generators() -> dict[str, torch.Tensor]:
    """States of torch's generators in this process: of the CPU, and of its GPU where it is in use."""
    found = {"cpu": torch.get_rng_state()}
    cuda: Any = torch.cuda  # half of it has no annotations
    if cuda.is_initialized():
        found["cuda"] = cuda.get_rng_state()
    return found


def _rank() -> int:
    if "RANK" not in os.environ:
        raise BadUsage(
            "this process does not know its rank", where="dcp", hint="start it by cascade run"
        )
    return int(os.environ["RANK"])
