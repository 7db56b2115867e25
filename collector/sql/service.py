"""A stranger's SQL over a data folder: each statement in a child process of its own."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from collector.data_folder import run_folder, runs_folder
from collector.sql import landlock
from collector.sql.damaged import damaged_file, hint, tables_named
from collector.sql.data_views import data_views, present_tables
from collector.sql.errors import SqlFailed, SqlRefused, SqlTooLarge, SqlTooLong
from collector.sql.limits import SqlLimits
from collector.sql.messages import RUNS, Answer, DataView, Format, Question, Setup
from collector.sql.place import Place
from collector.sql.pool import ChildPool
from collector.sql.process import Child, ChildEnded, ChildTooSlow, Reply
from collector.storage._interface import NoSuchRun, StoreDown

_GRACE_S = 0.5
"""A child stops by itself at its limit; it is killed this much later."""

_OUT_OF_MEMORY = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)


class SqlRequest(msgspec.Struct):
    """What is asked.

    Attributes:
        sql: one SELECT, or EXPLAIN of one.
        run_id: views show this run only; all runs when not given.
        format: of the answer's body.
        limit: rows of the answer; ``SqlLimits.num_rows`` when not given.
    """

    sql: str
    run_id: str | None = None
    format: Format = "json"
    limit: int | None = None


class SqlAnswer(msgspec.Struct):
    """The answer's body; ``truncated`` when there were more rows than the limit."""

    media_type: str
    body: bytes
    truncated: bool
    num_rows: int


class SqlHealth(msgspec.Struct):
    """Figures for /metrics and /v1/readyz.

    Attributes:
        landlock: whether children may open nothing but the runs' files; False where the kernel has
            no Landlock, and then DuckDB's own lock and the limits of the process stand alone.
        num_statements: taken since the start.
        num_failed: of them, those that got no rows.
        num_killed: of them, those whose child was killed or died.
        num_retried: of them, those asked twice because a file went away meanwhile.
    """

    landlock: bool
    num_statements: int = 0
    num_failed: int = 0
    num_killed: int = 0
    num_retried: int = 0


