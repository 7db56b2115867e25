"""The spool folders of one host's actors: what is new in them, and which segments may go."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from cascade_runtime.agent.shipping.cursor import Cursor
from cascade_runtime.agent.shipping.folders import actor_folders, segment_numbers
from cascade_runtime.agent.shipping.tail import Budget, Passed, Tail
from cascade_runtime.vocabulary.identity import Actor

MAX_RECORDS = 2000
MAX_BYTES = 512 * 1024
"""Of one request: some milliseconds of work with the interpreter lock held, not more."""


class HostSpool:
    """Reads what this host's actors write, all of them together.

    Args:
        folder: the trace's ``spool`` folder; other hosts' actors may be in it too.
        run_id: the job's run.
        ranks: whose folders are ours (every incarnation).
        cursor: what an earlier agent knew.
    """

    def __init__(self, folder: Path, run_id: str, ranks: Iterable[int], cursor: Cursor) -> None:
        self._folder = folder
        self._run_id = run_id
        self._ranks = frozenset(ranks)
        self._cursor = cursor
        self._tails: dict[Actor, Tail] = {}
        self._turn = 0
        self.ended: set[Actor] = set()
        """Actors whose processes are known to have ended; may be added to from another thread."""
        self.all_ended = False

    def take_in(self, rank: int) -> None:
        """A rank that the job did not start with is ours; may be called from another thread."""
        self._ranks |= {rank}

    # ---- reading -------------------------------------------------------------------------------

    def collect(self) -> tuple[list[bytes], bool]:
        """New payloads of all actors, and whether more may be waiting than fits into one batch.

        Raises:
            OSError: an actor's files cannot be read now, and the others have nothing new.
        """
        self._find()
        tails = list(self._tails.values())
        budget, payloads = Budget(MAX_RECORDS, MAX_BYTES), list[bytes]()
        problem: OSError | None = None
        for at in range(len(tails)):
            tail = tails[(self._turn + at) % len(tails)]
            ended = self.all_ended or tail.actor in self.ended
            try:
                payloads += tail.read(budget, ended=ended)
            except OSError as error:
                problem = error
            if budget.is_full():
                self._turn += at + 1  # whoever comes next begins: one actor must not starve others
                return payloads, True
        if problem is not None and not payloads:
            raise problem
        return payloads, problem is not None

    def _find(self) -> None:
        """Take in folders that were made since the last look."""
        for actor, folder in actor_folders(self._folder):
            if actor.rank in self._ranks and actor not in self._tails:
                self._tails[actor] = self._begin(actor, folder)

    def _begin(self, actor: Actor, folder: Path) -> Tail:
        first = self._cursor.first_kept(actor)
        for number in segment_numbers(folder):
            if number < first:  # an earlier agent remembered that it may go and died before it went
                (folder / f"{number}.seg").unlink(missing_ok=True)
        return Tail(self._run_id, actor, folder, first)

    # ---- letting go ----------------------------------------------------------------------------

    def note_mark(self, actor: Actor, seq: int) -> None:
        """The collector has everything of the actor up to ``seq``."""
        tail = self._tails.get(actor)
        if tail is not None:
            tail.mark = max(tail.mark, seq)

    def release(self) -> None:
        """Remove the segments that marks cover; damaged ones are moved aside.

        Call it only when every record that ``collect`` gave out has been answered.
        """
        covered = [(tail, tail.take_covered()) for tail in self._tails.values()]
        covered = [(tail, passed) for tail, passed in covered if passed]
        if not covered:
            return
        self._cursor.advance({tail.actor: tail.first_kept for tail, _ in covered})
        for tail, segments in covered:
            for segment in segments:
                self._let_go(tail, segment)

    def _let_go(self, tail: Tail, segment: Passed) -> None:
        path = tail.path(segment.number)
        with contextlib.suppress(FileNotFoundError):
            if not segment.damaged:
                path.unlink()
                return
            aside = self._folder / "damaged" / tail.folder.name
            aside.mkdir(parents=True, exist_ok=True)
            path.replace(aside / path.name)

    def close(self) -> None:
        """Close the files; remove folders in which nothing is left, the spool's own too."""
        for tail in self._tails.values():
            tail.close()
            with contextlib.suppress(OSError):
                tail.folder.rmdir()
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    @property
    def is_empty(self) -> bool:
        """No segment is left on the disk."""
        return not any(segment_numbers(tail.folder) for tail in self._tails.values())
