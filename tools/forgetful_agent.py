"""A host agent that is wrong on purpose: it climbs to STRONG while its debts stand open.

``python -m tools.forgetful_agent`` in place of ``python -m cascade_runtime.agent``, for the sample
``join-no-debt`` (make_broken_samples.py) and the test of it. All else is the real agent: the same walks, the
same rows, the same members. Debts are opened, and nobody closes them before the job ends.
"""

from __future__ import annotations

from unittest.mock import patch

from cascade_runtime.agent import host_state
from cascade_runtime.agent.__main__ import main
from cascade_runtime.agent.judge import Judge
from cascade_runtime.agent.protocol import Settle
from cascade_runtime.agent.reconcile import Reconciler
from cascade_runtime.vocabulary.regime import Regime


class ForgetfulReconciler(Reconciler):
    """Tells whoever asks before a climb that nothing is owed."""

    def relaxed(self) -> list[Regime]:
        """No debt refuses a climb."""
        return []


class ForgetfulJudge(Judge):
    """Orders no debt to be settled before the job ends, and asks for the climb without."""

    def _settle(self, now: float, equal: bool, everything: bool = False) -> Settle | None:
        return super()._settle(now, equal, everything) if everything else None

    def _stable(self) -> bool:
        kept, self.reconciler.open = self.reconciler.open, {}
        try:
            return super()._stable()
        finally:
            self.reconciler.open = kept


if __name__ == "__main__":
    with (
        patch.object(host_state, "Judge", ForgetfulJudge),
        patch.object(host_state, "Reconciler", ForgetfulReconciler),
    ):
        raise SystemExit(main())
