"""One member's consistency state: view, decided steps, dots, versions; and the rows of a step.

No torch here and no waiting: reducer.py and walking.py decide when, this file says what it means.
Row by row: design section 5.4; debts: 5.7; the climb's fold: 4.4.
"""

from __future__ import annotations

from collections.abc import Callable

from cascade_runtime.agent.protocol import (
    Acked,
    DebtInfo,
    Leave,
    Proposed,
    Round,
    Settle,
    View,
)
from cascade_runtime.progress import BACKWARD, BETWEEN, HALTED, ProgressWord
from cascade_runtime.rank.debts import Debts
from cascade_runtime.rank.guard import guarded
from cascade_runtime.rank.held_digests import HeldDigests
from cascade_runtime.rank.link import AgentLink
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.rank.stand import Stand
from cascade_runtime.rank.view_rows import ViewRows
from cascade_runtime.recorder import Recorder
from cascade_runtime.step_ring import StepRing
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.regime import Regime


class Member(Stand):
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
        super().__init__(actor, view, objects)
        self.steps = steps
        """Told how each step went; ``entered_ns`` is written by whoever launches its last bucket."""
        self.before_apply: Callable[[], None] = lambda: None
        self.reconcile_as: Callable[[], str | None] = lambda: None
        self.on_transition: list[Callable[[View], None]] = []
        self.on_fenced: Callable[[], None] = lambda: None
        """Called when the agent has fenced this rank; it does not return in a job."""
        self.on_left_behind: Callable[[str], None] = lambda why: None
        """Called with the reason when a view without this rank was committed; nor does it return."""
        self._recorder = recorder
        self._link = link
        self._progress = progress
        self.on_applied: Callable[[list[Dot]], None] | None = None
        """Called with the dots of each update that was applied here (one an object)."""
        self._acknowledged: tuple[int, View] | None = None
        self._rolled: list[Dot] = []
        self._stepped_in = -1
        """The epoch below STRONG that the last step ended in."""
        self._digests = HeldDigests(actor, objects, recorder, link)
        self._debts = Debts(actor, recorder, link)
        self._rows = ViewRows(recorder)
        link.epoch = view.epoch
        if actor in view.members:  # a newcomer holds nothing yet, in no regime
            recorder.set_view(view.epoch, view.regime)
        recorder.set_step(1)

    @property
    def open_debts(self) -> dict[str, DebtInfo]:
        """What this member opened and nobody closed, by id."""
        return self._debts.standing

    def tell_progress(self, phase: int) -> None:
        """Write the progress word."""
        self._progress.write(self.decided, self.issued, phase)

    def check_fence(self) -> None:
        """Whoever is fenced acts no more: the others have gone on, or are about to."""
        if self._progress.fenced:
            self.on_fenced()

    # ---- a step ----------------------------------------------------------------------------------

    def begin_step(self) -> None:
        """Rows at the first forward of a step: begin, one read an object; and what CAUSAL owes.

        Everything is told as this forward reads it: after the user's own writes since the last step.
        """
        if self.view.regime is Regime.CAUSAL and self._stepped_in == self.view.epoch:
            self.reconcile()
        record = self._recorder
        record.set_step(self.decided + 1)
        record.steps("begin")
        names = self.objects.readable
        if self.strong:
            record.reads(names, "forward", self.last_dots[: len(names)], self.version)
        else:
            record.reads(names, "forward", [None] * len(names), None, self.frontier.dots())

    def issue(self) -> None:
        """The author's ``issued`` rows, before the step's last bucket is launched; once a step."""
        self.note_deps()
        if self.actor != self.author or self.has_issued:
            return
        version = self.version + 1 if self.strong else None
        self._issue(self.open_dots(), version, self.deps, BACKWARD)

    def _issue(self, dots: list[Dot], version: int | None, deps: list[Dot], phase: int) -> None:
        # The word before the rows: an agent that finds us dead voids what the word says was issued,
        # and a dot voided without a row harms nobody, while a row without its fate would.
        self.issued = dots[-1].counter
        self.tell_progress(phase)
        self.check_fence()  # after the word: see progress.py
        names = self.objects.names
        sizes = [self.objects.num_bytes(i) for i in range(len(names))]
        self._recorder.updates("issued", names, dots, version, deps, sizes)

    def decide(self, rolled: bool = False) -> None:
        """The step's last bucket is done on the view.

        Args:
            rolled: its kept buckets arrived: the same dots as where it was decided, in the old view.
        """
        dots = self._rolled if rolled else self.open_dots()
        # Either we see the fence now, or the agent sees the claim.
        self._progress.claim(self.decided + 1)
        self.check_fence()
        self.before_apply()
        self._apply(dots, self.deps)
        self.told_deps()
        self.decided += 1

    def _apply(self, dots: list[Dot], deps: list[Dot]) -> None:
        self._rolled = []
        self.version += 1
        version = self.version if self.strong else None
        sizes = [None] * len(dots)
        self._recorder.updates("applied", self.objects.names, dots, version, deps, sizes)
        self.last_dots = list(dots)
        self.frontier.cover(dots[-1])
        if self.on_applied is not None:
            self.on_applied(dots)

    def end_step(self, done_ns: int = 0) -> None:
        """After the optimizer's step: a digest in rotation, and the end row.

        Args:
            done_ns: when (monotonic) the step's last bucket was done here; 0 when it came otherwise.
        """
        digest = "0"
        if self.strong:
            index = (self.decided - 1) % len(self.objects.names)
            digest = self._digests.rotated(index, self.view.regime, self.version, self.frontier)
        if done_ns:
            self.steps.end(self.decided, self.view.epoch, done_ns, int(digest[:15], 16))
        self._recorder.steps("end")
        self.tell_progress(BETWEEN)
        if self.view.regime is Regime.CAUSAL:
            self._link.send(Round(self.actor, self.view.epoch, self.decided))
            self._stepped_in = self.view.epoch  # all members tell at the same step

    # ---- cohorts apart ---------------------------------------------------------------------------

    def become_one(self, view: View, step_open: bool) -> None:
        """All members are level: they count on from the furthest of them."""
        self.is_apart = False
        self.decided, self.version = view.cut_step, view.cut_version
        self._recorder.set_step(self.decided + 1)
        if step_open:
            self._recorder.steps("begin")  # it counts as another step from here

    def fold_rows(self, origin: Actor, upto: int, deps: list[Dot]) -> None:
        """Another cohort's step: its parameters are applied, its optimizer and buffers stay there."""
        names, count = self.objects.names, self.objects.num_params
        dots = [
            Dot(origin.rank, origin.incarnation, upto - len(names) + 1 + i)
            for i in range(len(names))
        ]
        update = self._recorder.updates
        update("applied", names[:count], dots[:count], None, deps, [None] * count)
        rest = len(names) - count
        update("discarded", names[count:], dots[count:], None, [], [None] * rest)
        self.frontier.cover(dots[-1])

    def digest_cut(self, step_open: bool) -> None:
        """Digests of all objects where this member halted; buffers only between steps."""
        self._digests.at_cut(self.view, self.decided, self.version, self.frontier, step_open)

    def reconcile(self) -> None:
        """Tell the agents the digest of everything held, at the current frontier; once an epoch."""
        if not self.is_apart:
            self._digests.reconcile(self.view, self.version, self.known(), self.reconcile_as())

    def settle(self, order: Settle) -> None:
        """Close debts: settled where all members agree by digest, written off where not."""
        self._debts.settle(order, self.known())

    def note_drift(self, l2: float, largest: float) -> None:
        """How far the parameters moved when cohorts became one: it goes onto what is settled next."""
        self._debts.drift = l2, largest

    def tell_again(self) -> None:
        """The agent was away and may have missed these; all of them are idempotent."""
        self._debts.tell_again()
        self._digests.tell_again(self.view.epoch)
        if self.leaving:
            self._link.send(Leave(self.actor, self.decided))

    def note_view(self, view: View) -> None:
        """A newcomer hears of a view without it; what it acknowledges next comes after this one."""
        self.view = view
        self._link.epoch = view.epoch
        if self.actor in view.coming:
            self._recorder.set_view(view.epoch, view.regime)
            self._rows.coming(view, self.actor)

    # ---- the walk --------------------------------------------------------------------------------

    def acknowledge(self, message: Proposed) -> None:
        """Write the acknowledged row (once a proposal) and answer."""
        self.check_fence()
        view = message.view
        if view.epoch == self.view.epoch + 1:
            if self._acknowledged != (view.epoch, view):
                self._acknowledged = (view.epoch, view)
                self._rows.transition("acknowledged", view)
            self._link.send(Acked(view.epoch, message.ballot))

    def commit(self, view: View) -> None:
        """Install a committed view: rows, voided dots, debts, the climb's fold."""
        self.check_fence()
        before = self.view
        if self.actor in before.members and self.decided < view.cut_of(self.actor).step:
            # Kept over further walks: until it is rolled forward the open step stays that view's.
            self._rolled = self._rolled or self.open_dots()
        else:
            self._rolled = []
        self.view = view
        self._link.epoch = view.epoch
        self._recorder.set_view(view.epoch, view.regime)
        self._rows.transition("committed", view)
        if view.joined or view.departed:
            self.membership_row()
        self._discard(view.voided)
        if self.actor in view.members:
            self._debts.open(view, self.frontier)
            if view.regime > before.regime and self.strong:
                self._fold()
        for callback in self.on_transition if self.actor in view.members else ():
            guarded()(callback)(view)

    def membership_row(self) -> None:
        """Who is in the view, who came and went."""
        self._rows.membership(self.view)

    def group_row(self, ordinal: int) -> None:
        """The communicator of this member's cohort."""
        self._rows.group(self.view, self.cohort, ordinal)

    def side_group_row(self, members: list[Actor], ordinal: int, label: str) -> None:
        """A communicator of some of the view's members, for a while."""
        self._rows.side_group(members, ordinal, label)

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
            self._issue(dots, self.version + 1, [], HALTED)
        self._apply(dots, [])
