"""What the parts of one host agent share: the job, what is known of it, and ways to tell it.

State only. What is done with it is in the files beside this one, each of which says what it does:
spawning, deaths, stopped_ranks, connections, inbox, leading, effects; host.py is the loop around them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from cascade_runtime.agent.coming import Coming
from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.control_log import ControlLog
from cascade_runtime.agent.gpu_samples import GpuSampler
from cascade_runtime.agent.hosts import HostWatch
from cascade_runtime.agent.joins import Joins
from cascade_runtime.agent.journal import Journal
from cascade_runtime.agent.judge import Judge
from cascade_runtime.agent.plan import Awaits, Drains, Plan, plan_next
from cascade_runtime.agent.post import Post
from cascade_runtime.agent.protocol import (
    AgentHello,
    Facts,
    Level,
    View,
    pack_frame,
)
from cascade_runtime.agent.rank_process import RankProcess
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.agent.refusals import Refusals
from cascade_runtime.agent.rendezvous import Rendezvous
from cascade_runtime.agent.rows import AgentRows
from cascade_runtime.agent.shipping.shipper import Shipper
from cascade_runtime.agent.walk import (
    Walker,
)
from cascade_runtime.agent.watch import Watch
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import load_policy


class HostState:
    """One agent's knowledge.

    Args:
        config: the job.
        index: this agent's host.
    """

    def __init__(self, config: JobConfig, index: int) -> None:
        self.config = config
        self.index = index
        self.journal = Journal(config.journal_path(index))
        memory = self.journal.memory
        self.actor = Actor(config.agent_rank(index), memory.num_starts)
        self.recorder = Recorder(Path(config.trace_dir) / "spool", config.run_id, self.actor)
        self.control = ControlLog(self.recorder)
        self.walker = Walker(index, config.num_hosts, lambda a: config.host_of(a.rank), self.plan)
        self.walker.restore(
            memory.views, memory.promised, memory.accepted, memory.num_starts, memory.walking
        )
        self.reconciler = Reconciler(memory.debts.values(), memory.closed_debts)
        self.rows = AgentRows(self.recorder)
        self.judge = Judge(load_policy(config.policy), self.rows, self.reconciler)
        self.post = Post(config, index, self.control)
        self.rendezvous = Rendezvous(self.post.tell)
        self.refusals = Refusals(config)
        self.shipper = Shipper(config, index)
        self.gpus = GpuSampler()
        self.watch = Watch(config, index, self.judge, self.rows)
        self.hosts = HostWatch()
        self.joins = Joins()
        self.coming = Coming()
        self.ranks: dict[int, RankProcess] = {}
        """The processes of this host, by rank."""
        self.attached: set[Actor] = set()
        """Ranks of all hosts that said hello."""
        self.fenced = {a for a, facts in memory.dead if facts.stopped}
        """Local ranks that live and are not listened to."""
        self.certified = {a for a, _ in memory.dead} | {a for a, _ in memory.exited}
        """Local ranks whose end (or fence) is in the journal."""
        self.stopping = False
        """The job is being stopped as a whole."""
        self.stopped_by = 0
        """The signal by which somebody ended the whole job early; 0 while nobody has."""
        self.finished = asyncio.Event()
        """Nothing is left to do for this agent."""
        self.perform: Callable[[], None] = _unset
        """Do what the walker asks for (effects.py)."""
        self.on_departed: list[Callable[[], None]] = []
        """Called when a view is installed that somebody is not in any more."""
        self.tick: Callable[[], None] = _unset
        """Look at what wants doing now (host.py)."""

    def hello(self) -> bytes:
        """The first frame of a connection to an agent, and the answer to a rank's."""
        return pack_frame(AgentHello(self.index, self.actor, self.walker.epoch))

    def local(self, actors: set[Actor]) -> list[Actor]:
        """Those of ``actors`` that are on this host, in order."""
        return sorted(a for a in actors if self.config.host_of(a.rank) == self.index)

    def members_on(self, index: int) -> list[Actor]:
        """The members of the view that are on host ``index``."""
        members = self.walker.view.members
        return [m for m in members if self.config.host_of(m.rank) == index]

    def plan(self, current: View, facts: dict[Actor, Facts]) -> Plan | Drains | Awaits:
        """What is to follow from the facts that a walk has gathered."""
        plan = plan_next(
            current,
            facts,
            self.judge.triggers,
            self.reconciler.relaxed(),
            self.judge.policy,
            self.actor,
            self.newcomers_ready(),
        )
        if not isinstance(plan, Plan):
            return plan
        return plan._replace(view=self.coming.named(plan.view, current))

    def newcomers_ready(self) -> list[Level]:
        """Newcomers of any host that the next view may let in."""
        view = self.walker.view
        return self.joins.ready(view, set(view.members) - self.judge.alive())

    def say(self, text: str) -> None:
        """One line on stderr."""
        sys.stderr.write(f"cascade agent {self.index}: {text}\n")
        sys.stderr.flush()


def _unset(*_: object) -> None:
    raise RuntimeError("this part of the agent has not been put in yet")
