"""Cases of solvable worlds, drawn by seed: as many as anyone wants, and different ones for every seed.

`Solvable:chest-pain` names a shipped world, `Solvable:FILE.json` one of your own. `,invented` plays it under invented
names; `,hidden` does not tell the doctor the probabilities.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from agentclinic.config import suggestion
from agentclinic.errors import CaseError, ConfigError
from agentclinic.files import exists, expanded
from agentclinic.worlds.model import BUNDLED, World, bundled, read_world
from agentclinic.worlds.skins import invented, new_names

PREFIX = "Solvable:"
KEY = "Solvable"
"""The key of a row that says which world the case comes from."""
USUAL = 100
"""Cases that are drawn if no number is given."""
MOST = 20_000
"""A run keeps each case with its world, about 9 KB, and files over 256 MB are not read."""
_CHART = {"question": "Patient_Actor/Symptoms", "examination": "Physical_Examination_Findings", "test": "Test_Results"}
_TELLING = 2.0
"""Likelihood ratio, for the true disease against the others together, from which a finding is a key finding."""


@dataclass(frozen=True)
class Drawn:
    """What a case of a solvable world was drawn from and what it drew."""

    world: World
    """As it is played: under the names that the doctor meets."""
    shown: bool
    """Whether the doctor is told the probabilities."""
    findings: Mapping[str, bool]
    source: str
    """Digest of the world under its own names."""

    @property
    def told(self) -> World:
        """The world as the doctor is told of it."""
        return _told(self.world, self.shown)


class Spec(NamedTuple):
    """A data set of drawn cases."""

    place: str
    """Name of a shipped world, or path of a file."""
    invented: bool
    hidden: bool

    @property
    def marks(self) -> str:
        return (",invented" if self.invented else "") + (",hidden" if self.hidden else "")

    @property
    def name(self) -> str:
        """The data set's name in records: without the folder of a file."""
        return f"{PREFIX}{self.path.stem}{self.marks}"

    @property
    def path(self) -> Path:
        if self.place in bundled():
            return BUNDLED / f"{self.place}.json"
        if path := self.file:
            return path
        raise CaseError(
            f"there is no world {self.place[:200]!r}, by name or as a file{suggestion(self.place, bundled())} "
            "(`agentclinic world new FILE` starts one)"
        )

    @property
    def file(self) -> Path | None:
        """The user's file, if there is one."""
        path = expanded(self.place)
        return path if self.place not in bundled() and exists(path) and not path.is_dir() else None

    def absolute(self) -> str:
        """The data set's name with an absolute path; a resumed run does not need the file."""
        return f"{PREFIX}{self.file.absolute() if self.file else self.place}{self.marks}"


def is_world(dataset: str | None) -> bool:
    """Whether the name of a data set is that of a solvable world."""
    return dataset is not None and dataset.startswith(PREFIX)


def names() -> list[str]:
    """The data sets of the shipped worlds."""
    return [f"{PREFIX}{name}" for name in bundled()]


def looks_like_world(path: Path) -> bool:
    """Whether a JSON file has the keys of a world."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(100_000)
    return all(key in start for key in (b'"diseases"', b'"utilities"')) and not start.lstrip().startswith(b"[")


def spec(dataset: str) -> Spec | None:
    """What the name of a data set says about a world; None for other data sets."""
    if not is_world(dataset):
        return None
    place, given = dataset.removeprefix(PREFIX).strip(), set[str]()
    while found := re.fullmatch(r"(.*),\s*(invented|hidden)", place, re.DOTALL):
        place, mark = found[1].strip(), found[2]
        given.add(mark)
    if "," in place and not exists(expanded(place)):
        unknown = place.rpartition(",")[2]
        raise ConfigError(f"dataset {dataset[:200]!r}: {unknown!r} is unknown; write invented, hidden or both")
    return Spec(place, "invented" in given, "hidden" in given)


def needed(scenarios: str | None, offset: int, sample: int | None, num_scenarios: int | None) -> int:
    """How many cases must be drawn so that a run can choose its own."""
    if scenarios is not None:
        last = re.findall(r"(\d{1,9})\s*(?:,|$)", scenarios)  # of a row, a range or an id
        count = 1 + max(map(int, last), default=0)
    else:
        count = offset + max(sample or 0, num_scenarios or (0 if sample else USUAL))
    if count > MOST:
        raise ConfigError(f"scenarios: at most {MOST:,} cases of a world can be drawn, not {count:,}; choose fewer")
    return count


def draw_rows(given: Spec, seed: int, count: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Rows of a case file: each drawn by the seed and its own number, and the same patient whatever the names."""
    source, world, diseases, findings, origin = _prepared(given, seed, given.path.stat().st_mtime_ns)
    for number in range(first, first + count):
        truth, found = _draw(source, f"{origin['source']} {seed} {number}")
        held = {findings[name]: present for name, present in found.items()}
        row = _row(world, diseases[truth], {name: held[name] for name in world.findings})
        yield {**row, "case_id": f"{world.name}-{seed}-{number}", KEY: {**origin, "findings": held}}


