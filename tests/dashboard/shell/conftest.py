from __future__ import annotations

import contextlib
import time

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
from tests.serving import replayed, started

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


@pytest.fixture
def start():
    """Starts a verb that serves; ended with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *words: stack.enter_context(started(*words))


@pytest.fixture(scope="module")
def replaying():
    """``cascade replay kill-one`` as a process."""
    with replayed("kill-one") as command:
        yield command


@pytest.fixture
def browser(chromium):
    """Chromium without a screen."""
    return chromium
