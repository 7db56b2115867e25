"""What ends a demo that shows its pages."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dashboard.commands.demo import _ended_by_signals


def _wait_and_get(number):
    with _ended_by_signals():
        os.kill(os.getpid(), number)
        threading.Event().wait(30)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_closed_terminal_ends_it_as_ctrl_c_does(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        _wait_and_get(number)
    assert signal.getsignal(number) is before
