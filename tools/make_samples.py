"""Records ``sample_traces/`` anew from real runs: ``make samples``.

A sample is a scenario of ``cascade demo``, or a script of ``examples/`` under ``cascade run --observe`` that
breaks a promise; its README line is in sample_traces/README.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

DEMOS = ("clean", "kill-one")
BROKEN = {"silent-restore": "silent_restore.py"}
"""Samples whose verdict is ``violated``: by what script."""
ROOT = Path(__file__).resolve().parent.parent
_VIOLATED = 1
"""What ``cascade analyze`` exits with."""


def main(names: list[str]) -> int:
    """Record each sample (or those named) in a temporary folder beside its place, then swap it in."""
    os.environ["CASCADE_HOST_NAME"] = "host-a"
    for name in names or [*DEMOS, *BROKEN]:
        place = ROOT / "sample_traces" / name
        fresh = place.with_name(f".{name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        if not _record(name, fresh):
            sys.stderr.write(
                f"{name}: the run did not give its expected verdict; kept the old one\n"
            )
            shutil.rmtree(fresh, ignore_errors=True)
            return 1
        # Whoever opens a sample makes them: those of an older rule book would be believed.
        shutil.rmtree(fresh / "results", ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    return 0


def _record(name: str, out: Path) -> bool:
    if name not in BROKEN:
        return _cascade("demo", "--headless", "--scenario", name, "--out", str(out)) == 0
    script = str(ROOT / "examples" / BROKEN[name])
    ran = _cascade("run", "--observe", "-n", "4", "--out", str(out), script) == 0
    return ran and _cascade("analyze", str(out)) == _VIOLATED


def _cascade(*words: str) -> int:
    code = "from dashboard.commands import main; raise SystemExit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
