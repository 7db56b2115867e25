"""Tells one run's story, and remembers what it cost to find out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from dashboard.story.facts import Facts, FactsKeeper
from dashboard.story.measured import measured_of
from dashboard.story.model import Regimes, Story
from dashboard.story.packed_story import framed
from dashboard.story.packing import packed_json
from dashboard.story.source import RunSource
from dashboard.story.state_at import state_at
from dashboard.story.state_index import StateIndex
from dashboard.story.story import tell
from dashboard.story.window import window
from dashboard.tiles import Building, tiles_of
from dashboard.tiles.in_threads import NUM_THREADS

PAUSE_S = 0.25
"""A story of a growing run is not made anew more often."""

SHARE = 2
"""And the pause is at least so many times what making it took of a core: where others have the cores, they
have them anyway."""

LONGEST_PAUSE_S = 5.0

MOST_S = 0.5
"""Who has a story waits so long at most for the next one."""

_waiting = threading.BoundedSemaphore(NUM_THREADS // 2)
"""So many wait for a next story, of whatever run; others come again, and leave threads for other answers."""

LATELY_S = 1.0
"""What is asked of a moment or a window is told with a story that is so old at most."""

FRAMED_LEVEL = 2

FIRST_S = 1.0
"""A pulse waits so long for the first story; a large run that nobody has looked at yet takes longer."""

_log = logging.getLogger(__name__)


class Told:
    """A story as it was told: the same object until a newer one is."""

    def __init__(self, story: Story, facts: Facts) -> None:
        self.story = story
        self.facts = facts
        self.version = story.version

    @cached_property
    def index(self) -> StateIndex:
        """For questions about moments."""
        return StateIndex(self.facts, self.story)

    @cached_property
    def body(self) -> bytes:
        """Its JSON."""
        return msgspec.json.encode(self.story)

    @cached_property
    def packed(self) -> bytes | None:
        """Its JSON in gzip; None when it is small."""
        return packed_json(self.body)

    @cached_property
    def framed(self) -> bytes:
        """As pages read it (packed_story.framed)."""
        rest = msgspec.structs.replace(self.story, regimes=Regimes(), walks=[])
        return framed(rest, self.story.regimes, self.story.walks)

    @cached_property
    def framed_packed(self) -> bytes | None:
        """The same in gzip. What is small of a story repeats itself and packs well however quickly."""
        return packed_json(self.framed, FRAMED_LEVEL)


class Teller:
    """One run. Safe to call from several threads.

    Args:
        source: the run.
        mono_s: the clock.
        cpu_s: what this thread used of a core.
        wait_s: waits so many seconds.
    """

    def __init__(
        self,
        source: RunSource,
        mono_s: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.thread_time,
        wait_s: Callable[[float], object] = time.sleep,
    ) -> None:
        self.source = source
        self._mono_s = mono_s
        self._cpu_s = cpu_s
        self._wait_s = wait_s
        self._keeper = FactsKeeper(source, mono_s)
        self._telling = threading.Lock()
        self._told: Told | None = None
        self._told_s = self._not_before_s = self._again_s = 0.0
        self._first: threading.Thread | None = None
        self._beginning = threading.Lock()
        self._began_s = 0.0
        self._failed = False
        self._rate: tuple[float, int] | None = None
        self._rows_per_s = 0.0

    def version(self) -> str:
        """The version that a story told now would have."""
        return f"{self.source.version()}-{self._keeper.generation}"

    def story(self) -> Told:
        """The story as of now, or of a moment ago."""
        told = self._told
        if told is not None and told.version == self.version():
            return told
        # Somebody is telling it: what was told before is of a moment ago, as after a pause.
        if not self._telling.acquire(blocking=told is None):
            assert told is not None
            return told
        try:
            return self._tell()
        finally:
            self._telling.release()

    def next_story(self, known: str | None) -> Told:
        """The same for who has a story already: one that is being told, or may be soon, is waited for.

        Args:
            known: the version of the story that he has.
        """
        told = self.story()
        if told.version != known or told.version == self.version():
            return told
        if not _waiting.acquire(blocking=False):
            return told
        try:
            until = self._mono_s() + MOST_S
            self._wait_s(max(0.0, min(MOST_S, self._not_before_s - self._mono_s())))
            if self._telling.acquire(timeout=max(0.0, until - self._mono_s())):
                try:
                    return self._tell()
                finally:
                    self._telling.release()
            return self._told or told
        finally:
            _waiting.release()

    def _tell(self) -> Told:
        """Tell it, unless it was told just now; ``_telling`` is held."""
        told, version, now = self._told, self.version(), self._mono_s()
        of_source = self.source.version()
        if told is not None and (
            told.version == version
            or now < self._not_before_s
            or (told.version == f"{version}~" and now < self._again_s)
        ):
            return told
        began_s = self._cpu_s()
        with self.source.question():
            facts = self._keeper.facts()
            version = f"{of_source}-{facts.generation}"
            # A part that is of a moment before is brought up to date though nothing more comes.
            version = version if facts.is_fresh else f"{version}~"
            before, told = told, Told(tell(facts, measured_of(facts), version), facts)
        now = self._mono_s()
        if self.source.is_live:
            took_s = self._cpu_s() - began_s
            pause_s = max(PAUSE_S, min(SHARE * took_s, LONGEST_PAUSE_S))
            self._not_before_s = now + pause_s
        # Nothing came, and the part was not brought up to date either: it is told again more seldom.
        is_same = before is not None and before.version == told.version
        self._again_s = now + LONGEST_PAUSE_S if is_same else now
        self._told, self._told_s = told, now
        return told

    def _lately(self) -> Told:
        """A story that was told lately will do: the page that asks shows it."""
        told = self._told
        if told is not None and self._mono_s() - self._told_s < LATELY_S:
            return told
        return self.story()

    def begin(self) -> None:
        """Tell the first story in a thread, so that nobody waits for it without knowing why."""
        with self._beginning:  # one thread, and whoever comes second finds it started
            if self._told is None and (self._first is None or not self._first.is_alive()):
                self._began_s = self._mono_s()
                first = threading.Thread(target=self._try, name="cascade-story", daemon=True)
                first.start()
                self._first = first

    def _try(self) -> None:
        try:
            self.story()
        except Exception as error:  # whoever asks for the story is told
            _log.info("the story of run %s cannot be told: %s", self.source.run_id, error)
            self._failed = True

    def _is_told(self) -> bool:
        """Waits a moment for the first story; True too when asking for it would say what is wrong."""
        if self._told is None and not self._failed:
            self.begin()
            assert self._first is not None
            self._first.join(FIRST_S)
        return self._told is not None or self._failed

    def pulse(self) -> dict[str, Any]:
        """What is asked several times a second; ``is_told``: asking for the story now is quick."""
        is_told = self._is_told()
        source, version = self.source, self.version()
        num_rows, came_ns = source.num_rows(), source.last_came_ns()
        told, tiles = self._told, tiles_of(source)
        reading = tiles.keep_up(grows=source.is_open()) if is_told else None
        age_s = None if came_ns is None else max(0.0, time.time() - came_ns / 1e9)
        return {
            "version": version,
            "tiles_version": tiles.version,
            "t1_ns": 0 if told is None else told.story.t1_ns,
            "state": self._keeper.state(num_rows),
            "num_rows": num_rows,
            "rows_per_s": self._speed(num_rows),
            "last_row_age_s": age_s,
            "is_told": is_told,
            "building": self._building(reading),
        }

    def state(self, t_ns: int) -> dict[str, Any]:
        """Every rank at a moment, in ns since t0."""
        told = self._lately()
        return state_at(told.facts, told.story, told.index, t_ns)

    def window(self, a_ns: int, b_ns: int, group: str | None = None) -> dict[str, Any]:
        """Numbers of a window, in ns since t0; regimes are those of one group."""
        told = self._lately()
        waits = tiles_of(self.source).window(a_ns, b_ns, told.facts.t0_ns)
        return window(told.facts, told.story, waits, a_ns, b_ns, group)

    def _building(self, tiles: Building | None) -> dict[str, Any] | None:
        if self._told is None and not self._failed:
            # How long it takes is not known before it ended once.
            waited_s = self._mono_s() - self._began_s
            return {
                "share": round(waited_s / (waited_s + 10.0), 2),
                "what": "reading what happened",
            }
        mine = self._keeper.building()
        if mine is not None or tiles is None:
            return mine
        return {"share": round(tiles.share, 2), "what": tiles.what}

    def _speed(self, num_rows: int) -> float:
        """Rows a second, over at least half a second."""
        now = self._mono_s()
        if self._rate is None:
            self._rate = (now, num_rows)
        since, before = self._rate
        if now - since >= 0.5:
            self._rows_per_s = round(max(0, num_rows - before) / (now - since), 1)
            self._rate = (now, num_rows)
        return self._rows_per_s if self.source.is_live else 0.0
