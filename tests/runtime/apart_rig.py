"""Members whose cohorts are apart, in one process: reductions and broadcasts are played by the test."""

from __future__ import annotations

import select
import time
from typing import Any

import torch
from torch import nn

from cascade_runtime.agent.plan import Plan, plan_next
from cascade_runtime.agent.protocol import Put, Trigger, Value, View
from cascade_runtime.rank.apart import Apart
from cascade_runtime.rank.channel import Channel
from cascade_runtime.rank.levelling import tree_of
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.rank.open_step import OpenStep
from cascade_runtime.rank.part import Part
from cascade_runtime.rank.snapshot import TrainingState
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import CohortRules, load_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.facts import AGENT, actors, view
from tests.runtime.sums_rig import all_bytes
from tests.runtime.test_member import Link, Recorder, Ring, Word

POLICY = load_policy()
POLICY.cohorts = CohortRules(split=True)
DEADLINE_S = 60.0


class Rank:
    """One member with a small model."""

    def __init__(self, rank: int, adam: bool) -> None:
        torch.manual_seed(7)
        self.model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
        parameters = self.model.parameters()
        self.optimizer: torch.optim.Optimizer
        if adam:
            self.optimizer = torch.optim.AdamW(parameters, lr=0.01)
        else:
            self.optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        objects = ModelObjects(self.model, self.optimizer)
        word: Any = Word()
        ring: Any = Ring()
        self.recorder: Any = Recorder()
        self.link: Any = Link()
        self.recorder.run_id = "run"
        start = view(0, 1, 2)
        self.member = Member(Actor(rank), start, objects, self.recorder, self.link, word, ring)
        state = TrainingState(self.model, self.optimizer, list, objects)
        self.apart = Apart(self.member, state)
        self.channel = Channel(self.member, self.link, self.recorder, self.apart)
        self.open_step = OpenStep(self.member)

    @property
    def bytes(self) -> bytes:
        return all_bytes(self.model.parameters())

    def commit(self, new: View) -> None:
        self.channel.close(self.open_step)
        self.member.commit(new)
        self.apart.committed(new, step_open=False)

    def begin(self) -> list[Part]:
        """Up to the last bucket's launch; what the step carries beside gradients."""
        self.apart.ensure_base()
        self.member.begin_step()
        self.member.issue()
        self.channel.issued()
        return self.channel.parts(self.open_step)

    def end(self, parts: list[Part], seed: int, clamps: bool) -> None:
        self.channel.decided(parts)
        self.member.decide()
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        drift = self.apart.fold_pending()
        if drift is not None:
            self.member.note_drift(*drift)
        self.optimizer.step()
        self.channel.end_step()
        self.member.end_step()
        if clamps:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.clamp_(-0.5, 0.5)


class World:
    """Three ranks; ``parted``: the last one steps by itself."""

    def __init__(self, adam: bool = False, clamps: bool = False) -> None:
        self.ranks = {a: Rank(a.rank, adam) for a in actors(0, 1, 2)}
        self.clamps = clamps
        self.num_steps = 0

    def __getitem__(self, rank: int) -> Rank:
        return self.ranks[Actor(rank)]

    def commit(self, new: View, connected: bool = True) -> None:
        for rank in self.ranks.values():
            rank.commit(new)
        for rank in self.ranks.values():
            rank.apart.ensure_base()
            rank.channel.open(new)
        if connected:
            self.connect()

    def connect(self) -> None:
        """All authors hear where the others listen."""
        epoch = self[0].member.view.epoch
        puts = [m for r in self.ranks.values() for m in r.link.of(Put) if m.epoch == epoch]
        for rank in self.ranks.values():
            for put in puts:
                rank.channel.hear(Value(put.key, put.value))

    def part(self, connected: bool = True) -> None:
        self.commit(self.parted_view(), connected)

    def parted_view(self) -> View:
        """The next view, in which the last rank steps by itself."""
        now = self[0].member.view
        return view(
            0, 1, 2, regime=Regime.CAUSAL, epoch=now.epoch + 1, from_regime=now.regime,
            cohorts=[actors(0, 1), actors(2)], cut_step=self[0].member.decided,
        )  # fmt: skip

    def walk(self, *triggers: Trigger) -> View:
        """The view that the agents would plan, committed, and all made level by it."""
        facts = {a: r.member.facts(launched_all=False) for a, r in self.ranks.items()}
        plan = plan_next(self[0].member.view, facts, triggers, [], POLICY, AGENT)
        assert isinstance(plan, Plan)
        self.commit(plan.view)
        self.level(plan.view)
        return plan.view

    def level(self, new: View) -> None:
        """As ``Levelling``, without a communicator."""
        told = [self.ranks[level.source].apart.tell_level(level) for level in new.levels]
        sums = [
            (steps, torch.frombuffer(bytearray(data), dtype=torch.uint8)) for steps, data in told
        ]
        for rank in self.ranks.values():
            for level, (steps, data) in zip(new.levels, sums, strict=True):
                rank.apart.take_level(level, steps, data.clone())
            if new.levels or new.optim_from is not None:
                rank.apart.levelled()
        if new.optim_from is not None:
            source = self.ranks[new.optim_from].apart
            packed = torch.frombuffer(
                bytearray(b"".join(source.tell_optimizer())), dtype=torch.uint8
            )
            for rank in self.ranks.values():
                rank.apart.become_one(new, tree_of(packed), packed, step_open=False)

    def step(self, *ranks: int) -> None:
        """One step of these, which are a cohort."""
        self.num_steps += 1
        cohort = [self[r] for r in ranks]
        parts = [rank.begin() for rank in cohort]
        for mine, *theirs in zip(*parts, strict=True):
            mine.scratch.copy_(mine.local)
            for other in theirs:
                other.scratch.copy_(mine.scratch)
        for rank, carried in zip(cohort, parts, strict=True):
            rank.end(carried, self.num_steps, self.clamps)

    def settle(self) -> None:
        """Let everything arrive that is under way."""
        end = time.monotonic() + DEADLINE_S
        channels = [r.channel for r in self.ranks.values() if r.channel.is_open]
        while True:
            for channel in channels:
                channel.pump()
            if all(_is_still(a, b) for a in channels for b in channels if a is not b):
                return
            assert time.monotonic() < end
            select.select([fd for c in channels for fd in c.fds], [], [], 0.01)

    def close(self) -> None:
        for rank in self.ranks.values():
            rank.channel.close(rank.open_step)


def _is_still(teller: Channel, hearer: Channel) -> bool:
    """Nothing is under way from one author to the other, which holds the newest it was told."""
    inbound = hearer._deltas._peers[teller._member.actor].inbound
    under_way = teller._deltas._peers[hearer._member.actor].outbound._under_way
    if inbound.owed:
        return False
    if under_way is None:
        return True
    held = [s.upto for s, _ in hearer._held.values()] + [upto for _, upto, _ in hearer._acks]
    held += [inbound.arrived[0].upto] if inbound.arrived is not None else []
    return under_way[1] in held
