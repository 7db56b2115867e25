"""The launcher: starts one agent a (virtual) host, starts it again when it dies, gives the exit code.

It is the subreaper of everything below it, so that ranks whose agent died still have a parent that
notes their exit status.
"""

from __future__ import annotations

import ctypes
import math
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from types import FrameType

import msgspec

from cascade_runtime.agent.config import JobConfig, save_config
from cascade_runtime.agent.journal import Journal, Memory
from cascade_runtime.agent.master_port import reserved_port
from cascade_runtime.agent.outcome import Outcome, outcome_of
from cascade_runtime.agent.proc_stat import process_state
from cascade_runtime.agent.rank_process import describe_status
from cascade_runtime.agent.run_folder import CONFIG, held, make_run_folder
from cascade_runtime.agent.shipping.settings import check_collector, deadline_s, token
from cascade_runtime.agent.stopping import kill_ranks, note_stop
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor

_PR_SET_CHILD_SUBREAPER = 36
_MAX_RESTARTS = 10
STOPPED_AGENT_S = 1.0
"""An agent that is stopped for so long is ended, to be started again from its journal."""
TOLD_WAIT_S = 3.0
"""Ranks that take longer than this to end are told of."""


def make_config(
    command: list[str],
    *,
    num_ranks: int,
    num_hosts: int = 1,
    mode: str = "enforce",
    policy: str = "default",
    trace_dir: Path,
    name: str | None = None,
    env: dict[str, str] | None = None,
    zygote: Path | None = None,
    collector: str | None = None,
    respawn: int = 0,
    respawn_delay_s: float = 1.0,
) -> JobConfig:
    """A validated config, with the trace folder made.

    Raises:
        BadUsage: fewer than two ranks, more hosts than ranks, no such script, a trace folder in
            use, a collector's address that is none, a negative number of new starts.
    """
    if respawn < 0:
        raise BadUsage(
            f"a rank cannot be started again {respawn} times",
            where="--respawn",
            hint="give 0 or more",
        )
    if num_ranks < 2:
        raise BadUsage(
            f"a job with -n {num_ranks} has nobody to be consistent with",
            where="-n",
            hint="give at least 2 ranks, or run the script without cascade",
        )
    if not 1 <= num_hosts <= num_ranks:
        raise BadUsage(
            f"{num_hosts} virtual hosts for {num_ranks} ranks leaves hosts without a rank",
            where="--virtual-hosts",
            hint=f"give 1 to {num_ranks}",
        )
    script = Path(command[0])
    if not script.is_file():
        raise BadUsage("no such script", where=str(script), hint="give the path of a Python file")
    if collector is not None:
        collector = check_collector(collector)
        token(), deadline_s()  # what agents would stumble over is said here
    trace_dir = trace_dir.resolve()
    if trace_dir.exists() and (not trace_dir.is_dir() or any(trace_dir.iterdir())):
        raise BadUsage(
            "this folder is not empty, and a trace is never written over another",
            where=str(trace_dir),
            hint="give a new folder",
        )
    trace_dir.mkdir(parents=True, exist_ok=True)
    run_id = uuid.uuid4().hex[:12]
    run_dir = str(make_run_folder())
    return JobConfig(
        run_id=run_id,
        name=name or script.stem,
        num_ranks=num_ranks,
        num_hosts=num_hosts,
        mode=mode,
        policy=policy,
        trace_dir=str(trace_dir),
        run_dir=run_dir,
        host=os.environ.get("CASCADE_HOST_NAME") or socket.gethostname(),
        command=[str(script.resolve()), *command[1:]],
        master_port=0,  # the launcher reserves one
        env=env or {},
        zygote=str(zygote) if zygote else None,
        collector=collector,
        respawn=respawn,
        secret=secrets.token_hex(16),
        respawn_delay_s=respawn_delay_s,
    )


