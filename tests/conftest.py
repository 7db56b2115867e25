"""What all tests share: compiled passes, a folder for what processes leave behind, one browser."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.made_once import make

LONG = (
    "tests/runtime/test_kill_one.py",
    "tests/browser/",
    "tests/live/",
    "tests/runtime/",
    "tests/collector/store/",
)
"""The longest first, so that no worker is left with one of them while the other has nothing to do."""


MEASURED = ("tests/runtime/", "tests/agent/")
"""Whose processes coverage follows: ranks run nowhere else. What servers and verbs do is also tested
inside the tests' own processes, and measuring them once more took a quarter more of the processor."""

FOLLOW = "COVERAGE_PROCESS_CONFIG"
FOLLOWED = os.environ.get(FOLLOW)
"""What coverage left there for the processes to come."""

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def pytest_configure(config: pytest.Config) -> None:
    """Before workers start: each would compile for itself, and coverage makes that slower still."""
    # Where it is set (images of containers do), every process compiles all of our sources again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        make()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """xdist keeps this order with --no-loadscope-reorder; its own is by the number of tests."""
    for item in items:
        # They run in processes of their own (make test): once Playwright was started, its event loop counts
        # as running until the process ends, and greenlets and the compiler of Python 3.11 get on badly.
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    items.sort(key=_turn)  # stable: within a file nothing changes


@pytest.hookimpl(tryfirst=True)  # before fixtures start processes
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Processes that this test starts are measured, or not."""
    if FOLLOWED is not None:
        os.environ.pop(FOLLOW, None)
        if item.nodeid.startswith(MEASURED):
            os.environ[FOLLOW] = FOLLOWED


def _turn(item: pytest.Item) -> int:
    places = (i for i, place in enumerate(LONG) if item.nodeid.startswith(place))
    return next(places, len(LONG))


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Temporary folders of this session, and of all processes it starts, lie in one that is removed.

    Tests kill processes that would have tidied up. The name is short: a socket's path ends at 107 bytes.
    """
    tmp_path_factory.getbasetemp()  # stays where it was: what it holds is kept for looking at
    before = os.environ.get("TMPDIR"), tempfile.tempdir
    folder = tempfile.mkdtemp(prefix="ct-")
    Path(folder).chmod(0o711)  # PostgreSQL, which a benchmark starts, runs as another user
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    yield
    os.environ.pop("TMPDIR")
    if before[0] is not None:
        os.environ["TMPDIR"] = before[0]
    tempfile.tempdir = before[1]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless browser, one for all tests: Playwright can be started once a process only."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
