"""docs/schema.md is what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from cascade_runtime.vocabulary.schema import LEADING, TABLES
from collector.schema.page import schema_page
from collector.schema.views import named_views

ROOT = Path(__file__).parents[2]
CONTRACT = {
    *("regime_timeline", "regime_share", "wasted_barrier_time", "wasted_by_step", "open_debt"),
    *("debt_timeline", "gpu_utilisation", "incidents", "violation_list", "slowest_ranks"),
}


def test_the_committed_page_is_the_generated_one():
    committed = (ROOT / "docs" / "schema.md").read_text()
    assert committed == schema_page(), "run: python -m collector.schema.page > docs/schema.md"


def test_every_table_column_and_view_is_on_it():
    page = schema_page()
    assert set(named_views()) == CONTRACT
    for name in [*TABLES, *named_views()]:
        assert f"\n### {name}\n" in page
    for table in TABLES.values():
        assert all(column.doc for column in table.columns), table.name


def test_the_page_and_the_schema_name_the_same_columns_in_the_same_order():
    """Both ways: nothing is left out, and nothing is told that is not there."""
    told = {
        title: re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE)
        for title, body in re.findall(
            r"^### (\w+)\n(.*?)(?=^##|\Z)", schema_page(), re.MULTILINE | re.DOTALL
        )
    }
    leading = list(LEADING)
    have = {
        table.name: [
            c.name for c in table.columns if table.kind == "result" or c.name not in leading
        ]
        for table in TABLES.values()
    }
    have |= {view.name: [name for name, _ in view.columns] for view in named_views().values()}
    assert told == have
    lead = schema_page().partition("## Event tables")[2].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", lead, re.MULTILINE) == leading


def test_every_result_table_and_named_view_says_of_which_run_a_row_is():
    for table in TABLES.values():
        assert "run_id" in [column.name for column in table.columns], table.name
        if table.kind == "result":
            assert table.columns[-1].name == "run_id" and table.columns[-1].nullable
    for view in named_views().values():
        assert view.columns[-1][0] == "run_id", view.name
