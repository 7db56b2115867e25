"""The run view's own files in a few: what it needs comes with few requests, and is asked for once."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from dashboard.shell.paths import ROOT
from dashboard.tiles.asked import takes_gzip

ASSETS = Path(__file__).parents[1] / "assets"

BUNDLES = f"{ROOT}_run/"
"""Below it are these files."""

_SHEETS = ("theme.css", "shell.css", "pages.css", "timeline.css", "panels.css")
_AROUND = ("90_help.js", "90_mount.js")
_FOR_EVER = "private, max-age=31536000, immutable"
"""Another text has another address."""


class File(NamedTuple):
    """One file as it is sent; ``path`` is its address, which changes with its text."""

    path: str
    media: str
    body: bytes
    in_gzip: bytes

    def answer(self, accepted: str) -> Response:
        """The file, for an Accept-Encoding."""
        takes = takes_gzip(accepted)
        headers = {"cache-control": _FOR_EVER, "vary": "Accept-Encoding"}
        if takes:
            headers["content-encoding"] = "gzip"
        return Response(
            self.in_gzip if takes else self.body, media_type=self.media, headers=headers
        )


class Bundle(NamedTuple):
    """The files of the run view.

    Attributes:
        theme: runs before anything is painted.
        script: everything else that runs, in the order of its files' names.
        sheet: the style sheets in one.
        icon: of the window.
    """

    theme: File
    script: File
    sheet: File
    icon: File

    def at(self, path: str) -> File | None:
        """The file of that address."""
        return next((file for file in self if file.path == path), None)


@cache
def bundle() -> Bundle:
    """The files, read once."""
    scripts = [*sorted(ASSETS.glob("[1-8]*.js")), *(ASSETS / name for name in _AROUND)]
    return Bundle(
        theme=_file("theme.js", "text/javascript", [ASSETS / "90_theme.js"]),
        script=_file("view.js", "text/javascript", scripts),
        sheet=_file("view.css", "text/css", [ASSETS / name for name in _SHEETS]),
        icon=_file("icon.svg", "image/svg+xml", [ASSETS / "favicon.svg"]),
    )


def _file(name: str, media: str, paths: Iterable[Path]) -> File:
    body = b"\n".join(path.read_bytes() for path in paths)
    mark = hashlib.sha256(body).hexdigest()[:16]
    return File(f"{BUNDLES}{mark}-{name}", media, body, gzip.compress(body, 9, mtime=0))
