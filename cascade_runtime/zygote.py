"""A process that has imported torch once and forks ranks from there.

Importing torch costs seconds of CPU a process; on a small machine that is most of a short job's life.
``cascade demo`` and the tests start ranks from a zygote, ``cascade run`` starts them afresh. The zygote
is the ranks' parent and tells each agent the exit status of what it asked for.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from cascade_runtime.agent.run_folder import held
from cascade_runtime.agent.zygote_client import Exited, Spawned, SpawnRequest

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """``python -m cascade_runtime.zygote SOCKET``: listen, fork, reap, until the parent is gone.

    The socket's folder is removed in the end: a parent that was killed can't do it.
    """
    path = Path(sys.argv[1])
    try:
        with held(path.parent):
            _listen(path)
    finally:  # of this process alone: ranks leave by os._exit
        with suppress(OSError):  # the parent may have been quicker, or keeps other things there
            path.unlink(missing_ok=True)
            path.parent.rmdir()


def _listen(path: Path) -> None:
    _die_with_parent(signal.SIGTERM)  # nobody waits until torch is imported
    _preload()
    _die_with_parent(0)  # from here on stdin tells of its end, and there is a socket to remove
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(path))
    listener.listen(16)
    wake, waker = socket.socketpair()
    for end in (wake, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    try:
        _serve_until_the_parent_is_gone(listener, wake, waker)
    finally:  # before its socket is closed: ranks may still end
        signal.set_wakeup_fd(-1)


def _serve_until_the_parent_is_gone(
    listener: socket.socket, wake: socket.socket, waker: socket.socket
) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the parent listens no longer
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    owners: dict[int, socket.socket] = {}
    clients: list[socket.socket] = []
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                clients.append(client)
                selector.register(client, selectors.EVENT_READ)
            elif key.fileobj is wake:
                wake.recv(4096)
                _reap(owners)
            elif key.fileobj is sys.stdin:
                return  # the parent closed our stdin: it is gone or done
            elif isinstance(key.fileobj, socket.socket) and not _serve(
                key.fileobj, owners, [listener, wake, waker, *clients]
            ):
                selector.unregister(key.fileobj)
                clients.remove(key.fileobj)
                key.fileobj.close()


def _die_with_parent(number: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _preload() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch
    import torch._dynamo  # DistributedDataParallel's constructor would import it

    import cascade_runtime.bootstrap
    import cascade_runtime.rank.session

    del torch, cascade_runtime


def _serve(
    client: socket.socket, owners: dict[int, socket.socket], inherited: list[socket.socket]
) -> bool:
    try:
        data, fds, _, _ = socket.recv_fds(client, 1 << 20, 2)
    except ConnectionError:
        return False
    if not data:
        return False
    request = msgspec.msgpack.decode(data, type=SpawnRequest)
    pid = os.fork()
    if pid == 0:
        _become_rank(request, fds, inherited)
    for fd in fds:
        os.close(fd)
    owners[pid] = client
    client.send(msgspec.msgpack.encode(Spawned(pid)))
    return True


def _become_rank(request: SpawnRequest, fds: list[int], inherited: list[socket.socket]) -> None:
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in inherited:
            end.close()
        for number, fd in enumerate(fds, start=1):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(request.environment)
        os.chdir(request.directory)
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        sys.argv = ["bootstrap", *request.arguments]
        from cascade_runtime import bootstrap

        bootstrap.run_and_leave()
    finally:
        os._exit(code)


def _reap(owners: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        owner = owners.pop(pid, None)
        if owner is not None:
            try:
                owner.send(msgspec.msgpack.encode(Exited(pid, os.waitstatus_to_exitcode(status))))
            except OSError:
                continue


if __name__ == "__main__":
    main()
