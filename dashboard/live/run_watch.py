"""One run under analysis: has its folder changed, and what does the analyzer say of it now?"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from analyzer import analyze
from cascade_runtime.vocabulary.errors import BadTrace
from collector.trace.growing import QUIET_S, GrowingTrace
from collector.trace.segment_cache import CacheBudget, SegmentCache
from collector.trace.trace_folder import TraceFolder
from collector.trace.trace_writer import write_results
from dashboard.live.judged import LIVE_S, mark_judged, signature_of, stamp_of, was_judged

_TRIES = 3
_RETRY_S = 1.0
_LONGEST_RETRY_S = 300.0


class _Ended(msgspec.Struct):
    ended_ns: int | None = None


class RunWatch:
    """Judges one run's folder again when it has changed.

    Segments are read once while the run grows; the rules run over all rows each time, so the pauses
    between two judgements grow with what one costs. After a failure the pause doubles each time.

    Args:
        root: the run's trace folder.
        max_share: of one core that judging this run may take.
        quiet_s: see collector.trace.growing.QUIET_S.
        mono_s: the clock.
        budget: what the caches of all runs may hold together.
    """

    def __init__(
        self,
        root: Path,
        max_share: float = 0.2,
        quiet_s: float = QUIET_S,
        mono_s: Callable[[], float] = time.monotonic,
        budget: CacheBudget | None = None,
    ) -> None:
        self.root = root.resolve()  # as TraceFolder names its files, and with them the cache
        self.verdict: str | None = None
        self._max_share = max_share
        self._quiet_s = quiet_s
        self._mono_s = mono_s
        self._changed_s = mono_s()
        self._judged_growing = False
        self._cache = SegmentCache(budget)
        self._seen: int | None = None
        self._not_before_s = 0.0
        self._retry_s = _RETRY_S
        self._ended = False
        self._ended_known_of: tuple[int, int] | None = None

    def due_s(self, now_s: float) -> float:
        """Seconds until the run may be judged again; 0 when it may now.

        A run that has just ended waits for nothing: somebody may be waiting for its verdict.
        """
        if self._judged_growing and self._has_ended():
            return 0.0
        return max(0.0, self._not_before_s - now_s)

    @property
    def is_preliminary(self) -> bool:
        """True when the verdict is on a run that was still growing."""
        return self._judged_growing

    def described_ns(self) -> int:
        """When trace.json was written, as it was known at the last ``is_live``."""
        return self._ended_known_of[1] if self._ended_known_of is not None else 0

    def is_live(self, wall_s: float) -> bool:
        """Whether the run has not ended and got something within an hour; others wait behind it."""
        if self._has_ended():
            return False
        files = [self.root / "trace.json", *self.root.glob("events/*/tail.parquet")]
        stamps = [stamp for file in files if (stamp := stamp_of(file)) is not None]
        return wall_s - max((ns for _, ns in stamps), default=0) / 1e9 < LIVE_S

    def judge(self) -> bool:
        """Judge the run if anything of it changed; True when it did.

        What this release judged before, in another process, is not judged again. Results are
        replaced as a whole, ``results/report.json`` with them.

        Raises:
            CascadeError: the folder is no trace, or cannot be written.
            OSError: it cannot be read.
        """
        try:
            judged = self._judge_changed()
        except Exception:
            self._not_before_s = self._mono_s() + self._retry_s
            self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)
            raise
        self._retry_s = _RETRY_S
        return judged

    def close(self) -> None:
        """Give back what the cache holds."""
        self._cache.clear()

    def _judge_changed(self) -> bool:
        signature = signature_of(self.root)
        seen = hash(signature)
        started = self._mono_s()
        if seen != self._seen:
            self._changed_s = started
        is_quiet = started - self._changed_s >= self._quiet_s
        if seen == self._seen and not (is_quiet and self._judged_growing):
            return False
        if not (self.root / "trace.json").exists():
            return False
        if self._seen is None and was_judged(self.root, signature):
            self._seen = seen
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
        if not self._judged_growing:
            # It has ended or hangs: most such runs never change again.
            self._cache.clear()
            mark_judged(self.root, signature)
        self._seen = seen
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

    def _has_ended(self) -> bool:
        stamp = stamp_of(self.root / "trace.json")
        if stamp is not None and stamp != self._ended_known_of:
            try:
                data = (self.root / "trace.json").read_bytes()
                self._ended = msgspec.json.decode(data, type=_Ended).ended_ns is not None
            except (OSError, msgspec.MsgspecError):
                self._ended = False  # judging it tells what is wrong
            self._ended_known_of = stamp
        return self._ended
