"""``cascade replay``: the pages over one saved trace."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import tempfile
from pathlib import Path

from dashboard.commands._open import open_page
from dashboard.commands._verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a trace folder, a .cascade.zip, or a sample; nothing is written to it",
    )
    parser.add_argument(
        "--port", type=int, help="port to listen on, 0 for any (7654, or the next free one)"
    )
    parser.add_argument("--no-open", action="store_true", help="open no browser")
    parser.add_argument("--json", action="store_true", help="print one line of JSON when ready")


def run(args: argparse.Namespace) -> int:
    """Show the trace until Ctrl-C; 0.

    Raises:
        BadTrace: no such trace or sample, one that cannot be read, or one without a row of its run.
        BadUsage: the port is taken.
    """
    from collector.trace.samples import resolve_trace
    from collector.web.app import create_app
    from collector.web.listen import DEFAULT_HOST, listen, url_of
    from collector.web.logs import set_up_logs
    from collector.web.server import CollectorServer, make_config
    from collector.web.settings import Settings
    from collector.web.tokens import Tokens
    from dashboard.compiled import make_once
    from dashboard.shell.app import add_dashboard
    from dashboard.shell.context import Shell
    from dashboard.shell.paths import address
    from dashboard.shell.replay import ReplaySql, ReplayStore
    from dashboard.story import sources_of_trace
    from dashboard.tiles import tiles_of

    trace = resolve_trace(args.trace)
    make_once(_say)
    with contextlib.ExitStack() as opened:
        sources = opened.enter_context(contextlib.closing(sources_of_trace(trace)))
        sources.only.check_rows()
        sock = opened.enter_context(contextlib.closing(listen(DEFAULT_HOST, args.port)))
        # One line for every page is nothing that a person wants to read here.
        set_up_logs("text", least=logging.ERROR)
        # A folder without tokens: this listens on loopback alone.
        none = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="cascade-replay-")))
        store = ReplayStore(sources.only)
        sql = opened.enter_context(contextlib.closing(ReplaySql(trace, sources.only)))
        settings = Settings(stop_seconds=1.0)
        app = create_app(store, sql, Tokens(none), settings)
        shell = Shell(store, sources, sql, app.state.sessions, replayed=args.trace)
        pages = add_dashboard(app, shell)
        pages.warm_up()
        tiles_of(sources.only).look()  # somebody is about to
        url = url_of(sock, tls=False) + address("run", sources.only.run_id)
        ready = {"url": url, "run_id": sources.only.run_id}
        server = CollectorServer(
            make_config(app, settings),
            app,
            lambda: open_page(
                url, "replay", wanted=not args.no_open, ready=ready, as_json=args.json
            ),
        )
        server.run(sockets=[sock])
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"cascade replay: {text}\n")


PLUGIN = Verb("replay", "look", "show a saved trace in the browser", add_arguments, run)
