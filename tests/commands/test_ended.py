"""Ctrl-C and kill, as a person uses them: a line, the trace so far, and nobody left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analyzer import analyze
from collector.trace.trace_folder import open_trace
from tests.serving import MAIN, ROOT

SCRIPTS = ROOT / "tests" / "runtime" / "scripts"
LIMIT_S = 240


class Foreground:
    """A ``cascade`` that has a process group, as a shell starts it at a terminal."""

    def __init__(self, home: Path, *words: object) -> None:
        self.home = home
        self.tmp = tempfile.mkdtemp()  # not in home: a socket's path ends at 107 bytes
        self.out, self.err = home / "stdout", home / "stderr"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN, *map(str, words)],
                # What it starts has this folder in its command line: run folders are made in it.
                env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": self.tmp},
                cwd=home,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def wait_for(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + LIMIT_S
        while not what():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until, self.said()
            time.sleep(0.01)

    def said(self) -> str:
        return self.err.read_text()

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self, within_s: float = LIMIT_S) -> int:
        code = self.process.wait(within_s)
        until = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < until:
            time.sleep(0.05)
        assert left == []
        return code

    def left(self) -> list[tuple[int, str]]:
        """Processes that it left behind."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                ours = str(self.home) in words or self.tmp in words
                if entry.name.isdigit() and ours:
                    found.append((int(entry.name), words.replace("\0", " ")))
        return found


@contextlib.contextmanager
def foreground(home: Path, *words: object) -> Iterator[Foreground]:
    command = Foreground(home, *words)
    try:
        yield command
    finally:
        for pid, _ in command.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        command.process.wait(LIMIT_S)


def judged(trace: Path) -> tuple[str, list[str], int]:
    """Verdict, violations and the last step of a trace."""
    with open_trace(trace) as source:
        assert source.meta.ended_ns is not None
        assert source.meta.clean_end is False
        steps = [r for r in source.table("steps").to_pylist() if r["phase"] == "end"]
        report = analyze(source).report
    assert "end of the run: it was stopped early" in report.not_supplied
    return report.verdict, [v.sentence for v in report.violations], max(r["step"] for r in steps)


def job(home: Path, how: str, *words: object) -> list[object]:
    script = [SCRIPTS / "tidies.py", home, how]
    return ["run", "-n", "2", "--out", home / "trace", *words, *script]


def began(home: Path) -> Callable[[], bool]:
    return lambda: all((home / f"began-{rank}").exists() for rank in (0, 1))


