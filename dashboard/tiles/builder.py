"""Reads a run into content: new rows of one that grows, or all of one that does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dashboard.tiles import cache as kept
from dashboard.tiles.content import LANES, Content
from dashboard.tiles.encode import pixel_bounds
from dashboard.tiles.new_rows import NewRows
from dashboard.tiles.rows import (
    first_ns,
    judged_parts,
    last_ns,
    parts_of_saved,
    run_t0,
    t0_of,
)
from dashboard.tiles.source import RowSource

_PIXELS = 1500

AGAIN_S = 60.0
AGAIN_SHARE = 50
"""Between two readings of all of a run because something was laid otherwise: so many seconds, and so many
times what one takes."""


class Building(NamedTuple):
    """What is being read, and how much of it is done (0 to 1)."""

    share: float
    what: str


class _Live(NamedTuple):
    new: NewRows
    content: Content


def _warm(content: Content) -> None:
    """Draw the whole once, before anybody waits for it: maps its files, loads compiled code."""
    bounds = pixel_bounds(0, max(content.upto_ns, _PIXELS), _PIXELS)
    content.layers(LANES, content.shown_ranks(), bounds)


class Builder:
    """Holds what is shown, and brings it up to date; ``update`` is for one thread.

    Args:
        drawing: held while what is shown changes.
        cache: where what was built of saved traces is kept; None for the user's own folder.
        mono_s: the clock.
    """

    def __init__(
        self,
        drawing: threading.RLock,
        cache: Path | None,
        mono_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._drawing = drawing
        self._cache = cache
        self._mono_s = mono_s
        self._live: _Live | None = None
        self._again_s = float("-inf")
        self._first_ns: int | None = None
        self._read: tuple[str, bool] | None = None
        self.shown = Content(0, "provisional")
        self.generation = 0
        self.building: Building | None = Building(0.0, "opening the run")

    def t0(self, source: RowSource) -> int:
        """The wall clock that times count from, as it is known now.

        What is shown may count from another one: of a run that grows an earlier row may come, and
        its trace.json after its first rows.
        """
        if self._live is None:
            return self.shown.t0
        if self._first_ns is None:
            self._first_ns = first_ns(source)
        return self.shown.t0 if self._first_ns is None else t0_of(source.meta(), self._first_ns)

    def is_done(self, source: RowSource) -> bool:
        """True when what is shown is all of this version, and nothing of it is known to be otherwise."""
        live = self._live
        if live is not None and (live.content.is_off or not live.new.is_whole):
            return False
        return not self._is_held() and self._read == (source.version(), source.is_judged_whole())

    def update(self, source: RowSource, stop: threading.Event) -> None:
        """Read what is not in yet; leaves off when ``stop`` is set.

        Raises:
            CascadeError: the rows cannot be read now.
        """
        state = (source.version(), source.is_judged_whole())
        if state == self._read and not self._is_held():
            return
        if source.is_live and not state[1]:
            self._add_new(source)
        elif not self._whole(source, judged=state[1], stop=stop):
            return
        self._read = state
        self.building = None

    def _is_held(self) -> bool:
        """Whether there is something to be done now or in a moment, though nothing comes."""
        if self._live is None:
            return False
        new, content = self._live
        return content.num_held > 0 or new.is_due or self._is_due_again(self._live)

    def _is_due_again(self, live: _Live) -> bool:
        """Whether all is to be read again now, because something was laid otherwise."""
        return live.content.is_off and self._mono_s() >= self._again_s

    def _add_new(self, source: RowSource) -> None:
        live, now = self._live, self._mono_s()
        if live is not None and self._is_due_again(live):
            live = None
        new = NewRows(self._mono_s) if live is None else live.new
        read = new.read(source)
        earliest = min((int(r.wall_ns.min()) for r in read if len(r.wall_ns)), default=None)
        if live is None:
            # Drawing shifts times: any moment near the run's begin will do to count from.
            begin = first_ns(source) if earliest is None else earliest
            if begin is None:
                return
            live = _Live(new, Content(begin, "provisional"))
            took = self._mono_s() - now
            self._again_s = self._mono_s() + max(AGAIN_S, AGAIN_SHARE * took)
        if earliest is not None and self._first_ns is not None:
            self._first_ns = min(self._first_ns, earliest)
        with self._drawing:
            num_laid = live.content.num_laid
            is_whole = live.new.is_whole
            live.content.add(read.rows, read.waiting, self._mono_s(), is_whole=is_whole)
            is_other = self.shown is not live.content or live.content.num_laid != num_laid
            self._live, self.shown = live, live.content
            if len(read.rows.what) or is_other:
                self.generation += 1

    def _whole(self, source: RowSource, *, judged: bool, stop: threading.Event) -> bool:
        """Read all of a run that does not grow; False when it was stopped."""
        path: Any = getattr(source, "path", None)
        place = kept.place_of(path, self._cache) if judged and path is not None else None
        found = kept.load(place) if place is not None else None
        if found is None:
            self.building = Building(0.0, "looking for the first row")
            found = Content(run_t0(source), "judged" if judged else "provisional")
            if not self._fill(found, source, judged=judged, stop=stop):
                return False
            if place is not None:
                self.building = Building(1.0, "keeping it for the next time")
                kept.save(place, found)
        _warm(found)
        self._show(found)
        self._live = None
        return True

    def _fill(
        self, content: Content, source: RowSource, *, judged: bool, stop: threading.Event
    ) -> bool:
        # What was shown before stays until this is whole, and is better than a part of it.
        at_once = not self.shown.shown_ranks()
        half = 0.5 if judged else 1.0
        what = "reading samples" if judged else "reading collectives"
        for share, rows in parts_of_saved(source, collectives=not judged):
            if stop.is_set():
                return False
            with self._drawing:
                content.add(rows)
                if at_once:
                    self._show(content)
            self.building = Building(round(share * half, 3), what)
        if judged:
            for share, waits in judged_parts(source):
                if stop.is_set():
                    return False
                with self._drawing:
                    content.add_judged(waits)
                    if at_once:
                        self._show(content)
                self.building = Building(round(half + share * half, 3), "reading waits")
        last = last_ns(source)  # of every table: an analysis saw those too that have no lane
        if last is not None:
            with self._drawing:
                content.upto_ns = max(content.upto_ns, last - content.t0)
        return True

    def _show(self, content: Content) -> None:
        with self._drawing:
            self.shown = content
            self.generation += 1
