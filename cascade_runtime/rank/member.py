"""One member's consistency state: view, decided steps, dots, versions; and the rows of a step.

No torch here and no waiting: reducer.py and walking.py decide when, this file says what it means.
Row by row: design section 5.4; debts: 5.7; the climb's fold: 4.4.
"""

from __future__ import annotations

from collections.abc import Callable

from cascade_runtime.agent.protocol import (
    Acked,
    DebtInfo,
    Facts,
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
from cascade_runtime.rank.view_rows import ViewRows
from cascade_runtime.recorder import Recorder
from cascade_runtime.step_ring import StepRing
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
        self._deps_told = Clock()
        self._rolled: list[Dot] = []
        self._digests = HeldDigests(actor, objects, recorder, link)
        self._debts = Debts(actor, recorder, link)
        self._rows = ViewRows(recorder)
        link.epoch = view.epoch
        recorder.set_view(view.epoch, view.regime)
        recorder.set_step(1)

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

    @property
    def open_debts(self) -> dict[str, DebtInfo]:
        """What this member opened and nobody closed, by id."""
        return self._debts.standing

    def facts(self, launched_all: bool, broken: bool = False) -> Facts:
        """What to answer to a query."""
        return Facts(
            decided=self.decided,
            issued=self.issued,
            frontier=self.frontier.dots(),
            launched_all=launched_all,
            broken=broken,
            leaving=self.leaving,
        )

    def tell_progress(self, phase: int) -> None:
        """Write the progress word."""
        self._progress.write(self.decided, self.issued, phase)

    def check_fence(self) -> None:
        """Whoever is fenced acts no more: the others have gone on, or are about to."""
        if self._progress.fenced:
            self.on_fenced()

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
            record.reads(names, "forward", [None] * len(names), None, self.frontier.dots())

    def open_dots(self) -> list[Dot]:
        """The dots of the open step, one an object: the author's next."""
        author = self.author
        first = self.frontier.upto(author) + 1
        numbers = range(first, first + len(self.objects.names))
        return [Dot(author.rank, author.incarnation, number) for number in numbers]

    def issue(self) -> None:
        """The author's ``issued`` rows, before the step's last bucket is launched; once a step."""
        if self.actor != self.author or self.issued > self.frontier.upto(self.actor):
            return
        version = self.version + 1 if self.strong else None
        self._issue(self.open_dots(), version, self._nearest_deps(), BACKWARD)

    def _issue(self, dots: list[Dot], version: int | None, deps: list[Dot], phase: int) -> None:
        # The word before the rows: an agent that finds us dead voids what the word says was issued,
        # and a dot voided without a row harms nobody, while a row without its fate would.
        self.issued = dots[-1].counter
        self.tell_progress(phase)
        self.check_fence()  # after the word: see progress.py
        names = self.objects.names
        sizes = [self.objects.num_bytes(i) for i in range(len(names))]
        self._recorder.updates("issued", names, dots, version, deps, sizes)

    def _nearest_deps(self) -> list[Dot]:
        """Below STRONG: nearest dots of other origins folded here since this author's last issue."""
        if self.strong:
            return []
        me, told = self.actor, self._deps_told
        deps = [d for d in self.frontier.dots() if d.actor != me and d.counter > told.upto(d.actor)]
        self._deps_told = Clock(self.frontier.dots())
        return deps

    def decide(self, rolled: bool = False) -> None:
        """The step's last bucket is done on the view.

        Args:
            rolled: its kept buckets arrived: the same dots as where it was decided, in the old view.
        """
        dots = self._rolled if rolled else self.open_dots()
        # Either we see the fence now, or the agent sees the claim.
        self._progress.claim(self.decided + 1)
        self.check_fence()
        self._apply(dots)
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
        digest = "0"
        if self.strong:
            index = (self.decided - 1) % len(self.objects.names)
            digest = self._digests.row(index, self.view.regime, self.version, self.frontier)
        if done_ns:
            self.steps.end(self.decided, self.view.epoch, done_ns, int(digest[:15], 16))
        self._recorder.steps("end")
        self.tell_progress(BETWEEN)
        if self.view.regime is Regime.CAUSAL:
            self._link.send(Round(self.actor, self.view.epoch, self.decided))
            self.reconcile()

    def digest_cut(self, step_open: bool) -> None:
        """Digests of all objects where this member halted; buffers only between steps."""
        self._digests.at_cut(self.view, self.decided, self.version, self.frontier, step_open)

    def reconcile(self) -> None:
        """Tell the agents the digest of everything held, at the current frontier; once an epoch."""
        self._digests.reconcile(self.view, self.version, self.frontier)

    def settle(self, order: Settle) -> None:
        """Close debts: settled where all members agree by digest, written off where not."""
        self._debts.settle(order, self.frontier)

    def tell_again(self) -> None:
        """The agent was away and may have missed these; all of them are idempotent."""
        self._debts.tell_again()
        self._digests.tell_again(self.view.epoch)
        if self.leaving:
            self._link.send(Leave(self.actor, self.decided))

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
                self._rows.transition("acknowledged", view)
            self._link.send(Acked(view.epoch, message.ballot))

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
        self._apply(dots)
