"""The address says where the page looks, and brings one back there."""

import pytest

from tests.dashboard.canvas.stage import HOST, MOUNT, SECOND

pytestmark = pytest.mark.browser

FIELDS = [
    "t",
    "a",
    "b",
    "sel",
    "step",
    "area",
    "flags",
    "lanes",
    "sort",
    "filter",
    "clockMode",
    "theme",
]
LOOK = {
    **{"a": 10.0 * SECOND, "b": 60.0 * SECOND, "t": 41.5 * SECOND, "follow": False},
    **{"sel": "walk:world:1", "area": {"a": 20 * SECOND, "b": 30 * SECOND}, "flags": [5 * SECOND]},
    **{"lanes": {"hidden": ["cpu", "debt"], "folded": ["waited"]}, "sort": "blamed"},
    **{"filter": "no row", "clockMode": "utc", "theme": "dark"},
}
READ = f"() => Object.fromEntries({FIELDS}.map((name) => [name, view[name]]))"


def test_a_view_survives_the_address(mounted):
    mounted.evaluate("(look) => view.set(look)", LOOK)
    before = mounted.evaluate(READ)
    mounted.wait_for_function("location.search.includes('theme=dark')")
    link = mounted.url
    mounted.goto(f"{HOST}/")
    mounted.goto(link)
    mounted.evaluate(MOUNT, {})
    mounted.wait_for_function("view.story")
    assert mounted.evaluate(READ) == before
    assert before["lanes"] == LOOK["lanes"] and before["t"] == LOOK["t"]


def test_an_older_link_that_sorts_by_caused_sorts_by_blame(page):
    page.goto(f"{HOST}/?sort=caused")
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    assert page.evaluate("view.sort") == "blamed"


def test_an_offline_page_keeps_it_after_the_hash(page):
    page.evaluate(MOUNT, {"offline": True})
    page.wait_for_function("view.story")
    page.evaluate("view.seek(12e9)")
    page.wait_for_function("new URLSearchParams(location.hash.slice(1)).get('t') === '12000000000'")
    assert "?" not in page.url


def test_parameters_of_others_stay(page):
    page.goto(f"{HOST}/?other=kept&t=99")
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    page.evaluate("view.seek(3e9)")
    page.wait_for_function("location.search.includes('t=3000000000')")
    assert "other=kept" in page.url


@pytest.mark.parametrize(
    "query",
    [
        "t=abc&a=9&b=3&sel=nonsense&lanes=x&theme=pink&sort=size&clock=tea&area=5&flags=q",
        "t=1e99&a=NaN&b=Infinity&sel=rank:&step=-1.5.2",
        "sel=violation:<img>&group=<b>",
    ],
)
def test_a_link_that_makes_no_sense_opens_the_whole_run(page, query):
    page.goto(f"{HOST}/?{query}")
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    assert page.evaluate("[view.a, view.b]") == page.evaluate("view.extent()")
    assert page.evaluate("[view.sort, view.clockMode, view.lanes, view.group]") == [
        *("id", "start"),
        *(None, "world"),
    ]


def test_without_a_place_it_opens_at_the_first_violation_else_the_worst_incident(page, stub):
    incident = {
        "id": "i",
        "at_ns": 40 * SECOND,
        "end_ns": None,
        "severity": "warning",
        "title": "t",
    }
    incident |= {"kind": "loss", "sel": None, "a_ns": 39 * SECOND, "b_ns": 51 * SECOND}
    stub.story["incidents"] = [incident | {"sentence": "s"}]
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    assert page.evaluate("[view.sel, view.t]") == ["incident:i", 40 * SECOND]
    violation = {"id": "C1:2:0:9", "code": "C1", "name": "n", "rank": 2, "at_ns": 45 * SECOND}
    stub.story["violations"] = [violation | {"sentence": "s", "steps": []}]
    page.goto(f"{HOST}/?")
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    assert page.evaluate("[view.sel, view.t]") == ["violation:C1:2:0:9", 45 * SECOND]


def judged_after_opening(stub, page, meanwhile=""):
    """Opens while the analyzer is at work; then it has found a violation."""
    stub.story["verdict"] |= {"state": "judging"}
    page.evaluate(MOUNT, {})
    page.wait_for_function("view.story")
    if meanwhile:
        page.evaluate(meanwhile)
    violation = {"id": "C1:2:0:9", "code": "C1", "name": "n", "rank": 2, "at_ns": 45 * SECOND}
    stub.story = stub.story | {
        "version": "2",
        "verdict": stub.story["verdict"] | {"state": "violated"},
        "violations": [violation | {"sentence": "s", "steps": []}],
    }
    page.wait_for_function("view.story.version === '2'")
    return page.evaluate("[view.sel, view.t]")


def test_a_violation_that_is_found_after_opening_is_where_it_opens(page, stub):
    assert judged_after_opening(stub, page) == ["violation:C1:2:0:9", 45 * SECOND]


def test_who_has_moved_meanwhile_stays_there(page, stub):
    found = judged_after_opening(stub, page, f"view.seek({7 * SECOND})")
    assert found[1] == 7 * SECOND and found[0] != "violation:C1:2:0:9"
