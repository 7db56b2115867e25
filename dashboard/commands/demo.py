"""``cascade demo``: a real multi-process job with real faults, and the verdict on it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.commands._verb import Verb
from dashboard.commands.analyze import print_report

if TYPE_CHECKING:
    from cascade_runtime.vocabulary.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--ranks", type=int, default=4, metavar="N", help="how many ranks (4)")
    parser.add_argument(
        "--scenario", default="kill-one", metavar="NAME", help="kill-one or clean (kill-one)"
    )
    parser.add_argument(
        "--virtual-hosts", type=int, default=1, metavar="H", help="play H hosts, an agent each (1)"
    )
    parser.add_argument(
        "--headless", action="store_true", help="end with the job and print the report"
    )
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
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Play the scenario; 0 when the verdict is the expected one.

    Raises:
        BadUsage: an unknown scenario, too few ranks, a trace folder in use.
    """
    from dashboard.demo.scenarios import find_scenario

    scenario = find_scenario(args.scenario, args.ranks)  # before what takes seconds to import

    from cascade_runtime.agent.launcher import Launcher, Zygote, make_config
    from dashboard.demo import train
    from dashboard.demo.collector import DemoCollector
    from dashboard.demo.injector import Injector

    out = args.out or Path("cascade-traces") / f"{scenario.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    script = [str(Path(train.__file__)), "--steps", str(scenario.steps)]
    script += ["--pause-ms", str(scenario.pause_ms)]
    _say(f"scenario {scenario.name}: {scenario.summary}, {args.ranks} ranks")
    for line in scenario.story:
        _say(f"  {line}")
    if not args.headless:
        _say("(the live page is not part of this release: running as with --headless)")
    config = make_config(
        script,
        num_ranks=args.ranks,
        num_hosts=args.virtual_hosts,
        trace_dir=out,
        name=scenario.name,
    )
    _say("importing torch once for all ranks ...")
    with DemoCollector(args.data, _say) as collector, Zygote() as zygote:
        _say(f'ask it meanwhile: cascade sql {collector.url} "FROM incidents"')
        config = config.shipping_to(collector.url).forking_from(zygote.path)
        with Injector(config, scenario.kills, _say) as injector, _stdout_to_stderr(args.json):
            outcome = Launcher(config).run()
    if not outcome.formed:
        _say("the job never formed; what its ranks said is above")
        return 2
    if len(injector.struck) != len(scenario.kills):
        _say("the job ended before the fault could be done to it, so this was not the scenario")
        return 1
    report = _close_trace(out, args.data, config.run_id)
    print_report(report, as_json=args.json)
    _say(f"verdict {report.verdict}, expected {scenario.expected}; trace in {out}")
    _say(f"look again: cascade analyze {out}   all runs: cascade serve --data {args.data}")
    return 0 if report.verdict == scenario.expected else 1


def _close_trace(out: Path, data: Path, run_id: str) -> Report:
    """What the collector took and what it could not, together as one trace with its results."""
    import msgspec

    from analyzer import analyze
    from collector.data_folder import run_folder
    from collector.trace.copy_run import copy_run
    from collector.trace.seal import seal_trace
    from collector.trace.trace_folder import open_trace
    from collector.trace.trace_writer import write_results

    run = run_folder(data, run_id)
    if run.exists():
        copy_run(run, out)
    seal_trace(out)
    with open_trace(out) as source:
        analysis = analyze(source)
    report = msgspec.json.encode(analysis.report)
    # The data folder says the same: its own analysis was stopped while the run was young.
    for folder in (out, run) if run.exists() else (out,):
        write_results(folder, analysis.results, report)
    return analysis.report


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
