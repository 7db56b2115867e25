"""Plans that let newcomers in: with the others, or by themselves where the policy parts cohorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cascade_runtime.agent.plan_parts import in_flight_of, ranks_of
from cascade_runtime.agent.protocol import Facts, View
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.policy import Policy
from cascade_runtime.vocabulary.regime import Regime


def plan_join(
    current: View,
    facts: Mapping[Actor, Facts],
    newcomers: list[Actor],
    cut: int,
    policy: Policy,
    proposer: Actor,
) -> View:
    """The view that lets newcomers in, who stand at the cut as all members do."""
    members = sorted([*current.members, *newcomers])
    cohorts = _apart(current, facts, newcomers, policy) or [members]
    in_flight = in_flight_of(current, facts, cut)
    came = "came back" if all(a.incarnation for a in newcomers) else "joined"
    several = len(newcomers) > 1
    by_itself = f", stepping by {'themselves' if several else 'itself'}" if len(cohorts) > 1 else ""
    return View(
        epoch=current.epoch + 1,
        regime=current.regime,
        from_regime=current.regime,
        members=members,
        cohorts=cohorts,
        reason=f"{ranks_of(newcomers)} {came}{by_itself}",
        proposer=proposer,
        joined=newcomers,
        member_reason="joined",
        cut_step=cut,
        # Where the author changes, the open step is issued again under the new one's name.
        voided=in_flight if min(current.members) not in map(min, cohorts) else [],
        in_flight=in_flight,
    )


def _apart(
    current: View, facts: Mapping[Actor, Facts], newcomers: Sequence[Actor], policy: Policy
) -> list[list[Actor]]:
    """The cohorts in which newcomers step by themselves until they keep the pace; empty: all together.

    A newcomer's first steps may be slow (nothing is compiled, no data is cached), and below STRONG
    nobody waits for it. In CAUSAL only, as ``parted``.
    """
    bound = any(facts[m].is_bound for m in current.members)
    if not policy.cohorts.split or current.regime is not Regime.CAUSAL or bound:
        return []
    return sorted([list(current.members), *([actor] for actor in newcomers)])
