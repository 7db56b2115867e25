"""What a member holds while cohorts are apart, and what it does with it at a step's borders.

The base is what the parameters are when the first forward after the parting begins (or are, where a
step was open): the same place in the loop on every member. At each step's end the cohort's own delta
goes into its sum, and what came of other cohorts is folded in the same pass. What a walk's levelling
brings (levelling.py) is kept and folded when the next optimizer step begins: parameters may not change
between a forward and its backward, and only there all members write them at one place in the loop.

Nothing of this exists while all members step together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import xxhash

from cascade_runtime.agent.protocol import SumLevel, View
from cascade_runtime.delivery import NotCausal, Snapshot, Step, in_order
from cascade_runtime.rank.copies import kept_copy, told_entries
from cascade_runtime.rank.flat import can_be_flat
from cascade_runtime.rank.member import Member
from cascade_runtime.rank.objects import pack as bytes_of
from cascade_runtime.rank.objects import raw_bytes, unpack
from cascade_runtime.rank.snapshot import TrainingState, Tree
from cascade_runtime.rank.state_codec import pack
from cascade_runtime.rank.sums import Drift, Own, Sums, Told
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot

KEPT_STEPS = 64
"""Of each origin's history, for members that a levelling finds without them.

An author waits at the staleness bound (channel.py), so no member lacks nearly as many.
"""


BUFFERS = "buffers"


class Pending(NamedTuple):
    """An origin's sum that a walk has brought and that is not folded yet."""

    origin: Actor
    upto: int
    steps: list[Step]
    data: torch.Tensor


class Came(NamedTuple):
    """Another cohort's sum that is folded at this step's end."""

    snapshot: Snapshot
    data: torch.Tensor | bytearray


