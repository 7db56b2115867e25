"""Addresses of pages come back as they went, whatever a run is called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.shell.paths import HOME, NOWHERE, Place, address, place_of, query_of
from tests.vocabulary.strategies import LAWS

PAGES = ("run", "waits", "violations", "sql")
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@LAWS
@given(st.sampled_from(PAGES), names, st.dictionaries(names, names, max_size=3))
def test_an_address_names_its_place(page, run_id, query):
    path, _, search = address(page, run_id, **query).partition("?")
    assert place_of(path) == Place(page, run_id)
    assert query_of(search) == query


@pytest.mark.parametrize("page", ["runs", "sql", "health"])
def test_pages_of_all_runs(page):
    assert place_of(address(page)) == Place(page)


def test_home():
    assert place_of(address("home")) == HOME


@pytest.mark.parametrize(
    "path",
    ["/", "/dash", "/dash/nope", "/dash/run", "/dash/run/", "/dash/run/a/b", "/dash/run/a/sql/b",
     "/dash/waits", "/dashboard/runs", "/dash//runs"],
)  # fmt: skip
def test_all_else_is_nowhere(path):
    assert place_of(path) == NOWHERE
