"""Hypothesis strategies of the vocabulary, derived from its types: none is written per table."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from cascade_runtime.vocabulary.events import EVENT_TYPES, CollectiveDone
from cascade_runtime.vocabulary.identity import Actor, Clock, Dot
from cascade_runtime.vocabulary.regime import ProductRegime, Regime

LAWS = settings(deadline=None)
"""For cheap properties. No deadline: how long one example takes depends on what else runs here."""

RECORD_TYPES: tuple[type[msgspec.Struct], ...] = (*EVENT_TYPES, CollectiveDone)
"""What a spool record or a wire line may hold."""

RECORD_NAMES = [str(struct.__struct_config__.tag) for struct in RECORD_TYPES]


def regimes() -> st.SearchStrategy[Regime]:
    return st.sampled_from(Regime)


def products() -> st.SearchStrategy[ProductRegime]:
    """Products over a few groups, so that two of them often name different ones."""
    groups = st.sampled_from(["world", "dp0", "dp1", "plan"])
    return st.dictionaries(groups, regimes()).map(ProductRegime)


def dots() -> st.SearchStrategy[Dot]:
    """Dots of few actors with small counters, so that two clocks often meet."""
    return st.builds(Dot, st.integers(0, 2), st.integers(0, 1), st.integers(1, 5))


def clocks() -> st.SearchStrategy[Clock]:
    return st.lists(dots(), max_size=8).map(Clock)


@functools.cache
def instances(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Valid values of a struct type, from its annotations as msgspec reads them."""
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    return st.builds(struct, **{field.name: _values(field.type) for field in info.fields})


def records() -> st.SearchStrategy[Any]:
    """Any record, of any table."""
    return st.sampled_from(RECORD_TYPES).flatmap(instances)


def _values(info: Any) -> st.SearchStrategy[Any]:
    inspect = msgspec.inspect
    match info:
        case inspect.Metadata(type=inner):
            return _values(inner)
        case inspect.UnionType(types=types):
            return st.one_of(*(_values(t) for t in types))
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=low, le=high):
            assert low is not None, "an integer column without bounds has no storage type"
            assert high is not None, "an integer column without bounds has no storage type"
            return st.integers(low, high)
        case inspect.FloatType():
            # JSON has no NaN and no infinity: test_codec says what becomes of them.
            return st.floats(allow_nan=False, allow_infinity=False)
        case inspect.StrType():
            return st.text(max_size=8)
        case inspect.LiteralType(values=words):
            return st.sampled_from(words)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.StructType(cls=cls):
            return instances(cls)
        case inspect.ListType(item_type=item):
            return st.lists(_values(item), max_size=3)
    raise AssertionError(f"no strategy for {info}: teach tests/vocabulary/strategies.py the type")


ACTORS = instances(Actor)
