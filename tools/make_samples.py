"""Records ``sample_traces/`` anew from real runs: ``make samples``.

Every sample is one scenario of ``cascade demo``; its README line is in sample_traces/README.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SAMPLES = ("clean", "kill-one")
ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Record each sample in a temporary folder beside its place, then swap it in."""
    os.environ["CASCADE_HOST_NAME"] = "host-a"
    for name in SAMPLES:
        place = ROOT / "sample_traces" / name
        fresh = place.with_name(f".{name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        command = [
            sys.executable,
            "-c",
            "from dashboard.commands import main; raise SystemExit(main())",
        ]
        command += ["demo", "--headless", "--scenario", name, "--out", str(fresh)]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code != 0:
            sys.stderr.write(
                f"{name}: the run did not give its expected verdict; kept the old one\n"
            )
            shutil.rmtree(fresh, ignore_errors=True)
            return code
        # Whoever opens a sample makes them: those of an older rule book would be believed.
        shutil.rmtree(fresh / "results", ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
