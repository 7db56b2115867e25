"""The tiles of one run: built in a thread of their own while somebody looks, and drawn at once."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cascade_runtime.vocabulary.errors import CascadeError
from dashboard.tiles.builder import Builder, Building
from dashboard.tiles.encode import encoded, pixel_bounds
from dashboard.tiles.source import RowSource

LOOK_S = 30.0
"""A look is good for so long: then nothing is read any more until the next."""

PAUSE_S = 0.2
SHARE = 4
"""Pauses take so many times as long as reading."""

FIRST_S = 0.5
"""The first tile may wait so long, so that a small run is not shown empty."""

RETRY_S = 5.0

_log = logging.getLogger(__name__)


class RunTiles:
    """Draws windows of one run. Safe to call from several threads.

    Args:
        source: the run; not kept alive.
        cache: the folder that holds what was built of saved traces; None for the user's own.
        mono_s: the clock.
    """

    def __init__(
        self,
        source: RowSource,
        cache: Path | None = None,
        mono_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = weakref.ref(source)
        self._drawing = threading.RLock()
        self._builder = Builder(self._drawing, cache)
        self._made = os.urandom(4).hex()
        self._mono_s = mono_s
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._looked_s = -LOOK_S
        self._stopping = threading.Event()
        self._first = threading.Event()
        self._told = False

    @property
    def version(self) -> str:
        """Changes with the content."""
        return f"{self._made}.{self._builder.generation}"

    @property
    def building(self) -> Building | None:
        """What is being read now; None when nothing is being read."""
        return None if self._thread is None else self._builder.building

    def look(self) -> None:
        """Somebody looks: keep up with the run for the next half minute."""
        source = self._source()
        if source is None or self._stopping.is_set():
            return
        with self._lock:
            self._looked_s = self._mono_s()
            if self._thread is None and (source.is_live or not self._builder.is_done(source)):
                self._thread = threading.Thread(
                    target=self._keep, name="cascade-tiles", daemon=True
                )
                self._thread.start()

    def tile(
        self, a: int, b: int, w: int, lanes: Sequence[str], ranks: Sequence[int] | None = None
    ) -> bytes:
        """The body of the tile route (encode.encoded).

        Args:
            a: where the window begins, ns since t0.
            b: where it ends, above a.
            w: pixels.
            lanes: of content.LANES.
            ranks: whose rows, in this order; all ranks when not given.
        """
        self.look()
        self._first.wait(FIRST_S)
        with self._drawing:
            content = self._builder.shown
            rows = content.shown_ranks() if ranks is None else list(ranks)
            layers = content.layers(lanes, rows, pixel_bounds(a, b, w))
            building = self.building
            head = {
                "a": a,
                "b": b,
                "w": w,
                "version": self.version,
                "upto_ns": content.upto_ns,
                "source": content.kind,
                "building": None if building is None else building._asdict(),
            }
        return encoded(head, layers)

    def window_sums(self, a: int, b: int) -> dict[int, tuple[float, float]]:
        """By rank: seconds waited and seconds of others' waits caused inside a..b, exact."""
        self.look()
        self._first.wait(FIRST_S)
        with self._drawing:
            content = self._builder.shown
            waited, caused = content.waits.waited.sums(a, b), content.waits.caused.sums(a, b)
            ranks = sorted({*content.shown_ranks(), *waited, *caused})
        return {r: (waited.get(r, 0) / 1e9, caused.get(r, 0) / 1e9) for r in ranks}

    def wait(self, timeout_s: float) -> bool:
        """Wait until all that was stored is in; False when it is not by then."""
        self.look()
        until = self._mono_s() + timeout_s
        while (source := self._source()) is not None and self._mono_s() < until:
            if self._builder.is_done(source):
                return True
            self._stopping.wait(0.01)
        return False

    def close(self) -> None:
        """Stop building; what was built can still be drawn."""
        self._stopping.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(RETRY_S)

    def _keep(self) -> None:
        while True:
            pause = self._update()
            self._first.set()
            if pause is not None:
                self._stopping.wait(pause)
            with self._lock:
                idle = self._mono_s() - self._looked_s > LOOK_S
                if pause is None or idle or self._stopping.is_set():
                    self._thread = None
                    return

    def _update(self) -> float | None:
        """Read once; how long to pause then, None when there is nothing more to be done."""
        source = self._source()
        if source is None:
            return None
        began = self._mono_s()
        try:
            self._builder.update(source, self._stopping)
        except Exception as error:  # whatever it is: the rest of the picture stays
            known = isinstance(error, CascadeError)
            if not self._told:
                what = "the lanes of run %s cannot be built: %s"
                _log.warning(what, source.run_id, error, exc_info=None if known else error)
            self._told = True
            return RETRY_S
        self._told = False
        if not source.is_live and self._builder.is_done(source):
            return None
        return max(PAUSE_S, SHARE * (self._mono_s() - began))


_made: weakref.WeakKeyDictionary[Any, RunTiles] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def tiles_of(source: RowSource) -> RunTiles:
    """The tiles of a source; the same ones for as long as the source lives."""
    with _making:
        if source not in _made:
            _made[source] = RunTiles(source)
        return _made[source]
