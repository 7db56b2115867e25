"""A store that the tests of tiles put rows into."""

from __future__ import annotations

import pytest

from collector.hot.options import StoreOptions
from collector.storage.embedded import EmbeddedStore


@pytest.fixture
def store(tmp_path):
    opened = EmbeddedStore(tmp_path / "data", StoreOptions(publish_every_s=3600.0))
    yield opened
    opened.close()
