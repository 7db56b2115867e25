"""``cascade_runtime.dcp`` in one process: what is recorded, and where nothing can be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter, state_dict_saver

from cascade_runtime import dcp, job
from cascade_runtime.checkpoints.records import Record, record_path, write_record

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),
    pytest.mark.filterwarnings("ignore:Detected an existing checkpoint"),
]


class Checkpoints:
    """Keeps what was said to be saved."""

    def __init__(self) -> None:
        self.saves: list[tuple[str, Path | None]] = []

    def saved(self, name: str, durable: bool, folder: Path | None, *data: Any) -> dict[str, Any]:
        del durable, data
        self.saves.append((name, folder))
        if folder is not None:
            write_record(folder, Record(run_id="r", rank=0, checkpoint_id=name, data_position=7))
        return {}


@pytest.fixture(autouse=True)
def rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("CASCADE_RUN_DIR", raising=False)
    monkeypatch.setattr(dcp, "_said", set())


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> Checkpoints:
    """Of a model that is attached."""
    kept = Checkpoints()
    monkeypatch.setattr(job._state, "session", SimpleNamespace(checkpoints=kept))
    return kept


def state() -> dict[str, Any]:
    return {"weight": torch.full((3,), 2.0)}


def load(**arguments: Any) -> Record:
    """Into other values, with another generator: both come back."""
    before = torch.get_rng_state()
    torch.manual_seed(999)
    found = {"weight": torch.zeros(3)}
    record = dcp.load(found, no_dist=True, **arguments)
    assert torch.equal(found["weight"], state()["weight"])
    assert torch.equal(torch.get_rng_state(), before)
    return record


@pytest.mark.parametrize("under_cascade", [True, False])
def test_before_the_first_forward_it_is_saved_and_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, under_cascade: bool
) -> None:
    if under_cascade:
        monkeypatch.setenv("CASCADE_RUN_DIR", "/nowhere")
    for _ in range(2):
        dcp.save(state(), checkpoint_id=tmp_path / "a", no_dist=True)
        write_record(tmp_path / "a", Record(run_id="before", rank=0))  # as if there had been one
    dcp.save(state(), checkpoint_id=tmp_path / "a", no_dist=True)
    told = capsys.readouterr().err
    assert told.count("has no record: no model is attached yet") == int(under_cascade)
    assert not record_path(tmp_path / "a", 0).exists()
    assert load(checkpoint_id=tmp_path / "a") == Record()


def test_it_is_recorded_beside_the_checkpoint(tmp_path: Path, checkpoints: Checkpoints) -> None:
    dcp.save(state(), checkpoint_id=tmp_path / "a", no_dist=True)
    assert checkpoints.saves == [("a", tmp_path / "a")]
    assert load(checkpoint_id=tmp_path / "a").data_position == 7


@pytest.mark.parametrize("named", [True, False])
def test_readers_and_writers_of_ones_own(
    tmp_path: Path, checkpoints: Checkpoints, capsys: Any, named: bool
) -> None:
    """Where they write is theirs to know: without a name there is a checkpoint, and no record."""
    folder = tmp_path / "a"
    name: dict[str, Any] = {"checkpoint_id": folder} if named else {}
    place = tmp_path / "elsewhere" if named else folder
    dcp.save(state(), storage_writer=FileSystemWriter(place), no_dist=True, **name)
    record = load(storage_reader=FileSystemReader(place), **name)
    assert checkpoints.saves == ([("a", folder)] if named else [])
    assert record.data_position == (7 if named else None)
    told = capsys.readouterr().err
    assert ("a storage without checkpoint_id is no folder" in told) != named


def test_a_name_that_is_no_folder_has_no_record(
    monkeypatch: pytest.MonkeyPatch, checkpoints: Checkpoints, capsys: Any
) -> None:
    monkeypatch.setattr(state_dict_saver, "save", lambda entries, **told: "saved")
    for _ in range(2):
        assert dcp.save(state(), checkpoint_id="memory://bucket/step-5/") == "saved"
    assert checkpoints.saves == [("step-5", None)] * 2
    told = capsys.readouterr().err
    assert told.count("memory://bucket/step-5/ is no folder") == 1
    assert "a resume from it is not judged (M1)" in told
    assert not Path("memory:").exists()