class Launcher:
    """Runs one job to its end.

    Args:
        config: the job.
        stopped_agent_s: how long an agent may be stopped (SIGSTOP) before it is ended and started
            again; infinity: for ever, for whoever measures the job without it.
    """

    agent_module = "cascade_runtime.agent"

    def __init__(self, config: JobConfig, *, stopped_agent_s: float = STOPPED_AGENT_S) -> None:
        self.config = config
        self._stopped_agent_s = stopped_agent_s
        self._path = Path(config.run_dir) / CONFIG
        self._agents: dict[int, subprocess.Popen[bytes]] = {}
        self._starts = [0] * config.num_hosts
        self._done: set[int] = set()
        self._stopping = False
        self._stopped_by = 0
        self._given_up = False
        self._over = threading.Event()
        self.agent_pids: dict[int, int] = {}

    def run(self) -> Outcome:
        """Start, watch, restart, reap; returns when every agent has ended."""
        with held(Path(self.config.run_dir)), reserved_port() as port:
            self.config = msgspec.structs.replace(self.config, master_port=port)
            return self._run()

    def _run(self) -> Outcome:
        save_config(self.config, self._path)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
            numbers.append(signal.SIGHUP)
        previous = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            for index in range(self.config.num_hosts):
                if not self._stopping:
                    self._start(index)
            while len(self._done) < self.config.num_hosts:
                self._reap()
        finally:
            self._over.set()
            for number, handler in previous.items():
                signal.signal(number, handler)
            _prctl(_PR_SET_CHILD_SUBREAPER, 0)
        return self._outcome()

    def rank_pids(self) -> dict[Actor, int]:
        """Process ids of the ranks started so far, for fault injection."""
        return rank_pids(self.config)

    def _start(self, index: int) -> None:
        command = [sys.executable, "-m", self.agent_module, str(self._path), str(index)]
        command.append(str(os.getpid()))
        self._starts[index] += 1
        child = subprocess.Popen(command, start_new_session=True)
        self._agents[index] = child
        self.agent_pids[index] = child.pid
        (Path(self.config.run_dir) / f"agent-{index}.pid").write_text(str(child.pid))
        if self._stopping:  # the signal came while this agent was started
            _kill(child, signal.SIGTERM)

    def _reap(self) -> None:
        """Wait for any child: an agent, or a rank that was left to us."""
        try:
            pid, status = os.waitpid(-1, os.WUNTRACED)
        except ChildProcessError:
            self._done.update(range(self.config.num_hosts))
            return
        if os.WIFSTOPPED(status):
            self._on_stopped(pid)
            return
        code = os.waitstatus_to_exitcode(status)
        for index, child in self._agents.items():
            if child.pid == pid:
                child.returncode = code
                self._on_agent_end(index, code)
                return
        self._note_orphan(pid, code)

    def _on_agent_end(self, index: int, code: int) -> None:
        if code == 0 or self._stopping:
            self._done.add(index)
            if code != 0:  # it ended before it could end its ranks
                kill_ranks(self.config, [index])
            return
        if self._starts[index] > _MAX_RESTARTS:
            self._give_up(index, code)
            return
        sys.stderr.write(
            f"cascade: agent {index} ended with {describe_status(code)}; "
            "starting it again from its journal\n"
        )
        self._start(index)

    def _on_stopped(self, pid: int) -> None:
        """A child was stopped (SIGSTOP). An agent that stays so holds up every walk of the job."""
        patience_s = self._stopped_agent_s
        for index, child in self._agents.items():
            if child.pid == pid and math.isfinite(patience_s):
                patience = threading.Timer(patience_s, self._end_stopped, (index, child))
                patience.daemon = True
                patience.start()

    def _end_stopped(self, index: int, child: subprocess.Popen[bytes]) -> None:
        if self._agents[index] is not child or process_state(child.pid) != "T":
            return  # it ended, or runs again
        sys.stderr.write(
            f"cascade: agent {index} was stopped (SIGSTOP) for {self._stopped_agent_s:.0f} s: "
            "its ranks go on, and it is ended and started again\n"
        )
        # For its next incarnation, which can write a row of it.
        with suppress(OSError):
            self.config.stopped_path(index).write_text(f"{self._stopped_agent_s}")
        _kill(child, signal.SIGKILL)

    def _give_up(self, index: int, code: int) -> None:
        """An agent that ends as often as it is started: its ranks would wait for it for ever."""
        self._done.add(index)
        self._given_up = True
        sys.stderr.write(
            f"cascade: agent {index} ended {self._starts[index]} times (last with "
            f"{describe_status(code)}), so its ranks are stopped; its own output above says why\n"
        )
        kill_ranks(self.config, [index])

    def _note_orphan(self, pid: int, code: int) -> None:
        for index in range(self.config.num_hosts):
            for actor, rank_pid in read_memory(self.config, index).spawned.values():
                if rank_pid == pid:
                    self.config.exit_path(actor).write_text(str(code))
                    return

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal ends the job, a second one at once."""
        del frame
        at_once = self._stopping
        if not at_once:
            self._stopping, self._stopped_by = True, number
            with suppress(OSError):  # not through sys.stderr, which may be at a write just now
                os.write(2, b"cascade: stopping ...\n")
            note_stop(self.config, number)
            self._tell_wait()
        for child in list(self._agents.values()):
            # An agent takes SIGTERM silently at any moment; the note says what its ranks shall get.
            _kill(child, signal.SIGKILL if at_once else signal.SIGTERM)
        if at_once:
            kill_ranks(self.config, range(self.config.num_hosts))

    def _tell_wait(self) -> None:
        def tell() -> None:
            if not self._over.is_set():
                sys.stderr.write("cascade: waiting for the ranks to end (Ctrl-C: at once)\n")

        patience = threading.Timer(TOLD_WAIT_S, tell)
        patience.daemon = True
        patience.start()

    def _outcome(self) -> Outcome:
        outcome = outcome_of(self.config, self._stopped_by, given_up=self._given_up)
        if not self._given_up:
            shutil.rmtree(self.config.run_dir, ignore_errors=True)
        return outcome


def read_memory(config: JobConfig, index: int) -> Memory:
    """What agent ``index``'s journal holds, without opening it for writing."""
    return Journal.read(config.journal_path(index))


def rank_pids(config: JobConfig) -> dict[Actor, int]:
    """Process ids of the ranks started so far, for tests and fault injection."""
    pids: dict[Actor, int] = {}
    for index in range(config.num_hosts):
        pids.update(dict(read_memory(config, index).spawned.values()))
    return pids


def _kill(child: subprocess.Popen[bytes], number: int) -> None:
    """A signal; unlike Popen's own it reaps nobody, which is for the launcher's loop to do."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
