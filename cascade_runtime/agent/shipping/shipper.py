"""What the agent's loop sees of shipping: a daemon thread that it starts, tells of ends, and waits for.

In a thread, so that a collector that hangs holds up nobody; not in a process, because it does little
(docs/decisions/0015).
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.agent.shipping.courier import INTERVAL_S, Courier
from cascade_runtime.agent.shipping.cursor import Cursor
from cascade_runtime.agent.shipping.link import Link, Stopped
from cascade_runtime.agent.shipping.settings import deadline_s, token
from cascade_runtime.agent.shipping.spool import HostSpool
from cascade_runtime.vocabulary.errors import CascadeError
from cascade_runtime.vocabulary.identity import Actor


class Shipper:
    """Ships one agent's rows and those of its ranks. Without a collector it does nothing.

    Args:
        config: the job.
        index: the agent's.
    """

    def __init__(self, config: JobConfig, index: int) -> None:
        self._config = config
        self._index = index
        self._spool = HostSpool(
            Path(config.trace_dir) / "spool",
            config.run_id,
            [*config.ranks_of(index), config.agent_rank(index)],
            Cursor(config.cursor_path(index)),
        )
        self._courier: Courier | None = None
        self._thread: threading.Thread | None = None
        self._finishing = threading.Event()

    def start(self) -> None:
        """Begin, once; before the job has formed there is nothing worth keeping."""
        if self._config.collector is None or self._thread is not None:
            return
        try:
            link = Link(self._config.collector, token())
        except CascadeError as error:
            self._say(f"nothing is shipped: {error}")
            return
        self._courier = Courier(
            link,
            self._spool,
            self._config.run_id,
            Path(self._config.trace_dir) / "trace.json",
            self._say,
            time.monotonic,
            random.random,
        )
        self._courier.tell_start = self._index == 0
        self._thread = threading.Thread(target=self._run, name="cascade-shipper", daemon=True)
        self._thread.start()

    def take_in(self, rank: int) -> None:
        """A rank of this host that the job did not start with."""
        self._spool.take_in(rank)

    def actor_ended(self, actor: Actor) -> None:
        """Its process has ended: what it left will not grow any more."""
        self._spool.ended.add(actor)

    def run_ended(self) -> None:
        """trace.json now says how the run ended, and it is on this agent to pass that on."""
        if self._courier is not None:
            self._courier.tell_end = True

    def finish(self) -> None:
        """Ship what is left, for so long as the deadline allows; all writers have ended."""
        if self._courier is None or self._thread is None:
            return
        patience = deadline_s()
        self._courier.finish_by(time.monotonic() + patience)
        self._finishing.set()
        self._thread.join(patience)

    def _run(self) -> None:
        assert self._courier is not None
        # Agents that start together should not send together for ever.
        delay: float | None = random.random() * INTERVAL_S  # noqa: S311  # no secret
        try:
            while delay is not None:
                if self._finishing.is_set():
                    time.sleep(delay)
                else:
                    self._finishing.wait(delay)
                delay = self._courier.turn()
        except Stopped as stopped:
            push = f"; later: cascade push {self._config.trace_dir} {self._config.collector}"
            self._say(
                f"nothing more is shipped, the rows stay in the spool: {stopped}. "
                f"{stopped.hint}{'' if stopped.for_good else push}"
            )
        except Exception as error:  # a fault of ours costs the live view, not the job
            self._say(f"nothing more is shipped, the rows stay in the spool: {error!r}")
        finally:
            self._courier.close()

    def _say(self, text: str) -> None:
        sys.stderr.write(f"cascade agent {self._index}: {text}\n")
        sys.stderr.flush()
