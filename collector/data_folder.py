"""Where things lie in a collector's data folder (docs/data-folder.md)."""

from __future__ import annotations

import hashlib
import re
import urllib.parse
from pathlib import Path

VIEWS_FILE = "views.duckdb"
"""The database of views, beside ``runs/``."""

LONGEST_NAME = 100
"""Characters of a run's folder name before its hash."""

_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", re.ASCII)


def runs_folder(data: Path) -> Path:
    """The folder that holds one trace folder per run."""
    return data / "runs"


def run_folder(data: Path, run_id: str) -> Path:
    """The trace folder of a run, whether it is there or not; always directly below ``runs/``.

    A plain run_id is the folder's name. Any other is percent-encoded and cut, and its SHA-256 is
    put behind a ``%``, which no plain name holds: two run_ids never share a folder.
    """
    return runs_folder(data) / _folder_name(run_id)


def _folder_name(run_id: str) -> str:
    if _PLAIN.fullmatch(run_id):
        return run_id
    # surrogatepass: any str is an id here; whether it may be one is the doorway's to say.
    raw = run_id.encode("utf-8", "surrogatepass")
    readable = urllib.parse.quote(raw, safe="").replace(".", "%2E")[:LONGEST_NAME]
    return f"{readable}%{hashlib.sha256(raw).hexdigest()}"
