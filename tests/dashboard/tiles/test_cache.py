from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from dashboard.tiles import cache
from dashboard.tiles.cache import load, place_of, save
from dashboard.tiles.content import LANES, Content
from dashboard.tiles.encode import pixel_bounds
from dashboard.tiles.percent_native import BLOCK
from tests.collector.traces import make_trace

BOUNDS = pixel_bounds(-10, 90_000, 321)


def content():
    made = Content(7, "judged")
    rng = np.random.default_rng(2)
    start = np.sort(rng.integers(0, 80_000, 900))
    made.waits.add(rng.integers(0, 5, 900), start, start + 90, rng.integers(-1, 5, 900))
    made.gpu.add(rng.integers(0, 80_000, 2 * BLOCK), rng.uniform(0, 100, 2 * BLOCK))
    made.busy.add(np.array([1]), np.array([10]), np.array([500]))
    made.ranks, made.agents, made.upto_ns = {0, 1, 2}, {9}, 80_000
    return made


def drawn(made):
    layers = made.layers(LANES, made.shown_ranks(), BOUNDS)
    return [(layer.lane, list(layer.rows), layer.code, layer.values.tolist()) for layer in layers]


@pytest.fixture
def trace(tmp_path):
    return make_trace(tmp_path / "trace")


@pytest.fixture
def place(trace, tmp_path):
    return place_of(trace, tmp_path / "cache")


def test_what_is_kept_is_found_again_and_mapped(place):
    made = content()
    assert load(place) is None
    assert save(place, made)
    found = load(place)
    assert drawn(found) == drawn(made)
    assert (found.t0, found.kind, found.upto_ns, found.agents) == (7, "judged", 80_000, {9})
    edges = found.waits.waited.rows[0].edges
    while isinstance(edges, np.ndarray) and not isinstance(edges, np.memmap):
        edges = edges.base
    assert edges is not None, "the array was read, not mapped"


def test_more_rows_may_come_to_what_was_mapped_and_the_files_stay(place):
    save(place, content())
    found, made = load(place), content()
    for one in (found, made):
        late = np.array([5, 20_000, 70_000])
        one.waits.add(np.array([0, 1, 2]), late, late + 5_000, np.array([1, 2, 0]))
        one.gpu.add(late, np.array([1.0, 50.0, 99.0]))
    assert drawn(found) == drawn(made)
    assert drawn(load(place)) == drawn(content())


def test_only_the_user_may_look_and_the_trace_is_left_alone(place, trace):
    before = sorted(trace.rglob("*"))
    save(place, content())
    for folder in (place.folder, place.folder / place.name):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(trace.rglob("*")) == before


def test_any_change_of_the_traces_files_is_another_place(place, trace):
    assert place_of(trace, place.folder) == place
    file = trace / "events" / "steps" / "x.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1")
    grown = place_of(trace, place.folder)
    assert grown != place
    os.utime(file, ns=(5, 5))
    assert place_of(trace, place.folder) != grown


@pytest.mark.parametrize("damage", ["cut", "flip", "gone", "empty"])
def test_damaged_files_are_not_used(place, damage):
    save(place, content())
    root = place.folder / place.name
    for file in sorted(root.iterdir()):
        data = file.read_bytes()
        if damage == "cut":
            file.write_bytes(data[:-1])
        elif damage == "empty":
            file.write_bytes(b"")
        elif damage == "gone":
            file.unlink()
        else:
            file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        assert load(place) is None
        file.write_bytes(data)
        assert load(place) is not None
    (root / "waited.edges.npy").write_bytes(b"")
    assert save(place, content()) and load(place) is not None, "it is replaced"


def test_what_others_made_is_not_used(place, tmp_path):
    place.folder.rmdir()
    place.folder.symlink_to(tmp_path)
    assert place_of(tmp_path / "trace", place.folder) is None
    head = place.folder / "junk" / "head.json"
    head.parent.mkdir()
    head.write_text("[]")
    assert load(place._replace(name="junk")) is None


def test_objects_in_files_are_never_made(place):
    """An .npy of pickled objects is refused, whatever its checksum says."""
    save(place, content())
    root = place.folder / place.name
    file = root / "gpu.times.npy"
    old = cache.read_content.__globals__["_sum"](file)
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    new = cache.read_content.__globals__["_sum"](file)
    head = root / "head.json"
    head.write_text(head.read_text().replace(old, new))
    assert load(place) is None


def test_the_oldest_go_when_there_is_too_much(place, monkeypatch):
    one = sum(f.stat().st_size for f in _saved(place, "a", 1).iterdir())
    _saved(place, "b", 2)
    monkeypatch.setattr(cache, "MAX_BYTES", int(2.5 * one))
    load(place._replace(name="a"))  # used now, so b is older
    _saved(place, "c", None)
    assert sorted(p.name for p in place.folder.iterdir()) == ["a", "c"]
    monkeypatch.setattr(cache, "MAX_BYTES", 10)
    assert not save(place._replace(name="d"), content())


def _saved(place, name, age):
    assert save(place._replace(name=name), content())
    root = place.folder / name
    if age is not None:
        os.utime(root / "head.json", ns=(age, age))
    return root


def test_where_it_lies(trace, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert place_of(trace).folder == tmp_path / "xdg" / "cascade" / "tiles"
    monkeypatch.setenv("CASCADE_CACHE", str(tmp_path / "own"))
    assert place_of(trace).folder == tmp_path / "own" / "tiles"
    blocked = tmp_path / "file"
    blocked.touch()
    assert place_of(trace, blocked / "tiles") is None
