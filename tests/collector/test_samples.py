"""A sample is found by its name, a path by being one."""

from __future__ import annotations

import pytest

from cascade_runtime.vocabulary.errors import BadTrace
from collector.trace import samples
from tests.collector.traces import make_trace


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of samples in place of the installed ones."""
    make_trace(tmp_path / "samples" / "lost-rank")
    (tmp_path / "samples" / "slow-link.cascade.zip").write_bytes(b"PK")
    (tmp_path / "samples" / "README.md").write_text("")
    monkeypatch.setattr(samples, "_places", lambda: [tmp_path / "absent", tmp_path / "samples"])
    return tmp_path


def test_a_name_is_a_sample(shelf):
    assert samples.resolve_trace("lost-rank") == shelf / "samples" / "lost-rank"
    assert samples.resolve_trace("slow-link").name == "slow-link.cascade.zip"


def test_a_path_that_exists_wins(shelf, monkeypatch):
    monkeypatch.chdir(shelf)
    make_trace(shelf / "lost-rank")
    assert samples.resolve_trace("lost-rank").resolve() == shelf / "lost-rank"
    assert samples.resolve_trace(str(shelf / "samples")) == shelf / "samples"


@pytest.mark.parametrize("name", ["nope", "../samples/lost-rank/x", "lost-rank.cascade.zip"])
def test_anything_else_lists_the_samples(shelf, name):
    with pytest.raises(BadTrace) as caught:
        samples.resolve_trace(name)
    assert caught.value.hint == "samples: lost-rank, slow-link"


def test_the_installation_is_asked_without_importing_the_dashboard():
    assert samples._places()
    assert all(place.name == "sample_traces" for place in samples._places())
