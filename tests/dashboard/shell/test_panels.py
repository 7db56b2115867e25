"""Every chart on every sample: its statement runs, its figure is plain data in our own colours."""

from __future__ import annotations

import json
import re

import pytest

from cascade_runtime.vocabulary.plug import discover
from collector.trace.samples import sample_traces
from dashboard import panels
from dashboard.shell.pages.waits import with_layout
from dashboard.story import sources_of_trace
from tests.dashboard.shell.conftest import judged
from tests.serving import ROOT

PANELS = discover(panels)
THEME = (ROOT / "dashboard" / "assets" / "theme.css").read_text()
each = pytest.mark.parametrize("panel", PANELS.values(), ids=list(PANELS))


@pytest.fixture(scope="module", params=sorted(sample_traces()))
def source(request):
    opened = sources_of_trace(request.param)
    yield judged(opened).only
    opened.close()


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@each
def test_of_every_sample(panel, source):
    table = source.query(panel.sql)
    figure = panel.figure(table)
    assert figure is not None or table.num_rows == 0
    if figure is None:
        return
    whole = with_layout(figure)
    assert json.loads(json.dumps(whole)) == whole
    num = sum(len(trace["x"]) for trace in whole["data"])
    assert num >= table.num_rows
    assert all(trace["hovertemplate"] for trace in whole["data"])


@each
def test_of_nothing(panel, sources):
    table = sources.only.query(panel.sql)
    assert panel.figure(table.slice(0, 0)) is None
    assert panel.empty and panel.title


@each
def test_colours_are_the_theme_s(panel, sources):
    figure = with_layout(panel.figure(sources.only.query(panel.sql)))
    found = list(strings(figure))
    tokens = {text.removeprefix("token:") for text in found if text.startswith("token:")}
    assert tokens
    for token in tokens:
        assert f"--{token}:" in THEME
    assert not [text for text in found if re.fullmatch(r"#[0-9a-fA-F]{3,8}|[a-z]+", text)
                and text.startswith("#")]  # fmt: skip
