"""Whether a run has samples of its devices and processes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from collector.storage._interface import News
from dashboard.story.source import RunSource

CPU_SAMPLE = "detector = 'cpu' AND signal = 'cpu_busy' AND unit = 'percent'"
"""Which rows of ``health`` are samples of a rank's process, as SQL. Several threads can be busy at once:
above 100 percent counts as 100."""

_ASK = f"""
SELECT
    EXISTS (FROM gpu WHERE util_pct IS NOT NULL) AS gpu,
    EXISTS (FROM health WHERE {CPU_SAMPLE} AND value IS NOT NULL) AS cpu,
    EXISTS (FROM compute WHERE end_ns IS NOT NULL) AS compute
"""


class SampleKeeper:
    """Finds out whether there are samples; what was once measured stays so.

    Args:
        source: the run.
    """

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._version: str | None = None
        self._place: dict[str, int] | None = None
        self._known = dict.fromkeys(("gpu", "cpu", "compute"), False)

    def as_of(self, version: str, news: News | None) -> dict[str, bool]:
        """Whether there is any sample of ``gpu``, ``cpu`` and ``compute``."""
        if self._version != version and not all(self._known.values()):
            found = self._among(news)
            if found is None:
                answer, news = self._source.query_at(_ASK)
                (found,) = answer.to_pylist()
            self._known = {name: self._known[name] or bool(found[name]) for name in self._known}
            self._version, self._place = version, None if news is None else news.place
        return self._known

    def _among(self, news: News | None) -> dict[str, bool] | None:
        """The same of the rows that came since; None when they are not at hand."""
        if news is None or self._place is None:
            return None
        found = {}
        for name, table in (("gpu", "gpu"), ("cpu", "health"), ("compute", "compute")):
            parts = news.after(self._place, table)
            if parts is None:
                return None
            found[name] = any(bool(pc.any(_is_sample(name, rows)).as_py()) for rows in parts)
        return found


def _is_sample(name: str, rows: pa.Table) -> pa.ChunkedArray:
    """What _ASK asks, of rows at hand; null counts as no."""
    if name == "gpu":
        return pc.is_valid(rows["util_pct"])
    if name == "compute":
        return pc.is_valid(rows["end_ns"])
    of_cpu = pc.and_(pc.equal(rows["detector"], "cpu"), pc.equal(rows["signal"], "cpu_busy"))
    in_percent = pc.and_(pc.equal(rows["unit"], "percent"), pc.is_valid(rows["value"]))
    return pc.and_(of_cpu, in_percent)
