"""The panels in a real browser, fed by the real routes with the samples' real stories."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.story.routes import routes
from dashboard.story.sources import TraceSources
from dashboard.story.trace_source import TraceRun
from tests.samples import broken_walks
from tests.samples.broken import BROKEN
from tests.samples.doctor import Doctored

ASSETS = Path(__file__).parents[3] / "dashboard" / "assets"
HERE = Path(__file__).parent
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
PATIENCE_MS = 10_000


def part_scripts() -> list[Path]:
    """The canvas' and the panels' scripts in the order in which pages load them."""
    return [p for p in sorted(ASSETS.glob("*.js")) if p.name[:2].isdigit() and int(p.name[:2]) < 90]


def _page() -> str:
    sheets = "".join(
        f'<link rel="stylesheet" href="/{p.name}">' for p in sorted(ASSETS.glob("*.css"))
    )
    scripts = "".join(f'<script src="/{p.name}"></script>' for p in part_scripts())
    html = (HERE / "stage.html").read_text(encoding="utf-8")
    return html.replace("<!-- sheets -->", sheets).replace("<!-- scripts -->", scripts)


class Theatre:
    """Serves the stage and one run's routes on a free loopback port."""

    def __init__(self, trace: str | Path) -> None:
        import uvicorn
        from fastapi import FastAPI
        from starlette.responses import Response

        self.run = TraceRun(trace)
        self.sources = TraceSources(self.run)
        assert self.run.wait_until_judged(60)
        app = FastAPI()
        app.include_router(routes(self.sources))

        @app.get("/{name}")
        def asset(name: str) -> Response:
            if name == "stage":
                return Response(_page(), media_type="text/html")
            found = [p for p in (HERE / name, ASSETS / name) if p.is_file()]
            if not found:
                return Response(status_code=404)
            return Response(found[0].read_bytes(), media_type=TYPES[found[0].suffix])

        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        ready = threading.Event()
        while not self._server.started and self._thread.is_alive():
            ready.wait(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self.sources.close()


@pytest.fixture(scope="session")
def kill_one() -> Iterator[Theatre]:
    theatre = Theatre("kill-one")
    yield theatre
    theatre.close()


@pytest.fixture(scope="session")
def clean() -> Iterator[Theatre]:
    theatre = Theatre("clean")
    yield theatre
    theatre.close()


@pytest.fixture(scope="session")
def broken(tmp_path_factory) -> Iterator[Theatre]:
    """kill-one with a climb before the debt was settled: L3, found by the real analyzer."""
    sample, change = next(case[1:] for case in BROKEN if case[0] == "L3")
    assert change.__module__ == broken_walks.__name__
    doctored = Doctored(sample, tmp_path_factory.mktemp("broken") / sample)
    change(doctored)
    theatre = Theatre(doctored.save())
    yield theatre
    theatre.close()


class Act:
    """A page on which a run is mounted."""

    def __init__(self, page: Any, theatre: Theatre, options: dict[str, Any], query: str) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        page.on(
            "console", lambda said: self.errors.append(said.text) if said.type == "error" else None
        )
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{theatre.base}/stage{query}")
        page.evaluate("(o) => stage.play(o)", {"run": theatre.run.run_id, **options})

    def view(self, name: str) -> Any:
        return self.page.evaluate("(name) => stage.view[name]", name)

    def set(self, **patch: Any) -> None:
        self.page.evaluate("(patch) => { stage.view.set(patch); }", patch)

    def frame(self, ms: float) -> None:
        self.page.evaluate("(ms) => stage.frame(ms)", ms)

    def wait(self, expression: str) -> None:
        """Until the expression is true in the page."""
        self.page.wait_for_function(expression)


@pytest.fixture
def act(chromium) -> Iterator[Any]:
    """act(theatre, change=…, width=…): opens it; at the end nothing may have failed in the page."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    acts: list[Act] = []

    def begin(theatre: Theatre, *, width: int = 1280, query: str = "", **options: Any) -> Act:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        acts.append(Act(page, theatre, options, query))
        return acts[-1]

    yield begin
    errors = [error for one in acts for error in one.errors]
    context.close()
    assert errors == []
