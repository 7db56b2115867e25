"""What the last analysis says, read once for each analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cascade_runtime.vocabulary.report import Report
from dashboard.story.source import RunSource

MAX_PAIRS = 200

_PAIRS = f"""
WITH by_cause AS (
    SELECT root_rank, rank, cause, count(*) AS num, sum(wait_ns) AS wait_ns
    FROM waits WHERE root_rank IS NOT NULL AND wait_ns > 0 GROUP BY ALL
)
SELECT root_rank AS caused_by, rank AS waited, sum(num)::BIGINT AS num, sum(wait_ns) / 1e9 AS wait_s,
    arg_max(cause, wait_ns) AS cause
FROM by_cause GROUP BY root_rank, rank ORDER BY wait_s DESC, caused_by, waited LIMIT {MAX_PAIRS}
"""  # noqa: S608  # a number of ours

_HELD = f"""
SELECT rank AS waited, root_rank AS absent, min(step) AS step, sum(wait_ns)::BIGINT AS wait_ns
FROM waits WHERE is_open AND cause = 'absent rank' AND wait_ns > 0 AND root_rank IS NOT NULL
GROUP BY ALL ORDER BY wait_ns DESC, waited LIMIT {MAX_PAIRS}
"""  # noqa: S608  # a number of ours


@dataclass(frozen=True)
class JudgedFacts:
    """One analysis.

    Attributes:
        judged_ns: wall clock when it was made.
        upto_ns: wall clock of the last row that it saw; None where that is not known.
        pairs: who made whom wait, with the cause of most of it, largest first, at most MAX_PAIRS.
        held: who waits (at the end, waited) for a rank that never came, as ``pairs``.
        intervals: the result table regime_intervals; only of a trace that does not grow.
    """

    report: Report
    judged_ns: int | None
    upto_ns: int | None
    pairs: list[dict[str, Any]]
    held: list[dict[str, Any]]
    intervals: pa.Table | None


def read_judged(source: RunSource, known: JudgedFacts | None) -> JudgedFacts | None:
    """The last analysis; the one that is known already when it is still that."""
    report, judged_ns = source.report(), source.judged_ns()
    if report is None:
        return None
    if known is not None and known.report is report and known.judged_ns == judged_ns:
        return known
    upto = source.query_whole("SELECT max(end_ns) AS upto FROM regime_intervals")["upto"][0].as_py()
    return JudgedFacts(
        report=report,
        judged_ns=judged_ns,
        upto_ns=upto,
        pairs=source.query_whole(_PAIRS).to_pylist(),
        held=source.query_whole(_HELD).to_pylist(),
        intervals=None if source.is_live else source.results("regime_intervals"),
    )
