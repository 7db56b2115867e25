"""Never hurt the job: what only records may not raise into a training step."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_told: set[str] = set()


def guarded(default: Any = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A failure inside costs telemetry, not the step: it is told once on stderr.

    Under ``CASCADE_RERAISE=1`` (tests) it is raised, so that faults are not hidden from developers.
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def inner(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if os.environ.get("CASCADE_RERAISE") == "1":
                    raise
                name = getattr(function, "__qualname__", repr(function))
                if name not in _told:
                    _told.add(name)
                    sys.stderr.write(
                        f"cascade: {name} failed ({type(error).__name__}: {error}); "
                        "training goes on with less telemetry\n"
                    )
                return default  # type: ignore[no-any-return]

        return inner

    return wrap
