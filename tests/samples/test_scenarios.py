"""Each recorded sample is the scenario of its name: its verdict, its walks, its story ticked line by line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cascade_runtime.vocabulary.report import Report
from collector.trace.samples import sample_traces
from dashboard.demo.scenario import moves_of
from dashboard.demo.scenarios import SCENARIOS

RECORDED = sorted(set(sample_traces()) & set(SCENARIOS))
ROOT = Path(__file__).parents[2]
MAX_LINE = 200
"""Longer ones are cut on the page."""


@pytest.mark.parametrize("name", RECORDED)
def test_it_took_the_walks_that_its_scenario_says(ask, name):
    scenario = SCENARIOS[name]
    answer = ask("analyze", name, "--json")
    report = msgspec.convert(answer.json, Report)
    assert report.verdict == scenario.expected
    assert moves_of(report) == scenario.path
    assert report.debt.open == 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_its_line_is_in_the_papers(name):
    for paper in ("README.md", "sample_traces/README.md"):
        assert f"| `{name}`" in (ROOT / paper).read_text(encoding="utf-8"), paper


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_says_where_it_leads(name):
    """Walks follow each other from STRONG to STRONG, and no line is too long for the page."""
    scenario = SCENARIOS[name]
    at = "STRONG"
    for move in scenario.path:
        assert move.from_regime == at
        at = move.to_regime
    assert at == "STRONG"
    assert [line for line in scenario.story if len(line) > MAX_LINE] == []
