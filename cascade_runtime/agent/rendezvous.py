"""The keys that ranks exchange in an epoch, to form a group or to compare a step: kept by the agents.

A key of a step is ``layout/<step>/...``; those of steps that all have left are forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from cascade_runtime.agent.protocol import Value
from cascade_runtime.vocabulary.identity import Actor

GROUP = "group/"
"""What the keys of a group that is being formed begin with."""


class Rendezvous:
    """One agent's copy of the keys, and the local ranks that wait for one.

    Args:
        tell: sends a message to a local rank.
    """

    def __init__(self, tell: Callable[[Actor, Value], None]) -> None:
        self._tell = tell
        self._values: dict[tuple[int, str], bytes] = {}
        self._waiting: defaultdict[tuple[int, str], list[Actor]] = defaultdict(list)
        self._given_up = False
        """A walk has begun because somebody was lost: no group of this epoch can be formed any more."""

    def put(self, epoch: int, key: str, value: bytes) -> None:
        """Keep a key and answer whoever waits for it."""
        if (epoch, key) not in self._values and (step := _step_of(key)) is not None:
            self._forget_before(step - 1)  # a member may be one step behind
        self._values[(epoch, key)] = value
        for actor in self._waiting.pop((epoch, key), []):
            self._tell(actor, Value(key, value))

    def get(
        self, actor: Actor, epoch: int, key: str, *, current: bool, walking: bool = False
    ) -> None:
        """Answer now, or when the key comes; at once with None where it is waited for in vain.

        That is when its epoch is not ``current``, or it is being walked away from.
        """
        value = self._values.get((epoch, key))
        if value is None and current and not (walking and not self._lasts(key)):
            self._waiting[(epoch, key)].append(actor)
        else:
            self._tell(actor, Value(key, value))

    def _forget_before(self, step: int) -> None:
        for known in (self._values, self._waiting):
            for epoch, key in [k for k in known if (n := _step_of(k[1])) is not None and n < step]:
                del known[(epoch, key)]

    def give_up(self, *, graceful: bool = False) -> None:
        """A walk has begun: whoever waits for a key of the old epoch waits in vain.

        But for a group's keys, where nobody was lost (``graceful``): whoever left a group that others
        are forming would hold them for gloo's time-out, and it takes a moment to form it.
        """
        self._given_up = self._given_up or not graceful
        for epoch, key in [k for k in self._waiting if not self._lasts(k[1])]:
            for actor in self._waiting.pop((epoch, key)):
                self._tell(actor, Value(key, None))

    def _lasts(self, key: str) -> bool:
        return key.startswith(GROUP) and not self._given_up

    def install(self, epoch: int) -> None:
        """Forget the keys of epochs before this one."""
        self._given_up = False
        self._values = {k: v for k, v in self._values.items() if k[0] >= epoch}


def _step_of(key: str) -> int | None:
    """The step that a key is about, if it is about one."""
    kind, _, rest = key.partition("/")
    step = rest.partition("/")[0]
    return int(step) if kind == "layout" and step.isdecimal() else None
