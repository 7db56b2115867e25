"""Facts of the packaged samples that a new recording changes: which run it is."""

from __future__ import annotations

import json

from collector.trace.samples import sample_traces


def run_id_of(name: str) -> str:
    """The run that the sample of this name was recorded from."""
    return str(json.loads((sample_traces()[name] / "trace.json").read_text())["run_id"])
