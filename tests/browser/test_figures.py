"""Figures on screen are the run's: tables beside pictures, shares, and the statement behind each."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.browser.conftest import run_path

REGIMES = ("STRONG", "CAUSAL", "EVENTUAL")


def in_seconds(text):
    number, unit = re.fullmatch(r"([\d.,]+) (s|ms|µs|ns)", text).groups()
    return float(number.replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]


def test_the_table_beside_the_timeline_has_the_window_s_numbers(visit, kill_one):
    v = visit(kill_one.base)
    page = v.open(run_path(kill_one), "canvas.ct-base")
    v.settled()
    with page.expect_response(lambda answer: "/window?" in answer.url) as asked:
        page.get_by_role("button", name="View as table").click()
    dialog = page.get_by_role("dialog", name="Timeline as a table")
    dialog.get_by_role("heading", name="By rank").wait_for()
    # Figures that are still being read say so, and follow by themselves.
    v.until(lambda: not re.search("so far|loading…", dialog.inner_text()), "the table is whole")
    wanted = httpx.get(asked.value.url).json()
    bounds = parse_qs(urlsplit(asked.value.url).query)
    assert int(bounds["a"][0]) == max(0, v.number("a"))
    lines = dialog.locator("table").first.locator("tbody tr")
    assert lines.count() == len(wanted["by_rank"]) + 1
    for i, row in enumerate(wanted["by_rank"]):
        cells = lines.nth(i).locator("th, td").all_inner_texts()
        assert cells[0] == str(row["rank"])
        if cells[1] != "no row":
            shares = [float(cell.rstrip("%")) for cell in cells[1:4]]
            assert sum(shares) == pytest.approx(100, abs=1e-9)
            exact = [100 * row["regimes"].get(name, 0) for name in REGIMES]
            assert shares == pytest.approx(exact, abs=0.011)
        for name, cell in (("waited_s", cells[4]), ("caused_s", cells[5])):
            if row[name] is None:
                assert cell == "\N{EN DASH}"
            else:
                assert in_seconds(cell) == pytest.approx(row[name], rel=0.006, abs=1e-9)


@pytest.mark.parametrize("which", ["kill_one", "broken", "clean"])
def test_shares_of_time_sum_to_a_hundred(request, visit, which):
    command = request.getfixturevalue(which)
    v = visit(command.base)
    v.open(run_path(command), "canvas.ct-base")
    facts = v.page.locator(".cr-fact", has_text="Time in each regime").inner_text()
    shares = [float(x) for x in re.findall(r"(?:STRONG|CAUSAL|EVENTUAL) ([\d.]+)%", facts)]
    assert shares and sum(shares) == pytest.approx(100, abs=1e-9)


def test_the_statement_behind_every_figure_runs(visit, broken):
    v = visit(broken.base)
    page = v.open(run_path(broken), "canvas.ct-base")
    v.settled()
    links = [a.get_attribute("href") for a in page.locator("a.cr-sql").all()]
    assert len(links) >= 4
    for path, there in (("/waits", "summary:text('Show SQL')"), ("/violations", ".ag-row")):
        v.open(run_path(broken, path), there)
        for summary in page.get_by_text("Show SQL").all():
            summary.click()
        links += [
            a.get_attribute("href") for a in page.get_by_role("link", name="ask in the box").all()
        ]
    by_statement = {parse_qs(urlsplit(link).query)["q"][0]: link for link in links}
    assert len(by_statement) >= 8
    for statement, link in by_statement.items():
        v.open(link, "#sql-text")
        assert page.locator("#sql-text").input_value() == statement
        v.until(
            lambda: page.locator("#sql-problem").count() or v.text("#sql-said"), "it is answered"
        )
        assert page.locator("#sql-problem").count() == 0, statement
        assert re.match(r"[\d,]+ rows?, ", v.text("#sql-said"))


def test_every_question_of_the_box_runs(kill_one):
    from dashboard.shell.examples import EXAMPLES

    run_id = kill_one.ready["run_id"]
    for example in EXAMPLES:
        body = {"sql": example.sql, "run_id": run_id, "format": "json", "limit": 100}
        answer = httpx.post(f"{kill_one.base}/v1/sql", json=body, timeout=60)
        assert answer.status_code == 200, (example.question, answer.text)


def test_the_sql_box(visit, kill_one, tmp_path):
    v = visit(kill_one.base)
    page = v.open(run_path(kill_one, "/sql"), "#sql-text")
    page.get_by_role("button", name="Who is the straggler?").click()
    v.until_text("#sql-said", r"^\d+ rows, ")
    page.locator(".ag-center-cols-container .ag-row").first.wait_for()
    area = page.locator("#sql-text")
    area.fill("SELECT i, i * i AS squared\nFROM range(20000) AS t(i)")
    area.press("Control+Enter")
    v.until_text("#sql-said", r"^the first 10,000 of 20,000 rows")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    download.value.save_as(tmp_path / "answer.csv")
    lines = (tmp_path / "answer.csv").read_text().splitlines()
    assert lines[0] == "i,squared"
    assert len(lines) == 20_001
    area.fill("SELECT rank,\n  foo\nFROM steps")
    area.press("Control+Enter")
    page.wait_for_selector("#sql-problem[data-line='2']")
    assert "line 2" in v.text("#sql-problem")
    assert page.evaluate("document.getElementById('sql-text').selectionStart") == len(
        "SELECT rank,\n  "
    )
    area.fill("DROP TABLE steps")
    area.press("Control+Enter")
    v.until(lambda: "line 2" not in v.text("#sql-problem"), "another problem")
    assert page.locator("#sql-csv").is_disabled()
