"""A spool that is shipped while it is written never fills up; one that is not drops as before."""

from __future__ import annotations

from pathlib import Path

from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Gaps
from cascade_runtime.vocabulary.identity import Actor
from tests.collector.traces import RUN, make_trace, rows_of

MAX = 64 * 1024


def writer(folder: Path) -> Recorder:
    return Recorder(folder / "spool", RUN, Actor(0), segment_bytes=2048, max_spool_bytes=MAX)


def clear(folder: Path, keep: int) -> int:
    """Remove all segments but the newest, as an agent that has shipped them."""
    segments = sorted((folder / "spool" / "0-0").glob("*.seg"), key=lambda p: int(p.stem))
    for path in segments[:-keep]:
        path.unlink()
    return len(segments)


def test_shipped_segments_do_not_count(tmp_path: Path) -> None:
    recorder = writer(tmp_path)
    for _ in range(200):
        for _ in range(50):
            recorder.steps("begin")
        clear(tmp_path, keep=2)
    assert recorder._number * 2048 > 5 * MAX
    assert recorder.num_dropped == 0


def test_what_is_not_shipped_counts_as_before(tmp_path: Path) -> None:
    recorder = writer(tmp_path)
    for _ in range(4 * MAX // 64):
        recorder.steps("begin")
    assert recorder.num_dropped > 0
    size = sum(p.stat().st_size for p in (tmp_path / "spool" / "0-0").iterdir())
    assert MAX * 0.9 < size < MAX + 4096


def test_after_a_full_spool_was_shipped_rows_are_kept_again(tmp_path: Path) -> None:
    trace = make_trace(tmp_path / "trace")
    recorder = writer(trace)
    while recorder.num_dropped == 0:
        recorder.steps("begin")
    first = recorder.seq - 1
    clear(trace, keep=1)
    for _ in range(1500):
        recorder.steps("begin")
    recorder.close()
    rows = {r.seq: r for rows in rows_of(trace).values() for r in rows if r.seq >= first}
    (gap,) = [r for r in rows.values() if isinstance(r, Gaps)]
    assert (gap.first_seq, gap.last_seq) == (first, gap.seq - 1)
    assert sorted(rows) == list(range(gap.seq, recorder.seq))


def test_counting_is_not_done_at_every_roll(tmp_path: Path) -> None:
    recorder = writer(tmp_path)
    counted = 0
    count = recorder._recount

    def counting() -> None:
        nonlocal counted
        counted += 1
        count()

    recorder._recount = counting  # type: ignore[method-assign]
    while recorder._bytes_before < MAX * 0.9:
        recorder.steps("begin")
    assert 0 < counted <= 9  # 16ths from a half on, of 29 segments
