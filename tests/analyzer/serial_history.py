"""A large history that is consistent because it was executed one transaction after the other."""

from __future__ import annotations

import random
from pathlib import Path


def serial_history(file: Path, num_operations: int, num_sessions: int) -> None:
    """Write it: transactions of eight operations on 10,000 keys, half of them writes."""
    rng = random.Random(1)
    value: dict[int, int] = {}
    lines = []
    for number in range(num_operations):
        transaction = number // 8
        if number % 8 == 0:
            session = rng.randrange(num_sessions)
        key = int(10_000 * rng.random() ** 2)
        if rng.random() < 0.5:
            value[key] = number + 1
            lines.append(f"w({key},{number + 1},{session},{transaction})")
        else:
            lines.append(f"r({key},{value.get(key, 0)},{session},{transaction})")
    file.write_text("\n".join(lines) + "\n")
