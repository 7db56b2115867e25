"""Rows on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.sql.table import text_table


def test_numbers_are_to_the_right_and_text_to_the_left():
    told = text_table(["rank", "word"], [[1, "a"], [10, "long"]], 80)
    assert told == "rank  word\n----  ----\n   1  a\n  10  long\n"


def test_null_is_nothing_and_false_is_a_word():
    told = text_table(["a", "b"], [[None, False], [1, True]], 80)
    assert told.splitlines()[2:] == ["   false", "1  true"]


def test_wide_cells_are_cut_and_marked():
    told = text_table(["id", "text"], [[1, "x" * 500]], 30)
    line = told.splitlines()[2]
    assert len(line) == 30 and line.endswith("x…")


def test_columns_without_room_are_named():
    told = text_table([f"column{i}" for i in range(20)], [list(range(20))], 40)
    assert told.splitlines()[-1].startswith("(no room for: column5, column6")


def test_what_a_terminal_would_obey_is_spelled_out():
    told = text_table(["a\x1b[2J"], [["x\x1b]0;evil\x07\ny\u202e"]], 80)
    assert "\x1b" not in told and "\x07" not in told and "\u202e" not in told
    assert told.count("\n") == 3
    assert "x\\x1b]0;evil\\x07\\ny" in told


def test_wide_letters_keep_the_columns_straight():
    told = text_table(["a", "b"], [["日本", 1], ["x", 2]], 80)
    assert told.splitlines()[2:] == ["日本  1", "x     2"]


CELLS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30))


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=4), st.integers(20, 120))
def test_no_line_is_wider_than_the_terminal(rows, width):
    told = text_table(["one", "two", "three"], rows, width)
    assert all(len(line) <= width for line in told.splitlines() if not line.startswith("("))
    assert len(told.splitlines()) >= 2 + len(rows)


def test_texts_give_way_before_numbers():
    told = text_table(["at_ns", "text"], [[1_785_000_000_123_456_789, "x" * 60]], 40)
    line = told.splitlines()[2]
    assert line == f"{1_785_000_000_123_456_789}  {'x' * 18}…"
    assert len(line) == 40


def test_without_a_width_nothing_is_cut():
    told = text_table(["id", "text", "more"], [[1, "x" * 500, "y" * 300]], None)
    assert "x" * 500 in told and "y" * 300 in told and "…" not in told
