"""The demo's training, with one rank whose last word is its acknowledgement of the first fall.

It never commits that view, so the debts that it was to open are not opened by it (environment:
LAST_WORD_RANK; LAST_WORD_SIGNAL, a number).
"""

from __future__ import annotations

import os
from typing import Any

from cascade_runtime.rank.member import Member
from dashboard.demo import train

_acknowledge = Member.acknowledge


def _once_and_no_more(self: Any, message: Any) -> None:
    _acknowledge(self, message)
    if message.view.regime < message.view.from_regime:
        os.kill(os.getpid(), int(os.environ["LAST_WORD_SIGNAL"]))


if __name__ == "__main__":
    if os.environ["RANK"] == os.environ["LAST_WORD_RANK"]:
        Member.acknowledge = _once_and_no_more  # type: ignore[method-assign]
    train.main()
