"""Step time and CPU seconds of an attached DDP job in observe mode, against plain DDP.

How it is measured, and why that is fair: _overhead.py.
"""

from __future__ import annotations

import sys

from benchmarks import _overhead

LIMIT = 1.0
TARGET = f"upper 95 % bound at most {LIMIT:.0f} % more, of both"


def main(argv: list[str]) -> int:
    return _overhead.main("overhead_observe", "observe", LIMIT, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
