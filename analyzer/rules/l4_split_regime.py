"""Two regimes in one epoch.

What it does:
    Operations (collectives, updates, reads) of one (group, epoch) must all carry the committed
    regime; committed rows of one new epoch must not differ; STRONG has one cohort. Sides of a
    partition that fell to EVENTUAL by NO_MAJORITY are judged each among themselves.

Why it matters:
    If one rank believes STRONG and another CAUSAL, each keeps the promises of another world. It is
    split brain, one level up.

Example:
    In epoch 7 rank 0 reduces under STRONG and rank 1 under CAUSAL.
"""

from __future__ import annotations

import numpy as np

from analyzer.history import History
from analyzer.rows import LEVELS, REGIMES
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.walks import Step, Walk


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, L4."""
    outcome = Outcome()
    _judge_operations(history, outcome)
    _judge_commits(history, outcome)
    return outcome


def _judge_operations(history: History, outcome: Outcome) -> None:
    ops = history.operations
    judged = np.flatnonzero(ops.regime > 0)
    outcome.num_checked += len(judged)
    if not len(judged):
        return
    # One entry for each distinct (group, epoch, actor, regime): few, whatever the run's length. An
    # actor's rows lie together, so most of them repeat the row before.
    columns = [c[judged] for c in (ops.group, ops.epoch, ops.actor, ops.regime)]
    fresh = np.ones(len(judged), dtype=np.bool_)
    fresh[1:] = np.any([c[1:] != c[:-1] for c in columns], axis=0)
    kinds = np.unique(np.stack([c[fresh] for c in columns], axis=1), axis=0)
    acted: dict[tuple[int, int], set[int]] = {}
    for group, epoch, _, regime in kinds.tolist():
        acted.setdefault((group, epoch), set()).add(regime)
    for group, epoch, actor, regime in kinds.tolist():
        view = history.walks.view_of(group, epoch, actor)
        if view is not None and view.reported.to_level:
            agreed = view.reported.to_level
            if regime == agreed:
                continue
            why, proof = (
                f"epoch {epoch} is {REGIMES[agreed]} by the committed walk",
                [view.reported.row],
            )
        elif history.walks.views().get((group, epoch)) or len(acted[group, epoch]) == 1:
            continue
        else:
            others = " and ".join(REGIMES[r] for r in sorted(acted[group, epoch] - {regime}))
            why, proof = f"others acted in epoch {epoch} under {others}", []
        rows = ops.row[
            (ops.group == group)
            & (ops.epoch == epoch)
            & (ops.actor == actor)
            & (ops.regime == regime)
        ]
        for row in rows.tolist():
            outcome.findings.append(
                Finding(
                    row=row,
                    sentence=(f"{history.who(actor)} acted under {REGIMES[regime]}, but {why}."),
                    witness=(*proof, row),
                )
            )


def _judge_commits(history: History, outcome: Outcome) -> None:
    agreed: dict[int, tuple[int, ...]] = {}  # last view with a majority, by group
    for (group, epoch), views in sorted(history.walks.views().items()):
        outcome.num_checked += sum(len(view.commits) for view in views)
        before = agreed.get(group) or history.walks.initial_members(group)
        with_majority = [v for v in views if _majority(v.members, before)]
        alone = [v for v in views if v not in with_majority]
        excused = all(v.reported.fault == "NO_MAJORITY" for v in alone)
        if len(views) > 1 and (len(with_majority) > 1 or not excused):
            _report_differing(history, outcome, epoch, [s for v in views for s in v.commits])
        else:
            for view in views:
                if len({_content(step) for step in view.commits}) > 1:
                    _report_differing(history, outcome, epoch, view.commits)
        for view in views:
            _report_cohorts(history, outcome, view)
        if len(views) == 1 or with_majority:
            agreed[group] = (with_majority or views)[0].members


def _majority(members: tuple[int, ...], before: tuple[int, ...]) -> bool:
    return 2 * len(set(members) & set(before)) > len(before)


def _content(step: Step) -> tuple[object, ...]:
    # from_regime is left out: sides of a healed partition come from different regimes.
    return step.to_level, step.fault, step.members, step.cohorts


def _report_differing(history: History, outcome: Outcome, epoch: int, steps: list[Step]) -> None:
    for step in steps:
        other = next(s for s in steps if _content(s) != _content(step))
        outcome.findings.append(
            Finding(
                row=step.row,
                sentence=(
                    f"{history.who(step.actor)} and {history.who(other.actor)} committed epoch "
                    f"{epoch} differently: {_words(history, step)} against {_words(history, other)}."
                ),
                witness=(other.row, step.row),
            )
        )


def _words(history: History, step: Step) -> str:
    cohorts = f" in {len(step.cohorts)} cohorts" if step.cohorts and len(step.cohorts) > 1 else ""
    members = history.whom(step.members) if step.members else "no members"
    return f"{REGIMES.get(step.to_level, 'no regime')} of {members}{cohorts}"


def _report_cohorts(history: History, outcome: Outcome, view: Walk) -> None:
    for step in view.commits:
        if step.to_level == LEVELS["STRONG"] and step.cohorts and len(step.cohorts) > 1:
            outcome.findings.append(
                Finding(
                    row=step.row,
                    sentence=(
                        f"{history.who(step.actor)} committed epoch {step.new_epoch} as STRONG with "
                        f"{len(step.cohorts)} cohorts; STRONG means that all step together."
                    ),
                    witness=(step.row,),
                )
            )


PLUGIN = Rule(
    code="L4",
    severity="error",
    needs=(("transitions", "collectives", "updates", "reads"),),
    check=check,
)
