"""Where one member stands: view, decided steps, counters, clocks. No rows are written here."""

from __future__ import annotations

from collections.abc import Callable

from cascade_runtime.agent.protocol import Facts, View
from cascade_runtime.rank.objects import ModelObjects
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.regime import Regime


class Stand:
    """What a member knows of itself, and what follows from that alone."""

    def __init__(self, actor: Actor, view: View, objects: ModelObjects) -> None:
        self.actor = actor
        self.view = view
        self.objects = objects
        self.decided = 0
        """Steps decided; the open step is ``decided + 1``."""
        self.version = 0
        """Of every object: decided steps, plus one for each climb's fold."""
        self.issued = 0
        """Counter of the last dot issued here."""
        self.frontier = Clock()
        self.ahead = Clock()
        """Updates of which a walk has brought the sums, and that are not on record here yet."""
        self.is_apart = False
        """Cohorts are apart, or were, and this member is not level with the others since."""
        self.is_bound = False
        """This job must not part, or not stay so: see ``Apart.keep_together``."""
        self.is_pending = False
        """What all have is to be folded here yet."""
        self.deps: list[Dot] = []
        """Of the open step below STRONG: nearest updates of others, folded since the one before it."""
        self.needs: list[Dot] = []
        """Of the open step: the clock of others when it was issued."""
        self.weight = 1.0
        """Of the open step while cohorts are apart: the cohort's part of all members."""
        self.held_sums: Callable[[], list[Dot]] = list
        self.leaving = False
        self.last_dots: list[Dot | None] = [None] * len(objects.names)
        """Of each object, the update that it holds."""
        self._deps_told = Clock()
        """What the last decided step's author had folded when it was issued."""
        self._deps_seen = Clock()
        """The same of the open step."""
        self._deps_of: Dot | None = None
        """Its last dot."""
        self._parted_at = Clock()

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

    def facts(self, launched_all: bool, broken: bool = False) -> Facts:
        """What to answer to a query."""
        return Facts(
            decided=self.decided,
            issued=self.issued,
            frontier=self.known().dots(),
            launched_all=launched_all,
            broken=broken,
            leaving=self.leaving,
            version=self.version,
            is_apart=self.is_apart,
            sums=self.held_sums(),
            is_bound=self.is_bound or (self.is_pending and not self.is_apart),
        )

    def known(self) -> Clock:
        """What is on record here, and what a walk has brought."""
        return self.frontier.merge(self.ahead)

    def open_dots(self) -> list[Dot]:
        """The dots of the open step, one an object: the author's next."""
        author = self.author
        first = self._upto(author) + 1
        numbers = range(first, first + len(self.objects.names))
        return [Dot(author.rank, author.incarnation, number) for number in numbers]

    def _upto(self, author: Actor) -> int:
        return max(self.frontier.upto(author), self.ahead.upto(author))

    @property
    def has_issued(self) -> bool:
        """This author's dots of the open step are issued."""
        return self.issued > self._upto(self.actor)

    # ---- causes ----------------------------------------------------------------------------------

    def note_deps(self) -> None:
        """When the open step is issued, and again where a walk has voided that.

        Every member's, alike: the author's rows name them, all rows of the step repeat them, and each
        member keeps the history of its cohort's steps.
        """
        last = self.open_dots()[-1]
        if last == self._deps_of:
            return
        self._deps_of, self._deps_seen = last, Clock(self.frontier.dots())
        others = [d for d in self.frontier.dots() if d.actor != self.author]
        new = [d for d in others if d.counter > self._deps_told.upto(d.actor)]
        self.deps = [] if self.strong else new
        if self.is_apart:
            self.weight = len(self.cohort) / len(self.view.members)
            self.needs = [d for d in others if d.counter > self._parted_at.upto(d.actor)]
            # The last of a step's dots that others apply: parameters come first among the objects.
            kept = len(self.objects.names) - self.objects.num_params
            self.deps = [Dot(d.rank, d.incarnation, d.counter - kept) for d in new]

    def told_deps(self) -> None:
        """The step is decided: the next one's are those that have come since it was issued."""
        self._deps_told = self._deps_seen

    def part(self) -> None:
        """From here on steps, counters and versions are the cohort's own."""
        self.is_apart, self._deps_of = True, None
        self._parted_at = self._deps_told = self._deps_seen = Clock(self.frontier.dots())

    def stand(
        self, decided: int, version: int, frontier: Clock, last_dots: list[Dot | None]
    ) -> None:
        """A newcomer takes over where a member stands."""
        self.decided = decided
        self.version = version
        self.frontier = frontier
        self.last_dots = last_dots
        self._deps_told = self._deps_seen = Clock(frontier.dots())
