"""Random kills and stops of ranks, agents and whole hosts, each job checked against the reference.

    python -m tests.runtime.random_faults --seed S --num 100 --results FILE --save

Prints one line a schedule; a schedule is a function of (seed, number) alone, so ``--only N`` plays one
again. The moments are steps, and what the machine makes of them. With ``--results`` each verdict is kept as
it comes, and a second run of the same command plays only what is missing. Exit code: 0 when nothing was
wrong, 1 when something was, 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks import _harness
from cascade_runtime.agent.zygote_process import Zygote
from tests.runtime.checks import FORKED
from tests.runtime.faults import Strike
from tests.runtime.jobs import JobRunner
from tests.runtime.schedules import HUNG, MORE_STEPS, Played, draw, play


class Drawn(Protocol):
    """What both kinds of schedules have; its ``str`` says it whole."""

    @property
    def ranks(self) -> int:
        """At the start."""

    @property
    def hosts(self) -> int:
        """Virtual ones."""

    @property
    def strikes(self) -> list[Strike]:
        """What is done to it."""


@dataclass(frozen=True)
class Kind:
    """What is drawn, how it is played, and what holds where nothing is wrong."""

    name: str
    draw: Callable[[int, int], Any]
    play: Callable[[JobRunner, Any], Played]
    holds: str


FAULTS = Kind(
    "random_faults",
    draw,
    play,
    "every survivor finished with the same parameters, equal to a reference that drops the "
    "same contributions, and cascade analyze said ok, in each schedule that is not wrong",
)


@dataclass(frozen=True)
class Verdict:
    """What became of one schedule."""

    seed: int
    number: int
    schedule: str
    """As it was drawn; a verdict on another one is none on this."""
    ranks: int
    hosts: int
    faults: int
    seconds: float
    finished: int
    wrong: list[str]
    went_on: int | None
    """The fewest steps of a survivor after the last fault."""
    parted: int = 0
    """Views in which cohorts were apart."""

    def __str__(self) -> str:
        done = "ok" if not self.wrong else "WRONG: " + " | ".join(self.wrong)
        after = "" if self.went_on is None else f", {self.went_on} steps after the last fault"
        return (
            f"#{self.number} {self.seconds:.0f} s, {self.schedule}: "
            f"{self.finished} finished{after}, {done}"
        )


def judge(kind: Kind, seed: int, number: int, zygote: Path, keep: Path | None) -> Verdict:
    """Plays one schedule; the folder of a job that went wrong is kept in ``keep``."""
    schedule = kind.draw(seed, number)
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    began = time.monotonic()
    finished, went_on, parted = 0, None, 0
    try:
        runner = JobRunner(zygote, folder)
        played = kind.play(runner, schedule)
        if not played.job.outcome.formed:  # its port was taken by somebody before it could listen
            schedule = kind.draw(seed, number)  # its strikes hold clocks that have run
            played = kind.play(runner, schedule)
        wrong, went_on, parted = played.wrong, played.went_on, played.parted
        finished = len(played.job.outcome.finished)
    except Exception as error:  # a schedule that cannot be judged is wrong, the rest goes on
        wrong = [repr(error)]
    if wrong and keep is not None:
        shutil.copytree(folder, keep / f"{seed}-{number}", dirs_exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    return Verdict(
        seed, number, str(schedule), schedule.ranks, schedule.hosts, _num_faults(schedule),
        round(time.monotonic() - began, 1), finished, wrong, went_on, parted,
    )  # fmt: skip


def _num_faults(schedule: Drawn) -> int:
    return sum(bool(strike.name) for strike in schedule.strikes)


def known(kind: Kind, path: Path | None, seed: int) -> dict[int, Verdict]:
    """Verdicts of an earlier run that still speak of what this seed draws, by number."""
    if path is None or not path.exists():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        try:
            verdict = Verdict(**json.loads(line))
        except (ValueError, TypeError):
            continue  # the line that an interrupted run was about to write, or another form
        if verdict.seed == seed and verdict.schedule == str(kind.draw(seed, verdict.number)):
            found[verdict.number] = verdict
    return found


def summary(kind: Kind, seed: int, num: int, verdicts: Sequence[Verdict]) -> _harness.Result:
    """All of them in a few numbers."""
    wrong = [v for v in verdicts if v.wrong]
    went_on = [v.went_on for v in verdicts if v.went_on is not None]
    figure = {
        "played": len(verdicts),
        "forks": _num_with(wrong, FORKED),
        "hangs": _num_with(wrong, HUNG),
        "wrong in all": len(wrong),
        "fewest steps after the last fault": min(went_on, default=None),
    }
    if parted := [v for v in verdicts if v.parted]:
        figure["cohorts were apart in"] = len(parted)
    kinds = collections.Counter(word for v in verdicts for word in _kinds(v.schedule))
    several = collections.Counter(v.ranks for v in verdicts)
    return _harness.Result(
        name=kind.name,
        figure=figure,
        unit=f"schedules of seed {seed}",
        target={"played": num, "forks": 0, "hangs": 0, "wrong in all": 0,
                "fewest steps after the last fault": MORE_STEPS},
        holds=len(verdicts) == num and not wrong,
        spread={"ranks": f"{min(several, default=0)} to {max(several, default=0)}",
                "hosts": f"1 to {max((v.hosts for v in verdicts), default=0)}",
                "seconds": round(sum(v.seconds for v in verdicts))},
        notes=[
            kind.holds,
            f"{sum(v.faults for v in verdicts)} faults: "
            + ", ".join(f"{number} x {kind}" for kind, number in sorted(kinds.items())),
            *(str(v) for v in wrong),
        ],
    )  # fmt: skip


def _num_with(wrong: Iterable[Verdict], beginning: str) -> int:
    return sum(any(why.startswith(beginning) for why in v.wrong) for v in wrong)


def _kinds(schedule: str) -> list[str]:
    """The first word of each fault: kill, stop, host, agent, doze."""
    return [name.split()[0] for name in schedule.partition(": ")[2].split("; ") if name]


def main(argv: Sequence[str] | None = None, kind: Kind | None = None) -> int:
    """Play ``--num`` schedules; 1 when anything was wrong with any of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num", type=_harness.at_least(1), default=100)
    parser.add_argument("--only", type=int, help="just this number")
    parser.add_argument("--keep", type=Path, help="folder for the traces of jobs that went wrong")
    parser.add_argument(
        "--results", type=Path, help="keeps each verdict; what it has is not played"
    )
    parser.add_argument("--save", action="store_true", help="keep the sum in benchmarks/results/")
    kind = kind or FAULTS
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse_args(words)
    if arguments.save and arguments.only is not None:
        parser.error("one schedule is not enough to be kept; leave out --only or --save")
    numbers = [arguments.only] if arguments.only is not None else list(range(arguments.num))
    had = known(kind, arguments.results, arguments.seed)
    verdicts = [had[n] for n in numbers if n in had]
    left = [n for n in numbers if n not in had]
    say(
        f"seed {arguments.seed}, {len(numbers)} schedules, {len(verdicts)} known, {len(left)} to play"
    )
    try:
        verdicts += _play_all(kind, arguments, left)
    except KeyboardInterrupt:
        again = "; the same command goes on" if arguments.results else ""
        say(f"interrupted{again}")
        return 130
    bad = [v for v in verdicts if v.wrong]
    say(f"seed {arguments.seed}: {len(verdicts)} played, {len(bad)} wrong "
        f"{[v.number for v in bad] if bad else ''}".rstrip())  # fmt: skip
    if arguments.only is None:
        _harness.report(
            summary(kind, arguments.seed, len(numbers), verdicts),
            arguments,
            words,
            command=shlex.join(["python", "-m", f"tests.runtime.{kind.name}", *words]),
        )
    return 1 if bad else 0


def _play_all(kind: Kind, arguments: argparse.Namespace, numbers: Sequence[int]) -> list[Verdict]:
    verdicts = []
    if not numbers:
        return []
    with Zygote() as zygote:
        for at, number in enumerate(numbers, start=1):
            verdict = judge(kind, arguments.seed, number, zygote.path, arguments.keep)
            verdicts.append(verdict)
            if arguments.results is not None:
                _append(arguments.results, json.dumps(dataclasses.asdict(verdict)))
            say(f"[{at}/{len(numbers)}] {verdict}")
    return verdicts


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    torn = "\n" if before and not before.endswith("\n") else ""
    with path.open("a") as file:
        file.write(f"{torn}{line}\n")


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
