"""The demo's stories: what is run, what is done to it, and what the referee should say afterwards."""

from __future__ import annotations

from cascade_runtime.vocabulary.errors import BadUsage
from dashboard.demo.faults import Cold, Join, Kill, KillAgent, Late, Stop
from dashboard.demo.scenario import Move, Scenario

_DIED = Move("STRONG", "CAUSAL", "GPU_FAIL_STOP")
_DIED_AGAIN = Move("CAUSAL", "EVENTUAL", "GPU_FAIL_STOP")
_RECOVERED = Move("EVENTUAL", "CAUSAL", "RECOVERY_DETECTED")
_LATE = Move("STRONG", "CAUSAL", "RANK_SKEW_HIGH")
_CHURN = Move("STRONG", "CAUSAL", "NODE_CHURN_HIGH")
_CALM = Move("CAUSAL", "STRONG", "STABLE_SYNC")

_COLD = Cold(steps=12, ms=400.0)

_ALL_TRAIN = "All ranks train together, one reduction a step: the regime is STRONG."
_SETTLED = (
    "What was relaxed is debt. When all survivors agree by digest it is settled; after at least 5 "
    "calm steps they climb back to STRONG on the smaller view."
)
_COMES_BACK = (
    "Rank 2 is started again as incarnation 2.1: it takes a snapshot and the log from a live member "
    "while the others go on, and is added by a walk when it is level."
)
_TWO_CHANGES = (
    "A rank that is on its way back is churn: NODE_CHURN_HIGH, the ranks walk to CAUSAL before it is "
    "added and stay there until it has been quiet."
)
_QUIET = "Nobody came or went for 30 s: back to STRONG, all four again."

