"""What a world is: diseases, findings with their probabilities, prices and utilities; its file, and how it is checked.

Findings are independent given the disease. What a doctor may know of a world is a world too: without its numbers, if
they are hidden.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.config import parse_settings, read_json
from agentclinic.errors import InputError
from agentclinic.files import read_limited
from agentclinic.vocabulary.denial import Phrasebook
from agentclinic.vocabulary.text import fold, words

BUNDLED = Path(__file__).parent / "bundled"
DISEASES, FINDINGS = (6, 12), (8, 12)
"""How many a world file may have: fewer are too easy, and each further finding triples the states."""
SPARE_TURNS = 8
"""Turns beyond one for each finding: enough for slips, and never needed for the best play."""
DEFER = "DEFER"
"""The answer of a doctor who hands the patient on, where the world allows it."""
Way = Literal["question", "examination", "test"]
_Probability = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False, strict=True)]
_Cost = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
_Utility = Annotated[float, Field(allow_inf_nan=False, strict=True)]
_Name = Annotated[str, Field(min_length=1, max_length=80)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Disease(_Part):
    prior: _Probability | None = None
    """How common it is among these patients; null if the doctor is not told."""
    synonyms: tuple[_Name, ...] = ()


class Finding(_Part):
    by: Way
    """How it is found out."""
    price: _Cost = 0.0
    """In dollars."""
    minutes: _Cost = 0.0
    synonyms: tuple[_Name, ...] = ()
    present: str = ""
    """How the answer says that it is present; if empty, "yes" or "present"."""
    absent: str = ""
    probability: dict[str, _Probability] | None = None
    """How often it is present, by disease; null if the doctor is not told."""

    def says(self, present: bool) -> str:
        usual = ("no", "yes") if self.by == "question" else ("absent", "present")
        return (self.present if present else self.absent) or usual[present]


class Utilities(_Part):
    """What an ending is worth, in points."""

    right: _Utility
    wrong: _Utility
    wrong_pairs: dict[str, dict[str, _Utility]] = {}
    """By the true disease and the one that was named: what that error is worth instead of `wrong`."""
    deferred: _Utility | None = None
    """What `DIAGNOSIS READY: DEFER` is worth; null if it is not allowed."""
    no_answer: _Utility
    """Of an encounter that ends without a diagnosis, or with one that names none or several of the diseases."""


class Costs(_Part):
    """What time and money cost, in points."""

    dollar: _Cost
    minute: _Cost
    turn: _Cost
    """Of every turn but the one that gives the answer."""


class World(_Part):
    """A world file; each disease and each finding by its name."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]
    title: str
    about: str = ""
    """Where the numbers come from, for readers of the file; no doctor sees it."""
    patient: str
    """Who the patient is, as doctors are told: the same for all cases."""
    objective: str
    diseases: dict[_Name, Disease]
    findings: dict[_Name, Finding]
    utilities: Utilities
    costs: Costs

    def __hash__(self) -> int:
        return hash((self.name, *self.diseases, *self.findings))

    @property
    def digest(self) -> str:
        """A hash of all that decides the best play; names and texts do not."""
        table = [[(one.probability or {}).get(name) for name in self.diseases] for one in self.findings.values()]
        costs = [self.cost(finding) for finding in self.findings]
        numbers = [self.priors, table, costs, self.costs.turn, self.utility_rows, self.utilities.no_answer]
        return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]

    @property
    def shown(self) -> bool:
        """Whether it has its numbers, or is what a doctor is told without them."""
        return all(disease.prior is not None for disease in self.diseases.values())

    @property
    def priors(self) -> list[float]:
        return [disease.prior or 0.0 for disease in self.diseases.values()]

    @property
    def turns(self) -> int:
        """The turn limit of an encounter."""
        return len(self.findings) + SPARE_TURNS

    @property
    def endings(self) -> tuple[str, ...]:
        """The answers that a doctor can give."""
        return (*self.diseases, *([DEFER] if self.utilities.deferred is not None else []))

    @property
    def utility_rows(self) -> list[list[float]]:
        """What each ending is worth, by the true disease."""
        return [[self.utility(truth, said) for truth in self.diseases] for said in self.endings]

    def utility(self, truth: str, said: str | None) -> float:
        """What an ending is worth; `said` is None without an answer."""
        given = self.utilities
        if said is None:
            return given.no_answer
        if said == DEFER:
            return given.no_answer if given.deferred is None else given.deferred
        return given.right if said == truth else given.wrong_pairs.get(truth, {}).get(said, given.wrong)

    def cost(self, finding: str) -> float:
        """What it costs to find something out, in points, including the turn."""
        given = self.findings[finding]
        return self.costs.dollar * given.price + self.costs.minute * given.minutes + self.costs.turn

    def told(self, *, shown: bool) -> World:
        """The world as a doctor is told of it at the door."""
        if shown:
            return self.model_copy(update={"about": ""})
        return self.model_copy(
            update={
                "about": "",
                "diseases": {name: one.model_copy(update={"prior": None}) for name, one in self.diseases.items()},
                "findings": {name: one.model_copy(update={"probability": None}) for name, one in self.findings.items()},
            }
        )

    def renamed(self, diseases: Mapping[str, str], findings: Mapping[str, str], **texts: str) -> World:
        """The same world under other names, in their alphabetical order; without synonyms."""

        def disease(name: str) -> tuple[str, Disease]:
            return diseases[name], self.diseases[name].model_copy(update={"synonyms": ()})

        def finding(name: str) -> tuple[str, Finding]:
            given = self.findings[name]
            probability = given.probability and dict(
                sorted((diseases[each], p) for each, p in given.probability.items())
            )
            plain = {"synonyms": (), "present": "", "absent": "", "probability": probability}
            return findings[name], given.model_copy(update=plain)

        pairs = dict(
            sorted(
                (diseases[truth], dict(sorted((diseases[said], value) for said, value in row.items())))
                for truth, row in self.utilities.wrong_pairs.items()
            )
        )
        renamed = {
            **texts,
            "diseases": dict(disease(name) for name in self.diseases),
            "findings": dict(finding(name) for name in self.findings),
            "utilities": self.utilities.model_copy(update={"wrong_pairs": pairs}),
        }
        return self.model_copy(update=renamed).in_order()

    def in_order(self) -> World:
        """With diseases and findings sorted by name, so that their order tells a doctor nothing."""
        by_name = {
            "diseases": dict(sorted(self.diseases.items(), key=lambda one: fold(one[0]))),
            "findings": dict(sorted(self.findings.items(), key=lambda one: fold(one[0]))),
        }
        return self.model_copy(update=by_name)


