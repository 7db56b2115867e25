"""Slow answers about a saved trace are kept, others and those about made results are not."""

import pyarrow as pa
import pytest

from dashboard.story import kept_answers
from dashboard.story.kept_answers import KeptAnswers

ANSWER = pa.table({"n": [1, 2, 3]})


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Asks a trace without results; every statement that reached it is in ``asked.seen``."""
    monkeypatch.setenv("CASCADE_CACHE", str(tmp_path / "cache"))
    trace = tmp_path / "trace"
    trace.mkdir()
    (trace / "trace.json").write_text("{}")
    seen = []

    def ask(sql):
        seen.append(sql)
        return ANSWER

    def made():
        answers = KeptAnswers(trace, ask)
        answers.seen = seen
        return answers

    return made


def test_a_slow_answer_is_kept_for_the_next_opening(asked, monkeypatch):
    monkeypatch.setattr(kept_answers, "SLOW_S", -1.0)
    assert [asked().query("SELECT 1") for _ in range(2)] == [ANSWER, ANSWER]
    assert asked().seen == ["SELECT 1"]


def test_a_quick_one_is_not(asked, monkeypatch):
    monkeypatch.setattr(kept_answers, "SLOW_S", 60.0)
    assert [asked().query("SELECT 1") for _ in range(2)] == [ANSWER, ANSWER]
    assert asked().seen == ["SELECT 1"] * 2


def test_results_that_are_not_in_the_trace_are_not_kept(asked, monkeypatch):
    monkeypatch.setattr(kept_answers, "SLOW_S", -1.0)
    for _ in range(2):
        asked().query("SELECT count(*) FROM waits")
    assert len(asked().seen) == 2


def test_a_damaged_file_is_asked_again(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(kept_answers, "SLOW_S", -1.0)
    asked().query("SELECT 1")
    (file,) = (tmp_path / "cache").rglob("*.arrow")
    file.write_bytes(b"nothing")
    assert asked().query("SELECT 1") == ANSWER
    assert len(asked().seen) == 2
