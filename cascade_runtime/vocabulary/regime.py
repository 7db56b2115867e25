"""The regime lattice: what the ranks of one group may disagree about right now.

Source: "CASCADE" (Abi Aryan, 2026), Finding 2: strong, causal and eventual form a lattice that is
walked at run time. One group is a chain; several groups are a product of chains, where some pairs
are incomparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Regime(Enum):
    """One consistency regime. ``<=`` reads "promises no more than"."""

    EVENTUAL = "EVENTUAL"
    CAUSAL = "CAUSAL"
    STRONG = "STRONG"

    @property
    def level(self) -> int:
        """1 (EVENTUAL), 2 (CAUSAL) or 3 (STRONG), the article's numbering."""
        return _LEVELS[self.value]

    def __le__(self, other: Regime) -> bool:
        return self.level <= other.level

    def __lt__(self, other: Regime) -> bool:
        return self.level < other.level

    def __ge__(self, other: Regime) -> bool:
        return self.level >= other.level

    def __gt__(self, other: Regime) -> bool:
        return self.level > other.level

    def join(self, other: Regime) -> Regime:
        """The weakest regime that promises all that either of the two does."""
        return max(self, other)

    def meet(self, other: Regime) -> Regime:
        """The strongest regime that both promise."""
        return min(self, other)

    def __str__(self) -> str:
        return self.value


_LEVELS = {"EVENTUAL": 1, "CAUSAL": 2, "STRONG": 3}


class ProductRegime:
    """The regimes of several consistency groups at once, compared componentwise.

    A group that one side does not name counts as STRONG there: nothing has been relaxed in it.
    """

    __slots__ = ("_by_group",)

    def __init__(self, by_group: Mapping[str, Regime]) -> None:
        # STRONG is the default, so leaving it out makes equal products equal as mappings.
        self._by_group = {g: r for g, r in sorted(by_group.items()) if r is not Regime.STRONG}

    def __getitem__(self, group_id: str) -> Regime:
        return self._by_group.get(group_id, Regime.STRONG)

    def _groups(self, other: ProductRegime) -> set[str]:
        return self._by_group.keys() | other._by_group.keys()

    def __le__(self, other: ProductRegime) -> bool:
        return all(self[g] <= other[g] for g in self._groups(other))

    def __ge__(self, other: ProductRegime) -> bool:
        return other <= self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProductRegime) and self._by_group == other._by_group

    def __hash__(self) -> int:
        return hash(tuple(self._by_group.items()))

    def comparable(self, other: ProductRegime) -> bool:
        """False when each of the two promises something that the other does not."""
        return self <= other or other <= self

    def join(self, other: ProductRegime) -> ProductRegime:
        """Componentwise join."""
        return ProductRegime({g: self[g].join(other[g]) for g in self._groups(other)})

    def meet(self, other: ProductRegime) -> ProductRegime:
        """Componentwise meet."""
        return ProductRegime({g: self[g].meet(other[g]) for g in self._groups(other)})

    def at(self, *group_ids: str) -> Regime:
        """The regime an operation is judged at that touches all of ``group_ids``: their meet."""
        return min((self[g] for g in group_ids), default=Regime.STRONG)

    def __repr__(self) -> str:
        inner = ", ".join(f"{g}={r}" for g, r in self._by_group.items())
        return f"ProductRegime({inner or 'all STRONG'})"
