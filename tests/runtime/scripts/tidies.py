"""Trains for long, and tidies up in its own way when it is interrupted: by KeyboardInterrupt or a handler.

Usage: tidies.py FOLDER except|handler|deaf
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(folder: Path, how: str) -> None:
    torch.set_num_threads(1)
    rank = os.environ["RANK"]
    told: list[int] = []
    if how != "except":
        signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        for step in range(100_000):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            if step == 3:
                (folder / f"began-{rank}").touch()
            while how == "deaf" and told:
                time.sleep(0.05)
            if told:
                break
            time.sleep(0.02)
    except KeyboardInterrupt:
        (folder / f"saved-{rank}").touch()
        raise
    (folder / f"saved-{rank}").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
