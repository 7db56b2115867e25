"""Signs of life of a member that waits."""

from __future__ import annotations

from cascade_runtime.rank.wait_rows import EVERY_S, LATER_EVERY_S, LONG_S, WaitRows
from cascade_runtime.vocabulary.identity import Actor


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


class Recorder:
    def __init__(self):
        self.rows = []

    def row(self, table, **fields):
        self.rows.append(fields)


def waited(seconds, clock, rows):
    for _ in range(int(seconds * 10)):
        clock.now_s += 0.1
        rows.look()


def made():
    clock, recorder = Clock(), Recorder()
    return clock, recorder, WaitRows(Actor(2, 1), recorder, clock)


def test_a_row_a_second_and_fewer_after_a_minute():
    clock, recorder, rows = made()
    rows.begin()
    waited(LONG_S, clock, rows)
    assert abs(len(recorder.rows) - LONG_S / EVERY_S) <= 5
    first = recorder.rows[0]
    assert (first["subject_rank"], first["subject_incarnation"]) == (2, 1)
    assert 1.0 <= first["value"] < 1.2 and first["fault"] is None
    num = len(recorder.rows)
    rows.begin()  # goes on: a walk asked for something in between
    waited(300, clock, rows)
    assert abs(len(recorder.rows) - num - 300 / LATER_EVERY_S) <= 5
    assert 359 < max(r["value"] for r in recorder.rows) + LATER_EVERY_S < 365


def test_short_waits_leave_none():
    clock, recorder, rows = made()
    for _ in range(50):
        rows.begin()
        waited(0.5, clock, rows)
        rows.end()
        waited(2.0, clock, rows)  # nothing is waited for
    assert recorder.rows == []


def test_it_hurts_nobody(monkeypatch, capsys):
    monkeypatch.delenv("CASCADE_RERAISE", raising=False)
    clock, recorder, rows = made()
    recorder.row = None
    rows.begin()
    waited(5, clock, rows)
    assert "goes on with less telemetry" in capsys.readouterr().err
