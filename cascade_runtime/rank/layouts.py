"""Do the ranks cut the same buckets? Compared by hash before a step with a new cut is decided.

Buckets are cut by each rank alone, in the order its gradients came: before the first step, after it, and
when parameters are frozen or thawed. A difference would pair unlike gradients. Whoever has a new cut
asks all others; one that has none says so only once it has waited for long, which is how a difference
looks from there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NoReturn

import xxhash

from cascade_runtime.agent.protocol import Get, Put, Value
from cascade_runtime.rank.groups import Superseded, ask
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.member import Member
from cascade_runtime.vocabulary.errors import NotSupported


class Layouts:
    """This rank's cut of the open step against those of its cohort."""

    def __init__(self, member: Member, link: AgentLink) -> None:
        self._member = member
        self._link = link
        self._decided: list[str] = []
        self._agreed: tuple[int, str] | None = None
        self._told: tuple[int, str] | None = None

    def expects(self, index: int, word: str) -> bool:
        """Whether part ``index`` of the step is as it was in the last one."""
        return index < len(self._decided) and self._decided[index] == word

    def agree(self, cut: list[str]) -> bool:
        """Whether the cohort is known to have this cut; False when somebody is late or a walk began.

        Args:
            cut: a word for each part of the step, in order.

        Raises:
            NotSupported: another member has another cut.
        """
        if cut == self._decided:
            return True
        layout, epoch = _hash(cut), self._member.view.epoch
        if self._agreed == (epoch, layout):
            return True
        self._link.send(Put(epoch, self._key(self._member.actor.rank), layout.encode()))
        try:
            told = {m.rank: ask(self._link, epoch, self._key(m.rank)) for m in self._member.cohort}
        except Superseded:
            return False
        others = [rank for rank, theirs in told.items() if theirs.decode() != layout]
        if others:
            self._link.send(Put(epoch, self._key("differ"), b"1"))
            self._refuse()
        self._agreed = (epoch, layout)
        return True

    def tell(self, cut: list[str]) -> None:
        """While waiting: this rank's cut, for one that has another; and hear when it has."""
        epoch = self._member.view.epoch
        if self._told == (epoch, self._key("differ")):
            return
        self._told = (epoch, self._key("differ"))
        self._link.send(Put(epoch, self._key(self._member.actor.rank), _hash(cut).encode()))
        self._link.send(Get(epoch, self._key("differ")))

    def hear(self, message: Value) -> None:
        """The answer to ``tell``, if it is one.

        Raises:
            NotSupported: another member has another cut.
        """
        if message.key == self._key("differ") and message.value is not None:
            self._refuse()

    def decide(self, cut: list[str]) -> None:
        """The step with this cut is decided, so all members have it."""
        self._decided = cut

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


def _hash(cut: list[str]) -> str:
    return xxhash.xxh3_64_hexdigest(";".join(cut).encode())
