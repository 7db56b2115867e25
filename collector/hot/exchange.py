"""Two folders that swap their names in one step."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
_NOT_THERE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders; whoever looks sees the one or the other, never none.

    Returns:
        False where C library, kernel or file system cannot do it; nothing was changed then.

    Raises:
        OSError: it failed.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    if rename(_HERE, names[0], _HERE, names[1], ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_THERE:
        return False
    raise OSError(number, os.strerror(number), str(other))
