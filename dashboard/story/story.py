"""The whole story of a run."""

from __future__ import annotations

from dashboard.story.actor_names import ActorNames
from dashboard.story.actors import cast_of
from dashboard.story.debts import debts_of
from dashboard.story.excursions import excursions_of
from dashboard.story.facts import Facts
from dashboard.story.group_names import group_names
from dashboard.story.incidents import incidents_of
from dashboard.story.marks import gaps_of, marks_of
from dashboard.story.model import RunPart, Story
from dashboard.story.regimes import regimes_of
from dashboard.story.seen import Seen
from dashboard.story.silence import silent_of
from dashboard.story.sql_behind import SQL
from dashboard.story.verdict import verdict_of
from dashboard.story.violations import violations_of
from dashboard.story.waits import waits_of
from dashboard.story.walks import walks_of
from dashboard.story.words import plain


def tell(facts: Facts, measured: dict[str, dict[str, str]], version: str) -> Story:
    """The story that the facts tell."""
    names = group_names(facts)
    cast = cast_of(facts)
    walks, debts = walks_of(facts, names), debts_of(facts, names)
    silent, waits = silent_of(facts, cast), waits_of(facts, cast)
    regimes = regimes_of(facts, cast, names, silent)
    gaps, violations = gaps_of(facts), violations_of(facts, names)
    marks, num_marks = marks_of(facts, ActorNames(cast), walks, gaps, violations)
    excursions = excursions_of(facts, walks, debts, names)
    seen = Seen(facts, cast, violations, excursions, silent, gaps, waits)
    return Story(
        version=version,
        t0_ns=str(facts.t0_ns),
        t1_ns=facts.since(facts.t1_ns),
        run=_run(facts),
        plan=[plain(line, 200) for line in facts.plan],
        actors=cast.actors,
        ranks=cast.ranks,
        missing=cast.missing,
        groups=names.all,
        regimes=regimes,
        walks=walks,
        marks=marks,
        num_marks=num_marks,
        debts=debts,
        silent=silent,
        gaps=gaps,
        verdict=verdict_of(facts, cast, regimes, excursions),
        violations=violations,
        waits=waits,
        incidents=incidents_of(seen),
        measured=measured,
        sql=SQL,
    )


def _run(facts: Facts) -> RunPart:
    meta = facts.meta
    judged = None if facts.judged is None else facts.judged.judged_ns
    return RunPart(
        run_id=meta.run_id,
        name=plain(meta.name) or meta.run_id,
        mode=meta.mode,
        state=facts.state,
        world_size=meta.world_size,
        policy=None if meta.policy is None else plain(meta.policy.name),
        num_rows=facts.num_rows,
        judged_ns=None if judged is None else facts.since(judged),
    )
