"""Digests of what a member holds: one in rotation, all where it halted, all once an epoch for the agents."""

from __future__ import annotations

from cascade_runtime.agent.protocol import Reconciled, View
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Digests
from cascade_runtime.vocabulary.identity import Actor, Clock
from cascade_runtime.vocabulary.regime import Regime


class HeldDigests:
    """Computes, records and tells them for one member."""

    def __init__(
        self, actor: Actor, objects: ModelObjects, recorder: Recorder, link: AgentLink
    ) -> None:
        self._actor = actor
        self._objects = objects
        self._recorder = recorder
        self._link = link
        self._cut: tuple[int, int] | None = None
        self._rotated = (-1, -1)
        """Version and object of the last digest in rotation."""
        self._reconciled_epoch = -1
        self._reconciled: Reconciled | None = None

    def row(self, index: int, regime: Regime, version: int, frontier: Clock) -> str:
        """The digest of one object, recorded."""
        strong = regime is Regime.STRONG
        digest = self._objects.digest(index)
        self._recorder.row(
            Digests,
            object=self._objects.names[index],
            version=version if strong else None,
            frontier=None if strong else frontier.dots(),
            digest=digest,
        )
        return digest

    def rotated(self, index: int, regime: Regime, version: int, frontier: Clock) -> str:
        """The digest of one object just after the optimizer's step, recorded."""
        self._rotated = version, index
        return self.row(index, regime, version, frontier)

    def at_cut(
        self, view: View, decided: int, version: int, frontier: Clock, step_open: bool
    ) -> None:
        """Of all objects where this member halted, once a place; buffers only between steps.

        (Inside an open step a forward pass has already changed the buffers of this member alone.)
        Not of the one whose digest at this version is on record: what the user's code wrote after the
        optimizer's step is in this one and not in that.
        """
        cut = (view.epoch, decided)
        if self._cut == cut:
            return
        self._cut = cut
        for i, name in enumerate(self._objects.names):
            if (name != "buffers" or not step_open) and self._rotated != (version, i):
                self.row(i, view.regime, version, frontier)

    def reconcile(
        self, view: View, version: int, frontier: Clock, instead: str | None = None
    ) -> None:
        """Tell the agents the digest of everything held, at the current frontier; once an epoch.

        In EVENTUAL members may hold inside a step, where their buffers have already gone on alone
        (the step's decision makes them equal again), so buffers are left out there. ``instead``: what is
        told where parameters are about to become what all have.
        """
        if self._reconciled_epoch == view.epoch:
            return
        self._reconciled_epoch = view.epoch
        if instead is not None:
            self._reconciled = Reconciled(self._actor, view.epoch, instead, frontier.dots())
            self._link.send(self._reconciled)
            return
        eventual = view.regime is Regime.EVENTUAL
        digests = [
            self.row(i, view.regime, version, frontier)
            for i, name in enumerate(self._objects.names)
            if not (eventual and name == "buffers")
        ]
        self._reconciled = Reconciled(self._actor, view.epoch, " ".join(digests), frontier.dots())
        self._link.send(self._reconciled)

    def tell_again(self, epoch: int) -> None:
        """The agent was away and may have missed it."""
        if self._reconciled is not None and self._reconciled.epoch == epoch:
            self._link.send(self._reconciled)
