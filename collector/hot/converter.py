"""The converter thread: makes columns of new rows soon, so that a question finds little left to do."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import NamedTuple

from collector.hot.asking import Asking
from collector.hot.catalog import Catalog
from collector.hot.run import Run

EVERY_S = 0.1
LEAST_ROWS = 16_384
"""Rows of a run that are converted when nobody asked lately. A call costs 5 ms however few they are."""

LONGEST_PAUSE_S = 300.0
"""Between two tries of rows that cannot be converted."""

_log = logging.getLogger("cascade.store")


class _Failed(NamedTuple):
    pause_s: float
    not_before_s: float


class Converter:
    """Turns scanned batches into columns, in pieces.

    Without questions that costs nothing: the publisher would have to do the same, all at once. With
    them the pieces are as small as the time between two of them.

    Args:
        catalog: of the store.
        asking: tells whether there are questions.
    """

    def __init__(self, catalog: Catalog, asking: Asking) -> None:
        self._catalog = catalog
        self._asking = asking
        self._failed: weakref.WeakKeyDictionary[Run, _Failed] = weakref.WeakKeyDictionary()
        self._stored = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cascade-converter", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Rows were stored."""
        self._stored.set()

    def stop(self, deadline_s: float) -> None:
        """End the thread; who asks or publishes converts for himself."""
        self._stopping.set()
        self._stored.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while True:
            self._stored.wait()
            if self._stopping.wait(EVERY_S):
                return
            self._stored.clear()
            self._asking.give_way()
            least = 1 if self._asking.lately else LEAST_ROWS
            for run in self._catalog.all():
                if run.rows.num_waiting >= least:
                    self._convert(run)

    def _convert(self, run: Run) -> None:
        """One run's rows. Those that cannot be converted are told once and tried more and more seldom."""
        failed = self._failed.get(run)
        if failed is not None and time.monotonic() < failed.not_before_s:
            return
        try:
            run.rows.convert_waiting()
        except Exception as error:  # it will fail for whoever needs the rows, and is told there
            if failed is None:
                _log.error("rows of run %s cannot be converted", run.run_id[:100], exc_info=error)
            pause_s = EVERY_S if failed is None else failed.pause_s
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._failed[run] = _Failed(pause_s, time.monotonic() + pause_s)
        else:
            self._failed.pop(run, None)
