from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from agentclinic.cases.model import Door
from agentclinic.results.record import Record
from agentclinic.results.run_data import load_run
from agentclinic.results.turn import Differential, Disclosure, Hypothesis, Provenance, Source, Turn
from agentclinic.scoring.differentials import entropy
from agentclinic.scoring.information import (
    NOT_RECORDED,
    LearnedFrom,
    below,
    gap_to_full_information,
    key_facts,
    premature_closure,
    recall,
    repeated,
    says,
)
from agentclinic.scoring.metrics import NO_DOOR, SHOWN, Information, information
from agentclinic.scoring.rows import row_of

Told = dict[str, list[str]]
"""What a reply discloses: topic to chart paths."""
OPENING = "What brings you in today?"


def talk(
    *said: tuple[str, str, Told | None],
    findings: list[dict[str, Any]] | None = None,
    right: bool | None = True,
    status: str = "diagnosed",
    case: int = 0,
    models: str = "builtin",
    **annotations: Any,
) -> Record:
    """An encounter of (doctor's words, reply, disclosures); None for a role that discloses nothing."""
    transcript = []
    for turn, (words, reply, told) in enumerate(said, start=1):
        role = "measurement" if "REQUEST TEST" in words else "patient"
        parts = [Disclosure(topic=t, provenance=Provenance.CHART, paths=tuple(p)) for t, p in (told or {}).items()]
        transcript.append(Turn(turn=turn, role="doctor", text=words))
        transcript.append(Turn(turn=turn, role=role, text=reply, disclosures=parts))
    transcript.append(Turn(turn=len(said) + 1, role="doctor", text="DIAGNOSIS READY: Gout"))
    return Record(
        scenario_id=case,
        dataset="x",
        status=status,
        correct=right,
        ground_truth="Gout",
        num_turns=len(said) + 1,
        max_infs=20,
        patient_llm=models,
        measurement_llm=models,
        transcript=transcript,
        annotations={"Key_Findings": findings, **annotations} if findings is not None else annotations,
    )


def ways(record: Record) -> list[LearnedFrom | None]:
    found = key_facts(record)
    assert found is not None
    return [entry.way for entry in found]


def score(records: list[Record]) -> Information:
    return information([row_of(record) for record in records])


# --- requests -------------------------------------------------------------------------------------------------------


def test_turns_and_questions_are_counted_per_encounter() -> None:
    ask, order = ("Any fever?", "No.", None), ("REQUEST TEST: CBC", "RESULTS: normal", None)
    found = score([talk(ask, order, order, case=0), talk(ask, case=1), talk(case=2)])
    assert (found.turns.value, found.questions.value, found.images.value) == (7 / 3, 2 / 3, 0)
    assert (found.repeated_questions.count, found.repeated_questions.of) == (0, 2)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Do you have a fever?", "do you have a FEVER", True),
        ("Any fever or chills?", "Fever? Chills?", True),
        ("CT head with contrast", "CT head without contrast", False),
        ("Any fever or chills?", "Any fever, chills or cough?", False),
        ("How are you?", "Who is that?", False),
        # Four words in both, five in either: 0.8.
        ("night sweats fever cough weight", "night sweats fever cough", True),
    ],
)
def test_a_request_is_repeated_when_it_says_the_same_in_other_words(first: str, second: str, same: bool) -> None:
    assert repeated([first, second]) == same


def test_tokens_are_null_if_not_reported() -> None:
    known, unknown = talk(case=0), talk(case=1)
    known.usage = {"doctor": {"input_tokens": 100, "output_tokens": 20}, "patient": {"input_tokens": None}}
    unknown.usage = {"doctor": {"input_tokens": None, "output_tokens": 20}}
    found = score([known, unknown]).tokens
    assert (found["doctor"].value, found["doctor"].n) == (120, 1)
    assert (found["patient"].value, found["patient"].note) == (None, NOT_RECORDED)


