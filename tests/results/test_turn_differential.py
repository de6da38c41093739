"""Hypotheses as a differential: order, scale, and the probability left for anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentclinic.results.turn import Differential, Hypothesis, Source, as_differential

Shares = dict[str, float | None]


def stated(shares: Shares) -> Differential | None:
    return as_differential(
        Source.STATED, (Hypothesis(diagnosis=name, probability=share) for name, share in shares.items())
    )


@pytest.mark.parametrize(
    ("shares", "expected", "other"),
    [
        ({"a": 0.2, "b": 0.5}, {"b": 0.5, "a": 0.2}, 0.3),
        ({"a": 1.0}, {"a": 1.0}, 0.0),
        ({"a": 0.5, "b": 1.5 / 2, "c": 0.75}, {"b": 0.375, "c": 0.375, "a": 0.25}, 0.0),
        ({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.0}, 1.0),
        ({"a": None, "b": 0.4, "c": None}, {"b": 0.4, "a": None, "c": None}, None),
        ({"a": None, "b": None}, {"a": None, "b": None}, None),
    ],
    ids=["likeliest first", "certain", "more than 1 is scaled down", "all zero", "some unknown", "all unknown"],
)
def test_hypotheses_become_a_differential(shares: Shares, expected: Shares, other: float | None) -> None:
    found = stated(shares)
    assert found is not None
    assert [h.diagnosis for h in found.hypotheses] == list(expected)
    assert [h.probability for h in found.hypotheses] == pytest.approx(list(expected.values()))
    assert found.other == (other if other is None else pytest.approx(other))


def test_without_hypotheses_there_is_no_differential() -> None:
    assert as_differential(Source.STATED, ()) is None


def test_scores_and_reasons_are_kept_and_a_score_is_not_a_probability() -> None:
    found = as_differential(Source.PLANNER_SCORE, [Hypothesis(diagnosis="a", score=0.9, reason="fits")])
    assert found is not None
    assert (found.hypotheses[0].score, found.hypotheses[0].reason) == (0.9, "fits")
    assert (found.hypotheses[0].probability, found.other) == (None, None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_probabilities_and_the_rest_always_sum_to_1(shares: list[float]) -> None:
    found = stated({f"d{number}": share for number, share in enumerate(shares)})
    assert found is not None
    given_shares = [h.probability or 0.0 for h in found.hypotheses]
    assert given_shares == sorted(given_shares, reverse=True)
    assert sum(given_shares) + (found.other or 0.0) == pytest.approx(1)
