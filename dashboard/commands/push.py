"""``cascade push``: a saved trace is sent to a collector."""

from __future__ import annotations

import argparse
import sys
import time

from dashboard.commands._verb import Verb

_EXIT_INCOMPLETE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace", metavar="TRACE", help="a trace folder, a .cascade.zip, or a sample"
    )
    parser.add_argument("url", metavar="URL", help="the collector, such as http://127.0.0.1:7654")
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="S",
        help="go on trying this long while it is away or busy (120)",
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def run(args: argparse.Namespace) -> int:
    """Send it; 0 when every row is stored, 2 when not.

    Raises:
        BadTrace: no such trace or sample, or one that cannot be read.
        BadUsage: the URL or the token is none, or the run_id cannot be part of a URL.
        CollectorRefused, CollectorAway: see collector.client.
    """
    import msgspec

    from cascade_runtime.vocabulary.collector_address import token_from_environment
    from collector.client import readable_on_the_way
    from collector.push import Collector, push
    from collector.trace.samples import resolve_trace
    from collector.trace.trace_folder import open_trace

    path = resolve_trace(args.trace)
    token = token_from_environment()
    told = _Progress(sys.stderr.isatty() and not args.json)
    with Collector(args.url, token, args.timeout) as collector, open_trace(path) as source:
        warning = readable_on_the_way(collector.url, token)
        if warning is not None:
            print(f"cascade push: {warning}", file=sys.stderr)
        try:
            report = push(source, collector, told)
        finally:
            told.end()
    if args.json:
        print(msgspec.json.encode(report).decode())
    else:
        sent = report.num_rows - report.num_skipped
        print(
            f"run {report.run_id}: {sent} of {report.num_rows} rows sent, {report.num_stored} stored, "
            f"{report.num_duplicates} were there already"
        )
        for sentence in report.uncovered:
            print(f"not covered: {sentence}")
        if not report.uncovered:
            print(f"every row is stored; to ask: cascade sql {report.url} ...")
    return _EXIT_INCOMPLETE if report.uncovered else 0


class _Progress:
    """One line on a terminal that is written over and over."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._started = time.monotonic()
        self._first: int | None = None

    def __call__(self, num_done: int, num_rows: int) -> None:
        if not self._shown:
            return
        if self._first is None:
            self._first = num_done
        seconds = max(time.monotonic() - self._started, 1e-3)
        rate = num_done / seconds
        share = 100 * num_done // max(num_rows, 1)
        sys.stderr.write(f"\r{num_done} of {num_rows} rows, {share} %, {rate:,.0f} rows/s   ")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._shown and self._first is not None:
            sys.stderr.write("\n")


PLUGIN = Verb("push", "rest", "send a saved trace to a collector", add_arguments, run)
