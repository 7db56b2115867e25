"""Every page: it opens, shows what it is for, keeps the policy, asks no other host, and can be read."""

from __future__ import annotations

import pytest

from tests.browser.conftest import run_path
from tests.browser.visit import serious
from tests.dashboard.pages import PAGES

NOT_FOUND = "status of 404"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("which", ["kill_one", "broken"])
def test_a_page_opens_and_can_be_read_in_both_themes(request, visit, which, name):
    if which == "broken" and name not in ("run", "waits", "violations"):
        pytest.skip("the same page as of the other run")
    command = request.getfixturevalue(which)
    path, there = PAGES[name]
    v = visit(command.base, expected=NOT_FOUND if name in ("nowhere", "unknown run") else "")
    page = v.open(path if path.startswith("/dash/") else run_path(command, path), there)
    assert page.title().strip() and page.locator("h1, h2").count()
    assert page.locator("html").get_attribute("lang") == "en"
    if name == "run":
        page.wait_for_selector("canvas.ct-base")
        v.settled()
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_pages_lead_to_each_other_without_loading_anew(visit, kill_one):
    v = visit(kill_one.base)
    page = v.open("/dash/runs", ".ag-row .cs-link")
    page.evaluate("window.same = true")
    page.locator(".ag-row .cs-link").first.click()
    page.wait_for_selector("#cascade-run .cr-verdict-word")
    for name, there in (
        ("Waits", ".js-plotly-plot"),
        ("Violations", ".cs-notice"),
        ("SQL", "#sql-text"),
    ):
        page.get_by_role("link", name=name, exact=True).first.click()
        page.wait_for_selector(there)
    page.get_by_role("link", name="CASCADE", exact=True).click()
    page.wait_for_selector(".ag-row .cs-link")
    page.get_by_role("link", name="Health", exact=True).click()
    page.wait_for_selector("#health .cs-notice")
    page.go_back()
    page.wait_for_selector(".ag-row .cs-link")
    assert page.evaluate("window.same === true")


def test_a_violation_of_the_list_leads_to_its_moment(visit, broken):
    v = visit(broken.base)
    page = v.open(run_path(broken, "/violations"), ".ag-row .cs-link")
    page.locator(".ag-row .cs-link").first.click()
    page.wait_for_selector(".cr-claim")
    v.until(lambda: v.query.get("sel", "").startswith("violation:L3"), "it is selected")
    assert "L3" in page.get_by_role("region", name="Violation").first.inner_text()
