"""``cascade join``: one more rank for a job that runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dashboard.commands._verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace", type=Path, metavar="TRACE", help="the trace folder of a job that runs here"
    )
    parser.add_argument(
        "--rank", type=int, metavar="N", help="its number (the lowest that no rank has had)"
    )


def run(args: argparse.Namespace) -> int:
    """Have the job's script started as a new rank; 0 when it was.

    Raises:
        BadUsage: no such job, it is observed, has not begun, ends or has ended, or had this rank.
    """
    from cascade_runtime.agent.add_rank import add_rank, find_job, next_new_rank

    config = find_job(args.trace)
    rank = next_new_rank(config) if args.rank is None else args.rank
    add_rank(config, rank)
    sys.stderr.write(
        f"cascade: rank {rank} was started, with WORLD_SIZE {config.world_size_of(rank)}; it steps "
        "with the others once it has their state, and the job's own output says when\n"
    )
    return 0


PLUGIN = Verb("join", "rest", "add a rank to a job that runs", add_arguments, run)
