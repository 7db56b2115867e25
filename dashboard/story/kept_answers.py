"""Slow answers about a saved trace, kept on disk: the next opening of it asks them of a file.

They lie beside the tiles (dashboard/tiles/cache), in a folder whose name changes with the trace's files
and with the release. What cannot be written or read is asked of the trace.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from dashboard.story.trace_tables import reads_results
from dashboard.tiles.cache import story_folder

SLOW_S = 0.1
"""An answer that took longer is kept."""

MAX_BYTES = 128 << 20
MAX_FILES = 40
"""Of one trace."""

_log = logging.getLogger(__name__)


class KeptAnswers:
    """The answers about one trace.

    Args:
        trace: its folder or zip.
        ask: asks the trace itself.
    """

    def __init__(self, trace: Path, ask: Callable[[str], pa.Table]) -> None:
        self._trace = trace
        self._ask = ask
        self.renew()

    def renew(self) -> None:
        """The trace's files are others now."""
        self._folder = story_folder(self._trace)
        # Results that are not in the trace are made anew for each opening.
        self._has_results = (self._trace / "results" / "report.json").is_file()

    def query(self, sql: str) -> pa.Table:
        """The answer; raises what ``ask`` raises."""
        file = self._file(sql)
        if file is None:
            return self._ask(sql)
        found = _read(file)
        if found is not None:
            return found
        began = time.monotonic()
        answer = self._ask(sql)
        if time.monotonic() - began > SLOW_S and answer.nbytes <= MAX_BYTES:
            _write(file, answer)
        return answer

    def _file(self, sql: str) -> Path | None:
        if self._folder is None or (not self._has_results and reads_results(sql)):
            return None
        return self._folder / f"{hashlib.sha256(sql.encode()).hexdigest()[:40]}.arrow"


def _read(file: Path) -> pa.Table | None:
    if not file.exists():
        return None
    try:
        with pa.memory_map(str(file)) as mapped:
            return pa.ipc.open_file(mapped).read_all()
    except (OSError, pa.ArrowException) as error:
        _log.info("an answer that was kept is not used: %s", error)
        return None


def _write(file: Path, answer: pa.Table) -> None:
    """Whole or not at all."""
    made = None
    try:
        if sum(1 for _ in file.parent.iterdir()) > MAX_FILES:
            return
        handle, made = tempfile.mkstemp(prefix="new-", dir=file.parent)
        with os.fdopen(handle, "wb") as out, pa.ipc.new_file(out, answer.schema) as writer:
            writer.write_table(answer)
        Path(made).replace(file)
    except (OSError, pa.ArrowException) as error:
        _log.info("an answer is not kept: %s", error)
        if made is not None:
            with contextlib.suppress(OSError):
                Path(made).unlink()
