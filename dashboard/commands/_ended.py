"""A command that a signal ends: Ctrl-C, kill, or a terminal that is closed."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


class Ended(KeyboardInterrupt):
    """A signal asked for the end.

    Attributes:
        number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise ``Ended`` in here, each time; a SIGHUP that nohup ignores does not."""

    def end(number: int, frame: object) -> None:
        raise Ended(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