# --- key facts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "place", "inside"),
    [
        ("Test_Results/Lipase", "Test_Results/Lipase", True),
        ("Test_Results/CBC/WBC", "Test_Results/CBC", True),
        ("Patient_Actor/History#2.1", "Patient_Actor/History#2", True),
        ("Patient_Actor/History#12", "Patient_Actor/History#1", False),
        ("Patient_Actor/Symptoms/Secondary_Symptoms[4]", "Patient_Actor/Symptoms/Secondary_Symptoms", True),
        ("Test_Results/CBC_repeat", "Test_Results/CBC", False),
        ("Test_Results/CBC", "Test_Results/CBC/WBC", False),
    ],
)
def test_a_place_covers_what_is_below_it(path: str, place: str, inside: bool) -> None:
    assert below(path, place) is inside


@pytest.mark.parametrize(
    ("text", "phrase", "said"),
    [
        ("I have had swelling of the left leg for two days.", "left leg swelling", True),
        ("My left arm hurts. The leg has some swelling.", "left leg swelling", False),
        ("I have no fever.", "fever", False),
        ("I have no fever.", "no fever", True),
        ("I have a fever.", "no fever", False),
        ("Rebound tenderness absent.", "rebound tenderness", False),
        ("Anything", "however", False),
    ],
)
def test_a_phrase_is_said_word_for_word_in_one_clause_and_equally_negated(text: str, phrase: str, said: bool) -> None:
    assert says(text, phrase) is said


STORY, FEVER, WBC = "Patient_Actor/History#0", "Patient_Actor/Review_of_Systems#1", "Test_Results/CBC/WBC"


def test_key_facts_are_classified_by_how_they_came() -> None:
    record = talk(
        (OPENING, "My toe hurts.", {"opening": [STORY]}),
        ("Do you have a fever?", "Yes, a fever.", {"Fever": [FEVER]}),
        ("REQUEST TEST: CBC", "RESULTS: WBC: 12", {"Complete blood count": [WBC]}),
        findings=[
            {"any_of": ["Patient_Actor/Demographics"], "role": "supporting", "weight": 1},
            {"any_of": [STORY], "role": "supporting", "weight": 2},
            {"any_of": ["Test_Results/Uric_Acid", FEVER], "role": "supporting", "weight": 1},
            {"any_of": ["Test_Results/CBC"], "role": "discriminating", "weight": 1},
            {"any_of": ["Test_Results/Synovial_Fluid"], "role": "discriminating", "weight": 3},
        ],
    )
    assert ways(record) == [LearnedFrom.DOOR, LearnedFrom.VOLUNTEERED, LearnedFrom.ASKED, LearnedFrom.ORDERED, None]
    found = score([record]).key_facts
    # What was told at the door is neither found nor missed.
    assert found.recall.value == pytest.approx((2 + 1 + 1) / 7)
    assert found.at_the_door == 1
    assert {way: (p.count, p.of) for way, p in found.by_way.items()} == {
        "volunteered": (1, 4),
        "asked": (1, 4),
        "ordered": (1, 4),
    }
    # Three facts by request, three requests; the one known at the door cost nothing.
    assert found.yield_per_request.value == pytest.approx(1)


def test_the_first_way_counts() -> None:
    record = talk(
        (OPENING, "My toe hurts.", {"opening": [STORY]}),
        ("When did your toe begin to hurt?", "Yesterday.", {"timing": [STORY]}),
        findings=[{"any_of": [STORY]}],
    )
    assert ways(record) == [LearnedFrom.VOLUNTEERED]


def test_a_topic_named_in_an_open_question_was_asked() -> None:
    record = talk(
        (
            "What brings you in today? Do you have a fever?",
            "...",
            {"opening": [STORY], "Fever reported by the patient": [FEVER]},
        ),
        findings=[{"any_of": [STORY]}, {"any_of": [FEVER]}],
    )
    assert ways(record) == [LearnedFrom.VOLUNTEERED, LearnedFrom.ASKED]


