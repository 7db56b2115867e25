"""One run under analysis: has its folder changed, and what does the analyzer say of it now?"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from analyzer import analyze
from cascade_runtime.vocabulary.errors import BadTrace
from collector.trace.growing import QUIET_S, GrowingTrace
from collector.trace.segment_cache import SegmentCache
from collector.trace.trace_folder import TraceFolder
from collector.trace.trace_writer import write_results

_TRIES = 3
Signature = frozenset[tuple[str, int, int]]
"""(path, inode, mtime) of the files that an analysis reads."""


class RunWatch:
    """Judges one run's folder again when it has changed.

    Segments are read once; the rules run over all rows each time, so the pauses between two
    judgements grow with what one costs.

    Args:
        root: the run's trace folder.
        max_share: of one core that judging this run may take.
        quiet_s: see collector.trace.growing.QUIET_S.
        mono_s: the clock.
    """

    def __init__(
        self,
        root: Path,
        max_share: float = 0.2,
        quiet_s: float = QUIET_S,
        mono_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        self.verdict: str | None = None
        self._max_share = max_share
        self._quiet_s = quiet_s
        self._mono_s = mono_s
        self._changed_s = mono_s()
        self._judged_growing = False
        self._cache = SegmentCache()
        self._seen: Signature = frozenset()
        self._not_before_s = 0.0

    def due_s(self, now_s: float) -> float:
        """Seconds until the run may be judged again; 0 when it may now."""
        return max(0.0, self._not_before_s - now_s)

    def judge(self) -> bool:
        """Judge the run if anything of it changed; True when it did.

        Results are replaced as a whole, ``results/report.json`` with them.

        Raises:
            CascadeError: the folder is no trace, or cannot be written.
            OSError: it cannot be read.
        """
        signature = _signature(self.root)
        started = self._mono_s()
        if signature != self._seen:
            self._changed_s = started
        is_quiet = started - self._changed_s >= self._quiet_s
        if signature == self._seen and not (is_quiet and self._judged_growing):
            return False
        if not (self.root / "trace.json").exists():
            return False
        self._cache.keep_only({Path(path) for path, _, _ in signature})
        for attempt in range(_TRIES):
            try:
                self._judge(is_quiet=is_quiet)
                break
            except (BadTrace, FileNotFoundError):
                # A tail was sealed or replaced in mid-reading. A folder that stays so is damaged.
                if attempt == _TRIES - 1 or not self.root.exists():
                    raise
        self._seen = signature
        now = self._mono_s()
        self._not_before_s = now + (now - started) * (1 / self._max_share - 1)
        return True

    def _judge(self, *, is_quiet: bool) -> None:
        with TraceFolder(self.root, cache=self._cache) as source:
            growing = source.meta.ended_ns is None and not is_quiet
            analysis = analyze(GrowingTrace(source) if growing else source)
        write_results(self.root, analysis.results, msgspec.json.encode(analysis.report))
        self.verdict = analysis.report.verdict
        self._judged_growing = growing


def _signature(root: Path) -> Signature:
    files = [root / "trace.json", *root.glob("events/*/*.parquet"), *root.glob("spool/*/*.seg")]
    found = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue  # sealed or dropped meanwhile
        found.append((str(file), stat.st_ino, stat.st_mtime_ns))
    return frozenset(found)
