"""Every page in a real browser: the policy holds, nothing is fetched from elsewhere, things work."""

from __future__ import annotations

import re
import time

import pytest

from collector.web.tokens import Tokens
from tests.dashboard.pages import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
WAIT_MS = 60_000


class Watched:
    """A page whose complaints and requests are kept."""

    def __init__(self, context, base):
        self.base = base
        self.complaints = []
        self.foreign = []
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)

    def _console(self, message):
        if message.type == "error" and "status of 404" not in message.text:
            self.complaints.append(message.text)

    def _request(self, request):
        if not request.url.startswith((f"{self.base}/", "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, path):
        self.page.goto(self.base + path)
        self.page.wait_for_selector(".cs-head")
        return self.page

    def check(self):
        assert not self.complaints
        assert not self.foreign


def until(page, holds):
    """Wait for a condition; wait_for_function would need eval, which the policy forbids."""
    deadline = time.monotonic() + WAIT_MS / 1e3
    while not holds():
        assert time.monotonic() < deadline
        page.wait_for_timeout(50)


@pytest.fixture
def watched(browser, replaying):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    made = Watched(context, replaying.base)
    made.run = f"/dash/run/{replaying.ready['run_id']}"
    yield made
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_holds_and_nothing_comes_from_elsewhere(watched, name):
    path, there = PAGES[name]
    page = watched.open(path if path.startswith("/dash/") else watched.run + path)
    page.wait_for_selector(there)
    assert "CASCADE Timelines" in page.title() or "kill-one" in page.title()
    watched.check()


def test_an_unknown_run_names_those_that_are_here(watched):
    page = watched.open("/dash/run/nope")
    link = page.get_by_role("link", name=re.compile("kill-one"))
    link.click()
    page.wait_for_selector("#cascade-run .cr-run")
    assert page.url.startswith(watched.base + watched.run)


def test_a_theme_is_kept_and_the_system_s_is_followed(watched):
    page = watched.open(watched.run + "/waits")
    root, button = page.locator("html"), page.locator("#cs-theme")
    page.wait_for_selector(".js-plotly-plot .bars")

    def paper():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert root.get_attribute("data-theme") == "light"
    light = paper()
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    assert paper() != light
    button.click()
    page.wait_for_selector("html[data-theme=light]")
    button.click()
    page.wait_for_selector("html[data-theme=dark]")
    page.emulate_media(color_scheme="light")
    watched.open("/dash/runs")
    page.wait_for_selector("html[data-theme=dark]")
    assert page.locator("html").get_attribute("data-ag-theme-mode") == "dark"
    watched.check()


def test_charts_wear_the_theme(watched):
    page = watched.open(watched.run + "/waits")
    page.wait_for_selector(".js-plotly-plot .bars")
    fill = "document.querySelector('.js-plotly-plot .xtick text').style.fill"
    light = page.evaluate(fill)
    page.emulate_media(color_scheme="dark")
    until(page, lambda: page.evaluate(fill) != light)
    watched.check()


def test_a_chart_has_a_table_and_its_statement(watched):
    page = watched.open(watched.run + "/waits")
    panel = page.locator("[data-panel=waste-by-rank]")
    panel.get_by_text("View as table").click()
    assert panel.locator("tbody tr").count() == 4
    panel.get_by_text("Show SQL").click()
    panel.get_by_role("link", name="ask in the box").click()
    page.wait_for_selector(".ag-row")
    assert "slowest_ranks" in page.locator("#sql-text").input_value()


def test_the_sql_box(watched, tmp_path):
    page = watched.open(watched.run + "/sql")
    area = page.locator("#sql-text")
    area.fill("SELECT rank, count(*) AS num\nFROM steps GROUP BY rank ORDER BY rank")
    area.press("Control+Enter")
    page.wait_for_selector("#sql-said:text-matches('4 rows, ')")
    until(page, lambda: page.locator(".ag-center-cols-container .ag-row").count() == 4)
    until(page, lambda: "q=SELECT" in page.url)
    with page.expect_download() as download:
        page.locator("#sql-csv").click()
    download.value.save_as(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text().splitlines()[0] == "rank,num"
    area.fill("SELECT rank,\n  foo\nFROM steps")
    area.press("Control+Enter")
    page.wait_for_selector("#sql-problem[data-line='2']")
    assert page.evaluate("document.getElementById('sql-text').selectionStart") == len(
        "SELECT rank,\n  "
    )
    assert page.locator("#sql-csv").is_disabled()
    page.get_by_role("button", name="What happened?").click()
    page.wait_for_selector("#sql-said:text-matches('5 rows, ')")
    watched.check()


def test_leaving_the_run_view_takes_it_down(watched):
    page = watched.open(watched.run)
    page.wait_for_selector("#cascade-run .cr-run")
    page.get_by_role("link", name="Violations", exact=True).click()
    page.wait_for_selector(".cs-page .cs-title")
    assert page.locator(".cr-run").count() == 0
    page.go_back()
    page.wait_for_selector("#cascade-run .cr-run")
    assert page.locator(".cr-run").count() == 1
    watched.check()


def test_help_opens_and_closes_by_key(watched):
    page = watched.open("/dash/runs")
    page.keyboard.press("?")
    page.wait_for_selector("#cs-help-dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#cs-help-dialog:not([open])", state="attached")


def test_no_run_names_the_next_act_and_a_token_lets_one_in(browser, start, tmp_path):
    token = Tokens(tmp_path).add("me", "read")
    running = start("serve", "--data", tmp_path, "--port", 0, "--json", "--no-analysis")
    context = browser.new_context()
    made = Watched(context, running.base)
    page = made.page
    page.goto(running.base + "/dash/runs")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("[role=alert]")
    made.complaints.clear()  # the browser tells the 401
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(".cs-notice")
    assert "cascade demo" in page.locator(".cs-notice").inner_text()
    assert page.url == running.base + "/dash/runs"
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    # What the page was asking for at that moment is answered with 401, and the browser tells it.
    made.complaints = [line for line in made.complaints if "status of 401" not in line]
    made.check()
    context.close()


def test_the_run_view_needs_nothing_of_dash_and_asks_once(watched):
    asked = []
    watched.page.on("request", lambda request: asked.append(request.url))
    page = watched.open(watched.run)
    page.wait_for_selector(".cr-at-waits .cr-panel")
    page.wait_for_selector("canvas.ct-base")
    assert not [url for url in asked if "_dash" in url]
    assert len([url for url in asked if "/story?" in url]) == 1  # the document's answer is used
    page.get_by_role("link", name="Waits", exact=True).click()
    page.wait_for_selector(".cs-panel .js-plotly-plot .bars")
    assert page.locator("#cascade-run").count() == 0
    page.evaluate("window.same = true")  # from here on Dash leads from page to page
    page.get_by_role("link", name="Timeline", exact=True).click()
    page.wait_for_selector("#cascade-run .cr-run .cr-verdict-word")
    page.get_by_role("link", name="Violations", exact=True).click()
    page.wait_for_selector(".cs-page .cs-title")
    assert page.locator(".cr-run").count() == 0
    page.go_back()
    page.wait_for_selector("canvas.ct-base")
    assert page.evaluate("window.same === true")
    watched.check()
