"""Whether devices were measured. What was not measured is never shown as zero."""

from __future__ import annotations

from dashboard.story.facts import Facts

_ASK = """
SELECT
    EXISTS (FROM gpu WHERE util_pct IS NOT NULL) AS gpu,
    EXISTS (FROM health WHERE detector = 'cpu' AND signal = 'cpu_busy' AND value IS NOT NULL) AS cpu,
    EXISTS (FROM compute WHERE end_ns IS NOT NULL) AS compute
"""


class MeasuredKeeper:
    """Asks whether there are samples; what was once measured stays so."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._known = {"gpu": False, "cpu": False, "compute": False}

    def of(self, facts: Facts, version: str) -> dict[str, dict[str, str]]:
        """State and reason of ``gpu`` and ``cpu``."""
        if self._version != version and not all(self._known.values()):
            (found,) = facts.source.query_whole(_ASK).to_pylist()
            self._known = {name: self._known[name] or bool(found[name]) for name in self._known}
            self._version = version
        return {"gpu": self._gpu(facts), "cpu": self._cpu(facts)}

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
