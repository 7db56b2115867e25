"""The rows that a member writes about its views: transitions, membership, the cohort's communicator."""

from __future__ import annotations

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.agent.protocol import View
from cascade_runtime.recorder import Recorder
from cascade_runtime.vocabulary.events import Groups, Membership, Transitions
from cascade_runtime.vocabulary.identity import Actor


class ViewRows:
    """Writes them for one member."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._comm_id: str | None = None

    def transition(self, phase: str, view: View) -> None:
        """A walk to ``view`` was acknowledged or committed here."""
        self._recorder.row(
            Transitions,
            phase=phase,
            from_regime=view.from_regime,
            to_regime=view.regime,
            fault=view.fault,
            reason=view.reason,
            new_epoch=view.epoch,
            members=view.members,
            cohorts=view.recorded_cohorts,
            proposer=view.proposer,
            evidence=view.evidence,
        )

    def membership(self, view: View) -> None:
        """Who is in the view, who came and went."""
        self._recorder.row(
            Membership,
            members=view.members,
            joined=view.joined,
            departed=view.departed,
            reason=view.member_reason,
        )

    def group(self, view: View, cohort: list[Actor], ordinal: int) -> None:
        """The communicator of a cohort of the view.

        It replaces the one told last, unless cohorts part or become one: members are the same then.
        """
        comm_id = comm_id_of(cohort, ordinal)
        if comm_id == self._comm_id:
            return  # formed before, to make all level
        self._recorder.row(
            Groups,
            comm_id=comm_id,
            members=cohort,
            ordinal=ordinal,
            label=f"cohort/{view.epoch}/{view.cohorts.index(cohort)}",
            replaces=None if len(view.cohorts) > 1 or view.cuts else self._comm_id,
        )
        self._comm_id = comm_id

    def coming(self, view: View, actor: Actor) -> None:
        """A newcomer on its way is a cohort of its own: it reduces with nobody, it only folds."""
        index = view.recorded_cohorts.index([actor])
        self.side_group([actor], -2 - view.epoch, f"cohort/{view.epoch}/{index}")

    def side_group(self, members: list[Actor], ordinal: int, label: str) -> None:
        """A communicator of some of the view's members, for a while."""
        self._recorder.row(
            Groups,
            comm_id=comm_id_of(members, ordinal),
            members=members,
            ordinal=ordinal,
            label=label,
        )
