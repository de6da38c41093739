"""Check that a new case can be read, gives nothing away, and says nothing that its source does not say.

The writer is told the section and the rule, never the diagnosis: a model that is told "do not say pulmonary embolism"
has been told the truth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agentclinic.cases.leaks import Leak, leaks
from agentclinic.cases.model import PATIENT_SECTIONS, WITHOUT_SYMPTOMS, Case, Door, Section, WriterPayload
from agentclinic.clinic.findings import gather
from agentclinic.config import NEEDS, Settings, defaults
from agentclinic.doctors.reference import chart_exchanges
from agentclinic.errors import CaseError
from agentclinic.generate.case import Entry, Prepared, entries, read_back
from agentclinic.generate.source import SOURCE_IDENTIFIER, problems
from agentclinic.generate.story import demographics
from agentclinic.lint import person
from agentclinic.lint.chart import Chart
from agentclinic.results.journal import read_records
from agentclinic.results.run_folder import RECORDS
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.scoring.information import gap_to_full_information
from agentclinic.scoring.stats import Estimate
from agentclinic.scoring.verdicts import strict
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.compare import STRICT, Relation, compare
from agentclinic.vocabulary.disease_names import disease_mentions, one_word_diseases
from agentclinic.vocabulary.numbers import NUMBER_WORDS
from agentclinic.vocabulary.numbers import numbers as amounts
from agentclinic.vocabulary.text import words

_NUMBER = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
# Triage shorthand in full, so that a story in plain words is recognized as saying the same.
_SHORTHAND = {
    "sob": "shortness of breath", "doe": "dyspnea on exertion", "cp": "chest pain", "abd": "abdominal",
    "ha": "headache", "n/v": "nausea and vomiting", "n/v/d": "nausea and vomiting and diarrhea", "ams": "confusion",
    "brbpr": "rectal bleeding", "loc": "loss of consciousness", "lbp": "low back pain", "wt": "weight",
    "fx": "fracture", "si": "suicidal thoughts", "uri": "cough and runny nose", "f/c": "fever and chills",
    "le": "leg", "lle": "leg", "rle": "leg", "ble": "leg",
}  # fmt: skip
_RULES = {
    Leak.DOOR: "it names a disease; the objective may name the complaint only",
    Leak.PATIENT: "it names a disease; say what the patient notices instead, and name no present disease at all",
    Leak.RESULT: "it names a disease",
    Leak.HISTORY: "it names a disease that is not among the earlier diagnoses on record",
}
_NONE_ON_RECORD = "the record tells no present symptoms; leave it empty"
_STORY_SECTIONS = frozenset(PATIENT_SECTIONS - {Section.DEMOGRAPHICS, Section.PAST, Section.DRUGS})
_ON_RECORD = STRICT | {Relation.BROADER}
"""How a disease may relate to a coded title: the title is the more precise of the two."""
_PRESENT = frozenset({Section.HISTORY, Section.SYMPTOMS, Section.REVIEW})


@dataclass(frozen=True)
class Problem:
    kind: str
    path: str
    detail: str
    """For people; may name the diagnosis."""
    rule: str = ""
    """For the writer: what to do differently, without the diagnosis."""

    @property
    def for_writer(self) -> str:
        return f"{self.path.removeprefix('Patient_Actor/')}: {self.rule or self.detail}"

    @property
    def fixable(self) -> bool:
        """Whether it is in the writer's part of the case."""
        return self.kind == "schema" or self.path.startswith(("Patient_Actor", "Objective_for_Doctor"))

    def as_dict(self) -> dict[str, str]:
        return {"kind": self.kind, "path": self.path, "detail": self.detail}


def check(row: dict[str, Any], prepared: Prepared) -> list[Problem]:
    try:
        case = read_back(row)
    except CaseError as error:
        return [Problem("schema", "OSCE_Examination", str(error))]
    return [
        *_label(case, row, prepared),
        *_leaks(case),
        *_result_numbers(case, prepared),
        *_story_numbers(case, prepared.brief.payload),
        *(_made_up if prepared.brief.payload.history_source == "model" else _story_findings)(
            case, prepared.brief.payload
        ),
        *_private(case, row, prepared),
    ]


def _label(case: Case, row: dict[str, Any], prepared: Prepared) -> Iterator[Problem]:
    source = prepared.source
    if case.diagnosis != source.truth.title.strip():
        yield Problem("label", "Correct_Diagnosis", "is not the source's diagnosis")
    if row.get("data_class") != str(source.data_class):
        yield Problem("data_class", "data_class", "is not the source's class")
    if prepared.labs_only != row.get("labs_only") or row.get("history_source") != prepared.brief.payload.history_source:
        yield Problem("history_source", "history_source", "does not say where the story comes from")
    if not case.exam_facts and prepared.labs_only:
        yield Problem("empty", "Test_Results", "neither a history nor any result is on record")


def _leaks(case: Case) -> Iterator[Problem]:
    for leak in leaks(case):
        yield Problem(leak.kind.value, leak.path, f"names the diagnosis: {leak.phrase!r}", _RULES[leak.kind])


