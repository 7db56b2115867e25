"""One error shape: what happened, where, what to do.

::

    CascadeError                exit code 2
    |- BadTrace                 a trace that cannot be read as one
    |- BadPolicy                a policy TOML that breaks a rule
    |- BadUsage                 a command line or a call that cannot be served
    `- NotSupported             a model or a job that this release refuses
"""

from __future__ import annotations


class CascadeError(Exception):
    """An error meant for a person.

    Args:
        message: what happened, one sentence.
        where: the file, argument or object concerned.
        hint: what to do about it.
    """

    exit_code = 2

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text


class BadTrace(CascadeError):
    """A trace that cannot be read as one."""


class BadPolicy(CascadeError):
    """A policy TOML that breaks a rule."""


class BadUsage(CascadeError):
    """A command line or a call that cannot be served."""


class NotSupported(CascadeError):
    """A model or a job that this release refuses, with the reason."""
