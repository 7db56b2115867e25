"""Opens runs: those of a collector's store, or one trace."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from collector.storage._interface import EventStore, NoSuchRun
from dashboard.story.live_source import LiveRun
from dashboard.story.source import RunSource, RunSources
from dashboard.story.trace_source import TraceRun
from dashboard.tiles import stop_tiles_of

MAX_HELD = 32
"""Runs of a store whose sources are kept; the one that was not asked for longest goes."""


class StoreSources:
    """``RunSources`` over an event store."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._held: OrderedDict[str, LiveRun] = OrderedDict()

    def get(self, run_id: str) -> RunSource:
        """See RunSources."""
        try:
            self._store.run(run_id)  # it may have been dropped
        except NoSuchRun:
            with self._lock:
                self._held.pop(run_id, None)
            raise
        with self._lock:
            if run_id not in self._held:
                self._held[run_id] = LiveRun(self._store, run_id)
            self._held.move_to_end(run_id)
            while len(self._held) > MAX_HELD:
                self._held.popitem(last=False)
            return self._held[run_id]

    def close(self) -> None:
        """See RunSources."""
        with self._lock:
            held = list(self._held.values())
            self._held.clear()
        for source in held:
            stop_tiles_of(source)
            source.close()


class TraceSources:
    """``RunSources`` over one trace; its source is in ``only``."""

    def __init__(self, only: TraceRun) -> None:
        self.only = only

    def get(self, run_id: str) -> RunSource:
        """See RunSources."""
        if run_id != self.only.run_id:
            raise NoSuchRun(
                "there is no run of that id here",
                where=run_id[:200],
                hint=f"this trace is of run {self.only.run_id}",
            )
        return self.only

    def close(self) -> None:
        """See RunSources."""
        stop_tiles_of(self.only)
        self.only.close()


def sources_of_store(store: EventStore) -> RunSources:
    """All runs of a store, those that come later too."""
    return StoreSources(store)


def sources_of_trace(path: str | Path) -> TraceSources:
    """The one run of a trace: a folder, a ``.cascade.zip``, or the name of a packaged sample.

    Raises:
        BadTrace: there is no such trace, or it is damaged.
    """
    return TraceSources(TraceRun(path))
