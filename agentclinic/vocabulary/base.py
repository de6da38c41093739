"""The knowledge base: diseases, findings and tests from `data/*.json`, indexed by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from agentclinic.vocabulary.denial import Phrasebook
from agentclinic.vocabulary.name_table import name_table, read_table
from agentclinic.vocabulary.tests import Test, priced_tests
from agentclinic.vocabulary.text import words

FindingKind = Literal["symptom", "history", "sign", "vital", "lab", "imaging"]


@dataclass(frozen=True)
class Rule:
    """When a number counts as the finding: above `above` or below `below`, in this unit and magnitude."""

    unit: str = ""
    above: float | None = None
    below: float | None = None
    min: float | None = None
    max: float | None = None
    age_min: float | None = None
    """In years, inclusive; a rule with an age applies only to patients of that age."""
    age_max: float | None = None
    """In years, exclusive."""


@dataclass(frozen=True)
class Measure:
    """How to read a finding from a number in a result."""

    names: tuple[str, ...]
    rules: tuple[Rule, ...]
    part: Literal["systolic", "diastolic"] | None = None


@dataclass(frozen=True)
class Finding:
    """Something a patient may have: a symptom, a sign, a result."""

    id: str
    name: str
    kind: FindingKind
    leak: float
    """The probability that a patient has it if the disease does not list it."""
    terms: tuple[str, ...]
    absent_terms: tuple[str, ...]
    ask: str | None
    """The question that asks a patient about it."""
    order: str | None
    """The test that shows it."""
    measure: Measure | None = None
    lay: tuple[str, ...] = ()
    """Everyday phrases that mean it is present."""


@dataclass(frozen=True)
class Link:
    """How often a disease shows a finding."""

    finding: str
    p: float
    low: float
    high: float
    group: str | None
    """Findings in a group are correlated: together they count less than their product."""


@dataclass(frozen=True)
class AgeBand:
    """A multiplier of a disease's prior for ages from `min` (inclusive) to `max` (exclusive), in years."""

    min: float
    max: float
    factor: float


@dataclass(frozen=True)
class Disease:
    """A disease: its names, how common it is and what it shows."""

    id: str
    name: str
    icd10: str
    synonyms: tuple[str, ...]
    prior: float
    age: tuple[AgeBand, ...]
    sex: Mapping[str, float]
    links: tuple[Link, ...]


OTHER_PRIOR = 0.15
"""Share of patients whose disease is not in the knowledge base: in general practice, about this share of
diagnoses is outside any list of a hundred."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Everything the builtin clinic knows about medicine."""

    diseases: Mapping[str, Disease]
    findings: Mapping[str, Finding]
    tests: Mapping[str, Test]
    other: float = OTHER_PRIOR
    """Share of patients whose disease is not in it; 0 in a solvable world."""

    def disease_named(self, name: str) -> Disease | None:
        """The disease with that name or synonym, in any word order."""
        return self._by_name.get(tuple(sorted(words(name))))

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, ...], Disease]:
        return {tuple(sorted(words(name))): d for d in self.diseases.values() for name in (d.name, *d.synonyms)}

    @cached_property
    def finding_terms(self) -> Phrasebook:
        return Phrasebook({f.id: (*f.terms, *f.lay) for f in self.findings.values()})

    @cached_property
    def absent_terms(self) -> Phrasebook:
        """Finds phrases that in themselves say that a finding is absent."""
        return Phrasebook({f.id: f.absent_terms for f in self.findings.values()})

    @cached_property
    def test_names(self) -> Phrasebook:
        return Phrasebook({t.id: (t.name, *t.synonyms) for t in self.tests.values()})


_in_place_of: list[Knowledge] = []


def knowledge() -> Knowledge:
    """The knowledge base in use: the shipped one, or a replacement."""
    return _in_place_of[-1] if _in_place_of else shipped()


@contextmanager
def in_place(known: Knowledge) -> Iterator[None]:
    """Use another knowledge base temporarily, to see the effect of other numbers."""
    _in_place_of.append(known)
    try:
        yield
    finally:
        _in_place_of.pop()


@lru_cache(maxsize=1)
def shipped() -> Knowledge:
    findings = {entry["id"]: _finding(entry) for entry in read_table("findings")["findings"]}
    diseases = {entry["id"]: _disease(entry) for entry in read_table("diseases")["diseases"]}
    return Knowledge(diseases, findings, priced_tests())


def _finding(entry: dict[str, Any]) -> Finding:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    if measure := entry["measure"]:
        rules = tuple(Rule(**rule) for rule in measure["rules"])
        fields["measure"] = Measure(tuple(measure["names"]), rules, measure.get("part"))
    return Finding(**fields)


def _disease(entry: dict[str, Any]) -> Disease:
    named = name_table().by_id[entry["id"]]
    return Disease(
        id=entry["id"],
        name=named.names[0],
        icd10=entry["icd10"],
        synonyms=(*named.names[1:], *named.short),
        prior=entry["prior"],
        age=tuple(AgeBand(**band) for band in entry["age"]),
        sex=entry["sex"],
        links=tuple(
            Link(item["finding"], item["p"], item["range"][0], item["range"][1], item["group"])
            for item in entry["findings"]
        ),
    )
