"""Size of the report file of 64 ranks and 1e8 rows, and how long a browser takes to show it.

The file is made by ``cascade report`` itself. The trace is made once (benchmarks/_big_trace.py, about six
minutes) and is kept in ``--dir``, as is what the lanes were built from. ``mb``: the file's size. ``open_s``:
from asking for the file to the first frame of the timeline with all its lanes, nothing cached, the median.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import _harness
from benchmarks._big_trace import big_trace
from benchmarks._browser import chromium, page_of, wait_for
from benchmarks._load import Failed
from benchmarks._replayed import NUM_ROWS, QUICK_ROWS, add_options
from benchmarks._stats import median

LIMIT_MB = 2.0
TARGET = f"at most {LIMIT_MB:g} MB"
MAKE_S = 1800.0
_MAIN = "from dashboard.commands import main; raise SystemExit(main())"
_SHARP = "() => (window.bench.frames.find((frame) => frame.sharp) || {}).seen"


def main(argv: list[str]) -> int:
    """Makes the report and opens it; 0 when it is small enough."""
    options = _harness.parser(__doc__)
    add_options(options)
    args = _harness.parse(options, argv)
    num_rows = int(args.rows or (QUICK_ROWS if args.quick else NUM_ROWS))
    args.dir.mkdir(parents=True, exist_ok=True)
    trace = big_trace(args.dir, num_rows)
    with tempfile.TemporaryDirectory(prefix="report-size-") as folder:
        path = Path(folder) / "report.html"
        make_s = make(trace, path, args.dir / f"{trace.name}.cache")
        mb = path.stat().st_size / 1e6
        with chromium() as browser:
            arms = {"report": lambda: one(browser, path.as_uri())}
            times = _harness.alternate(arms, 2 if args.quick else args.repeats)["report"]
    return _harness.report(judge(mb, times, make_s), args, argv)


def make(trace: Path, path: Path, cache: Path) -> float:
    """Write the report; seconds.

    Raises:
        Failed: the command did not end well.
    """
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, "report", str(trace), "-o", str(path), "--force"],
        env=os.environ | {"CASCADE_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        timeout=MAKE_S,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(f"cascade report ended with {done.returncode}")
    return time.monotonic() - began


def one(browser: Any, url: str) -> float:
    """Seconds until the first sharp frame."""
    with page_of(browser, url) as page:
        return float(wait_for(page, _SHARP)) / 1000


def judge(mb: float, times: list[float], make_s: float) -> _harness.Result:
    """The file must be small enough."""
    return _harness.Result(
        name="report_size",
        figure={"mb": round(mb, 2), "open_s": round(median(times), 2)},
        unit="MB (1e6 bytes); s from navigation to the first sharp frame, median",
        target={"mb": LIMIT_MB},
        holds=mb <= LIMIT_MB,
        spread={"open_s": [round(s, 2) for s in sorted(times)]},
        notes=[f"made in {make_s:.0f} s, from starting cascade report to its end"],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
