"""The referee: what a trace proves about consistency, and who waited for whom.

``analyze(source)`` is the one entry. numpy, numba and pyarrow are imported on the first call, so
that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cascade_runtime.vocabulary.ports import TraceSource
    from cascade_runtime.vocabulary.report import Report

__dist__ = "cascade-timelines"
__all__ = ["Analysis", "analyze"]


class Analysis(NamedTuple):
    """The answer on one trace."""

    report: Report
    """What ``cascade analyze --json`` prints (design contract 4.5)."""
    results: dict[str, Any]
    """Result tables by name, each a pyarrow.Table (design contract 4.3)."""


def analyze(source: TraceSource) -> Analysis:
    """Judge a trace by every rule, and measure its waits and regimes.

    Args:
        source: a trace that can be read table by table; nothing is written to it.

    Returns:
        The report and the result tables regime_intervals, waits, violations, checks, suspects and
        clock_fit.
    """
    from analyzer.analysis import run  # noqa: PLC0415  # numba is loaded only when asked

    return run(source)
