"""One zygote for all jobs of the session: torch is imported once, ranks are forked from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cascade_runtime.agent.zygote_process import Zygote
from tests.runtime.jobs import JobRunner


@pytest.fixture(scope="session")
def zygote() -> Iterator[Path]:
    with Zygote() as running:
        yield running.path


@pytest.fixture
def jobs(zygote: Path, tmp_path: Path) -> JobRunner:
    return JobRunner(zygote, tmp_path)
