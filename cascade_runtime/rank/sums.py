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
    """Parameters of one type: their base, and where their sums lie in an origin's bytes.

    ``value`` and ``delta`` are scratch of the sums' type, ``rounded`` of the parameters'.
    """

    base: torch.Tensor
    dtype: torch.dtype
    first_byte: int
    end_byte: int
    value: torch.Tensor
    delta: torch.Tensor
    rounded: torch.Tensor


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
        self._sums: dict[Actor, torch.Tensor] = {}
        self._upto: dict[Actor, int] = {}
        with torch.no_grad():
            self._parameters.look_up()
            for unit in self._parameters.units:
                base = self._regions[unit.region].base
                base[unit.part].copy_(self._parameters.value(unit))

    def _make_regions(self) -> Iterator[_Region]:
        end, flat = 0, self._parameters
        for dtype, size in zip(flat.dtypes, flat.sizes, strict=True):
            wide = _WIDER.get(dtype, dtype)
            first = -(-end // _ALIGN) * _ALIGN
            end = first + size * wide.itemsize
            scratch = [
                torch.empty(min(flat.chunk, size), dtype=t, device=flat.device)
                for t in (wide, wide, dtype)
            ]
            base = torch.empty(size, dtype=dtype, device=flat.device)
            yield _Region(base, wide, first, end, *scratch)

    # ---- reading ---------------------------------------------------------------------------------

    @property
    def upto(self) -> Mapping[Actor, int]:
        """Of every origin with a sum, the counter of the last dot in it."""
        return self._upto

    @property
    def num_bytes(self) -> int:
        """What is kept here beside the model: base, sums and scratch."""
        regions = [t for r in self._regions for t in (r.base, r.value, r.delta, r.rounded)]
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
        delta = None
        if own is not None:
            delta = self._by_region(self._sum_of(own.origin)), own.weight
            self._upto[own.origin] = own.upto
        replaced = [
            (self._by_region(self._sum_of(origin)), self._by_region(source))
            for origin, source in sources
        ]
        self._upto.update((t.origin, t.upto) for t in newer)
        after = self._in_order()
        moved = [0.0, 0.0]
        with torch.no_grad():
            self._parameters.look_up()
            for unit in self._parameters.units:
                value = self._parameters.value(unit)
                if delta is not None:
                    self._add_delta(unit, value, before, *delta)
                for target, source in replaced:
                    target[unit.region][unit.part].copy_(source[unit.region][unit.part])
                folded = self._fold(unit, after)
                if measure:
                    _measure(moved, value, folded)
                self._parameters.write(unit, folded)
        return Drift(math.sqrt(moved[0]), moved[1]) if measure else None

    def _sum_of(self, origin: Actor) -> torch.Tensor:
        """Zeros where it has none yet: the one allocation that an origin costs."""
        if origin not in self._sums:
            self._sums[origin] = torch.zeros(
                self.num_sum_bytes, dtype=torch.uint8, device=self._parameters.device
            )
        return self._sums[origin]

    def _in_order(self) -> list[list[torch.Tensor]]:
        """The sums in (rank, incarnation) order, each by regions."""
        return [self._by_region(self._sums[origin]) for origin in sorted(self._sums)]

    def _by_region(self, flat: torch.Tensor) -> list[torch.Tensor]:
        return [flat[r.first_byte : r.end_byte].view(r.dtype) for r in self._regions]

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

    def _fold(self, unit: Unit, sums: list[list[torch.Tensor]]) -> torch.Tensor:
        """The chunk as base and sums say, in scratch, in the sums' type."""
        region = self._regions[unit.region]
        value = region.value[: unit.end - unit.first]
        value.copy_(region.base[unit.part])
        for regions in sums:
            value.add_(regions[unit.region][unit.part])
        return value

    def _add_delta(
        self,
        unit: Unit,
        value: torch.Tensor,
        before: list[list[torch.Tensor]],
        mine: list[torch.Tensor],
        weight: float,
    ) -> None:
        region, size = self._regions[unit.region], unit.end - unit.first
        old, delta = self._fold(unit, before), region.delta[:size]
        delta.copy_(value)
        if region.dtype != region.base.dtype:  # the parameters were rounded when they were written
            old.copy_(region.rounded[:size].copy_(old))
        delta.sub_(old)
        if weight != 1.0:
            delta.mul_(weight)  # on its own: fused with the addition it would round otherwise
        mine[unit.region][unit.part].add_(delta)


def _measure(moved: list[float], before: torch.Tensor, after: torch.Tensor) -> None:
    """Add a chunk to [sum of squares, largest absolute difference]."""
    far = _exact(after.to(before.dtype)).sub_(before).abs()
    moved[0] += float(far.square().sum())
    moved[1] = max(moved[1], float(far.max()))


def _exact(chunk: torch.Tensor) -> torch.Tensor:
    return chunk.to(torch.complex128 if chunk.is_complex() else torch.float64, copy=True)
