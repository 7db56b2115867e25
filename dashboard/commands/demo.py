"""``cascade demo``: a real multi-process job with real faults, and the verdict on it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.commands._ended import Ended, ended_by_signals
from dashboard.commands._open import open_page
from dashboard.commands._verb import Verb
from dashboard.commands.analyze import print_report

if TYPE_CHECKING:
    from cascade_runtime.agent.config import JobConfig
    from cascade_runtime.agent.outcome import Outcome
    from cascade_runtime.vocabulary.report import Report
    from dashboard.demo.scenario import Scenario

_ANNOUNCE_S = 20.0
_JUDGED_WITHIN_S = 120.0
_LOOK_AGAIN_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--ranks", type=int, default=4, metavar="N", help="how many ranks (4)")
    parser.add_argument(
        "--scenario",
        default="minute",
        metavar="NAME",
        help="minute, kill-one, kill-rank0, two-dead, freeze, straggler, rejoin, join-mid-task, "
        "join-no-downgrade, agent-dies, stale-plan, resume-wrong or clean (minute)",
    )
    parser.add_argument(
        "--virtual-hosts", type=int, default=1, metavar="H", help="play H hosts, an agent each (1)"
    )
    parser.add_argument("--headless", action="store_true", help="open no page, end with the job")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where the trace goes (cascade-traces/NAME-TIME)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        # Not that of cascade serve: one process has a data folder at a time.
        default=Path("cascade-demo"),
        metavar="DIR",
        help="data folder of the demo's collector (cascade-demo)",
    )
    parser.add_argument("--no-open", action="store_true", help="print the page's URL only")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Play the scenario, and show it until Ctrl-C unless headless; 0 when the verdict is the expected one.

    A job that is ended early leaves its trace so far; the code is 128 and the signal's number then.

    Raises:
        BadUsage: an unknown scenario, too few ranks, a trace folder in use.
    """
    from dashboard.demo.scenarios import find_scenario

    scenario = find_scenario(args.scenario, args.ranks)  # before what takes seconds to import

    from dashboard.demo.job import job_of

    out = args.out or Path("cascade-traces") / f"{scenario.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    with _left_before(scenario) as folder:
        config = job_of(
            scenario, num_ranks=args.ranks, num_hosts=args.virtual_hosts, out=out, folder=folder
        )
        try:
            with ended_by_signals():
                return _run(args, scenario, config, out, folder)
        except Ended as ended:
            return _ended_at_once(args, config, out, ended.number)


@contextlib.contextmanager
def _left_before(scenario: Scenario) -> Iterator[Path | None]:
    """A folder for what an earlier run leaves to the scenario's own, if there is one."""
    if not scenario.before:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="cascade-demo-") as folder:
        yield Path(folder)


def _run(
    args: argparse.Namespace,
    scenario: Scenario,
    config: JobConfig,
    out: Path,
    folder: Path | None,
) -> int:
    from dashboard.compiled import make_once
    from dashboard.demo.collector import DemoCollector

    _say(f"scenario {scenario.name}: {scenario.summary}, {args.ranks} ranks")
    for line in scenario.story:
        _say(f"  {line}")
    _say(f"its trace will be in {out}")
    make_once(_say)
    with DemoCollector(args.data, _say) as collector:
        url = _announce(collector.url, config)
        wanted = not (args.headless or args.no_open)
        open_page(url, "demo", wanted=wanted, stays=not args.headless)
        outcome, refusal = _play(args, scenario, config.shipping_to(collector.url), folder)
        told = not refusal and not args.headless and _show(args, config.run_id)
    if outcome.stopped_by:
        return _ended_early(args, config, out, outcome)
    if refusal:
        return refusal
    report = _close_trace(out, args.data, config.run_id)
    if not told:
        print_report(report, as_json=args.json)
    _say(f"verdict {report.verdict}, expected {scenario.expected}; trace in {out}")
    _say(f"look again: cascade replay {out}   all runs: cascade serve --data {args.data}")
    return 0 if report.verdict == scenario.expected else 1


def _play(
    args: argparse.Namespace, scenario: Scenario, config: JobConfig, folder: Path | None
) -> tuple[Outcome, int]:
    """Run the job; what the demo ends with where it did not become the scenario, else 0."""
    from cascade_runtime.agent.launcher import Launcher
    from cascade_runtime.agent.zygote_process import Zygote
    from dashboard.demo.injector import Injector
    from dashboard.demo.job import run_before

    _say("importing torch once for all ranks ...")
    with Zygote() as zygote:
        config = config.forking_from(zygote.path)
        if folder is not None:
            _say("first the run before, which saves and is then killed ...")
            earlier = run_before(scenario, num_ranks=args.ranks, folder=folder)
            before = Launcher(earlier.forking_from(zygote.path)).run()
            if before.stopped_by:
                return before, before.exit_code
        with Injector(config, scenario.strikes, _say) as injector, _stdout_to_stderr(args.json):
            outcome = Launcher(config).run()
    if outcome.stopped_by:
        return outcome, outcome.exit_code
    if not outcome.formed:
        _say("the job never formed; what its ranks said is above")
        return outcome, 2
    if len(injector.struck) != len(scenario.strikes):
        _say("the job ended before the fault could be done to it, so this was not the scenario")
        return outcome, 1
    return outcome, 0