_STORIES = (
    Scenario(
        name="minute",
        summary="a late rank, a death and a return: what a bad minute looks like",
        story=(
            _ALL_TRAIN,
            "From step 40 on rank 3 comes 100 ms late to each step: RANK_SKEW_HIGH, and the ranks "
            "walk to CAUSAL, once.",
            "From step 80 on it is in time again; after 20 good steps and at least 5 calm ones: "
            "STRONG.",
            "Rank 2 is killed (SIGKILL) while it waits in a collective of step 151.",
            "Its host's agent certifies the death: CAUSAL, one cohort, missing {2}. The interrupted "
            "step is reduced again among the survivors, and what was relaxed is debt.",
            "The survivors agree by digest, the debt is settled: STRONG on the smaller view.",
            _COMES_BACK,
            _TWO_CHANGES,
            _QUIET,
        ),
        expected="ok",
        path=(_LATE, _CALM, _DIED, _CALM, _CHURN, _CALM),
        steps=640,
        pause_ms=80.0,
        late=Late(rank=3, first_step=40, last_step=79, ms=100.0),
        strikes=(Kill(rank=2, after_step=150),),
        respawn=1,
    ),
    Scenario(
        name="kill-one",
        summary="one of the ranks is killed in the middle of a collective",
        story=(
            _ALL_TRAIN,
            "Rank 2 is killed (SIGKILL) while it waits in a collective of step 41.",
            "Its host's agent certifies the death; the survivors walk to CAUSAL, one cohort, "
            "missing {2}, and reduce the interrupted step again among themselves.",
            _SETTLED,
        ),
        expected="ok",
        path=(_DIED, _CALM),
        strikes=(Kill(rank=2, after_step=40),),
    ),
    Scenario(
        name="kill-rank0",
        summary="rank 0 is killed, which elsewhere holds the store and the rendezvous",
        story=(
            _ALL_TRAIN,
            "Rank 0, the author of all updates, is killed (SIGKILL) in step 41.",
            "Nothing of the job lived in it: the survivors walk to CAUSAL, missing {0}; rank 1 is "
            "the author from there on, and what rank 0 had issued and nobody decided is void.",
            _SETTLED,
        ),
        expected="ok",
        path=(_DIED, _CALM),
        strikes=(Kill(rank=0, after_step=40),),
    ),
    Scenario(
        name="two-dead",
        summary="a second rank dies before the first loss is settled",
        story=(
            _ALL_TRAIN,
            "Rank 2 is killed (SIGKILL) in step 41.",
            "Its host's agent certifies the death: CAUSAL, missing {2}.",
            "Rank 3 is killed (SIGKILL) two steps later, before the climb.",
            "A second loss before the first is settled: EVENTUAL. The survivors hold; nothing is "
            "relaxed that could not be repaid.",
            "All that live have answered for a second, nobody is suspected: RECOVERY_DETECTED, "
            "CAUSAL.",
            "Two losses within a minute are churn, so the climb waits for 30 s of quiet. The debt is "
            "settled by then: STRONG on the smaller view.",
        ),
        expected="ok",
        path=(_DIED, _DIED_AGAIN, _RECOVERED, _CALM),
        steps=360,
        pause_ms=120.0,
        strikes=(Kill(rank=2, after_step=40), Kill(rank=3, after_step=42)),
    ),
    Scenario(
        name="freeze",
        summary="a rank is stopped for a second and a half, and thaws into a job that went on",
        story=(
            _ALL_TRAIN,
            "Rank 2 is stopped (SIGSTOP) in step 41: it lives, and does nothing.",
            "Its host's agent fences it, and the others walk to CAUSAL without it.",
            _SETTLED,
            "SIGCONT: it finds the fence, acts in no epoch that moved on without it, and ends with "
            "one sentence. The others train to the last step.",
        ),
        expected="ok",
        path=(_DIED, _CALM),
        pause_ms=25.0,
        strikes=(Stop(rank=2, after_step=40),),
    ),
    Scenario(
        name="straggler",
        summary="a rank is 50 ms late in each step: one walk, no flapping",
        story=(
            _ALL_TRAIN,
            "From step 40 on rank 2 comes 50 ms late to each step, and everybody waits for it: "
            "RANK_SKEW_HIGH, and the ranks walk to CAUSAL, once, and stay there while it lasts.",
            "From step 100 on it is in time again; after 20 good steps and at least 5 calm ones: "
            "STRONG.",
        ),
        expected="ok",
        path=(_LATE, _CALM),
        steps=180,
        late=Late(rank=2, first_step=40, last_step=99),
    ),
    Scenario(
        name="rejoin",
        summary="a rank is killed, started again and added while the others go on",
        story=(
            _ALL_TRAIN,
            "Rank 2 is killed (SIGKILL) in step 41.",
            "Its host's agent certifies the death: CAUSAL, missing {2}.",
            "The survivors agree by digest, the debt is settled: STRONG on the smaller view.",
            _COMES_BACK,
            _TWO_CHANGES,
            _QUIET,
            "All four train to the last step and hold the same parameters.",
        ),
        expected="ok",
        path=(_DIED, _CALM, _CHURN, _CALM),
        steps=420,
        pause_ms=100.0,
        strikes=(Kill(rank=2, after_step=40),),
        respawn=1,
    ),
    Scenario(
        name="join-mid-task",
        summary="a rank joins while the others train: they never wait for it",
        story=(
            _ALL_TRAIN,
            "After step 40 a rank is started that never was. It has nothing of the others' state: "
            "NODE_CHURN_HIGH, and they walk to CAUSAL, with the newcomer as a cohort of its own.",
            "While they go on, the newcomer joins: snapshot and log of a live member, then a walk lets it in. "
            "It steps by itself, for its first steps are slow; what each cohort learns goes to the other.",
            "When it keeps the others' pace a walk makes all one cohort: all are level, and the debt of "
            "the downgrade is settled.",
            "Nobody came or went for 30 s: STABLE_SYNC, back to STRONG, all together.",
            "All train to the last step and hold the same parameters.",
        ),
        expected="ok",
        path=(_CHURN, _CALM),
        steps=420,
        pause_ms=90.0,
        strikes=(Join(after_step=40),),
        cold=_COLD,
        policy="cohorts",
    ),
    Scenario(
        name="join-no-downgrade",
        summary="join-mid-task done wrong: no walk to CAUSAL, so everybody waits for the newcomer",
        story=(
            _ALL_TRAIN,
            "After step 40 a newcomer joins: snapshot and log of a live member, then a walk lets it in. The "
            "policy has no move for it, so the regime stays what it was.",
            "Its first 12 steps take 400 ms longer, and all others wait for it in each: the stall that the "
            "downgrade of join-mid-task spares them.",
            "All train to the last step. No promise was broken; see who waited for whom.",
        ),
        expected="ok",
        steps=140,
        pause_ms=90.0,
        strikes=(Join(after_step=40),),
        cold=_COLD,
        policy="no-downgrade",
    ),
    Scenario(
        name="agent-dies",
        summary="the host's agent is killed; its ranks go on, and it is started again",
        story=(
            _ALL_TRAIN,
            "The agent of host 0 is killed (SIGKILL) at step 40. Its ranks go on in their epoch.",
            "It is started again from its journal, finds its ranks, and ships what they wrote "
            "meanwhile; nothing is lost and no walk is needed.",
            "All ranks train to the last step.",
        ),
        expected="ok",
        strikes=(KillAgent(host=0, rank=0, after_step=40),),
    ),
    Scenario(
        name="stale-plan",
        summary="a worker acts on a plan that it knows to be replaced (observed only)",
        story=(
            "A planner (rank 0) and three workers share plans: a plan a round, and everybody acts on it. "
            "The job is only observed.",
            "In round 12 rank 2 takes long to prepare. Meanwhile the planner puts plan 13, and the word that "
            "plan 13 is out reaches rank 2.",
            "It acts on plan 12, which it holds in its hand, all the same.",
            "The verdict is violated: the report names that act (T1). Under enforce it would not have been "
            "let.",
        ),
        expected="violated",
        steps=20,
        pause_ms=50.0,
        script="plans",
        mode="observe",
        least_ranks=3,
    ),
    Scenario(
        name="resume-wrong",
        summary="a job resumes from an older checkpoint, with one random state for all, at data position 0",
        story=(
            "The job was trained before, saved after steps 20 and 40, and ended by a power cut. Now it resumes "
            "from step 20, although step 40 is there.",
            "The random state was saved under one name, so all ranks get that of one of them; and they begin "
            "at the beginning of the data.",
            "Nothing fails, and the loss falls.",
            "The verdict is violated: the report says what each load brought back wrongly (M1).",
        ),
        expected="violated",
        steps=60,
        script="resume",
        before=("--steps", "40", "--save"),
        arguments=("--resume", "step-20"),
    ),
    Scenario(
        name="clean",
        summary="nothing goes wrong",
        story=(
            "All ranks train together in STRONG from the first step to the last, then leave.",
            "The report should prove that every read, update and collective agreed.",
        ),
        expected="ok",
        steps=60,
    ),
)

SCENARIOS = {scenario.name: scenario for scenario in _STORIES}


def find_scenario(name: str, num_ranks: int) -> Scenario:
    """The scenario called ``name``, if ``num_ranks`` can play it.

    Raises:
        BadUsage: there is none of that name, or it names a rank that the job has not.
    """
    if name not in SCENARIOS:
        known = "\n  ".join(f"{s.name}: {s.summary}" for s in SCENARIOS.values())
        raise BadUsage(f"there is no scenario {name!r}", where="--scenario", hint=known)
    scenario = SCENARIOS[name]
    if num_ranks < scenario.needs_ranks:
        raise BadUsage(
            f"scenario {name} needs at least {scenario.needs_ranks} ranks",
            where="--ranks",
            hint=f"give --ranks {scenario.needs_ranks} or more",
        )
    return scenario
