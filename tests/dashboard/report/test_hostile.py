"""Names from a trace stay text, wherever a report puts them."""

from __future__ import annotations

import base64
import re
import zlib

import msgspec
import pytest

from tests.analyzer.runs import kill_one_run
from tests.dashboard.report.kit import opened, report_of
from tests.dashboard.story.kit import trace_of

pytestmark = pytest.mark.browser

ENDS = "</script><script>window.broken=1</script><!-- </title></style><img src=x onerror=window.broken=1>"


def hostile_run():
    s = kill_one_run(dead=1)
    for table, row in s.rows:
        for column in ("name", "host", "object", "debt_id", "label", "signal"):
            if isinstance(row.get(column), str) and (table, column) != ("membership", "reason"):
                row[column] = ENDS + row[column]
        row["group_id"] = ENDS
    return s


def test_hostile_names_do_no_harm(chromium, tmp_path):
    path = report_of(trace_of(hostile_run(), tmp_path / "t", name=ENDS), tmp_path / "r.html")
    text = path.read_text()
    assert ENDS not in text and "<img" not in text
    named = re.search(r'id="cascade-story">([^<]*)</script>', text)
    held = msgspec.json.decode(zlib.decompress(base64.b64decode(named[1])))
    assert held["story"]["run"]["name"].startswith("</script>")
    with opened(chromium, path) as shown:
        page = shown.page
        assert page.evaluate("window.broken") is None
        assert page.title().startswith("</script>")
        assert page.inner_text(".rp-name").startswith("</script>")
        assert page.locator("img").count() == 0
        assert page.locator("script[data-file]").count() == text.count("<script data-file=")


def test_nothing_else_may_run(chromium, samples):
    """The policy of the file: no other script, no evaluated text, no request."""
    with opened(chromium, samples["clean"]) as shown:
        page = shown.page
        page.evaluate(
            """() => {
              const script = document.createElement("script");
              script.textContent = "window.broken = 1";
              document.body.append(script);
              const button = document.createElement("button");
              button.setAttribute("onclick", "window.broken = 2");
              document.body.append(button);
              button.click();
            }"""
        )
        assert page.evaluate("window.broken") is None
        blocked = page.evaluate(
            """() => fetch("http://127.0.0.1:9/").then(() => "sent", (error) => error.name)"""
        )
        assert blocked == "TypeError"
        policy = page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content")
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert all("Content Security Policy" in said for said in shown.errors)
        shown.errors.clear()
