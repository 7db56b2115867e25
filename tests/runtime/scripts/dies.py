"""The demo's training; ranks of DIES ("3:13,2:15") end themselves by SIGKILL in these steps.

No moment can be missed, however loaded the machine: a death comes in its step or not at all.
"""

from __future__ import annotations

import os
import signal

import torch

from dashboard.demo import train

deaths = {int(r): int(s) for r, s in (one.split(":") for one in os.environ["DIES"].split(","))}
batch_of = train.batch_of


def batch_or_death(seed: int, rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    if deaths.get(rank) == step:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch_of(seed, rank, step)


train.batch_of = batch_or_death
train.main()
