"""The tiles of one run: built in a thread of their own while somebody looks, and drawn at once."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cascade_runtime.vocabulary.errors import CascadeError
from dashboard.tiles.background import in_background
from dashboard.tiles.builder import Builder, Building
from dashboard.tiles.content import Kind
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

_NEW = Building(0.0, "reading what is new")

_log = logging.getLogger(__name__)


class WindowSums(NamedTuple):
    """What the lanes of waits hold of a window.

    Attributes:
        by_rank: seconds waited, and seconds of others' waits caused.
        kind: judged or provisional, as in content.Kind.
        upto_ns: time since t0 that rows were read to.
        building: what is still being read; None when nothing is.
    """

    by_rank: dict[int, tuple[float, float]]
    kind: Kind
    upto_ns: int
    building: Building | None


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
        self._stopping = stopping = threading.Event()
        self._source = weakref.ref(source, lambda _: stopping.set())
        self._drawing = threading.RLock()
        self._builder = Builder(self._drawing, cache)
        self._made = os.urandom(4).hex()
        self._mono_s = mono_s
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._looked_s = -LOOK_S
        self._was_looked_at = False
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
            self._was_looked_at = True
            if self._thread is None and (source.is_live or not self._builder.is_done(source)):
                self._thread = threading.Thread(
                    target=self._keep, name="cascade-tiles", daemon=True
                )
                self._thread.start()

    def keep_up(self, *, grows: bool) -> Building | None:
        """A page is open, whether it asks for tiles or not: what is still being read of its run.

        A run that does not grow any more may have been judged since the last tile: then its lanes are
        brought up to date, and the page is told to go on asking until they are.

        Args:
            grows: rows are expected, so that there is always something left to read.
        """
        source = self._source()
        if source is None or self._builder.is_done(source):
            return self.building
        if not grows or self._was_looked_at:
            self.look()
        return self._unread(source, grows=grows)

    def _unread(self, source: RowSource | None, *, grows: bool) -> Building | None:
        """What is missing in what is shown; of a run that grows there is always something, and it is not told."""
        if source is None or grows or self._stopping.is_set() or self._builder.is_done(source):
            return self.building
        # A thread that just begins has not said yet what it reads.
        return self.building or _NEW

    def tile(
        self,
        a: int,
        b: int,
        w: int,
        lanes: Sequence[str],
        ranks: Sequence[int] | None = None,
        t0: int | None = None,
    ) -> bytes:
        """The body of the tile route (encode.encoded).

        Args:
            a: where the window begins, ns since t0.
            b: where it ends, above a.
            w: pixels.
            lanes: of content.LANES.
            ranks: whose rows, in this order; all ranks when not given.
            t0: the wall clock that a and b count from; the run's as it is known now when not given.
        """
        self.look()
        self._first.wait(FIRST_S)
        missing = self._missing()
        with self._drawing:
            content = self._builder.shown
            rows = content.shown_ranks() if ranks is None else list(ranks)
            t0, shift = self._shift(t0)
            layers = content.layers(lanes, rows, pixel_bounds(a + shift, b + shift, w))
            head = {
                "a": a,
                "b": b,
                "w": w,
                "version": self.version,
                "t0_ns": str(t0),
                "upto_ns": content.upto_ns - shift,
                "source": content.kind,
                "building": None if missing is None else missing._asdict(),
            }
        return encoded(head, layers)

    def num_ranks(self) -> int:
        """How many rows a tile has when none are asked for."""
        with self._drawing:
            return len(self._builder.shown.shown_ranks())

    def _shift(self, t0: int | None) -> tuple[int, int]:
        """t0, and what is added to a time since then to make it one of what is shown."""
        source = self._source()
        if t0 is None:
            t0 = self._builder.shown.t0 if source is None else self._builder.t0(source)
        return t0, t0 - self._builder.shown.t0

    def window_sums(self, a: int, b: int) -> dict[int, tuple[float, float]]:
        """By rank: seconds waited and seconds of others' waits caused inside a..b, exact."""
        return self.window(a, b).by_rank

    def window(self, a: int, b: int, t0: int | None = None) -> WindowSums:
        """The same, and what it was read from; ``t0`` as in ``tile``."""
        self.look()
        self._first.wait(FIRST_S)
        missing = self._missing()
        with self._drawing:
            content = self._builder.shown
            _, shift = self._shift(t0)
            a, b = a + shift, b + shift
            waited, caused = content.waits.waited.sums(a, b), content.waits.caused.sums(a, b)
            ranks = sorted({*content.shown_ranks(), *waited, *caused})
            by_rank = {r: (waited.get(r, 0) / 1e9, caused.get(r, 0) / 1e9) for r in ranks}
            return WindowSums(by_rank, content.kind, content.upto_ns - shift, missing)

    def _missing(self) -> Building | None:
        """What is not in yet, before something is drawn: what is read meanwhile is then in it, and no more."""
        source = self._source()
        return self._unread(source, grows=source is not None and source.is_open())

    def wait(self, timeout_s: float) -> bool:
        """Wait until all that was stored is in; False when it is not by then."""
        self.look()
        until = self._mono_s() + timeout_s
        while (source := self._source()) is not None and self._mono_s() < until:
            if self._builder.is_done(source):
                return True
            self._stopping.wait(0.01)
        return False

    def stop(self) -> None:
        """Build no more; what was built can still be drawn. Does not wait."""
        self._stopping.set()

    def close(self) -> None:
        """The same, and wait for the thread that builds."""
        self.stop()
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
            with in_background():
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
        if not source.is_open():
            return PAUSE_S  # it was judged meanwhile, or will be: nothing comes that reading would be in the way of
        return max(PAUSE_S, SHARE * (self._mono_s() - began))


_made: weakref.WeakKeyDictionary[Any, RunTiles] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def tiles_of(source: RowSource) -> RunTiles:
    """The tiles of a source; the same ones for as long as the source lives."""
    with _making:
        if source not in _made:
            _made[source] = RunTiles(source)
        return _made[source]


@atexit.register
def _stop_all() -> None:
    """A thread that is inside the database when the interpreter goes would bring the process down."""
    with _making:
        made = list(_made.values())
    for tiles in made:
        tiles.stop()
    for tiles in made:
        tiles.close()


def stop_tiles_of(source: RowSource) -> None:
    """Nobody looks at this source any more: what reads it in the background ends now."""
    with _making:
        made = _made.pop(source, None)
    if made is not None:
        made.close()
