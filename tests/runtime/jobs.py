"""Runs the demo's training job with real kills, and reads what it left."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade_runtime.agent.launcher import Launcher, make_config
from cascade_runtime.agent.outcome import Outcome
from collector.trace.trace_folder import open_trace
from dashboard.demo import train
from dashboard.demo.faults import Kill
from dashboard.demo.injector import Injector
from tests.runtime.faults import Faults, Running

ANY_PHASE = ("starting", "forward", "backward", "waiting", "halted")


@dataclass
class FinishedJob:
    """A job that has ended."""

    outcome: Outcome
    trace: Path
    saved: Path
    struck: list[tuple[Kill, int]] = field(default_factory=list)

    def rows(self, table: str) -> list[dict[str, Any]]:
        with open_trace(self.trace) as source:
            return source.table(table).to_pylist()

    def parameters(self) -> dict[int, dict[str, Any]]:
        """Final state by rank, for the ranks that finished."""
        import torch

        return {int(p.stem[4:]): torch.load(p) for p in sorted(self.saved.glob("rank*.pt"))}

    def verdict(self) -> str:
        from analyzer import analyze

        with open_trace(self.trace) as source:
            report = analyze(source).report
        self.report = report
        return report.verdict


class JobRunner:
    """Starts jobs whose ranks are forked from the session's zygote."""

    def __init__(self, zygote: Path, folder: Path) -> None:
        self._zygote = zygote
        self._folder = folder
        self._number = 0

    def run(
        self,
        *script_arguments: str,
        script: Path | str | None = None,
        kills: tuple[Kill, ...] = (),
        phases: tuple[str, ...] = ("waiting",),
        ranks: int = 4,
        hosts: int = 1,
        mode: str = "enforce",
        policy: str = "default",
        collector: str | None = None,
        faults: Faults | None = None,
        env: dict[str, str] | None = None,
        restart: bool = True,
        respawn: int = 0,
        respawn_delay_s: float = 0.2,
        saves: bool = False,
    ) -> FinishedJob:
        self._number += 1
        home = self._folder / f"job{self._number}"
        saved = home / "saved"
        command = [str(script or train.__file__), *script_arguments]
        if script is None or env or respawn or saves:
            command += ["--save", str(saved)]
        config = make_config(
            command,
            num_ranks=ranks,
            num_hosts=hosts,
            mode=mode,
            policy=policy,
            trace_dir=home / "trace",
            zygote=self._zygote,
            env={"CASCADE_RERAISE": "1"} | (env or {}),
            collector=collector,
            respawn=respawn,
            respawn_delay_s=respawn_delay_s,
        )
        launcher = Launcher(config) if restart else _OneLife(config)
        if faults is not None:
            faults.start(Running(config, launcher))
        try:
            with Injector(config, kills, lambda text: None, phases) as injector:
                outcome = launcher.run()
        finally:
            if faults is not None:
                faults.stop()
        return FinishedJob(outcome, home / "trace", saved, injector.struck)


class _OneLife(Launcher):
    """Starts no agent twice, as where a whole machine is gone."""

    def _on_agent_end(self, index: int, code: int) -> None:
        del code
        self._done.add(index)


def cascade(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The ``cascade`` command in a process of its own."""
    command = [
        sys.executable,
        "-c",
        "from dashboard.commands import main; raise SystemExit(main())",
    ]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, timeout=100, **options
    )
