from __future__ import annotations

import pytest

from collector.web.app import create_app
from collector.web.settings import Limits, Settings
from collector.web.tokens import Tokens
from tests.collector.web.stores import EchoSql, MemoryStore


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def sql():
    return EchoSql()


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def make_app(store, sql, data):
    """Makes an app over the store; keyword arguments are limits, ``settings`` the other settings."""

    def make(*, settings=None, tokens=None, **limits):
        made = Settings(limits=Limits(**limits), **(settings or {}))
        return create_app(store, sql, tokens or Tokens(data), made)

    return make


@pytest.fixture
def app(make_app):
    return make_app()
