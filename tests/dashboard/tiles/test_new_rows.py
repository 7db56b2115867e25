"""Looks at the newest minutes only bring every row, each once, whoever lags behind or comes late."""

from dashboard.tiles.rows import NEW_NS, WHOLE_S, NewRows
from tests.dashboard.tiles.sources import LocalRun, actor, gpu

LATE = 2 * NEW_NS


def read(new, source):
    rows = new.read(source)
    return sorted(zip(rows.rank.tolist(), rows.seq.tolist(), strict=True))


def test_each_row_once_though_a_rank_lags_behind_and_another_comes_late():
    now = [0.0]
    new = NewRows(lambda: now[0])
    source = LocalRun([actor(0), gpu(0, 1, LATE, 10.0), actor(1)], is_live=True)
    assert read(new, source) == [(0, 0), (0, 1), (1, 0)]
    # Rank 1 is far behind: were its newest row taken alone, the older one would never be.
    source.rows += [gpu(1, 1, 5, 1.0), gpu(1, 2, LATE, 1.0), gpu(0, 2, LATE + 5, 1.0)]
    source.rows += [actor(2, at=LATE), gpu(3, 4, LATE, 1.0)]
    assert read(new, source) == [(0, 2), (2, 0)]
    now[0] = WHOLE_S + 1.0
    assert read(new, source) == [(1, 1), (1, 2), (3, 4)]
    assert read(new, source) == []
