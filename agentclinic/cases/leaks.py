"""Find where a case names its own diagnosis."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentclinic.cases.model import PATIENT_SECTIONS, Case, Section
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.disease_names import Names


class Leak(StrEnum):
    """Where a case names its own diagnosis."""

    DOOR = "door_leak"
    """In the objective or demographics, which every doctor reads first."""
    PATIENT = "patient_leak"
    """In what the patient can tell."""
    RESULT = "result_names_diagnosis"
    """In an examination finding or test result."""
    HISTORY = "history_of_same"
    """In past, drug or family history: often legitimate (a known chronic disease), but worth checking."""


@dataclass(frozen=True)
class LeakFound:
    """One place where a case names its diagnosis."""

    kind: Leak
    scenario_id: int
    path: str
    phrase: str


def leaks(case: Case, names: Names | None = None) -> list[LeakFound]:
    """Every place where the case names its diagnosis (or whatever `names` finds) without denying it."""
    names = names or names_of(case)
    found: dict[tuple[Leak, str], LeakFound] = {}

    def look(kind: Leak, path: str, text: str, heads: tuple[str, ...] = ()) -> None:
        for name in names.find(text, heads, result=kind is Leak.RESULT):
            if not (name.broad and kind is Leak.HISTORY):
                found.setdefault((kind, path), LeakFound(kind, case.scenario_id, path, name.phrase))

    look(Leak.DOOR, "Objective_for_Doctor", case.door.objective)
    look(Leak.DOOR, "Demographics", case.door.demographics)
    for fact in case.facts:
        if fact.denied or fact.section is Section.DEMOGRAPHICS:
            continue
        if fact.section in (Section.PAST, Section.DRUGS, Section.FAMILY):
            kind = Leak.HISTORY
        elif fact.section in PATIENT_SECTIONS:
            kind = Leak.PATIENT
        else:
            kind = Leak.RESULT
        look(kind, fact.path, fact.text, fact.heads if kind is Leak.RESULT else ())
    return list(found.values())


def names_of(case: Case) -> Names:
    """The names and codes that give the diagnosis of a case away.

    Besides the diagnosis, these are the names accepted by the answer key, and `synonyms` and `code` under `truth` in a
    generated case (see docs/generate.md).
    """
    truth = case.annotations.get("truth")
    told = truth if isinstance(truth, dict) else {}
    synonyms = [str(name) for name in told.get("synonyms") or ()]
    codes = [str(told["code"])] if told.get("code") else []
    disease = knowledge().disease_named(case.diagnosis)
    if disease:
        codes.append(disease.icd10)
    return Names(case.diagnosis, (*case.answer_key.accept, *synonyms), codes)
