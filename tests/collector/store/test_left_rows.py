"""Sealed rows that stay for followers: what they take up is known without counting it anew."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.hot import left_rows
from collector.hot.left_rows import FOLLOWED_S, LEFT_S, LeftRows

NAMES = st.sampled_from(["steps", "updates"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("sealed"), NAMES, st.lists(st.integers(1, 9), max_size=3)),
        st.tuples(st.just("followed")),
        st.tuples(st.just("passed"), st.sampled_from([0.1, LEFT_S / 2, LEFT_S, FOLLOWED_S])),
        st.tuples(st.just("forget")),
    ),
    max_size=30,
)


def rows(number):
    return pa.table({"seq": list(range(number))})


@given(ACTS)
def test_the_bytes_are_those_of_the_chunks_that_are_here(acts):
    clock = [0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(left_rows, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        left = LeftRows()
        for act, *of in acts:
            if act == "sealed":
                chunks = [rows(number) for number in of[1]]
                left.sealed(of[0], chunks, [chunk.nbytes for chunk in chunks])
            elif act == "passed":
                clock[0] += of[0]
            else:
                getattr(left, act)()
            kept = [chunk for chunks in left._left.values() for chunk in chunks]
            assert left.num_bytes == sum(chunk.rows.nbytes for chunk in kept)
            left.forget()
            assert all(chunk.at_s >= clock[0] - LEFT_S for c in left._left.values() for chunk in c)
        clock[0] += LEFT_S + 1
        assert left.tables() == {} and left.num_bytes == 0
