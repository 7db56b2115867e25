"""The rows of a State: a group of its own, under CAUSAL, whatever regime the training ranks are in."""

from __future__ import annotations

import xxhash

from cascade_runtime.recorder import Recorder
from cascade_runtime.state.replica import Stand, Update
from cascade_runtime.vocabulary.events import Checkpoints, Objects, Reads, Updates
from cascade_runtime.vocabulary.identity import Dot
from cascade_runtime.vocabulary.regime import Regime


class StateRows:
    """Writes them for one process."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told: set[tuple[str, str]] = set()

    def issued(self, update: Update, kind: str) -> None:
        """This process put it."""
        self._object(update.state, update.key, kind)
        self._update("issued", update)

    def applied(self, updates: list[Update]) -> None:
        """These of others are applied here, in this order."""
        for update in updates:
            self._update("applied", update)

    def read(self, state: str, key: str, kind: str, use: str, seen: Update | None) -> None:
        """The key was read here; ``seen`` None: the value before any put."""
        self._object(state, key, kind)
        self._recorder.row(
            Reads,
            **_place(state),
            object=f"{state}/{key}",
            use=use,
            origin_rank=None if seen is None else seen.author.rank,
            origin_incarnation=None if seen is None else seen.author.incarnation,
            counter=None if seen is None else seen.counter,
            version=None if seen is None else seen.version,
        )

    def stand(self, action: str, stand: Stand, frontier: list[Dot]) -> None:
        """A stand was given to a process that lacked too much (saved), or taken over (received)."""
        self._recorder.row(
            Checkpoints,
            action=action,
            checkpoint_id=stand.checkpoint_id,
            durable=False,
            scope="self",
            frontier=frontier,
        )

    def _object(self, state: str, key: str, kind: str) -> None:
        if (state, key) not in self._told:
            self._told.add((state, key))
            self._recorder.row(
                Objects, **_place(state), object=f"{state}/{key}", kind=kind, update_kind="assign"
            )

    def _update(self, action: str, update: Update) -> None:
        self._recorder.row(
            Updates,
            **_place(update.state),
            action=action,
            object=f"{update.state}/{update.key}",
            origin_rank=update.author.rank,
            origin_incarnation=update.author.incarnation,
            counter=update.counter,
            version=update.version,
            deps=update.deps,
            num_bytes=len(update.value),
            digest=xxhash.xxh3_128(update.value).hexdigest(),
        )


def _place(state: str) -> dict[str, object]:
    return {"group_id": f"state/{state}", "epoch": 0, "regime": Regime.CAUSAL}
