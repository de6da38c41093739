"""Several judges of one run: statistics by hand and against others' code, files, the command."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, bootstrap
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from agentclinic.cli.judge import compare_command, majority_command
from agentclinic.config import load_settings
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of, load_run
from agentclinic.runs.regrade import regrade
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.judges import (
    JudgedUnit,
    case_draws,
    cohen_kappa,
    compare_judges,
    corrected_accuracy,
    fleiss_estimate,
    fleiss_kappa,
    kappa_estimate,
    load_panel,
    majority,
    read_labels,
    rogan_gladen,
    write_majority,
)
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.verdicts import strict

Verdicts = Sequence[bool]
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def cells_of(pairs: Sequence[tuple[bool, bool]]) -> list[list[float]]:
    order = [(True, True), (True, False), (False, True), (False, False)]
    return [[float(pair == kind) for kind in order] for pair in pairs]


def kappa_of(pairs: Sequence[tuple[bool, bool]]) -> float:
    return float(cohen_kappa(np.sum(cells_of(pairs), axis=0)))


def estimate_of(pairs: Sequence[tuple[bool, bool]], seed: int = 0) -> Estimate:
    return kappa_estimate(cells_of(pairs), [str(place) for place in range(len(pairs))], seed)


class TestMajority:
    @pytest.mark.parametrize(
        ("verdicts", "expected"),
        [
            ([True, True, False], True),
            ([True, False, False], False),
            ([True, True, True], True),
            ([True, True, None], True),
            ([False, None, False], False),
            ([True, False, None], None),
            ([True, None, None], None),
            ([True, False], None),
            ([True, True], True),
            ([True, True, False, None, None], None),
            ([True], True),
            ([None], None),
            ([], None),
        ],
    )
    def test_is_the_verdict_of_more_than_half_of_all_judges(
        self, verdicts: list[bool | None], expected: bool | None
    ) -> None:
        assert majority(verdicts) is expected

    @given(st.lists(st.sampled_from([True, False, None]), max_size=7))
    def test_cannot_be_overturned_by_those_who_have_not_spoken(self, verdicts: list[bool | None]) -> None:
        decided = majority(verdicts)
        if decided is not None:
            for late in (True, False):
                assert majority([late if verdict is None else verdict for verdict in verdicts]) is decided

    @given(st.lists(st.sampled_from([True, False, None]), max_size=7))
    def test_does_not_depend_on_order_and_turns_with_the_verdicts(self, verdicts: list[bool | None]) -> None:
        assert majority(verdicts[::-1]) is majority(verdicts)
        turned = majority([None if verdict is None else not verdict for verdict in verdicts])
        assert turned is (None if majority(verdicts) is None else not majority(verdicts))


class TestCohenKappa:
    def test_by_hand(self) -> None:
        # po = 35/50 = 0.7; yes 25/50 and 30/50: pe = 0.5·0.6 + 0.5·0.4 = 0.5; (0.7 - 0.5)/(1 - 0.5) = 0.4.
        assert float(cohen_kappa(np.array([20.0, 5.0, 10.0, 15.0]))) == pytest.approx(0.4)

    def test_of_judges_who_always_differ_is_minus_one(self) -> None:
        assert float(cohen_kappa(np.array([0.0, 5.0, 5.0, 0.0]))) == pytest.approx(-1)

    def test_is_zero_when_one_judge_says_always_the_same(self) -> None:
        assert float(cohen_kappa(np.array([8.0, 4.0, 0.0, 0.0]))) == pytest.approx(0)

    @given(PAIRS)
    def test_agrees_with_scikit_learn(self, pairs: list[tuple[bool, bool]]) -> None:
        ours = kappa_of(pairs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score([a for a, _ in pairs], [b for _, b in pairs], labels=[True, False])
        if math.isnan(ours):
            assert len(set(pairs)) == 1
            assert pairs[0][0] is pairs[0][1]
        else:
            assert ours == pytest.approx(theirs)

    @given(PAIRS, st.randoms())
    def test_is_symmetric_bounded_and_blind_to_order_and_naming(self, pairs: list[tuple[bool, bool]], rng: Any) -> None:
        kappa = kappa_of(pairs)
        mixed = pairs[:]
        rng.shuffle(mixed)
        others = [
            kappa_of(mixed),
            kappa_of([(b, a) for a, b in pairs]),
            kappa_of([(not a, not b) for a, b in pairs]),
        ]
        assert others == pytest.approx([kappa] * 3, nan_ok=True)
        assert math.isnan(kappa) or -1 - 1e-9 <= kappa <= 1 + 1e-9

    @given(st.lists(st.booleans(), min_size=2, max_size=40).filter(lambda v: len(set(v)) == 2))
    def test_of_identical_judges_is_one(self, verdicts: list[bool]) -> None:
        assert kappa_of([(v, v) for v in verdicts]) == pytest.approx(1)

    def test_of_one_class_only_is_null_with_a_note(self) -> None:
        estimate = estimate_of([(True, True)] * 10)
        assert estimate.value is None
        assert estimate.n == 10
        assert "same verdict throughout" in (estimate.note or "")

    def test_of_nothing_is_null_with_a_note(self) -> None:
        assert estimate_of([]) == Estimate(value=None, note="no unit was judged by both")

    def test_of_very_few_cases_has_no_interval(self) -> None:
        estimate = estimate_of([(True, True), (False, False), (True, False)])
        assert estimate.value == pytest.approx(0.4)
        assert estimate.low is None
        assert "fewer than 5" in (estimate.note or "")

    def test_of_judges_who_never_differed_is_not_certainly_one(self) -> None:
        estimate = estimate_of([(True, True)] * 10 + [(False, False)] * 10)
        assert estimate.value == estimate.high == 1
        assert estimate.low is not None
        assert 0.6 < estimate.low < 0.9

    def test_interval_is_that_of_scipys_bootstrap_in_a_large_sample(self) -> None:
        rng = np.random.default_rng(5)
        pairs = [(True, True)] * 200 + [(True, False)] * 30 + [(False, True)] * 20 + [(False, False)] * 150
        table = np.array(cells_of(pairs))
        theirs = bootstrap(
            (np.arange(len(pairs)),),
            lambda drawn: float(cohen_kappa(table[drawn].sum(axis=0))),
            vectorized=False,
            n_resamples=2000,
            method="percentile",
            rng=rng,
        ).confidence_interval
        ours = estimate_of(pairs)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.012)

    def test_interval_is_the_same_for_the_same_seed_and_any_order(self) -> None:
        pairs = [(True, True)] * 30 + [(True, False)] * 5 + [(False, False)] * 20
        assert estimate_of(pairs, seed=3) == estimate_of(pairs[::-1], seed=3)
        assert estimate_of(pairs, seed=3) != estimate_of(pairs, seed=4)

    def test_repeats_of_a_case_do_not_count_as_cases(self) -> None:
        pairs = [(True, True)] * 20 + [(True, False)] * 6 + [(False, False)] * 14
        once = estimate_of(pairs)
        cases = [str(place) for place in range(len(pairs))]
        thrice = kappa_estimate(cells_of(pairs * 3), cases * 3)
        apart = estimate_of(pairs * 3)
        assert once.low is not None
        assert once.high is not None
        assert thrice.value == pytest.approx(once.value)
        # The prior weighs a third; else the width is that of the cases, not of three times as many.
        assert width(thrice) == pytest.approx(width(once), rel=0.15)
        assert width(apart) < 0.7 * width(thrice)


def width(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low


class TestFleissKappa:
    def test_by_hand(self) -> None:
        # Three judges; 4 units with 3 yes, 2 with 2, 1 with 1, 3 with none. Pairs that agree: 1, ⅓, ⅓, 1:
        # po = (4 + ⅔ + ⅓ + 3)/10 = 0.8. Yes 12 + 4 + 1 = 17 of 30: pe = (289 + 169)/900.
        expected = (0.8 - 458 / 900) / (1 - 458 / 900)
        assert float(fleiss_kappa(np.array([3.0, 1.0, 2.0, 4.0]))) == pytest.approx(expected)

    @given(
        st.integers(2, 6).flatmap(lambda k: st.lists(st.integers(0, k), min_size=2, max_size=50).map(lambda y: (k, y)))
    )
    def test_agrees_with_statsmodels_and_is_bounded(self, given_: tuple[int, list[int]]) -> None:
        k, yes = given_
        ours = float(fleiss_kappa(np.bincount(yes, minlength=k + 1).astype(float)))
        if sum(yes) in (0, k * len(yes)):
            assert math.isnan(ours)
        else:
            assert ours == pytest.approx(statsmodels_fleiss(np.array([[r, k - r] for r in yes])))
            assert -1 - 1e-9 <= ours <= 1 + 1e-9

    def test_of_identical_judges_is_one_and_of_one_class_null(self) -> None:
        cases = [str(place) for place in range(12)]
        same = fleiss_estimate([3, 0] * 6, 3, cases)
        assert same.value == same.high == 1
        assert same.low is not None
        assert 0.4 < same.low < 1
        assert fleiss_estimate([3] * 12, 3, cases).value is None
        assert "chance" in (fleiss_estimate([3] * 12, 3, cases).note or "")
        assert fleiss_estimate([], 3, []).value is None
        assert fleiss_estimate([3, 2], 3, ["a", "b"]).low is None


class TestRoganGladen:
    def test_by_hand(self) -> None:
        # (0.55 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.35 / 0.7 = 0.5
        assert rogan(0.55, 0.9, 0.8) == pytest.approx(0.5)

    @given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    def test_undoes_what_a_judge_does_to_a_share(self, true: float, sensitivity: float, specificity: float) -> None:
        apparent = true * sensitivity + (1 - true) * (1 - specificity)
        corrected = rogan(apparent, sensitivity, specificity)
        if sensitivity + specificity > 1.01:
            assert corrected == pytest.approx(true, abs=1e-9)
        if sensitivity + specificity <= 1:
            assert math.isnan(corrected)

    def test_stays_a_share(self) -> None:
        assert rogan(0.05, 0.9, 0.9) == 0
        assert rogan(0.99, 0.9, 0.9) == 1

    def test_a_perfect_judge_needs_no_correction(self) -> None:
        assert rogan(0.37, 1, 1) == pytest.approx(0.37)


def rogan(apparent: float, sensitivity: float, specificity: float) -> float:
    return float(rogan_gladen(np.array(apparent), np.array(sensitivity), np.array(specificity)))


def simulated(
    rng: np.random.Generator, cases: int, labelled: int, share: float, sensitivity: float, specificity: float
) -> list[JudgedUnit]:
    truths = rng.random(cases) < share
    verdicts = rng.random(cases) < np.where(truths, sensitivity, 1 - specificity)
    return [
        JudgedUnit(str(case), bool(verdict), bool(truth) if case < labelled else None)
        for case, (truth, verdict) in enumerate(zip(truths, verdicts, strict=True))
    ]


class TestCorrectedAccuracy:
    def test_by_hand(self) -> None:
        # Labelled: 9 of 10 right ones called right, 8 of 10 wrong ones called wrong. Of 100 judged 55 are called right:
        # (0.55 + 0.8 - 1) / 0.7 = 0.5 of the judged; 25 more units had no diagnosis: 100/125 · 0.5 = 0.4.
        units = [
            *[(True, True)] * 9, (False, True), *[(False, False)] * 8, *[(True, False)] * 2,
            *[(True, None)] * 44, *[(False, None)] * 36, *[(None, None)] * 25,
        ]  # fmt: skip
        estimate = corrected_accuracy([JudgedUnit(str(i), *unit) for i, unit in enumerate(units)])
        assert estimate.value == pytest.approx(0.4)
        assert estimate.n == 125
        assert estimate.note is None
        assert estimate.low is not None
        assert estimate.high is not None
        assert 0 < estimate.low < 0.3
        assert 0.45 < estimate.high < 0.8

    def test_is_the_labels_own_share_when_all_is_labelled(self) -> None:
        units = simulated(np.random.default_rng(2), 60, 60, 0.6, 0.8, 0.7)
        assert corrected_accuracy(units).value == pytest.approx(sum(u.label is True for u in units) / 60)

    def test_interval_of_a_perfect_judge_on_a_labelled_run_is_that_of_the_share(self) -> None:
        units = [JudgedUnit(str(i), i < 180, i < 180) for i in range(300)]
        estimate = corrected_accuracy(units)
        low, high = beta.ppf([0.025, 0.975], 180.5, 120.5)
        assert estimate.value == pytest.approx(0.6)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.012)

    def test_a_judge_no_better_than_a_coin_gives_null_and_says_why(self) -> None:
        units = [JudgedUnit(str(i), i % 2 == 0, i % 4 < 2) for i in range(40)]
        estimate = corrected_accuracy(units)
        assert estimate.value is estimate.low is None
        assert "1.00, no better than a coin" in (estimate.note or "")

    def test_a_judge_hardly_better_than_a_coin_leaves_the_accuracy_open(self) -> None:
        units = simulated(np.random.default_rng(0), 100, 30, 0.5, 0.6, 0.55)
        estimate = corrected_accuracy(units)
        assert estimate.value is not None
        assert width(estimate) > 0.9

    def test_too_few_labels_give_null_and_say_how_many(self) -> None:
        units = [JudgedUnit(str(i), i < 30, i < 30 if i < 34 else None) for i in range(60)]
        estimate = corrected_accuracy(units)
        assert estimate.value is None
        assert "30 cases with one labelled right, 4 with one labelled wrong" in (estimate.note or "")

    def test_many_labels_of_few_cases_are_too_few(self) -> None:
        units = [JudgedUnit(str(i % 4), i % 2 == 0, i % 2 == 0) for i in range(80)]
        assert corrected_accuracy(units).value is None

    def test_nothing_judged_gives_null(self) -> None:
        assert corrected_accuracy([JudgedUnit("a", None)]).value is None

    def test_says_when_it_was_clipped(self) -> None:
        labelled = [(True, True)] * 10 + [(True, False)] * 4 + [(False, False)] * 6
        units = [*labelled, *[(False, None)] * 100]
        estimate = corrected_accuracy([JudgedUnit(str(i), *unit) for i, unit in enumerate(units)])
        assert estimate.value == 0
        assert "clipped" in (estimate.note or "")

    @pytest.mark.parametrize(
        ("cases", "labelled", "share", "sensitivity", "specificity"),
        [(200, 80, 0.6, 0.9, 0.85), (200, 100, 0.5, 1.0, 1.0)],
    )
    def test_interval_covers_the_truth_in_about_95_of_100_runs(
        self, cases: int, labelled: int, share: float, sensitivity: float, specificity: float
    ) -> None:
        rng = np.random.default_rng(20261115)
        covered = 0
        for repetition in range(300):
            estimate = corrected_accuracy(simulated(rng, cases, labelled, share, sensitivity, specificity), repetition)
            assert estimate.low is not None
            assert estimate.high is not None
            covered += estimate.low <= share <= estimate.high
        assert 0.92 <= covered / 300 <= 0.985


def test_redrawn_cases_have_the_moments_of_the_bayesian_bootstrap() -> None:
    # A share of 6 of 10 with half a unit on either side is Beta(6.5, 4.5).
    totals = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 4)
    draws = case_draws(totals, np.full(2, 0.5), np.random.default_rng(0), 20_000)
    shares = draws[:, 0] / draws.sum(axis=1)
    assert shares.mean() == pytest.approx(6.5 / 11, abs=0.004)
    assert np.quantile(shares, [0.025, 0.975]) == pytest.approx(beta.ppf([0.025, 0.975], 6.5, 4.5), abs=0.01)


# --- files ----------------------------------------------------------------------------------------------------------

SEED_FIELDS = {"dataset": "MedQA", "num_turns": 3, "doctor_llm": "d", "moderator_llm": "gpt-4", "max_infs": 20}
DISEASES = ["Acute appendicitis", "Migraine", "Asthma", "Gout", "Psoriasis", "Measles", "Scurvy", "Rabies"]


def write_lines(path: Path, entries: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def seed_run(folder: Path, verdicts: Verdicts = (True, True, True, False, False, False, True, False)) -> Path:
    """A run as the seed wrote it: its original fields only; the last one but two ran out of turns."""
    records: list[dict[str, Any]] = [
        {
            **SEED_FIELDS,
            "scenario_id": number,
            "status": "diagnosed",
            "correct": verdict,
            "ground_truth": DISEASES[number],
            "diagnosis_text": f"DIAGNOSIS READY: {DISEASES[number] if verdict else 'Influenza'}",
        }
        for number, verdict in enumerate(verdicts)
    ]
    records.append({**SEED_FIELDS, "scenario_id": 8, "status": "max_infs_reached", "correct": False})
    records.append({**SEED_FIELDS, "scenario_id": 9, "status": "model_failed", "correct": None})
    write_lines(folder / "scenarios.jsonl", records)
    return folder


def judge(folder: Path, name: str, verdicts: Sequence[bool | None], **more: Any) -> None:
    entries = [
        {"scenario_id": n, "case_hash": None, "repeat": 0, "moderator_llm": name, "correct": verdict, **more}
        for n, verdict in enumerate(verdicts)
    ]
    write_lines(folder / "judgements" / f"{name}.jsonl", entries)


Y, N = True, False


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = seed_run(tmp_path / "MedQA_1")
    judge(folder, "a", [Y, Y, N, N, N, N, Y, None], reason="so it is")
    judge(folder, "b", [Y, N, Y, N, N, N, Y, Y])
    return folder


class TestWriteMajority:
    def test_makes_a_file_that_serves_as_a_judge(self, run: Path) -> None:
        written = write_majority(run, ["recorded", "a", "b"])
        assert written.path == run / "judgements" / "majority_recorded_a_b.jsonl"
        assert (written.decided, written.undecided) == (7, 1)
        data = load_run(run, judge="majority_recorded_a_b")
        assert [strict(record) for record in data.records()] == [Y, Y, Y, N, N, N, Y, None, N, None]
        summary = summarise(data.records())
        assert summary.accuracy_strict is not None
        assert (summary.accuracy_strict.count, summary.accuracy_strict.of) == (4, 8)

    def test_says_who_voted_how_and_leaves_the_records_alone(self, run: Path) -> None:
        before = (run / "scenarios.jsonl").read_bytes()
        path = write_majority(run, ["recorded", "a", "b"]).path
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert (run / "scenarios.jsonl").read_bytes() == before
        assert entries[2]["reason"] == "recorded: right; a: wrong (so it is); b: right"
        assert entries[2]["majority_of"] == ["recorded", "a", "b"]
        assert entries[7]["correct"] is None
        assert entries[7]["fault"]["error"] == "no_majority"

    def test_relation_and_lenient_verdict_are_those_of_the_majority(self, run: Path) -> None:
        judge(run, "x", [N] * 8, relation="broader", correct_lenient=True)
        judge(run, "y", [N] * 8, relation="broader", correct_lenient=True)
        judge(run, "z", [N] * 8, relation="sibling", correct_lenient=False)
        entry = json.loads(
            write_majority(run, ["x", "y", "z"], "mine").path.read_text(encoding="utf-8").splitlines()[0]
        )
        assert (entry["correct"], entry["relation"], entry["correct_lenient"]) == (False, "broader", True)

    def test_can_be_written_anew_but_not_over_another_judge(self, run: Path) -> None:
        first = write_majority(run, ["recorded", "a", "b"])
        assert write_majority(run, ["recorded", "a", "b"]) == first
        with pytest.raises(InputError, match="other verdicts"):
            write_majority(run, ["recorded", "b", "a"], first.path.stem)
        judge(run, "c", [Y] * 8)
        with pytest.raises(InputError, match="other verdicts"):
            write_majority(run, ["recorded", "a", "b"], "c")

    @pytest.mark.parametrize(
        ("judges", "name", "message"),
        [
            (["a"], None, "at least two"),
            (["a", "a", "b"], None, "twice"),
            (["a", "b"], "a", "one of the judges"),
            (["a", "b"], "../a", "cannot name"),
            (["a", "../b"], None, "cannot name"),
            (["a", "nobody"], None, "no such judgements; the run has a, b"),
        ],
    )
    def test_refuses_what_makes_no_majority(self, run: Path, judges: list[str], name: str | None, message: str) -> None:
        with pytest.raises(InputError, match=message):
            write_majority(run, judges, name)


class TestCompareJudges:
    def test_counts_by_hand_on_a_run_in_the_originals_format(self, run: Path) -> None:
        comparison = compare_judges(run)
        assert [j.name for j in comparison.judges] == ["recorded", "a", "b"]
        assert (comparison.diagnoses, comparison.wrong_unjudged, comparison.failed) == (8, 1, 1)
        assert [(j.judged, j.not_judged, j.right.count) for j in comparison.judges] == [(8, 0, 4), (7, 1, 3), (8, 0, 4)]
        assert comparison.judges[0].models == ["gpt-4"]
        first = comparison.pairs[0]
        assert (first.first, first.second, first.judged_by_both, first.only_first_judged) == ("recorded", "a", 7, 1)
        assert first.confusion.model_dump() == {
            "both_yes": 3, "only_first_yes": 1, "only_second_yes": 0, "both_no": 3,
        }  # fmt: skip
        # po = 6/7; yes 4/7 and 3/7: pe = 24/49; (42/49 - 24/49) / (25/49) = 18/25.
        assert first.kappa.value == pytest.approx(18 / 25)
        assert first.kappa.low is not None
        assert first.relations is None
        assert comparison.fleiss is not None
        assert comparison.fleiss.n == 7
        assert [d.scenario_id for d in comparison.disputed] == [1, 2, 7]
        dispute = comparison.disputed[1]
        assert (dispute.truth, dispute.diagnosis) == ("Asthma", "Asthma")
        assert dispute.opinions["a"].reason == "so it is"

    def test_swapping_two_judges_transposes_the_table_and_keeps_kappa(self, run: Path) -> None:
        one, other = compare_judges(run, ["a", "b"]).pairs[0], compare_judges(run, ["b", "a"]).pairs[0]
        assert one.kappa.value == pytest.approx(other.kappa.value)
        assert one.confusion.only_first_yes == other.confusion.only_second_yes
        assert one.only_first_judged == other.only_second_judged

    def test_a_pair_does_not_depend_on_who_else_is_compared(self, run: Path) -> None:
        assert compare_judges(run, ["a", "b"]).pairs[0] == compare_judges(run).pairs[2]

    def test_relations_are_crossed_where_both_give_one(self, run: Path) -> None:
        judge(run, "x", [Y] * 8, relation="same")
        judge(run, "y", [Y] * 8, relation="narrower_consistent")
        pair = compare_judges(run, ["x", "y"]).pairs[0]
        assert pair.relations == {"same": {"narrower_consistent": 8}}
        assert pair.same_relation is not None
        assert (pair.same_relation.count, pair.same_relation.of) == (0, 8)
        assert pair.kappa.value is None
        assert compare_judges(run, ["a", "x"]).pairs[0].relations is None

    def test_a_majority_is_compared_but_is_not_one_of_fleiss_judges(self, run: Path) -> None:
        write_majority(run, ["recorded", "a", "b"])
        comparison = compare_judges(run)
        assert comparison.fleiss_judges == ["recorded", "a", "b"]
        assert comparison.judges[-1].name == "majority_recorded_a_b"
        assert comparison.judges[-1].majority_of == ["recorded", "a", "b"]
        assert len(comparison.pairs) == 6

    def test_a_verdict_on_another_diagnosis_does_not_count(self, run: Path) -> None:
        judge(run, "old", [Y] * 8, diagnosis="Gout")
        summary = compare_judges(run, ["recorded", "old"]).judges[1]
        assert (summary.judged, summary.not_judged, summary.stale) == (0, 8, 8)

    def test_a_real_regrade_fits_a_seed_run(self, tmp_path: Path) -> None:
        folder = seed_run(tmp_path / "MedQA_2")
        settings = load_settings(None, None, {"moderator_llm": "builtin", "workers": 2})
        anyio.run(regrade, folder, settings)
        comparison = compare_judges(folder)
        assert [(j.name, j.judged, j.stale) for j in comparison.judges] == [("recorded", 8, 0), ("builtin", 8, 0)]
        assert comparison.pairs[0].kappa.value == 1
        assert comparison.disputed == []

    @pytest.mark.parametrize(
        ("text", "said", "expected"),
        [
            ("Gout", None, "Gout"),
            ("DIAGNOSIS READY: Gout", None, "Gout"),
            ("", "DIAGNOSIS READY: Gout", ""),
            (None, "So it is. DIAGNOSIS READY: **Gout**", "Gout"),
            (None, "", None),
            (None, None, None),
        ],
    )
    def test_what_there_is_to_judge(self, text: str | None, said: str | None, expected: str | None) -> None:
        record = Record(scenario_id=1, status="diagnosed", diagnosis_text=text, final_doctor_dialogue=said)
        assert diagnosis_of(record) == expected
        unfinished = record.model_copy(update={"status": "max_infs_reached"})
        assert diagnosis_of(unfinished) is None

    def test_repeats_are_told_apart_and_noted(self, tmp_path: Path) -> None:
        records = [
            {
                "scenario_id": n % 6, "repeat": n // 6, "case_hash": f"h{n % 6}", "status": "diagnosed",
                "correct": n % 2 == 0, "judgement": {"relation": "same", "reason": "r"},
            }
            for n in range(12)
        ]  # fmt: skip
        write_lines(tmp_path / "scenarios.jsonl", records)
        entries = [{**record, "correct": record["scenario_id"] == 0} for record in records]
        write_lines(tmp_path / "judgements" / "x.jsonl", entries)
        comparison = compare_judges(tmp_path)
        assert "more than once" in (comparison.note or "")
        assert comparison.pairs[0].confusion.both_yes == 2

    def test_one_judge_alone_is_refused_with_the_mend(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="agentclinic regrade"):
            compare_judges(seed_run(tmp_path))

    def test_a_file_that_takes_the_recorded_judges_name_is_refused(self, run: Path) -> None:
        judge(run, "recorded", [Y])
        with pytest.raises(InputError, match="rename it"):
            compare_judges(run)

    def test_a_verdict_that_is_no_verdict_is_refused(self, run: Path) -> None:
        judge(run, "x", ["yes"])  # type: ignore[list-item]
        with pytest.raises(InputError, match=r"x\.jsonl: scenario 0: correct must be true, false or null"):
            load_panel(run, ["x"])

    def test_no_names_are_refused_with_the_names_there_are(self, run: Path) -> None:
        with pytest.raises(InputError, match="there are recorded, a, b"):
            compare_judges(run, [])


class TestLabels:
    def long_run(self, tmp_path: Path) -> Path:
        """60 diagnoses, 40 said right. Of the first 20, 12 are right, 9 of them said so; 8 wrong, 6 of them said so."""
        said = [True] * 9 + [False] * 3 + [False] * 6 + [True] * 2 + [True] * 29 + [False] * 11
        records = [
            {**SEED_FIELDS, "scenario_id": n, "status": "diagnosed", "correct": verdict, "ground_truth": "Gout",
             "diagnosis_text": "Gout"}
            for n, verdict in enumerate(said)
        ]  # fmt: skip
        records.extend({**SEED_FIELDS, "scenario_id": n, "status": "doctor_failed"} for n in range(60, 80))
        write_lines(tmp_path / "run" / "scenarios.jsonl", records)
        return tmp_path / "run"

    def labels(self, tmp_path: Path, entries: Sequence[dict[str, Any]]) -> Path:
        return write_lines(tmp_path / "labels.jsonl", entries)

    def test_by_hand(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        entries: list[dict[str, Any]] = [{"scenario_id": n, "correct": n < 12} for n in range(20)]
        entries += [{"scenario_id": 70, "correct": False}, {"scenario_id": 500, "correct": True}]
        comparison = compare_judges(folder, labels=self.labels(tmp_path, entries))
        report = comparison.labels
        assert report is not None
        assert (report.used, report.unused) == (20, 2)
        (row,) = report.judges
        assert (row.judge, row.labelled) == ("recorded", 20)
        assert (row.sensitivity.count, row.sensitivity.of) == (9, 12)
        assert (row.specificity.count, row.specificity.of) == (6, 8)
        # Wilson, 9 of 12: (0.75 + 0.16005 ± 1.96·sqrt(0.015625 + 0.006668)) / 1.32012.
        assert (row.sensitivity.low, row.sensitivity.high) == pytest.approx((0.4677, 0.9111), abs=1e-4)
        assert (row.accuracy.count, row.accuracy.of) == (40, 80)
        # 60/80 · (40/60 + 0.75 - 1) / (0.75 + 0.75 - 1) = 0.75 · 0.8333
        assert row.corrected.value == pytest.approx(0.625)
        assert row.corrected.low is not None
        assert row.corrected.low < 0.5
        assert row.note is None

    def test_warns_when_the_labels_were_chosen_by_the_verdict(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        said_wrong = [*range(9, 18), *range(49, 60)]
        entries = [{"scenario_id": n, "correct": n % 2 == 0} for n in said_wrong]
        report = compare_judges(folder, labels=self.labels(tmp_path, entries)).labels
        assert report is not None
        assert "no random sample" in (report.judges[0].note or "")

    def test_a_label_counts_only_for_its_case_repeat_and_diagnosis(self, tmp_path: Path) -> None:
        records = [
            {"scenario_id": 1, "case_hash": "h", "repeat": r, "status": "diagnosed", "correct": True,
             "diagnosis_text": "Gout"}
            for r in range(2)
        ]  # fmt: skip
        write_lines(tmp_path / "scenarios.jsonl", records)

        def used(**label: Any) -> int:
            fitting = {"scenario_id": 1, "correct": True}
            path = self.labels(tmp_path, [fitting, {**fitting, "repeat": 1, **label}])
            report = compare_judges(tmp_path, labels=path).labels
            assert report is not None
            return report.used

        assert used() == 2
        assert used(case_hash="h", diagnosis="Gout", labeller="R. M.", reason="clear") == 2
        assert used(case_hash="other") == 1
        assert used(diagnosis="Pseudogout") == 1
        assert used(repeat=2) == 1
        assert used(repeat=0) == 1

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ('{"scenario_id": 1, "correct": "yes"}', "line 1: correct: Input should be a valid boolean"),
            ('{"scenario_id": 1}', "line 1: correct: Field required"),
            ('\n{"scenario_id": 1, "correct": true, "rep": 2}', "line 2: rep: Extra inputs"),
            ("right", "line 1: Invalid JSON"),
        ],
    )
    def test_a_bad_line_is_refused_by_its_number(self, tmp_path: Path, lines: str, message: str) -> None:
        path = tmp_path / "labels.jsonl"
        path.write_text(lines, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_labels(path)

    def test_contradicting_foreign_and_absent_labels_are_refused(self, tmp_path: Path) -> None:
        folder = self.long_run(tmp_path)
        twice = [{"scenario_id": 1, "correct": True}, {"scenario_id": 1, "correct": False}]
        with pytest.raises(InputError, match="both right and wrong"):
            compare_judges(folder, labels=self.labels(tmp_path, twice))
        with pytest.raises(InputError, match="none of its labels"):
            compare_judges(folder, labels=self.labels(tmp_path, [{"scenario_id": 900, "correct": True}]))
        with pytest.raises(InputError, match="cannot be read"):
            compare_judges(folder, labels=tmp_path / "nowhere.jsonl")


class TestCommand:
    def test_text_says_it_all(self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        labels = write_lines(tmp_path / "l.jsonl", [{"scenario_id": n, "correct": n < 3} for n in range(8)])
        judge(run, "x", [Y] * 8, relation="same")
        judge(run, "y", [Y] * 8, relation="broader")
        compare_command(run, None, labels, 0, as_json=False)
        shown = capsys.readouterr().out
        assert "8 diagnoses to judge; without a diagnosis, 1 encounters count as wrong and 1 as missing" in shown
        assert "recorded (gpt-4): right 50.0%" in shown
        assert "Cohen's kappa  0.72 (" in shown
        assert "judged only by recorded 1, only by a 0, by neither 0" in shown
        assert "8  same by x, broader by y" in shown
        assert "Fleiss' kappa of recorded, a, b, x, y" in shown
        assert "accuracy corrected  unknown (too few labels" in shown
        assert "scenario 2, labelled right: 'Asthma', truth 'Asthma'" in shown
        assert "    a: wrong (so it is)" in shown

    def test_json_is_the_whole_comparison(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        compare_command(run, "a, recorded", None, 0, as_json=True)
        shown = json.loads(capsys.readouterr().out)
        assert shown == compare_judges(run, ["a", "recorded"]).model_dump(mode="json")
        assert shown["disputed"][0]["opinions"]["a"]["correct"] is False

    def test_majority_names_its_file(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        majority_command(run, "recorded,a,b", None, as_json=False)
        assert "7 diagnoses decided, 1 without a majority" in capsys.readouterr().out
        majority_command(run, "recorded,a,b", "m", as_json=True)
        assert json.loads(capsys.readouterr().out) == {
            "path": str(run / "judgements" / "m.jsonl"), "decided": 7, "undecided": 1,
        }  # fmt: skip
