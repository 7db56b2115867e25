"""The objects of a model: parameters cut into pieces, buffers, optimizer state; and their digests.

``params/0 ... K-1`` are the named parameters in registration order, cut into pieces of at most 25 MB;
``buffers`` and ``optim`` are one object each. The cut depends on names, shapes and dtypes alone, so it
is the same on every member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
import xxhash

PIECE_BYTES = 25 * 1024 * 1024


class ModelObjects:
    """Names, sizes and digests of what the ranks of a job share.

    Args:
        module: the model (inside DDP).
        optimizer: its optimizer; the state is read when a digest is asked for.
        piece_bytes: largest size of one ``params/<i>``, in bytes.
        with_buffers: False where nothing keeps the buffers equal between steps (plain DDP broadcasts
            them only when the next forward begins).
    """

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        piece_bytes: int = PIECE_BYTES,
        *,
        with_buffers: bool = True,
    ) -> None:
        self._params = list(module.named_parameters())
        self._holders = [
            (f"{prefix}.".lstrip("."), m._buffers) for prefix, m in module.named_modules()
        ]
        self._buffers = list(module.named_buffers()) if with_buffers else []
        self._optimizer = optimizer
        self._pieces = list(_cut((p for _, p in self._params), piece_bytes))
        self.names = [f"params/{i}" for i in range(len(self._pieces))]
        if self._buffers:
            self.names.append("buffers")
        self.names.append("optim")
        self._sizes = [_bytes_of(self._piece_tensors(i)) for i in range(len(self._pieces))]
        self.readable = self.names[:-1]
        """Objects that a forward pass reads."""

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The module's parameters, in registration order."""
        return [p for _, p in self._params]

    @property
    def buffers(self) -> list[torch.Tensor]:
        """The module's buffers, in registration order."""
        return [b for _, b in self._buffers]

    @property
    def num_params(self) -> int:
        """How many of ``names`` are parameters; they come first."""
        return len(self._pieces)

    def look_up_buffers(self) -> None:
        """After a forward, in which a module may have put other tensors in their place."""
        if not self._buffers:
            return
        # As named_buffers gives them, without its walk through all modules in each step.
        found: dict[int, tuple[str, torch.Tensor]] = {}
        for prefix, held in self._holders:
            for name, buffer in held.items():
                if buffer is not None and id(buffer) not in found:
                    found[id(buffer)] = (prefix + name, buffer)
        self._buffers = list(found.values())

    def identity(self) -> str:
        """Hash of names, shapes and dtypes; equal on members that hold the same objects."""
        hasher = xxhash.xxh3_128()
        for name, tensor in [*self._params, *self._buffers]:
            hasher.update(f"{name}:{tuple(tensor.shape)}:{tensor.dtype};".encode())
        return str(hasher.hexdigest())

    def num_bytes(self, index: int) -> int:
        """Size of object ``index`` of ``names``, in bytes (optimizer state as it is now)."""
        if index < len(self._pieces):
            return self._sizes[index]
        if self.names[index] == "buffers":
            return _bytes_of(self.buffers)
        return _bytes_of(_tensors(self._optimizer.state))

    def digest(self, index: int) -> str:
        """XXH3-128 of object ``index``'s bytes, hex. Equal bytes on two members, equal digests."""
        hasher = xxhash.xxh3_128()
        if index < len(self._pieces):
            for tensor in self._piece_tensors(index):
                hasher.update(raw_bytes(tensor))
        elif self.names[index] == "buffers":
            for tensor in self.buffers:
                hasher.update(raw_bytes(tensor))
        else:
            for name, parameter in self._params:
                hasher.update(f"{name}:".encode())
                _hash_state(hasher, self._optimizer.state.get(parameter))
        return str(hasher.hexdigest())

    def _piece_tensors(self, index: int) -> Iterator[torch.Tensor]:
        for parameter, first, last in self._pieces[index]:
            yield parameter.detach().reshape(-1)[first:last]


def _cut(
    parameters: Iterable[torch.Tensor], piece_bytes: int
) -> Iterator[list[tuple[torch.Tensor, int, int]]]:
    """Pieces as lists of (parameter, first element, end element)."""
    piece: list[tuple[torch.Tensor, int, int]] = []
    room = piece_bytes
    for parameter in parameters:
        size, first = parameter.element_size(), 0
        while first < parameter.numel():
            if room < size:
                yield piece
                piece, room = [], piece_bytes
            last = min(parameter.numel(), first + room // size)
            piece.append((parameter, first, last))
            room -= (last - first) * size
            first = last
    if piece:
        yield piece


def pack(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """The bytes of all ``tensors``, one after the other, as one uint8 tensor."""
    flat = [t.detach().reshape(-1).view(torch.uint8) for t in tensors]
    return torch.cat(flat) if flat else torch.empty(0, dtype=torch.uint8)


def unpack(packed: torch.Tensor, tensors: Iterable[torch.Tensor]) -> None:
    """Write what ``pack`` packed back into tensors of the same sizes."""
    first = 0
    with torch.no_grad():
        for tensor in tensors:
            last = first + tensor.numel() * tensor.element_size()
            piece = packed[first:last]
            if piece.storage_offset() % tensor.element_size():
                piece = piece.clone()  # a view of another dtype must begin at one of its elements
            tensor.copy_(piece.view(tensor.dtype).reshape(tensor.shape))
            first = last


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """A tensor's bytes in host memory, without a copy where it already lies there contiguously."""
    flat = tensor.detach().contiguous().reshape(-1).cpu()
    return flat.view(torch.uint8).numpy().data


def _hash_state(hasher: xxhash.xxh3_128, state: Any) -> None:
    if not isinstance(state or {}, dict):
        hasher.update(repr(state).encode())
        return
    for key in sorted(state or {}):
        value = state[key]
        hasher.update(f"{key}=".encode())
        if isinstance(value, torch.Tensor):
            hasher.update(raw_bytes(value))
        else:
            hasher.update(repr(value).encode())


def _bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    for entry in state.values():
        if not isinstance(entry, dict):
            continue  # an optimizer of a kind of its own; its other entries are digested by repr
        yield from (v for v in entry.values() if isinstance(v, torch.Tensor))
