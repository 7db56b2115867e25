"""The Dash app: one document, one callback that fills it for the address, and the pages' own callbacks."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dash import Dash, Input, Output, State, dcc, html
from dash.fingerprint import check_fingerprint
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.plug import discover
from collector.storage._interface import RunSummary
from dashboard.shell import pages
from dashboard.shell.context import Shell
from dashboard.shell.csp import page_policy
from dashboard.shell.head import head
from dashboard.shell.nodes import as_dash
from dashboard.shell.pages._page import Content, Page, failed
from dashboard.shell.paths import NOWHERE, ROOT, Place, place_of, query_of
from dashboard.shell.untyped import component, in_browser

ASSETS = Path(__file__).parents[1] / "assets"

_log = logging.getLogger("cascade")

_check_fingerprint: Any = check_fingerprint  # it has no types

_SUITES = f"{ROOT}_dash-component-suites/"
_OWN = frozenset(
    f"{ROOT}{name}"
    for name in ("_dash-layout", "_dash-dependencies", "_dash-update-component", "_favicon.ico")
)

_OF_RESULTS = ("waits", "violations")
"""Pages that show what the analyzer found."""

_AGAIN_MS = 1500
_MOST_AGAIN = 100

_INDEX = f"""<!DOCTYPE html>
<html lang="en">
<head>
{{%metas%}}
<title>{{%title%}}</title>
<link rel="icon" type="image/svg+xml" href="{ROOT}assets/favicon.svg">
<script src="{ROOT}assets/90_theme.js"></script>
{{%css%}}
</head>
<body>
<noscript>The pages need JavaScript; cascade analyze and cascade sql say the same in a terminal.</noscript>
{{%app_entry%}}
<footer>
{{%config%}}
{{%scripts%}}
{{%renderer%}}
</footer>
</body>
</html>
"""
"""The theme's script comes before anything is painted; all others come last."""


@dataclass(frozen=True)
class DashPages:
    """Dash, ready to serve.

    Attributes:
        app: the ASGI app below ``ROOT``.
        policy: the Content-Security-Policy of its document.
    """

    app: FastAPI
    policy: bytes
    _dash: Dash
    _assets: frozenset[str]

    def has(self, path: str) -> bool:
        """Whether a page may fetch this path."""
        if path.startswith(_SUITES):
            package, _, file = path.removeprefix(_SUITES).partition("/")
            known = self._dash.registered_paths.get(package, ())
            plain, _ = _check_fingerprint(file)
            return plain in known
        return path in _OWN or path in self._assets


def build_pages(shell: Shell) -> DashPages:
    """Make the Dash app.

    Args:
        shell: what is shown.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    dash = Dash(
        "cascade",
        server=app,  # type: ignore[arg-type]  # it takes FastAPI too
        routes_pathname_prefix=ROOT,
        requests_pathname_prefix=ROOT,
        assets_folder=str(ASSETS),
        assets_ignore=r"90_theme\.js",
        use_pages=False,
        serve_locally=True,
        # An agent's door to every callback: what it would reach, /v1/sql gives in fewer words.
        enable_mcp=False,
        suppress_callback_exceptions=True,
        update_title=None,  # type: ignore[arg-type]  # None: leave the title alone
        title="CASCADE Timelines",
        add_log_handler=False,
        index_string=_INDEX,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        on_error=_say,
    )
    dash.layout = html.Div(
        [
            dcc.Location(id="at", refresh="callback-nav"),
            dcc.Store(id="theme"),
            dcc.Interval(id="again", interval=_AGAIN_MS, max_intervals=_MOST_AGAIN, disabled=True),
            html.Div(id="head"),
            html.Main(id="page", className="cs-page"),
        ]
    )
    found: dict[str, Page] = discover(pages)
    _route(dash, shell, found)
    for page in found.values():
        if page.callbacks is not None:
            page.callbacks(dash, shell)
    untyped: Any = dash
    untyped._setup_server()  # the lists of scripts, which the first request would make
    assets = frozenset(
        f"{ROOT}assets/{file.relative_to(ASSETS).as_posix()}"
        for file in ASSETS.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    )
    return DashPages(app, page_policy(dash.csp_hashes()), dash, assets)


def _route(dash: Dash, shell: Shell, found: dict[str, Page]) -> None:
    @dash.callback(
        Output("head", "children"),
        Output("page", "children"),
        Output("again", "disabled"),
        Input("at", "pathname"),
        Input("again", "n_intervals"),
        State("at", "search"),
    )
    async def show(path: str, num_again: int, search: str | None) -> tuple[Any, Any, bool]:
        # In a thread: Dash would run it on the event loop, with every sender waiting.
        heading, content = await run_in_threadpool(_shown, shell, found, path, query_of(search))
        return heading, content, not await run_in_threadpool(_waits, shell, path)

    in_browser(
        dash,
        "titled",
        Output("page", "data-titled"),
        Input("head", "children"),
    )


def _shown(
    shell: Shell, found: dict[str, Page], path: str, query: dict[str, str]
) -> tuple[Any, Content]:
    place = place_of(path)
    try:
        if place == NOWHERE:
            return _head(shell, place, None), found["nowhere"].content(shell, place, query)
        run = None
        if place.run_id is not None:
            run = shell.run(place.run_id)
            if run is None:
                return _head(shell, place, None), found["unknown-run"].content(shell, place, query)
        return _head(shell, place, run), found[place.page].content(shell, place, query)
    except CascadeError as error:
        return _head(shell, place, None), failed(error)
    except Exception as error:
        _log.exception("fault of a page", exc_info=error)
        fault = CascadeError(
            "this is a fault of ours, not of yours", where=place.page, hint="the log tells more"
        )
        return _head(shell, place, None), failed(fault)


def _head(shell: Shell, place: Place, run: RunSummary | None) -> Any:
    return as_dash(head(shell, place, run), component)


def _waits(shell: Shell, path: str) -> bool:
    """Whether a page waits for the first analysis of its run, and is to be made again."""
    place = place_of(path)
    if place.page not in _OF_RESULTS or place.run_id is None:
        return False
    try:
        return shell.source(place.run_id).report() is None
    except CascadeError:
        return False


def _say(error: Exception) -> None:
    """A callback failed: it is a fault of ours, or a store that is closing."""
    _log.error("fault of a page", exc_info=error)
    raise error
