from __future__ import annotations

import itertools
import random
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.scoring.metrics import DETERMINISTIC, NOT_REPEATED, Repeats, flipped_pairs, majority, pass_k, repeats
from agentclinic.scoring.rows import row_of


def judged(case: str, *verdicts: bool | None, said: str | None = None) -> list[Record]:
    """A record for each verdict; None for a missing one. Without `said` every transcript differs."""
    return [
        Record(
            scenario_id=0,
            case_hash=case,
            repeat=number,
            status="judge_failed" if right is None else "diagnosed",
            correct=right,
            transcript=[Turn(turn=1, role="doctor", text=said or f"{case} {number}")],
        )
        for number, right in enumerate(verdicts)
    ]


def score(records: list[Record]) -> Repeats:
    return repeats([row_of(record) for record in records])


def test_measures_over_repeats_are_those_worked_by_hand() -> None:
    found = score(judged("a", True, True, True) + judged("b", True, False, False) + judged("c", True, True, False))
    # Pairs that disagree: 0 + 1·2 + 2·1 of 3 + 3 + 3.
    assert found.flip_rate.value == pytest.approx(4 / 9)
    # pass^1 = (3/3 + 1/3 + 2/3)/3, pass^2 = (3/3 + 0 + 1/3)/3, pass^3 = (1 + 0 + 0)/3.
    assert {k: e.value for k, e in found.pass_k.items()} == pytest.approx({1: 2 / 3, 2: 4 / 9, 3: 1 / 3})
    assert found.majority_vote.value == pytest.approx(2 / 3)
    assert (found.cases, found.repeated, found.deterministic, found.note) == (3, 3, False, None)


def test_a_tied_vote_counts_half() -> None:
    found = score(judged("a", True, False) + judged("b", True, True) + judged("c", False, False))
    assert found.majority_vote.value == pytest.approx((0.5 + 1 + 0) / 3)


def test_records_without_a_verdict_are_left_out() -> None:
    found = score(judged("a", True, None, True) + judged("b", None, None))
    assert (found.cases, found.repeated, found.missing) == (1, 1, 3)
    assert found.flip_rate.value == 0
    assert list(found.pass_k) == [1, 2]


def test_a_deterministic_doctor_has_no_variance_and_a_note_says_so() -> None:
    found = score(judged("a", True, True, said="x") + judged("b", False, False, said="y"))
    assert (found.deterministic, found.note) == (True, DETERMINISTIC)


def test_verdicts_that_differ_on_identical_transcripts_are_pointed_out() -> None:
    found = score(judged("a", True, False, said="x"))
    assert found.deterministic is True
    assert found.note is not None
    assert found.note.startswith(DETERMINISTIC)
    assert found.note != DETERMINISTIC


def test_without_repeats_there_is_no_flip_rate() -> None:
    found = score(judged("a", True) + judged("b", False))
    assert (found.flip_rate.value, found.majority_vote.value, found.note) == (None, None, NOT_REPEATED)
    assert found.deterministic is None
    assert found.pass_k[1].value == pytest.approx(0.5)


def test_without_histories_or_transcripts_determinism_is_unknown() -> None:
    records = [
        Record(scenario_id=4, dataset="MedQA", status="diagnosed", correct=right, diagnosis_text="x")
        for right in (True, False)
    ]
    found = score(records)
    assert found.deterministic is None
    assert found.flip_rate.value == 1


def test_histories_are_used_if_there_are_no_transcripts() -> None:
    records = [
        Record(scenario_id=4, dataset="MedQA", status="diagnosed", correct=True, doctor_hist="Doctor: hello")
        for _ in range(2)
    ]
    assert score(records).deterministic is True


@given(st.integers(1, 7), st.data())
def test_pass_k_is_the_share_of_draws_that_are_all_right(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_k(c, n, k) == pytest.approx(mean(all(draw) for draw in draws))


@given(st.lists(st.booleans(), min_size=2, max_size=9))
def test_flips_and_votes_are_those_counted_one_by_one(verdicts: list[bool]) -> None:
    right, n = sum(verdicts), len(verdicts)
    assert flipped_pairs(right, n) == sum(a != b for a, b in itertools.combinations(verdicts, 2))
    assert majority(right, n) == (1 if right > n - right else 0.5 if right == n - right else 0)


@settings(max_examples=20)
@given(st.lists(st.lists(st.sampled_from([True, False, None]), max_size=4), max_size=6), st.randoms())
def test_the_order_of_records_changes_nothing(cases: list[list[bool | None]], rng: random.Random) -> None:
    records = [record for i, verdicts in enumerate(cases) for record in judged(str(i), *verdicts)]
    before = score(records)
    rng.shuffle(records)
    assert score(records) == before
    for estimate in (before.flip_rate, before.majority_vote, *before.pass_k.values()):
        if estimate.low is not None and estimate.high is not None and estimate.value is not None:
            assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_an_unread_repeat_is_not_right_but_flips_nothing() -> None:
    records = judged("a", True, True, None)
    records[2].status = "not_readable"
    found = score(records)
    assert found.flip_rate.value == 0
    assert found.pass_k[1].value == pytest.approx(2 / 3)
    assert (found.pass_k[3].value, found.missing) == (0, 0)