class SqlService:
    """Runs strangers' statements. Safe to call from several threads.

    Args:
        data: the data folder; ``runs/`` is made when it is missing.
        limits: of every statement.
    """

    def __init__(self, data: Path, limits: SqlLimits = SqlLimits()) -> None:  # noqa: B008  # frozen
        self._data = data.resolve()
        self._limits = limits
        runs = runs_folder(self._data)
        runs.mkdir(parents=True, exist_ok=True)
        self._place = Place(runs)
        setup = Setup(
            runs=str(runs),
            memory_bytes=limits.memory_bytes,
            address_bytes=limits.memory_bytes + limits.overhead_bytes,
            output_bytes=limits.output_bytes,
            num_threads=limits.num_threads,
            time_s=limits.time_s,
        )
        self._pool = ChildPool(self._place.path, setup, limits)
        self._lock = threading.Lock()
        self._health = SqlHealth(landlock=landlock.abi() > 0)
        self._pool.warm()

    def run(self, request: SqlRequest) -> SqlAnswer:
        """Run a statement; returns when its answer is whole.

        Raises:
            SqlRefused: the statement or the request is not one that is served.
            SqlFailed: DuckDB could not run it.
            SqlTooLong, SqlTooLarge: it needs more than the limits give.
            SqlBusy: too many statements are running and waiting.
            NoSuchRun: there is no run of that id.
            StoreDown: no child can start.
        """
        with self._lock:
            self._health.num_statements += 1
        try:
            limit = self._checked(request)
            with self._pool.turn():
                answer = self._served(request, limit)
        except BaseException:
            with self._lock:
                self._health.num_failed += 1
            raise
        return answer

    def health(self) -> SqlHealth:
        """Figures since the start."""
        with self._lock:
            return msgspec.structs.replace(self._health)

    def close(self) -> None:
        """End all children, remove what was made for them."""
        self._pool.close()
        self._place.close()

    def _checked(self, request: SqlRequest) -> int:
        """The limit of rows, when the request is one that can be served."""
        limits = self._limits
        size = len(request.sql.encode("utf-8", "replace"))
        if size > limits.statement_bytes:
            message = f"the statement has {size} bytes, and {limits.statement_bytes} are the most"
            raise SqlRefused(message, where="sql")
        try:
            request.sql.encode()
        except UnicodeEncodeError as error:
            raise SqlRefused("the statement is not valid Unicode", where="sql") from error
        limit = limits.num_rows if request.limit is None else request.limit
        if not 0 <= limit <= limits.max_rows:
            raise SqlRefused(f"limit goes from 0 to {limits.max_rows}", where="limit")
        return limit

    def _views(self, run_id: str | None) -> dict[str, DataView]:
        """The views for what lies in the folder now."""
        runs = runs_folder(self._data)
        if run_id is None:
            return data_views(RUNS, present_tables(runs))
        folder = run_folder(self._data, run_id)
        if not folder.is_dir():
            raise NoSuchRun("there is no run of that id", where=run_id[:200])
        name = folder.name
        return data_views(RUNS, present_tables(runs, name), run=name, run_id=run_id)

    def _served(self, request: SqlRequest, limit: int) -> SqlAnswer:
        question = Question(request.sql, self._views(request.run_id), request.format, limit)
        reply = self._ask(question)
        if reply.answer.outcome == "gone":
            # A segment was sealed or a tail replaced while it was read: what is there now is whole.
            with self._lock:
                self._health.num_retried += 1
            question = msgspec.structs.replace(question, views=self._views(request.run_id))
            reply = self._ask(question)
            if reply.answer.outcome == "gone":
                raise self._damage(request, question, reply.answer)
        return self._told(reply)

    def _damage(self, request: SqlRequest, question: Question, answer: Answer) -> SqlFailed:
        """A statement failed twice in reading files: which file is it?"""
        run = None if request.run_id is None else run_folder(self._data, request.run_id).name
        tables = tables_named(request.sql, question.views)
        found = damaged_file(runs_folder(self._data), tables, run)
        if found is None:
            return SqlFailed(answer.message, where="sql", hint=answer.hint)
        return SqlFailed(found, where="sql", hint=hint(run))

    def _ask(self, question: Question) -> Reply:
        with self._pool.child() as child:
            self._wait_ready(child)
            try:
                threading.Thread(target=self._warm, daemon=True).start()
                return child.ask(question, time.monotonic() + self._limits.time_s + _GRACE_S)
            except ChildTooSlow:
                self._count_killed()
                return Reply(Answer("too_long"), b"")
            except ChildEnded as ended:
                self._count_killed()
                return Reply(_obituary(ended.returncode), b"")
            except msgspec.MsgspecError:
                self._count_killed()
                return Reply(Answer("failed", "its process gave no answer that can be read"), b"")

    def _wait_ready(self, child: Child) -> None:
        try:
            problem = child.wait_ready(time.monotonic() + self._limits.start_s).problem
        except ChildTooSlow:
            problem = f"it was not ready after {self._limits.start_s:g} s"
        except (ChildEnded, msgspec.MsgspecError) as error:
            problem = str(error)
        if problem:
            raise StoreDown(
                f"the process that runs SQL does not start: {problem}",
                hint="give the collector more memory, or a higher limit on address space",
            )

    def _warm(self) -> None:
        with suppress(OSError):  # the next statement will try again, and say so
            self._pool.warm()

    def _count_killed(self) -> None:
        with self._lock:
            self._health.num_killed += 1

    def _told(self, reply: Reply) -> SqlAnswer:
        answer = reply.answer
        if answer.outcome == "ok":
            return SqlAnswer(answer.media_type, reply.body, answer.truncated, answer.num_rows)
        if answer.outcome == "refused":
            raise SqlRefused(answer.message, where="sql", hint=answer.hint)
        if answer.outcome == "too_long":
            hint = "ask about less at a time: one run, some steps"
            message = f"the statement took longer than {self._limits.time_s:g} s"
            raise SqlTooLong(message, where="sql", hint=hint)
        if answer.outcome == "too_large":
            raise SqlTooLarge(answer.message, where="sql", hint=answer.hint)
        raise SqlFailed(answer.message, where="sql", hint=answer.hint)


def _obituary(returncode: int) -> Answer:
    """What a child that died by a signal died of."""
    if returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Answer("too_long")
    if returncode in _OUT_OF_MEMORY:
        message = "the statement used up the memory or the stack of its process"
        return Answer("too_large", message, "write it simpler, or ask about less at a time")
    return Answer("failed", "the statement ended the process that ran it")
