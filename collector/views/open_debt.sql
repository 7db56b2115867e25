-- Debts that were opened and neither settled nor written off.
-- debt_id: the debt
-- group_id: the consistency group
-- relaxed: the guarantee given up
-- object: the object concerned, null = every object
-- new_epoch: epoch of the transition that opened it
-- rank: who opened it
-- incarnation: its incarnation
-- opened_ns: when
-- num_in_flight: updates whose fate was open at the cut
-- run_id: the run
WITH opened AS (
    SELECT *
    FROM debt
    WHERE action = 'opened'
    QUALIFY row_number() OVER (PARTITION BY run_id, debt_id ORDER BY wall_ns, rank, incarnation, seq) = 1
)
SELECT
    debt_id,
    group_id,
    relaxed,
    object,
    new_epoch,
    rank,
    incarnation,
    wall_ns AS opened_ns,
    coalesce(len(in_flight), 0) AS num_in_flight,
    run_id
FROM opened
WHERE NOT EXISTS (
    FROM debt AS d
    WHERE d.action IN ('settled', 'written_off')
        AND d.run_id = opened.run_id AND d.debt_id = opened.debt_id
)
ORDER BY run_id, opened_ns, debt_id
