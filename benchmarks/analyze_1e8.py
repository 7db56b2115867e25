"""The whole analysis of 1e8 rows x 1,024 ranks, from Parquet: how long, and how much memory.

The trace (benchmarks/_causal_run.py) is made once and kept in ``--dir``. The analysis runs in a process of
its own; where that needs more than ``--most-gb`` it is stopped, and there is no figure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import _harness
from benchmarks._causal_run import Shape, on_disk

TARGET = "under 120 s, under 8 GB"
TARGET_S, TARGET_GB = 120.0, 8.0
NUM_RANKS, NUM_ROWS = 1024, 100_000_000
QUICK_RANKS, QUICK_ROWS = 32, 10_000
DONE = "whole"
_MAIN = "from dashboard.commands import main; raise SystemExit(main())"


def main(argv: list[str]) -> int:
    """Makes the trace and judges it; 0 when both targets hold."""
    options = _harness.parser(__doc__)
    options.add_argument("--rows", type=float, help="another size than 1e8")
    options.add_argument("--dir", type=Path, help="where the trace is kept; else it is made anew")
    options.add_argument("--most-gb", type=float, default=16.0, help="stop it beyond that")
    args = _harness.parse(options, argv)
    num_rows = int(args.rows or (QUICK_ROWS if args.quick else NUM_ROWS))
    ranks = QUICK_RANKS if args.quick else NUM_RANKS
    with tempfile.TemporaryDirectory(prefix="analyze-") as temporary:
        folder = (args.dir or Path(temporary)) / f"causal-{ranks}-{num_rows}"
        whole = folder.with_suffix(f".{DONE}")
        if not whole.exists():
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(str(on_disk(folder, Shape.of_rows(ranks, num_rows))))
        rows = int(whole.read_text())
        seconds, gb, code = watched(folder, args.most_gb)
    return _harness.report(judge(rows, ranks, seconds, gb, code), args, argv)


def watched(folder: Path, most_gb: float) -> tuple[float, float, int]:
    """(seconds, greatest resident GB, exit code) of ``cascade analyze``; stopped beyond ``most_gb``."""
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-c", _MAIN, "analyze", str(folder), "--json"], stdout=subprocess.DEVNULL
    )
    highest = 0.0
    while True:
        try:
            code = child.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            highest = max(highest, _resident_gb(child.pid))
            if highest > most_gb:
                child.kill()
                child.wait()
                return time.monotonic() - began, highest, -1
            continue
        return time.monotonic() - began, highest, code


def _resident_gb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 / 1e9 if found else 0.0


def judge(rows: int, ranks: int, seconds: float, gb: float, code: int) -> _harness.Result:
    """Both must hold, and the run, which is sound, must be called ok."""
    done = code == 0
    note = f"{rows:,} rows of {ranks} ranks, from starting cascade analyze to its end"
    if not done:
        note = (
            f"{rows:,} rows of {ranks} ranks: stopped at {gb:.1f} GB after {seconds:.0f} s"
            if (code == -1)
            else f"cascade analyze ended with {code}"
        )
    return _harness.Result(
        name="analyze_1e8",
        figure={"s": round(seconds, 1) if done else None, "GB": round(gb, 2)},
        unit="s; greatest resident memory in 1e9 bytes",
        target={"s": TARGET_S, "GB": TARGET_GB},
        holds=done and seconds < TARGET_S and gb < TARGET_GB and rows >= NUM_ROWS,
        notes=[note],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