def _ended_early(args: argparse.Namespace, config: JobConfig, out: Path, outcome: Outcome) -> int:
    """Somebody ended the job: close what there is of the trace, and say where."""
    from cascade_runtime.agent.stopping import discard_trace, signal_name

    name = signal_name(outcome.stopped_by)
    if outcome.formed:
        _collect_trace(out, args.data, config.run_id)
        _say(
            f"stopped by {name} after step {outcome.last_step}; the trace so far is in {out}: "
            f"cascade replay {out}"
        )
    else:
        discard_trace(config)
        _say(f"stopped by {name} before the job had formed; there is no trace")
    return outcome.exit_code


def _ended_at_once(args: argparse.Namespace, config: JobConfig, out: Path, number: int) -> int:
    """A signal before there was a job, or a second one while its trace was closed."""
    from cascade_runtime.agent.stopping import EXIT_BASE, discard_trace, signal_name

    if (out / "trace.json").exists():
        _say(
            f"ended at once by {signal_name(number)}: the trace in {out} may lack rows that the "
            f"collector took; they are in {args.data}"
        )
    else:
        discard_trace(config)
        _say(f"stopped by {signal_name(number)} before the job had begun; there is no trace")
    return EXIT_BASE + number


def _show(args: argparse.Namespace, run_id: str) -> bool:
    """Stay until Ctrl-C, with the pages up; True when the verdict was printed meanwhile."""
    told = False
    try:
        _say(
            "the job is over; its pages stay until Ctrl-C. The referee reads the whole run now ..."
        )
        report = _judged(args.data, run_id)
        if report is not None:
            print_report(report, as_json=args.json)
            sys.stdout.flush()
            told = True
            _say("the page shows the same; Ctrl-C ends this and closes the trace")
        threading.Event().wait()
    except KeyboardInterrupt:
        _say("closing the trace ...")
    return told


def _judged(data: Path, run_id: str) -> Report | None:
    """The collector's analysis of the whole run; None when it takes longer than a person waits."""
    import msgspec

    from cascade_runtime.vocabulary.report import Report
    from collector.data_folder import run_folder
    from dashboard.live.judged import signature_of, was_judged

    root = run_folder(data, run_id).resolve()
    until = time.monotonic() + _JUDGED_WITHIN_S
    while time.monotonic() < until:
        # The mark is the last thing that an analysis of a whole run leaves.
        if was_judged(root, signature_of(root)):
            with contextlib.suppress(OSError, msgspec.MsgspecError):  # replaced just now
                return msgspec.json.decode(
                    (root / "results" / "report.json").read_bytes(), type=Report
                )
        time.sleep(_LOOK_AGAIN_S)
    return None


def _announce(url: str, config: JobConfig) -> str:
    """Tell the collector of the run before its first row, so that its page can be open by then.

    Returns:
        The page's URL.
    """
    from cascade_runtime.agent.trace_file import trace_start
    from cascade_runtime.vocabulary.policy import load_policy
    from cascade_runtime.vocabulary.trace_meta import format_trace_meta
    from collector.client import Client
    from dashboard.shell.paths import address

    meta = trace_start(config, load_policy(config.policy))
    client = Client(url, None, scope="write", timeout_s=_ANNOUNCE_S, wait_for_it=True)
    with contextlib.closing(client):
        client.ask("PUT", f"/v1/runs/{config.run_id}", good=(204,), content=format_trace_meta(meta))
    return url + address("run", config.run_id)


def _close_trace(out: Path, data: Path, run_id: str) -> Report:
    """The trace, with its results."""
    import msgspec

    from analyzer import analyze
    from collector.data_folder import run_folder
    from collector.trace.trace_folder import open_trace
    from collector.trace.trace_writer import write_results

    _collect_trace(out, data, run_id)
    run = run_folder(data, run_id)
    with open_trace(out) as source:
        analysis = analyze(source)
    report = msgspec.json.encode(analysis.report)
    # The data folder says the same: its own analysis was stopped while the run was young.
    for folder in (out, run) if run.exists() else (out,):
        write_results(folder, analysis.results, report)
    return analysis.report


def _collect_trace(out: Path, data: Path, run_id: str) -> None:
    """What the collector took and what it could not, together as one trace."""
    from collector.data_folder import run_folder
    from collector.trace.copy_run import copy_run
    from collector.trace.seal import seal_trace

    run = run_folder(data, run_id)
    if run.exists():
        copy_run(run, out)
    seal_trace(out)


@contextlib.contextmanager
def _stdout_to_stderr(wanted: bool) -> Iterator[None]:
    """Ranks inherit our stdout; with --json it is for the report alone."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _say(text: str) -> None:
    sys.stderr.write(f"cascade demo: {text}\n")
    sys.stderr.flush()


PLUGIN = Verb("demo", "look", "a real job, a real fault, a verdict", add_arguments, run)
