"""Says where the pages are, and opens them where there is a screen."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any


def open_page(
    url: str,
    verb: str,
    *,
    wanted: bool,
    stays: bool = True,
    ready: Mapping[str, Any] | None = None,
    as_json: bool = False,
) -> None:
    """Print a page's URL, and open it.

    Args:
        url: the page.
        verb: who says so.
        wanted: open it too, where there is a display.
        stays: the page is there until Ctrl-C; else it goes away by itself.
        ready: the line of JSON for ``--json``.
        as_json: print that on stdout, and nothing else.
    """
    if as_json:
        print(json.dumps(dict(ready or {"url": url})), flush=True)
    else:
        told = f"open {url}   (Ctrl-C ends it)" if stays else f"while it runs, its page is {url}"
        sys.stderr.write(f"cascade {verb}: {told}\n")
        sys.stderr.flush()
    if wanted and has_display():
        # Some browsers hold on to whoever starts them, and this one has pages to serve.
        threading.Thread(target=_open, args=(url,), daemon=True).start()


def has_display() -> bool:
    """Whether somebody could see a browser here."""
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)
