"""``cascade analyze``: the verdict on a trace, with its witnesses, on the terminal."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cascade_runtime.vocabulary.errors import BadUsage
from dashboard.commands._verb import Verb

if TYPE_CHECKING:
    from cascade_runtime.vocabulary.report import Report

EXITS = {"ok": 0, "violated": 1, "unknown": 3}
"""Exit code by verdict; 2 is bad input or usage."""

_WIDEST = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a trace folder, a .cascade.zip, a sample, or a text file with a database's history",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--write", action="store_true", help="add results/ to the trace")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 ok, 1 violated, 3 unknown.

    Raises:
        BadTrace: no such trace or sample, or one that cannot be read.
        BadUsage: ``--write`` on a zip, a read-only folder or a history.
    """
    if _is_history(Path(args.trace)):
        return _judge_history(args)
    import msgspec

    from analyzer import analyze
    from collector.trace.growing import GrowingTrace, is_growing
    from collector.trace.samples import resolve_trace
    from collector.trace.trace_folder import open_trace
    from collector.trace.trace_writer import write_results

    path = resolve_trace(args.trace)
    with open_trace(path) as source:
        # A live run is judged by what is there: rows that have not come yet accuse nobody.
        growing = is_growing(source, time.time())
        analysis = analyze(GrowingTrace(source) if growing else source)
    if args.write:
        write_results(path, analysis.results, msgspec.json.encode(analysis.report))
    print_report(analysis.report, as_json=args.json)
    if path.is_dir() and not _has_rows(path):
        sys.stderr.write(
            "cascade: this trace holds no rows. A run that was shipped is its collector's: "
            f"cascade analyze DATA/runs/{analysis.report.run_id}\n"
        )
    return EXITS[analysis.report.verdict]


def _is_history(path: Path) -> bool:
    if not path.is_file() or path.name.endswith(".zip"):
        return False
    from analyzer.database.text_forms import looks_like_history

    # Of a text file that is none, reading it says which line is at fault.
    return path.suffix == ".txt" or looks_like_history(path)


def _judge_history(args: argparse.Namespace) -> int:
    """A history of a database: whether it is causally consistent."""
    from analyzer.database.causal import judge_history
    from analyzer.database.render import causality_data, render_causality
    from analyzer.database.text_forms import read_history

    if args.write:
        raise BadUsage("a history takes no results", where="--write", hint="leave it out")
    answer = judge_history(read_history(Path(args.trace)))
    if args.json:
        print(json.dumps(causality_data(args.trace, answer), indent=2))
    else:
        print(render_causality(args.trace, answer), end="")
    return EXITS[answer.verdict]


def _has_rows(trace: Path) -> bool:
    files = (*trace.glob("events/*/*.parquet"), *trace.glob("spool/*/*.seg"))
    return any(files)


def print_report(report: Report, *, as_json: bool) -> None:
    """Print a report for people, or as JSON."""
    if as_json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return
    from analyzer.render import render

    width = min(_WIDEST, shutil.get_terminal_size().columns)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(render(report, width=width, colour=colour), end="")


PLUGIN = Verb(
    "analyze", "ask", "say whether a promise was broken, and who made whom wait", add_arguments, run
)
