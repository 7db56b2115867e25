"""How a statement can fail, each with the HTTP status that it becomes."""

from __future__ import annotations

from cascade_runtime.vocabulary.errors import CascadeError


class SqlRefused(CascadeError):
    """The statement is not one that is run here (HTTP 400)."""


class SqlFailed(CascadeError):
    """DuckDB could not run the statement (HTTP 400)."""


class SqlTooLong(CascadeError):
    """The statement took longer than it may (HTTP 408)."""


class SqlTooLarge(CascadeError):
    """The statement needs more memory, or its answer is larger, than it may (HTTP 413)."""


class SqlBusy(CascadeError):
    """Too many statements are running and waiting; come again later (HTTP 429)."""
