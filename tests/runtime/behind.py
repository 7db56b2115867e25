"""The demo's training, with one rank held back: it does not see that ``HELD_STEP`` is decided.

So the others decide it and this rank is one decided step behind when the next walk comes; it is rolled
forward then (environment: BEHIND_RANK).
"""

from __future__ import annotations

import os
from typing import Any

from cascade_runtime.rank.link import wait_readable
from cascade_runtime.rank.waiting import Waiting
from dashboard.demo import train

HELD_STEP = 10

_until_done = Waiting.until_done


def _held_back(self: Any, parts: list[Any], of_step: bool = True) -> Any:
    message = _until_done(self, parts, of_step)
    member = self._member
    if message is None and member.decided + 1 == HELD_STEP and member.view.epoch == 0:
        while message is None:
            wait_readable([self._link.fd], 0.05)
            message = self.next_message()
    return message


if __name__ == "__main__":
    if os.environ["RANK"] == os.environ["BEHIND_RANK"]:
        Waiting.until_done = _held_back  # type: ignore[method-assign]
    train.main()
