"""What is slow to make and kept on disk: numba's compiled passes, Hypothesis' tables of characters.

Two workers of a fresh clone would make all of it twice, and coverage would watch them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

COLLECTOR = "from collector.hot.warm import warm_up; warm_up()"
ANALYZER = """
from analyzer import analyze
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
with open_trace(sample_traces()["kill-one"]) as trace:
    analyze(trace)
"""
CHARACTERS = "import hypothesis.strategies as st; st.text().validate()"


def missing() -> list[str]:
    """Programs that make what is not there, or is older than its source."""
    made = {
        COLLECTOR: _is_compiled(ROOT / "collector" / "wire" / "msgpack_native.py"),
        ANALYZER: _is_compiled(ROOT / "analyzer" / "clock_pass.py")
        and _is_compiled(ROOT / "analyzer" / "root_blame.py"),
        CHARACTERS: (ROOT / ".hypothesis" / "unicode_data").exists(),
    }
    return [program for program, is_made in made.items() if not is_made]


def make() -> None:
    """Make what is missing, side by side and unmeasured; a failure is left for the tests to show."""
    unmeasured = {name: value for name, value in os.environ.items() if "COV" not in name}
    running = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=unmeasured)
        for program in missing()
    ]
    for process in running:
        process.wait()


def _is_compiled(source: Path) -> bool:
    """Whether numba has kept something of the source as it is now."""
    kept = (source.parent / "__pycache__").glob(f"{source.stem}.*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)
