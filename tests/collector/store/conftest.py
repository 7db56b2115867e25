from __future__ import annotations

import pytest

import collector.storage
from cascade_runtime.vocabulary.plug import discover
from collector.hot.options import StoreOptions
from collector.storage import embedded as embedded_module
from collector.storage.embedded import EmbeddedStore
from collector.wire import records

KINDS = discover(collector.storage)


class Opener:
    """Opens a store of one kind on one data folder, again and again; closes what is left open."""

    def __init__(self, kind, data):
        self.kind = kind
        self.data = data
        self.store = None

    def __call__(self, data=None, **options):
        self.close()
        self.data = data or self.data
        self.store = self.kind.open(self.data, {"publish_every_s": 3600.0} | options)
        return self.store

    def close(self):
        if self.store is not None:
            self.store.close()
            self.store = None


class _Embedded:
    def open(self, data, options):
        return EmbeddedStore(data, StoreOptions(**options))


@pytest.fixture(autouse=True)
def small_bodies_are_scanned(monkeypatch):
    """Tests send few rows at a time: without this, the way that agents' bodies take would not be tried."""
    monkeypatch.setattr(records, "LEAST_SCANNED", 1)


@pytest.fixture
def no_views_file(monkeypatch):
    """views.duckdb has tests of its own, and writing it takes longer than most tests of a store."""
    monkeypatch.setattr(embedded_module, "write_views_file", lambda data: False)


@pytest.fixture(params=sorted(KINDS))
def opener(request, tmp_path):
    """Opens stores of every kind; the background does nothing unless a test asks for it."""
    opened = Opener(KINDS[request.param], tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def embedded(tmp_path):
    """Opens embedded stores."""
    opened = Opener(_Embedded(), tmp_path / "data")
    yield opened
    opened.close()
