from __future__ import annotations

import pytest

from collector.trace.samples import sample_traces
from tests.dashboard.report.kit import report_of

SAMPLES = ("clean", "kill-one")


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """The reports of the packaged samples, by name."""
    folder = tmp_path_factory.mktemp("reports")
    traces = sample_traces()
    return {name: report_of(traces[name], folder / f"{name}.html") for name in SAMPLES}
