"""Real servers and a real browser; servers that several files look at live for the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.visit import Visit
from tests.samples import broken_walks
from tests.samples.broken import BROKEN
from tests.samples.doctor import Doctored
from tests.serving import Command, replayed

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def kill_one(chromium: Any) -> Iterator[Command]:
    """A replay of the sample in which rank 2 is killed."""
    with replayed("kill-one") as command:
        yield command


@pytest.fixture(scope="session")
def clean(chromium: Any) -> Iterator[Command]:
    """A replay of the sample in which nothing goes wrong."""
    with replayed("clean") as command:
        yield command


def doctored(code: str, folder: Path) -> Path:
    """A copy of a sample that breaks this promise, as tests of the referee make it."""
    sample, change = next(case[1:] for case in BROKEN if case[0] == code)
    assert change.__module__ == broken_walks.__name__  # registered as that is imported
    copy = Doctored(sample, folder)
    change(copy)
    return copy.save()


@pytest.fixture(scope="session")
def broken(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A replay of a run that climbed before its debt was settled (L3)."""
    with replayed(doctored("L3", tmp_path_factory.mktemp("broken"))) as command:
        yield command


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """visit(base, …): a page. In the end nothing may have gone wrong in any of them."""
    made: list[Visit] = []

    def begin(base: str, **options: Any) -> Visit:
        made.append(Visit(chromium, base, **options))
        return made[-1]

    yield begin
    for one in made:
        one.context.close()
    for one in made:
        one.check()


def run_path(command: Command, rest: str = "") -> str:
    """The path of its run's page."""
    return f"/dash/run/{command.ready['run_id']}{rest}"
