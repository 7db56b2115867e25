"""The canvas part in a real browser over a stubbed server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.dashboard.canvas.stage import HOST, MOUNT, Stub

PATIENCE_MS = 10_000


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def errors() -> list[str]:
    """What the page complained of; a test that expects a complaint clears it."""
    return []


@pytest.fixture(scope="module")
def plain(chromium: Any) -> Iterator[Any]:
    """A page with the scripts and nothing mounted, shared by the tests of pure functions."""
    context = chromium.new_context(timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.route("**/*", Stub().answer)
    page.goto(f"{HOST}/")
    yield page
    context.close()


@pytest.fixture
def page(chromium: Any, stub: Stub, errors: list[str]) -> Iterator[Any]:
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", timezone_id="Asia/Kolkata"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda said: errors.append(said.text) if said.type == "error" else None,
    )
    page.route("**/*", stub.answer)
    page.goto(f"{HOST}/")
    yield page
    context.close()
    assert not errors
    assert not stub.strangers


@pytest.fixture
def mounted(page: Any) -> Any:
    """The page with a timeline of the stub's story, its first tile drawn."""
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story && tl.tiles.kept.length && !tl.frame")
    return page
