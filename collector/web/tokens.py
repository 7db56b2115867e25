"""Bearer tokens: made, revoked, recognised. Only their hashes are kept.

A token is 256 random bits, so nobody finds one by trying, however fast the hash is. A slow hash, as
passwords need, would protect nothing more and would cost every request milliseconds; SHA-256 it is.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from cascade_runtime.vocabulary.errors import BadUsage
from collector.trace.durable import publish

TOKENS_FILE = "tokens.json"

Scope = Literal["read", "write", "all"]

_MAY: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"write"}),
    "all": frozenset({"read", "write"}),
}
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LONGEST = 200
_LOOK_SECONDS = 1.0


class StoredToken(msgspec.Struct, frozen=True):
    """What is kept of a token: its name, what it may do, its SHA-256 in hex, when it was made."""

    name: str
    scope: Scope
    sha256: str
    created_ns: int


class _File(msgspec.Struct):
    tokens: list[StoredToken]


class Tokens:
    """The tokens of one data folder.

    The file is looked at again at most once a second, so a token that another process makes or
    revokes is known here soon. Once a token was needed, this process needs one until it ends: a
    file that went away or broke closes the door, it does not open it.

    Args:
        data: the data folder.

    Raises:
        BadUsage: the file cannot be read.
    """

    def __init__(self, data: Path) -> None:
        self._file = data / TOKENS_FILE
        self._seen: tuple[int, int, int] | None = None
        self._looked = float("-inf")
        self._known: list[tuple[bytes, frozenset[str]]] = []
        self.required = False
        self._take(self._read())

    def names(self) -> list[StoredToken]:
        """Every token, in the order they were made."""
        return self._read()

    def add(self, name: str, scope: Scope) -> str:
        """Make a token; it is told once, here.

        Raises:
            BadUsage: the name is taken, or is no plain name.
        """
        if not _NAME.fullmatch(name):
            raise BadUsage(
                "a token's name is 1 to 64 letters, digits, dots, underscores and dashes",
                where=name[:80],
            )
        stored = self._read()
        if any(token.name == name for token in stored):
            raise BadUsage(
                "there is a token of that name already",
                where=name,
                hint=f"cascade serve --revoke-token {name} removes it",
            )
        token = f"cascade_{secrets.token_urlsafe(32)}"
        self._write([*stored, StoredToken(name, scope, _digest(token).hex(), time.time_ns())])
        return token

    def revoke(self, name: str) -> None:
        """Remove a token.

        Raises:
            BadUsage: there is none of that name.
        """
        stored = self._read()
        kept = [token for token in stored if token.name != name]
        if len(kept) == len(stored):
            known = ", ".join(token.name for token in stored) or "none"
            raise BadUsage("there is no token of that name", where=name, hint=f"there is: {known}")
        self._write(kept)

    def may(self, token: str) -> frozenset[str] | None:
        """What the bearer of a token may do: read, write; None for a token that is not known."""
        return None if len(token) > _LONGEST else self.may_hash(_digest(token))

    def hash_of(self, token: str) -> bytes:
        """What stands for a token wherever it is remembered."""
        return _digest(token)

    def may_hash(self, mine: bytes) -> frozenset[str] | None:
        """The same for a token whose hash this is; None once the token was revoked."""
        found = None
        for stored, scopes in self._known:  # all of them, so that time tells nothing
            if hmac.compare_digest(stored, mine):
                found = scopes
        return found

    def look_again(self) -> None:
        """Take up what another process changed in the file; cheap enough for every request."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        if self._stamp() == self._seen:
            return
        try:
            self._take(self._read())
        except BadUsage:
            self._known = []
            self.required = True

    def _take(self, stored: list[StoredToken]) -> None:
        self._known = [(bytes.fromhex(t.sha256), _MAY[t.scope]) for t in stored]
        self.required = self.required or bool(stored)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            state = self._file.stat()
        except OSError:
            return None
        return (state.st_mtime_ns, state.st_size, state.st_ino)

    def _read(self) -> list[StoredToken]:
        self._seen = self._stamp()
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadUsage(f"it cannot be read: {error.strerror}", where=str(self._file)) from error
        try:
            tokens = msgspec.json.decode(data, type=_File).tokens
            if all(len(bytes.fromhex(t.sha256)) == hashlib.sha256().digest_size for t in tokens):
                return tokens
        except ValueError:  # msgspec's errors are ValueErrors too
            pass
        raise BadUsage(
            "this is not a file of tokens",
            where=str(self._file),
            hint="move it away and make new ones: cascade serve --new-token NAME",
        )

    def _write(self, tokens: list[StoredToken]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(_File(tokens)), indent=2) + b"\n"

        def write(out: BinaryIO) -> None:
            os.fchmod(out.fileno(), 0o600)
            out.write(text)

        publish(self._file, write)
        self._seen = self._stamp()
        self._take(tokens)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
