"""Names of runs' folders: no two runs share one, and none leads out of runs/."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collector.data_folder import run_folder, runs_folder

DATA = Path("/data")
IDS = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="ab./%-_", max_size=8),
    st.text(alphabet=st.characters(codec=None), max_size=8),  # lone surrogates too
)


@given(IDS, IDS)
@example("a", "a%" + "0" * 64)
@example("a/b", "a%2Fb")
@example("A", "a")
@example("", ".")
def test_different_ids_never_share_a_folder(one, other):
    assert (run_folder(DATA, one) == run_folder(DATA, other)) == (one == other)


@given(IDS)
@example("..")
@example("../../etc")
@example("/etc")
@example("")
@example("a\0b")
@example("." * 100)
@example("é" * 100)
def test_a_folder_is_directly_below_runs_and_can_be_made(run_id):
    folder = run_folder(DATA, run_id)
    assert folder.parent == runs_folder(DATA)
    assert Path(os.path.normpath(folder)) == folder
    assert not folder.name.startswith(".")
    assert len(os.fsencode(folder.name)) <= 255
    assert folder.name.isascii() and folder.name.isprintable() and "\0" not in folder.name


@pytest.mark.parametrize("run_id", ["0123456789ab", "my-run_2.1", "x" * 100])
def test_a_plain_id_is_the_name(run_id):
    assert run_folder(DATA, run_id).name == run_id


@pytest.mark.parametrize("run_id", [".hidden", "x" * 101, "a b", "a%b", "ä"])
def test_any_other_is_encoded_with_a_hash(run_id):
    readable, _, digest = run_folder(DATA, run_id).name.rpartition("%")
    assert len(digest) == 64 and len(readable) <= 100


def test_a_name_can_be_made_on_this_disk(tmp_path):
    for run_id in ("a/../b", "ü" * 200, ".", "..", ""):
        folder = run_folder(tmp_path, run_id)
        folder.mkdir(parents=True)
        assert folder.is_dir()
