"""A planner and its workers, as anybody writes them, sharing plans without torch (docs/state.md).

Rank 0 plans: a plan a round, then "go". Each worker acts on the plan in its hand. In round ``--replan``
rank ``--slow-rank`` prepares for so long that the next plan is out when it acts; it has heard of it, and acts
on the plan in its hand all the same, unless it is told not to.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import cascade_runtime as cascade


def main() -> None:
    """Plan or work, and say on what."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20, help="rounds")
    parser.add_argument("--pause-ms", type=float, default=50.0, help="what acting takes")
    parser.add_argument("--slow-rank", type=int, default=2)
    parser.add_argument("--replan", type=int, default=12, help="the round in which it is slow")
    arguments = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    plan = cascade.State("plan")
    work = cascade.State("work", kind="state")
    if rank == 0:
        do_plan(plan, work, arguments, world)
    else:
        do_work(plan, work, arguments, rank)


def do_plan(plan: Any, work: Any, arguments: argparse.Namespace, world: int) -> None:
    """Give each worker other shards in each round; wait for all but the one that is slow just then."""
    for number in range(1, arguments.steps + 1):
        shards = {str(w): (number + w) % (world - 1) for w in range(1, world)}
        plan.put("shards", {"number": number, "of": shards})
        work.put("go", number)
        for worker in range(1, world):
            slow = worker == arguments.slow_rank and number == arguments.replan
            work.get(f"done/{worker}", at_least=number - slow, timeout=30)


def do_work(plan: Any, work: Any, arguments: argparse.Namespace, rank: int) -> None:
    """Read the plan, prepare, act on it."""
    acted = []
    for number in range(1, arguments.steps + 1):
        work.get("go", at_least=number, timeout=30)
        held = plan.entry("shards")
        if rank == arguments.slow_rank and number == arguments.replan:
            work.get("go", at_least=number + 1, timeout=30)  # preparing takes that long
        while held is not None and not plan.act(held):
            held = plan.entry("shards")
        acted.append(held.version if held is not None else 0)
        time.sleep(arguments.pause_ms / 1000)
        work.put(f"done/{rank}", number)
    print(f"rank {rank} acted on plans {acted}", flush=True)


if __name__ == "__main__":
    main()
