from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from dashboard.commands import main
from tests.samples.doctor import Doctored


@dataclass
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """The output without its line breaks, which depend on the terminal's width."""
        return " ".join(self.out.split())

    @property
    def broken(self) -> list[tuple[str, int, int, int]]:
        """(code, rank, incarnation, seq) of every violation."""
        return sorted(
            (v["code"], v["rank"], v["incarnation"], v["seq"]) for v in self.json["violations"]
        )

    def check(self, code: str) -> dict[str, Any]:
        return next(check for check in self.json["checks"] if check["code"] == code)

    def codes(self, verdict: str) -> set[str]:
        """The codes of all checks with this verdict."""
        return {check["code"] for check in self.json["checks"] if check["verdict"] == verdict}


@pytest.fixture
def ask(capsys):
    """Runs ``cascade`` in this process."""

    def run(*words: Any) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def doctored(tmp_path):
    """A copy of ``kill-one`` (or another sample) to change."""
    return lambda sample="kill-one": Doctored(sample, tmp_path)
