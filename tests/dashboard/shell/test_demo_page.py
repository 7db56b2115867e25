"""``cascade demo``: its page knows the run, and what will happen, before the job has begun."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import httpx
import pytest

from tests.serving import MAIN, ROOT


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_the_page_is_there_before_the_job_and_stays_after_it(tmp_path):
    words = ["demo", "--no-open", "--scenario", "clean", "--ranks", "2"]
    words += ["--data", tmp_path / "data", "--out", tmp_path / "out"]
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        try:
            said = iter(demo.stderr)
            line = next(line for line in said if "cascade demo: open http" in line)
            base, run_id = re.search(r"(http://\S+)/dash/run/(\w+)", line).groups()
            story = httpx.get(f"{base}/v1/runs/{run_id}/story", timeout=60).json()
            assert story["run"]["state"] == "waiting"
            assert len(story["plan"]) == 2
            assert any("attached" in line for line in said)
            assert any("the page shows the same" in line for line in said)
            pulse = httpx.get(f"{base}/v1/runs/{run_id}/pulse", timeout=60).json()
            assert pulse["num_rows"] > 0
            assert httpx.get(f"{base}/dash/run/{run_id}", timeout=60).status_code == 200
            demo.send_signal(signal.SIGINT)
            out, _ = demo.communicate(timeout=60)
            assert demo.returncode == 0
            assert "OK: no promise was broken" in out
        finally:
            demo.kill()