@lru_cache(maxsize=16)
def _prepared(
    given: Spec, seed: int, _changed: int
) -> tuple[World, World, dict[str, str], dict[str, str], dict[str, Any]]:
    """A world under its own names and as played, the names in it, and what every row says of it."""
    source = read_world(given.path).in_order()
    diseases, findings = ({name: name for name in named} for named in (source.diseases, source.findings))
    world = source
    if given.invented:
        world, (diseases, findings) = invented(source, seed), new_names(source, seed)
    played = world.model_dump(mode="json", exclude_defaults=True)
    return source, world, diseases, findings, {"world": played, "shown": not given.hidden, "source": source.digest}


def _draw(world: World, seed: str) -> tuple[str, dict[str, bool]]:
    chance = random.Random(seed)
    (truth,) = chance.choices(list(world.diseases), weights=world.priors)
    return truth, {name: chance.random() < (one.probability or {})[truth] for name, one in world.findings.items()}


def _row(world: World, truth: str, findings: Mapping[str, bool]) -> dict[str, Any]:
    chart: dict[str, dict[str, str]] = {root: {} for root in _CHART.values()}
    for name, one in world.findings.items():
        chart[_CHART[one.by]][name] = one.says(findings[name])
    symptoms, examination, tests = chart.values()
    return {
        "OSCE_Examination": {
            "Objective_for_Doctor": world.objective,
            "Patient_Actor": {"Demographics": world.patient, "Symptoms": symptoms},
            "Physical_Examination_Findings": examination,
            "Test_Results": tests,
            "Correct_Diagnosis": truth,
        },
        "data_class": "synthetic",
        "Answer_Key": {
            "accept": [truth, *world.diseases[truth].synonyms],
            "reject": [
                {"text": name, "reason": "another disease of this world"} for name in world.diseases if name != truth
            ],
        },
        "Key_Findings": _key_findings(world, truth, findings),
    }


def _key_findings(world: World, truth: str, findings: Mapping[str, bool]) -> list[dict[str, Any]]:
    """The findings of a case that speak for its disease: those with a likelihood ratio of two or more.

    The ratio is that of the state found, present or absent, and its logarithm is the weight.
    """
    prior = dict(zip(world.diseases, world.priors, strict=True))
    entries = []
    for name, present in findings.items():
        p = world.findings[name].probability or {}
        chance = {each: p[each] if present else 1 - p[each] for each in world.diseases}
        others = math.fsum(prior[each] * chance[each] for each in prior if each != truth) / (1 - prior[truth])
        ratio = chance[truth] / others
        if ratio >= _TELLING:
            path = path_of(world, name)
            entries.append({"any_of": [path], "role": "discriminating", "weight": round(math.log2(ratio), 2)})
    return entries


def path_of(world: World, finding: str) -> str:
    """Where a finding is in the chart."""
    return f"{_CHART[world.findings[finding].by]}/{finding}"


def drawn(entry: object) -> Drawn | None:
    """What a row says under `Solvable`; None for other cases, `ValueError` if it cannot be read."""
    if entry is None:
        return None
    try:
        assert isinstance(entry, Mapping)
        world = _world(json.dumps(entry["world"]))
        findings = {name: bool(entry["findings"][name]) for name in world.findings}
        return Drawn(world, bool(entry["shown"]), findings, str(entry["source"]))
    except (AssertionError, KeyError, TypeError, ValidationError):
        raise ValueError(f"{KEY} is not a world with its findings; draw the cases again") from None


@lru_cache(maxsize=16)
def _told(world: World, shown: bool) -> World:
    """One object for all doctors in a world."""
    return world.told(shown=shown)


@lru_cache(maxsize=16)
def _world(text: str) -> World:
    """One object for all cases of a world."""
    return World.model_validate_json(text)
