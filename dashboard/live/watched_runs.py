"""All runs of a data folder under analysis: live ones first, and none can stop the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from cascade_runtime.vocabulary.errors import CascadeError
from collector.data_folder import runs_folder
from collector.sql.views_file import write_views_file
from collector.trace.segment_cache import CacheBudget
from dashboard.live.run_watch import RunWatch

CACHE_BYTES = 2 << 30
"""Columns of live runs that are kept, over all runs."""


class WatchedRuns:
    """Judges what has changed in a data folder.

    Args:
        data: the data folder.
        say: tells the person one line.
        goes_on: asked after each judgement; when it says no, ``look`` returns.
        cache_bytes: of columns that are kept, over all runs.
    """

    def __init__(
        self,
        data: Path,
        say: Callable[[str], None],
        goes_on: Callable[[], bool] = lambda: True,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._data = data
        self._say = say
        self._goes_on = goes_on
        self._budget = CacheBudget(cache_bytes)
        self._watches: dict[Path, RunWatch] = {}
        self._told: dict[Path | None, str] = {}
        self._views_are_old = False

    def look(self) -> None:
        """Judge all runs that have changed and are due, live ones between any two others."""
        self._refresh()
        self._judge_live()
        others = [watch for watch in self._watches.values() if not watch.is_live(time.time())]
        for watch in sorted(others, key=RunWatch.described_ns, reverse=True):
            if not self._goes_on():
                return
            if self._judge(watch):
                self._refresh()  # a job may have started meanwhile
                self._judge_live()
        if self._views_are_old:
            self._renew_views()

    def _judge_live(self) -> None:
        for watch in list(self._watches.values()):
            if watch.is_live(time.time()) and self._goes_on():
                self._judge(watch)

    def _judge(self, watch: RunWatch) -> bool:
        """Whether there was something to do."""
        if watch.due_s(time.monotonic()) > 0:
            return False
        try:
            if not watch.judge():
                return False
        except Exception as error:  # of one run: the others go on
            if watch.root.exists():
                self._tell(watch.root, f"run {watch.root.name} cannot be judged: {_line(error)}")
            return True
        if not self._views_are_old:  # then they wait for the end of this look
            self._renew_views()  # a result table may have got its first file
        if watch.verdict == "violated" or not watch.is_preliminary:
            self._tell(watch.root, f"run {watch.root.name}: {watch.verdict}")
        return True

    def _renew_views(self) -> None:
        self._views_are_old = True
        try:
            write_views_file(self._data)
        except Exception as error:  # tried again at the next look
            self._tell(None, f"views.duckdb was not renewed: {_line(error)}")
            return
        self._views_are_old = False
        self._told.pop(None, None)

    def _refresh(self) -> None:
        """Watch new runs, leave those that were dropped."""
        roots = _roots(self._data)
        for gone in self._watches.keys() - roots:
            self._watches.pop(gone).close()
            self._told.pop(gone, None)
        for root in sorted(roots - self._watches.keys()):
            self._watches[root] = RunWatch(root, budget=self._budget)

    def _tell(self, about: Path | None, text: str) -> None:
        if self._told.get(about) != text:
            self._told[about] = text
            self._say(text)


def _roots(data: Path) -> set[Path]:
    try:
        entries = list(runs_folder(data).resolve().iterdir())
    except OSError:
        return set()
    return {entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")}


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, CascadeError | OSError):
        return text
    return f"{type(error).__name__}: {text}"
