"""The demo's training, with one rank held back: it does not see that ``HELD_STEP`` is decided.

So the others decide it and this rank is one decided step behind when the next walk comes; it is rolled
forward then (environment: BEHIND_RANK).
"""

from __future__ import annotations

import os
from typing import Any

from cascade_runtime.rank.link import wait_readable
from cascade_runtime.rank.reducer import StepReducer
from dashboard.demo import train

HELD_STEP = 10

_wait = StepReducer._wait


def _held_back(self: Any, parts: list[Any]) -> Any:
    message = _wait(self, parts)
    if message is None and self.member.decided + 1 == HELD_STEP and self.member.view.epoch == 0:
        while message is None:
            wait_readable([self._link.fd], 0.05)
            message = self._next_walk_message()
    return message


if __name__ == "__main__":
    if os.environ["RANK"] == os.environ["BEHIND_RANK"]:
        StepReducer._wait = _held_back  # type: ignore[method-assign]
    train.main()
