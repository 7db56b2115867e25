"""Lets go of communicators beside the training thread: their destructors stop and join threads.

gloo's takes some 10 to 25 ms with nothing pending, and a walk would be that much longer. It runs without the
interpreter's lock.
"""

from __future__ import annotations

import atexit
import threading

EXIT_PATIENCE_S = 2.0
"""A destructor under way when the interpreter ends would come back to no interpreter: it is waited for."""

_going: list[threading.Thread] = []


def let_go_aside(held: list[object]) -> None:
    """Drop what the list holds, which must be the last references, in a thread of its own.

    Args:
        held: emptied, at once or a moment later.
    """
    thread = threading.Thread(target=held.clear, name="cascade-let-go", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread is to be had: it takes its time here
        held.clear()
        return
    _going[:] = [one for one in _going if one.is_alive()]
    _going.append(thread)


@atexit.register
def wait_for_those_going(patience_s: float = EXIT_PATIENCE_S) -> None:
    """Until all that was let go of is gone, so long at most for each."""
    for thread in _going:
        thread.join(patience_s)
