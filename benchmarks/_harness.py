"""What every benchmark shares: runs in alternated order, facts of the machine, one JSON line at the end.

A benchmark is a module of this folder with ``TARGET`` (for people) and ``main(argv) -> int``; its name
is the module's. ``main`` ends with ``report(Result(...), args)``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
RESULTS = Path(__file__).parent / "results"
MIN_REPEATS = 5
_PACKAGES = (
    *("cascade-timelines", "msgspec", "torch", "duckdb", "pyarrow", "numpy", "numba"),
    *("fastapi", "uvicorn", "uvloop", "httptools", "zstandard", "psycopg"),
)


@dataclass
class Result:
    """What one benchmark found; ``figure``, ``target`` and ``against`` may hold several numbers."""

    name: str
    figure: Any
    unit: str
    target: Any
    holds: bool
    against: Any = None
    spread: Any = None
    notes: list[str] = field(default_factory=list)
    """Sentences for the person who reads the kept result."""


def parser(doc: str | None, *, repeats: int = MIN_REPEATS) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark takes."""
    made = argparse.ArgumentParser(description=(doc or "").strip().splitlines()[0])
    made.add_argument("--save", action="store_true", help="keep the result in benchmarks/results/")
    made.add_argument(
        "--quick",
        action="store_true",
        help="small sizes: shows that it runs, says nothing of the target",
    )
    made.add_argument(
        "--repeats",
        type=at_least(MIN_REPEATS),
        default=repeats,
        help="alternated rounds (5 or more)",
    )
    return made


def parse(made: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """The options; a quick run's result may not be kept."""
    args = made.parse_args(argv)
    if args.quick and args.save:
        made.error("--quick measures too little to be kept; leave out --quick or --save")
    return args


def at_least(low: int) -> Callable[[str], int]:
    """An argparse type: an integer not below ``low``."""

    def convert(text: str) -> int:
        number = int(text)
        if number < low:
            raise argparse.ArgumentTypeError(f"{number} is below {low}")
        return number

    return convert


def alternate(
    arms: Mapping[str, Callable[[], T]], repeats: int, *, say: bool = True
) -> dict[str, list[T]]:
    """Runs every arm once a round, the order reversed from round to round.

    Name one arm twice (``ours`` and ``ours again``) to see how far equal things differ here.
    """
    found: dict[str, list[T]] = {name: [] for name in arms}
    order = list(arms)
    for number in range(repeats):
        if say:
            print(f"round {number + 1} of {repeats}", file=sys.stderr, flush=True)
        for name in order:
            found[name].append(arms[name]())
        order.reverse()
    return found


def versions() -> dict[str, str]:
    """Python, packages that are installed, kernel and processor."""
    known = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            known[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return known | {
        "kernel": f"{platform.system()} {platform.release()}",
        "cpu": f"{len(os.sched_getaffinity(0))} x {_cpu_model()}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def file_system(path: Path) -> str:
    """The type of the file system that holds ``path``, as the kernel names it."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _device, mount, fs, *_ = line.split()
        if path.resolve().is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, fs
    return kind


def report(
    result: Result, args: argparse.Namespace, argv: Sequence[str], *, command: str | None = None
) -> int:
    """Prints the notes and, last, the one JSON line; keeps both when asked.

    ``command`` is what measured it, where that is no benchmark of this folder. 0 when the target holds, and
    after a quick run.
    """
    line = asdict(result)
    notes = line.pop("notes")
    line["command"] = command or shlex.join(["python", "-m", "benchmarks", result.name, *argv])
    line["versions"] = versions()
    for note in notes:
        print(note)
    if args.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{result.name}.json").write_text(json.dumps(line, indent=1) + "\n")
        (RESULTS / f"{result.name}.md").write_text(_page(line, notes))
    print(json.dumps(line))
    return 0 if result.holds or getattr(args, "quick", False) else 1


def _page(line: Mapping[str, Any], notes: Sequence[str]) -> str:
    """The result for people, as Markdown."""
    verdict = "holds" if line["holds"] else "**does not hold**"
    rows = [f"| {key} | {_words(line[key])} |" for key in ("figure", "target", "against", "spread")]
    tools = ", ".join(f"{name} {version}" for name, version in line["versions"].items())
    return "\n".join(
        [
            f"# {line['name']}: the target {verdict}",
            "",
            f"In {line['unit']}.",
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
            *(f"- {note}" for note in notes),
            "",
            f"`{line['command']}`",
            "",
            f"{tools}",
            "",
        ]
    )


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items())
    return "none" if value is None else str(value)