@pytest.mark.parametrize(
    ("question", "reply", "way"),
    [
        (OPENING, "My ankle swelling got worse.", LearnedFrom.VOLUNTEERED),
        ("Do you have a cough?", "No, but I have ankle swelling.", LearnedFrom.VOLUNTEERED),
        ("Any swelling?", "Yes, ankle swelling.", LearnedFrom.ASKED),
        ("Do you have a cough?", "No.", None),
        ("REQUEST TEST: Leg examination", "RESULTS: ankle swelling on the left", LearnedFrom.ORDERED),
    ],
)
def test_phrases_are_found_in_what_language_models_say(question: str, reply: str, way: LearnedFrom | None) -> None:
    assert ways(talk((question, reply, None), findings=[{"any_of": ["ankle swelling"]}], models="gpt-5")) == [way]


def test_what_is_asked_as_background_is_not_volunteered() -> None:
    record = talk(
        ("What medications do you take?", "I take warfarin.", None),
        findings=[{"any_of": ["warfarin"]}],
        models="gpt-5",
    )
    assert ways(record) == [LearnedFrom.ASKED]


def test_paths_are_not_assessed_where_a_role_does_not_disclose() -> None:
    findings = [{"any_of": [STORY]}, {"any_of": [WBC, "leukocytosis"]}, {"any_of": [WBC]}]
    said = (OPENING, "My toe hurts.", None), ("REQUEST TEST: CBC", "RESULTS: leukocytosis", None)
    record = talk(*said, findings=findings, models="gpt-5")
    assert ways(record) == [LearnedFrom.ORDERED]
    found = score([record]).key_facts
    assert (found.not_assessable, found.recall.value) == (2, 1)
    # Never asked at all: whether the laboratory would have disclosed is not known either.
    assert ways(talk(findings=[{"any_of": [WBC]}], models="gpt-5")) == []
    assert ways(talk(findings=[{"any_of": [WBC]}], models="builtin")) == [None]


def test_a_doctor_who_was_shown_the_chart_has_no_recall_and_no_premature_closure() -> None:
    record = talk(findings=[{"any_of": [STORY]}, SYNOVIAL], right=False).model_copy(
        update={"doctor": "full_information"}
    )
    assert (key_facts(record), premature_closure(record)) == (None, None)
    found = score([record]).key_facts
    assert (found.recall.value, found.recall.note) == (None, SHOWN)
    assert (found.shown, found.encounters, found.not_assessable, found.by_way) == (1, 0, 0, {})
    assert score([record, talk(findings=[SYNOVIAL])]).key_facts.recall.value == 0, "the other one had to find it"


def test_what_is_told_at_the_door_does_not_have_to_be_found() -> None:
    findings = [{"any_of": ["painful big toe"]}, {"any_of": [STORY]}]
    door = Door(objective="Assess a man with a painful big toe.", demographics="60-year-old man")
    told = talk(findings=findings).model_copy(update={"door": door})
    assert ways(told) == [LearnedFrom.DOOR, None]
    found = score([told]).key_facts
    assert (found.note, found.at_the_door, found.recall.value) == (None, 1, 0)
    assert recall(key_facts(talk(findings=findings[:1]).model_copy(update={"door": door})) or ()) is None
    untold = score([talk(findings=findings)]).key_facts
    assert (untold.at_the_door, untold.note) == (0, NO_DOOR)


@pytest.mark.parametrize(
    "findings",
    ["fever", [3], [{}], [{"any_of": "fever"}], [{"any_of": [3, "the"]}], [{"any_of": ["fever"], "weight": "much"}]],
)
def test_unreadable_key_findings_are_skipped(findings: Any) -> None:
    record = talk(findings=findings)
    assert ways(record) == []
    assert score([record]).key_facts.recall.value is None


# --- premature closure ----------------------------------------------------------------------------------------------

SYNOVIAL = {"any_of": ["Test_Results/Synovial_Fluid/Crystals"], "role": "discriminating", "weight": 1}


