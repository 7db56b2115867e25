"""What is shown when there is nothing, not all of it, no collector, or no permission."""

from __future__ import annotations

import httpx
import msgspec
import pytest

from cascade_runtime.vocabulary.trace_meta import format_trace_meta
from collector.trace.samples import resolve_trace
from collector.trace.trace_folder import open_trace
from collector.web.tokens import Tokens
from collector.wire.arrow_body import encode_arrow
from collector.wire.batch import ARROW
from tests.analyzer.runs import kill_one_run
from tests.browser.visit import serious
from tests.dashboard.story.kit import trace_of
from tests.live.servers import Server
from tests.live.test_live_analysis import running, slices
from tests.serving import replayed, started

REFUSED = "ERR_CONNECTION|Failed to load resource|Failed to fetch"


def announce(url, meta):
    body, head = format_trace_meta(meta), {"content-type": "application/json"}
    answer = httpx.put(f"{url}/v1/runs/{meta.run_id}", content=body, headers=head, timeout=60)
    assert answer.status_code == 204, answer.text


class Job:
    """The rows of a sample, sent to a collector part by part as a running job sends them."""

    def __init__(self, url, parts=4):
        self.url = url
        self.parts = iter(slices("kill-one", parts))
        with open_trace(resolve_trace("kill-one")) as source:
            self.meta = source.meta
        self.path = f"/dash/run/{self.meta.run_id}"
        self.put(running(self.meta))

    def put(self, meta):
        announce(self.url, meta)

    def send(self):
        body, head = encode_arrow(next(self.parts)), {"content-type": ARROW}
        answer = httpx.post(f"{self.url}/v1/events", content=body, headers=head, timeout=60)
        assert answer.is_success, answer.text

    def end(self):
        for _ in range(10):
            try:
                self.send()
            except StopIteration:
                break
        self.put(self.meta)


@pytest.fixture(scope="module")
def collector(chromium, tmp_path_factory):
    """``cascade serve`` on a data folder of its own, empty at first."""
    server = Server(tmp_path_factory.mktemp("collector") / "data")
    yield server
    server.stop()


def test_an_empty_collector_says_how_to_begin(visit, collector):
    v = visit(collector.url, expected="status of 404")
    page = v.open("/dash/runs", ".cs-notice")
    said = v.text(".cs-notice")
    assert "no run yet" in said and "cascade demo" in said
    assert serious(page) == []
    page = v.open("/dash/run/nope", ".cs-notice")
    assert "no run yet" in v.text(".cs-notice") and "nope" in v.text("#page")
    assert serious(page) == []
    page = v.open("/dash/health", "#health .cs-notice")
    assert serious(page) == []
    page = v.open("/dash/sql?q=FROM+actors", "#sql-text")
    v.until(lambda: page.locator("#sql-problem").count() or v.text("#sql-said"), "it is answered")


def test_a_live_run_goes_on_by_itself_and_its_collector_may_die(visit, collector):
    job = Job(collector.url)
    near, far = (visit(collector.url, expected=REFUSED) for _ in range(2))
    for v in (near, far):
        v.open(job.path, ".cr-badges")
        v.until_text(".cr-badges", "waiting for the first row")
        v.page.evaluate("window.same = true")
    job.send()
    for v in (near, far):
        v.until_text(".cr-badges", "live")
        v.until(lambda v=v: v.query.get("follow") == "1", "it follows")
    # One of the two looks at the beginning from now on; the other goes on following.
    near.page.keyboard.press("Home")
    near.until(lambda: near.number("t") == 0 and "follow" not in near.query, "it stands")
    before = near.query
    time_of = ".cr-replay output"
    at = far.text(time_of)
    job.send()
    far.until(lambda: far.text(time_of) != at, "the axis goes on")
    far.until(lambda: far.page.locator(".cr-incident, .cr-tick").count(), "the walk is marked")
    assert near.query == before
    assert far.query["follow"] == "1"

    collector.kill()
    for v in (near, far):
        v.until_text(".cr-problem [role=alert]", "does not answer since .*; retrying")
        assert "the last that came" in v.text(".cr-problem")
        assert "out of reach" in v.text(".cr-badges")
    assert serious(far.page) == []
    collector.start()
    for v in (near, far):
        v.until(lambda v=v: not v.page.locator(".cr-problem [role=alert]").count(), "it is gone")
    at = far.text(time_of)
    job.send()
    far.until(lambda: far.text(time_of) != at, "the axis goes on")
    job.end()
    for v in (near, far):
        v.until_text(".cr-badges", "^ended")
        v.until_text(".cr-verdict-word", "^ok$")
        assert v.page.evaluate("window.same === true")
        assert v.text(".cs-head .cs-badge") == "ended"
    # Who followed sees the whole of this short run, at its worst; who had moved stays where he was.
    far.until(lambda: far.query.get("sel", "").startswith("walk:"), "the worst is chosen")
    assert far.number("a") <= 0 and far.number("b") > 4e9 and "follow" not in far.query
    assert near.query == before
    far.until(lambda: not far.page.locator(".cr-sofar").count(), "all figures are final")


def test_a_run_that_has_ended_is_shown_when_its_collector_is_gone(visit, tmp_path):
    with replayed("clean") as command:
        v = visit(command.base, expected=REFUSED)
        page = v.open(command.url, "canvas.ct-base")
        v.until_text(".cr-verdict-word", "^ok$")
        command.stop()
        page.get_by_role("button", name="View as table").click()
        v.until_text("dialog [role=alert]", "did not come: the collector does not answer")
        page.keyboard.press("Escape")
        assert v.text(".cr-verdict-word") == "ok"


