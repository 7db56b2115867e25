"""What is kept on disk for all workers of a test run is found where it is kept."""

from __future__ import annotations

import os

from tests import made_once


def test_what_was_made_is_not_made_again(tmp_path):
    source = tmp_path / "passes.py"
    source.touch()
    assert not made_once._is_compiled(source)
    kept = tmp_path / "__pycache__" / "passes.scan-12.py311.nbi"
    kept.parent.mkdir()
    kept.touch()
    assert made_once._is_compiled(source)
    os.utime(kept, (1, 1))
    assert not made_once._is_compiled(source)  # the source has changed since


def test_all_of_it_is_there_once_it_was_made():
    made_once.make()
    assert made_once.missing() == []
