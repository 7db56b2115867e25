"""A trace that is closed while somebody asks it: the asker hears so, and nobody waits for the answer."""

from __future__ import annotations

import threading

import pytest

from cascade_runtime.vocabulary.errors import CascadeError
from dashboard.story.trace_source import TraceRun

ENDLESS = "SELECT count(*) FROM range(1000000000) AS a, range(1000000000) AS b, steps"
WAIT_S = 30


def test_closing_ends_what_is_asked():
    run = TraceRun("clean")
    run.query("SELECT count(*) FROM steps")
    failed: list[Exception] = []

    def ask() -> None:
        try:
            run.query(ENDLESS)
        except Exception as error:
            failed.append(error)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    closing = threading.Thread(target=run.close)
    closing.start()
    for thread in (closing, *askers):
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in (closing, *askers))
    assert len(failed) == 3 and all(isinstance(error, CascadeError) for error in failed)


def test_closed_it_answers_nobody_and_can_be_closed_again():
    run = TraceRun("clean")
    run.close()
    run.close()
    with pytest.raises(CascadeError, match="closed"):
        run.query("SELECT 1")
