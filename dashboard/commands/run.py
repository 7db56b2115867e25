"""``cascade run``: a user's own job under the host agent, attached without edits."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cascade_runtime.vocabulary.errors import BadUsage, CascadeError
from dashboard.commands._ended import Ended, ended_by_signals
from dashboard.commands._verb import Verb
from dashboard.shell.paths import address

if TYPE_CHECKING:
    from cascade_runtime.agent.config import JobConfig


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
        "--respawn",
        type=int,
        default=0,
        metavar="K",
        help="start a rank that was lost again, at most K times; it joins the job as it runs (0)",
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
    parser.add_argument(
        "--collector",
        metavar="URL",
        default=os.environ.get("CASCADE_COLLECTOR") or None,
        help="ship the rows to this collector while the job runs (CASCADE_COLLECTOR); "
        "its token comes from CASCADE_TOKEN",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS ...]")


def run(args: argparse.Namespace) -> int:
    """Run the job; the script's exit code.

    Raises:
        BadUsage: no script, fewer than two ranks, a trace folder in use, no collector's address.
        BadPolicy: a policy that breaks a rule.
    """
    from cascade_runtime.agent.launcher import make_config
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
        collector=args.collector,
        respawn=args.respawn,
    )
    try:
        with ended_by_signals():
            return _run(args, config, out)
    except Ended as ended:
        return _ended_at_once(config, out, ended.number)


def _run(args: argparse.Namespace, config: JobConfig, out: Path) -> int:
    from cascade_runtime.agent.launcher import Launcher
    from cascade_runtime.agent.stopping import discard_trace, signal_name

    script = Path(config.command[0])
    if args.respawn and args.observe:
        _say("nobody is started again while observing: --respawn has no effect with --observe")
    _say(f"starting {args.num_ranks} ranks of {script.name} ({config.mode}), trace in {out}")
    if config.collector is not None:
        _say(f"look at it: {_page(config)}   (it fills as the job runs)")
    outcome = Launcher(config).run()
    if outcome.stopped_by and not outcome.formed:
        discard_trace(config)
        _say(
            f"stopped by {signal_name(outcome.stopped_by)} before all ranks had attached: no trace"
        )
        return outcome.exit_code
    if outcome.formed:
        shipped = config.collector is not None and _tell_shipped(out, config)
        try:
            _close_trace(out)
        except (CascadeError, OSError) as error:  # the script's exit code is worth more than ours
            _say(f"the trace was not sealed (it reads from its spool all the same): {error}")
        if outcome.stopped_by:
            _say(
                f"stopped by {signal_name(outcome.stopped_by)} after step {outcome.last_step}; "
                f"{_where(out, config, shipped=shipped)}"
            )
        elif not shipped:
            _say(f"trace in {out}   look at it: cascade analyze {out}")
    elif outcome.exit_code == 0:
        _say("no rank attached: the script trains no DistributedDataParallel model")
    return outcome.exit_code


def _ended_at_once(config: JobConfig, out: Path, number: int) -> int:
    """A signal before there was a job, or while its trace was closed."""
    from cascade_runtime.agent.stopping import EXIT_BASE, discard_trace, signal_name

    if (out / "trace.json").exists():
        _say(f"ended at once by {signal_name(number)}; {out} reads all the same")
    else:
        discard_trace(config)
        _say(f"stopped by {signal_name(number)} before the job had begun: no trace")
    return EXIT_BASE + number


def _where(out: Path, config: JobConfig, *, shipped: bool) -> str:
    if shipped:
        return f"the run so far is in {config.collector}"
    return f"the trace so far is in {out}: cascade replay {out}"


def _close_trace(trace: Path) -> None:
    """Turn the spool into Parquet where the server extra is installed; a spool reads as well.

    What is left of a spool that was shipped in part stays one: it goes to the collector as it is.
    """
    from cascade_runtime.agent.shipping.folders import is_whole

    if not is_whole(trace / "spool"):
        return
    try:
        from collector.trace.seal import seal_trace
        from collector.trace.trace_writer import write_views
    except ImportError:
        return
    seal_trace(trace)
    write_views(trace)


def _tell_shipped(trace: Path, config: JobConfig) -> bool:
    """Whether the collector has the whole run; say so, or what to do about the rest."""
    from cascade_runtime.agent.shipping.folders import bytes_left

    left = bytes_left(trace / "spool")
    if left:
        _say(
            f"{left:,} bytes of rows are not in the collector but in {trace} still.   "
            f"send them: cascade push {trace} {config.collector}"
        )
        return False
    _say(f"every row is in the collector; look at it: {_page(config)}")
    return True


def _page(config: JobConfig) -> str:
    return f"{config.collector}{address('run', config.run_id)}"


def _say(text: str) -> None:
    sys.stderr.write(f"cascade: {text}\n")


PLUGIN = Verb("run", "look", "run your own training script under CASCADE", add_arguments, run)
