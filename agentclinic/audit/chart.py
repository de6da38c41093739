"""A case's chart, read once for the audit: what it says is there, what not, how long, how many, which side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from agentclinic.audit.amounts import Count, Duration, counts, drugs, durations, sides
from agentclinic.audit.statements import LOCAL, Concept, concepts, statements, stems
from agentclinic.cases.matcher.readings import reading, same_place
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section
from agentclinic.vocabulary.compare import STRICT, compare
from agentclinic.vocabulary.disease_names import diagnosis_names
from agentclinic.vocabulary.lexicon import complaints_within
from agentclinic.vocabulary.phrases import Phrasebook

DOOR = "door"
"""The path of what everybody is told at the door."""

_BOTH = re.compile(r"\b(?:both|bilateral\w*|either|each)\b", re.IGNORECASE)
_SIDE = re.compile(r"\b(left|right)(?= (?:side|sided|\w+)|[,.;]|$)")
# Words that are denied along with any thing.
_LOOSE = stems("any other recent new known history of signs sign symptoms further obvious marked significant so far")


@dataclass(frozen=True)
class Place:
    """Where in the chart a concept is spoken of, and of which part of the body."""

    path: str
    places: frozenset[str]


class Chart:
    """What there is to hold a reply against."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._patient = frozenset(fact.path for fact in case.patient_facts)
        self._judged: dict[str, bool] = {}
        self.there: dict[str, list[Place]] = {}
        self.denied: dict[str, list[Place]] = {}
        measured = {fact.path for fact in case.facts if fact.section is Section.VITALS}
        for path, text in self.texts:
            if path not in measured:  # "Temperature: 36.7" names no fever
                self._read(path, text)

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Every statement of the chart with its path; the door's comes first."""
        door = (DOOR, f"{self.case.door.demographics}. {self.case.door.objective}")
        return (door, *((fact.path, spoken(fact)) for fact in self.case.facts))

    @cached_property
    def told(self) -> tuple[tuple[str, str], ...]:
        """Of them, what the patient can tell, and the door."""
        own = {DOOR, *(fact.path for fact in self.case.patient_facts)}
        return tuple((path, text) for path, text in self.texts if path in own)

    @cached_property
    def text(self) -> dict[str, str]:
        """Path to statement."""
        return dict(self.texts)

    @cached_property
    def script(self) -> dict[str, str]:
        """Path to statement, of what the patient can tell and the door."""
        return dict(self.told)

    @cached_property
    def diagnoses(self) -> Phrasebook:
        """The case's own names of its diagnosis."""
        names = diagnosis_names(self.case.diagnosis, self.case.answer_key.accept)
        return Phrasebook({name: (name,) for name in names})

    def is_diagnosis(self, name: str) -> bool:
        """Whether the judge would take a disease's name for the diagnosis."""
        if name not in self._judged:
            key = self.case.answer_key
            judged = compare(name, self.case.diagnosis, key.accept, key.partial, key.reject)
            self._judged[name] = judged.relation in STRICT
        return self._judged[name]

    def _read(self, path: str, text: str) -> None:
        for statement in statements(text):
            if statement.unsure:
                continue
            normal = statement.normal and path not in self._patient
            self._note(self.denied if normal else self.there, path, concepts(statement.there), statement.there)
            self._note(self.denied, path, concepts(statement.denied), statement.denied)
            for name in complaints_within(statement.denied):
                self.denied.setdefault(f"~{name}", []).append(Place(path, frozenset()))

    @staticmethod
    def _note(table: dict[str, list[Place]], path: str, named: Iterable[Concept], text: str) -> None:
        places = reading(text).places
        for concept in named:
            for key in {concept.key, *(f"~{kin}" for kin in concept.kin)}:
                table.setdefault(key, []).append(Place(path, places))

    def holds(self, concept: Concept, *, itself: bool = False) -> str | None:
        """The path of a statement that says the concept, or `itself` alone, is there, where it is said to be."""
        return _first(self.there, concept, itself=itself)

    def denies(self, concept: Concept) -> str | None:
        """The path of a statement that says the concept is not there, in the patient's script first."""
        return _first(self.denied, concept, itself=False)

    def pain_in(self, places: frozenset[str]) -> str | None:
        """The path of a statement that speaks of pain in one of the places, or of pain without saying where."""
        for path, text in self.texts:
            read = reading(text)
            if read.pain and same_place(places, read.places | _region(read.places)):
                return path
        return None

    @cached_property
    def denials(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """What the chart denies, thing by thing, as words with their paths."""
        said = ((path, s) for path, text in self.texts for s in statements(text) if s.denied and not s.unsure)
        found = ((path, stems(part)) for path, s in said for part in s.denied.split(",")[:1])
        return tuple((path, words - _LOOSE) for path, words in found if words - _LOOSE)

    @cached_property
    def assertions(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """What the chart says is there, thing by thing, as words with their paths."""
        said = ((path, s) for path, text in self.texts for s in statements(text) if not s.unsure and not s.normal)
        return tuple((path, stems(part)) for path, s in said for part in s.there.split(","))

    @cached_property
    def only_side(self) -> tuple[str, str] | None:
        """The one side of which the patient's script speaks, and where; None where it speaks of both or none."""
        found = {side: path for path, text in reversed(self.told) for side in _SIDE.findall(text.lower())}
        if len(found) != 1 or any(_BOTH.search(text) for _, text in self.told):
            return None
        return next(iter(found.items()))

    @cached_property
    def stems(self) -> frozenset[str]:
        """All meaningful words."""
        return frozenset(stem for _, text in self.texts for stem in stems(text))

    @cached_property
    def durations(self) -> tuple[tuple[str, Duration], ...]:
        """All stretches of time with their paths."""
        return tuple((path, span) for path, text in self.texts for span in durations(text))

    @cached_property
    def counts(self) -> tuple[tuple[str, Count], ...]:
        """All counted things with their paths."""
        return tuple((path, count) for path, text in self.texts for count in counts(text))

    @cached_property
    def sides(self) -> dict[tuple[str, str], str]:
        """Side and part of the body to a path."""
        return {side: path for path, text in reversed(self.texts) for side in sides(text)}

    @cached_property
    def both_sides(self) -> frozenset[str]:
        """Parts of the body of which the chart speaks on both sides."""
        found = {
            place for side, place in self.sides if ("left", place) in self.sides and ("right", place) in self.sides
        }
        for _, text in self.texts:
            if _BOTH.search(text):
                found |= reading(text).places
        return frozenset(found)

    @cached_property
    def drugs(self) -> dict[str, str]:
        """Drug to a path."""
        return {drug: path for path, text in reversed(self.texts) for drug in drugs(text)}


# A pain in one of these is often told as one in another.
_REGIONS = (
    frozenset({"abdomen", "pelvis", "flank", "groin"}), frozenset({"back", "flank", "neck"}),
    frozenset({"chest", "breast"}),
    frozenset({"hip", "groin", "leg"}), frozenset({"head", "face", "eye"}), frozenset({"throat", "neck", "mouth"}),
    frozenset({"shoulder", "arm"}), frozenset({"urine", "pelvis", "genitals", "abdomen"}),
)  # fmt: skip


def _region(places: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*(region for region in _REGIONS if region & places))


def _first(table: dict[str, list[Place]], concept: Concept, *, itself: bool) -> str | None:
    keys = (concept.key, *(() if itself else (f"~{kin}" for kin in sorted(concept.kin))))
    return next((place.path for key in keys for place in table.get(key, ()) if _fits(concept, place)), None)


def _fits(concept: Concept, place: Place) -> bool:
    if not concept.places or not place.places or not (concept.kin & LOCAL or concept.key.lstrip("~") in LOCAL):
        return True
    return same_place(concept.places, place.places | _region(place.places))


def spoken(fact: Fact) -> str:
    """A fact with the heading without which a result says nothing: "Murmurs: none"."""
    if fact.section in PATIENT_SECTIONS and fact.section is not Section.DRUGS:
        return fact.text
    heads = [head for head in fact.heads[-2:] if head.lower() not in ("findings", "result", "results", "comments")]
    return f"{' '.join(heads)}: {fact.text}" if heads else fact.text
