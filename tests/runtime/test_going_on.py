"""A run counts on from a checkpoint of another one only where all its ranks loaded the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.checkpoints.loads import Load
from cascade_runtime.checkpoints.records import Record
from cascade_runtime.rank.checkpointing import Checkpointing
from cascade_runtime.rank.going_on import all_loaded_alike, note_loads
from cascade_runtime.vocabulary.identity import Actor, Dot
from tests.runtime.test_member import NAMES, Fake, K

ENDED = [Dot(0, 0, 40)]


def record(rank: int = 0, **columns: Any) -> Record:
    told: dict[str, Any] = {
        "run_id": "before", "rank": rank, "checkpoint_id": "step-10", "lineage": "first",
        "identity": "m", "frontier": ENDED, "last_dots": [Dot(0, 0, 37 + i) for i in range(K)],
        "version": 10, "world_size": 2,
    }  # fmt: skip
    return Record(**(told | columns))


def load(rank: int = 0, **columns: Any) -> Load:
    return Load("step-10", record(rank, **columns), [record(1 - rank)])


def job(folder: Path) -> JobConfig:
    return JobConfig(
        run_id="now", name="job", num_ranks=2, num_hosts=1, mode="enforce", policy="default",
        trace_dir=str(folder), run_dir=str(folder), host="here", command=["script.py"],
        master_port=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ([load(1)], True),
        ([Load("step-10", None, [record(0)])], True),  # the saved job had no such rank
        ([], False),
        ([Load("step-10", None)], False),
        ([load(1, frontier=[Dot(0, 0, 20)])], False),
        ([load(1, version=5)], False),
        ([load(1, lineage="second")], False),
        ([load(1), load(1)], False),
    ],
)
def test_they_are_alike_when_what_counts_is(tmp_path: Path, other: list[Load], alike: bool) -> None:
    config = job(tmp_path)
    note_loads(config, Actor(0), "m", [load(0)])
    assert not all_loaded_alike(config), "rank 1 has said nothing yet"
    note_loads(config, Actor(1), "m", other)
    assert all_loaded_alike(config) == alike


def test_a_note_that_cannot_be_written_keeps_all_from_it(tmp_path: Path) -> None:
    config = job(tmp_path)
    note_loads(config, Actor(0), "m", [load(0)])
    config.loads_path(Actor(1)).mkdir()
    note_loads(config, Actor(1), "m", [load(1)])
    assert not all_loaded_alike(config)


class Ranks:
    """A member, and its checkpoints."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CASCADE_RERAISE", "1")
        self.fake = Fake(members=(0, 1))
        objects: Any = self.fake.member.objects
        objects.num_params = 2
        objects.identity = lambda: "m"
        recorder: Any = self.fake.recorder
        recorder.run_id = "now"
        self.checkpoints = Checkpointing(self.fake.member, objects, recorder)

    def row(self, action: str) -> dict[str, Any]:
        (row,) = self.fake.recorder.of("checkpoints", action=action)
        return row


def test_what_one_rank_says_alone_is_recorded_and_moves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = Ranks(monkeypatch)
    ranks.checkpoints.loaded(load())
    member = ranks.fake.member
    assert (member.version, member.frontier.dots()) == (0, [])
    assert member.last_dots == [None] * len(NAMES)
    assert ranks.row("loaded")["frontier"] is None
    retold = ranks.row("saved")
    assert (retold["source_run"], retold["frontier"]) == ("before", None)
    ranks.fake.recorder.rows.clear()
    told = ranks.checkpoints.saved("step-15", True, None, None, None)
    assert (told["lineage"], told["frontier"]) == ("now", [])


def test_what_all_say_is_counted_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(monkeypatch)
    loads = [load(version=5, frontier=[Dot(0, 0, 20)]), load()]
    ranks.checkpoints.go_on_from(loads)
    member = ranks.fake.member
    assert (member.version, member.frontier.dots()) == (10, ENDED)
    assert member.open_dots()[0] == Dot(0, 0, 41)
    ranks.checkpoints.loaded(loads[0])
    assert ranks.row("loaded")["frontier"] is None, "what came after it is in force"
    ranks.fake.recorder.rows.clear()
    ranks.checkpoints.loaded(loads[1])
    assert ranks.row("loaded")["frontier"] == ranks.row("saved")["frontier"] == ENDED
    assert ranks.checkpoints.saved("step-15", True, None, None, None)["lineage"] == "first"


def test_another_model_counts_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks(monkeypatch)
    ranks.checkpoints.go_on_from([load(identity="n")])
    assert ranks.fake.member.frontier.dots() == []
