"""Rows of checkpoints that are saved and loaded, and counters that go on where a checkpoint ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import xxhash

from cascade_runtime.checkpoints.loads import Load, rng_digest
from cascade_runtime.checkpoints.records import Record, write_record
from cascade_runtime.rank.guard import guarded
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Checkpoints
from cascade_runtime.vocabulary.identity import Clock, Dot


class Checkpointing:
    """One rank's checkpoints. A failure here costs a row, never the step."""

    def __init__(self, member: Member, objects: ModelObjects, recorder: Recorder) -> None:
        self._member = member
        self._objects = objects
        self._recorder = recorder
        self._lineage = recorder.run_id

    @guarded(default={})
    def saved(
        self,
        checkpoint_id: str,
        durable: bool,
        folder: Path | None,
        data_position: int | None,
        data_shard: str | None,
    ) -> dict[str, Any]:
        """A ``saved`` row, with the record in ``folder`` before it; returns the record as plain data."""
        member, objects = self._member, self._objects
        record = Record(
            run_id=self._recorder.run_id,
            rank=member.actor.rank,
            checkpoint_id=checkpoint_id,
            lineage=self._lineage,
            identity=objects.identity(),
            frontier=member.frontier.dots(),
            last_dots=list(member.last_dots),
            version=member.version,
            world_size=len(member.view.members),
            params_digest=self._params_digest(),
            optim_digest=objects.digest(len(objects.names) - 1),
            rng_digest=rng_digest(),
            data_position=data_position,
            data_shard=data_shard,
        )
        if folder is not None:
            write_record(folder, record)
        self._saved_row(record, durable)
        told: dict[str, Any] = msgspec.to_builtins(record)
        return told

    @guarded()
    def loaded(self, load: Load) -> None:
        """A ``loaded`` row, after those of what was saved in another run and is needed to judge it."""
        mine = load.mine or Record()
        foreign = mine.run_id not in ("", self._recorder.run_id)
        frontier: list[Dot] | None = mine.frontier
        if foreign:
            self._retell(load, mine)
            self._lineage = mine.lineage or self._lineage
            frontier = mine.frontier if self._go_on_from(mine) else None
        elif load.mine is None:
            frontier = None
        self._recorder.row(
            Checkpoints,
            action="loaded",
            checkpoint_id=load.checkpoint_id,
            durable=True,
            scope="group",
            frontier=frontier,
            world_size=mine.world_size,
            params_digest=self._params_digest(),
            optim_digest=self._objects.digest(len(self._objects.names) - 1),
            rng_digest=load.rng_digest,
            data_position=load.data_position,
            data_shard=load.data_shard,
        )

    def _retell(self, load: Load, mine: Record) -> None:
        """The rows of another run that this rank, or nobody here, has to tell again."""
        members = self._member.view.members
        here = {m.rank for m in members}
        gone = load.others if self._member.actor == min(members) else []
        for record in (load.newer, mine, *(r for r in gone if r.rank not in here)):
            if record is not None:
                self._saved_row(record, durable=True, retold=True)

    def _go_on_from(self, record: Record) -> bool:
        """Count on from a checkpoint of another run, before the first step; False where it cannot be."""
        member = self._member
        if member.decided or member.frontier.dots() or record.identity != self._objects.identity():
            return False
        dots = record.last_dots
        if len(dots) != len(self._objects.names):
            return False
        member.stand(member.decided, record.version, Clock(record.frontier), list(dots))
        return True

    def _params_digest(self) -> str:
        digest = xxhash.xxh3_128()
        for index in range(self._objects.num_params):
            digest.update(self._objects.digest(index).encode())
        return digest.hexdigest()

    def _saved_row(self, record: Record, durable: bool, *, retold: bool = False) -> None:
        self._recorder.row(
            Checkpoints,
            action="saved",
            checkpoint_id=record.checkpoint_id,
            durable=durable,
            scope="group",
            frontier=record.frontier,
            world_size=record.world_size,
            params_digest=record.params_digest,
            optim_digest=record.optim_digest,
            rng_digest=record.rng_digest,
            data_position=record.data_position,
            data_shard=record.data_shard,
            source_run=record.run_id if retold else None,
            source_rank=record.rank if retold else None,
        )
