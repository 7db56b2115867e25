"""The batches of one commit on their way through the sieve; all of it can be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from cascade_runtime.vocabulary.events import CollectiveDone
from collector.doorway import key_of
from collector.hot.bridge import bridge
from collector.hot.catalog import Catalog
from collector.hot.done_keys import DoneKeys
from collector.hot.journal import RunRow
from collector.hot.run import Run
from collector.hot.scanned import actors_of_each, new_stretches, scan_completions
from collector.hot.sift import ActorKey, Part, Told, sift
from collector.hot.spans import Known, Spans
from collector.wire.batch import BadBatch, Batch, Scan
from collector.wire.unread import join

MOST_RUNS = 16
"""Runs of one batch. Each new one is a folder and a row for good, so a mistake shall not make thousands."""


@dataclass
class _Touched:
    """What was changed, as it was before."""

    known: dict[ActorKey, Known | None] = field(default_factory=dict)
    damaged: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    new_runs: list[RunRow] = field(default_factory=list)
    bridges: list[Part] = field(default_factory=list)
    done: DoneKeys = field(default_factory=DoneKeys)


class Group:
    """Sifts batches against what is stored and against each other.

    Args:
        catalog: of the store; new runs are made in it.
        wall_ns: the time now.

    Attributes:
        parts: what the batches of the group bring, gaps rows for holes of a recovery first.
    """

    def __init__(self, catalog: Catalog, wall_ns: int) -> None:
        self._catalog = catalog
        self._wall_ns = wall_ns
        self._all = _Touched()
        self._now = _Touched()
        self._parts: list[Part] = []

    @property
    def parts(self) -> list[Part]:
        """New rows, gaps rows for the holes of a recovery first."""
        return [*self._all.bridges, *(part for part in self._parts if part.num_rows)]

    @property
    def new_runs(self) -> list[RunRow]:
        """Runs that the journal does not have yet."""
        return self._all.new_runs

    def sift(self, batch: Batch) -> list[Part]:
        """The new rows of a batch; when it fails, nothing of the batch is left in the group.

        Raises:
            RunDropped: it has rows of a run that was dropped.
        """
        self._now = _Touched()
        try:
            parts = self._sift(batch)
        except BaseException:
            self._undo(self._now)
            raise
        self._keep(parts)
        return parts

    def sift_together(self, batches: Sequence[Batch]) -> list[Told] | None:
        """Sift several batches as one, which costs little more than one does.

        Args:
            batches: scanned, all of one run.

        Returns:
            What is told of each. None, and nothing is changed, when not all of their rows are new and
            in order: some of them must be sifted by themselves.

        Raises:
            RunDropped: their run was dropped; nothing is changed.
        """
        whole = join(batches)
        assert whole.scan is not None
        self._now = _Touched()
        try:
            run, row = self._catalog.make(whole.scan.run_id, self._wall_ns)
            if row is not None:
                self._now.new_runs.append(row)
            part = None if run.damaged else self._sift_scan(whole, whole.scan)
        except BaseException:
            self._undo(self._now)
            raise
        if part is None:
            self._undo(self._now)
            return None
        self._keep([part])
        nums = [batch.num_rows for batch in batches]
        actors = actors_of_each(whole.scan, nums)
        return [Told(part.run_id, num, 0, a) for num, a in zip(nums, actors, strict=True)]

    def _keep(self, parts: list[Part]) -> None:
        """What was touched is part of the group now."""
        for key, known in self._now.known.items():
            self._all.known.setdefault(key, known)
        for run_id, damaged in self._now.damaged.items():
            self._all.damaged.setdefault(run_id, damaged)
        self._all.new_runs += self._now.new_runs
        self._all.bridges += self._now.bridges
        self._all.done.add_all(self._now.done)
        self._parts += parts

    def undo(self) -> None:
        """The commit failed: all is as it was."""
        self._undo(self._all)

    def _sift(self, batch: Batch) -> list[Part]:
        for run_id in _runs_of(batch):
            run, row = self._catalog.make(run_id, self._wall_ns)
            if row is not None:
                self._now.new_runs.append(row)
            if run.damaged:
                self._now.damaged[run_id] = set(run.damaged)
                self._now.bridges += bridge(run, batch, partial(self._known, run_id))
        scanned = None if batch.scan is None else self._sift_scan(batch, batch.scan)
        if scanned is not None:
            return [scanned]
        parts = sift(batch, self._spans, self._wants_done)
        for part in parts:
            self._catalog.find(part.run_id).cover(part)
        return parts

    def _sift_scan(self, batch: Batch, scan: Scan) -> Part | None:
        """The whole batch, where all of it is new and in order; None where that must be looked into.

        So it nearly always is, and then no record needs to be made.
        """
        run = self._catalog.find(scan.run_id)
        stretches = new_stretches(scan)
        if stretches is None or self._now.damaged:
            return None
        completes = scan_completions(scan)
        known = [self._known_of(run, actor).stored for actor, _, _ in stretches]
        if not all(
            mine.is_free(first, last)
            for mine, (_, first, last) in zip(known, stretches, strict=True)
        ):
            return None
        before = set(completes.before)
        if completes.is_twice or len(before) < len(completes.before):
            return None
        if self._all.done.has_any(run.run_id, completes):
            return None  # by a batch of this very group, unknown to the hot rows so far
        if not all(run.rows.is_open((run.run_id, *place)) for place in before):
            return None
        for mine, (_, first, last) in zip(known, stretches, strict=True):
            mine.add(first, last)
        self._now.done.add_scanned(run.run_id, completes)
        actors = list(dict.fromkeys([*(s[0] for s in stretches), *(p[:2] for p in before)]))
        num = len(scan.kinds)
        return Part(
            run.run_id, batch.media_type, batch.body, None, None, num, 0, actors,
            completes.num, scan, completes,
        )  # fmt: skip

    def _undo(self, touched: _Touched) -> None:
        for (run_id, *actor), known in touched.known.items():
            run = self._catalog.find(run_id)
            if known is None:
                run.known.pop((actor[0], actor[1]), None)
            else:
                run.known[actor[0], actor[1]] = known
        for run_id, damaged in touched.damaged.items():
            self._catalog.find(run_id).damaged = damaged
        for row in touched.new_runs:
            self._catalog.forget(row.run_id)

    def _spans(self, key: ActorKey) -> Spans:
        return self._known(key[0], key[1:]).stored

    def _known(self, run_id: str, actor: tuple[int, int]) -> Known:
        return self._known_of(self._catalog.find(run_id), actor)

    def _known_of(self, run: Run, actor: tuple[int, int]) -> Known:
        """What is known of an actor; how it was before is kept."""
        key = (run.run_id, *actor)
        if key not in self._now.known:
            known = run.known.get(actor)
            self._now.known[key] = None if known is None else known.copy()
        return run.known_of(actor)

    def _wants_done(self, done: CollectiveDone) -> bool:
        """True for a completion that says something new."""
        key = key_of(done)
        if key in self._all.done or key in self._now.done:
            return False
        actor = (done.run_id, done.rank, done.incarnation)
        rows = self._catalog.find(done.run_id).rows
        if done.seq in self._spans(actor):
            # Its row waits for it, or came in this very group and is not among the hot rows yet.
            wanted = rows.is_open(key) or not self._was_stored(actor, done.seq)
        else:
            wanted = not rows.is_orphan(key)
        if wanted:
            self._now.done.add(key)
        return wanted

    def _was_stored(self, actor: ActorKey, seq: int) -> bool:
        before = self._all.known.get(actor, self._now.known.get(actor))
        return before is not None and seq in before.stored


def _runs_of(batch: Batch) -> list[str]:
    """In the order in which they come.

    Raises:
        BadBatch: more than ``MOST_RUNS``.
    """
    if batch.scan is not None:
        return [batch.scan.run_id]
    if batch.records is not None:
        runs = list(dict.fromkeys(record.run_id for record in batch.records))
    else:
        tables = (batch.tables or {}).values()
        named = (run_id for rows in tables for run_id in rows["run_id"].unique().to_pylist())
        runs = list(dict.fromkeys(named))
    if len(runs) > MOST_RUNS:
        raise BadBatch(
            f"this batch names {len(runs)} runs, more than {MOST_RUNS}",
            where="body",
            hint="send a batch a run",
        )
    return runs
