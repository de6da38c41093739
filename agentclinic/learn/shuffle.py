"""Cases with the chart of another patient: door and truth stay, and everything that is asked comes from elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentclinic.cases.formats import OSCE, Row, demographics_in, read_case
from agentclinic.cases.model import JSON, Case, age_in_years, sex
from agentclinic.cases.registry import SHUFFLED
from agentclinic.clinic.judge import by_code
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.errors import InputError
from agentclinic.memory.experience import same_patient, source_of
from agentclinic.privacy import DataClass

CHART_OF = "chart_of"
"""The annotation of a shuffled case that names the case its chart is from."""
_KEPT = ("case_id", "twin_of", "Answer_Key")
"""Annotations that are still true of a door and its truth with another chart."""
_OF_THE_CHART = ("history_source", "Patient_Facts", "Manner", "speaker", "setting")
"""Annotations that go with the chart: how its patient speaks, and where."""
MOST_TRIED = 200
"""Others that are looked at for each case: among so many there is one that fits, and large sets stay quick."""
Apart = Callable[[Case, Case], bool]


def apart(cases: Sequence[Case]) -> Apart:
    """Tells whether one case says nothing about another: no twin, no near copy, and not the same diagnosis."""
    sources = {case.id: source_of(case) for case in cases}

    def are_apart(case: Case, other: Case) -> bool:
        one, two = sources[case.id], sources[other.id]
        same = one.diagnosis == two.diagnosis or same_patient(one, two)
        return not same and not names(other.diagnosis, case)

    return are_apart


def names(diagnosis: str, case: Case) -> bool:
    """Whether a diagnosis is a case's truth, or accepted in part, by the written rules of the builtin judge."""
    return bool(by_code(JudgePayload(diagnosis, case.diagnosis, case.answer_key)).correct_lenient)


def partners(cases: Sequence[Case], seed: int) -> Mapping[str, Case]:
    """Another case for each, by id: drawn by chance, of the same sex and age group where there is one."""
    rng, are_apart, used = random.Random(seed), apart(cases), Counter[str]()
    found: dict[str, Case] = {}
    for case in {case.id: case for case in cases}.values():

        def fit(other: Case, case: Case = case) -> tuple[int, int]:
            return sum(a != b for a, b in zip(_group(case), _group(other), strict=True)), used[other.id]

        drawn = sorted(rng.sample(cases, min(len(cases), MOST_TRIED)), key=fit)
        same_form = (other for other in drawn if OSCE.recognizes(other.row) == OSCE.recognizes(case.row))
        partner = next((other for other in same_form if are_apart(case, other)), None)
        if partner is None:
            raise InputError(
                f"{case.name}: every other chosen case is its twin, a near copy or has the same diagnosis, so there is "
                "no chart to exchange; choose more cases"
            )
        found[case.id] = partner
        used[partner.id] += 1
    return found


def _group(case: Case) -> tuple[str | None, int | None]:
    """Sex, and whether the patient is a child, an adult or old."""
    age = age_in_years(case.door.demographics)
    return sex(case.door.demographics), None if age is None else (age >= 18) + (age >= 65)


def with_chart_of(other: Case, case: Case, data_class: DataClass) -> Case:
    """The case's door and truth with the other's chart, as a case of its own that says what it is."""
    notes = {key: case.annotations[key] for key in _KEPT if key in case.annotations}
    notes |= {CHART_OF: other.name, "data_class": data_class.value}
    notes |= {key: other.annotations[key] for key in _OF_THE_CHART if key in other.annotations}
    if isinstance(told := notes.get("Patient_Facts"), dict):
        notes["Patient_Facts"] = {path: fact for path, fact in told.items() if not path.endswith("/Demographics")}
    patient = _introduced(other.patient, case.door.demographics)
    if OSCE.recognizes(case.row):
        door = {"Objective_for_Doctor": case.door.objective, "Correct_Diagnosis": case.diagnosis}
        row = {"OSCE_Examination": {**door, "Patient_Actor": patient, **other.exam}, **notes}
    else:
        truth = [{"text": case.diagnosis, "correct": True}]
        row = {"patient_info": patient, "physical_exams": other.exam, "answers": truth, **notes}
        row |= {"image_url": other.row["image_url"]} if other.image else {}
    made = read_case(Row(Path(case.dataset), 0, case.scenario_id, row), f"{case.dataset}{SHUFFLED}")
    return replace(made, image=other.image)


def _introduced(patient: JSON, demographics: str) -> JSON:
    """A patient's script that gives this age and sex first."""
    if isinstance(patient, dict):
        return {"Demographics": demographics, **{key: v for key, v in patient.items() if key != "Demographics"}}
    if isinstance(patient, list):
        return [demographics, *patient]
    own = demographics_in(patient)
    return patient.replace(own, demographics, 1) if own else f"{demographics}. {patient}"
