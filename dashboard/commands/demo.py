"""``cascade demo``: a real multi-process job with real faults, and the verdict on it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dashboard.commands._verb import Verb


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
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Play the scenario; 0 when the verdict is the expected one.

    Raises:
        BadUsage: an unknown scenario, too few ranks, a trace folder in use.
    """
    from dashboard.demo.scenarios import find_scenario

    scenario = find_scenario(args.scenario, args.ranks)  # before what takes seconds to import

    from analyzer import analyze
    from cascade_runtime.agent.launcher import Launcher, Zygote, make_config
    from collector.storage.seal import seal_trace
    from collector.storage.trace_folder import open_trace
    from collector.storage.trace_writer import write_results
    from dashboard.commands.analyze import print_report
    from dashboard.demo import train
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
    with Zygote() as zygote:
        config = config.forking_from(zygote.path)
        with Injector(config, scenario.kills, _say) as injector, _stdout_to_stderr(args.json):
            outcome = Launcher(config).run()
    if not outcome.formed:
        _say("the job never formed; what its ranks said is above")
        return 2
    if len(injector.struck) != len(scenario.kills):
        _say("the job ended before the fault could be done to it, so this was not the scenario")
        return 1
    seal_trace(out)
    with open_trace(out) as source:
        analysis = analyze(source)
    write_results(out, analysis.results)
    report = analysis.report
    print_report(report, as_json=args.json)
    _say(f"verdict {report.verdict}, expected {scenario.expected}; trace in {out}")
    _say(f"look again: cascade analyze {out}")
    return 0 if report.verdict == scenario.expected else 1


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
