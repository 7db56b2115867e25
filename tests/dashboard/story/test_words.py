"""Numbers, spans and names as people read them."""

from __future__ import annotations

import pytest

from dashboard.story.names import GroupNames
from dashboard.story.words import count, duration, moment, number_spans, plain, sentence, who


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (0, "0 µs"),
        (999, "1 µs"),
        (232_000_000, "232 ms"),
        (999_400_000, "999 ms"),
        (999_900_000, "1.0 s"),
        (9_940_000_000, "9.9 s"),
        (9_960_000_000, "10 s"),
        (59_600_000_000, "1 m 00 s"),
        (200_000_000_000, "3 m 20 s"),
        (3_599_600_000_000, "1 h 00 m"),
        (3_840_000_000_000, "1 h 04 m"),
    ],
)
def test_durations(ns, said):
    assert duration(ns) == said


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (2_130_000_000, "2.1 s"),
        (59_960_000_000, "1 m 00.0 s"),
        (72_345_000_000, "1 m 12.3 s"),
        (11_045_060_000_000, "3 h 04 m 05.1 s"),
        (-300_000_000, "-0.3 s"),
    ],
)
def test_moments(ns, said):
    assert moment(ns) == said


def test_lists_and_counts():
    assert number_spans([5, 0, 1, 2]) == "0-2, 5"
    assert number_spans([0, 1]) == "0, 1"
    assert number_spans(range(0, 100, 2)).endswith(" and 38 more")
    assert who([]) == "" and who([2]) == "rank 2" and who([0, 2]) == "ranks 0, 2"
    assert count(1, "debt") == "1 debt" and count(1204, "debt") == "1,204 debts"
    assert sentence("it is") == "It is." and sentence("") == ""


def test_texts_are_short_and_on_one_line():
    assert plain("a\nb\x00c\u202ed") == "a\ufffdb\ufffdc\ufffdd"
    assert plain("x" * 200, 10) == "x" * 9 + "…"
    assert plain(None) == ""


def test_names_stay_different():
    names = GroupNames(["a" * 100 + "1", "a" * 100 + "2", "b"])
    assert len(names.all) == 3
    assert names("b") == "b"
    assert names("new\n") == "new\ufffd"
    assert len(names.all) == 4
