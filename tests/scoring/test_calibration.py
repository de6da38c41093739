"""Calibration of a run: which forecasts count, by source, in any order of records."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.results.record import Record
from agentclinic.results.turn import Differential, Hypothesis, Source
from agentclinic.scoring import calibration as metrics
from agentclinic.scoring.calibration import Calibration, SourceCalibration, calibration
from agentclinic.scoring.differentials import committed, scale_of
from agentclinic.scoring.rows import row_of

TRUTH = "Myasthenia gravis"
OTHER = "Multiple sclerosis"


def differential(source: Source = Source.POSTERIOR, **probabilities: float | None) -> Differential:
    """Hypotheses by name (underscores for blanks) with probabilities, or scores for a planner."""
    field = "score" if source is Source.PLANNER_SCORE else "probability"
    hypotheses = [
        Hypothesis.model_validate({"diagnosis": name.replace("_", " "), field: value})
        for name, value in probabilities.items()
    ]
    return Differential(source=source, hypotheses=tuple(hypotheses))


def record(
    row: int = 0,
    p: float | None = 0.7,
    right: bool | None = True,
    source: Source = Source.POSTERIOR,
    repeat: int = 0,
    **changes: object,
) -> Record:
    said = TRUTH if right else OTHER
    final = differential(source, **{said: p, "Migraine": 0.1})
    fields: dict[str, object] = {
        "scenario_id": row,
        "dataset": "MedQA",
        "status": "diagnosed",
        "correct": right,
        "ground_truth": TRUTH,
        "diagnosis_text": said,
        "num_turns": 4,
        "repeat": repeat,
        "differential": final,
    }
    return Record.model_validate({**fields, **changes})


def calibrated(records: Iterable[Record], seed: int = 0) -> Calibration:
    return calibration(list(map(row_of, records)), seed)


def only(result: Calibration) -> SourceCalibration:
    assert len(result.sources) == 1
    return result.sources[0]


def many(n: int, source: Source = Source.POSTERIOR, seed: int = 0, first: int = 0, repeats: int = 1) -> list[Record]:
    """Records whose forecasts are true."""
    rng = random.Random(seed)
    made = []
    for row in range(first, first + n):
        for repeat in range(repeats):
            p = round(rng.betavariate(2, 1.2), 3)
            made.append(record(row, p, rng.random() < p, source, repeat))
    return made


# What is forecast


def test_the_forecast_is_what_the_differential_gave_the_diagnosis() -> None:
    found = only(calibrated([record(0, 0.9, True), record(1, 0.6, False)]))
    assert (found.source, found.scale, found.n, found.right, found.clusters) == ("posterior", "probability", 2, 1, 2)
    assert found.brier is not None
    assert found.brier.value == pytest.approx((0.01 + 0.36) / 2)
    assert found.auroc.value == 1


def test_a_committed_diagnosis_is_found_by_its_name_before_the_same_disease() -> None:
    listed = differential(Heart_attack=0.5, Acute_myocardial_infarction=0.3)
    exact = record(differential=listed, diagnosis_text="acute myocardial infarction.")
    found = committed(exact, listed)
    assert found is not None
    assert found.probability == 0.3
    said = record(differential=listed, diagnosis_text="My final diagnosis is myocardial infarction (MI).")
    synonym = committed(said, listed)
    assert synonym is not None
    assert synonym.probability == 0.5


def test_a_record_of_the_original_is_read_by_its_last_utterance() -> None:
    said = record(diagnosis_text=None, final_doctor_dialogue=f"Thank you. DIAGNOSIS READY: {TRUTH}")
    assert said.differential is not None
    assert committed(said, said.differential) is not None


def test_a_diagnosis_outside_the_differential_is_counted_separately_not_guessed() -> None:
    stray = record(1, diagnosis_text="Botulism", correct=False)
    narrower = record(2, differential=differential(Pneumonia=0.9), diagnosis_text="Viral pneumonia")
    found = only(calibrated([record(0, 0.7, True), stray, narrower]))
    assert (found.n, found.unmatched, found.unmatched_right) == (1, 2, 1)
    assert found.brier is not None
    assert found.brier.value == pytest.approx(0.09)


def test_a_diagnosis_without_a_number_is_counted_separately() -> None:
    found = only(calibrated([record(0, None, True)]))
    assert (found.n, found.unnumbered) == (0, 1)


def test_without_a_judged_diagnosis_there_is_no_forecast() -> None:
    result = calibrated(
        [
            record(0, status="max_infs_reached", correct=False),
            record(1, status="doctor_failed", correct=False),
            record(2, status="model_failed", correct=None),
            record(3, status="judge_failed", correct=None),
            record(4, correct=None),
            record(5, differential=None),
        ]
    )
    assert result.left_out == {"no_diagnosis": 2, "no_differential": 1, "not_judged": 3}
    assert result.records == 6
    assert result.sources == []


def test_sources_are_never_pooled() -> None:
    one, two = many(30), many(20, Source.STATED, seed=1)
    both = calibrated([*one, *two], seed=3)
    assert [(s.source, s.n) for s in both.sources] == [("posterior", 30), ("stated", 20)]
    assert both.sources[0] == only(calibrated(one, seed=3))
    assert both.sources[1] == only(calibrated(two, seed=3))


def test_scores_and_probabilities_of_one_source_are_kept_separate() -> None:
    scored = Differential(source=Source.STATED, hypotheses=(Hypothesis(diagnosis=TRUTH, score=7.5),))
    result = calibrated([record(0, source=Source.STATED), record(1, differential=scored)])
    assert [(s.source, s.scale, s.n) for s in result.sources] == [("stated", "probability", 1), ("stated", "score", 1)]


def test_a_planner_never_gives_probabilities() -> None:
    claimed = Differential(
        source=Source.PLANNER_SCORE, hypotheses=(Hypothesis(diagnosis=TRUTH, probability=0.8, score=None),)
    )
    assert scale_of(claimed) == "score"
    found = only(calibrated([record(differential=claimed)]))
    assert (found.scale, found.n, found.brier, found.ece) == ("score", 1, None, None)


def test_scores_are_judged_by_their_order_only() -> None:
    records = [record(row, 10.0 * row, row > 4, Source.PLANNER_SCORE) for row in range(10)]
    found = only(calibrated(records))
    assert found.auroc.value == 1
    assert found.aurc.value == found.aurc_best
    assert found.risk_coverage[9].risk == 0
    assert found.risk_coverage[-1].risk == 0.5
    assert found.brier is found.mean_forecast is found.log_score is None


# Numbers


@pytest.mark.slow
def test_perfect_forecasts_look_perfect() -> None:
    found = only(calibrated(many(1000), seed=1))
    for error in (found.ece, found.ece_equal_mass):
        assert error is not None
        assert error.low <= error.value <= error.high
        assert error.low < error.expected < error.high
    assert found.brier_parts is not None
    assert found.brier is not None
    parts = [getattr(found.brier_parts, name).value for name in ("reliability", "resolution", "uncertainty", "within")]
    assert parts[0] - parts[1] + parts[2] + parts[3] == pytest.approx(found.brier.value)
    assert found.bins is not None
    assert sum(each.n for each in found.bins) == 1000
    assert sum(each.right.count for each in found.bins) == found.right
    assert found.aurc.value is not None
    assert found.aurc_best is not None
    assert found.accuracy.value is not None
    assert found.aurc_best < found.aurc.value < 1 - found.accuracy.value


def test_overconfidence_is_detected() -> None:
    sure = many(300)
    for number, each in enumerate(sure):
        claimed = 0.6 if number % 2 else 0.98
        hypothesis = Hypothesis(diagnosis=str(each.diagnosis_text), probability=claimed)
        each.differential = Differential(source=Source.POSTERIOR, hypotheses=(hypothesis,))
    found = only(calibrated(sure))
    assert found.mean_forecast is not None
    assert found.mean_forecast.low is not None
    assert found.accuracy.high is not None
    assert found.mean_forecast.low > found.accuracy.high
    assert found.ece is not None
    assert found.ece.value > found.ece.high


@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_gives_notes_and_no_exception(right: bool) -> None:
    found = only(calibrated([record(row, 0.5 + row / 100, right) for row in range(30)]))
    assert found.auroc.value is None
    assert found.auroc.note
    assert found.accuracy.value == float(right)
    assert found.accuracy.low is None, "resampling equal outcomes shows no spread"


def test_one_record_and_none() -> None:
    found = only(calibrated([record()]))
    assert found.n == 1
    assert found.brier is not None
    assert found.brier.value == pytest.approx(0.09)
    assert found.brier.low is None
    assert calibrated([]).sources == []


def test_clipped_forecasts_are_counted() -> None:
    found = only(calibrated([record(0, 1.0, False), record(1, 0.0, True), record(2, 0.5, True)]))
    assert found.clipped == 2


def test_repeats_of_a_case_are_resampled_together() -> None:
    once = [record(row, 0.7, row % 3 > 0) for row in range(30)]
    thrice = [each.model_copy(update={"repeat": k}) for each in once for k in range(3)]
    narrow, wide = only(calibrated(once)), only(calibrated(thrice))
    assert (wide.n, wide.clusters) == (90, 30)
    assert narrow.accuracy.low is not None
    assert narrow.accuracy.low == pytest.approx(wide.accuracy.low, abs=0.03), "copies add nothing"


def planner_records(n: int, first: int = 0, seed: int = 0) -> list[Record]:
    rng = random.Random(seed)
    made = []
    for row in range(first, first + n):
        score = rng.gauss(50, 10)
        chance = 1 / (1 + np.exp(-(score - 48) / 5))
        made.append(record(row, score, rng.random() < chance, Source.PLANNER_SCORE))
    return made


# Streams


@pytest.mark.slow
@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_the_order_of_records_changes_nothing(shuffler: random.Random) -> None:
    records = [
        *many(40, repeats=2),
        *many(15, Source.STATED),
        *planner_records(20),
        record(900, None),
        record(901, p=0.7),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "resamples", lambda n: 30)
        expected = calibrated(records, seed=5)
        shuffler.shuffle(records)
        assert calibrated(iter(records), seed=5) == expected


def test_the_summary_agrees_with_the_metrics_of_all_forecasts() -> None:
    records = many(300, repeats=2)
    found = only(calibrated(iter(records)))
    numbers = [committed(each, each.differential) if each.differential else None for each in records]
    p = np.array([number.probability if number else None for number in numbers], dtype=np.float64)
    y = np.array([each.correct for each in records], dtype=np.float64)
    w = np.ones(p.size)
    assert found.brier is not None
    assert found.log_score is not None
    assert found.brier.value == pytest.approx(float(metrics.brier(p, y, w)))
    assert found.log_score.value == pytest.approx(float(metrics.log_score(p, y, w)))
    assert found.auroc.value == pytest.approx(float(metrics.auroc(p, y, w)))
    assert found.aurc.value == pytest.approx(float(metrics.aurc(p, y, w)))


def test_equal_seeds_give_equal_intervals_and_other_seeds_other_ones() -> None:
    records = many(50)
    first = calibrated(records, seed=1)
    assert calibrated(records, seed=1) == first
    assert only(calibrated(records, seed=2)).accuracy != only(first).accuracy
    assert Calibration.model_validate_json(first.model_dump_json()) == first


def test_answers_that_could_not_be_read_are_left_out_and_counted() -> None:
    read = [record(0, 0.7), record(1, 0.6, right=False), record(2, 0.9)]
    found = calibrated([*read, record(3, 0.9, right=None, status="not_readable")])
    assert only(found).brier == only(calibrated(read)).brier
    assert found.left_out == {"not_readable": 1}
    assert only(found).notes == ["1 answer not readable, left out here"]
