"""What a newcomer has taken of its source: the state, where it stands, and the rows that say so."""

from __future__ import annotations

from typing import Any

from cascade_runtime.agent.protocol import View
from cascade_runtime.progress import STARTING
from cascade_runtime.rank.bucket_map import Layout
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.snapshot import TrainingState, Tree
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Checkpoints
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.regime import Regime


class Unlike(Exception):
    """The state does not equal the source's."""


class TakenState:
    """A snapshot and the entries of the log that followed it.

    Args:
        member: the newcomer's consistency state, which follows.
        state: the training state, which is replaced.
    """

    def __init__(self, member: Member, state: TrainingState, recorder: Recorder) -> None:
        self._member = member
        self._state = state
        self._recorder = recorder
        self.source: Actor | None = None
        """Whose state it is; None when there is none."""
        self.epoch = -1
        """Of the state, as its source said."""
        self.layout: Layout = []
        """The members' buckets, by names of parameters; empty where they are about to be cut anew."""
        self._num_entries = 0

    def forget(self) -> None:
        """What was taken is worth nothing any more."""
        self.source, self.epoch, self._num_entries = None, -1, 0

    @property
    def is_whole(self) -> bool:
        """A step may be made from here: a snapshot, its first entry and the members' buckets are there."""
        return self.source is not None and self._num_entries > 0 and bool(self.layout)

    def is_level(self, view: View) -> bool:
        """It stands exactly at this view's cut."""
        return (
            self.is_whole and self.epoch + 1 == view.epoch and self._member.decided == view.cut_step
        )

    def take_snapshot(self, body: Tree) -> None:
        """Become what a member was at the beginning of a step.

        Raises:
            NotSupported: another script's state.
            Unlike: the digests differ.
            KeyError, IndexError, TypeError, ValueError, RuntimeError: it is not of this form.
        """
        self._num_entries = 0
        self._state.take(body)
        self._stand(body["standing"])
        self._check_digests(body["digests"])
        self._received_row(body)
        self._note_layout(body)

    def take_entry(self, body: Tree) -> None:
        """Go one step on; raises as ``take_snapshot``."""
        for call in body["calls"]:
            self._state.replay(call["groups"], call["gradients"])
        self._state.take_rest(body)
        self._applied_rows(body["applied"])
        self._stand(body["standing"])
        self._check_digests(body["digests"])
        self._note_layout(body)
        self._num_entries += 1

    def _note_layout(self, body: Tree) -> None:
        self.layout = [[str(n) for n in names] for names in body["layout"]]

    def _stand(self, standing: Tree) -> None:
        self.source = Actor(*standing["source"])
        self.epoch = standing["epoch"]
        self._member.stand(
            decided=standing["decided"],
            version=standing["version"],
            frontier=Clock(Dot(*d) for d in standing["frontier"]),
            last_dots=[None if d is None else Dot(*d) for d in standing["last_dots"]],
        )
        self._member.tell_progress(STARTING)

    def _check_digests(self, told: dict[int, str]) -> None:
        mine = self._state.digests(list(told))
        names = self._state.objects.names
        if unlike := [names[i] for i in told if mine[i] != told[i]]:
            raise Unlike(
                f"after step {self._member.decided} its {', '.join(unlike)} differ from those of "
                f"rank {self.source}; does the script change them outside of the optimizer?"
            )

    def _received_row(self, body: Tree) -> None:
        self._recorder.set_view(self.epoch, Regime(body["standing"]["regime"]))
        self._recorder.set_step(self._member.decided)
        self._recorder.row(
            Checkpoints,
            action="received",
            checkpoint_id=body["checkpoint_id"],
            durable=False,
            scope="self",
            frontier=self._member.frontier.dots(),
            world_size=len(self._member.view.members),
            params_digest=body["digests"][0],
            optim_digest=body["digests"][max(body["digests"])],
        )

    def _applied_rows(self, applied: list[Any]) -> None:
        names = self._state.objects.names
        for epoch, regime, step, version, dots in applied:
            self._recorder.set_view(epoch, Regime(regime))
            self._recorder.set_step(step)
            self._recorder.updates(
                "applied", names, [Dot(*d) for d in dots], version, [], [None] * len(names)
            )
