"""The socket that a collector listens on, and what its address allows."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket

from cascade_runtime.vocabulary.errors import BadUsage

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7654

_TRIES = 20
_BACKLOG = 2048
_HIGHEST_PORT = 65_535


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket.

    Args:
        host: an address or a name of this machine.
        port: 0 for any free one; None for the default, or the next free one above it.

    Raises:
        BadUsage: the port is taken; the address is not this machine's.
    """
    if port is not None:
        return _bound(host, port)
    for candidate in range(DEFAULT_PORT, DEFAULT_PORT + _TRIES):
        try:
            return _bound(host, candidate)
        except PortTaken:
            continue
    raise BadUsage(
        f"the ports {DEFAULT_PORT} to {DEFAULT_PORT + _TRIES - 1} are all taken",
        where=host,
        hint="give another one with --port",
    )


def adopt(fd: int) -> socket.socket:
    """The listening socket that a parent process opened and passed on.

    Raises:
        BadUsage: there is no such one.
    """
    try:
        sock = socket.socket(fileno=fd)
        listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        named = sock.family in (socket.AF_INET, socket.AF_INET6)
    except (OSError, ValueError) as error:
        raise BadUsage(f"this is no socket: {error}", where=f"--fd {fd}") from error
    if not listens or not named:
        sock.close()
        raise BadUsage(
            "this is no TCP socket that listens",
            where=f"--fd {fd}",
            hint="open it, listen on it, and pass it on to this process",
        )
    return sock


def is_loopback(sock: socket.socket) -> bool:
    """Whether only this machine can reach a socket."""
    return ipaddress.ip_address(sock.getsockname()[0].partition("%")[0]).is_loopback


def url_of(sock: socket.socket, *, tls: bool) -> str:
    """The URL that reaches a socket from this machine."""
    address, port = sock.getsockname()[:2]
    if ipaddress.ip_address(address).is_unspecified:
        address = socket.gethostname()
    if ":" in address:
        address = f"[{address}]"
    return f"{'https' if tls else 'http'}://{address}:{port}"


class PortTaken(BadUsage):
    """Somebody else listens there."""


def _bound(host: str, port: int) -> socket.socket:
    where = f"{host}:{port}"
    if not 0 <= port <= _HIGHEST_PORT:  # getaddrinfo takes 70000 for 4464
        raise BadUsage(f"a port is a number from 0 to {_HIGHEST_PORT}", where=where)
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise BadUsage(f"this is no address to listen on: {error}", where=where) from error
    sock = socket.socket(family, kind, proto)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        number = error.errno
        if number == errno.EADDRINUSE:
            raise PortTaken(
                "this port is taken",
                where=where,
                hint="give another one with --port, or none: then the next free one is used",
            ) from error
        what = os.strerror(number) if number else str(error)
        raise BadUsage(f"cannot listen there: {what}", where=where) from error
    return sock
