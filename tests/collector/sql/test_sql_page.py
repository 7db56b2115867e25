"""docs/sql.md prints what its queries print. ``UPDATE_GOLDEN=1`` writes the outputs anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cascade_runtime.vocabulary.schema import TABLES
from collector.schema.views import named_views
from collector.sql.limits import MIB, SqlLimits
from dashboard.commands import main
from tests.golden import golden

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
BLOCK = re.compile(r"```sql\n(?P<sql>.*?)```\n\n```text\n(?P<told>.*?)```\n", re.DOTALL)
QUERIES = [found["sql"] for found in BLOCK.finditer(PAGE.read_text())]


def answer(sql, capsys, monkeypatch) -> str:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    capsys.readouterr()
    assert main(["sql", "kill-one", sql]) == 0
    return capsys.readouterr().out


def test_every_query_prints_what_the_page_says(capsys, monkeypatch):
    page = PAGE.read_text()
    made = BLOCK.sub(
        lambda found: (
            f"```sql\n{found['sql']}```\n\n```text\n{answer(found['sql'], capsys, monkeypatch)}```\n"
        ),
        page,
    )
    if golden.updating():
        PAGE.write_text(made)
    assert made == PAGE.read_text(), "run this test with UPDATE_GOLDEN=1 and look at what changed"


def test_there_are_a_dozen_and_each_names_what_there_is():
    assert len(QUERIES) >= 12
    assert page_blocks() == len(QUERIES), "an sql block without its output"
    used = {word for sql in QUERIES for word in re.findall(r"\w+", sql)}
    assert len(used & set(named_views())) >= 6
    assert len(used & set(TABLES)) >= 8


def page_blocks() -> int:
    return PAGE.read_text().count("```sql\n")


@pytest.mark.parametrize(
    "words",
    [
        f"| time | {SqlLimits().time_s:g} s |",
        f"| memory | {SqlLimits().memory_bytes // (1024 * MIB)} GiB |",
        f"| rows | {SqlLimits().num_rows:,}, or `limit` up to {SqlLimits().max_rows:,} |",
        f"| size of the answer | {SqlLimits().output_bytes // MIB} MiB |",
        f"| size of the statement | {SqlLimits().statement_bytes // 1024} KiB |",
        f"| statements at once | {SqlLimits().at_once}, and {SqlLimits().num_waiting} may wait"
        f" up to {SqlLimits().wait_s:g} s |",
    ],
)
def test_the_limits_are_those_of_the_code(words):
    assert words in PAGE.read_text()
