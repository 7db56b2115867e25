"""A process that the kernel keeps stopped: SIGSTOP, a debugger, a job put to sleep (state T or t).

A stopped process is alive and does nothing. Its connections stay open, so its peers see no end of
file and wait for it. State Z says that it has ended and was not collected yet: its death is certified
elsewhere, by the kernel's own notice, and counts as stopped here in case that notice is late.

It fires when every one of ``samples`` looks in a row, over at least ``dwell_s``, found the process
stopped, and clears after as long a time of running. More than one look, because a pause of the whole
machine (or of the agent) makes one old look seem long.
"""

from __future__ import annotations

from cascade_runtime.detectors._base import News, Spec, Verdict
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import FrozenLimits

NAME = "frozen"
_STOPPED = frozenset("TtZX")
_WORDS = {"T": "stopped", "t": "stopped by a debugger", "Z": "ended", "X": "ended"}


class _Seen:
    """One process: since when it is as it is, and how many looks found it so."""

    __slots__ = ("looks", "since_s", "state", "stopped")

    def __init__(self, state: str, stopped: bool, now_s: float) -> None:
        self.state, self.stopped, self.since_s, self.looks = state, stopped, now_s, 0


class Frozen:
    """Judges the states of /proc/PID/stat.

    Args:
        limits: the policy's ``[frozen]``.
    """

    def __init__(self, limits: FrozenLimits) -> None:
        self._limits = limits
        self._seen: dict[Actor, _Seen] = {}
        self._news = News()

    def feed(self, actor: Actor, state: str, now_s: float) -> None:
        """One look at a process.

        Args:
            actor: whose process it is.
            state: the letter of /proc/PID/stat: R, S, D, T, t, Z, ...; any other word counts as
                running.
            now_s: steady clock, seconds, never falling.
        """
        stopped = state in _STOPPED
        seen = self._seen.get(actor)
        if seen is None or seen.stopped != stopped:
            seen = self._seen[actor] = _Seen(state, stopped, now_s)
        seen.state = state
        seen.looks += 1
        for_s = now_s - seen.since_s
        if for_s < self._limits.dwell_s or seen.looks < self._limits.samples:
            return
        if stopped:
            self._news.begin(
                Verdict(
                    detector=NAME,
                    signal="stopped",
                    fault=FaultEvent.GPU_FAIL_STOP,
                    subject=actor,
                    value=for_s,
                    threshold=self._limits.dwell_s,
                    unit="s",
                    why=f"rank {actor} has been {_WORDS[state]} (state {state}) for {for_s:.2f} s",
                )
            )
        elif actor in self._news:
            self._news.end(actor, 0.0, f"rank {actor} has been running again for {for_s:.2f} s")

    def decide(self, now_s: float) -> list[Verdict]:
        """What began and what ended since the last call."""
        del now_s  # every look carries its own time, and no look says nothing
        return self._news.take()

    @property
    def standing(self) -> list[Verdict]:
        """Who is stopped."""
        return self._news.standing

    def forget(self, actor: Actor) -> None:
        """The actor is gone."""
        self._seen.pop(actor, None)
        self._news.forget(actor)


PLUGIN = Spec(NAME, frozenset({FaultEvent.GPU_FAIL_STOP}), "frozen", Frozen)
