"""The run view's document. Dash has no part in it: the first picture would wait for all of Dash.

Its tabs lead to documents of Dash, in which the run view is a page like the others (pages/run.py).
"""

from __future__ import annotations

import html
from urllib.parse import quote

from collector.storage._interface import RunSummary
from dashboard.shell.bundle import bundle
from dashboard.shell.context import Shell
from dashboard.shell.head import head, title_of
from dashboard.shell.nodes import as_html
from dashboard.shell.paths import Place

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
