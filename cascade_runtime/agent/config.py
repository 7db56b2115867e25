"""One job's settings, written once by the launcher and read by every agent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cascade_runtime.vocabulary.identity import Actor


class JobConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What ``cascade run`` was asked for."""

    run_id: str
    name: str
    num_ranks: int
    num_hosts: int
    mode: str
    policy: str
    trace_dir: str
    run_dir: str
    """Sockets, journals and exit notes; private to the user, short path."""
    host: str
    command: list[str]
    master_port: int
    env: dict[str, str] = {}
    zygote: str | None = None
    """Socket of a process to fork ranks from (see zygote.py); None starts them afresh."""
    collector: str | None = None
    """Address to ship rows to; None leaves them in the spool. Its token is never in here."""
    respawn: int = 0
    """How often a rank that was lost may be started again."""
    respawn_delay_s: float = 1.0
    """Before the first time; each next one waits twice as long."""
    secret: str = ""
    """Of this run, hexadecimal: what its ranks say to each other over TCP carries it. Only in here."""
    story: list[str] = []
    """What is going to happen, where that is known (demos); goes into trace.json."""

    def forking_from(self, zygote: Path) -> JobConfig:
        """The same job with its ranks forked from a zygote."""
        return msgspec.structs.replace(self, zygote=str(zygote))

    def telling(self, story: list[str]) -> JobConfig:
        """The same job with what is going to happen in its trace.json."""
        return msgspec.structs.replace(self, story=story)

    def shipping_to(self, collector: str) -> JobConfig:
        """The same job with its rows shipped to a collector at this address."""
        return msgspec.structs.replace(self, collector=collector)

    def agent_rank(self, index: int) -> int:
        """Agents count after the ranks."""
        return self.num_ranks + index

    @property
    def first_new_rank(self) -> int:
        """Ranks that the job did not start with count after its agents."""
        return self.num_ranks + self.num_hosts

    def comes_later(self, actor: Actor) -> bool:
        """It joins the job while it runs."""
        return actor.incarnation > 0 or actor.rank >= self.first_new_rank

    def world_size_of(self, rank: int) -> int:
        """What the rank's own script takes for the size of the world."""
        return max(self.num_ranks, rank + 1)

    def ranks_of(self, index: int) -> list[int]:
        """Ranks that start on virtual host ``index``: contiguous, sizes as equal as can be."""
        low = index * self.num_ranks // self.num_hosts
        high = (index + 1) * self.num_ranks // self.num_hosts
        return list(range(low, high))

    def host_of(self, rank: int) -> int:
        """The virtual host a rank (or an agent) runs on; new ranks go to the hosts in turn."""
        if rank >= self.num_ranks:
            return (rank - self.num_ranks) % self.num_hosts
        return next(i for i in range(self.num_hosts) if rank in self.ranks_of(i))

    def host_name(self, index: int) -> str:
        """The host's name in ``actors`` rows."""
        return self.host if self.num_hosts == 1 else f"{self.host}/v{index}"

    def socket_path(self, index: int) -> Path:
        """Where agent ``index`` listens, for its ranks and for the other agents."""
        return Path(self.run_dir) / f"agent-{index}.sock"

    def journal_path(self, index: int) -> Path:
        """Agent ``index``'s journal."""
        return Path(self.run_dir) / f"agent-{index}.journal"

    def cursor_path(self, index: int) -> Path:
        """Where agent ``index`` remembers which segments it has shipped."""
        return Path(self.run_dir) / f"agent-{index}.shipped"

    def exit_path(self, actor: Actor) -> Path:
        """Where the launcher notes the exit status of a rank whose agent is gone."""
        return Path(self.run_dir) / f"exit-{actor.rank}-{actor.incarnation}"

    def refusal_path(self, actor: Actor) -> Path:
        """Where a rank that cannot be attached says why, for its agent to tell once."""
        return Path(self.run_dir) / f"refusal-{actor.rank}-{actor.incarnation}"

    def loads_path(self, actor: Actor) -> Path:
        """Where a rank says which checkpoints it had loaded before it was attached."""
        return Path(self.run_dir) / f"loads-{actor.rank}-{actor.incarnation}"

    def join_path(self, actor: Actor) -> Path:
        """Where a newcomer listens for the member that serves it."""
        return Path(self.run_dir) / f"join-{actor.rank}-{actor.incarnation}.sock"

    def over_path(self) -> Path:
        """All views of a job that is over, for an agent that was away at its end."""
        return Path(self.run_dir) / "over"

    def stopped_path(self, index: int) -> Path:
        """Where the launcher notes that it ended agent ``index`` because it was stopped."""
        return Path(self.run_dir) / f"agent-{index}.stopped"

    def stop_path(self) -> Path:
        """Where the launcher notes the signal by which the whole job is ended early."""
        return Path(self.run_dir) / "stop"

    def running_path(self, actor: Actor) -> Path:
        """There once the rank's script runs: from then on signals are the script's to handle."""
        return Path(self.run_dir) / f"running-{actor.rank}-{actor.incarnation}"

    def progress_path(self, actor: Actor) -> Path:
        """The rank's progress word."""
        return Path(self.run_dir) / f"progress-{actor.rank}-{actor.incarnation}"

    def steps_path(self, actor: Actor) -> Path:
        """How the rank's last steps went."""
        return Path(self.run_dir) / f"steps-{actor.rank}-{actor.incarnation}"


def save_config(config: JobConfig, path: Path) -> None:
    """Write the config as JSON."""
    path.write_bytes(msgspec.json.encode(config))


def read_config(path: Path) -> JobConfig:
    """Read what save_config wrote."""
    return msgspec.json.decode(path.read_bytes(), type=JobConfig)
