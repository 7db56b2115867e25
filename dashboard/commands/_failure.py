"""How a failure is told: what happened, where, what to do. Never a traceback, unless asked for."""

from __future__ import annotations

import json
import os
import sys
import traceback

from cascade_runtime.vocabulary.errors import CascadeError

EXIT_SOFTWARE = 70
DEBUG = "CASCADE_DEBUG"

_EXTRAS = {
    "dash": "server",
    "dash_ag_grid": "server",
    "duckdb": "server",
    "fastapi": "server",
    "httptools": "server",
    "httpx": "server",
    "numba": "server",
    "numpy": "server",
    "prometheus_client": "server",
    "pyarrow": "server",
    "torch": "demo",
    "uvicorn": "server",
    "uvloop": "server",
}
"""Modules that come with an extra of the distribution."""


def tell(error: CascadeError, verb: str | None, *, as_json: bool) -> int:
    """Print an error to stderr; returns its exit code."""
    if as_json:
        body = {"code": _code(error), "message": error.message, "where": error.where}
        print(json.dumps({"error": {**body, "hint": error.hint}}), file=sys.stderr)
    else:
        print(f"{_prog(verb)}: {error.message}", file=sys.stderr)
        for line in (error.where, error.hint):
            if line:
                print(f"  {line}", file=sys.stderr)
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    return error.exit_code


def unexpected(error: Exception, verb: str | None, *, as_json: bool) -> int:
    """Tell an error that is not meant for a person: a missing extra, or a fault of ours."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in _EXTRAS:
        module = str(error.name).split(".")[0]
        missing = CascadeError(
            f"this needs {module}, which is not installed",
            hint=f"pip install 'cascade-timelines[{_EXTRAS[module]}]'",
        )
        return tell(missing, verb, as_json=as_json)
    first_line = (str(error).strip().splitlines() or ["no more is known"])[0]
    fault = CascadeError(
        f"this is a fault of ours, not of yours: {type(error).__name__}: {first_line}",
        hint=f"{DEBUG}=1 shows the traceback; please report it with that",
    )
    fault.exit_code = EXIT_SOFTWARE
    fault.__cause__ = error
    return tell(fault, verb, as_json=as_json)


def _prog(verb: str | None) -> str:
    return f"cascade {verb}" if verb else "cascade"


def _code(error: CascadeError) -> str:
    """BadTrace -> bad_trace."""
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
