"""Who stepped apart is told in words."""

import pytest

from dashboard.story.apart import apart_words
from dashboard.story.model import Walk

S = 1_000_000_000


def walks(*cohorts):
    """A walk a second."""
    return [
        Walk(
            id=f"world:{number}", group="world", epoch=number, at_ns=number * S,
            from_regime="STRONG", to_regime="CAUSAL", fault=None, reason=None,
            members=sorted(rank for cohort in of for rank in cohort), missing=[], cohorts=of,
            proposer=None, sentence="",
        )
        for number, of in enumerate(cohorts)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cohorts", "words"),
    [
        ([[]], []),
        ([[[0, 1, 2]]], []),
        ([[[0, 1, 3], [2]], [[0, 1, 2, 3]]], ["rank 2 stepped by itself for 1.0 s"]),
        ([[[1], [0, 2, 3]], [[1], [0, 2, 3]]], ["rank 1 stepped by itself for 2.0 s"]),
        ([[[0], [1]]], ["rank 1 stepped by itself for 1.0 s"]),
        ([[[0, 1, 2], [3], [4]]], ["ranks 3, 4 each stepped by itself for 1.0 s"]),
        ([[[0, 1, 2], [3, 4]]], ["ranks 3, 4 stepped apart from the others for 1.0 s"]),
        (
            [[[0, 1], [2], [3]], [[0, 1, 3], [2]]],
            ["rank 2 stepped by itself for 2.0 s", "rank 3 stepped by itself for 1.0 s"],
        ),
    ],
)
def test_the_smaller_cohorts_are_told_with_their_time(cohorts, words):
    told = walks(*cohorts)
    assert apart_words(told, len(told) * S) == words


def test_a_newcomer_that_is_no_member_yet_does_not_step():
    (walk,) = walks([[0, 1, 2], [3]])
    walk.members = [0, 1, 2]
    assert apart_words([walk], S) == []


def test_no_more_than_the_longest_are_told():
    told = walks(*([[[0, 1], *[[rank] for rank in range(2, 8 - number)]] for number in range(6)]))
    words = apart_words(told, 6 * S)
    assert len(words) == 3 and words[0].startswith("rank 2 stepped by itself for 6.0 s")
