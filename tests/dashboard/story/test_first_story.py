"""The first story of a run, when several ask at once."""

from __future__ import annotations

import threading

from dashboard.story.teller import Teller
from dashboard.story.trace_source import TraceRun
from tests.analyzer.runs import kill_one_run
from tests.dashboard.story.kit import trace_of

WAIT_S = 60.0
A_MOMENT_S = 0.2


def test_who_comes_while_it_is_being_begun_waits_for_it(tmp_path, monkeypatch):
    run = TraceRun(trace_of(kill_one_run(), tmp_path / "t"))
    teller = Teller(run)
    is_beginning, is_answered = threading.Event(), threading.Event()
    start = threading.Thread.start
    pulses, failed = [], []

    def slow_start(thread):
        if thread.name == "cascade-story":
            is_beginning.set()
            is_answered.wait(A_MOMENT_S)  # whoever did not wait would be through by then
        start(thread)

    def ask():
        try:
            pulses.append(teller.pulse())
        except Exception as error:
            failed.append(error)

    def ask_second():
        ask()
        is_answered.set()

    monkeypatch.setattr(threading.Thread, "start", slow_start)
    first, second = threading.Thread(target=ask), threading.Thread(target=ask_second)
    first.start()
    assert is_beginning.wait(WAIT_S)
    second.start()
    for one in (first, second):
        one.join(WAIT_S)
    run.close()
    assert failed == []
    assert len(pulses) == 2
