-- Every debt opened, settled or written off, in time, with how many were open then in its group.
-- wall_ns: when
-- group_id: the consistency group
-- debt_id: the debt
-- action: opened, settled, written_off
-- relaxed: the guarantee given up
-- object: the object concerned, null = every object
-- resolution: the fate, on settled
-- drift_l2: L2 norm of parameters before against after, on settled
-- num_open: debts open in the group after this row
-- run_id: the run
WITH opened AS (
    SELECT *
    FROM debt
    WHERE action = 'opened'
    QUALIFY row_number() OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns, rank, incarnation, seq) = 1
),
closed AS (
    SELECT *
    FROM debt
    WHERE action IN ('settled', 'written_off')
    QUALIFY row_number() OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns, rank, incarnation, seq) = 1
),
changes AS (
    SELECT *, 1 AS change FROM opened
    UNION ALL
    SELECT c.*, CASE WHEN o.debt_id IS NULL THEN 0 ELSE -1 END AS change
    FROM closed AS c LEFT JOIN opened AS o ON c.run_id = o.run_id AND c.debt_id = o.debt_id
)
SELECT
    wall_ns,
    group_id,
    debt_id,
    action,
    coalesce(relaxed, first_value(relaxed IGNORE NULLS) OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns)) AS relaxed,
    coalesce(object, first_value(object IGNORE NULLS) OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns)) AS object,
    resolution,
    drift_l2,
    sum(change) OVER (PARTITION BY run_id, group_id ORDER BY wall_ns, rank, incarnation, seq)::BIGINT AS num_open,
    run_id
FROM changes
ORDER BY run_id, wall_ns, rank, incarnation, seq
