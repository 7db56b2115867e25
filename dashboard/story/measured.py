"""Whether devices were measured. What was not measured is never shown as zero."""

from __future__ import annotations

from dashboard.story.facts import Facts
from dashboard.story.words import plain

CPU_SAMPLE = "detector = 'cpu' AND signal = 'cpu_busy' AND unit = 'percent'"
"""Which rows of ``health`` are samples of a rank's process, as SQL. Several threads can be busy at once:
above 100 percent counts as 100."""

_ASK = f"""
SELECT
    EXISTS (FROM gpu WHERE util_pct IS NOT NULL) AS gpu,
    EXISTS (FROM health WHERE {CPU_SAMPLE} AND value IS NOT NULL) AS cpu,
    EXISTS (FROM compute WHERE end_ns IS NOT NULL) AS compute
"""


class MeasuredKeeper:
    """Asks whether there are samples; what was once measured stays so."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._known = {"gpu": False, "cpu": False, "compute": False}

    def of(self, facts: Facts, version: str) -> dict[str, dict[str, str]]:
        """State and reason of ``waits``, ``gpu`` and ``cpu``."""
        if self._version != version and not all(self._known.values()):
            (found,) = facts.source.query_whole(_ASK).to_pylist()
            self._known = {name: self._known[name] or bool(found[name]) for name in self._known}
            self._version = version
        return {"waits": _waits(facts), "gpu": self._gpu(facts), "cpu": self._cpu(facts)}

    def _gpu(self, facts: Facts) -> dict[str, str]:
        if self._known["gpu"]:
            return {"state": "measured", "why": ""}
        device = any(row["has_device"] for row in facts.rows.actors)
        why = "the ranks name GPUs, but no sample came" if device else "no NVML on these hosts"
        return {"state": "not_measured", "why": why}

    def _cpu(self, facts: Facts) -> dict[str, str]:
        if self._known["cpu"] or self._known["compute"]:
            return {"state": "measured", "why": ""}
        return {"state": "not_measured", "why": "no sample of the ranks' processes in this run"}


def _waits(facts: Facts) -> dict[str, str]:
    """Waits come of collectives. Where some were refused and others not, ``why`` says which."""
    if "collectives" not in facts.rows.counts:
        return {"state": "not_measured", "why": "no collective was recorded in this run"}
    waits = None if facts.report is None else facts.report.waits
    why = plain(waits.refused, 400) if waits is not None and waits.refused else ""
    refused = waits is not None and bool(why) and not waits.by_rank
    return {"state": "not_measured" if refused else "measured", "why": why}
