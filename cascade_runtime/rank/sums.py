"""Parameters as a base and a running sum for each origin: what several cohorts have in common.

While there are several cohorts, the parameters of every member are ``base``, then each origin's running
sum of deltas in counter order, added in (rank, incarnation) order. They are computed anew, in exactly
this order of additions, whenever a sum has changed: equal sums give equal bytes, in whatever order and
at whatever times the updates came. A sum that is replaced by the origin's own bytes holds no rounding
but the origin's.

Sums of half-precision parameters are kept in float32. In their own type a sum would stand still: a
delta of a quarter of a unit in the last place is lost in it, every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from cascade_runtime.rank.flat import FlatParameters, Unit
from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.vocabulary.identity import Actor

_ALIGN = 64
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


class Own(NamedTuple):
    """What this member's cohort has just stepped.

    Attributes:
        origin: the cohort's author.
        upto: counter of the update's last dot.
        weight: the cohort's part of a full round, in (0, 1].
    """

    origin: Actor
    upto: int
    weight: float


class Told(NamedTuple):
    """An origin's running sum as it has it.

    Attributes:
        origin: whose.
        upto: counter of the last dot in it.
        data: its bytes, ``num_sum_bytes`` of them, or another member's ``flat``.
    """

    origin: Actor
    upto: int
    data: bytes | bytearray | memoryview | torch.Tensor


class Drift(NamedTuple):
    """How far parameters moved: norm and largest absolute difference."""

    l2: float
    largest: float


class _Region(NamedTuple):
    """Parameters of one type: their base, and where their sums lie in an origin's bytes."""

    base: torch.Tensor
    dtype: torch.dtype
    """Of the sums."""
    first_byte: int
    end_byte: int
    scratch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    """A chunk each: two of the sums' type, one of the parameters'."""

    def of(self, flat: torch.Tensor) -> torch.Tensor:
        """This region of an origin's bytes."""
        return flat[self.first_byte : self.end_byte].view(self.dtype)


class _Chunk(NamedTuple):
    """A unit with its views, which are made once."""

    unit: Unit
    base: torch.Tensor
    is_wider: bool
    """The sums are of a wider type than the parameters."""
    value: torch.Tensor
    delta: torch.Tensor
    rounded: torch.Tensor


Views = list[torch.Tensor]
"""An origin's running sum, one view a chunk."""


