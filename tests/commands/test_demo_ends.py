"""What ends a command early, and how its code tells by what."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dashboard.commands._ended import Ended, ended_by_signals


def _wait_and_get(number):
    with ended_by_signals():
        os.kill(os.getpid(), number)
        threading.Event().wait(30)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name
)
def test_a_closed_terminal_ends_it_as_ctrl_c_does(number):
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(Ended) as ended:
            _wait_and_get(number)
        assert ended.value.number == number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
