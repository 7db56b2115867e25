"""What a verb of the ``cascade`` command is. One file in this folder = one verb.

A verb's module imports little: what is heavy is imported inside ``run``, so that ``cascade --help``
answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Verb:
    """The ``PLUGIN`` of a verb's module.

    Attributes:
        name: the word after ``cascade``.
        group: where the first help screen shows it.
        help: one line.
        add_arguments: declares its arguments; a ``--json`` switch makes errors JSON too.
        run: does it and returns the exit code; raises CascadeError for a person's eyes.
    """

    name: str
    group: Literal["look", "ask", "rest"]
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
