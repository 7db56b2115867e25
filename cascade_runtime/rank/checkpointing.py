"""Rows of checkpoints that are saved and loaded, and counters that go on where a checkpoint ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeGuard

import msgspec
import xxhash

from cascade_runtime.checkpoints.loads import Load, rng_digest
from cascade_runtime.checkpoints.records import Record, write_record
from cascade_runtime.rank.going_on import start_of
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
        self._start: Load | None = None
        """What this run counts on from."""

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
        self._saved_row(record, record.frontier, durable)
        told: dict[str, Any] = msgspec.to_builtins(record)
        return told

    @guarded()
    def go_on_from(self, loads: list[Load]) -> None:
        """Count on from the last of these that is another run's; all ranks do so, before the first view."""
        starts = [(load, start_of(load)) for load in loads]
        for load, start in reversed(starts):
            if self._is_foreign(start):
                self._start = load if self._count_on(start) else None
                return

    @guarded()
    def loaded(self, load: Load) -> None:
        """A ``loaded`` row, after those of what was saved in another run and is needed to judge it.

        Frontiers of another run are left out where this one does not count on from there: the same
        dots are other updates here.
        """
        mine = load.mine or Record()
        frontier = mine.frontier if load.mine is not None else None
        if self._is_foreign(mine):
            self._retell(load, mine)
            frontier = mine.frontier if load is self._start else None
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
                frontier = record.frontier if load is self._start else None
                self._saved_row(record, frontier, durable=True, retold=True)

    def _is_foreign(self, record: Record | None) -> TypeGuard[Record]:
        return record is not None and record.run_id not in ("", self._recorder.run_id)

    def _count_on(self, record: Record) -> bool:
        member, dots = self._member, record.last_dots
        if record.identity != self._objects.identity() or len(dots) != len(self._objects.names):
            return False
        # Only of such a run are later checkpoints further ahead by the same counters.
        self._lineage = record.lineage or self._lineage
        member.stand(member.decided, record.version, Clock(record.frontier), list(dots))
        return True

    def _params_digest(self) -> str:
        digest = xxhash.xxh3_128()
        for index in range(self._objects.num_params):
            digest.update(self._objects.digest(index).encode())
        return digest.hexdigest()

    def _saved_row(
        self, record: Record, frontier: list[Dot] | None, durable: bool, *, retold: bool = False
    ) -> None:
        self._recorder.row(
            Checkpoints,
            action="saved",
            checkpoint_id=record.checkpoint_id,
            durable=durable,
            scope="group",
            frontier=frontier,
            world_size=record.world_size,
            params_digest=record.params_digest,
            optim_digest=record.optim_digest,
            rng_digest=record.rng_digest,
            data_position=record.data_position,
            data_shard=record.data_shard,
            source_run=record.run_id if retold else None,
            source_rank=record.rank if retold else None,
        )
