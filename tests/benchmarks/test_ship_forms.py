"""What the agent ships, and the forms that it does not, can be measured."""

from __future__ import annotations

from tests.benchmarks.test_benchmarks import quick


def test_ship_forms():
    line = quick("ship_forms")
    assert set(line["against"]["us"]) == {"as they are", "arrow", "ndjson", "ndjson, unchecked"}
    assert line["figure"] == line["against"]["us"]["as they are"] > 0
