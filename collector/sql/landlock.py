"""Gives up file and network access for good, where the kernel has Landlock (Linux 5.13 and newer)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file rights that an ABI version knows: each is refused unless a rule grants it."""

_NET_RIGHTS = (1 << 0) | (1 << 1)  # bind and connect TCP, from ABI 4
_SCOPES = (1 << 0) | (1 << 1)  # abstract sockets and signals to outside, from ABI 6


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock version; 0 when it has none, or has it turned off."""
    version = _libc().syscall(
        _CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
    )
    return max(0, int(version))


def read_only_below(folders: Sequence[str]) -> bool:
    """Let this thread, and threads that it starts, read below ``folders`` and do nothing else.

    Files that are open stay open. Threads that run already are not held: call it before there are
    any.

    Returns:
        Whether it holds now; False where the kernel cannot.

    Raises:
        OSError: the kernel can, and refused.
    """
    version = abi()
    if version == 0:
        return False
    rights = _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]
    wanted = _Ruleset(rights, _NET_RIGHTS if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    libc = _libc()
    # Older kernels take the part of the structure that they know.
    size = ctypes.sizeof(_Ruleset) if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(
        libc.syscall(_CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), 0)
    )
    try:
        for folder in folders:
            _grant(libc, ruleset, folder)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return True


def _grant(libc: ctypes.CDLL, ruleset: int, folder: str) -> None:
    opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(_READ_FILE | _READ_DIR, opened)
        _checked(libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(opened)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