def test_a_wrong_commitment_without_the_discriminating_finding_is_premature() -> None:
    assert premature_closure(talk(findings=[SYNOVIAL], right=False)) is True
    assert premature_closure(talk(findings=[{**SYNOVIAL, "role": "refuting gout"}], right=False)) is True


def test_a_wrong_diagnosis_on_the_last_turn_is_not_premature() -> None:
    wrong = talk(findings=[SYNOVIAL], right=False)
    last = wrong.model_copy(update={"num_turns": 20})
    assert (premature_closure(wrong), premature_closure(last)) == (True, False)
    found = score([last, last.model_copy(update={"scenario_id": 1})])
    assert (found.premature_of_wrong.count, found.premature_of_wrong.of) == (0, 2)
    for unknown in ("num_turns", "max_infs"):
        assert premature_closure(wrong.model_copy(update={unknown: None})) is None


def test_a_doctor_who_asked_for_one_of_the_decisive_findings_did_not_close_too_early() -> None:
    asked = ("REQUEST TEST: CBC", "RESULTS: WBC: 12", {"Complete blood count": [WBC]})
    findings = [SYNOVIAL, {**SYNOVIAL, "any_of": [WBC]}]
    assert premature_closure(talk(asked, findings=findings, right=False)) is False
    assert premature_closure(talk(findings=findings, right=False)) is True


def test_right_or_uncommitted_or_after_the_finding_is_not_premature() -> None:
    seen = ("REQUEST TEST: Synovial fluid", "RESULTS: none", {"Synovial": ["Test_Results/Synovial_Fluid/Crystals"]})
    assert premature_closure(talk(findings=[SYNOVIAL], right=True)) is False
    assert premature_closure(talk(findings=[SYNOVIAL], right=False, status="max_infs_reached")) is False
    assert premature_closure(talk(seen, findings=[SYNOVIAL], right=False)) is False


def test_an_order_that_names_the_test_was_a_request_whatever_the_laboratory_said() -> None:
    record = talk(
        ("REQUEST TEST: CBC", "RESULTS: not available", None),
        findings=[{**SYNOVIAL, "any_of": ["Test_Results/Complete_Blood_Count/WBC"]}],
        right=False,
        models="gpt-5",
    )
    assert premature_closure(record) is False
    assert premature_closure(record.model_copy(update={"annotations": {"Key_Findings": [SYNOVIAL]}})) is True


@pytest.mark.parametrize(
    "record",
    [
        talk(findings=[{**SYNOVIAL, "role": "supporting"}], right=False),
        talk(findings=[{**SYNOVIAL, "any_of": ["crystals"]}], right=False),
        talk(findings=[{**SYNOVIAL, "any_of": [STORY]}], right=False, models="gpt-5"),
        talk(findings=[SYNOVIAL], right=None, status="judge_failed"),
        talk(right=False),
        talk(findings=[{**SYNOVIAL, "any_of": ["Patient_Actor/Demographics"]}], right=False),
    ],
    ids=[
        *("not discriminating", "no place in the chart", "a language model's history", "not judged", "no findings"),
        "told at the door",
    ],
)
def test_premature_closure_is_null_if_it_cannot_be_known(record: Record) -> None:
    assert premature_closure(record) is None


def test_whether_an_unread_answer_closed_too_early_cannot_be_known() -> None:
    assert premature_closure(talk(findings=[SYNOVIAL], right=None, status="not_readable")) is None


def test_premature_closures_are_counted_among_all_and_among_the_wrong() -> None:
    wrong, right = talk(findings=[SYNOVIAL], right=False), talk(findings=[SYNOVIAL], right=True)
    found = score([wrong, right, right, talk(right=False)])
    assert (found.premature_closure.count, found.premature_closure.of) == (1, 3)
    assert (found.premature_of_wrong.count, found.premature_of_wrong.of) == (1, 1)


# --- the differential -----------------------------------------------------------------------------------------------


