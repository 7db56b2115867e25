"""Adding a rank to a job that runs: finds the job by its trace folder and asks the rank's host agent.

The agent starts the job's own script as the new rank; how it joins is decision 0024.
"""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import msgspec

from cascade_runtime.agent.config import JobConfig, read_config
from cascade_runtime.agent.journal import Journal
from cascade_runtime.agent.protocol import LENGTH, AddRank, RankAdded, pack_frame, unpack_frame
from cascade_runtime.agent.run_folder import CONFIG, own_run_folders
from cascade_runtime.vocabulary.errors import BadUsage

PATIENCE_S = 5.0
"""An agent that was killed is started again within this, most of the time."""

RETRY_S = 0.05
MAX_RANK = 2**31 - 1
"""Of the column in the trace."""


def find_job(trace: Path) -> JobConfig:
    """The job of this user and machine that writes its trace to ``trace``.

    Raises:
        BadUsage: there is none, or it has ended.
    """
    for folder in own_run_folders():
        with contextlib.suppress(OSError, msgspec.DecodeError):
            config = read_config(folder / CONFIG)
            if Path(config.trace_dir) == trace.resolve():
                return config
    if (trace / "trace.json").exists() or (trace / "spool").exists():
        raise BadUsage("the job of this trace has ended", where=str(trace))
    raise BadUsage(
        "no job that runs here writes its trace to this folder",
        where=str(trace),
        hint="give the folder that cascade run named when it started the job on this machine",
    )


def next_new_rank(config: JobConfig) -> int:
    """The lowest number that no rank of the job has had."""
    rank = config.first_new_rank
    taken = {
        r for i in range(config.num_hosts) for r in Journal.read(config.journal_path(i)).spawned
    }
    while rank in taken:
        rank += 1
    return rank


def add_rank(config: JobConfig, rank: int) -> None:
    """Start ``rank`` on its host; it joins by itself.

    Raises:
        BadUsage: the job is observed, has not begun, ends or has ended, or had this rank before.
    """
    if not 0 <= rank <= MAX_RANK:
        raise BadUsage(f"{rank} is no rank", where="--rank", hint=f"give 0 to {MAX_RANK}")
    answer = _ask(config, rank)
    if answer is None:
        raise BadUsage("the job of this trace has ended", where=config.trace_dir)
    if answer.refused is not None:
        raise BadUsage(f"no rank was added: {answer.refused}", where=f"rank {rank}")


def _ask(config: JobConfig, rank: int) -> RankAdded | None:
    path = config.socket_path(config.host_of(rank))
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at and path.parent.exists():
        try:
            return _ask_once(path, rank)
        except (OSError, EOFError):
            time.sleep(RETRY_S)
    return None


def _ask_once(path: Path, rank: int) -> RankAdded | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect(str(path))
        sock.sendall(pack_frame(AddRank(rank)))
        (length,) = LENGTH.unpack(_read(sock, LENGTH.size))
        body = unpack_frame(_read(sock, length)).body
        return body if isinstance(body, RankAdded) else None


def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
