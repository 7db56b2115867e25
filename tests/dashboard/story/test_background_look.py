"""One look at a time, in a thread that nothing waits for; a failure is told and does not stay."""

from __future__ import annotations

import threading

from dashboard.story import activity_keeper
from dashboard.story.background_look import BackgroundLook
from dashboard.story.teller import Teller
from dashboard.story.trace_source import TraceRun
from dashboard.tiles.background import is_background
from tests.analyzer.runs import kill_one_run
from tests.dashboard.story.kit import trace_of

WAIT_S = 30


def ended(looks):
    looks._thread.join(WAIT_S)
    assert not looks.is_going_on


def test_a_second_look_is_not_begun_while_one_goes_on():
    looks, go_on, done = BackgroundLook("a-look", "a run"), threading.Event(), []

    def look():
        assert go_on.wait(WAIT_S)
        done.append(is_background())

    assert not looks.was_begun
    assert looks.begin(look, done.clear)
    assert looks.is_going_on
    assert not looks.begin(lambda: done.append("second"), done.clear)
    go_on.set()
    ended(looks)
    assert done == [True]  # and what comes in does not give way to it
    assert looks.generation == 1


def test_a_look_that_fails_is_told_and_the_next_one_is_taken(caplog):
    looks, told, done = BackgroundLook("a-look", "the rows of run r"), [], []
    assert looks.begin(lambda: 1 // 0, lambda: told.append("failed"))
    ended(looks)
    assert told == ["failed"] and "the rows of run r could not be looked at" in caplog.text
    assert looks.begin(lambda: done.append(1), lambda: told.append("again"))
    ended(looks)
    assert (told, done, looks.generation) == (["failed"], [1], 2)


def test_a_look_is_waited_for_so_long_at_most():
    looks, go_on, ended = BackgroundLook("a-look", "a run"), threading.Event(), []
    looks.wait(0)  # there is none yet
    assert looks.begin(lambda: ended.append(go_on.wait(WAIT_S)), go_on.clear)
    looks.wait(0)
    assert looks.is_going_on
    go_on.set()
    looks.wait(WAIT_S)
    assert (looks.is_going_on, looks.generation, ended) == (False, 1, [True])


def test_a_saved_trace_is_told_once_where_its_first_look_is_short(tmp_path, monkeypatch):
    monkeypatch.setattr(activity_keeper, "SYNC_ROWS", 0)
    monkeypatch.setattr(activity_keeper, "FIRST_S", WAIT_S)
    run = TraceRun(trace_of(kill_one_run(dead=2), tmp_path / "t", judged=True))
    teller = Teller(run)
    told = teller.story()
    assert told.facts.activity is not None and told.version == teller.version()
    assert teller.story() is told
    run.close()
