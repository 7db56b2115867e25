"""What every run of the simulated cluster must keep, checked while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from cascade_runtime.agent.plan import Awaits, Drains, Plan
from cascade_runtime.agent.plan_cohorts import is_apart
from cascade_runtime.agent.protocol import Facts, View
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.identity import Actor, Dot
from cascade_runtime.vocabulary.policy import Policy
from cascade_runtime.vocabulary.regime import Regime
from tests.agent.sim_fabric import Fabric
from tests.agent.sim_newcomer import Newcomer
from tests.agent.sim_rank import Rank


class Laws:
    """The history that all agents together must agree on, and who died when."""

    def __init__(self, policy: Policy, fabric: Fabric, ranks: dict[Actor, Rank]) -> None:
        self.history: list[View] = []
        self.certified: dict[Actor, int] = {}
        """Rank -> when its agent certified its death."""
        self.now = 0
        self._policy = policy
        self._fabric = fabric
        self._ranks = ranks

    # ---- a plan, against the facts it was made from --------------------------------------------

    def planned(
        self, current: View, facts: Mapping[Actor, Facts], plan: Plan | Drains | Awaits, began: int
    ) -> None:
        assert set(facts) <= set(current.members), "facts of strangers"
        alive = {m: facts[m] for m in current.members if m in facts and not facts[m].dead}
        if is_apart(current, facts):
            self._apart(current, facts, alive, plan)
            return
        cut = max((f.decided for f in alive.values()), default=None)
        if isinstance(plan, Drains):
            assert len(alive) == len(current.members), "drained although somebody is lost"
            assert plan.step == cut
            assert plan.ranks == [m for m, f in alive.items() if f.decided < cut]
            return
        if isinstance(plan, Awaits):
            assert len(alive) == len(current.members), "a newcomer awaited over a loss"
            assert {f.decided for f in alive.values()} == {plan.step}
            return
        view = plan.view
        if view.joined:
            self._joined(current, alive, view)
            return
        assert view.epoch == current.epoch + 1
        assert view.from_regime is current.regime
        assert set(view.members) <= set(alive), "a member that did not answer or is dead"
        gone_before = [m for m in view.members if self.certified.get(m, began) < began]
        assert not gone_before, f"{gone_before} were certified dead before the ballot began"
        assert set(view.departed) == set(current.members) - set(view.members)
        self._regime(view)
        if view.regime is Regime.EVENTUAL and view.member_reason == "finished":
            cut = max((alive[m].decided for m in view.members), default=cut)
        if view.members:
            assert view.cut_step == cut
        self._voided(current, facts, view)
        behind = [m for m in view.members if facts[m].decided < view.cut_step]
        assert view.behind == behind
        if behind:
            assert view.source in view.members
            assert facts[view.source].decided == view.cut_step
        if view.regime > view.from_regime:
            assert not view.departed, "a climb with a loss"

    def _apart(
        self,
        current: View,
        facts: Mapping[Actor, Facts],
        alive: Mapping[Actor, Facts],
        plan: Plan | Drains | Awaits,
    ) -> None:
        """Where cohorts are apart, or not level since."""
        assert not isinstance(plan, Awaits), "nobody joins while cohorts are apart"
        if isinstance(plan, Drains):
            assert len(alive) == len(current.members), "drained although somebody is lost"
            assert {facts[m].decided for m in plan.ranks} == {plan.step - 1}
            return
        view = plan.view
        assert view.epoch == current.epoch + 1
        assert not view.joined
        assert view.members == list(alive)
        self._regime(view)
        assert view.regime is not Regime.STRONG, "a climb while cohorts are apart"
        if len(view.cohorts) > 1:
            assert view.cohorts == current.cohorts
            assert not (view.departed or view.optim_from)
        assert sorted(m for c in view.cuts for m in c.members) == view.members
        for level in view.levels:
            assert level.upto == max(
                d.counter for f in alive.values() for d in f.sums if d.actor == level.origin
            )
        for cut in view.cuts:
            if cut.behind:
                assert cut.source in set(cut.members) - set(cut.behind)
        self._void_of_gone(current, facts, view)

    def _void_of_gone(self, current: View, facts: Mapping[Actor, Facts], view: View) -> None:
        """Of a dead author: what it issued, nobody decided and nobody folded."""
        for author in (min(c) for c in current.cohorts):
            if author not in facts or not facts[author].dead or not view.members:
                continue
            known = [max(self._ranks[m].frontier.upto(author), self._ranks[m].sums.get(author, 0))
                     for m in view.members]  # fmt: skip
            issued = facts[author].issued
            lost = {Dot(author.rank, author.incarnation, c)
                    for c in range(max(known) + 1, issued + 1)}  # fmt: skip
            assert {d for d in view.voided if d.actor == author} == lost

    def _joined(self, current: View, alive: Mapping[Actor, Facts], view: View) -> None:
        """Somebody joins when nothing else is under way, over members that all stand at the cut."""
        assert list(alive) == current.members
        assert {f.decided for f in alive.values()} == {view.cut_step}
        assert not view.departed
        assert view.regime is view.from_regime is not Regime.EVENTUAL
        assert view.members == sorted([*current.members, *view.joined])
        assert len({m.rank for m in view.members}) == len(view.members), "a rank twice"
        alone = sorted([current.members, *([a] for a in view.joined)])
        assert view.cohorts in ([view.members], alone)
        if min(current.members) not in map(min, view.cohorts):
            assert set(view.voided) == set(view.in_flight), "open dots of an author that was"

    def _regime(self, view: View) -> None:
        if view.regime is view.from_regime:
            return
        assert view.fault is not None, "the regime moved without a fault event"
        assert self._policy.target(view.from_regime, view.fault) is view.regime
        assert view.regime.level - view.from_regime.level <= 1

    # ---- a commit, against the truth -----------------------------------------------------------

    def installed(self, view: View, known: int, suspects: frozenset[Actor]) -> None:
        """An agent whose newest epoch was ``known`` installed ``view``; ``suspects`` to the first."""
        assert view.epoch == known + 1, "epochs have a hole"
        if view.epoch < len(self.history):
            assert view == self.history[view.epoch], "two views of one epoch"
            return
        assert view.epoch == len(self.history)
        before = self.history[-1] if self.history else None
        self.history.append(view)
        if before is not None:
            self._acknowledged(before, view, suspects)
            self._at_the_cut(view)
            self._regime(view)
            self._one_fall_a_death()

    def one_update_a_name(self) -> None:
        """What two ranks decided under one dot, lost ones too, has the same gradients in it."""
        void = {d for v in self.history for d in v.voided}
        for dot, made in self._fabric.content.items():
            assert len(made) == 1 or dot in void, f"{dot} names {made}"

    def _acknowledged(self, before: View, view: View, suspects: frozenset[Actor]) -> None:
        acked = {actor for actor, told in self._fabric.acknowledged if told == view}
        vouched = acked | self.certified.keys()
        silent = set(view.members) - vouched - suspects
        assert not silent, f"committed without {silent}"
        assert 2 * len(vouched & set(before.members)) > len(before.members), "no majority"

    def _at_the_cut(self, view: View) -> None:
        """Nobody who stays has moved since it answered, and all agree on what was decided."""
        applied: dict[object, Dot] = {}
        for member in view.members:
            rank = self._ranks[member]
            if not rank.alive or (rank.actor, view) not in self._fabric.acknowledged:
                continue
            assert rank.halted, f"{member} runs on"
            cut = view.cut_of(member)
            at = cut.step - (member in cut.behind) if rank.is_apart else view.cut_step
            at -= member in view.behind
            assert rank.decided == at, f"{member} is elsewhere"
            for step, dot in rank.applied.items():
                assert applied.setdefault(step, dot) == dot, f"step {step} was decided twice"

    def _voided(self, current: View, facts: Mapping[Actor, Facts], view: View) -> None:
        """Of a dead author, all that it issued and nobody decided is void; the truth decides."""
        author = min(current.members)
        if author not in facts or not facts[author].dead or not view.members:
            return
        decided = max(self._ranks[m].frontier.upto(author) for m in view.members)
        issued = facts[author].issued
        assert issued >= self._ranks[author].issued, "a fenced author issued on"
        lost = [Dot(author.rank, author.incarnation, c) for c in range(decided + 1, issued + 1)]
        assert view.voided == lost, "a dead author's open dots are not void"

    def _one_fall_a_death(self) -> None:
        falls = [
            v
            for v in self.history
            if v.fault is FaultEvent.GPU_FAIL_STOP and v.regime < v.from_regime
        ]
        lost = {m for v in self.history for m in v.departed if v.member_reason == "failed"}
        assert len(falls) <= len(lost | self.certified.keys()), "one death judged twice"

    # ---- the end -------------------------------------------------------------------------------

    def settled(self) -> list[str]:
        """What still stands in the way of calm; empty when the job goes on as it should."""
        newest = self.history[-1]
        if len(newest.cohorts) > 1:
            return ["cohorts are apart"]
        wrong = [f"{m} is dead and a member" for m in newest.members if not self._ranks[m].alive]
        wrong += [f"{m} is stopped and a member" for m in newest.members if self._ranks[m].frozen]
        for rank in self._ranks.values():
            if not rank.alive or rank.left or rank.frozen:
                continue
            if isinstance(rank, Newcomer) and not rank.is_member:
                if newest.members and newest.regime is not Regime.EVENTUAL:
                    wrong.append(f"{rank.actor} has not joined")
                continue
            if rank.view != newest:
                wrong.append(f"{rank.actor} is in epoch {rank.view.epoch} of {newest.epoch}")
            elif rank.leaving and rank.actor in newest.members:
                wrong.append(f"{rank.actor} wants to leave")
            elif rank.halted:
                wrong.append(f"{rank.actor} is halted")
            elif newest.regime is not Regime.EVENTUAL and rank.is_apart:
                wrong.append(f"{rank.actor} is not level")
            elif newest.regime is not Regime.EVENTUAL and rank.decided < self._fabric.limit:
                wrong.append(f"{rank.actor} decided {rank.decided} of {self._fabric.limit}")
        frontiers = {repr(self._ranks[m].frontier) for m in newest.members}
        if not wrong and newest.regime is not Regime.EVENTUAL and len(frontiers) > 1:
            wrong.append(f"frontiers differ: {frontiers}")
        return wrong
