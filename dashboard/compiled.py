"""What numba compiles the first time and keeps on disk: made ahead, so that nobody waits without knowing why.

``python -m dashboard.compiled`` makes what is missing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[1]

COLLECTOR = "from collector.hot.warm import warm_up; warm_up()"
ANALYZER = """
from analyzer import analyze
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
with open_trace(sample_traces()["kill-one"]) as trace:
    analyze(trace)
"""
_MADE_BY = {
    COLLECTOR: [_ROOT / "collector" / "wire" / "msgpack_native.py"],
    ANALYZER: [
        _ROOT / "analyzer" / f"{name}.py"
        for name in (
            "clock_pass",
            "folded",
            "overwritten",
            "replicas",
            "root_blame",
            "stale",
        )
    ],
}


def missing() -> list[str]:
    """Programs that compile what is not there, or is older than its source."""
    return [program for program, of in _MADE_BY.items() if not all(map(is_compiled, of))]


def make(
    programs: list[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> None:
    """Run them side by side; one that fails is left to whoever needs what it makes.

    Args:
        programs: from ``missing``.
        environment: that they run in; this process's own when not given.
        folder: that they run in; this process's own when not given.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        for program in programs:
            running.append(  # noqa: PERF401  # each must be known should the next not start
                subprocess.Popen(
                    [sys.executable, "-P", "-c", program],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        for program, process in zip(programs, running, strict=True):
            if process.wait() == 0:
                _renew(program)
    finally:  # Ctrl-C
        for process in running:
            process.kill()
            process.wait()


def make_once(say: Callable[[str], None]) -> None:
    """Make what is missing, and say so before; nothing where all is there.

    Args:
        say: tells the person.
    """
    programs = missing()
    if programs:
        say("compiling for this machine, once; it takes about half a minute ...")
        make(programs)


def _renew(program: str) -> None:
    """What numba still takes though its source looks newer (a copied clone) is not looked at again."""
    for source in _MADE_BY.get(program, ()):
        for index in _kept(source):
            with contextlib.suppress(OSError):
                os.utime(index)


def _kept(source: Path) -> Iterator[Path]:
    return (source.parent / "__pycache__").glob(f"{source.stem}.*.nbi")


def is_compiled(source: Path) -> bool:
    """Whether numba has kept something of the source as it is now; True where it keeps it elsewhere."""
    folder = source.parent / "__pycache__"
    writable = folder if folder.exists() else source.parent
    if "NUMBA_CACHE_DIR" in os.environ or not os.access(writable, os.W_OK):
        return True
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in _kept(source))


if __name__ == "__main__":
    make(missing())