def numbers(text: str) -> set[str]:
    """The numbers in a text, in one form: 1,200 is 1200 and 38.0 is 38."""
    return {format(Decimal(found.replace(",", "")).normalize(), "f") for found in _NUMBER.findall(text)}


def _counted(text: str) -> set[str]:
    spelled = {f"{NUMBER_WORDS[word]:g}" for word in map(str.lower, _WORD.findall(text)) if word in NUMBER_WORDS}
    return numbers(text) | spelled


def _result_numbers(case: Case, prepared: Prepared) -> Iterator[Problem]:
    """Every line of the results comes from rows of the source, and every number in it from those rows."""
    by_row: dict[str, list[Entry]] = {}
    for entry in entries(prepared.source):
        for row in entry.rows:
            by_row.setdefault(row, []).append(entry)
    for fact in case.exam_facts:
        rows = prepared.chart.trace.get(fact.path, ())
        place = fact.path.partition("[")[0]
        lines = [entry for row in rows for entry in by_row.get(row, ()) if "/".join(entry.place) == place]
        if not lines:
            yield Problem("untraced_result", fact.path, "comes from no row of the source")
            continue
        allowed = {number for entry in lines for number in numbers(" ".join((*entry.place, entry.text)))}
        extra = numbers(" ".join((*fact.heads, fact.text))) - allowed
        if extra:
            yield Problem("invented_number", fact.path, f"{', '.join(sorted(extra))} is in no row of the source")


def _story_numbers(case: Case, payload: WriterPayload) -> Iterator[Problem]:
    said = [*payload.story, *payload.past, *payload.drugs, payload.arrival, demographics(payload.age, payload.sex)]
    allowed = {number for text in said for number in _counted(text)}
    made_up = payload.history_source == "model"
    may_use = "no number but the age and durations" if made_up else "only numbers of the record"
    for path, text in _story_texts(case):
        durations = {f"{each.value:g}" for each in amounts(text) if made_up and each.days is not None}
        extra = ", ".join(sorted(_counted(text) - allowed - durations))
        if extra:
            rule = f"it has the number {extra}, which is not on record; use {may_use}"
            yield Problem("invented_number", path, f"{extra} is not in the story's source", rule)


def _story_texts(case: Case) -> Iterator[tuple[str, str]]:
    yield "Objective_for_Doctor", case.door.objective
    for fact in case.patient_facts:
        if fact.section is not Section.DEMOGRAPHICS:
            yield fact.path, fact.text


def _story_findings(case: Case, payload: WriterPayload) -> Iterator[Problem]:
    """The story has only symptoms that its source has, and none at all if the source has no story."""
    if payload.history_source in WITHOUT_SYMPTOMS:
        for fact in case.patient_facts:
            if fact.section in _PRESENT - {Section.HISTORY}:
                yield Problem("invented_story", fact.path, "has symptoms although none are on record", _NONE_ON_RECORD)
    source = _written_out(" . ".join((*payload.story, *payload.past, *payload.drugs, payload.arrival)))
    present, mentioned = _findings(source)
    texts = [("Objective_for_Doctor", case.door.objective)]
    texts += [(fact.path, fact.text) for fact in case.patient_facts if fact.section in _STORY_SECTIONS]
    for path, text in texts:
        told, named = _findings(text)
        extra = (told - present) | (named - mentioned)
        if extra:
            listed = ", ".join(sorted(knowledge().findings[finding].name for finding in extra))
            rule = f"it tells or denies {listed}, of which the record says nothing; leave it out"
            yield Problem("invented_finding", path, f"{listed}: not in the story's source", rule)


def _made_up(case: Case, payload: WriterPayload) -> Iterator[Problem]:
    """A made-up story has symptoms; it contradicts no result, reports none, and names no disease that is not coded."""
    told_of = {fact.section for fact in case.patient_facts}
    if not {Section.HISTORY, Section.SYMPTOMS} <= told_of:
        rule = "write a history and the main symptom"
        yield Problem("no_symptoms", "Patient_Actor/Symptoms", "the story has no symptoms", rule)
    elif not any(
        _tells_symptom(f.text) for f in case.patient_facts if f.section in (Section.HISTORY, Section.SYMPTOMS)
    ):
        rule = "name at least one symptom in plain words"
        yield Problem("no_symptoms", "Patient_Actor/Symptoms", "no symptom that is known to us", rule)
    texts = [("Objective_for_Doctor", case.door.objective)]
    coded = (*payload.past, *payload.coded, *payload.drugs)
    for fact in case.patient_facts:
        if fact.section in _PRESENT:
            texts.append((fact.path, fact.text))
        elif fact.section is not Section.DEMOGRAPHICS:
            for name in _not_coded(fact.text, coded):
                yield Problem("invented_story", fact.path, f"{name} is not on record", _RULES[Leak.HISTORY])
    tests = [exchange for exchange in chart_exchanges(case) if exchange.kind == "test"]
    measured = gather(Door("", case.door.demographics), tests)
    for path, text in texts:
        told, named = _findings(text)
        for finding in sorted(named):
            one = knowledge().findings[finding]
            if measured.get(finding, finding in told) != (finding in told):
                said, found = ("reports", "normal") if finding in told else ("denies", "abnormal")
                rule = f"it {said} {one.name}, and the result is {found}; make the story fit the results"
                yield Problem("contradiction", path, f"{said} {one.name}, and the chart's result is {found}", rule)
            elif finding not in measured and one.kind in ("lab", "imaging"):
                rule = f"it mentions a test ({one.name}) that is not on record; leave out all results"
                yield Problem("invented_finding", path, f"{one.name}: not in the chart", rule)
        for name in _not_coded(text, coded):
            yield Problem("names_disease", path, f"names a disease: {name!r}", _RULES[Leak.PATIENT])
    chart = Chart(case)
    for check_person in (person.check_sex, person.check_pronouns, person.check_age, person.check_called):
        for problem in check_person(chart):
            if problem.path.startswith(("Patient_Actor", "Objective_for_Doctor")):
                rule = f"it does not fit the patient: {problem.message}"
                yield Problem("contradiction", problem.path, problem.message, rule)


