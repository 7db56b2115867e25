from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from collector.trace.samples import sample_traces
from collector.web.app import create_app
from collector.web.settings import Settings
from collector.web.tokens import Tokens
from dashboard.shell.app import add_dashboard
from dashboard.shell.context import Shell
from dashboard.shell.replay import ReplaySql, ReplayStore
from dashboard.story import sources_of_store, sources_of_trace
from tests.collector.web.stores import EchoSql, MemoryStore

ROOT = Path(__file__).parents[3]
MAIN = "from dashboard.commands import main; raise SystemExit(main())"
LIMIT_S = 60


@pytest.fixture(scope="session")
def sample():
    """The packaged trace of a job whose rank 2 was killed."""
    return sample_traces()["kill-one"]


def judged(sources):
    """The same, once the trace is judged."""
    until = time.monotonic() + LIMIT_S
    while sources.only.report() is None:
        assert time.monotonic() < until, sources.only.problem()
        time.sleep(0.02)
    return sources


@pytest.fixture(scope="session")
def sources(sample):
    with contextlib.closing(sources_of_trace(sample)) as opened:
        yield judged(opened)


@pytest.fixture(scope="session")
def replay(sample, sources, tmp_path_factory):
    """The app that ``cascade replay kill-one`` serves, and its run_id."""
    store = ReplayStore(sources.only)
    sql = ReplaySql(sample, sources.only)
    app = create_app(store, sql, Tokens(tmp_path_factory.mktemp("none")), Settings())
    add_dashboard(app, Shell(store, sources, sql, app.state.sessions, replayed="kill-one"))
    app.state.run_id = sources.only.run_id
    yield app
    sql.close()


@pytest.fixture
def empty(tmp_path):
    """The app of a collector without runs; ``app.state.tokens`` are its tokens."""
    store = MemoryStore()
    tokens = Tokens(tmp_path)
    app = create_app(store, EchoSql(), tokens, Settings())
    sources = sources_of_store(store)
    add_dashboard(app, Shell(store, sources, EchoSql(), app.state.sessions))
    app.state.tokens = tokens
    app.state.store = store
    return app


class Command:
    """A ``cascade`` verb that serves, as a process of its own."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, words)],
            env=os.environ | {"PYTHONPATH": str(ROOT), "DISPLAY": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=LIMIT_S)[1])
        self.ready = json.loads(line)
        self.url = self.ready["url"]
        self.base = self.url.partition("/dash/")[0]

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


@contextlib.contextmanager
def started(*words):
    command = Command(*words)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.kill()
        command.process.communicate()


@pytest.fixture
def start():
    """Starts a verb that serves; ended with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *words: stack.enter_context(started(*words))


@pytest.fixture(scope="module")
def replaying():
    """``cascade replay kill-one`` as a process."""
    with started("replay", "kill-one", "--port", 0, "--no-open", "--json") as command:
        yield command


@pytest.fixture(scope="module")
def browser():
    """Chromium without a screen."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium here")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield launched
        launched.close()
