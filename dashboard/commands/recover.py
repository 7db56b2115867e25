"""``cascade recover``: opens a damaged data folder, keeps what was damaged, reports the gap."""

from __future__ import annotations

import argparse
from pathlib import Path

from dashboard.commands._verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", type=Path, metavar="DIR", help="a collector's data folder")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Recover what can be read, and say what could not.

    Raises:
        BadUsage: no data folder, or a collector has it open.
    """
    import msgspec

    from collector.hot.recover import recover

    report = recover(args.data)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        for sentence in report.sentences:
            print(sentence)
    return 0


PLUGIN = Verb(
    "recover", "rest", "mend a damaged data folder, and say what is lost", add_arguments, run
)
