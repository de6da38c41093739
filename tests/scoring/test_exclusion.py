from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest
from helpers import EVERY, ask, bundled_cases, order

from agentclinic.api import evaluate
from agentclinic.cases.model import Case
from agentclinic.results.record import Record
from agentclinic.results.turn import Disclosure, Provenance, Turn
from agentclinic.scoring.exclusion import NOT_DISCLOSED, PROSE, SHOWN, dangers
from agentclinic.scoring.information import below
from agentclinic.scoring.metrics import Harm, harm
from agentclinic.scoring.rows import row_of
from agentclinic.vocabulary.base import knowledge

CULTURE, TROPONIN, ECG = "Test_Results/Joint_Fluid/Culture", "Test_Results/Troponin", "Test_Results/ECG"
FEVER, THROAT = "Patient_Actor/History#1", "Physical_Examination_Findings/Throat"


def disease(*ways: Any, **more: Any) -> dict[str, Any]:
    return {"name": "Septic arthritis", "excluded_by": list(ways), **more}


def met(*said: tuple[str, dict[str, list[str]] | None], of: list[Any], **changes: Any) -> Record:
    """An encounter of (doctor's words, what the reply disclosed by topic); None if the topic is not available."""
    transcript = []
    for number, (words, told) in enumerate(said, start=1):
        role = "measurement" if words.startswith("REQUEST TEST") else "patient"
        parts = [Disclosure(topic, Provenance.CHART, tuple(paths)) for topic, paths in (told or {}).items()]
        if told is None:
            parts = [Disclosure(words.removeprefix("REQUEST TEST: "), Provenance.UNAVAILABLE)]
        transcript.append(Turn(turn=number, role="doctor", text=words))
        transcript.append(Turn(turn=number, role=role, text=".", disclosures=tuple(parts)))
    transcript.append(Turn(turn=len(said) + 1, role="doctor", text="DIAGNOSIS READY: Septic arthritis"))
    fields = {"patient_llm": "builtin", "measurement_llm": "builtin", "transcript": transcript} | changes
    return Record(scenario_id=0, status="diagnosed", correct=True, annotations={"Must_Not_Miss": of}, **fields)


def score(*records: Record) -> Harm:
    return harm([row_of(record) for record in records])


def minutes(record: Record) -> list[float | None]:
    return [one.minutes for one in dangers(record)]


# --- played with the builtin patient and laboratory -------------------------------------------------------------------


