"""Random delays, stops and kills while a straggler may step by itself, each job checked.

    python -m tests.runtime.random_delays --seed S --num 100 --results FILE --save

As ``random_faults``, with the schedules of ``delays``.
"""

from __future__ import annotations

from tests.runtime import random_faults
from tests.runtime.delays import draw
from tests.runtime.delays_played import play
from tests.runtime.random_faults import Kind

DELAYS = Kind(
    "random_delays",
    draw,
    play,
    "no job hung, every survivor finished with the same bytes, what all became after cohorts had been "
    "apart is base and deltas added up in canonical order, cascade analyze said ok, and every debt was "
    "closed, in each schedule that is not wrong",
)

if __name__ == "__main__":
    raise SystemExit(random_faults.main(kind=DELAYS))
