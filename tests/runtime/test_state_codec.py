"""What members tell newcomers, byte by byte; and bytes that nobody should believe."""

from __future__ import annotations

import math
import struct
from collections import Counter, OrderedDict
from enum import StrEnum
from http import HTTPStatus

import msgspec
import numpy as np
import pytest
import torch

from cascade_runtime.rank.state_codec import BadState, pack, read_message, size_of
from cascade_runtime.vocabulary.errors import NotSupported

LIMIT = 1 << 20


def reader(data: bytes):
    left = memoryview(data)

    def read_into(view: memoryview) -> None:
        nonlocal left
        if len(left) < view.nbytes:
            raise EOFError
        view.cast("B")[:] = left[: view.nbytes]
        left = left[view.nbytes :]

    return read_into


def through(body, limit: int = LIMIT):
    data = b"".join(bytes(p) for p in pack("kind", body))
    assert len(data) == size_of(pack("kind", body))
    kind, told = read_message(reader(data), limit)
    assert kind == "kind"
    return told


def message(kind, tree, tensors, rest=b"") -> bytes:
    head = msgspec.msgpack.encode([kind, tree, tensors])
    return struct.pack("<I", len(head)) + head + rest


PLAIN = {
    "none": None, "true": True, "int": -(1 << 63), "large": (1 << 64) - 1, "float": 0.1,
    "inf": math.inf, "text": "é", "bytes": b"\0\xff", "list": [1, [2.0]], "tuple": (0.9, (0.999,)),
    "complex": 1 + 2j, 3: {"nested": {}},
}  # fmt: skip


def test_plain_values_come_back_as_they_were() -> None:
    told = through(PLAIN)
    assert told == PLAIN
    assert [type(v) for v in told.values()] == [type(v) for v in PLAIN.values()]


def test_mappings_of_all_kinds_are_mappings() -> None:
    told = through({"milestones": Counter({3: 1, 5: 2}), "ordered": OrderedDict(a=1)})
    assert told == {"milestones": {3: 1, 5: 2}, "ordered": {"a": 1}}


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5), torch.zeros(0, 4), torch.arange(6).reshape(2, 3).t(),
        torch.randn(3, 4, dtype=torch.float64), torch.randn(5).to(torch.bfloat16),
        torch.tensor([True, False]), torch.randn(2, dtype=torch.complex64),
        torch.tensor([float("nan"), -0.0]), torch.nn.Parameter(torch.ones(2)),
    ],
    # Not the values: they are drawn, and all workers must find the same tests.
    ids=[
        "scalar", "empty", "transposed", "float64", "bfloat16", "bool", "complex64", "nan", "parameter",
    ],
)  # fmt: skip
def test_tensors_come_back_bit_by_bit(tensor: torch.Tensor) -> None:
    told = through({"t": tensor})["t"]
    assert told.dtype == tensor.dtype
    assert told.shape == tensor.shape
    assert not told.requires_grad
    assert told.contiguous().view(torch.uint8).equal(
        tensor.detach().contiguous().view(torch.uint8)
    ) if tensor.ndim else told.equal(tensor)  # fmt: skip


class _Text(str):
    pass


class _Word(StrEnum):
    ONE = "one"


class _Bytes(bytes):
    pass


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.float64(0.1), 0.1), (np.complex128(1 + 2j), 1 + 2j), (_Text("x"), "x"),
        (_Bytes(b"x"), b"x"), (HTTPStatus.OK, 200), (_Word.ONE, "one"), (True, True),
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_kinds_of_plain_values_go_as_what_they_are_kinds_of(value, told) -> None:
    """A learning rate that numpy has computed is in the state of many a job."""
    came = through({"x": value, "in": [value]})
    assert came == {"x": told, "in": [told]}
    assert type(came["x"]) is type(told)


@pytest.mark.parametrize(
    "value",
    [lambda: 0, object(), {1}, 1 << 64, torch.zeros(2).to_sparse(), {"a": [{"b": print}]}],
    ids=["function", "object", "set", "large", "sparse", "deep inside"],
)
def test_what_cannot_be_said_is_refused_with_its_place(value) -> None:
    with pytest.raises(NotSupported, match="cannot be sent to a newcomer") as caught:
        pack("kind", {"state": {"x": value}})
    assert "state/x" in str(caught.value.where)


def test_nothing_is_nested_without_end() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotSupported, match="too deeply"):
        pack("kind", {"x": endless})


@pytest.mark.parametrize("cut", range(0, 78, 7))
def test_a_message_cut_short_is_an_end(cut: int) -> None:
    data = b"".join(bytes(p) for p in pack("kind", {"t": torch.ones(8), "n": 1}))
    assert cut < len(data)
    with pytest.raises(EOFError):
        read_message(reader(data[:cut]), LIMIT)


HOSTILE = {
    "head over the limit": struct.pack("<I", LIMIT + 1),
    "largest head": struct.pack("<I", 0xFFFFFFFF),
    "no MessagePack": struct.pack("<I", 4) + b"\xc1\xc1\xc1\xc1",
    "another form": struct.pack("<I", 1) + b"\x01",
    "tensor over the limit": message("k", ["d", []], [["float32", [LIMIT]]]),
    "many tensors": message("k", ["d", []], [["float32", [LIMIT // 8]]] * 9),
    "overflowing shape": message("k", ["d", []], [["float32", [1 << 62, 1 << 62]]]),
    "negative shape": message("k", ["d", []], [["float32", [-1, -4]]]),
    "too many dimensions": message("k", ["d", []], [["float32", [1] * 65]]),
    "unknown dtype": message("k", ["d", []], [["object", [1]]]),
    "no such tensor": message("k", ["d", [[["s", "x"], ["T", 0]]]], []),
    "negative tensor": message("k", ["d", [[["s", "x"], ["T", -1]]]], []),
    "unknown node": message("k", ["d", [[["s", "x"], ["p", "os.system"]]]], []),
    "scalar that is a list": message("k", ["d", [[["s", "x"], ["s", []]]]], []),
    "key that is a tensor": message("k", ["d", [[["T", 0], ["s", 1]]]], []),
    "no mapping": message("k", ["l", []], []),
    "deeper than any decoder": struct.pack("<I", 60_003) + b"\x93\xa1k" + b"\x91" * 60_000,
    "deep": message("k", ["d", [[["s", 0], __import__("functools").reduce(
        lambda inner, _: ["l", [inner]], range(40), ["s", 0])]]], []),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_message_is_refused_before_memory_is_taken(name: str) -> None:
    with pytest.raises(BadState):
        read_message(reader(HOSTILE[name]), LIMIT)
