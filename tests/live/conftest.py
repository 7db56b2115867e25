"""Collectors and jobs for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cascade_runtime.agent.zygote_process import Zygote
from tests.live.servers import Server
from tests.runtime.jobs import JobRunner


@pytest.fixture(scope="session")
def zygote() -> Iterator[Path]:
    with Zygote() as running:
        yield running.path


@pytest.fixture
def jobs(zygote: Path, tmp_path: Path) -> JobRunner:
    return JobRunner(zygote, tmp_path)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(name: str, *options: str) -> Server:
        server = Server(tmp_path / name, *options)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