class Sums:
    """The base is what the parameters are when this is made: at the cut where cohorts part.

    Args:
        parameters: those that move between cohorts, in registration order; the same on every member.
        chunk: elements to be worked on at a time.

    Raises:
        NotSupported: parameters that are no floating-point numbers, or on several devices.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], chunk: int | None = None) -> None:
        self._parameters = FlatParameters(parameters, chunk)
        self._regions = list(self._make_regions())
        self.num_sum_bytes = self._regions[-1].end_byte if self._regions else 0
        """Size of one origin's running sum."""
        self._chunks = [self._chunk(unit) for unit in self._parameters.units]
        self._sums: dict[Actor, torch.Tensor] = {}
        self._views: dict[Actor, Views] = {}
        self._upto: dict[Actor, int] = {}
        with torch.no_grad():
            self._parameters.look_up()
            for chunk_ in self._chunks:
                chunk_.base.copy_(self._parameters.value(chunk_.unit))

    def _make_regions(self) -> Iterator[_Region]:
        end, flat = 0, self._parameters
        for dtype, size in zip(flat.dtypes, flat.sizes, strict=True):
            wide = _WIDER.get(dtype, dtype)
            first = -(-end // _ALIGN) * _ALIGN
            end = first + size * wide.itemsize
            value, delta, rounded = (
                torch.empty(min(flat.chunk, size), dtype=t, device=flat.device)
                for t in (wide, wide, dtype)
            )
            base = torch.empty(size, dtype=dtype, device=flat.device)
            yield _Region(base, wide, first, end, (value, delta, rounded))

    def _chunk(self, unit: Unit) -> _Chunk:
        region, size = self._regions[unit.region], unit.end - unit.first
        value, delta, rounded = (scratch[:size] for scratch in region.scratch)
        base = region.base[unit.part]
        return _Chunk(unit, base, region.dtype != base.dtype, value, delta, rounded)

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def upto(self) -> Mapping[Actor, int]:
        """Of every origin with a sum, the counter of the last dot in it."""
        return self._upto

    @property
    def num_bytes(self) -> int:
        """What is kept here beside the model: base, sums and scratch."""
        regions = [t for r in self._regions for t in (r.base, *r.scratch)]
        return self._parameters.num_bytes + sum(t.nbytes for t in (*regions, *self._sums.values()))

    def flat(self, origin: Actor) -> torch.Tensor:
        """An origin's running sum as a tensor of bytes: the live one, which ``advance`` changes."""
        return self._sums[origin]

    def payload(self, origin: Actor) -> memoryview:
        """The bytes of an origin's running sum; on the CPU not copied, so good until ``advance``."""
        return raw_bytes(self._sums[origin])

    # ---- changing --------------------------------------------------------------------------------

    def advance(
        self, own: Own | None = None, told: Sequence[Told] = (), *, measure: bool = False
    ) -> Drift | None:
        """Add the own delta, take over sums that were told, compute the parameters; in one pass.

        ``weight`` of the difference between the parameters as they are and as they last were computed
        goes into the own sum. Sums that are not newer than what is here are left out.

        Args:
            own: what the cohort has stepped; None: nothing, and then whatever was written to the
                parameters since they were last computed is lost.
            told: other origins' sums; of one origin at most one.
            measure: answer how far the parameters moved.

        Raises:
            ValueError: a sum of another size, or of the own origin; nothing was changed.
        """
        newer = [t for t in told if t.upto > self._upto.get(t.origin, 0)]
        if own is not None and any(t.origin == own.origin for t in newer):
            raise ValueError(f"rank {own.origin} was told its own sum")
        sources = [(t.origin, self._bytes_of(t)) for t in newer]
        before = self._in_order()
        mine = None
        if own is not None:
            mine = self._views_of(own.origin)
            self._upto[own.origin] = own.upto
        replaced = [(self._views_of(o), self._cut(source)) for o, source in sources]
        self._upto.update((t.origin, t.upto) for t in newer)
        after = self._in_order()
        moved = [0.0, 0.0]
        with torch.no_grad():
            self._parameters.look_up()
            for i, chunk in enumerate(self._chunks):
                value = self._parameters.value(chunk.unit)
                if own is not None and mine is not None:
                    delta = self._delta(chunk, value, [views[i] for views in before], own.weight)
                    mine[i].add_(delta)
                for target, source in replaced:
                    target[i].copy_(source[i])
                sums = [views[i] for views in after]
                if measure:
                    _measure(moved, value, _fold(chunk, sums, chunk.value))
                if self._parameters.lies_here(chunk.unit) and not chunk.is_wider:
                    _fold(chunk, sums, value)
                else:
                    self._parameters.write(chunk.unit, _fold(chunk, sums, chunk.value))
        return Drift(math.sqrt(moved[0]), moved[1]) if measure else None

    def _views_of(self, origin: Actor) -> Views:
        """Zeros where it has no sum yet: the one allocation that an origin costs."""
        if origin not in self._sums:
            device = self._parameters.device
            flat = torch.zeros(self.num_sum_bytes, dtype=torch.uint8, device=device)
            self._sums[origin], self._views[origin] = flat, self._cut(flat)
        return self._views[origin]

    def _in_order(self) -> list[Views]:
        """The sums in (rank, incarnation) order."""
        return [self._views[origin] for origin in sorted(self._views)]

    def _cut(self, flat: torch.Tensor) -> Views:
        regions = [r.of(flat) for r in self._regions]
        return [regions[c.unit.region][c.unit.part] for c in self._chunks]

    def _bytes_of(self, told: Told) -> torch.Tensor:
        data = told.data
        if not isinstance(data, torch.Tensor):
            view = memoryview(data).cast("B")
            writable = bytearray(view) if view.readonly else view  # torch warns of the others
            data = torch.frombuffer(writable, dtype=torch.uint8) if view.nbytes else torch.empty(0)
        if data.nbytes != self.num_sum_bytes:
            raise ValueError(
                f"a sum of {data.nbytes:,} bytes from rank {told.origin}, "
                f"where one has {self.num_sum_bytes:,}"
            )
        data = data.view(torch.uint8)
        return data.clone() if data.data_ptr() % 8 else data

    def _delta(
        self, chunk: _Chunk, value: torch.Tensor, before: Views, weight: float
    ) -> torch.Tensor:
        """``weight`` of what the chunk moved since it was last folded, in scratch."""
        old = _fold(chunk, before, chunk.value)
        if chunk.is_wider:
            old.copy_(chunk.rounded.copy_(old))  # as when they were written
            value = chunk.delta.copy_(value)
        delta = torch.sub(value, old, out=chunk.delta)
        if weight != 1.0:
            delta.mul_(weight)  # on its own: fused with the addition it would round otherwise
        return delta


def _fold(chunk: _Chunk, sums: Views, out: torch.Tensor) -> torch.Tensor:
    """``base + sums[0] + sums[1] + ...``, in this order, into ``out``."""
    value = out.copy_(chunk.base) if chunk.is_wider or not sums else chunk.base
    for part in sums:
        value = torch.add(value, part, out=out)
    return out


def _measure(moved: list[float], before: torch.Tensor, after: torch.Tensor) -> None:
    """Add a chunk to [sum of squares, largest absolute difference]."""
    far = _exact(after.to(before.dtype)).sub_(before).abs()
    moved[0] += float(far.square().sum())
    moved[1] = max(moved[1], float(far.max()))


def _exact(chunk: torch.Tensor) -> torch.Tensor:
    return chunk.to(torch.complex128 if chunk.is_complex() else torch.float64, copy=True)
