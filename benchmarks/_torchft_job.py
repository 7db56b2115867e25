"""One replica of the same training job under torchft; kill_stall.py starts four. Needs torchft-nightly.

Writes a line a step to ``--log``: CLOCK_MONOTONIC in ns after the optimizer, committed steps, replicas.
"""

from __future__ import annotations

import argparse
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import nn
from torch.distributed import TCPStore
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--replica", required=True)
    parser.add_argument("--replicas", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    width = arguments.width
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    bare = nn.Sequential(*layers, nn.Linear(width, 10))
    sgd = torch.optim.SGD(bare.parameters(), lr=1e-3, momentum=0.9)

    def state() -> dict[str, object]:
        return {"model": bare.state_dict(), "optimizer": sgd.state_dict()}

    def load(told: dict[str, dict[str, object]]) -> None:
        bare.load_state_dict(told["model"])
        sgd.load_state_dict(told["optimizer"])

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun's otherwise
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=30)),
        load_state_dict=load,
        state_dict=state,
        min_replica_size=2,
        timeout=timedelta(seconds=30),
        replica_id=arguments.replica,
        hostname="127.0.0.1",
        store_addr="127.0.0.1",
        store_port=store.port,
        rank=0,
        world_size=1,
    )
    model = DistributedDataParallel(manager, bare)
    optimizer = Optimizer(manager, sgd)
    inputs = torch.randn(arguments.batch, width)
    with arguments.log.open("w", buffering=1) as log:
        while manager.current_step() < arguments.steps:
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
            now, members = time.monotonic_ns(), manager.num_participants()
            log.write(f"{now} {manager.current_step()} {members}\n")
    manager.shutdown(wait=False)


if __name__ == "__main__":
    main()
