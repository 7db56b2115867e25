"""What the dashboard's pages ask of a run that grows, asked by the pages' own code, each statement timed.

A run's page asks for the pulse, the story, the state at the newest moment and a window; the waits page for
each panel's statement, the violations page for its list. Named views are there for people and panels alike.
Statements in the background are the same: the tiles' new rows, provisional waits, a look at all rows.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from cascade_runtime.vocabulary.events import Compute, Gpu, Health
from collector.schema.views import named_views
from collector.storage._interface import EventStore, News
from dashboard.story.live_source import LiveRun
from dashboard.story.teller import Teller
from dashboard.tiles.background import is_background
from dashboard.tiles.run_tiles import stop_tiles_of, tiles_of

PAUSE_S = 0.05
"""Between an answer and the next question."""

MINUTE_NS = 60 * 10**9
PIXELS = 1500

Told = Callable[[str, float, float, int], None]
"""Told of each answer: name, monotonic seconds at which it was asked, milliseconds, rows."""


class Watched(LiveRun):
    """A run as pages see it, with a clock on every statement.

    Args:
        store: where it is.
        run_id: the run.
        told: told of each statement.
    """

    def __init__(self, store: EventStore, run_id: str, told: Told) -> None:
        super().__init__(store, run_id)
        self._told_of = told
        self._place = threading.local()

    def on(self, page: str) -> None:
        """This thread asks for a page from now on."""
        self._place.page = page

    def query(self, sql: str) -> pa.Table:
        """See RunSource."""
        return self._timed(sql, super().query, sql)

    def query_whole(self, sql: str) -> pa.Table:
        """See RunSource."""
        return self._timed(sql, super().query_whole, sql)

    def query_at(self, sql: str) -> tuple[pa.Table, News]:
        """See RunSource."""
        found: tuple[pa.Table, News] = self._timed(sql, super().query_at, sql)
        return found

    def news(self) -> News:
        """See RunSource."""
        found: News = self._timed("new rows", super().news)
        return found

    def _timed(self, sql: str, ask: Callable[..., Any], *told: str) -> Any:
        begin = time.monotonic()
        found = ask(*told)
        ms = (time.monotonic() - begin) * 1000
        rows = found[0] if isinstance(found, tuple) and isinstance(found[0], pa.Table) else found
        page = getattr(self._place, "page", threading.current_thread().name)
        where = f"{page} (background)" if is_background() else page
        num_rows = rows.num_rows if isinstance(rows, pa.Table) else 0
        self._told_of(f"{where}: {_short(sql)}", begin, ms, num_rows)
        return found


def visits(source: Watched) -> Iterator[tuple[str, Callable[[], object]]]:
    """Without end, in turn: what is asked, and the asking of it."""
    from cascade_runtime.vocabulary.plug import discover
    from dashboard import panels
    from dashboard.shell.pages import violations

    teller = Teller(source)
    tiles = tiles_of(source)

    def now_ns() -> int:
        return teller.story().story.t1_ns

    pages: list[tuple[str, Callable[[], object]]] = [
        ("pulse", teller.pulse),
        ("story", teller.story),
        ("state", lambda: teller.state(now_ns())),
        ("window", lambda: teller.window(max(0, now_ns() - MINUTE_NS), now_ns())),
        ("tile", lambda: tiles.tile(0, max(now_ns(), PIXELS), PIXELS, ["waited", "caused"], None)),
        ("violations page", lambda: source.query(violations._SQL)),
    ]
    statements = {
        **{f"waits page, {name}": panel.sql for name, panel in sorted(discover(panels).items())},
        **{f"view {name}": f"SELECT * FROM {name} LIMIT 1000" for name in named_views()},
    }
    pages += [(name, partial(source.query, sql)) for name, sql in statements.items()]
    live = pages[:5]
    # A run's page asks all the while; others are opened now and then.
    for other in itertools.cycle(pages[5:]):
        yield from live
        yield other


class PageAsker:
    """Asks what pages ask in a thread until it is stopped, and keeps what each statement took.

    Args:
        store: of the run.
        run_id: the run.
    """

    def __init__(self, store: EventStore, run_id: str) -> None:
        self._statements: list[tuple[str, float, float, int]] = []
        self._answers: list[tuple[str, float, float, int]] = []
        self._source = Watched(store, run_id, lambda *told: self._statements.append(told))
        self._stopping = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="pages", daemon=True)
        self._thread.start()

    def stop(self) -> tuple[list[Any], list[Any]]:
        """Statements, and whole answers of pages.

        Raises:
            Exception: what went wrong.
        """
        self._stopping.set()
        self._thread.join()
        stop_tiles_of(self._source)
        if self._problem is not None:
            raise self._problem
        return self._statements, self._answers

    def _run(self) -> None:
        try:
            for name, ask in visits(self._source):
                if self._stopping.wait(PAUSE_S):
                    return
                self._source.on(name)
                begin = time.monotonic()
                ask()
                self._answers.append((name, begin, (time.monotonic() - begin) * 1000, 0))
        except Exception as error:
            self._problem = error


def samples(run_id: str, rank: int) -> list[Any]:
    """Rows of devices, of one rank: pages ask for them only where there are any."""
    now = time.time_ns()

    def head(seq: int) -> tuple[Any, ...]:
        return (run_id, rank, 0, seq, "world", 0, None, seq, now + seq, seq)

    return [
        Gpu(*head(0), util_pct=50.0),
        Health(
            *head(1), detector="cpu", signal="cpu_busy", unit="percent", value=70.0,
            subject_rank=rank, subject_incarnation=0,
        ),
        Compute(*head(2), start_ns=now, end_ns=now + 1),
    ]  # fmt: skip


def _short(sql: str) -> str:
    return " ".join(sql.split())[:48]