# --- reading and checking ---------------------------------------------------------------------------------------------


def bundled() -> list[str]:
    """The names of the worlds that are shipped."""
    return sorted(path.stem for path in BUNDLED.glob("*.json"))


def read_world(path: Path) -> World:
    """Read and check a world file; every problem is named, with its key and what to do."""
    _refuse_doubles(path)
    world = parse_settings(World, read_json(path), str(path))
    problems = [*_sizes(world), *_names(world), *_numbers(world), *_utilities(world)]
    if problems:
        raise InputError("\n".join(f"{path}: {problem}" for problem in problems))
    total = math.fsum(world.priors)
    exact = {name: one.model_copy(update={"prior": (one.prior or 0.0) / total}) for name, one in world.diseases.items()}
    return world.model_copy(update={"diseases": exact})


def _refuse_doubles(path: Path) -> None:
    """Refuse a key that appears twice in one object: a JSON reader would see only the last."""

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, times in Counter(name for name, _ in given).items():
            if times > 1:
                raise InputError(f"{path}: {name[:80]!r} appears twice; rename or remove one of the two")
        return dict(given)

    try:
        json.loads(read_limited(path), object_pairs_hook=pairs)
    except (ValueError, OSError, RecursionError):
        return  # the reader of the file says what is wrong


def _sizes(world: World) -> Iterable[str]:
    for key, held, (least, most) in (
        ("diseases", len(world.diseases), DISEASES),
        ("findings", len(world.findings), FINDINGS),
    ):
        if not least <= held <= most:
            yield f"{key}: there are {held}; write {least} to {most}"


def _names(world: World) -> Iterable[str]:
    """Names that could not be told apart in what a doctor says."""
    seen: dict[tuple[str, ...], str] = {}
    for key, named in (("diseases", world.diseases), ("findings", world.findings)):
        for name, one in named.items():
            for given in (name, *one.synonyms):
                read = words(given)
                if not read:
                    yield f"{key}.{name}: {given!r} has no words; write letters or digits"
                elif not Phrasebook({given: [given]}).find(given):
                    yield (
                        f"{key}.{name}: {given!r} cannot be read; leave out periods, semicolons and words like 'but' "
                        "or 'report'"
                    )
                elif read == words(DEFER):
                    yield f"{key}.{name}: {given!r} means that the doctor defers; use another name"
                elif read in seen:
                    yield (
                        f"{key}.{name}: {given!r} cannot be told from {seen[read]!r}; "
                        "change or remove one of the two names"
                    )
                seen.setdefault(read, given)


def _numbers(world: World) -> Iterable[str]:
    for name, disease in world.diseases.items():
        if disease.prior is None:
            yield f"diseases.{name}.prior is missing; say how common it is, e.g. 0.1"
    total = math.fsum(world.priors)
    if abs(total - 1) > 1e-6:
        yield f"diseases: the priors add up to {total:g}; make them add up to 1"
    for name, finding in world.findings.items():
        if finding.says(True) == finding.says(False):
            yield f"findings.{name}: present and absent are both {finding.says(True)!r}; make them differ"
        given = finding.probability or {}
        missing = [disease for disease in world.diseases if disease not in given]
        if missing:
            yield f"findings.{name}.probability has no number for {', '.join(missing)}; add one between 0 and 1"
        yield from (
            f"findings.{name}.probability.{unknown}: there is no such disease; use a name from `diseases`"
            for unknown in given
            if unknown not in world.diseases
        )


def _utilities(world: World) -> Iterable[str]:
    given = world.utilities
    for truth, row in given.wrong_pairs.items():
        for said in (truth, *row):
            if said not in world.diseases:
                yield f"utilities.wrong_pairs.{truth}: there is no disease {said!r}; use a name from `diseases`"
        if truth in row:
            yield f"utilities.wrong_pairs.{truth}.{truth} is right, not wrong; remove it"
    wrong = [given.wrong, *(value for row in given.wrong_pairs.values() for value in row.values())]
    if given.right <= max(wrong):
        yield f"utilities.right ({given.right:g}) must be more than every wrong answer ({max(wrong):g}); raise it"
    elif given.deferred is not None and given.deferred >= given.right:
        yield f"utilities.deferred ({given.deferred:g}) must be less than right ({given.right:g}); lower it"
    worst = min(wrong) if given.deferred is None else given.deferred
    if given.no_answer > worst:
        why = "the worst wrong answer" if given.deferred is None else "deferring"
        yield f"utilities.no_answer ({given.no_answer:g}) must not be more than {why} ({worst:g}); lower it"
