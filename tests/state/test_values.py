"""What may be put: plain data, bounded, and nothing that runs when it is read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade_runtime.state.values import MOST_VALUE_BYTES, check_key, check_name, decode, encode
from cascade_runtime.vocabulary.errors import BadUsage

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_data_comes_back_as_it_was(value):
    assert decode(encode(value, "put")) == value


def test_a_copy_is_nobody_else_s():
    value = {"stops": [1, 2]}
    data = encode(value, "put")
    value["stops"].append(3)
    decode(data)["stops"].append(4)
    assert decode(data) == {"stops": [1, 2]}
    assert math.isnan(decode(encode(math.nan, "put")))
    assert decode(encode((1, (2,)), "put")) == [1, [2]]


@dataclass
class Record:
    x: int = 1


deep: list = []
for _ in range(100):
    deep = [deep]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Record(), "Record"),
        ({1: "a"}, "dict key of type int"),
        ([{"a": {1, 2}}], "set"),
        (object(), "object"),
        (deep, "levels"),
        (2**64, "cannot be encoded"),
        ("\ud800", "cannot be encoded"),
        ("x" * MOST_VALUE_BYTES, "65,5"),
    ],
)
def test_what_else_is_refused_by_name(value, named):
    with pytest.raises(BadUsage) as told:
        encode(value, "plan.put")
    assert named in str(told.value)
    assert "plan.put" in str(told.value)


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a b", "x" * 65, None, 3])
def test_names(name):
    with pytest.raises(BadUsage):
        check_name(name)


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 201, None, b"k"])
def test_keys(key):
    with pytest.raises(BadUsage):
        check_key(key, "plan.get")
    assert check_name("plan-1.a_b") == "plan-1.a_b"
    assert check_key("route/7 north", "plan.get")
