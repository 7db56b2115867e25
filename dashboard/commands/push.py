"""``cascade push``: a saved trace is sent to a collector."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from dashboard.commands._verb import Verb
from dashboard.shell.paths import address

_EXIT_INCOMPLETE = 2
_LINE_EVERY_S = 10.0
"""Where stderr is no terminal: a line of progress so often."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace", metavar="TRACE", help="a trace folder, a .cascade.zip, or a sample"
    )
    parser.add_argument("url", metavar="URL", help="the collector, such as http://127.0.0.1:7654")
    parser.add_argument(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="S",
        help="where nobody answers yet, go on trying this long (0)",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=120.0,
        metavar="S",
        help="go on trying this long when a collector that answered is away or busy (120)",
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


def seconds(text: str) -> float:
    """A number of seconds, 0 or more.

    Raises:
        ValueError: it is none; argparse tells it.
    """
    found = float(text)
    if not 0 <= found < float("inf"):
        raise ValueError(text)
    return found


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
    told = _Progress(None if args.json else sys.stderr.isatty())
    collector = Collector(
        args.url, token, args.timeout, first_wait_s=args.wait, on_wait=told.wait_for(args.url)
    )
    with collector, open_trace(path) as source:
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
        were_there = report.num_skipped + report.num_duplicates
        print(
            f"run {report.run_id}: {report.num_stored} of {report.num_rows} rows stored, "
            f"{were_there} were there already"
        )
        for sentence in report.uncovered:
            print(f"not covered: {sentence}")
        if not report.uncovered:
            print(f"every row is stored; look at it: {report.url}{address('run', report.run_id)}")
    return _EXIT_INCOMPLETE if report.uncovered else 0


class _Progress:
    """What a push says while it goes on, on stderr.

    Args:
        on_terminal: True writes one line over and over, False a line now and then, None nothing but
            what it waits for.
    """

    def __init__(self, on_terminal: bool | None) -> None:
        self._on_terminal = on_terminal
        self._started = self._told = time.monotonic()
        self._line_open = False

    def __call__(self, num_done: int, num_rows: int) -> None:
        now = time.monotonic()
        if self._on_terminal is None or (
            not self._on_terminal and now < self._told + _LINE_EVERY_S
        ):
            return
        self._told = now
        rate = num_done / max(now - self._started, 1e-3)
        share = 100 * num_done // max(num_rows, 1)
        line = f"{num_done:,} of {num_rows:,} rows, {share} %, {rate:,.0f} rows/s"
        self._line_open = self._on_terminal
        sys.stderr.write(f"\r{line}   " if self._on_terminal else f"cascade push: {line}\n")
        sys.stderr.flush()

    def wait_for(self, url: str) -> Callable[[str, float], None]:
        """Tells what is waited for."""

        def told(why: str, patience_s: float) -> None:
            self.end()
            sys.stderr.write(
                f"cascade push: {url}: {why}; trying again for {patience_s:g} s (Ctrl-C ends it)\n"
            )
            sys.stderr.flush()

        return told

    def end(self) -> None:
        """Leave the line that is written over."""
        if self._line_open:
            sys.stderr.write("\n")
        self._line_open = False


PLUGIN = Verb("push", "rest", "send a saved trace to a collector", add_arguments, run)