def stating(*probabilities: float | None, other: float | None = None, source: Source = Source.STATED) -> Differential:
    hypotheses = tuple(Hypothesis(diagnosis=f"d{i}", probability=p) for i, p in enumerate(probabilities))
    return Differential(source=source, hypotheses=hypotheses, other=other)


def test_entropy_is_that_worked_by_hand() -> None:
    assert entropy(stating(0.5, 0.25, other=0.25)) == pytest.approx(1.5)
    assert entropy(stating(0.5, 0.25)) == pytest.approx(1.5)
    assert entropy(stating(1.0)) == 0
    assert entropy(stating(0.5, 0.5, other=0.0)) == pytest.approx(1)


@pytest.mark.parametrize(
    "differential",
    [
        stating(0.5, None, other=0.2),
        stating(0.9, 0.8),
        stating(0.2, other=0.2),
        stating(0.5, other=0.5, source=Source.PLANNER_SCORE),
    ],
)
def test_numbers_that_are_not_a_distribution_have_no_entropy(differential: Differential) -> None:
    assert entropy(differential) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda p: sum(p) > 1e-6))
def test_entropy_agrees_with_scipy_and_stays_within_its_bounds(weights: list[float]) -> None:
    p = [w / math.fsum(weights) for w in weights]
    bits = entropy(stating(*p[1:], other=p[0]))
    assert bits == pytest.approx(scipy_entropy(p, base=2), abs=1e-9)
    assert bits is not None
    assert 0 <= bits <= math.log2(len(p)) + 1e-9


def thinking(case: int, *by_turn: tuple[str, ...] | None, truth: str | None = "Gout") -> Record:
    """A doctor who lists these names, equally likely, turn by turn; None where it states nothing."""
    transcript = []
    for turn, listed in enumerate(by_turn, start=1):
        names = listed or ()
        hypotheses = tuple(Hypothesis(diagnosis=name, probability=1 / len(names)) for name in names)
        stated = Differential(source=Source.STATED, hypotheses=hypotheses, other=0.0) if names else None
        transcript.append(Turn(turn=turn, role="doctor", text="?", differential=stated))
    return Record(scenario_id=case, dataset="x", status="diagnosed", ground_truth=truth, transcript=transcript)


def test_the_truth_is_followed_through_the_differentials() -> None:
    records = [
        thinking(0, ("Asthma",), ("Asthma", "Gout"), ("Gout",)),
        thinking(1, ("Gout", "Asthma"), ("Asthma", "Gout")),
        thinking(2, ("Asthma",)),
        thinking(3, None, None, ("Gout",), None),
    ]
    found = score(records).differentials["stated"]
    assert (found.truth_appeared.count, found.truth_appeared.of) == (3, 4)
    assert found.turn_appeared.value == pytest.approx((2 + 1 + 3) / 3)
    assert found.turn_led.value == pytest.approx((3 + 1 + 3) / 3)
    assert (found.truth_dropped.count, found.truth_dropped.of) == (1, 3)


def test_entropy_by_turn_carries_ended_encounters_forward() -> None:
    four = ("Asthma", "Gout", "Migraine", "Psoriasis")
    found = score([thinking(0, four), thinking(1, four[:2], None, ("Gout",)), thinking(2, None, four[:2])])
    bits = {turn: (e.value, e.n) for turn, e in found.differentials["stated"].entropy_bits.items()}
    assert bits == {1: (1.5, 2), 2: (pytest.approx(4 / 3), 3), 3: (1.0, 3)}


def test_sources_are_never_pooled() -> None:
    record = thinking(0, ("Gout",), ("Asthma",))
    assert record.transcript is not None
    asked = record.transcript[1].model_copy(update={"differential": stating(1.0, source=Source.ELICITED)})
    record.transcript[1] = asked
    found = score([record]).differentials
    assert {source: entry.truth_led.count for source, entry in found.items()} == {"elicited": 0, "stated": 1}


# --- all of it ------------------------------------------------------------------------------------------------------


