"""The register of doctored copies that break one promise each."""

from __future__ import annotations

from collections.abc import Callable

from tests.samples.doctor import Doctored, Row

Reports = list[tuple[str, Row]]
"""(code, the row that it is reported at), for every violation there should be."""

BROKEN: list[tuple[str, str, Callable[[Doctored], Reports]]] = []
"""(code, sample, what changes the copy and tells what must be found)."""


def breaks(code: str, sample: str = "kill-one"):
    """Registers a change under the code that it is made for."""

    def register(change: Callable[[Doctored], Reports]):
        BROKEN.append((code, sample, change))
        return change

    return register


def commit(d: Doctored, epoch: int) -> Row:
    """The proposer's committed row of an epoch."""
    return d.row("transitions", phase="committed", new_epoch=epoch, rank=d.agent)


def operations(d: Doctored, **is_: object) -> list[Row]:
    """Collectives, updates and reads with these values."""
    tables = ("collectives", "updates", "reads")
    return [row for name, row in d.every(**is_) if name in tables]


def nobody_leaves(d: Doctored) -> None:
    """Take out the walk in which the ranks leave at the end."""
    epoch = d.row("membership", reason="finished")["epoch"]
    d.remove(*d.rows("transitions", new_epoch=epoch), *d.rows("membership", epoch=epoch))
