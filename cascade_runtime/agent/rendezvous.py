"""The keys that ranks exchange in an epoch, to form a group or to compare a step: kept by the agents.

A key of a step is ``layout/<step>/...``; those of steps that all have left are forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from cascade_runtime.agent.protocol import Value
from cascade_runtime.vocabulary.identity import Actor


class Rendezvous:
    """One agent's copy of the keys, and the local ranks that wait for one.

    Args:
        tell: sends a message to a local rank.
    """

    def __init__(self, tell: Callable[[Actor, Value], None]) -> None:
        self._tell = tell
        self._values: dict[tuple[int, str], bytes] = {}
        self._waiting: defaultdict[tuple[int, str], list[Actor]] = defaultdict(list)

    def put(self, epoch: int, key: str, value: bytes) -> None:
        """Keep a key and answer whoever waits for it."""
        if (epoch, key) not in self._values and (step := _step_of(key)) is not None:
            self._forget_before(step - 1)  # a member may be one step behind
        self._values[(epoch, key)] = value
        for actor in self._waiting.pop((epoch, key), []):
            self._tell(actor, Value(key, value))

    def get(self, actor: Actor, epoch: int, key: str, *, current: bool) -> None:
        """Answer now, or when the key comes; at once with None when its epoch is not ``current``."""
        value = self._values.get((epoch, key))
        if value is None and current:
            self._waiting[(epoch, key)].append(actor)
        else:
            self._tell(actor, Value(key, value))

    def _forget_before(self, step: int) -> None:
        for known in (self._values, self._waiting):
            for epoch, key in [k for k in known if (n := _step_of(k[1])) is not None and n < step]:
                del known[(epoch, key)]

    def give_up(self) -> None:
        """A walk has begun: whoever waits for a key of the old epoch waits in vain."""
        for (_, key), actors in self._waiting.items():
            for actor in actors:
                self._tell(actor, Value(key, None))
        self._waiting.clear()

    def install(self, epoch: int) -> None:
        """Forget the keys of epochs before this one."""
        self._values = {k: v for k, v in self._values.items() if k[0] >= epoch}


def _step_of(key: str) -> int | None:
    """The step that a key is about, if it is about one."""
    kind, _, rest = key.partition("/")
    step = rest.partition("/")[0]
    return int(step) if kind == "layout" and step.isdecimal() else None
