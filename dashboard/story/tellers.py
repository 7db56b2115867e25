"""Who tells the story of which run, kept between requests."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

from dashboard.story.source import RunSources
from dashboard.story.teller import Teller

MAX_HELD = 16
"""Runs whose story is kept in memory."""


class Tellers:
    """One teller a run.

    Args:
        sources: the runs.
    """

    def __init__(self, sources: RunSources) -> None:
        self._sources = sources
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Teller] = OrderedDict()

    def of(self, run_id: str) -> Teller:
        """The teller of a run.

        Raises:
            NoSuchRun: there is none of that id.
        """
        source = self._sources.get(run_id)
        with self._lock:
            held = self._held.get(run_id)
            if held is None or held.source is not source:  # dropped, and there again
                held = self._held[run_id] = Teller(source)
            self._held.move_to_end(run_id)
            while len(self._held) > MAX_HELD:
                self._held.popitem(last=False)
            return held


_made: weakref.WeakKeyDictionary[RunSources, Tellers] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def tellers_of(sources: RunSources) -> Tellers:
    """The tellers of these runs; the same ones for as long as the sources live."""
    with _making:
        if sources not in _made:
            _made[sources] = Tellers(sources)
        return _made[sources]
