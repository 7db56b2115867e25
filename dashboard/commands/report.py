"""``cascade report``: one run as one HTML file that opens anywhere, offline."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.commands._verb import Verb

if TYPE_CHECKING:
    from dashboard.report import Composed

_QUIET_S = 1.5
_EVERY_S = 2.0
"""Nothing is said at first, then not more often than this."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a trace folder, a .cascade.zip, or a sample; nothing is written to it",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="(report.html)"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")
    parser.add_argument("--json", action="store_true", help="print one line of JSON when done")


def run(args: argparse.Namespace) -> int:
    """Write the report; 0 whatever its verdict is.

    Raises:
        BadTrace: no such trace or sample, or one that cannot be read.
        BadUsage: the file is there already, or cannot be written.
    """
    from dashboard.commands._parser import dist_version
    from dashboard.report import checked_target, composed, gathered, written
    from dashboard.story.trace_source import TraceRun

    path = Path(args.output)
    checked_target(path, force=args.force)
    say = Progress()
    with contextlib.closing(TraceRun(args.trace)) as trace:
        found = gathered(trace, say)
        try:
            made = composed(found, dist_version(), say)
        finally:
            found.tiles.close()
    written(path, made.text, force=args.force)
    tell(path, made, as_json=args.json)
    return 0


class Progress:
    """Says on stderr what long work is at."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + _QUIET_S
        self._last = ""

    def __call__(self, what: str, share: float | None) -> None:
        """See dashboard.report.gather.Say."""
        text = what if share is None else f"{what}: {100 * share:.0f}%"
        if text == self._last or time.monotonic() < self._next_s:
            return
        sys.stderr.write(f"cascade report: {text}\n")
        sys.stderr.flush()
        self._next_s, self._last = time.monotonic() + _EVERY_S, text


def tell(path: Path, made: Composed, *, as_json: bool) -> None:
    """Print what was made."""
    story = made.story
    if as_json:
        said = {
            "report": str(path),
            "run_id": story.run.run_id,
            "verdict": story.verdict.state,
            "num_violations": story.verdict.num_violations,
            "num_ranks": len(story.ranks),
            "bytes": len(made.text),
            "columns": made.columns,
            "column_s": made.column_ns / 1e9,
        }
        print(json.dumps(said))
        return
    print(story.verdict.sentence)
    print(f"{path}: {len(made.text) / 1e6:.2f} MB; any browser opens it, without a network")


PLUGIN = Verb(
    "report", "ask", "write one run as one HTML file that opens offline", add_arguments, run
)
