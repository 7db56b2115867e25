"""Sealing moves the spool into files, and may be killed at any moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cascade_runtime.vocabulary.errors import BadTrace, BadUsage
from collector.trace.durable import alone_in
from collector.trace.seal import seal_trace
from collector.trace.trace_writer import write_tables
from tests.collector.traces import (
    done,
    entered,
    everything_under,
    make_trace,
    notes_of,
    rows_of,
    segment,
    step,
    write_spool,
)

CALLS = [(os, "fsync"), (Path, "replace"), (Path, "rename"), (shutil, "rmtree"), (Path, "mkdir")]
"""Every call by which sealing changes the disk."""


def spool_of_two(trace: Path) -> Path:
    """Two actors, one with a torn end in the middle and an open collective."""
    first = [step(0), entered(1), done(1), entered(2)]
    write_spool(trace, "0-0", segment(first)[:-3], segment([step(6)], first_seq=6) + bytes(64))
    write_spool(
        trace, "1-0", segment([step(0, 1), entered(1, 1)]), segment([done(1, 1)], first_seq=2)
    )
    return trace


class Killed(BaseException):
    """Not an Exception: nothing may catch it on the way and tidy up."""


class DiesAt:
    """Lets some calls through and dies at the next; counts them when it is to die at none."""

    def __init__(self, monkeypatch, when: int | None) -> None:
        self.calls = 0
        self.when = when
        for owner, name in CALLS:
            monkeypatch.setattr(owner, name, self.wrapped(getattr(owner, name)))

    def wrapped(self, real):
        def call(*args, **kwargs):
            if self.calls == self.when:
                raise Killed
            self.calls += 1
            return real(*args, **kwargs)

        return call


def test_killed_before_any_change_nothing_is_lost_and_sealing_again_finishes(tmp_path):
    whole = spool_of_two(make_trace(tmp_path / "whole"))
    before = rows_of(whole)
    with pytest.MonkeyPatch.context() as patch:
        count = DiesAt(patch, None)
        seal_trace(whole)
    assert count.calls > 15
    assert rows_of(whole) == before

    for when in range(count.calls):
        trace = spool_of_two(make_trace(tmp_path / f"killed-{when}"))
        with pytest.MonkeyPatch.context() as patch:
            DiesAt(patch, when)
            with pytest.raises(Killed):
                seal_trace(trace)
        assert rows_of(trace) == before, f"read after dying at call {when}"
        seal_trace(trace)
        assert rows_of(trace) == before, f"sealed again after dying at call {when}"
        stored = sum(len(rows) for rows in before.values())
        assert len(list((trace / "events").rglob("*.parquet"))) == len(before)
        assert count_in_files(trace) == stored, "a row was stored twice"
        left = [path.name for path in (trace / "spool").rglob("*")]
        assert sorted(left) == ["0-0", "0.seg", "damaged"]
        assert not list(trace.rglob(".*")), "temporary files are left"


def count_in_files(trace: Path) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(f).num_rows for f in (trace / "events").rglob("*.parquet"))


def test_the_summary_says_what_was_done(trace):
    spool_of_two(trace)
    summary = seal_trace(trace)
    assert summary.num_rows == {"steps": 3, "collectives": 2, "gaps": 1}
    assert (summary.num_actors, summary.kept) == (2, [])
    assert summary.damaged == ["spool/damaged/0-0/0.seg"]


def test_sealing_twice_and_sealing_nothing_change_no_rows(trace):
    assert seal_trace(trace).num_rows == {}
    write_spool(trace, "0-0", segment([step(0)]))
    assert seal_trace(trace).num_rows == {"steps": 1}
    assert not (trace / "spool").exists()
    assert seal_trace(trace).num_rows == {}
    assert notes_of(trace) == []


def test_rows_that_are_stored_already_are_not_stored_again(trace):
    write_tables(trace, {"steps": [step(0)], "collectives": [entered(1, completed=False)]})
    write_spool(trace, "0-0", segment([step(0), entered(1), step(2), done(1)]))
    assert seal_trace(trace).num_rows == {"steps": 1, "collectives": 1}
    assert rows_of(trace)["collectives"][0].completed is True


def test_a_late_completion_is_sealed(trace):
    write_tables(trace, {"collectives": [entered(1, completed=False)]})
    write_spool(trace, "0-0", segment([done(1)], first_seq=2))
    before = rows_of(trace)
    assert before["collectives"][0].completed is True
    seal_trace(trace)
    assert rows_of(trace) == before


def test_a_folder_with_rows_of_another_run_stays(trace):
    write_spool(trace, "0-0", segment([step(0), step(1, run_id="other")]))
    write_spool(trace, "1-0", segment([step(0, 1)]))
    summary = seal_trace(trace)
    assert (summary.kept, summary.num_rows) == (["0-0"], {"steps": 1})
    assert len(rows_of(trace)["steps"]) == 2


def test_no_trace_no_sealing(tmp_path):
    write_spool(tmp_path, "0-0", segment([step(0)]))
    before = everything_under(tmp_path)
    with pytest.raises(BadTrace):
        seal_trace(tmp_path)
    assert everything_under(tmp_path) == before


def test_a_broken_file_stops_it_before_anything_is_changed(trace):
    write_spool(trace, "0-0", segment([step(0)]))
    (trace / "events" / "steps").mkdir(parents=True)
    (trace / "events" / "steps" / "x.parquet").write_bytes(b"?")
    before = everything_under(trace)
    with pytest.raises(BadTrace):
        seal_trace(trace)
    assert everything_under(trace) == before


def test_two_at_once_are_refused(trace):
    with alone_in(trace, "sealing"), pytest.raises(BadUsage, match="another process"):
        seal_trace(trace)


def test_a_full_disk_is_told_in_words(trace, monkeypatch):
    write_spool(trace, "0-0", segment([step(0)]))

    def full(_handle):
        raise OSError(28, "No space left on device", "events")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadUsage, match="No space left"):
        seal_trace(trace)
    monkeypatch.undo()
    assert rows_of(trace)["steps"] == [step(0)]
    assert not list(trace.rglob(".*"))
