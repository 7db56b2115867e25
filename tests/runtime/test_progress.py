"""The progress word: written by a rank, read by its agent, also after the rank's death."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cascade_runtime.progress import (
    HALTED,
    HEADER_BYTES,
    PHASES,
    WAITING,
    Fence,
    Progress,
    ProgressWord,
    read_progress,
    read_standing,
)


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


# ---- claim and fence ------------------------------------------------------------------------------


def test_a_claim_is_what_may_have_been_decided(tmp_path: Path) -> None:
    word = ProgressWord(tmp_path / "word")
    word.write(7, 30, WAITING)
    assert read_standing(tmp_path / "word") == (7, 30)
    word.claim(8)
    assert read_standing(tmp_path / "word") == (8, 30)
    assert Fence(tmp_path / "word").standing() == (8, 30)
    word.write(8, 30, WAITING)
    assert read_standing(tmp_path / "word") == (8, 30)


def test_a_fence_is_seen_by_the_rank_and_says_for_how_long(tmp_path: Path) -> None:
    word = ProgressWord(tmp_path / "word")
    fence = Fence(tmp_path / "word")
    assert not word.fenced and not fence.is_up
    began = time.monotonic_ns()
    fence.raise_(began)
    assert word.fenced and fence.is_up
    fence.resumed(began + 1_500_000_000)
    assert word.stopped_s == 1.5
    assert ProgressWord(tmp_path / "word").fenced, "a fence is final"


def test_the_words_keep_to_their_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "word"
    path.write_bytes(b"\0" * HEADER_BYTES + b"another's")
    word = ProgressWord(path)
    word.write(1, 2, WAITING)
    word.claim(2)
    Fence(path).raise_(-5)  # before the clock began: up all the same
    assert word.fenced
    assert path.read_bytes()[HEADER_BYTES:] == b"another's"


def test_who_never_got_so_far_cannot_be_fenced(tmp_path: Path) -> None:
    assert read_standing(tmp_path / "word") == (0, 0)
    with pytest.raises(FileNotFoundError):
        Fence(tmp_path / "word")
