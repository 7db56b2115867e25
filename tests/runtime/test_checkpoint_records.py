"""What is kept beside a checkpoint, and which checkpoint beside it is newer."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import torch

import cascade_runtime
from cascade_runtime.checkpoints import records
from cascade_runtime.checkpoints.loads import read_load, rng_digest
from cascade_runtime.checkpoints.records import (
    Record,
    newer_beside,
    read_records,
    record_path,
    write_record,
)
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Dot


def save(parent: Path, name: str, upto: int, ranks: tuple[int, ...] = (0, 1), **columns: object):
    folder = parent / name
    folder.mkdir()
    for rank in ranks:
        record = Record(
            run_id="r", rank=rank, checkpoint_id=name, lineage="l", identity="m", world_size=2,
            frontier=[Dot(0, 0, upto)] if upto else [],
        )  # fmt: skip
        write_record(folder, msgspec.structs.replace(record, **columns))
    return folder


def record_of(folder: Path, which: int, **columns: object) -> Record:
    """One that lies there, changed."""
    found = records.read_record(record_path(folder, which))
    assert found is not None
    return msgspec.structs.replace(found, **columns)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = save(
        tmp_path, "a", 7, data_position=3, data_shard="x, y", last_dots=[None, Dot(0, 0, 7)]
    )
    found = read_records(folder)
    assert sorted(found) == [0, 1]
    assert found[1].frontier == [Dot(0, 0, 7)]
    assert found[1].last_dots == [None, Dot(0, 0, 7)]
    assert (found[0].data_position, found[0].data_shard) == (3, "x, y")
    assert sorted(p.name for p in folder.iterdir()) == ["cascade-0.json", "cascade-1.json"]


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    folder = save(tmp_path, "a", 7)
    record_path(folder, 0).write_bytes(b"{")
    record_path(folder, 5).write_bytes(b'{"rank": "x"}')
    assert sorted(read_records(folder)) == [1]
    assert read_records(tmp_path / "nowhere") == {}


def test_the_furthest_whole_one_of_the_same_training_is_newer(tmp_path: Path) -> None:
    mine = read_records(save(tmp_path, "step-20", 20))[1]
    assert newer_beside(tmp_path / "step-20", mine) is None
    save(tmp_path, "step-10", 10)
    save(tmp_path, "torn", 90, ranks=(1,))
    save(tmp_path, "other-model", 90, identity="n")
    save(tmp_path, "other-training", 90, lineage="k")
    save(tmp_path, "another-branch", 0, frontier=[Dot(1, 0, 90)])
    (tmp_path / "notes").mkdir()
    assert newer_beside(tmp_path / "step-20", mine) is None
    save(tmp_path, "step-30", 30)
    save(tmp_path, "step-40", 40)
    found = newer_beside(tmp_path / "step-20", mine)
    assert found is not None
    assert (found.checkpoint_id, found.rank) == ("step-40", 1)


def test_what_a_larger_job_left_in_the_folder_is_not_of_this_checkpoint(tmp_path: Path) -> None:
    """Three saved there, then two of the resumed run: the third one's record is of another state."""
    folder = save(tmp_path, "latest", 10, ranks=(0, 1, 2), world_size=3, version=5)
    assert sorted(read_records(folder)) == [0, 1, 2]
    write_record(folder, record_of(folder, 0, run_id="s", world_size=2, version=9))
    assert sorted(read_records(folder)) == [0, 1, 2], "while it is saved"
    torn = read_load(0, "latest", None, folder, None, None)
    assert torn.others == [], "rank 1's is still the old one"
    write_record(folder, record_of(folder, 1, run_id="s", world_size=2, version=9))
    assert sorted(read_records(folder)) == [0, 1]
    assert [r.rank for r in read_load(0, "latest", None, folder, None, None).others] == [1]
    assert read_load(2, "latest", None, folder, None, None).mine is None


def test_one_name_again_in_one_run_with_other_ranks(tmp_path: Path) -> None:
    folder = save(tmp_path, "latest", 10, ranks=(0, 1), version=5)
    for rank in (0, 7):  # rank 7 in the place of rank 1
        write_record(folder, record_of(folder, 0, rank=rank, version=9))
    assert sorted(read_records(folder)) == [0, 7]


def test_members_that_were_apart_saved_one_checkpoint(tmp_path: Path) -> None:
    folder = save(tmp_path, "latest", 10, version=5)
    write_record(folder, record_of(folder, 1, version=3, frontier=[Dot(1, 0, 6)]))
    assert sorted(read_records(folder)) == [0, 1]


def test_a_record_under_another_ranks_name_is_none(tmp_path: Path) -> None:
    """Somebody copied it."""
    folder = save(tmp_path, "a", 7)
    record_path(folder, 1).write_bytes(record_path(folder, 0).read_bytes())
    record_path(folder, 5).write_bytes(record_path(folder, 0).read_bytes())
    assert sorted(read_records(folder)) == [0]


def test_a_folder_beside_it_that_others_saved_over_is_not_whole(tmp_path: Path) -> None:
    mine = read_records(save(tmp_path, "step-20", 20))[0]
    folder = save(tmp_path, "step-30", 30)
    write_record(folder, record_of(folder, 1, run_id="s"))
    assert newer_beside(tmp_path / "step-20", mine) is None


def test_only_so_many_folders_are_looked_at(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(records, "MOST_SIBLINGS", 2)
    mine = read_records(save(tmp_path, "step-20", 20))[0]
    for number, name in enumerate(("step-50", "step-30", "step-40")):
        folder = save(tmp_path, name, int(name[5:]))
        os.utime(folder, (number, number))
    os.utime(tmp_path / "step-20", (0, 0))
    found = newer_beside(tmp_path / "step-20", mine)
    assert found is not None
    assert found.checkpoint_id == "step-40"


def test_a_load_knows_its_own_record_the_others_and_its_generator(tmp_path: Path) -> None:
    folder = save(tmp_path, "step-20", 20)
    save(tmp_path, "step-30", 30)
    torch.manual_seed(5)
    load = read_load(1, "step-20", None, folder, 60, "a")
    assert load.mine is not None
    assert (load.mine.rank, [r.rank for r in load.others]) == (1, [0])
    assert load.newer is not None
    assert load.newer.checkpoint_id == "step-30"
    assert load.rng_digest == rng_digest()
    torch.rand(1)
    assert load.rng_digest != rng_digest()
    newcomer = read_load(7, "step-20", None, folder, None, None)
    assert (newcomer.mine, newcomer.newer, len(newcomer.others)) == (None, None, 2)
    kept = read_load(1, "step-20", msgspec.to_builtins(load.mine), None, 60, "a")
    assert (kept.mine, kept.others, kept.newer) == (load.mine, [], None)


def test_who_says_nothing_of_the_checkpoint_is_asked(monkeypatch) -> None:
    with pytest.raises(BadUsage, match="give its folder"):
        cascade_runtime.checkpoint_loaded()
    monkeypatch.delenv("CASCADE_RUN_DIR", raising=False)
    with pytest.raises(BadUsage, match="attach first"):
        cascade_runtime.checkpoint_loaded("k", {"rank": 0})
    monkeypatch.setenv("CASCADE_RUN_DIR", "/nowhere")
    with pytest.raises(BadUsage, match="not what checkpoint_saved returned"):
        cascade_runtime.checkpoint_loaded("k", {"rank": "first"})
