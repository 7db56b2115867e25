"""The file of tokens: hashes only, for its owner only, and a door that never opens by accident."""

from __future__ import annotations

import hashlib
import json
import stat

import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from collector.web import tokens as tokens_module
from collector.web.tokens import TOKENS_FILE, Tokens
from tests.collector.web.asgi import ask


@pytest.fixture
def clock(monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr(tokens_module.time, "monotonic", lambda: now[0])
    return now


def test_only_the_hash_is_kept_and_only_for_the_owner(data):
    token = Tokens(data).add("agents", "write")
    file = data / TOKENS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token not in file.read_text()
    (stored,) = json.loads(file.read_text())["tokens"]
    assert stored["sha256"] == hashlib.sha256(token.encode()).hexdigest()
    assert (stored["name"], stored["scope"]) == ("agents", "write")
    assert [path.name for path in data.iterdir()] == [TOKENS_FILE]


def test_tokens_are_long_and_differ(data):
    made = Tokens(data)
    every = {made.add(f"t{i}", "read") for i in range(20)}
    assert len(every) == 20
    assert all(len(token) == len("cascade_") + 43 for token in every)


@pytest.mark.parametrize(
    ("scope", "may"), [("read", {"read"}), ("write", {"write"}), ("all", {"read", "write"})]
)
def test_scopes(data, scope, may):
    token = Tokens(data).add("t", scope)
    assert Tokens(data).may(token) == may


def test_a_token_that_is_not_known_may_nothing(data):
    token = Tokens(data).add("t", "all")
    for wrong in ("", "x", token[:-1], token + "x", token.upper(), "\ud800", "x" * 10_000):
        assert Tokens(data).may(wrong) is None


def test_names_are_plain_and_taken_once(data):
    tokens = Tokens(data)
    tokens.add("a", "all")
    for name in ("a", "", "a b", "a/b", "x" * 65, "é"):
        with pytest.raises(BadUsage):
            tokens.add(name, "all")
    assert [token.name for token in tokens.names()] == ["a"]


def test_a_revoked_token_is_gone_and_the_others_stay(data):
    tokens = Tokens(data)
    kept, gone = tokens.add("kept", "all"), tokens.add("gone", "all")
    tokens.revoke("gone")
    assert tokens.may(gone) is None
    assert tokens.may(kept)
    with pytest.raises(BadUsage, match="no token of that name") as caught:
        tokens.revoke("gone")
    assert "kept" in caught.value.hint


def test_a_running_collector_learns_of_both_within_a_second(data, make_app, clock):
    app = make_app()

    def status(token=None):
        headers = [("authorization", f"Bearer {token}")] if token else []
        return ask(app, "GET", "/v1/runs", headers=headers).status

    assert status() == 200
    other = Tokens(data)
    token = other.add("t", "read")
    assert status() == 200  # not looked at again yet
    clock[0] += 1.1
    assert (status(), status(token)) == (401, 200)
    other.revoke("t")
    clock[0] += 1.1
    assert (status(), status(token)) == (401, 401)


@pytest.mark.parametrize("harm", ["unlink", "garbage", "empty"])
def test_a_file_that_breaks_or_goes_away_closes_the_door(data, make_app, clock, harm):
    tokens = Tokens(data)
    token = tokens.add("t", "read")
    app = make_app(tokens=tokens)
    file = data / TOKENS_FILE
    if harm == "unlink":
        file.unlink()
    else:
        file.write_text("{" if harm == "garbage" else "")
    clock[0] += 1.1
    assert ask(app, "GET", "/v1/runs").status == 401
    headers = [("authorization", f"Bearer {token}")]
    assert ask(app, "GET", "/v1/runs", headers=headers).status == 401


BROKEN = ["", "{}", "[]", '{"tokens": [{"name": "a"}]}', "\0", '{"tokens": 5}']
BROKEN += [
    json.dumps({"tokens": [{"name": "a", "scope": "all", "sha256": no_hash, "created_ns": 1}]})
    for no_hash in ("", "zz", "ab")
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_refused_in_words(data, text):
    data.mkdir()
    (data / TOKENS_FILE).write_text(text)
    with pytest.raises(BadUsage) as caught:
        Tokens(data)
    assert TOKENS_FILE in caught.value.where
