"""The demo's collector: a process of its own, started again where it was when it dies."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.errors import BadUsage, CascadeError
from collector.storage.embedded import PLUGIN
from collector.web.listen import DEFAULT_HOST, listen, url_of

LOG = "collector.log"
"""What the collector says, in its data folder: the demo's own lines stay readable."""

_MAX_STARTS = 10
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 5.0
_LAST_LINES = 5
_STOP_S = 20.0
"""A collector that was asked to stop and has not after so long is killed; it takes 10 s itself."""


class _Ready(msgspec.Struct):
    url: str
    pid: int


class _Failure(msgspec.Struct):
    message: str
    where: str = ""
    hint: str = ""


class _Told(msgspec.Struct):
    error: _Failure


class DemoCollector:
    """``cascade serve`` for the life of this context.

    The socket stays open in this process: between two collectors senders wait at the same port.

    Args:
        data: its data folder.
        say: tells the person what happens.
    """

    def __init__(self, data: Path, say: Callable[[str], None]) -> None:
        self.data = data
        self.url = ""
        self._say = say
        self._sock = listen(DEFAULT_HOST, 0)
        self._starting = threading.Lock()
        """Held from asking whether to stop until the process is known to who stops it."""
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._log_began = 0
        self._thread = threading.Thread(target=self._keep, name="demo-collector", daemon=True)

    def __enter__(self) -> DemoCollector:
        """Start it and wait until it answers.

        Raises:
            BadUsage: it does not start; the error is the collector's own.
        """
        try:
            self.data.mkdir(parents=True, exist_ok=True)
            # In a thread: Ctrl-C could come between the start of a process and our knowing of it.
            starter = ThreadPoolExecutor(1)
            starting = starter.submit(self._start)
            starter.shutdown(wait=False)
            ready = starting.result()
        except OSError as error:
            self._sock.close()
            raise BadUsage(
                f"the demo's data folder cannot be used: {error.strerror}",
                where=str(self.data),
                hint="give another folder with --data",
            ) from error
        except BaseException:  # Ctrl-C while it starts
            self._end_at_once()
            raise
        if ready is None:
            self._sock.close()
            failure = self._failure()
            raise BadUsage(
                f"the collector does not start: {failure.message}",
                where=failure.where or str(self.data),
                hint=failure.hint or "give another folder with --data",
            )
        self.url = url_of(self._sock, tls=False)
        self._say(f"the collector is at {self.url} (pid {ready.pid}), its data in {self.data}")
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        """Stop it: everything that it took is in the runs' folders then."""
        try:
            with self._starting:  # no process comes after this
                self._stopping.set()
            if self._process is not None:
                self._process.terminate()  # does nothing to one that has ended
                self._thread.join(_STOP_S)
                if self._thread.is_alive():
                    self._process.kill()
            self._thread.join()
            self._sock.close()
        except BaseException:  # a second Ctrl-C
            self._end_at_once()
            raise
        self._bring_in()

    def _end_at_once(self) -> None:
        """What it took and had not written out stays in its journal: the next start brings it in."""
        with self._starting:
            self._stopping.set()
        if self._process is not None:
            self._process.kill()
        self._sock.close()

    def _bring_in(self) -> None:
        """A collector that was killed last left rows in its journal alone: bring them into the folders."""
        try:
            PLUGIN.open(self.data, {}).close()
        except CascadeError as error:
            self._say(f"not all that the collector took is in the runs' folders: {error.message}")

    def _start(self) -> _Ready | None:
        """Start it and wait until it answers; None when it ends before, or when it is time to stop."""
        fd = self._sock.fileno()
        command = [sys.executable, "-c", _MAIN, "serve", "--json", "--fd", str(fd)]
        command += ["--data", str(self.data), "--log-format", "text"]
        with self._starting:
            if self._stopping.is_set():
                return None
            with (self.data / LOG).open("ab") as log:
                self._log_began = log.tell()
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    pass_fds=(fd,),
                    start_new_session=True,
                )
        assert self._process.stdout is not None
        with self._process.stdout as out:
            line = out.readline()
        if not line:
            self._process.wait()
            return None
        return msgspec.json.decode(line, type=_Ready)

    def _failure(self) -> _Failure:
        """Why the last one ended: its error where it told one, else its last lines."""
        try:
            with (self.data / LOG).open("rb") as log:
                log.seek(self._log_began)
                lines = log.read().splitlines()
        except OSError as error:
            return _Failure(f"its log cannot be read: {error.strerror}")
        for line in reversed(lines):
            with contextlib.suppress(msgspec.MsgspecError):
                return msgspec.json.decode(line, type=_Told).error
        last = b" | ".join(lines[-_LAST_LINES:]).decode(errors="replace")
        return _Failure(last or "it said nothing", where=str(self.data / LOG))

    def _keep(self) -> None:
        """Start it again when it ends; it finds its data and its senders where they were."""
        wait_s = _FIRST_WAIT_S
        num_left = _MAX_STARTS
        while True:
            assert self._process is not None
            status = self._process.wait()
            if self._stopping.is_set():
                return
            if num_left == 0:
                break
            self._say(f"the collector ended with status {status}; starting it again")
            if self._stopping.wait(wait_s):
                return
            num_left -= 1
            try:
                ready = self._start()
            except OSError:
                ready = None
            if ready is not None:
                wait_s = _FIRST_WAIT_S
                self._say(f"the collector is back at {self.url} (pid {ready.pid})")
            elif not self._stopping.is_set():
                self._say(f"the collector does not start: {self._failure().message}")
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        self._sock.close()  # senders are refused at once from now on
        self._say(
            f"the collector ended {_MAX_STARTS + 1} times and is given up (see {self.data / LOG}); "
            "the job goes on, its rows stay in its spool"
        )


_MAIN = "from dashboard.commands import main; raise SystemExit(main())"
