"""A collector with the dashboard's questions in its own process, as the dashboard will ask them.

The store belongs to one process, so the questions come from a thread of the process that serves: they
share its interpreter with the doorway, and what they find is everything that was acknowledged.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._load import Failed

START_S = 60.0
PAUSE_S = 0.05
"""Between an answer and the next question."""


class Asked(NamedTuple):
    """One question's answer."""

    name: str
    at: float
    """Monotonic seconds at which it was asked."""
    ms: float
    num_rows: int


class AskingCollector:
    """The server in a process of its own, where a thread asks what pages ask, again and again.

    Args:
        data: the data folder.
        run_id: whose rows are asked for.
    """

    def __init__(self, data: Path, run_id: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, data, run_id), daemon=True)
        self._process.start()
        theirs.close()
        self.port = int(self._get())

    def __enter__(self) -> AskingCollector:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()  # the server stops then
        self._process.join(START_S)
        if self._process.is_alive():
            self._process.kill()

    def publish(self) -> None:
        """Bring what is stored into the run's folder."""
        self._pipe.send(("publish", None))
        self._get()

    def begin(self) -> None:
        """Ask what pages ask from now on."""
        self._pipe.send(("begin", None))
        self._get()

    def end(self) -> tuple[list[Asked], list[Asked]]:
        """Stop asking; the statements, and the whole answers that pages waited for.

        Raises:
            Failed: a question failed.
        """
        self._pipe.send(("end", None))
        found: tuple[list[Asked], list[Asked]] = self._get()
        return found

    def _get(self) -> Any:
        if not self._pipe.poll(START_S):
            raise Failed("the collector does not answer")
        try:
            found = self._pipe.recv()
        except EOFError:
            raise Failed("the collector died") from None
        if isinstance(found, Exception):
            raise found
        return found


class Asker:
    """Asks in a thread of its own until it is stopped.

    Args:
        ask: answers a statement; gives the number of rows.
        questions: name and statement.
    """

    def __init__(self, ask: Any, questions: Sequence[tuple[str, str]]) -> None:
        self._ask = ask
        self._questions = questions
        self._stopping = threading.Event()
        self._problem: Exception | None = None
        self._asked: list[Asked] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> list[Asked]:
        """The answers.

        Raises:
            Failed: a question failed.
        """
        self._stopping.set()
        self._thread.join()
        if self._problem is not None:
            raise Failed(f"a question failed: {self._problem}")
        return self._asked

    def _run(self) -> None:
        turn = 0
        while not self._stopping.wait(PAUSE_S):
            name, sql = self._questions[turn % len(self._questions)]
            turn += 1
            begin = time.monotonic()
            try:
                num_rows = self._ask(sql)
            except Exception as error:
                self._problem = error
                return
            self._asked.append(Asked(name, begin, (time.monotonic() - begin) * 1000, num_rows))


def _serve(pipe: Connection, data: Path, run_id: str) -> None:
    from benchmarks._page_questions import PageAsker
    from collector.sql.service import SqlService
    from collector.storage.embedded import EmbeddedStore
    from collector.web.app import create_app
    from collector.web.listen import listen
    from collector.web.logs import set_up_logs
    from collector.web.server import CollectorServer, make_config
    from collector.web.settings import Settings
    from collector.web.tokens import Tokens

    sock = listen("127.0.0.1", 0)
    settings = Settings()
    data.mkdir(parents=True, exist_ok=True)
    set_up_logs("json")
    store, sql = EmbeddedStore(data), SqlService(data)
    app = create_app(store, sql, Tokens(data), settings)

    def ready() -> None:
        pipe.send(sock.getsockname()[1])
        threading.Thread(target=obey, daemon=True).start()

    def obey() -> None:
        asker: PageAsker | None = None
        try:
            while True:
                word, _ = pipe.recv()
                try:
                    if word == "publish":
                        store.publish(run_id)
                        pipe.send(None)
                    elif word == "begin":
                        asker = PageAsker(store, run_id)
                        pipe.send(None)
                    elif asker is not None:
                        pipe.send(tuple([Asked(*a) for a in kind] for kind in asker.stop()))
                except Exception as error:
                    pipe.send(Failed(f"a question failed: {error!r}"))
        except EOFError:
            server.stop()

    server = CollectorServer(make_config(app, settings), app, ready)
    try:
        server.run(sockets=[sock])
    finally:
        sql.close()
        store.close()
