"""The proper scores of the truth: worked by hand, proper, and beside the prior's."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import pytest

from agentclinic.results.record import Record
from agentclinic.results.turn import Differential, Hypothesis, Source
from agentclinic.scoring.differentials import FLOOR, TruthScore, truth_score
from agentclinic.scoring.metrics import ranking
from agentclinic.scoring.rows import row_of
from agentclinic.vocabulary.base import OTHER_PRIOR, knowledge

N = len(knowledge().diseases)


def stating(odds: Mapping[str, float | None], other: float | None, source: Source = Source.STATED) -> Differential:
    listed = tuple(Hypothesis(diagnosis=name, probability=p) for name, p in odds.items())
    return Differential(source=source, hypotheses=listed, other=other)


def ending(*given: Differential, truth: str | None = "Gout", **fields: Any) -> Record:
    turns = [{"turn": i, "role": "doctor", "text": "?", "differential": one} for i, one in enumerate(given, start=1)]
    made = {"scenario_id": 0, "status": "diagnosed", "ground_truth": truth, "transcript": turns}
    return Record.model_validate({**made, **fields})


def score(
    odds: Mapping[str, float | None], other: float | None, truth: str = "Gout", source: Source = Source.STATED
) -> TruthScore:
    found = truth_score(ending(stating(odds, other, source), truth=truth))
    assert found is not None
    return found


def test_the_score_of_a_listed_truth_is_that_worked_by_hand() -> None:
    found = score({"Gout": 0.6, "Septic arthritis": 0.3}, 0.1)
    assert found.brier == pytest.approx(0.4**2 + 0.3**2 + 0.1**2 / N)
    assert found.log == pytest.approx(-math.log(0.6))


def test_two_names_of_the_truth_are_added_up() -> None:
    assert score({"Gout": 0.4, "Gouty arthritis": 0.2, "Asthma": 0.4}, 0.0).brier == pytest.approx(0.4**2 + 0.4**2)


def test_a_wrong_disease_listed_under_several_names_costs_as_much_as_once() -> None:
    once = score({"Acute myocardial infarction": 0.9, "A rare disease": 0.1}, 0.0).brier
    assert once == pytest.approx(1 + 0.9**2 + 0.1**2)
    split = {"Acute myocardial infarction": 0.5, "Heart attack": 0.4, "A rare disease": 0.05, "a rare disease.": 0.05}
    assert score(split, 0.0).brier == pytest.approx(once)


def test_other_is_spread_over_as_many_diseases_as_are_known() -> None:
    found = score({"Gout": 0.5, "Septic arthritis": 0.2}, 0.3, truth="Asthma")
    each = 0.3 / N
    assert found.brier == pytest.approx((1 - each) ** 2 + 0.5**2 + 0.2**2 + (N - 1) * each**2)
    assert found.log == pytest.approx(-math.log(each))
    nothing = score({}, 1.0)
    assert nothing.log == pytest.approx(math.log(N)), "saying only other is saying nothing"
    assert nothing.brier > 0.99


def test_a_certain_miss_is_the_worst_there_is() -> None:
    found = score({"Asthma": 1.0}, 0.0)
    assert found.brier == 2
    assert found.log == pytest.approx(-math.log(FLOOR))


def test_no_other_forecast_is_expected_to_score_better_than_what_one_believes() -> None:
    rng = random.Random(1)

    def drawn() -> list[float]:
        weights = [rng.uniform(0.05, 1) for _ in range(3)]
        return [weight / sum(weights) for weight in weights]

    def expected(believed: list[float], said: list[float]) -> list[float]:
        by_truth = [score({"Gout": said[0], "Asthma": said[1]}, said[2], truth) for truth in ("Gout", "Asthma", "Flu")]
        return [sum(p * s[place] for p, s in zip(believed, by_truth, strict=True)) for place in (0, 1)]

    for _ in range(20):
        believed, said = drawn(), drawn()
        honest, other = expected(believed, believed), expected(believed, said)
        assert honest[0] <= other[0] + 1e-12
        assert honest[1] <= other[1] + 1e-12


def test_the_doctors_own_distribution_is_preferred_and_scores_are_never_taken() -> None:
    posterior, asked = stating({"Gout": 0.9}, 0.1, Source.POSTERIOR), stating({"Gout": 0.2}, 0.8, Source.ELICITED)
    planned = stating({"Gout": 1.0}, 0.0, Source.PLANNER_SCORE)
    assert truth_score(ending(posterior, asked, planned)) == truth_score(ending(posterior))
    broken = stating({"Gout": 0.9, "Asthma": 0.9}, None, Source.POSTERIOR)
    assert truth_score(ending(broken, asked)) == truth_score(ending(asked))
    assert truth_score(ending(planned)) is None
    assert truth_score(ending(stating({"Gout": None}, None))) is None
    assert truth_score(ending(posterior, truth=None)) is None
    assert truth_score(ending(posterior, status="model_failed")) is None


def test_whether_the_diagnosis_is_right_or_absent_does_not_matter() -> None:
    stated = stating({"Gout": 0.6}, 0.4)
    scores = {truth_score(ending(stated, status=status, correct=right)) for status, right in ENDS}
    assert len(scores) == 1


ENDS = (("diagnosed", True), ("diagnosed", False), ("not_readable", None), ("max_infs_reached", False))


def test_the_prior_is_how_common_the_diseases_are() -> None:
    total = sum(disease.prior for disease in knowledge().diseases.values())
    shares = {d.name: d.prior / total * (1 - OTHER_PRIOR) for d in knowledge().diseases.values()}
    name, p = next(iter(shares.items()))
    rest = sum(share**2 for share in shares.values()) - p**2
    found = score({}, 1.0, truth=name)
    assert found.prior_brier == pytest.approx((1 - p) ** 2 + rest + OTHER_PRIOR**2 / N)
    assert found.prior_log == pytest.approx(-math.log(max(p, FLOOR)))
    unknown = score({}, 1.0, truth="Syndrome without a name")
    assert unknown.prior_log == pytest.approx(-math.log(OTHER_PRIOR / N))


def test_a_run_shows_its_mean_beside_the_priors_on_the_same_encounters() -> None:
    sure, unsure = stating({"Gout": 1.0}, 0.0), stating({"Asthma": 1.0}, 0.0)
    rows = [row_of(ending(one, scenario_id=i)) for i, one in enumerate((sure, sure, unsure))]
    rows.append(row_of(ending(stating({"Gout": None}, None), scenario_id=3)))
    found = ranking(rows).by_source["stated"]
    assert found.truth is not None
    assert (found.records, found.truth.encounters) == (4, 3)
    assert found.truth.brier.value == pytest.approx(2 / 3)
    prior = score({}, 1.0).prior_brier
    assert found.truth.prior_brier == pytest.approx(prior)
    assert found.truth.brier_skill == pytest.approx(1 - 2 / 3 / prior)
    assert found.truth.even_log_score == pytest.approx(math.log(N))
