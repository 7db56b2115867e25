"""Parameters as flat regions, one a type, worked on in chunks that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch

from cascade_runtime.vocabulary.errors import NotSupported

CHUNK = 1 << 16
"""Elements that are worked on at a time."""

CHUNK_ON_DEVICE = 1 << 23


class Unit(NamedTuple):
    """One chunk: a part of a large parameter, or several small ones whole.

    Attributes:
        region: number of the region.
        first: its first element there.
        end: one after its last element there.
        pieces: (number of the parameter, first element, end element) of what lies in it.
    """

    region: int
    first: int
    end: int
    pieces: list[tuple[int, int, int]]

    @property
    def part(self) -> slice:
        """Where it lies in its region."""
        return slice(self.first, self.end)


class FlatParameters:
    """Reads and writes parameters chunk by chunk, in registration order within each type.

    Args:
        parameters: of one device, floating point or complex.
        chunk: elements to be worked on at a time.

    Raises:
        NotSupported: other parameters than those.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], chunk: int | None = None) -> None:
        self._parameters = list(parameters)
        if not can_be_flat(self._parameters):
            raise NotSupported(
                "parameters that are integers, sparse, or spread over several devices "
                "cannot be exchanged between cohorts",
                where="model",
                hint="leave split = true out of the policy, so that all ranks stay in one cohort",
            )
        first = next(iter(self._parameters), None)
        self.device = torch.device("cpu") if first is None else first.device
        self.chunk = chunk or (CHUNK if self.device.type == "cpu" else CHUNK_ON_DEVICE)
        self.dtypes = list(dict.fromkeys(p.dtype for p in self._parameters))
        """One region each, in this order."""
        self.sizes = [
            sum(p.numel() for p in self._parameters if p.dtype == dtype) for dtype in self.dtypes
        ]
        """Number of elements of each region."""
        self.units = list(self._cut())
        self._gathered = [
            torch.empty(min(self.chunk, size), dtype=dtype, device=self.device)
            for dtype, size in zip(self.dtypes, self.sizes, strict=True)
        ]
        self._flats: list[torch.Tensor | None] = []
        self._pointers: list[int] = []

    @property
    def num_bytes(self) -> int:
        """Of the scratch that small parameters are gathered in."""
        return sum(t.nbytes for t in self._gathered)

    def _cut(self) -> Iterator[Unit]:
        for region, dtype in enumerate(self.dtypes):
            first = end = 0
            pieces: list[tuple[int, int, int]] = []
            for number, parameter in enumerate(self._parameters):
                if parameter.dtype != dtype:
                    continue
                done, count = 0, parameter.numel()
                while done < count:
                    if pieces and end - first + count - done > self.chunk:
                        yield Unit(region, first, end, pieces)
                        first, pieces = end, []
                    step = min(count - done, self.chunk - (end - first))
                    pieces.append((number, done, done + step))
                    done, end = done + step, end + step
            if pieces:
                yield Unit(region, first, end, pieces)

    def look_up(self) -> None:
        """Before a pass: find parameters that lie elsewhere by now."""
        pointers = [p.data_ptr() for p in self._parameters]
        if pointers != self._pointers:
            self._pointers = pointers
            self._flats = [
                p.detach().view(-1) if p.is_contiguous() else None for p in self._parameters
            ]

    def value(self, unit: Unit) -> torch.Tensor:
        """The chunk as it is: a view of its one parameter, or its parameters gathered in scratch."""
        pieces = [self._piece(*piece) for piece in unit.pieces]
        if len(pieces) == 1:
            return pieces[0]
        return torch.cat(pieces, out=self._gathered[unit.region][: unit.end - unit.first])

    def lies_here(self, unit: Unit) -> bool:
        """``value`` is the parameter itself: what is written there needs no ``write``."""
        return len(unit.pieces) == 1 and self._flats[unit.pieces[0][0]] is not None

    def write(self, unit: Unit, value: torch.Tensor) -> None:
        """Give the chunk's parameters this value, rounded to their type."""
        at = 0
        for number, first, end in unit.pieces:
            part = value[at : at + end - first]
            at += end - first
            if self._flats[number] is not None:
                self._piece(number, first, end).copy_(part)
                continue
            parameter = self._parameters[number].detach()
            whole = parameter.reshape(-1)
            whole[first:end].copy_(part)
            parameter.copy_(whole.view(parameter.shape))

    def _piece(self, number: int, first: int, end: int) -> torch.Tensor:
        flat = self._flats[number]
        if flat is None:  # laid out otherwise, as channels last: the logical order counts
            flat = self._parameters[number].detach().reshape(-1)
        return flat[first:end]


def can_be_flat(parameters: Iterable[torch.Tensor]) -> bool:
    """Floating point or complex, dense, and on one device."""
    held = list(parameters)
    return len({p.device for p in held}) < 2 and all(map(_is_number, held))


def _is_number(parameter: torch.Tensor) -> bool:
    dense = parameter.layout == torch.strided
    return dense and (parameter.is_floating_point() or parameter.is_complex())
