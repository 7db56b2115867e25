"""A collector on a real socket, in a thread of the test."""

from __future__ import annotations

import contextlib
import threading
from typing import NamedTuple

from collector.web.listen import listen, url_of
from collector.web.server import CollectorServer, make_config
from collector.web.settings import Settings

DEADLINE_S = 20.0


class Live(NamedTuple):
    url: str
    port: int
    server: CollectorServer
    thread: threading.Thread

    def ended(self):
        self.thread.join(DEADLINE_S)
        return not self.thread.is_alive()


@contextlib.contextmanager
def live(app, settings=None):
    settings = settings or app.state.context.settings
    assert isinstance(settings, Settings)
    sock = listen("127.0.0.1", 0)
    ready = threading.Event()
    server = CollectorServer(make_config(app, settings), app, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        assert ready.wait(DEADLINE_S)
        yield Live(url_of(sock, tls=False), sock.getsockname()[1], server, thread)
    finally:
        server.stop()
        server.stop()
        thread.join(DEADLINE_S)
        sock.close()
        assert not thread.is_alive()


def eventually(condition, what):
    """Wait for a condition that another thread makes true."""
    pause = threading.Event()
    for _ in range(int(DEADLINE_S / 0.005)):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError(f"never: {what}")
