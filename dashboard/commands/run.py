"""``cascade run``: a user's own job under the host agent, attached without edits."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from cascade_runtime.vocabulary.errors import BadUsage, CascadeError
from dashboard.commands._verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "cascade run [-n N] [options] SCRIPT [ARGS ...]"
    parser.add_argument("-n", dest="num_ranks", type=int, default=2, metavar="N", help="ranks (2)")
    parser.add_argument(
        "--virtual-hosts",
        type=int,
        default=1,
        metavar="H",
        help="play H hosts on this machine, an agent each (1)",
    )
    parser.add_argument(
        "--observe", action="store_true", help="decide and record, but change nothing"
    )
    parser.add_argument(
        "--policy", default="default", help="default, seed, or a TOML file (default)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where the trace goes (cascade-traces/NAME-TIME)"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS ...]")


def run(args: argparse.Namespace) -> int:
    """Run the job; the script's exit code.

    Raises:
        BadUsage: no script, fewer than two ranks, a trace folder in use.
        BadPolicy: a policy that breaks a rule.
    """
    from cascade_runtime.agent.launcher import Launcher, make_config
    from cascade_runtime.vocabulary.policy import load_policy

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise BadUsage(
            "which script?", where="SCRIPT", hint="cascade run -n 4 train.py --its-own-arguments"
        )
    load_policy(args.policy)
    policy = args.policy if args.policy in ("default", "seed") else str(Path(args.policy).resolve())
    script = Path(command[0])
    out = args.out or Path("cascade-traces") / f"{script.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    config = make_config(
        command,
        num_ranks=args.num_ranks,
        num_hosts=args.virtual_hosts,
        mode="observe" if args.observe else "enforce",
        policy=policy,
        trace_dir=out,
    )
    _say(f"starting {args.num_ranks} ranks of {script.name} ({config.mode}), trace in {out}")
    outcome = Launcher(config).run()
    if outcome.formed:
        try:
            _close_trace(out)
        except (CascadeError, OSError) as error:  # the script's exit code is worth more than ours
            _say(f"the trace was not sealed (it reads from its spool all the same): {error}")
        _say(f"trace in {out}   look at it: cascade analyze {out}")
    elif outcome.exit_code == 0:
        _say("no rank attached: the script trains no DistributedDataParallel model")
    return outcome.exit_code


def _close_trace(trace: Path) -> None:
    """Turn the spool into Parquet where the server extra is installed; a spool reads as well."""
    try:
        from collector.storage.seal import seal_trace
        from collector.storage.trace_writer import write_views
    except ImportError:
        return
    seal_trace(trace)
    write_views(trace)


def _say(text: str) -> None:
    sys.stderr.write(f"cascade: {text}\n")


PLUGIN = Verb("run", "look", "run your own training script under CASCADE", add_arguments, run)
