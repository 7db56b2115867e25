"""One member's consistency state: view, decided steps, dots, versions, debts; and the rows of it all.

No torch here and no waiting: reducer.py decides when, this file says what it means.
Row by row: design section 5.4; debts: 5.7; the climb's fold: 4.4.
"""

from __future__ import annotations

from collections.abc import Callable

from cascade_runtime.agent.control_log import comm_id_of
from cascade_runtime.agent.protocol import (
    Acked,
    Ballot,
    DebtInfo,
    DebtNote,
    Facts,
    Leave,
    Proposed,
    Reconciled,
    Round,
    Settle,
    View,
)
from cascade_runtime.agent.reconcile import owed_by
from cascade_runtime.progress import BACKWARD, HALTED, ProgressWord
from cascade_runtime.rank.guard import guarded
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.recorder import Recorder
from cascade_runtime.step_ring import StepRing
from cascade_runtime.vocabulary.events import (
    Debt,
    Digests,
    Groups,
    Membership,
    Objects,
    Transitions,
)
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.regime import Regime


class Member:
    """The state of one rank as a member of the job's view."""

    def __init__(
        self,
        actor: Actor,
        view: View,
        objects: ModelObjects,
        recorder: Recorder,
        link: AgentLink,
        progress: ProgressWord,
        steps: StepRing,
    ) -> None:
        self.actor = actor
        self.steps = steps
        """Told how each step went; ``entered_ns`` is written by whoever launches its last bucket."""
        self.view = view
        self.objects = objects
        self.decided = 0
        """Steps decided; the open step is ``decided + 1``."""
        self.version = 0
        """Of every object: decided steps, plus one for each climb's fold."""
        self.issued = 0
        """Counter of the last dot issued here."""
        self.frontier = Clock()
        self.open_debts: dict[str, DebtInfo] = {}
        self.leaving = False
        self.on_transition: list[Callable[[View], None]] = []
        self.on_fenced: Callable[[], None] = lambda: None
        """Called when the agent has fenced this rank; it does not return in a job."""
        self.on_left_behind: Callable[[str], None] = lambda why: None
        """Called with the reason when a view without this rank was committed; nor does it return."""
        self._recorder = recorder
        self._link = link
        self._progress = progress
        self.last_dots: list[Dot | None] = [None] * len(objects.names)
        """Of each object, the update that it holds."""
        self.on_applied: Callable[[list[Dot]], None] | None = None
        """Called with the dots of each update that was applied here (one an object)."""
        self._acknowledged: tuple[int, View] | None = None
        self._reconciled_epoch = -1
        self._deps_told = Clock()
        self._rolled: list[Dot] = []
        self._reconciled: Reconciled | None = None
        self._closed: list[str] = []
        self._cut_digested: tuple[int, int] | None = None
        self._comm_id: str | None = None
        link.epoch = view.epoch
        recorder.set_view(view.epoch, view.regime)
        recorder.set_step(1)

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def cohort(self) -> list[Actor]:
        """The members that this one steps together with."""
        return next((c for c in self.view.cohorts if self.actor in c), [])

    @property
    def author(self) -> Actor:
        """Who issues the cohort's updates: its lowest member."""
        return min(self.cohort)

    @property
    def strong(self) -> bool:
        """The regime in force is STRONG."""
        return self.view.regime is Regime.STRONG

    def facts(self, launched_all: bool) -> Facts:
        """What to answer to a query."""
        return Facts(
            decided=self.decided,
            issued=self.issued,
            frontier=self.frontier.dots(),
            launched_all=launched_all,
            leaving=self.leaving,
        )

    def tell_progress(self, phase: int) -> None:
        """Write the progress word."""
        self._progress.write(self.decided, self.issued, phase)

    def check_fence(self) -> None:
        """Whoever is fenced acts no more: the others have gone on, or are about to."""
        if self._progress.fenced:
            self.on_fenced()

    def _claim(self) -> None:
        """Before a step is decided: either we see the fence now, or the agent sees the claim."""
        self._progress.claim(self.decided + 1)
        self.check_fence()

    # ---- a step ----------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Rows at the first forward of a step: begin, and one read an object."""
        record = self._recorder
        record.set_step(self.decided + 1)
        record.steps("begin")
        names = self.objects.readable
        if self.strong:
            record.reads(names, "forward", self.last_dots[: len(names)], self.version)
        else:
            nothing = [None] * len(names)
            record.reads(names, "forward", nothing, None, self.frontier.dots())

    def open_dots(self) -> list[Dot]:
        """The dots of the open step, one an object: the author's next."""
        author = self.author
        first = self.frontier.upto(author) + 1
        return [
            Dot(author.rank, author.incarnation, first + i) for i in range(len(self.objects.names))
        ]

    def issue(self) -> None:
        """The author's ``issued`` rows, before the step's last bucket is launched; once a step."""
        if self.actor != self.author or self.issued > self.frontier.upto(self.actor):
            return
        version = self.version + 1 if self.strong else None
        dots, deps = self.open_dots(), self._nearest_deps()
        # Before the rows: an agent that finds us dead voids what the word says was issued, and a dot
        # voided without a row harms nobody, while a row without its fate would.
        self.issued = dots[-1].counter
        self.tell_progress(BACKWARD)
        self.check_fence()  # after the word: see progress.py
        self._recorder.updates("issued", self.objects.names, dots, version, deps, self._sizes())

    def _sizes(self) -> list[int]:
        return [self.objects.num_bytes(i) for i in range(len(self.objects.names))]

    def _nearest_deps(self) -> list[Dot]:
        """Below STRONG: nearest dots of other origins folded here since this author's last issue."""
        if self.strong:
            return []
        deps = [
            d
            for d in self.frontier.dots()
            if d.actor != self.actor and d.counter > self._deps_told.upto(d.actor)
        ]
        self._deps_told = Clock(self.frontier.dots())
        return deps

    def decide(self) -> None:
        """The step's last bucket is done on the view."""
        self._claim()
        self._apply(self.open_dots())
        self.decided += 1

    def decide_rolled(self) -> None:
        """The step's kept buckets arrived: the same dots as where it was decided, in the old view."""
        self._claim()
        self._apply(self._rolled)
        self.decided += 1

    def _apply(self, dots: list[Dot]) -> None:
        self._rolled = []
        self.version += 1
        version = self.version if self.strong else None
        self._recorder.updates("applied", self.objects.names, dots, version, [], [None] * len(dots))
        self.last_dots = list(dots)
        self.frontier.cover(dots[-1])
        if self.on_applied is not None:
            self.on_applied(dots)

    def end_step(self, done_ns: int = 0) -> None:
        """After the optimizer's step: a digest in rotation, the end row, and what CAUSAL owes.

        Args:
            done_ns: when (monotonic) the step's last bucket was done here; 0 when it came otherwise.
        """
        names, digest = self.objects.names, "0"
        if self.strong:
            digest = self._digest_row((self.decided - 1) % len(names))
        if done_ns:
            self.steps.end(self.decided, self.view.epoch, done_ns, int(digest[:15], 16))
        self._recorder.steps("end")
        if self.view.regime is Regime.CAUSAL:
            self._link.send(Round(self.actor, self.view.epoch, self.decided))
            self.reconcile()

    def _digest_row(self, index: int) -> str:
        digest = self.objects.digest(index)
        self._recorder.row(
            Digests,
            object=self.objects.names[index],
            version=self.version if self.strong else None,
            frontier=None if self.strong else self.frontier.dots(),
            digest=digest,
        )
        return digest

    def digest_cut(self, step_open: bool) -> None:
        """Digests of all objects where this member halted; buffers only between steps.

        (Inside an open step a forward pass has already changed the buffers of this member alone.)
        """
        cut = (self.view.epoch, self.decided)
        if self._cut_digested == cut:
            return
        self._cut_digested = cut
        for i, name in enumerate(self.objects.names):
            if name != "buffers" or not step_open:
                self._digest_row(i)

    def reconcile(self) -> None:
        """Tell the agents the digest of everything held, at the current frontier; once an epoch.

        In EVENTUAL members may hold inside a step, where their buffers have already gone on alone
        (the step's decision makes them equal again), so buffers are left out there.
        """
        if self._reconciled_epoch == self.view.epoch:
            return
        self._reconciled_epoch = self.view.epoch
        eventual = self.view.regime is Regime.EVENTUAL
        digests = [
            self._digest_row(i)
            for i, name in enumerate(self.objects.names)
            if not (eventual and name == "buffers")
        ]
        self._reconciled = Reconciled(
            self.actor, self.view.epoch, " ".join(digests), self.frontier.dots()
        )
        self._link.send(self._reconciled)

    def tell_again(self) -> None:
        """The agent was away and may have missed these; all of them are idempotent."""
        if self.open_debts or self._closed:
            debts = list(self.open_debts.values())
            self._link.send(DebtNote(self.actor, opened=debts, closed=self._closed))
        if self._reconciled is not None and self._reconciled.epoch == self.view.epoch:
            self._link.send(self._reconciled)
        if self.leaving:
            self._link.send(Leave(self.actor, self.decided))

    # ---- joining ---------------------------------------------------------------------------------

    def stand(
        self, decided: int, version: int, frontier: Clock, last_dots: list[Dot | None]
    ) -> None:
        """A newcomer takes over where a member stands."""
        self.decided = decided
        self.version = version
        self.frontier = frontier
        self.last_dots = last_dots

    def note_view(self, view: View) -> None:
        """A newcomer hears of a view without it; what it acknowledges next comes after this one."""
        self.view = view
        self._link.epoch = view.epoch

    # ---- the walk --------------------------------------------------------------------------------

    def acknowledge(self, message: Proposed) -> None:
        """Write the acknowledged row (once a proposal) and answer."""
        self.check_fence()
        view = message.view
        if view.epoch == self.view.epoch + 1:
            if self._acknowledged != (view.epoch, view):
                self._acknowledged = (view.epoch, view)
                self._transition("acknowledged", view)
            self._ack(view.epoch, message.ballot)

    def _ack(self, epoch: int, ballot: Ballot) -> None:
        self._link.send(Acked(epoch, ballot))

    def _transition(self, phase: str, view: View) -> None:
        self._recorder.row(
            Transitions,
            phase=phase,
            from_regime=view.from_regime,
            to_regime=view.regime,
            fault=view.fault,
            reason=view.reason,
            new_epoch=view.epoch,
            members=view.members,
            cohorts=view.cohorts,
            proposer=view.proposer,
            evidence=view.evidence,
        )

    def commit(self, view: View) -> None:
        """Install a committed view: rows, voided dots, debts, the climb's fold."""
        self.check_fence()
        before = self.view
        if self.actor in before.members and self.decided < view.cut_step:
            # Kept over further walks: until it is rolled forward the open step stays that view's.
            self._rolled = self._rolled or self.open_dots()
        else:
            self._rolled = []
        self.view = view
        self._link.epoch = view.epoch
        self._recorder.set_view(view.epoch, view.regime)
        self._transition("committed", view)
        if view.joined or view.departed:
            self.membership_row()
        self._discard(view.voided)
        if self.actor in view.members:
            self._open_debts(view)
            if view.regime > before.regime and self.strong:
                self._fold()
        for callback in self.on_transition if self.actor in view.members else ():
            guarded()(callback)(view)

    def membership_row(self) -> None:
        """Who is in the view, who came and went."""
        view = self.view
        self._recorder.row(
            Membership,
            members=view.members,
            joined=view.joined,
            departed=view.departed,
            reason=view.member_reason,
        )

    def group_row(self, ordinal: int) -> None:
        """The communicator of this member's cohort."""
        comm_id = comm_id_of(self.cohort, ordinal)
        self._recorder.row(
            Groups,
            comm_id=comm_id,
            members=self.cohort,
            ordinal=ordinal,
            label=f"cohort/{self.view.epoch}/{self.view.cohorts.index(self.cohort)}",
            replaces=self._comm_id,
        )
        self._comm_id = comm_id

    def _discard(self, dots: list[Dot]) -> None:
        names = self.objects.names
        named = [names[(d.counter - 1) % len(names)] for d in dots]
        self._recorder.updates("discarded", named, dots, None, [], [None] * len(dots))
        for dot in dots:
            # A living author goes on after its voided dots; a dead one has no next.
            if dot.actor in self.view.members:
                self.frontier.cover(dot)

    def _fold(self) -> None:
        """The climb's fold: an update of its own per object, which the first STRONG reads name."""
        dots = self.open_dots()
        if self.actor == self.author:
            self.issued = dots[-1].counter  # the word first, as in issue()
            self.tell_progress(HALTED)
            self.check_fence()
            self._recorder.updates(
                "issued", self.objects.names, dots, self.version + 1, [], self._sizes()
            )
        self._apply(dots)

    # ---- debts -----------------------------------------------------------------------------------

    def _open_debts(self, view: View) -> None:
        """What this walk relaxed, opened by the lowest member."""
        if self.actor == min(view.members):
            self._open(owed_by(view))

    def _open(self, debts: list[DebtInfo]) -> None:
        for debt in debts:
            if debt.debt_id in self.open_debts or debt.debt_id in self._closed:
                continue  # ordered again, because the note below was lost with an agent
            if debt.object is not None:
                self._recorder.row(Objects, object=debt.object, kind="shard", update_kind="assign")
            self._debt_row("opened", debt, clock=self.frontier.dots())
            self.open_debts[debt.debt_id] = debt
        if debts:
            self._link.send(DebtNote(self.actor, opened=debts))

    def settle(self, order: Settle) -> None:
        """Close debts: settled where all members agree by digest, written off where not.

        Before that, open those that nobody has opened.
        """
        self._open(order.unopened)
        for debt in order.debts:
            if debt.debt_id in self._closed:
                continue
            self._closed.append(debt.debt_id)
            if debt.object is not None and debt.object.startswith("data/"):
                # The dead rank's unread range: nobody reads it again in this job.
                self._debt_row("written_off", debt, resolution="discarded")
            elif order.equal:
                self._debt_row(
                    "settled",
                    debt,
                    frontier=self.frontier.dots(),
                    resolved=debt.in_flight,
                    resolution="discarded" if debt.voided else "applied",
                    drift_l2=0.0,
                    drift_max=0.0,
                )
            else:
                self._debt_row("written_off", debt)
            self.open_debts.pop(debt.debt_id, None)
        if order.debts:
            self._link.send(DebtNote(self.actor, closed=[d.debt_id for d in order.debts]))

    def _debt_row(self, action: str, debt: DebtInfo, **fields: object) -> None:
        self._recorder.row(
            Debt,
            action=action,
            debt_id=debt.debt_id,
            relaxed=debt.relaxed,
            new_epoch=debt.new_epoch,
            object=debt.object,
            in_flight=debt.in_flight,
            **fields,
        )
