"""The statement behind each figure, for a person's own SQL."""

from __future__ import annotations

from dashboard.story.sample_keeper import CPU_SAMPLE

SQL: dict[str, str] = {
    "waits": "SELECT rank, waited_s, caused_s, exposed_s, joules FROM wasted_barrier_time "
    "ORDER BY caused_s DESC",
    "pairs": "SELECT root_rank AS caused_by, rank AS waited, count(*) AS num, "
    "sum(wait_ns) / 1e9 AS wait_s FROM waits WHERE root_rank IS NOT NULL AND wait_ns > 0 "
    "GROUP BY ALL ORDER BY wait_s DESC",
    "regime_share": "SELECT group_id, regime, rank_s, share_pct FROM regime_share",
    "regimes": "SELECT rank, incarnation, group_id, epoch, regime, start_ns, end_ns "
    "FROM regime_timeline",
    "walks": "SELECT * FROM transitions WHERE phase = 'committed' ORDER BY wall_ns",
    "violations": "SELECT code, name, rank, seq, wall_ns, sentence FROM violation_list",
    "checks": "SELECT code, name, verdict, num_checked, num_violations, reason FROM checks",
    "debts": "SELECT wall_ns, debt_id, action, relaxed, resolution, num_open FROM debt_timeline",
    "incidents": "-- What incidents are made of: a row for each thing that happened, in time. The page's "
    "list\n-- puts into one what belongs together (a death, the fall, the climb back), adds waits, hangs "
    "and silence,\n-- and begins with the worst.\n"
    "SELECT wall_ns, kind, severity, rank, sentence FROM incidents",
    "gpu": "SELECT wall_ns, rank, util_pct, power_w, temp_c FROM gpu_utilisation",
    "cpu": "SELECT wall_ns, subject_rank AS rank, least(value, 100) AS busy_pct FROM health "  # noqa: S608
    f"WHERE {CPU_SAMPLE} ORDER BY wall_ns",
    "gaps": "SELECT rank, incarnation, wall_ns, num_events, reason FROM gaps ORDER BY wall_ns",
}
