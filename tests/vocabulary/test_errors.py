"""One error shape: what happened, where, what to do."""

from __future__ import annotations

import pytest

from cascade_runtime.vocabulary import BadPolicy, BadTrace, BadUsage, CascadeError, NotSupported


@pytest.mark.parametrize("kind", [CascadeError, BadTrace, BadPolicy, BadUsage, NotSupported])
def test_every_error_says_what_where_and_what_to_do(kind):
    error = kind("the file is empty", where="trace.json", hint="record the run again")
    assert isinstance(error, CascadeError)
    assert str(error) == "trace.json: the file is empty\n  record the run again"
    assert (error.message, error.where) == ("the file is empty", "trace.json")
    assert error.hint == "record the run again"
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "it broke"),
        ({"where": "here"}, "here: it broke"),
        ({"hint": "mend it"}, "it broke\n  mend it"),
    ],
)
def test_the_parts_that_are_missing_leave_no_trace(parts, text):
    assert str(CascadeError("it broke", **parts)) == text
