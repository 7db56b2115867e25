"""Records the samples in which a promise is broken, from scripts of ``examples/`` (``make samples``).

    python tools/make_broken_samples.py [NAME ...]

Their README lines are in sample_traces/README.md. A run that was not judged ``violated`` is not kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SAMPLES = {"silent-restore": "silent_restore.py"}
"""By what script each is made."""
ROOT = Path(__file__).resolve().parent.parent
MAIN = "from dashboard.commands import main; raise SystemExit(main())"
_VIOLATED = 1
"""What ``cascade analyze`` exits with."""


def main(names: list[str]) -> int:
    """Record each sample (or those named) in a temporary folder beside its place, then swap it in."""
    os.environ["CASCADE_HOST_NAME"] = "host-a"
    for name in names or SAMPLES:
        place = ROOT / "sample_traces" / name
        fresh = place.with_name(f".{name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        script = str(ROOT / "examples" / SAMPLES[name])
        ran = _cascade("run", "--observe", "-n", "4", "--out", str(fresh), script) == 0
        if not ran or _cascade("analyze", str(fresh)) != _VIOLATED:
            sys.stderr.write(f"{name}: the run was not judged violated; the old one stays\n")
            shutil.rmtree(fresh, ignore_errors=True)
            return 1
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    return 0


def _cascade(*words: str) -> int:
    return subprocess.run([sys.executable, "-c", MAIN, *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
