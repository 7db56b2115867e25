"""Which cases of a large matrix always run; the others are ``long`` and run with ``make long``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, cases: Iterable[Any], ids: Iterable[str] | None = None) -> list[Any]:
    """Every ``number``-th case as it is, the rest marked ``long``: for ``parametrize``.

    Args:
        number: at least 1.
        cases: a value each, or a tuple of values.
        ids: a name each.
    """
    found = list(cases)
    names: list[str | None] = [None] * len(found) if ids is None else list(ids)
    assert len(names) == len(found)
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.long] if i % number else [],
            id=name,
        )
        for i, (case, name) in enumerate(zip(found, names, strict=True))
    ]
