"""Processes that share keys in one process, with the rows that real ones write, for the referee."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from analyzer import analyze
from cascade_runtime.agent.trace_file import RECORDED_TABLES
from cascade_runtime.recorder import Recorder
from cascade_runtime.state.replica import Replica, Update
from cascade_runtime.state.rows import StateRows
from cascade_runtime.vocabulary.events import SCHEMA_VERSION, Actors
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.report import Report
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta
from collector.trace.trace_folder import open_trace


class Naive(Replica):
    """Applies whatever comes, as often as it comes, and what came last stands."""

    def __init__(self) -> None:
        super().__init__(causal=False)
        self.last: dict[tuple[str, str], Update] = {}

    def entry(self, state: str, key: str) -> Update | None:
        return self.last.get((state, key))

    def put(self, author: Actor, state: str, key: str, value: bytes) -> Update:
        update = super().put(author, state, key, value)
        self.last[(state, key)] = update
        return update

    def receive(self, update: Update) -> list[Update]:
        super().receive(update)
        self.last[(update.state, update.key)] = update
        return [update]


class Process:
    """One of them."""

    def __init__(self, folder: Path, rank: int, replica: Replica) -> None:
        self.actor = Actor(rank)
        self.replica = replica
        self.recorder = Recorder(folder / "spool", "run", self.actor)
        self.recorder.row(Actors, name=f"rank {rank}", kind="rank", host="h", pid=rank)
        self.rows = StateRows(self.recorder)

    def put(self, key: str, state: str = "plan") -> Update:
        value = b"%d" % self.recorder.seq
        update = self.replica.put(self.actor, state, key, value)
        self.rows.issued(update, state)
        return update

    def receive(self, *updates: Update) -> None:
        for update in updates:
            self.rows.applied(self.replica.receive(update))

    def read(self, key: str, use: str = "observe", state: str = "plan") -> int:
        """Returns the seq of its row."""
        self.rows.read(state, key, state, use, self.replica.entry(state, key))
        return self.recorder.seq - 1

    def act(self, key: str) -> int:
        return self.read(key, "act")


class Group:
    """All of them, and the verdict on what they did."""

    def __init__(self, folder: Path, replicas: Iterable[Replica]) -> None:
        self._folder = folder
        self.processes = [Process(folder, rank, r) for rank, r in enumerate(replicas)]

    def report(self) -> Report:
        for process in self.processes:
            process.recorder.close()
        meta = TraceMeta(
            schema_version=SCHEMA_VERSION, run_id="run", name="keys", world_size=len(self.processes),
            mode="enforce", policy=None, created_ns=1, ended_ns=time.time_ns(), clean_end=True,
            recorded_tables=RECORDED_TABLES, tool_versions={},
        )  # fmt: skip
        (self._folder / "trace.json").write_bytes(format_trace_meta(meta))
        with open_trace(self._folder) as source:
            return analyze(source).report


def found(report: Report) -> set[tuple[str, int, int]]:
    """(code, rank, seq) of each violation."""
    return {(v.code, v.rank, v.seq) for v in report.violations}
