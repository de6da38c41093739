"""What a case is, whatever file it comes from, and a patient's story before it becomes part of one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, cast

from pydantic import BaseModel, Field

from agentclinic import lazy
from agentclinic.cases.solvable import Drawn
from agentclinic.privacy import DataClass
from agentclinic.worlds.menu import menu_text
from agentclinic.worlds.model import World

HistorySource = Literal["note", "triage", "codes", "model", "none"]
"""Where the story of a generated case comes from: a clinical note, triage words, titles of earlier diagnoses, a
language model that made it up from the codes of the stay, or nowhere."""
WITHOUT_SYMPTOMS: tuple[HistorySource, ...] = ("codes", "none")
"""Stories in which the patient knows no symptoms."""


@dataclass(frozen=True)
class WriterPayload:
    """What the writer of a patient's story knows: the record before the diagnosis.

    Only a writer that has to make up a story (history_source model) is also told what was coded and found in this stay.
    """

    history_source: HistorySource
    age: int | None
    sex: str
    arrival: str
    story: tuple[str, ...]
    past: tuple[str, ...]
    drugs: tuple[str, ...]
    diagnosis: str = ""
    coded: tuple[str, ...] = ()
    """Titles of the stay's other diagnoses."""
    results: tuple[str, ...] = ()
    """Lines of the chart, without normal laboratory results."""


class WrittenStory(BaseModel):
    """A patient's story as a writer gives it; a part of which the record says nothing is empty."""

    objective: str
    """One sentence that asks the doctor to assess the patient, naming the complaint and nothing else."""
    history: str
    """What the patient noticed, when and how, in the third person."""
    primary_symptom: str
    secondary_symptoms: list[str]
    past_medical_history: str
    medications: str
    social_history: str
    family_history: str
    review_of_systems: str


JSON = Any
"""A value as returned by `json.loads`; charts are irregular."""


class Section(StrEnum):
    """The part of the chart that a fact is in."""

    DEMOGRAPHICS = "demographics"
    HISTORY = "history"
    SYMPTOMS = "symptoms"
    PAST = "past_history"
    DRUGS = "drugs"
    ALLERGIES = "allergies"
    FAMILY = "family_history"
    SOCIAL = "social_history"
    REVIEW = "review_of_systems"
    VITALS = "vital_signs"
    EXAMINATION = "examination"
    TESTS = "tests"


PATIENT_SECTIONS = frozenset(Section) - {Section.VITALS, Section.EXAMINATION, Section.TESTS}
"""What the patient can tell; the rest belongs to the laboratory."""


Told = Literal["volunteered", "if asked", "if pressed"]
"""How freely a patient tells a fact; `if pressed`: only when asked about that very thing, or again."""


@dataclass(frozen=True)
class Fact:
    """One statement of the chart, and where it is."""

    path: str
    """Keys from the root of the chart, joined by `/`; `[0]` is a list index, `#0` a sentence."""
    section: Section
    heads: tuple[str, ...]
    """Readable headings above the value, outermost first: ("Blood Tests", "Hemoglobin")."""
    text: str
    denied: bool = False
    """The statement denies something ("Denies fever")."""
    says: str | None = None
    """What this patient says when asked about it, in the author's words; None if the author gave none."""
    told: Told = "if asked"
    sensitive: bool = False
    """People hesitate to tell it: sex, drugs, mental health, violence, money."""
    private: bool = False
    """Told only when no one else can hear it."""
    vague: str | None = None
    """What this patient says of it at first if memory is poor or it is embarrassing: true, and less exact."""
    asked: tuple[str, ...] = field(default=(), repr=False)
    """Questions that it answers, in the author's words."""
    matched_as: str = field(default="", repr=False)
    """What the matcher reads in place of its words, so that all versions of a case are understood alike."""

    def __hash__(self) -> int:
        return hash((self.path, self.text))  # the hash of an enum is slow, and charts are looked up for each question


class Facts(tuple[Fact, ...]):
    """The facts of a chart. Tables about a chart are found by its facts, so their hash is computed only once."""

    @cached_property
    def _hash(self) -> int:
        return hash(tuple([fact.text for fact in self]))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Facts:
        return facts if isinstance(facts, cls) else cls(facts)


@dataclass(frozen=True)
class Door:
    """What every doctor is told before the encounter."""

    objective: str
    demographics: str
    menu: Annotated[World | None, Field(exclude=True)] = None
    """In a solvable world, the world as the doctor is told of it; not in records, since it is the same in all."""
    terms: Annotated[str, Field(exclude=True)] = ""
    """What can be ordered in this run, and for how much, if not everything; not in records, for the same reason."""

    @property
    def told(self) -> str:
        """The objective, and the menu or the terms if there are any."""
        further = menu_text(self.menu) if self.menu else self.terms
        return f"{self.objective}\n\n{further}" if further else self.objective


@dataclass(frozen=True)
class AnswerKey:
    """Names that the author of a case accepts, accepts in part, or rejects with a reason."""

    accept: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    reject: tuple[tuple[str, str], ...] = ()


Made = TypeVar("Made")
Args = ParamSpec("Args")


