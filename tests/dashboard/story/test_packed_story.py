"""A story as the page reads it: nothing is lost on the way, and what is slow to tell is not waited for."""

from __future__ import annotations

import gzip
import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.story.model import Regimes
from dashboard.story.packed_story import framed
from dashboard.story.teller import Teller
from tests.collector.web.asgi import ask
from tests.dashboard.story.test_routes import GZIP, RUN, app, get

__all__ = ["app"]

COLUMNS = ("group", "rank", "incarnation", "epoch", "regime", "start_ns", "end_ns")


@st.composite
def regimes(draw):
    """Sorted as a story's are; lives may overlap, and times be anything a browser can hold."""
    rows = []
    for group, rank in itertools.product(("plan", "world"), range(draw(st.integers(0, 3)))):
        for life in range(draw(st.integers(0, 2))):
            at = draw(st.integers(-(10**6), 1 << 52))
            for _ in range(draw(st.integers(0, 4))):
                at += draw(st.sampled_from([0, 0, 1, 2**33, 10**13]))
                end = at + draw(st.sampled_from([0, 1, 999, 2**40]))
                epoch = draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**40, -(2**31) - 1]))
                rows.append((group, rank, life, epoch, draw(st.integers(0, 2)), at, end))
    rows.sort(key=lambda row: (row[0], row[1], row[5]))
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return Regimes(**{name: list(values) for name, values in zip(COLUMNS, columns, strict=True)})


def read(body):
    """(story, regimes) of a framed story, by the words of its documentation."""
    size = int.from_bytes(body[:4], "little")
    assert (4 + size) % 8 == 0
    head = msgspec.json.decode(body[4 : 4 + size])
    how = head["regimes"]
    chains, num = how["chains"], how["num"]
    arrays = {
        a["name"]: np.frombuffer(body, f"<{a['dtype']}", num, 4 + size + a["offset"]).tolist()
        for a in how["arrays"]
    }
    found = Regimes(epoch=[int(n) for n in arrays["epoch"]], regime=arrays["regime"])
    ends = [*chains["first"][1:], num]
    for at, first in enumerate(chains["first"]):
        now = chains["begin_ns"][at]
        for i in range(first, ends[at]):
            now += int(arrays["since"][i])
            found.group.append(how["groups"][chains["group"][at]])
            found.rank.append(chains["rank"][at])
            found.incarnation.append(chains["incarnation"][at])
            found.start_ns.append(now)
            found.end_ns.append(now + int(arrays["length"][i]))
    return head["story"], found


@settings(max_examples=60, deadline=None)
@given(told=regimes())
def test_regimes_come_back(told):
    story, found = read(framed({"a": "ü"}, told))
    assert story == {"a": "ü"}
    assert found == told


@pytest.mark.parametrize("epoch", [-(2**63), -(2**31) - 1, -(2**31), 2**31 - 1, 2**31])
def test_an_epoch_at_the_end_of_a_width_comes_back(epoch):
    columns = {"rank": 0, "incarnation": 0, "group": "w", "epoch": epoch, "regime": 0}
    columns |= {"start_ns": 0, "end_ns": 1}
    told = Regimes(**{name: [value] for name, value in columns.items()})
    assert read(framed({}, told))[1] == told


def test_a_page_s_story_is_the_story(app):
    whole = get(app, f"{RUN}/story").json
    packed, plain = (get(app, f"{RUN}/story?packed=1", headers) for headers in (GZIP, ()))
    assert plain.headers["content-type"] == "application/octet-stream"
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    story, found = read(plain.body)
    assert found == msgspec.convert(whole["regimes"], Regimes)
    assert story["regimes"] == msgspec.to_builtins(Regimes())
    assert story | {"regimes": 0} == whole | {"regimes": 0}
    version = story["version"]
    assert get(app, f"{RUN}/story?packed=1&if_version={version}").status == 304


def test_it_is_packed_once(app, monkeypatch):
    get(app, f"{RUN}/story?packed=1")
    monkeypatch.setattr("dashboard.story.teller.framed", None)
    assert get(app, f"{RUN}/story?packed=1").status == 200


@pytest.mark.parametrize("is_told", [True, False])
def test_who_asks_soon_is_not_kept_waiting(app, monkeypatch, is_told):
    told = Teller.pulse

    def pulse(self):
        return told(self) | {"is_told": is_told}

    monkeypatch.setattr(Teller, "pulse", pulse)
    answer = ask(app, "GET", f"/v1/runs/{RUN}/story?packed=1&soon=1")
    assert (answer.status, bool(answer.body)) == ((200, True) if is_told else (204, False))
