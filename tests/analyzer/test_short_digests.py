"""Digests in a sentence are as long as people can compare."""

from __future__ import annotations

import pytest

from analyzer.rules.g1_divergent_replicas import _short


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ("0123456789", "9876543210", ("012345", "987654")),
        ("aa", "ab", ("aa", "ab")),
        ("0123456789", "0123456780", ("0123456789", "0123456780")),
    ],
)
def test_they_are_cut_where_they_still_differ(a, b, told):
    assert _short(a, b) == told