def judged(case: int, right: bool | None) -> Record:
    return Record(scenario_id=case, dataset="x", status="judge_failed" if right is None else "diagnosed", correct=right)


def test_the_gap_to_full_information_is_paired_by_case() -> None:
    ours = [judged(0, True), judged(0, False), judged(1, False), judged(2, True), judged(3, None), judged(4, True)]
    full = [judged(0, True), judged(1, True), judged(2, True), judged(3, True), judged(5, False)]
    found = gap_to_full_information(ours, full)
    # Cases 0, 1 and 2: (1 - 1/2), (1 - 0) and (1 - 1).
    assert found.value == pytest.approx(0.5)
    assert found.n == 3
    assert found.note == "cases in one run only, left out: 3"
    assert gap_to_full_information(ours, []).value is None


def test_a_record_of_the_original_gives_null_and_never_an_exception() -> None:
    original = Record(
        scenario_id=0,
        dataset="MedQA",
        status="diagnosed",
        num_turns=7,
        correct=False,
        ground_truth="Gout",
        diagnosis_text="Asthma",
        doctor_hist="Doctor: REQUEST TEST: CBC\n\nMeasurement: RESULTS: normal\n\n",
    )
    found = score([original])
    assert (found.turns.value, found.without_transcript) == (7, 1)
    for unknown in (found.questions, found.images):
        assert (unknown.value, unknown.note) == (None, NOT_RECORDED)
    assert (found.tokens, found.differentials, found.key_facts.by_way) == ({}, {}, {})
    assert found.key_facts.recall.value is None
    assert found.key_facts.yield_per_request.value is None
    assert found.premature_closure.value is None
    assert found.repeated_questions.value is None
    assert key_facts(original) is None


def test_encounters_cut_short_by_a_failed_model_are_left_out() -> None:
    found = score([talk(status="model_failed", right=None), talk()])
    assert (found.missing, found.encounters, found.turns.n) == (1, 1, 1)


def test_the_order_of_records_changes_nothing() -> None:
    rng = random.Random(4)
    told: tuple[str, str, Told | None] = (OPENING, "My toe hurts.", {"opening": [STORY]})
    records = [
        talk(
            *[told] * rng.randrange(3),
            case=i // 2,
            findings=[{"any_of": [STORY], "weight": 0.1 + i}, SYNOVIAL],
            right=rng.random() < 0.5,
        )
        for i in range(20)
    ]
    records += [thinking(i, *[rng.choice([("Gout",), ("Asthma", "Gout"), None]) for _ in range(4)]) for i in range(20)]
    before = score(records)
    rng.shuffle(records)
    assert score(records) == before


@pytest.mark.slow
def test_the_builtin_clinic_finds_key_facts_in_its_own_chart(tmp_path: Path) -> None:
    records = list(load_run(_builtin_run(tmp_path)).records())
    # What the laboratory disclosed differs from doctor to doctor: take an encounter with an order, and what it brought.
    chosen, ordered = next(
        (record, path)
        for record in records
        for turn in record.transcript or ()
        if turn.role == "measurement"
        for told in turn.disclosures
        for path in told.paths
    )
    findings = [
        {"any_of": ["Patient_Actor/Symptoms/Primary_Symptom"], "role": "supporting", "weight": 1},
        {"any_of": [ordered], "role": "discriminating", "weight": 1},
    ]
    chosen.annotations = {**(chosen.annotations or {}), "Key_Findings": findings}
    assert ways(chosen) == [LearnedFrom.VOLUNTEERED, LearnedFrom.ORDERED]
    assert recall(key_facts(chosen) or ()) == 1
    found = score(records)
    assert found.encounters == len(records)
    assert found.tokens["doctor"].value == 0
    assert found.differentials["posterior"].entropy_bits[1].n == len(records)


def _builtin_run(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "agentclinic", "run", "-q", "--num_scenarios", "6", "--output_dir", str(folder)],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    return next(folder.glob("*_*"))
