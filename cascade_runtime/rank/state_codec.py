"""What a live member says to a newcomer: named trees of plain values with tensors in them.

Nothing is pickled: whoever can write to the socket can send numbers, not code. A message is

    u32 length of the head, head (MessagePack: [kind, tree, [[dtype, shape], ...]]), the tensors' bytes

A node of the tree is ``[tag, ...]``: ``s`` a scalar, ``c`` a complex number's two parts, ``d`` a
mapping as pairs, ``l`` a list, ``t`` a tuple, ``T`` the number of a tensor. What cannot be said so
(functions, objects of a class of their own) is refused by the sender with a sentence.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import torch

from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.vocabulary.errors import NotSupported

HEAD = struct.Struct("<I")
MAX_HEAD = 64 << 20
MAX_DEPTH = 32
MAX_DIMENSIONS = 64

_DTYPES = {
    str(d).removeprefix("torch."): d
    for d in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64,
        torch.complex128, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip


class BadState(ValueError):
    """Bytes that are no message of this form, or one that is larger than it may be."""


class _Head(msgspec.Struct, frozen=True, array_like=True):
    kind: str
    tree: Any
    tensors: list[tuple[str, list[int]]]


_decoder = msgspec.msgpack.Decoder(_Head)


def pack(kind: str, body: Mapping[str, Any]) -> list[bytes | memoryview]:
    """A message as pieces to be sent one after the other; tensors are not copied.

    Raises:
        NotSupported: a value that is neither plain nor a tensor; the sentence names where it stands.
    """
    tensors: list[torch.Tensor] = []
    tree = _node(body, tensors, "", 0)
    told = [(str(t.dtype).removeprefix("torch."), list(t.shape)) for t in tensors]
    head = msgspec.msgpack.encode(_Head(kind, tree, told))
    return [HEAD.pack(len(head)), head, *(raw_bytes(t) for t in tensors if t.numel())]


def size_of(pieces: list[bytes | memoryview]) -> int:
    """Bytes of a packed message."""
    return sum(memoryview(p).nbytes for p in pieces)


def _node(value: Any, tensors: list[torch.Tensor], where: str, depth: int) -> list[Any]:
    if depth > MAX_DEPTH:
        raise NotSupported("state is nested too deeply to be sent to a newcomer", where=where)
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
            raise _cannot_say(value, where)
        if str(value.dtype).removeprefix("torch.") not in _DTYPES:
            raise _cannot_say(value, where)
        tensors.append(value.detach())
        return ["T", len(tensors) - 1]
    if value is None or isinstance(value, bool):
        return ["s", value]
    # Kinds of their own go as what they are kinds of: numpy's float64 is a float.
    if isinstance(value, float):
        return ["s", float(value)]
    if isinstance(value, str):
        return ["s", str.__str__(value)]
    if isinstance(value, bytes):
        return ["s", bytes(value)]
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise _cannot_say(value, where)
        return ["s", int(value)]
    if isinstance(value, complex):
        return ["c", float(value.real), float(value.imag)]
    if isinstance(value, Mapping):
        pairs = [
            [
                _node(k, tensors, where, depth + 1),
                _node(v, tensors, f"{where}/{k}".lstrip("/"), depth + 1),
            ]
            for k, v in value.items()
        ]
        return ["d", pairs]
    if type(value) in (list, tuple):
        tag = "l" if isinstance(value, list) else "t"
        return [tag, [_node(v, tensors, f"{where}/{i}", depth + 1) for i, v in enumerate(value)]]
    raise _cannot_say(value, where)


def _cannot_say(value: Any, where: str) -> NotSupported:
    return NotSupported(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be sent to a newcomer: "
        "only tensors, numbers, text, and lists and mappings of them can",
        where=where,
        hint="keep it out of the state of the optimizer and its schedulers, or run without --respawn",
    )


def read_message(
    read_into: Callable[[memoryview], None], max_bytes: int
) -> tuple[str, dict[str, Any]]:
    """The next message.

    Args:
        read_into: fills a buffer whole, or raises (EOFError, OSError).
        max_bytes: of the head and of all tensors together.

    Raises:
        BadState: what came is no message, or a larger one than allowed. Nothing of it was kept.
    """
    prefix = bytearray(HEAD.size)
    read_into(memoryview(prefix))
    (length,) = HEAD.unpack(prefix)
    if length > min(MAX_HEAD, max_bytes):
        raise BadState(f"a head of {length:,} bytes")
    data = bytearray(length)
    read_into(memoryview(data))
    try:
        head = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadState(str(error)) from error
    _check_sizes(head, max_bytes - length)
    tensors = list(_read_tensors(head, read_into))
    body = _value(head.tree, tensors, 0)
    if not isinstance(body, dict):
        raise BadState(f"a {type(body).__name__} instead of a mapping")
    return head.kind, body


def _check_sizes(head: _Head, max_bytes: int) -> None:
    total = 0
    for dtype, shape in head.tensors:
        if dtype not in _DTYPES or len(shape) > MAX_DIMENSIONS or any(n < 0 for n in shape):
            raise BadState(f"a tensor {dtype} {shape}"[:200])
        total += math.prod(shape) * _DTYPES[dtype].itemsize
        if total > max_bytes:
            raise BadState(f"tensors of more than {max_bytes:,} bytes")


def _read_tensors(head: _Head, read_into: Callable[[memoryview], None]) -> Iterator[torch.Tensor]:
    for dtype, shape in head.tensors:
        tensor = torch.empty(shape, dtype=_DTYPES[dtype])
        if tensor.numel():
            read_into(raw_bytes(tensor))
        yield tensor


def _value(node: Any, tensors: list[torch.Tensor], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise BadState("nested too deeply")
    match node:
        case ["s", None | bool() | int() | float() | str() | bytes() as scalar]:
            return scalar
        case ["c", float() as real, float() as imag]:
            return complex(real, imag)
        case ["T", int() as number] if 0 <= number < len(tensors):
            return tensors[number]
        case ["l", list() as items]:
            return [_value(v, tensors, depth + 1) for v in items]
        case ["t", list() as items]:
            return tuple(_value(v, tensors, depth + 1) for v in items)
        case ["d", list() as pairs]:
            return dict(_pair(p, tensors, depth + 1) for p in pairs)
    raise BadState("a node of an unknown kind")


def _pair(pair: Any, tensors: list[torch.Tensor], depth: int) -> tuple[Any, Any]:
    match pair:
        case [["s", _] as key, value]:
            return _value(key, tensors, depth), _value(value, tensors, depth)
    raise BadState("a mapping with a key that is no scalar")
