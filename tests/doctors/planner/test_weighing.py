"""From findings to numbers: bounds, evidence, order, names, duplicates, and states and weights in odd forms."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_support import findings

from agentclinic.doctors.planner.schema import PlannedFinding, PlannedHypothesis, read_state
from agentclinic.doctors.planner.scoring import Weights
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.doctors.planner.weighing import Weighed, ranked, sift, weigh


def weighed(shorthand: str) -> Weighed:
    return weigh(PlannedHypothesis.model_validate({"diagnosis": "Migraine", "findings": findings(shorthand)}))


STATES = st.sampled_from(["present", "absent", "unknown"])
EXPECTED = st.sampled_from(["present", "absent"])
WEIGHTS = st.integers(1, 5)


def some_findings(names: st.SearchStrategy[str], fewest: int = 0) -> st.SearchStrategy[list[PlannedFinding]]:
    one = st.builds(PlannedFinding, finding=names, weight=WEIGHTS, expected=EXPECTED, observed=STATES)
    return st.lists(one, min_size=fewest, max_size=10)


def of(findings: Sequence[PlannedFinding], diagnosis: str = "Flu") -> PlannedHypothesis:
    return PlannedHypothesis(diagnosis=diagnosis, findings=list(findings))


ANY = some_findings(st.text(min_size=1).filter(str.strip))
DUPLICATED = some_findings(
    st.sampled_from(["fever", "Fever", "high temperature", "nausea", "queasy", "stiff neck"]), fewest=1
)


@pytest.mark.parametrize(
    ("shorthand", "sums", "confidence", "coverage"),
    [
        ("", (0, 0, 0), 0.5, 0.0),
        ("?3 ?2", (0, 0, 5), 0.5, 0.0),
        ("+5 +1", (6, 0, 0), 1.0, 1.0),
        ("-5 -1", (0, 6, 0), 0.0, 1.0),
        ("+5 -5", (5, 5, 0), 0.5, 1.0),
        ("+5 +2 -3", (7, 3, 0), 0.7, 1.0),  # (1 + 4/10) / 2
        ("+4 -1 ?5", (4, 1, 5), 0.65, 0.5),  # (1 + 3/10) / 2
        ("+4 ?4 ?2", (4, 0, 6), 0.7, 0.4),  # the same confidence with less known
    ],
)
def test_hand_worked_values(shorthand: str, sums: tuple[int, int, int], confidence: float, coverage: float) -> None:
    found = weighed(shorthand)
    assert (found.support, found.contradiction, found.unknown) == sums
    assert found.confidence == confidence, "exactly: rounding must not miss a threshold"
    assert found.coverage == coverage


def test_a_finding_expected_absent_speaks_for_it_when_absent() -> None:
    absent = {"finding": "fever", "weight": 4, "expected": "absent"}
    for observed, side in [("absent", (4, 0, 0)), ("present", (0, 4, 0)), ("unknown", (0, 0, 4))]:
        hypothesis = {"diagnosis": "Migraine", "findings": [{**absent, "observed": observed}]}
        found = weigh(PlannedHypothesis.model_validate(hypothesis))
        assert (found.support, found.contradiction, found.unknown) == side


@given(ANY)
def test_numbers_stay_between_0_and_1_and_add_up(findings: list[PlannedFinding]) -> None:
    found = weigh(of(findings))
    assert 0 <= found.confidence <= 1
    assert 0 <= found.coverage <= 1
    assert abs(found.confidence - 0.5) <= found.coverage / 2 + 1e-12, "the unknown adds no confidence"
    assert found.total == sum(finding.weight for finding in findings)


@given(ANY, WEIGHTS, EXPECTED)
def test_a_new_finding_moves_confidence_its_way_and_raises_coverage(
    others: list[PlannedFinding], weight: int, expected: Any
) -> None:
    def when(state: Any) -> Weighed:
        last = PlannedFinding(finding="the one", weight=weight, expected=expected, observed=state)
        return weigh(of([*others, last]))

    other = "absent" if expected == "present" else "present"
    assert when(other).confidence < when("unknown").confidence < when(expected).confidence
    assert when(other).coverage == when(expected).coverage > when("unknown").coverage


@given(ANY, st.randoms())
def test_neither_order_nor_names_change_a_number(findings: list[PlannedFinding], chance: random.Random) -> None:
    shuffled = chance.sample(findings, len(findings))
    renamed = [f.model_copy(update={"finding": f"other {n}"}) for n, f in enumerate(shuffled)]
    one, other = weigh(of(findings)), weigh(of(renamed, "something else"))
    assert (one.confidence, one.coverage) == (other.confidence, other.coverage)


@given(DUPLICATED, st.randoms())
def test_duplicate_findings_count_the_same_in_any_order(findings: list[PlannedFinding], chance: random.Random) -> None:
    def counted(given: list[PlannedFinding]) -> tuple[float, float, int]:
        found = weigh(sift([of(given)], 5)[0][0])
        return found.confidence, found.coverage, found.total

    assert counted(findings) == counted(chance.sample(findings, len(findings)))


def test_ranked_by_confidence_then_coverage_then_order_of_naming() -> None:
    said = {"a": "+4 ?4 ?2", "b": "+5 -3 +2", "c": "+5 +5", "d": "+5 +5", "e": "-1"}
    hypotheses = [
        weigh(PlannedHypothesis.model_validate({"diagnosis": name, "findings": findings(shorthand)}))
        for name, shorthand in said.items()
    ]
    assert [h.diagnosis for h in ranked(hypotheses)] == ["c", "d", "b", "a", "e"]


def sifted(
    *names_and_findings: tuple[str, list[dict[str, Any]]], most: int = 5
) -> tuple[list[PlannedHypothesis], list[str]]:
    given = [PlannedHypothesis.model_validate({"diagnosis": n, "findings": f}) for n, f in names_and_findings]
    return sift(given, most)


@pytest.mark.parametrize("second", ["MIGRAINE", "migraine ", "Migraine headache"])
def test_a_diagnosis_named_twice_even_by_a_synonym_is_one(second: str) -> None:
    one, other = findings("+5 +4"), [{**f, "finding": f"other {f['finding']}"} for f in findings("-3 ?2")]
    hypotheses, remarks = sifted(("Migraine", one), (second, other), ("Cluster headache", one))
    assert [h.diagnosis for h in hypotheses] == ["Migraine", "Cluster headache"]
    assert [f.weight for f in hypotheses[0].findings] == [5, 4, 3, 2]
    assert "named before as Migraine, taken as one" in remarks[0]


def test_after_merging_only_the_first_hypotheses_are_kept() -> None:
    some = findings("+1")
    hypotheses, remarks = sifted(("a", some), ("A", some), ("b", some), ("c", some), most=2)
    assert [h.diagnosis for h in hypotheses] == ["a", "b"]
    assert "3 hypotheses, only the first 2 are kept" in remarks


def finding(name: str, weight: int, observed: str, expected: str = "present") -> dict[str, Any]:
    return {"finding": name, "weight": weight, "observed": observed, "expected": expected}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([finding("Fever", 2, "present"), finding("fever", 4, "present")], [("Fever", 4, "present")]),
        ([finding("fever", 2, "unknown"), finding("fever", 4, "absent")], [("fever", 4, "absent")]),
        ([finding("fever", 2, "present"), finding("fever", 2, "absent")], [("fever", 2, "unknown")]),
        (
            [finding("fever", 2, "present"), finding("fever", 2, "absent"), finding("fever", 2, "present")],
            [("fever", 2, "unknown")],
        ),
        ([finding("fever", 2, "present"), finding("fever", 2, "present", "absent")], [("fever", 2, "unknown")]),
        ([finding("nausea", 2, "present"), finding("queasy", 3, "present")], [("nausea", 3, "present")]),
        (  # one finding to the knowledge base, two to this planner
            [finding("melena", 2, "present"), finding("hematemesis", 3, "absent")],
            [("melena", 2, "present"), ("hematemesis", 3, "absent")],
        ),
        (
            [finding("fever", 2, "present"), finding("stiff neck", 2, "present")],
            [("fever", 2, "present"), ("stiff neck", 2, "present")],
        ),
    ],
    ids=["case", "known-wins", "both-ways", "three", "expected-both-ways", "synonym", "two-things", "different"],
)
def test_findings_named_twice_count_once(given: list[dict[str, Any]], kept: list[tuple[str, int, str]]) -> None:
    hypotheses, remarks = sifted(("Flu", given))
    assert [(f.finding, f.weight, f.observed) for f in hypotheses[0].findings] == kept
    assert any("counted once" in remark for remark in remarks) == (len(kept) < len(given))


@pytest.mark.parametrize(
    ("said", "state"),
    [
        *dict.fromkeys(
            ["present", " Present. ", "yes", True, "positive", "present (39 °C)", "yes - twice"], "present"
        ).items(),
        *dict.fromkeys(
            ["absent", "no", "No.", False, "no fever", "denies fever", "without chills", "not present", "not found",
             "ruled out", "absent; asked twice"],
            "absent",
        ).items(),
        *dict.fromkeys(
            ["unknown", "not assessed", "not yet asked", "not yet", "not sure", "not examined", "not ruled out",
             "no information", "no data", "no idea", "abnormal", "", None, "N/A", "?", "present or absent",
             "yes/no", "possibly present", 0, 1, "nothing known", "unlikely", "[]"],
            "unknown",
        ).items(),
    ],
)  # fmt: skip
def test_a_state_counts_as_known_only_if_plainly_stated(said: object, state: str) -> None:
    """A search for "no" inside the word would count "unknown" and "not assessed" as absent."""
    assert read_state(said) == state
    read = PlannedFinding.model_validate({"finding": "fever", "weight": 2, "observed": said})
    assert read.observed == state
    plain = said is None or (isinstance(said, str) and said.strip().lower() == state)
    assert bool(read.remark) != plain, "an interpretation is remarked on, a plain state is not"


@pytest.mark.parametrize(
    ("said", "taken"), [(0, 1), (-3, 1), (6, 5), (100, 5), (2.6, 3), ("heavy", 1), (None, 1), (float("inf"), 5)]
)
def test_weights_out_of_range_are_moved_into_it_with_a_remark(said: object, taken: int) -> None:
    read = PlannedFinding.model_validate({"finding": "fever", "weight": said, "observed": "present"})
    assert read.weight == taken
    assert read.remark == f"fever: weight {said!r} taken as {taken}"


@pytest.mark.parametrize("said", [1, 5, 3.0, "4"])
def test_weights_within_range_are_kept(said: Any) -> None:
    read = PlannedFinding.model_validate({"finding": "fever", "weight": said, "observed": "present"})
    assert (read.weight, read.remark) == (int(said), None)


def test_remarks_about_odd_findings_name_the_diagnosis() -> None:
    _, remarks = sifted(("Flu", [{"finding": "fever", "weight": 9, "observed": "not assessed"}]))
    assert remarks == ["Flu: fever: weight 9 taken as 5, observed 'not assessed' taken as unknown"]


def test_scores_are_recorded_as_scores() -> None:
    given = Weights(load_policy().file).differential((weighed("+4 -1 ?5"),))
    assert given is not None
    assert given.source == "planner_score"
    assert (given.hypotheses[0].score, given.hypotheses[0].probability, given.other) == (0.65, None, None)
