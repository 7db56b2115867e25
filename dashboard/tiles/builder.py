"""Reads a run into content: new rows of one that grows, or all of one that does not."""

from __future__ import annotations

import threading
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
    """

    def __init__(self, drawing: threading.RLock, cache: Path | None) -> None:
        self._drawing = drawing
        self._cache = cache
        self._live: _Live | None = None
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
        if self._live is None or self._first_ns is None:
            return self.shown.t0
        return t0_of(source.meta(), self._first_ns)

    def is_done(self, source: RowSource) -> bool:
        """True when what is shown is all of this version."""
        return self._read == (source.version(), source.is_judged_whole())

    def update(self, source: RowSource, stop: threading.Event) -> None:
        """Read what is not in yet; leaves off when ``stop`` is set.

        Raises:
            CascadeError: the rows cannot be read now.
        """
        state = (source.version(), source.is_judged_whole())
        if state == self._read:
            return
        if source.is_live and not state[1]:
            self._add_new(source)
        elif not self._whole(source, judged=state[1], stop=stop):
            return
        self._read = state
        self.building = None

    def _add_new(self, source: RowSource) -> None:
        if self._live is None:
            first = first_ns(source)
            if first is None:
                return
            content = Content(t0_of(source.meta(), first), "provisional")
            self._first_ns = first
            self._live = _Live(NewRows(), content)
        rows = self._live.new.read(source)
        if len(rows.wall_ns):
            earliest = int(rows.wall_ns.min())
            self._first_ns = min(self._first_ns or earliest, earliest)
        with self._drawing:
            self._live.content.add(rows)
            if len(rows.what) or self.shown is not self._live.content:
                self.shown = self._live.content
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
