"""The progress word: written by a rank, read by its agent, also after the rank's death."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cascade_runtime.progress import HALTED, PHASES, WAITING, Progress, ProgressWord, read_progress


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    word = ProgressWord(tmp_path / "word")
    word.write(4, 17, WAITING)
    before = time.monotonic_ns()
    word.write(5, 20, HALTED)
    told = read_progress(tmp_path / "word")
    assert told is not None
    assert told == Progress(5, 20, told.mono_ns, "halted")
    assert before <= told.mono_ns <= time.monotonic_ns()


def test_it_outlives_its_writer(tmp_path: Path) -> None:
    word = ProgressWord(tmp_path / "word")
    word.write(2**40, 2**41, WAITING)
    del word
    told = read_progress(tmp_path / "word")
    assert told is not None
    assert told[:2] == (2**40, 2**41)


@pytest.mark.parametrize("phase", range(len(PHASES)))
def test_every_phase_has_its_name(tmp_path: Path, phase: int) -> None:
    ProgressWord(tmp_path / "word").write(0, 0, phase)
    told = read_progress(tmp_path / "word")
    assert told is not None
    assert told.phase == PHASES[phase]


def test_a_rank_that_never_got_so_far_has_none(tmp_path: Path) -> None:
    assert read_progress(tmp_path / "word") is None
    (tmp_path / "word").write_bytes(b"\1" * 31)
    assert read_progress(tmp_path / "word") is None


def test_a_new_word_says_starting(tmp_path: Path) -> None:
    ProgressWord(tmp_path / "word")
    assert read_progress(tmp_path / "word") == Progress(0, 0, 0, "starting")
