"""One uvicorn process around the app: starts, says when it is ready, stops without cutting anyone off."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from collector.web.protocol import bounded_protocol
from collector.web.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def make_config(
    app: FastAPI,
    settings: Settings,
    *,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> uvicorn.Config:
    """How uvicorn serves the app."""
    return uvicorn.Config(
        app,
        http=bounded_protocol(settings.limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # A client address that a header claims is worth nothing to us.
        proxy_headers=False,
        timeout_keep_alive=settings.keep_alive_seconds,
        # uvicorn hands it to asyncio, which takes fractions.
        timeout_graceful_shutdown=settings.stop_seconds,  # type: ignore[arg-type]
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )


class CollectorServer(uvicorn.Server):
    """Serves until SIGTERM, SIGINT or ``stop()``.

    A stop first makes the app refuse new work, then waits for the requests under way, at most as
    long as the settings allow; those that are not done by then are answered with 503. A second
    signal does not wait.

    Args:
        config: by ``make_config``.
        app: the app that it serves.
        on_ready: called when connections are taken.
    """

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(config)
        self._context = app.state.context
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections, and say so."""
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the connections, then the threads."""
        await super().shutdown(sockets)
        # Requests whose time was over get their answer now that they were cancelled.
        left = set(self.server_state.tasks)
        if left and not self.force_exit:
            await asyncio.wait(left, timeout=1.0)
        self._context.workers.shutdown(wait=False, cancel_futures=True)

    def stop(self) -> None:
        """Ask for a stop; from any thread. Twice: at once."""
        if self.should_exit:
            self.force_exit = True
        self._context.stopping = True
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        self.stop()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have the signals while serving.

        uvicorn's own raises them once more in the end, which would end the process before the store
        is closed.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in _SIGNALS}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)
