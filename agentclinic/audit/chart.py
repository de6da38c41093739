"""A case's chart, read once for the audit: what it affirms and denies, how long, how many, which side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from agentclinic.audit.amounts import Amount, counts, drugs, durations, sides
from agentclinic.audit.model import Finding, Kind, finding
from agentclinic.audit.statements import LOCAL, Concept, concepts, statements, stems
from agentclinic.cases.matcher.readings import reading, same_place
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section
from agentclinic.vocabulary.compare import STRICT, compare
from agentclinic.vocabulary.disease_names import diagnosis_names
from agentclinic.vocabulary.lexicon import complaints_within
from agentclinic.vocabulary.phrases import Phrasebook

DOOR = "door"
"""The path of what everyone is told at the door."""

_BOTH = re.compile(r"\b(?:both|bilateral\w*|either|each)\b", re.IGNORECASE)
# Words that a denial adds to the thing it denies.
_LOOSE = stems("any other recent new known history of signs sign symptoms further obvious marked significant so far")


@dataclass(frozen=True)
class Place:
    """Where the chart mentions a concept, and in which parts of the body."""

    path: str
    places: frozenset[str]


class Chart:
    """What a reply is compared with."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._judged: dict[str, bool] = {}
        self._affirmed: dict[str, list[Place]] = {}
        self._denied: dict[str, list[Place]] = {}
        skipped = {fact.path for fact in case.facts if fact.section is Section.VITALS}
        patient = {fact.path for fact in case.patient_facts}
        for path, text in self.texts:
            for statement in statements(text) if path not in skipped else ():  # "Temperature: 36.7" is not a fever
                if not statement.unsure:
                    normal = statement.normal and path not in patient
                    _note(self._denied if normal else self._affirmed, path, statement.affirmed)
                    _note(self._denied, path, statement.denied)
                    for name in complaints_within(statement.denied):
                        self._denied.setdefault(f"~{name}", []).append(Place(path, frozenset()))

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Every statement of the chart with its path; what is known at the door comes first."""
        door = (DOOR, f"{self.case.door.demographics}. {self.case.door.objective}")
        return (door, *((fact.path, spoken(fact)) for fact in self.case.facts))

    @cached_property
    def text(self) -> dict[str, str]:
        """The statements by path."""
        return dict(self.texts)

    @cached_property
    def script(self) -> dict[str, str]:
        """What the patient can tell, and what is known at the door, by path."""
        own = {DOOR, *(fact.path for fact in self.case.patient_facts)}
        return {path: text for path, text in self.texts if path in own}

    @cached_property
    def diagnoses(self) -> Phrasebook:
        """The case's own names of its diagnosis."""
        names = diagnosis_names(self.case.diagnosis, self.case.answer_key.accept)
        return Phrasebook({name: (name,) for name in names})

    def is_diagnosis(self, name: str) -> bool:
        """Whether the judge would accept the name of a disease as the diagnosis."""
        if name not in self._judged:
            key = self.case.answer_key
            judged = compare(name, self.case.diagnosis, key.accept, key.partial, key.reject)
            self._judged[name] = judged.relation in STRICT
        return self._judged[name]

    def holds(self, concept: Concept, *, itself: bool = False) -> str | None:
        """The path of a statement that affirms the concept (with `itself`, by its own name) in the same place."""
        return _first(self._affirmed, concept, itself=itself)

    def denies(self, concept: Concept) -> str | None:
        """The path of a statement that denies the concept, in the patient's script first."""
        return _first(self._denied, concept, itself=False)

    def pain_in(self, places: frozenset[str]) -> str | None:
        """The path of a statement about pain in one of the places, or about pain that does not say where."""
        for path, text in self.texts:
            read = reading(text)
            if read.pain and same_place(places, read.places | _region(read.places)):
                return path
        return None

    @cached_property
    def denials(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The words of each thing that the chart denies, with its path."""
        said = ((path, s) for path, text in self.texts for s in statements(text) if s.denied and not s.unsure)
        found = ((path, stems(s.denied.split(",")[0]) - _LOOSE) for path, s in said)
        return tuple((path, words) for path, words in found if words)

    @cached_property
    def assertions(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The words of each thing that the chart affirms, with its path."""
        said = ((path, s) for path, text in self.texts for s in statements(text) if not s.unsure and not s.normal)
        return tuple((path, stems(part)) for path, s in said for part in s.affirmed.split(","))

    @cached_property
    def stems(self) -> frozenset[str]:
        """All meaningful words."""
        return frozenset().union(*(stems(text) for _, text in self.texts))

    @cached_property
    def durations(self) -> tuple[tuple[str, Amount], ...]:
        """All stretches of time with their paths."""
        return tuple((path, span) for path, text in self.texts for span in durations(text))

    @cached_property
    def counts(self) -> tuple[tuple[str, Amount], ...]:
        """All numbers of things with their paths."""
        return tuple((path, count) for path, text in self.texts for count in counts(text))

    @cached_property
    def drugs(self) -> frozenset[str]:
        """All drugs."""
        return frozenset().union(*(drugs(text) for _, text in self.texts))

    @cached_property
    def _sides(self) -> dict[tuple[str, str], str]:
        return {side: path for path, text in reversed(self.texts) for side in sides(text)}

    @cached_property
    def _both_sides(self) -> frozenset[str]:
        both = {place for side, place in self._sides if side == "left" and ("right", place) in self._sides}
        return frozenset(both).union(*(reading(text).places for _, text in self.texts if _BOTH.search(text)))

    def wrong_sides(self, text: str, words: str) -> Iterator[Finding]:
        """Where a text names one side of the body and the chart only the other; the findings quote `words`."""
        for side, place in sorted(sides(text)):
            other = "left" if side == "right" else "right"
            path = self._sides.get((other, place))
            if path and (side, place) not in self._sides and place not in self._both_sides:
                yield finding(Kind.CONTRADICTED, words, f"the chart says {other}", path, f"{side} {place}")


# Pain in one of these places is often described as pain in another of the same region.
_REGIONS = tuple(
    frozenset(region.split())
    for region in (
        "abdomen pelvis flank groin", "back flank neck", "chest breast", "hip groin leg", "head face eye",
        "throat neck mouth", "shoulder arm", "urine pelvis genitals abdomen",
    )
)  # fmt: skip


def _region(places: frozenset[str]) -> frozenset[str]:
    return frozenset().union(*(region for region in _REGIONS if region & places))


def _note(table: dict[str, list[Place]], path: str, text: str) -> None:
    for concept in concepts(text):
        for key in concept.keys:
            table.setdefault(key, []).append(Place(path, reading(text).places))


def _first(table: dict[str, list[Place]], concept: Concept, *, itself: bool) -> str | None:
    keys = (concept.key, *(() if itself else (f"~{kin}" for kin in sorted(concept.kin))))
    return next((place.path for key in keys for place in table.get(key, ()) if _fits(concept, place)), None)


def _fits(concept: Concept, place: Place) -> bool:
    if not concept.places or not place.places or not (concept.kin & LOCAL or concept.key.lstrip("~") in LOCAL):
        return True
    return same_place(concept.places, place.places | _region(place.places))


def spoken(fact: Fact) -> str:
    """A fact with the headings that a result needs to make sense: "Murmurs: none"."""
    if fact.section in PATIENT_SECTIONS and fact.section is not Section.DRUGS:
        return fact.text
    heads = [head for head in fact.heads[-2:] if head.lower() not in ("findings", "result", "results", "comments")]
    return f"{' '.join(heads)}: {fact.text}" if heads else fact.text
