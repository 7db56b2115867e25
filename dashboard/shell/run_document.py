"""The run view's document. Dash has no part in it: the first picture would wait for all of Dash.

Its tabs lead to documents of Dash, in which the run view is a page like the others (pages/run.py).
"""

from __future__ import annotations

import html
from urllib.parse import quote

from cascade_runtime.vocabulary.errors import CascadeError
from collector.storage._interface import RunSummary
from dashboard.shell.bundle import bundle
from dashboard.shell.context import Shell
from dashboard.shell.head import head, title_of
from dashboard.shell.nodes import as_html
from dashboard.shell.paths import NOWHERE, Place, address

_PLAIN = "!*'()"

_TEXT = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="preload" as="fetch" href="{api}/pulse" crossorigin>
<link rel="preload" as="fetch" href="{api}/story?packed=1&amp;soon=1" crossorigin>
<script src="{theme}"></script>
<link rel="stylesheet" href="{sheet}">
<script src="{script}" defer></script>
<link rel="icon" type="image/svg+xml" href="{icon}">
</head>
<body>
<noscript>The pages need JavaScript; cascade analyze and cascade sql say the same in a terminal.</noscript>
{head}
<main class="cs-page" id="cascade-run" data-run="{run_id}"><p class="cs-loading">Loading the run ...</p></main>
</body>
</html>
"""
"""What the view asks for first (assets/25_source.js) is asked for before its script is there."""


def run_document(shell: Shell, run: RunSummary) -> bytes:
    """The document of a run.

    Args:
        shell: what is shown.
        run: the run.
    """
    place, files = Place("run", run.run_id), bundle()
    # As encodeURIComponent does: the browser finds what it has by its address.
    api = "/v1/runs/" + quote(run.run_id, safe=_PLAIN)
    return _TEXT.format(
        title=html.escape(title_of(place, run)),
        api=html.escape(api),
        theme=files.theme.path,
        sheet=files.sheet.path,
        script=files.script.path,
        icon=files.icon.path,
        head=as_html(head(shell, place, run)),
        run_id=html.escape(run.run_id),
    ).encode()


_FAILED = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Not shown - CASCADE Timelines</title>
<script src="{theme}"></script>
<link rel="stylesheet" href="{sheet}">
<link rel="icon" type="image/svg+xml" href="{icon}">
</head>
<body>
<main class="cs-page">
<h1>This cannot be shown</h1>
<p role="alert">{message}</p>
{more}
</main>
</body>
</html>
"""


_NOWHERE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<script src="{theme}"></script>
<link rel="stylesheet" href="{sheet}">
<script src="{script}" defer></script>
<link rel="icon" type="image/svg+xml" href="{icon}">
</head>
<body>
{head}
<main class="cs-page">
<div class="cs-title"><h1>No such page</h1></div>
<div class="cs-notice" role="alert">
<p>There is no page at <code>{path}</code>.</p>
<ul>{links}</ul>
</div>
</main>
</body>
</html>
"""

_MOST_SHOWN = 200


def nowhere_document(shell: Shell, path: str) -> bytes:
    """The document of an address that no page has: what is asked for, and where to go.

    Args:
        shell: what is shown.
        path: as it was asked for; it may be hostile.
    """
    files = bundle()
    ways = [("All runs", address("runs")), ("SQL", address("sql")), ("Health", address("health"))]
    links = [f'<li><a href="{html.escape(href)}">{text}</a></li>' for text, href in ways]
    links.append('<li><a href="/openapi.json">What programs may ask (OpenAPI)</a></li>')
    return _NOWHERE.format(
        title=html.escape(title_of(NOWHERE, None)),
        theme=files.theme.path,
        sheet=files.sheet.path,
        script=files.script.path,
        icon=files.icon.path,
        head=as_html(head(shell, NOWHERE, None)),
        path=html.escape(path[:_MOST_SHOWN]),
        links="".join(links),
    ).encode()


def failed_document(error: CascadeError) -> bytes:
    """The document of a page that cannot be made: what happened, where, what to do."""
    files = bundle()
    told = [("Where", error.where), ("What to do", error.hint)]
    more = [f"<p>{name}: {html.escape(text)}</p>" for name, text in told if text]
    return _FAILED.format(
        theme=files.theme.path,
        sheet=files.sheet.path,
        icon=files.icon.path,
        message=html.escape(error.message),
        more="\n".join(more),
    ).encode()
