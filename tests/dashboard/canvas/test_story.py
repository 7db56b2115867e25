"""The story's bytes in the browser: every column is what the server has, and a torn body says so."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.story.model import Regimes
from dashboard.story.packed_story import framed
from tests.dashboard.story.test_packed_story import regimes

pytestmark = pytest.mark.browser

READ = """(bodies) => bodies.map((text) => {
  const { buffer } = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const story = Cascade.decodeStory(buffer);
  const { groups, chains, epoch, regime, start_ns, end_ns } = story.regimes;
  const found = { rank: [], incarnation: [], group: [], epoch: [...epoch], regime: [...regime], start_ns: [...start_ns], end_ns: [...end_ns] };
  chains.first.forEach((first, c) => {
    for (let i = first; i < (chains.first[c + 1] ?? regime.length); i += 1) {
      found.rank.push(chains.rank[c]);
      found.incarnation.push(chains.incarnation[c]);
      found.group.push(groups[chains.group[c]]);
    }
  });
  const ranges = ["plan", "world"].map((group) => [...Cascade.rankRanges(story.regimes, group)]);
  return { name: story.name, found, ranges };
})"""


def coded(body):
    return base64.b64encode(body).decode()


@settings(max_examples=5, deadline=None)
@given(told=st.lists(regimes(), min_size=20, max_size=30))
def test_regimes_are_what_the_server_has(plain, told):
    bodies = [coded(framed({"name": "ü"}, one)) for one in told]
    for one, got in zip(told, plain.evaluate(READ, bodies), strict=True):
        assert got["name"] == "ü"
        assert Regimes(**got["found"]) == one
        for group, ranges in zip(("plan", "world"), got["ranges"], strict=True):
            for rank, (begin, end) in ranges:
                inside = set(range(begin, end))
                who = zip(one.group, one.rank, strict=True)
                assert inside == {i for i, key in enumerate(who) if key == (group, rank)}


@pytest.mark.parametrize("cut", [0, 3, 20, -8])
def test_a_torn_story_says_so(plain, cut):
    told = Regimes(
        rank=[0], incarnation=[0], group=["world"], epoch=[0], regime=[1], start_ns=[0], end_ns=[5]
    )
    said = plain.evaluate(
        """(text) => {
          const { buffer } = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
          try { return String(Cascade.decodeStory(buffer)); } catch (error) { return [error.kind, error.message]; }
        }""",
        coded(framed({}, told)[:cut] if cut else b""),
    )
    assert said == ["bad", "the server sent a story that cannot be read; reload the page"]