def test_what_is_missing_is_called_missing(visit, tmp_path):
    trace = trace_of(kill_one_run(dead=2), tmp_path / "t", without=(3,))
    with replayed(trace) as command:
        v = visit(command.base)
        page = v.open(command.url, "canvas.ct-base")
        said = v.until_text(".cr-problem", r"missing: \{3\}")
        assert "unknown, not fine" in said
        v.until_text(".cr-verdict-word", "^unknown$")
        assert serious(page) == []
        v.close()


@pytest.mark.parametrize(
    ("run_id", "plan", "said"),
    [
        ("waits", None, "Waiting for the first row. This page fills by itself."),
        ("demo-waits", ["It begins."], "Waiting for the demo's first row"),
    ],
)
def test_a_run_without_a_row_says_what_it_waits_for(visit, collector, run_id, plan, said):
    with open_trace(resolve_trace("kill-one")) as source:
        meta = msgspec.structs.replace(running(source.meta), run_id=run_id, story=plan)
    announce(collector.url, meta)
    v = visit(collector.url)
    page = v.open(f"/dash/run/{run_id}", ".cr-verdict-line")
    told = v.until_text(".cr-verdict-line", said)
    assert run_id in v.text(".cr-facts")
    if not plan:
        assert f"cascade run --collector {collector.url} " in v.text(".cr-acts")
    if plan:
        assert page.locator(".cr-acts").is_hidden()
        assert "It begins." in v.text(".cr-plan")
        assert "cascade run" not in told
    assert serious(page) == []


def test_many_runs_are_one_list_and_say_who_took_part(visit, collector):
    """Of a run that has sent nothing yet it is only known how many take part."""
    with open_trace(resolve_trace("kill-one")) as source:
        meta = running(source.meta)
    for number in range(40):
        name = f"a run with a rather long name, number {number}"
        announce(collector.url, msgspec.structs.replace(meta, run_id=f"many-{number}", name=name))
    v = visit(collector.url, viewport={"width": 390, "height": 844})
    page = v.open("/dash/runs", ".ag-row")
    v.until_text(".cs-title", r"\d+ in all")
    # The page itself does not scroll sideways: the table does.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    heads = page.locator(".ag-header-cell-text").all_inner_texts()
    assert "Lasted" not in heads and "Actors" not in heads
    assert serious(page) == []


def test_many_runs_are_filtered_and_a_run_without_a_row_is_waiting(visit, collector):
    with open_trace(resolve_trace("kill-one")) as source:
        meta = running(source.meta)
    for number in range(14):
        announce(
            collector.url, msgspec.structs.replace(meta, run_id=f"f-{number}", name=f"f {number}")
        )
    v = visit(collector.url)
    page = v.open("/dash/runs", ".ag-row")
    rows = page.locator(".ag-center-cols-container .ag-row")
    page.get_by_label("Filter runs").fill("f-13 waiting")
    v.until(lambda: rows.count() == 1, "one is left")
    said = rows.first.inner_text()
    assert "no row yet" in said and "5 expected" in said and "live" not in said
    assert serious(page) == []


def test_where_nothing_was_broken_it_is_shown_what_was_checked(visit, clean):
    v = visit(clean.base)
    page = v.open(f"/dash/run/{clean.ready['run_id']}/violations", ".ag-row")
    assert "checks could be made" in v.text(".cs-notice")
    assert page.locator(".cs-verdict-ok").first.inner_text().endswith("ok")
    assert serious(page) == []


def test_an_address_that_no_page_has_is_a_page(visit, collector):
    v = visit(collector.url, expected="status of 404")
    page = v.open("/xyz", ".cs-notice")
    assert "There is no page at /xyz" in v.text(".cs-notice")
    assert serious(page) == []
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url("**/dash/runs")


def test_a_slow_first_tile_is_loading_and_neither_nought_nor_no_row(visit):
    with replayed("clean") as command:
        v = visit(command.base)
        held, free = [], []

        def hold(route):
            if free:
                route.continue_()
            else:
                held.append(route)

        for what in ("tile", "window"):
            v.page.route(f"**/v1/runs/*/{what}?*", hold)
        page = v.open(command.url, "canvas.ct-base")
        v.until(lambda: len(held) >= 2, "tile and window are asked for")
        page.get_by_role("button", name="View as table").click()
        v.until_text("dialog [role=status]", "^loading…$")
        page.keyboard.press("Escape")
        page.locator("canvas.ct-overlay").hover(position={"x": 400, "y": 400})
        v.until_text(".ct-card", "loading…")
        assert "no sample here" not in v.text(".ct-card")
        free.append(True)
        for route in held:
            route.continue_()
        page.locator("canvas.ct-overlay").hover(position={"x": 410, "y": 400})
        v.until(lambda: "loading…" not in v.text(".ct-card"), "it is there")
        v.close()


def test_a_token_is_asked_for_once(visit, tmp_path):
    token = Tokens(tmp_path).add("me", "read")
    words = ("serve", "--data", tmp_path, "--port", 0, "--json", "--no-analysis")
    with started(*words) as command:
        v = visit(command.base, expected="status of 40[14]")
        page = v.open("/dash/run/x?t=5", "form")
        assert serious(page) == []
        page.emulate_media(color_scheme="dark")
        assert serious(page) == []
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("[role=alert]")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector(".cs-head")
        assert page.url == f"{command.base}/dash/run/x?t=5"
        v.open("/dash/runs", ".cs-notice")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/sign-in")
        page.goto(f"{command.base}/dash/runs")
        page.wait_for_selector("form")
        v.close()
