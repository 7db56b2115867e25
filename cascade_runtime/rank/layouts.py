"""Do the ranks cut the same buckets? Compared by hash before a step with a new cut is decided.

Buckets are cut by each rank alone, in the order its gradients came: before the first step, after it, and
when parameters are frozen or thawed. A difference would pair unlike gradients. Whoever has a new cut
asks all others; one that has none says so only once it has waited for long, which is how a difference
looks from there. When somebody joins, all compare anew, and a difference is the newcomer's: it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import torch
import xxhash

from cascade_runtime.agent.protocol import Get, Put, Value, View
from cascade_runtime.rank.groups import Superseded, ask
from cascade_runtime.rank.link import AgentLink, wait_readable
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.part import CutOfPart, Part
from cascade_runtime.vocabulary.errors import NotSupported
from cascade_runtime.vocabulary.identity import Actor

LOOKS = 4
"""Steps in which the parameters of each bucket are compared too: DDP orders them anew after the first."""


class Layouts:
    """This rank's cut of the open step against those of its cohort."""

    def __init__(self, member: Member, link: AgentLink, parameters: Sequence[torch.Tensor]) -> None:
        self._member = member
        self._link = link
        self._index = {id(p): i for i, p in enumerate(parameters)}
        self._decided: list[CutOfPart] = []
        self._agreed: tuple[int, str] | None = None
        self._told: tuple[int, str] | None = None
        self._unproved: set[Actor] = set()
        """Newcomers that no step was decided with yet."""
        # By the number of the step, not by counting: members may stand before or after its decision.
        self._last_look = LOOKS

    def expects(self, index: int, part: Part) -> bool:
        """Whether part ``index`` of the step is as it was in the last one."""
        decided = self._decided
        return index < len(decided) and decided[index] == self._cut(part, self._member.decided + 1)

    def agree(self, parts: list[Part]) -> bool:
        """Whether the cohort is known to have this cut; False when somebody is late or a walk began.

        Args:
            parts: all of the open step, in order.

        Raises:
            NotSupported: another member has another cut.
        """
        cut = self._cuts(parts)
        if cut == self._decided:
            return True
        layout, epoch, me = _hash(cut), self._member.view.epoch, self._member.actor
        if self._agreed == (epoch, layout):
            return True
        self._link.send(Put(epoch, self._key(me.rank), layout.encode()))
        try:
            told = {m: ask(self._link, epoch, self._key(m.rank)) for m in self._member.cohort}
        except Superseded:
            return False
        unlike = {m for m, theirs in told.items() if theirs.decode() != layout}
        if not unlike:
            self._agreed = (epoch, layout)
            return True
        if unlike - self._unproved:
            if me in self._unproved:
                raise NotSupported(
                    "this rank has come back with other gradient buckets than the others have",
                    where=f"step {self._member.decided + 1}",
                    hint="a rank that comes back must run the same script with the same arguments",
                )
            self._link.send(Put(epoch, self._key("differ"), b"1"))
            self._refuse()
        wait_readable(
            [self._link.fd], 0.1
        )  # who has come with another cut ends, and a walk follows
        return False

    def tell(self, parts: list[Part]) -> None:
        """While waiting: this rank's cut, for one that has another; and hear when it has."""
        epoch = self._member.view.epoch
        if self._told == (epoch, self._key("differ")):
            return
        self._told = (epoch, self._key("differ"))
        layout = _hash(self._cuts(parts))
        self._link.send(Put(epoch, self._key(self._member.actor.rank), layout.encode()))
        self._link.send(Get(epoch, self._key("differ")))

    def hear(self, message: Value) -> None:
        """The answer to ``tell``, if it is one.

        Raises:
            NotSupported: another member has another cut.
        """
        if message.key == self._key("differ") and message.value is not None:
            self._refuse()

    def decide(self, parts: list[Part]) -> None:
        """The open step is about to be decided, so all members have this cut."""
        following = self._member.decided + 2
        self._decided = [self._cut(p, following) for p in parts if not p.is_fold]
        if len(self._member.view.cohorts) == 1:
            self._unproved.clear()

    def look_again(self) -> None:
        """DDP was built anew here, in the step in which it was on all ranks."""
        self._last_look = self._member.decided + LOOKS

    def admit(self, view: View) -> bool:
        """Newcomers are let in, or step with the others now: nothing is known of what they cut; True then."""
        meets = bool(self._unproved) and len(view.cohorts) == 1
        if not (view.joined or meets):
            return False
        self._decided, self._agreed = [], None
        self._unproved.update(view.joined)
        self._last_look = view.cut_step + LOOKS
        return True

    def _cuts(self, parts: list[Part]) -> list[CutOfPart]:
        step = self._member.decided + 1
        return [self._cut(p, step) for p in parts if not p.is_fold]

    def _cut(self, part: Part, step: int) -> CutOfPart:
        if step > self._last_look:
            return part.cut
        return (*part.cut, [self._index.get(id(p)) for p in part.parameters()])

    def _key(self, name: object) -> str:
        return f"layout/{self._member.decided + 1}/{name}"

    def _refuse(self) -> NoReturn:
        """End only when all have found it: whoever is left by a death would go on alone."""
        epoch = self._member.view.epoch
        self._link.send(Put(epoch, self._key(f"found/{self._member.actor.rank}"), b"1"))
        with suppress(Superseded):
            for member in self._member.cohort:
                ask(self._link, epoch, self._key(f"found/{member.rank}"))
        raise NotSupported(
            "the ranks' gradient buckets differ, so their gradients cannot be paired",
            where=f"step {self._member.decided + 1}",
            hint="the model must run the same layers in the same order on every rank, and freeze "
            "or thaw the same ones in the same step",
        )


def _hash(cut: list[CutOfPart]) -> str:
    return xxhash.xxh3_64_hexdigest(repr(cut).encode())
