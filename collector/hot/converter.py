"""The converter thread: makes columns of new rows soon, so that a question finds little left to do."""

from __future__ import annotations

import logging
import threading

from collector.hot.asking import Asking
from collector.hot.catalog import Catalog

EVERY_S = 0.1
LEAST_ROWS = 16_384
"""Rows of a run that are converted when nobody asked lately. A call costs 5 ms however few they are."""

_log = logging.getLogger("cascade.store")


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
                try:
                    if run.rows.num_waiting >= least:
                        run.rows.convert_waiting()
                except Exception:  # it will fail for whoever needs the rows, and is told there
                    _log.exception("rows of run %s cannot be converted", run.run_id[:100])