class _Later:
    """What makes the value of a field."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make


def later(make: Callable[Args, Made], *args: Args.args, **kwargs: Args.kwargs) -> Made:
    """In place of the value of `Case.id` or `Case.facts`: what makes it when it is first asked for."""
    return cast(Made, _Later(partial(make, *args, **kwargs)))


class _MadeWhenAsked:
    """The attribute of a field that may be given with `later`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, case: object, _owner: type) -> object:
        value = case.__dict__[self._name]
        if isinstance(value, _Later):
            value = case.__dict__[self._name] = value.make()
        return value

    def __set__(self, case: object, value: object) -> None:
        case.__dict__[self._name] = value


@dataclass(frozen=True)
class Case:
    """One patient and everything known about them, including what only the judge may see.

    A data set has more cases than a run plays, so `id` and `facts` are made when they are first asked for (`later`).
    """

    id: str
    """Hash of the normalized clinical content (chart and truth): the same for copies in other files.

    `case_hash` in records. People name a case by its `case_id`, which is `name`.
    """
    dataset: str
    scenario_id: int
    """Row in its file, counted from 0."""
    door: Door
    patient: JSON = field(repr=False)
    """The patient's script as charted."""
    exam: JSON = field(repr=False)
    """Examination findings and test results as charted."""
    diagnosis: str
    """The truth. Only the judge sees it."""
    facts: tuple[Fact, ...] = field(repr=False)
    image: str | None = None
    answer_key: AnswerKey = field(default=AnswerKey(), repr=False)
    annotations: Mapping[str, JSON] = field(default_factory=dict, repr=False)
    """Everything else in the row, for scoring and reports; never shown to an agent."""
    drawn: Drawn | None = field(default=None, repr=False)
    """What a case of a solvable world was drawn from. Only the clinic and the judge see it."""
    data_class: DataClass = DataClass.PUBLIC
    """Decides where the case may be sent (`agentclinic.models.gate`)."""
    row: Mapping[str, JSON] = field(default_factory=dict, repr=False)
    """The row of the case file, unchanged."""

    @property
    def name(self) -> str:
        """What people call the case: its `case_id`, as in the file and in `--scenarios`, or else data set and row."""
        return case_name(self.annotations, self.dataset, self.scenario_id)

    @property
    def in_lockbox(self) -> bool:
        """Whether the case is kept for one evaluation per release."""
        return self.annotations.get("lockbox") is True

    @property
    def symptoms_on_record(self) -> bool:
        """Whether the chart records what the patient noticed; generated cases say so under `history_source`."""
        return self.annotations.get("history_source") not in WITHOUT_SYMPTOMS

    @cached_property
    def patient_facts(self) -> Facts:
        return Facts(fact for fact in self.facts if fact.section in PATIENT_SECTIONS)

    @cached_property
    def exam_facts(self) -> Facts:
        return Facts(fact for fact in self.facts if fact.section not in PATIENT_SECTIONS)


for _name in ("id", "facts"):
    setattr(Case, _name, _MadeWhenAsked(_name))


def case_name(annotations: Mapping[str, JSON], dataset: str | None, row: int) -> str:
    """What people call a case: the `case_id` that its author gave it, or else its data set and row: `MedQA/17`."""
    given = annotations.get("case_id")
    if isinstance(given, str) and re.fullmatch(r"[\w.:/-]{1,40}", given):
        return given
    return f"{dataset}/{row}" if dataset else f"row {row}"


def as_text(chart: JSON) -> str:
    return chart.strip() if isinstance(chart, str) else json.dumps(chart, ensure_ascii=False, indent=1)


# --- the line that introduces a patient ---------------------------------------------------------------------------

# From about 7, children can usually describe their symptoms; a caregiver speaks for younger ones.
_SPEAKS_FROM = 7
_CANNOT_SPEAK = lazy.regex(
    r"\b(?:newborn|neonate|infant|toddler|unresponsive|unconscious|comatose|non-?verbal|intubated)\b",
    re.IGNORECASE,
)
_NEWBORN = lazy.regex(r"\b(?:newborn|neonate)\b", re.IGNORECASE)
_AGE = lazy.regex(r"(\d{1,3}(?:\.\d+)?)[- ]*(year|month|week|day|hour)", re.IGNORECASE)
_YEARS_PER = {"year": 1.0, "month": 1 / 12, "week": 7 / 365, "day": 1 / 365, "hour": 1 / 8766}
_FEMALE = lazy.regex(r"\b(?:female|woman|girl|lady|gravida|daughter)\b", re.IGNORECASE)
_MALE = lazy.regex(r"\b(?:male|man|boy|gentleman|son)\b", re.IGNORECASE)
_ASIDE = lazy.regex(r"\([^)]{0,200}\)")


@lru_cache(maxsize=1024)  # asked on every turn
def age_in_years(demographics: str) -> float | None:
    """The stated age in years (0 for a newborn); None if there is none."""
    if _NEWBORN.search(demographics):
        return 0.0
    found = _AGE.search(demographics)
    return float(found[1]) * _YEARS_PER[found[2].lower()] if found else None


@lru_cache(maxsize=1024)
def sex(demographics: str) -> str | None:
    """`female`, `male`, or None if not stated. Companions in parentheses do not count."""
    patient = _ASIDE.sub("", demographics)
    if _FEMALE.search(patient):
        return "female"
    return "male" if _MALE.search(patient) else None


def speaks_for_self(demographics: str) -> bool:
    """Whether the patient gives the history; otherwise a caregiver does."""
    age = age_in_years(demographics)
    if age is not None and age < _SPEAKS_FROM:
        return False
    return not _CANNOT_SPEAK.search(demographics)