class Says:
    """A doctor that says the given lines."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def inference_doctor(self, question: str) -> str:
        return self.lines.pop(0)


def bundled(case_id: str) -> Case:
    return next(case for case in bundled_cases() if case.annotations["case_id"] == case_id)


def played(folder: Path, case: Case, *lines: str) -> Record:
    doctor = Says(*lines, "DIAGNOSIS READY: Costochondritis")
    return evaluate(doctor, case, output_dir=str(folder), progress=False).records[0]


def test_names_exclude_nothing_and_the_excluding_tests_exclude_all_by_whatever_name(tmp_path: Path) -> None:
    case = bundled("osce-a06")
    names = "I consider acute coronary syndrome, pulmonary embolism and spontaneous pneumothorax."
    listed = played(tmp_path, case, names)
    assert score(listed).excluded.value == 0
    assert [one.name for one in dangers(listed)] == [one["name"] for one in case.annotations["Must_Not_Miss"]]
    plain = played(
        tmp_path,
        case,
        "REQUEST TEST: Electrocardiogram",
        "REQUEST TEST: Troponin",
        "REQUEST TEST: D-dimer",
        "REQUEST TEST: Chest X-ray",
    )
    other = played(
        tmp_path,
        case,
        "REQUEST TEST: 12-lead EKG",
        "REQUEST TEST: serum troponin",
        "REQUEST TEST: d dimer level",
        "REQUEST TEST: CXR",
    )
    assert score(plain).excluded.value == 1
    assert dangers(other) == dangers(plain)
    half = played(tmp_path, case, "REQUEST TEST: Electrocardiogram", "REQUEST TEST: D-dimer")
    assert score(half).excluded.value == pytest.approx(4 / (4 + 4 + 3)), "the ECG alone excludes no infarction"


SKIN = "Physical_Examination_Findings/Skin_Examination"
NEEDS_THE_SITE = {
    ("osce-d05", f"{SKIN}/Left_Leg"),
    ("osce-d06", f"{SKIN}/Left_Leg"),
    ("osce-d24", f"{SKIN}/Hands_and_Feet"),
}
"""The laboratory does not report these if "skin examination" is ordered without saying where."""
QUESTIONS = 2
"""The author's questions that a doctor asks for a finding. The first may be so open ("How are your periods?") that
other facts answer it better, and a patient tells at most three of them."""


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("dataset", ["OpenOSCE", "OpenOSCE_Demo"])
def test_every_finding_that_excludes_a_disease_can_be_obtained(dataset: str, every: int) -> None:
    out_of_reach = []
    for case in bundled_cases(dataset, lockbox=True)[::every]:
        ways = [way for entry in case.annotations["Must_Not_Miss"] for way in entry["excluded_by"]]
        for path in dict.fromkeys(path for way in ways for path in ([way] if isinstance(way, str) else way)):
            fact, place = (
                next(fact for fact in case.facts if below(fact.path, path)),
                (case.annotations["case_id"], path),
            )
            heads = fact.heads if place in NEEDS_THE_SITE else fact.heads[:1]
            if path.startswith("Patient_Actor"):
                replies = [ask(case, question) for question in fact.asked[:QUESTIONS]]
            else:
                replies = [order(case, " ".join(heads))]
            told = [one for reply in replies for part in reply.disclosures for one in part.paths]
            out_of_reach += [] if any(below(one, path) for one in told) else [place]
    assert out_of_reach == []


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("dataset", ["OpenOSCE", "OpenOSCE_Demo"])
def test_what_is_known_at_the_door_and_the_opening_question_exclude_nothing(dataset: str, every: int) -> None:
    for case in bundled_cases(dataset, lockbox=True)[::every]:
        reply = ask(case, "What brings you in today?")
        turns = [
            Turn(turn=1, role="doctor", text="What brings you in today?"),
            Turn(turn=1, role="patient", text=reply.text, disclosures=reply.disclosures),
        ]
        roles = {"patient_llm": "builtin", "measurement_llm": "builtin"}
        record = Record(
            scenario_id=0, status="diagnosed", annotations=dict(case.annotations), transcript=turns, **roles
        )
        assert set(minutes(record)) == {None}, case.annotations["case_id"]


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_one_way_is_enough_and_needs_all_its_paths() -> None:
    either = [disease(CULTURE, [TROPONIN, ECG])]
    assert minutes(met(("REQUEST TEST: Troponin", {"Troponin": [TROPONIN]}), of=either)) == [None]
    both = met(
        ("REQUEST TEST: Troponin", {"Troponin": [TROPONIN]}),
        ("REQUEST TEST: ECG", {"ECG": [f"{ECG}/Findings"]}),
        of=either,
    )
    assert None not in minutes(both), "a path covers what is below it"


def test_the_simulated_clock_adds_up() -> None:
    """A question 5, the throat 5, and an order as long as its slowest item: troponin 60 + 5, chest film 45 + 10."""
    said = [
        ("Any fever?", {"fever": [FEVER]}),
        ("REQUEST TEST: MRI", None),
        ("REQUEST TEST: throat examination", {"throat": [THROAT]}),
        ("REQUEST TEST: Troponin, Chest X-ray", {"Troponin": [TROPONIN], "Chest X-ray": ["Test_Results/Film"]}),
    ]
    of = [disease(FEVER), disease(THROAT), disease([FEVER, "Test_Results/Film"]), disease(TROPONIN, THROAT)]
    record = met(*said, of=of)
    assert minutes(record) == [5, 10, 75, 10], "the earliest way counts"
    busy = met(*said, of=of, resource_level="busy")
    assert minutes(busy)[2] == 5 + 5 + 2 * 60 + 5, "only the wait is longer"
    assert score(record).minutes_to_exclusion.value == pytest.approx((5 + 10 + 75 + 10) / 4)


def test_a_test_without_times_takes_as_long_as_the_median_test() -> None:
    listed = [test.wait_minutes + test.duration_minutes for test in knowledge().tests.values()]
    told = ("REQUEST TEST: zyxwort biopsy", {"zyxwort biopsy": ["Test_Results/Zyxwort"]})
    assert minutes(met(told, of=[disease("Test_Results/Zyxwort")])) == [median(listed)]


def test_diseases_weigh_by_their_harm() -> None:
    of = [disease(FEVER, harm=4), disease(TROPONIN, harm=1), disease(CULTURE), disease(CULTURE, harm="high")]
    found = score(met(("Any fever?", {"fever": [FEVER]}), of=of))
    assert found.excluded.value == pytest.approx(4 / (4 + 1 + 3 + 3)), "3 if the case gives none"
    assert (found.diseases, found.encounters, found.not_assessable) == (4, 1, {})


@pytest.mark.parametrize(
    ("of", "changes", "why"),
    [
        ([{"name": "Sepsis", "excluded_by": "Cultures without growth"}], {}, PROSE),
        ([{"name": "Sepsis"}], {}, PROSE),
        ([disease("Patient_Actor/Demographics"), disease([], [3])], {}, PROSE),
        ([disease(CULTURE)], {"measurement_llm": "a-model"}, NOT_DISCLOSED),
        ([disease(CULTURE)], {"transcript": None}, NOT_DISCLOSED),
        ([disease(CULTURE)], {"doctor": "full_information"}, SHOWN),
    ],
)
def test_what_cannot_be_assessed_is_not_0(of: list[Any], changes: dict[str, Any], why: str) -> None:
    found = score(met(of=of, **changes))
    assert (found.excluded.value, found.excluded.note, found.not_assessable) == (None, why, {why: len(of)})
    assert (found.diseases, found.minutes_to_exclusion.value) == (0, None)


def test_a_role_that_would_have_told_was_not_asked() -> None:
    grounded = {"patient": "grounded", "measurement": "grounded"}
    assert score(met(of=[disease(CULTURE)], measurement_llm="a-model", simulator=grounded)).excluded.value == 0


def test_diseases_are_left_out_where_a_role_that_they_need_is_silent() -> None:
    record = met(("REQUEST TEST: Culture", {"Culture": [CULTURE]}), of=[disease(CULTURE), disease(FEVER, CULTURE)])
    record.patient_llm = "a-model"
    found = score(record)
    assert (found.excluded.value, found.diseases, found.not_assessable) == (1, 1, {NOT_DISCLOSED: 1})


def test_an_encounter_that_was_cut_short_is_not_assessed() -> None:
    record = met(of=[disease(CULTURE)])
    record.status, record.correct = "model_failed", None
    found = score(record)
    assert (found.excluded.value, found.diseases, found.not_assessable) == (None, 0, {})


@pytest.mark.parametrize("of", [None, "sepsis", [3, {"name": 4, "excluded_by": [CULTURE]}, {"name": " "}]])
def test_a_case_that_names_no_disease_counts_nowhere(of: Any) -> None:
    found = score(met(of=of))
    assert (found.excluded.value, found.excluded.note, found.diseases, found.not_assessable) == (None, None, 0, {})
