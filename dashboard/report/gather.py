"""Reads a run until nothing is left to find out."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

from cascade_runtime.vocabulary.errors import BadTrace
from dashboard.story.teller import Teller, Told
from dashboard.story.trace_source import TraceRun
from dashboard.tiles import RunTiles, tiles_of

Say = Callable[[str, float | None], None]
"""Told what is being done, and how much of it is (0 to 1) where that is known."""

STUCK_S = 300.0
"""Nothing moved for so long: it will not."""

_LOOK_AGAIN_S = 0.05


class Gathered(NamedTuple):
    """All that a report is made of."""

    told: Told
    tiles: RunTiles


def gathered(run: TraceRun, say: Say) -> Gathered:
    """The run's story and tiles, both whole.

    Raises:
        BadTrace: the trace cannot be read to its end.
    """
    while run.report() is None and run.problem() is None:
        say("judging the run", None)
        run.wait_until_judged(0.5)
    teller, tiles = Teller(run), tiles_of(run)
    tiles.look()
    told = _told(teller, say)
    _wait_for_rows(run, teller, tiles, say)
    until = time.monotonic() + STUCK_S
    while told.version != teller.version():  # a part of it is of a moment before
        _give_up_after(until, run)
        time.sleep(_LOOK_AGAIN_S)
        told = _told(teller, say)
    return Gathered(told, tiles)


def _told(teller: Teller, say: Say) -> Told:
    """The story; of a large run it takes a while, and somebody may be looking on."""
    with ThreadPoolExecutor(1) as pool:
        telling = pool.submit(teller.story)
        while not telling.done():
            say("reading the story of the run", None)
            wait([telling], _LOOK_AGAIN_S)
        return telling.result()


def _wait_for_rows(run: TraceRun, teller: Teller, tiles: RunTiles, say: Say) -> None:
    before, until = None, time.monotonic() + STUCK_S
    while True:
        building = teller.pulse()["building"]
        if building is None and tiles.wait(_LOOK_AGAIN_S):
            return
        if building is not None:
            say(building["what"], building["share"])
            time.sleep(_LOOK_AGAIN_S)
            tiles.look()
        if building != before:
            before, until = building, time.monotonic() + STUCK_S
        _give_up_after(until, run)


def _give_up_after(until: float, run: TraceRun) -> None:
    if time.monotonic() > until:
        raise BadTrace(
            "the rows of this trace cannot be read to their end",
            where=run.run_id,
            hint="cascade analyze says what is wrong with it",
        )