def _not_coded(text: str, titles: Sequence[str]) -> list[str]:
    """The diseases in a text that none of the titles names, in the same or other words."""
    coded = frozenset(words(" ".join(titles)))
    mentions = (*disease_mentions(text), *one_word_diseases(text))
    named = dict.fromkeys(" ".join(mention.words) for mention in mentions if not mention.negated)
    others = (name for name in named if not coded.issuperset(words(name)))
    return [name for name in others if all(compare(name, title).relation not in _ON_RECORD for title in titles)]


def _tells_symptom(text: str) -> bool:
    """Whether a text has a word for a symptom or another finding, in a doctor's or a patient's words."""
    return lexicon.names_symptom(text) or bool(knowledge().finding_terms.find(text))


def _findings(text: str) -> tuple[set[str], set[str]]:
    mentions = list(knowledge().finding_terms.find(text))
    return {m.key for m in mentions if not m.negated}, {m.key for m in mentions}


def _written_out(text: str) -> str:
    said = [word for word in re.split(r"\s+|(?<=\w),", text.lower()) if word]
    return text + " . " + " ".join(_SHORTHAND.get(word.strip(".,;:"), word) for word in said)


def _private(case: Case, row: Mapping[str, Any], prepared: Prepared) -> Iterator[Problem]:
    identifiers = prepared.source.identifiers
    for path, text in _story_texts(case):
        yield from _found(path, text, identifiers, prose=True)
    for fact in case.exam_facts:
        yield from _found(fact.path, " ".join((*fact.heads, fact.text)), identifiers, prose=False)
    yield from _found("Demographics", case.door.demographics, identifiers, prose=False)
    for name, value in row.items():
        if name != "OSCE_Examination":
            # Our own annotations have digests and codes that look like dates: only the source's identifiers count.
            for kind, what in problems(str(value), identifiers, prose=False):
                if what == SOURCE_IDENTIFIER:
                    yield Problem(kind, name, what)


def _found(path: str, text: str, identifiers: tuple[str, ...], *, prose: bool) -> Iterator[Problem]:
    for kind, what in problems(text, identifiers, prose=prose):
        yield Problem(kind, path, what, f"it {what}; leave it out")


DOCTORS = ("full_information", "door_only")
_OFF = defaults(
    *("doctor_test_policy_enabled", *NEEDS["doctor_test_policy_enabled"]),
    *("memory", *NEEDS["memory"]),
    *("elicit_confidence", *NEEDS["doctor uncertainty"]),
)
"""What concerns other doctors only, for which the config file may have been written."""


@dataclass(frozen=True)
class Solvability:
    """The runs by doctor, and how much accuracy the chart adds."""

    runs: Mapping[str, Finished]
    gap: Estimate | None
    """None if a run was stopped before all cases were played; it is the last of `runs`."""
    unsolved: tuple[int, ...] = ()
    """Rows of cases that were not solved with the whole chart."""
    at_the_door: tuple[int, ...] = ()
    """Rows of cases that were solved at the door."""


async def solvability(settings: Settings, progress: Callable[[], Progress]) -> Solvability:
    """Play every case with the whole chart, then with only what is known at the door."""
    runs: dict[str, Finished] = {}
    for doctor in DOCTORS:
        runs[doctor] = await execute(make_plan(settings.changed(**_OFF, doctor=doctor)), progress())
        if runs[doctor].missing:
            return Solvability(runs, None)
    full, door = (list(read_records(runs[doctor].folder / RECORDS)) for doctor in DOCTORS)
    unsolved = sorted({record.scenario_id for record in full if strict(record) is False})
    at_the_door = sorted({record.scenario_id for record in door if strict(record)})
    return Solvability(runs, gap_to_full_information(door, full), tuple(unsolved), tuple(at_the_door))
