"""docs/schema.md is what the code says."""

from __future__ import annotations

from pathlib import Path

from cascade_runtime.vocabulary.schema import TABLES
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