class Apart:
    """Base, sums and their history, for one member.

    Args:
        member: its consistency state, which follows.
        state: its training state; only the optimizer's part is taken over from others.
        may_part: the policy parts cohorts.
    """

    def __init__(self, member: Member, state: TrainingState, *, may_part: bool = True) -> None:
        self._member = member
        self._state = state
        self.sums: Sums | None = None
        self._steps: dict[Actor, list[Step]] = {}
        """Of each origin, the steps since the parting."""
        self._pending: list[Pending] = []
        self._optim: Tree | None = None
        self._optim_digest = ""
        self._flushed = True
        self._is_due = False
        """A levelling is to be folded when the optimizer steps next."""
        self._may_part = may_part
        self._entries: object = None
        """Of the optimizer's state, when it was looked at last."""
        if may_part and not can_be_flat(member.objects.parameters):
            member.is_bound = True
        self.on_bound: Callable[[str], None] = lambda why: None
        """Told why cohorts that are apart have to be one again."""
        self.on_folded: Callable[[Actor, int, bytearray | None], None] = lambda *_: None
        """Told of each origin's sum that is folded and on record here."""
        self.on_stepped: Callable[[Step, list[Dot]], None] = lambda *_: None
        """Told of the own step that is in the own sum now."""
        member.held_sums = self.upto
        member.before_apply = self._flush
        member.reconcile_as = self._digest_to_be

    @property
    def is_clear(self) -> bool:
        """All members step together, and nothing is to be folded."""
        return not (self._member.is_apart or self._is_due)

    # ---- views -----------------------------------------------------------------------------------

    def committed(self, view: View, step_open: bool) -> None:
        """A view was committed; ``step_open``: a forward of the open step has begun."""
        member = self._member
        if len(view.cohorts) > 1 and not member.is_apart:
            member.part()
            self.sums, self._steps = None, {}
            if step_open:
                self.ensure_base()

    def ensure_base(self) -> None:
        """At a step's beginning: what the parameters are now, if it was not kept yet."""
        if self._member.is_apart and self.sums is None:
            self.sums = Sums(self._member.objects.parameters)

    def look_at_optimizer(self) -> None:
        """Where the policy parts cohorts, whenever it has other state: whether this job may part."""
        if not self._may_part or self._member.is_bound:
            return
        try:
            entries = told_entries(self._state.optimizer)
            if entries == self._entries:
                return
            self._entries = entries
            pack("optim", self._state.tell_optimizer(copied=False))
            kept = kept_copy(self._state.optimizer)
        except Exception as error:  # whatever the script keeps in its state, this member trains on
            self.keep_together(f"the optimizer's state cannot be told ({type(error).__name__})")
            return
        if kept is not None:
            self.keep_together(f"the optimizer keeps parameters of its own ({kept})")

    def keep_together(self, why: str) -> None:
        """This member must not be apart from the others: not any more, where it is."""
        self._member.is_bound = True
        if self._member.is_apart:
            self.on_bound(why)

    # ---- what others are told --------------------------------------------------------------------

    def upto(self) -> list[Dot]:
        """Of every origin, the last dot of it that is held here."""
        clock = Clock(Dot(a.rank, a.incarnation, c) for a, c in self._own_upto().items())
        return clock.merge(self._member.ahead).dots()

    def _own_upto(self) -> dict[Actor, int]:
        return dict(self.sums.upto) if self.sums is not None else {}

    def tell_level(self, level: SumLevel) -> tuple[list[Step], memoryview]:
        """The steps that somebody may lack, and the sum."""
        steps = [s for s in self._steps.get(level.origin, []) if s.upto > level.least]
        for pending in self._pending:
            if pending.origin == level.origin:
                return steps, raw_bytes(pending.data)
        assert self.sums is not None
        return steps, self.sums.payload(level.origin)

    def tell_optimizer(self) -> list[bytes | memoryview]:
        """What all take over when they step together again; buffers, for who makes no step after it."""
        told = self._optim or {
            **self._state.tell_optimizer(),
            BUFFERS: bytes_of(self._member.objects.buffers),
        }
        return pack("optim", told)

    # ---- levelling -------------------------------------------------------------------------------

    def take_level(self, level: SumLevel, steps: list[Step], data: torch.Tensor) -> None:
        """An origin's sum from a walk; left out where it is held already."""
        held = Clock(self.upto()).upto(level.origin)
        if level.upto <= held:
            return
        self._pending = [p for p in self._pending if p.origin != level.origin]
        self._pending.append(Pending(level.origin, level.upto, steps, data))
        self._flushed = False
        self._note(level.origin, [s for s in steps if s.upto > held])
        origin = level.origin
        self._member.ahead.cover(Dot(origin.rank, origin.incarnation, level.upto))

    def levelled(self) -> None:
        """All sums of a levelling are taken."""
        self._is_due = self._member.is_pending = True

    def become_one(self, view: View, optim: Tree, packed: torch.Tensor, step_open: bool) -> None:
        """All members are level and step together from here."""
        self._optim, self._optim_digest = optim, xxhash.xxh3_128_hexdigest(raw_bytes(packed))
        self._member.become_one(view, step_open)

    def _flush(self) -> None:
        """Rows of what a walk brought: before the next step's own."""
        if self._flushed:
            return
        self._flushed = True
        told = [Snapshot(p.origin, p.upto, [], p.steps) for p in self._pending]
        held = Clock(Dot(a.rank, a.incarnation, c) for a, c in self._own_upto().items())
        for origin, step in _rows(held, told):
            self._member.fold_rows(origin, step.upto, step.deps)
        for pending in self._pending:
            self.on_folded(pending.origin, pending.upto, None)

    def fold_pending(self) -> Drift | None:
        """Parameters become what all have; the optimizer too, where all step together again."""
        if not self._is_due:
            return None
        member, drift = self._member, None
        self._flush()
        if self._pending and self.sums is None:
            # No step was made since the parting, so the base is what the parameters are.
            self.sums = Sums(member.objects.parameters)
        if self.sums is not None:  # with nothing to take over, too: all write the same
            told = [Told(p.origin, p.upto, p.data) for p in self._pending]
            drift = self.sums.advance(None, told, measure=not member.is_apart)
        self._pending, member.ahead = [], Clock()
        self._is_due = member.is_pending = False
        if not member.is_apart:
            if self._optim is not None:
                self._state.take_optimizer(self._optim)
            if member.leaving:
                # No step comes that makes buffers equal. Nor is this a sign that all are level: another
                # walk may ask for the sums again.
                if self._optim is not None:
                    unpack(self._optim[BUFFERS], member.objects.buffers)
            else:
                self._optim = self.sums = None
                self._steps = {}
        return drift

    def _digest_to_be(self) -> str | None:
        """What ``reconcile`` tells instead, where something is to be folded yet."""
        if not self._is_due:
            return None
        # Bases are equal: they were told by digests before the parting, and are not here yet where a
        # member has not begun a step since.
        hasher, told = xxhash.xxh3_128(), {p.origin: p.data for p in self._pending}
        for origin in sorted({*self._own_upto(), *told}):
            hasher.update(f"{origin}:".encode())
            if origin in told:
                hasher.update(raw_bytes(told[origin]))
            elif self.sums is not None:
                hasher.update(self.sums.payload(origin))
        return f"{hasher.hexdigest()} {self._optim_digest}"

    # ---- a step ----------------------------------------------------------------------------------

    def end_step(self, came: Iterable[Came]) -> None:
        """After the optimizer's step: the own delta, and what has come of others, in one pass."""
        member, sums = self._member, self.sums
        if not member.is_apart or sums is None:
            return
        # By what was decided, not by the view: a step may be rolled forward in another one.
        dot = member.last_dots[-1]
        assert dot is not None
        own = Own(dot.actor, dot.counter, member.weight)
        step = Step(own.upto, member.deps)
        self._note(own.origin, [step])
        self.fold(list(came), own)
        self.on_stepped(step, member.needs)

    def fold(self, came: list[Came], own: Own | None = None) -> None:
        """Other cohorts' sums, and the own delta, into the parameters; only just after a step."""
        member, sums = self._member, self.sums
        assert sums is not None
        rows = _rows(member.frontier, [c.snapshot for c in came])
        sums.advance(own, [Told(c.snapshot.origin, c.snapshot.upto, c.data) for c in came])
        for origin, folded in rows:
            self._note(origin, [folded])
            member.fold_rows(origin, folded.upto, folded.deps)
        for c in came:
            buffer = c.data if isinstance(c.data, bytearray) else None
            self.on_folded(c.snapshot.origin, c.snapshot.upto, buffer)

    def _note(self, origin: Actor, steps: list[Step]) -> None:
        known = self._steps.setdefault(origin, [])
        known += steps
        if len(known) > 2 * KEPT_STEPS:
            del known[:-KEPT_STEPS]


def _rows(held: Clock, told: list[Snapshot]) -> list[tuple[Actor, Step]]:
    """The steps that are new here, each after its causes as far as these are known."""
    try:
        return in_order(held, told)
    except NotCausal:  # a step that is void everywhere is among the causes
        return [(t.origin, s) for t in told for s in t.steps if s.upto > held.upto(t.origin)]