def lines_of_ours(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("cascade: ")]


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [[], ["--observe"], ["--virtual-hosts", "2"]], ids=" ".join)
def test_ctrl_c_leaves_the_trace_so_far_and_says_where(tmp_path: Path, mode: list[str]) -> None:
    with foreground(tmp_path, *job(tmp_path, "except", *mode)) as command:
        command.wait_for(began(tmp_path))
        command.ctrl_c()
        assert command.ended() == 130
    assert "Traceback" not in command.said()
    assert [path.name for path in sorted(tmp_path.glob("saved-*"))] == ["saved-0", "saved-1"]
    starts, stopping, stopped = lines_of_ours(command.said())
    assert stopping == "cascade: stopping ..."
    trace = tmp_path / "trace"
    assert starts.startswith("cascade: starting 2 ranks")
    assert f"the trace so far is in {trace}: cascade replay {trace}" in stopped
    verdict, violations, step = judged(trace)
    assert violations == []
    assert verdict in ("ok", "unknown")
    told = int(stopped.split("stopped by Ctrl-C after step ")[1].split(";")[0])
    assert (
        abs(told - step) <= 1
    )  # a step may be decided and not yet told, or its end not yet written


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_kill_ends_it_the_same_way(tmp_path: Path) -> None:
    with foreground(tmp_path, *job(tmp_path, "except")) as command:
        command.wait_for(began(tmp_path))
        command.process.terminate()
        assert command.ended() == 143
    assert "Traceback" not in command.said()
    assert "stopped by SIGTERM after step" in lines_of_ours(command.said())[-1]
    assert judged(tmp_path / "trace")[1] == []


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_handler_of_the_script_s_own_ends_it_in_its_way(tmp_path: Path) -> None:
    with foreground(tmp_path, *job(tmp_path, "handler")) as command:
        command.wait_for(began(tmp_path))
        command.ctrl_c()
        assert command.ended(20) == 130
    assert "Traceback" not in command.said()
    assert list(tmp_path.glob("saved-*"))
    assert judged(tmp_path / "trace")[1] == []


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_second_ctrl_c_waits_for_nobody(tmp_path: Path) -> None:
    with foreground(tmp_path, *job(tmp_path, "deaf")) as command:
        command.wait_for(began(tmp_path))
        command.ctrl_c()
        command.wait_for(lambda: "waiting for the ranks to end" in command.said())
        command.ctrl_c()
        assert command.ended(10) == 130
    assert "Traceback" not in command.said()
    assert not list(tmp_path.glob("saved-*"))


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("wait_s", [0.0, 1.0, 3.0])
def test_ctrl_c_before_the_job_has_formed_leaves_nothing(tmp_path: Path, wait_s: float) -> None:
    late = tmp_path / "late.py"
    late.write_text(f"import time, pathlib\npathlib.Path({str(tmp_path)!r}, 'runs').touch()\ntime.sleep(99)\n")  # fmt: skip
    with foreground(tmp_path, "run", "--out", tmp_path / "trace", late) as command:
        command.wait_for(lambda: "starting" in command.said())
        until = time.monotonic() + wait_s
        command.wait_for(lambda: time.monotonic() > until)
        command.ctrl_c()
        assert command.ended() == 130
    assert "Traceback" not in command.said()
    assert "no trace" in command.said()
    assert not (tmp_path / "trace").exists()


# ---- the demo -------------------------------------------------------------------------------------


def demo(home: Path) -> list[object]:
    return ["demo", "--no-open", "--out", home / "trace", "--data", home / "data"]


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_ctrl_c_in_the_middle_of_a_demo(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with foreground(tmp_path, *demo(tmp_path)) as command:
        command.wait_for(lambda: f"its trace will be in {trace}" in command.said())
        command.wait_for((trace / "trace.json").exists)
        until = time.monotonic() + 3
        command.wait_for(lambda: time.monotonic() > until)
        command.ctrl_c()
        assert command.ended() == 130
    assert "Traceback" not in command.said()
    assert "died" not in command.said()
    assert (
        f"the trace so far is in {trace}: cascade replay {trace}" in command.said().splitlines()[-1]
    )
    assert list(trace.glob("events/steps/*.parquet"))
    _, violations, step = judged(trace)
    assert violations == []
    assert step > 0


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("said", ["its trace will be in", "importing torch"])
def test_ctrl_c_before_a_demo_s_job(tmp_path: Path, said: str) -> None:
    with foreground(tmp_path, *demo(tmp_path)) as command:
        command.wait_for(lambda: said in command.said())
        command.ctrl_c()
        assert command.ended(40) == 130
    assert "Traceback" not in command.said()
    assert "stopped by Ctrl-C before the job had begun" in command.said().splitlines()[-1]
    assert not (tmp_path / "trace").exists()


def test_a_folder_in_use_is_refused_before_anything_is_told(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "mine").touch()
    with foreground(tmp_path, *demo(tmp_path)) as command:
        assert command.ended() == 2
    first, *_ = command.said().splitlines()
    assert (
        first == "cascade demo: this folder is not empty, and a trace is never written over another"
    )


# ---- serve ----------------------------------------------------------------------------------------


@pytest.mark.timeout(600)
def test_ctrl_c_ends_a_collector_and_its_analysis_in_silence(tmp_path: Path) -> None:
    words = ["serve", "--port", "0", "--data", tmp_path / "data", "--log-format", "text"]
    with foreground(tmp_path, *words) as command:
        command.wait_for(lambda: any("dashboard.live" in words for _, words in command.left()))
        command.wait_for(lambda: "the collector is at" in command.said())
        command.ctrl_c()
        assert command.ended() == 0
    assert "Traceback" not in command.said()
