"""Plug-ins are found by looking into their folder."""

from __future__ import annotations

import importlib
import sys

import pytest

from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.plug import discover

PLUGIN = "class PLUGIN:\n    name = {name!r}\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of the given files (name -> source) and forgets it afterwards."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(**files):
        folder = tmp_path / "plugs_for_a_test"
        folder.mkdir()
        for name, source in ({"__init__": ""} | files).items():
            (folder / f"{name}.py").write_text(source)
        importlib.invalidate_caches()
        return importlib.import_module(folder.name)

    yield make
    for module in [m for m in sys.modules if m.split(".")[0] == "plugs_for_a_test"]:
        del sys.modules[module]


def test_plugins_come_by_name_in_the_order_of_their_files(package):
    found = discover(
        package(b=PLUGIN.format(name="first by name"), a=PLUGIN.format(name="second by name"))
    )
    assert list(found) == ["second by name", "first by name"]
    assert found["first by name"].__module__ == "plugs_for_a_test.b"


def test_an_empty_folder_is_no_error(package):
    assert discover(package()) == {}


def test_helpers_are_not_even_imported(package):
    found = discover(package(_base="raise RuntimeError", a=PLUGIN.format(name="a")))
    assert list(found) == ["a"]


@pytest.mark.parametrize(
    "source", ["", "PLUGIN = None\n", "PLUGIN = object()\n", PLUGIN.format(name=7)]
)
def test_a_file_without_a_named_plugin_is_named(package, source):
    with pytest.raises(CascadeError, match="defines no PLUGIN with a name") as caught:
        discover(package(silent=source))
    assert caught.value.where == "plugs_for_a_test.silent"
    assert "underscore" in caught.value.hint


def test_two_plugins_of_one_name_are_an_error(package):
    with pytest.raises(CascadeError, match="two plug-ins are called 'twin'") as caught:
        discover(package(a=PLUGIN.format(name="twin"), b=PLUGIN.format(name="twin")))
    assert caught.value.where == "plugs_for_a_test.b"


def test_a_file_that_breaks_while_it_is_imported_is_not_passed_over(package):
    with pytest.raises(ZeroDivisionError):
        discover(package(broken="1 / 0\n"))
