"""Whether devices were measured. What was not measured is never shown as zero."""

from __future__ import annotations

from dashboard.story.facts import Facts
from dashboard.story.words import plain


def measured_of(facts: Facts) -> dict[str, dict[str, str]]:
    """State and reason of ``waits``, ``gpu`` and ``cpu``."""
    return {"waits": _waits(facts), "gpu": _gpu(facts), "cpu": _cpu(facts)}


def _gpu(facts: Facts) -> dict[str, str]:
    if facts.samples["gpu"]:
        return {"state": "measured", "why": ""}
    device = any(row["has_device"] for row in facts.rows.actors)
    why = "the ranks name GPUs, but no sample came" if device else "no NVML on these hosts"
    return {"state": "not_measured", "why": why}


def _cpu(facts: Facts) -> dict[str, str]:
    if facts.samples["cpu"] or facts.samples["compute"]:
        return {"state": "measured", "why": ""}
    why = "no sample of the ranks' processes"
    return {"state": "not_measured", "why": f"{why} {_so_far(facts)}"}


def _so_far(facts: Facts) -> str:
    return "so far" if facts.state == "live" else "in this run"


def _waits(facts: Facts) -> dict[str, str]:
    """Waits come of collectives. Where some were refused and others not, ``why`` says which."""
    if "collectives" not in facts.rows.counts:
        return {"state": "not_measured", "why": f"no collective was recorded {_so_far(facts)}"}
    waits = None if facts.report is None else facts.report.waits
    why = plain(waits.refused, 400) if waits is not None and waits.refused else ""
    refused = waits is not None and bool(why) and not waits.by_rank
    return {"state": "not_measured" if refused else "measured", "why": why}
