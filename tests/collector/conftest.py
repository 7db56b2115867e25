from __future__ import annotations

import pytest

from tests.collector.traces import make_trace


@pytest.fixture
def trace(tmp_path):
    """An empty trace folder."""
    return make_trace(tmp_path / "trace")
