"""``cascade serve``: the collector, in one process on one port."""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_runtime.vocabulary.errors import BadUsage
from dashboard.commands._verb import Verb

if TYPE_CHECKING:
    import socket

    import uvicorn

    from collector.storage._interface import EventStore
    from collector.web.tokens import Tokens

STORE = "duckdb"
"""The store of a data folder."""

_GARBAGE = (50_000, 20, 50)
"""Objects between two looks at the newest, and so many of those looks to one at the older, the oldest."""

_GB = 10**9
_MIB = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("--data", type=Path, default=Path("cascade-data"), metavar="DIR", help="(cascade-data)")
    add("--host", default="127.0.0.1", help="address to listen on; others need a token (127.0.0.1)")
    add("--port", type=int, help="port to listen on, 0 for any (7654, or the next free one)")
    add("--fd", type=int, metavar="N", help="take an open listening socket instead")
    add("--json", action="store_true", help="print one line of JSON when it is ready")
    add("--open", action="store_true", help="open the pages in a browser")
    add("--new-token", metavar="NAME", help="make a bearer token, print it once, and end")
    add("--scope", choices=("read", "write", "all"), help="what the new token may do (all)")
    add("--revoke-token", metavar="NAME", help="remove a token, and end")
    add("--list-tokens", action="store_true", help="list the tokens, and end")
    add("--no-analysis", action="store_true", help="take rows only, judge no run")
    add("--keep-days", type=float, metavar="D", help="drop runs whose last row is older")
    add("--keep-gb", type=float, metavar="GB", help="drop the oldest runs when all are larger")
    add("--tls-cert", type=Path, metavar="FILE", help="certificate chain (PEM)")
    add("--tls-key", type=Path, metavar="FILE", help="its key (PEM)")
    add("--log-format", choices=("json", "text"), help="(text on a terminal, else json)")
    add("--max-body-mb", type=float, default=32.0, metavar="MB", help="largest body (32)")
    add(
        "--stop-deadline",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds a stop may take (10)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; 0 after a stop that was asked for.

    Raises:
        BadUsage: an option that cannot be met: a taken port, a data folder in use, an address that
            others reach without a token.
    """
    from collector.web.tokens import Tokens

    _check(args)
    tokens = Tokens(args.data)
    if args.new_token is not None or args.revoke_token is not None or args.list_tokens:
        return _administer(args, tokens)
    return _serve(args, tokens)


def _check(args: argparse.Namespace) -> None:
    asked = [args.new_token is not None, args.revoke_token is not None, args.list_tokens]
    if sum(asked) > 1:
        raise BadUsage("one of --new-token, --revoke-token, --list-tokens at a time")
    if args.scope is not None and args.new_token is None:
        raise BadUsage("--scope belongs to --new-token", where="--scope")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise BadUsage("--tls-cert and --tls-key go together", where="--tls-cert, --tls-key")
    for name in ("keep_days", "keep_gb", "max_body_mb"):
        value = getattr(args, name)
        if value is not None and not 0 < value < float("inf"):
            raise BadUsage("this is not above 0", where=f"--{name.replace('_', '-')} {value:g}")
    if not 0 <= args.stop_deadline < float("inf"):
        raise BadUsage("this is below 0", where=f"--stop-deadline {args.stop_deadline:g}")
    if args.data.exists() and not args.data.is_dir():
        raise BadUsage("this is no folder", where=str(args.data), hint="give a folder with --data")


def _administer(args: argparse.Namespace, tokens: Tokens) -> int:
    import msgspec

    if args.list_tokens:
        found = tokens.names()
        if args.json:
            every = [{"name": t.name, "scope": t.scope, "created_ns": t.created_ns} for t in found]
            print(msgspec.json.encode({"tokens": every}).decode())
            return 0
        for token in found:
            print(f"{token.name:<24} {token.scope:<6} made {_day(token.created_ns)}")
        if not found:
            _say("there are no tokens")
        return 0
    if args.revoke_token is not None:
        tokens.revoke(args.revoke_token)
        _say(f"the token {args.revoke_token} is no longer taken; a running collector knows in 1 s")
        return 0
    scope: Any = args.scope or "all"
    made = tokens.add(args.new_token, scope)
    if args.json:
        told = {"name": args.new_token, "scope": scope, "token": made}
        print(msgspec.json.encode(told).decode())
        return 0
    print(made)
    _say(
        f"this is the token {args.new_token} ({scope}); it is told this once, only its hash is kept"
    )
    _say("agents, cascade push and cascade sql take it from CASCADE_TOKEN")
    return 0


def _serve(args: argparse.Namespace, tokens: Tokens) -> int:
    from collector.sql.service import SqlService
    from collector.web.app import create_app
    from collector.web.listen import is_loopback, url_of
    from collector.web.logs import set_up_logs
    from collector.web.server import CollectorServer, make_config
    from collector.web.settings import Limits, Settings
    from dashboard.compiled import make_once
    from dashboard.live.analysis import LiveAnalysis
    from dashboard.shell.app import add_dashboard
    from dashboard.shell.context import Shell
    from dashboard.story import sources_of_store

    limits = Limits(body_bytes=int(args.max_body_mb * _MIB))
    with contextlib.ExitStack() as opened:  # closed in reverse: connections, SQL, store
        sock = _socket(args)
        opened.callback(sock.close)
        loopback = is_loopback(sock)
        _check_reach(args, loopback or tokens.required)
        set_up_logs(args.log_format)
        settings = Settings(loopback=loopback, limits=limits, stop_seconds=args.stop_deadline)
        make_once(_say)
        store = _open_store(args)
        close = opened.enter_context(_closing(store, args.stop_deadline))
        if not args.no_analysis:
            opened.enter_context(LiveAnalysis(args.data))
        sql = SqlService(args.data)
        opened.callback(sql.close)
        app = create_app(store, sql, tokens, settings)
        sources = opened.enter_context(contextlib.closing(sources_of_store(store)))
        pages = add_dashboard(app, Shell(store, sources, sql, app.state.sessions))
        config = make_config(app, settings, tls_cert=args.tls_cert, tls_key=args.tls_key)
        _load_tls(args, config)
        url = url_of(sock, tls=args.tls_cert is not None)

        def ready() -> None:
            _ready(args, url)
            if args.open:
                pages.warm_up()

        server = CollectorServer(config, app, ready)
        # What was imported stays for ever. Left to the collector of garbage, it is looked through
        # again and again, with every request waiting. And of what comes later, hardly anything is in
        # a circle: looking after every 700 objects took a fifth of a busy collector's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GARBAGE)
        server.run(sockets=[sock])
        if server.force_exit:
            close.deadline_s = 0.0
    return 0


class _closing:  # noqa: N801  # reads as contextlib.closing does
    """Closes a store in the end, within ``deadline_s``."""

    def __init__(self, store: EventStore, deadline_s: float) -> None:
        self._store = store
        self.deadline_s = deadline_s

    def __enter__(self) -> _closing:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close(self.deadline_s)


def _check_reach(args: argparse.Namespace, is_safe: bool) -> None:
    if not is_safe:
        raise BadUsage(
            "others can reach this address, so a token is needed, and there is none",
            where=args.host,
            hint=f"cascade serve --data {args.data} --new-token NAME makes one",
        )


def _load_tls(args: argparse.Namespace, config: uvicorn.Config) -> None:
    try:
        config.load()
    except OSError as error:  # ssl's errors are OSErrors too
        raise BadUsage(
            f"the certificate or its key cannot be used: {error.strerror or error}",
            where=f"{args.tls_cert}, {args.tls_key}",
        ) from error


def _socket(args: argparse.Namespace) -> socket.socket:
    from collector.web.listen import DEFAULT_PORT, adopt, listen

    if args.fd is not None:
        return adopt(args.fd)
    sock = listen(args.host, args.port)
    port = sock.getsockname()[1]
    if args.port is None and port != DEFAULT_PORT:
        _say(f"port {DEFAULT_PORT} is taken; this is {port}")
    return sock


def _open_store(args: argparse.Namespace) -> EventStore:
    from cascade_runtime.vocabulary.plug import discover
    from collector import storage
    from collector.hot.warm import warm_up

    options: dict[str, Any] = {}
    if args.keep_days is not None:
        options["keep_days"] = args.keep_days
    if args.keep_gb is not None:
        options["keep_bytes"] = int(args.keep_gb * _GB)
    kind: Any = discover(storage)[STORE]
    warm_up()
    store: EventStore = kind.open(args.data, options)
    return store


def _ready(args: argparse.Namespace, url: str) -> None:
    from dashboard.commands._open import open_page
    from dashboard.shell.paths import ROOT

    if args.json:
        import os

        ready = {"url": url, "data": str(args.data.resolve()), "pid": os.getpid()}
        open_page(url + ROOT, "serve", wanted=args.open, ready=ready, as_json=True)
        return
    _say(f"the collector is at {url}, its data in {args.data}")
    _say(f"send a job to it:    cascade run --collector {url} -n 4 train.py")
    _say(f"send a trace to it:  cascade push TRACE {url}")
    _say(f'ask it:              cascade sql {url} "FROM regime_share"')
    open_page(url + ROOT, "serve", wanted=args.open)


def _day(wall_ns: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(wall_ns / 1e9, UTC).date().isoformat()


def _say(text: str) -> None:
    sys.stderr.write(f"cascade: {text}\n")


PLUGIN = Verb("serve", "rest", "collect rows of running jobs and answer SQL", add_arguments, run)
