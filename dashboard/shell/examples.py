"""Questions to begin with in the SQL box; docs/sql.md has the same ones with their answers."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """A question, and the statement that answers it."""

    question: str
    sql: str


EXAMPLES = (
    Example(
        "What happened?",
        """\
SELECT kind, severity, rank, epoch, sentence FROM incidents""",
    ),
    Example(
        "Who waited for whom?",
        """\
SELECT root_rank AS caused_by, rank AS waited, count(*) AS num_waits,
       round(sum(wait_ns) / 1e6, 1) AS wait_ms, mode(cause) AS cause
FROM waits
WHERE root_rank IS NOT NULL
GROUP BY ALL ORDER BY wait_ms DESC LIMIT 6""",
    ),
    Example(
        "Which steps were slow, and who held them up?",
        """\
SELECT step, num_waits, round(waited_s * 1e3, 1) AS waited_ms, worst_rank,
       round(worst_s * 1e3, 1) AS worst_ms
FROM wasted_by_step ORDER BY waited_s DESC LIMIT 5""",
    ),
    Example(
        "Who is the straggler?",
        """\
SELECT rank, round(caused_s, 3) AS caused_s, round(last_s, 3) AS last_s,
       round(waited_s, 3) AS waited_s, num_steps_worst, round(share_of_steps, 2) AS share
FROM slowest_ranks""",
    ),
    Example(
        "How long does a step take on each rank?",
        """\
WITH spans AS (
    SELECT rank, step, max(wall_ns) - min(wall_ns) AS took_ns
    FROM steps GROUP BY ALL HAVING count(DISTINCT phase) = 2
)
SELECT rank, count(*) AS num_steps, round(median(took_ns) / 1e6, 2) AS median_ms,
       round(quantile_cont(took_ns, 0.95) / 1e6, 2) AS p95_ms, round(max(took_ns) / 1e6, 2) AS worst_ms
FROM spans GROUP BY rank ORDER BY rank""",
    ),
    Example(
        "When did we leave STRONG, why, and for how long?",
        """\
WITH walks AS (
    SELECT new_epoch, from_regime, to_regime, fault, min(wall_ns) AS wall_ns FROM transitions
    WHERE phase = 'committed' AND from_regime <> to_regime GROUP BY ALL
)
SELECT new_epoch, from_regime, to_regime, fault,
       round((lead(wall_ns) OVER (ORDER BY new_epoch) - wall_ns) / 1e6, 1) AS until_next_ms
FROM walks ORDER BY new_epoch""",
    ),
    Example(
        "What share of the time was each regime?",
        """\
SELECT group_id, regime, round(rank_s, 2) AS rank_s, round(share_pct, 1) AS share_pct
FROM regime_share""",
    ),
    Example(
        "What debt is open?",
        """\
SELECT debt_id, relaxed, object, rank, num_in_flight FROM open_debt""",
    ),
    Example(
        "What became of the debt that there was?",
        """\
SELECT debt_id, action, relaxed, object, resolution, num_open FROM debt_timeline""",
    ),
    Example(
        "Was any promise broken?",
        """\
SELECT code, rank, seq, regime, sentence FROM violation_list""",
    ),
    Example(
        "Was anything lost?",
        """\
SELECT code, name, verdict, num_checked, (SELECT count(*) FROM gaps) AS num_gaps
FROM checks WHERE code LIKE 'Q%' ORDER BY code""",
    ),
    Example(
        "What happened around a moment?",
        """\
WITH moment AS (SELECT min(wall_ns) AS t FROM health WHERE fault = 'GPU_FAIL_STOP'),
everything AS (
    SELECT wall_ns, rank, 'step ' || step || ' ' || phase AS what FROM steps
    UNION ALL
    SELECT wall_ns, rank, op || ' ' || coalesce(label, '') || ' entered' FROM collectives
    UNION ALL
    SELECT wall_ns, rank, 'health: ' || signal || ' of rank ' || subject_rank FROM health
    UNION ALL
    SELECT wall_ns, rank, phase || ' epoch ' || new_epoch FROM transitions
)
SELECT round((wall_ns - t) / 1e6, 1) AS ms, rank, what
FROM everything, moment
WHERE abs(wall_ns - t) < 25e6 ORDER BY wall_ns, rank LIMIT 14""",
    ),
    Example(
        "How long did the others stand still when a rank died?",
        """\
WITH ends AS (
    SELECT rank, step, wall_ns, lag(wall_ns) OVER (PARTITION BY rank ORDER BY wall_ns) AS before_ns
    FROM steps WHERE phase = 'end'
)
SELECT rank, arg_max(step, wall_ns - before_ns) AS step,
       round(max(wall_ns - before_ns) / 1e6, 1) AS longest_ms,
       round(median(wall_ns - before_ns) / 1e6, 1) AS median_ms
FROM ends GROUP BY rank ORDER BY rank""",
    ),
    Example(
        "How stale was what each rank read?",
        """\
WITH issued AS (
    SELECT object, version, min(wall_ns) AS wall_ns FROM updates
    WHERE action = 'issued' AND version IS NOT NULL GROUP BY ALL
),
newest AS (
    SELECT r.object, r.rank, r.version, max(i.version) AS newest
    FROM reads AS r JOIN issued AS i ON i.object = r.object AND i.wall_ns <= r.wall_ns
    WHERE r.use = 'forward' AND r.version IS NOT NULL
    GROUP BY r.object, r.rank, r.seq, r.version
)
SELECT object, newest - version AS versions_behind, count(*) AS num_reads
FROM newest GROUP BY ALL ORDER BY object, versions_behind""",
    ),
    Example(
        "Who was in, and when did that change?",
        """\
SELECT DISTINCT epoch, reason, [m.rank for m in members] AS members,
       [d.rank for d in departed] AS departed
FROM membership ORDER BY epoch, reason""",
    ),
    Example(
        'What did the policy decide, "no change" included?',
        """\
SELECT fault, from_regime, to_regime, changed, count(*) AS num, any_value(reason) AS reason
FROM decisions GROUP BY ALL ORDER BY num DESC, fault""",
    ),
)
