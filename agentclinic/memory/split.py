"""Splits: which cases to learn from and which to test on, in a file with a checksum that reveals changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from agentclinic.cases.model import Case
from agentclinic.config import read_json
from agentclinic.errors import ConfigError
from agentclinic.files import write_whole
from agentclinic.memory.experience import Source, hashes, same_patient, source_of

Part = Literal["train", "test"]


@dataclass(frozen=True)
class Split:
    """The cases of each part, by hash."""

    train: frozenset[str]
    test: frozenset[str]
    seed: int
    checksum: str
    """Of everything else in the file."""

    def part_of(self, case: str) -> Part | None:
        """The part that a case is in; None if it is in neither."""
        return "train" if case in self.train else "test" if case in self.test else None

    def choose(self, cases: Iterable[Case], part: Part) -> list[Case]:
        """The cases of one part; a case in neither part is refused."""
        chosen = []
        for case in cases:
            found = self.part_of(case.id)
            if found is None:
                raise ConfigError(
                    f"split: {case.name} is in neither part; the split was made from "
                    "other cases, or the case has been changed since"
                )
            if found == part:
                chosen.append(case)
        if not chosen:
            raise ConfigError(f"split: none of the chosen cases is in the {part} part")
        return chosen


def make_split(cases: Sequence[Case], seed: int, share: float = 0.5) -> Split:
    """Divide cases in two, about `share` of them to learn from.

    Cases with the same hash or the same diagnosis, twins and near copies stay together. The order of the cases does not
    matter.
    """
    groups = _groups(cases)
    groups.sort(key=lambda group: hashlib.sha256(f"{seed}:{min(group)}".encode()).digest())
    train: set[str] = set()
    test: set[str] = set()
    for group in groups:
        behind = len(train) / share <= len(test) / (1 - share)
        (train if behind else test).update(group)
    if not train or not test:
        raise ConfigError(
            f"split: {len(cases)} cases cannot be divided: they have the same diagnosis or are copies; use more cases"
        )
    content = _content(train, test, seed)
    return Split(frozenset(train), frozenset(test), seed, _checksum(content))


def _groups(cases: Sequence[Case]) -> list[set[str]]:
    """Cases that must stay on the same side."""
    sources = {case.id: source_of(case) for case in cases}
    leader = {case: case for case in sources}

    def find(case: str) -> str:
        while leader[case] != case:
            case = leader[case]
        return case

    for one, other in _candidates(sources):
        if same_patient(sources[one], sources[other]) or sources[one].diagnosis == sources[other].diagnosis:
            leader[find(one)] = find(other)
    groups: dict[str, set[str]] = {}
    for case in sources:
        groups.setdefault(find(case), set()).add(case)
    return list(groups.values())


def _candidates(sources: Mapping[str, Source]) -> Iterator[tuple[str, str]]:
    """Pairs of cases that share a diagnosis, a name or part of their charts: only these can belong together."""
    marks: dict[str | int, list[str]] = {}
    for case, source in sources.items():
        of_case: list[str | int] = [source.diagnosis, *source.names, *hashes(source.fingerprint)]
        for mark in of_case:
            marks.setdefault(mark, []).append(case)
    seen = set[tuple[str, str]]()
    for cases in marks.values():
        seen.update(combinations(cases, 2))
    return iter(sorted(seen))


def write_split(path: Path, split: Split) -> None:
    content = _content(split.train, split.test, split.seed)
    write_whole(path, json.dumps({**content, "checksum": split.checksum}, indent=1) + "\n")


def read_split(path: Path) -> Split:
    """Read a split; one that has been changed, or is not a split, is refused."""
    if not path.exists():
        raise ConfigError(f"split: {path} does not exist; `agentclinic study learn` writes one")
    data = read_json(path)
    parts = [data.get(part) if isinstance(data, dict) else None for part in ("train", "test")]
    if not all(isinstance(part, list) and all(isinstance(case, str) for case in part) for part in parts):
        raise ConfigError(f"{path}: not a split; `agentclinic study learn` writes one")
    train, test = (frozenset(part or ()) for part in parts)
    seed = data.get("seed")
    checksum = data.get("checksum")
    if not isinstance(seed, int) or checksum != _checksum(_content(train, test, seed)) or train & test:
        raise ConfigError(
            f"{path}: the split has been changed since it was made (its checksum does not match); restore it, or make "
            "a new one and learn again"
        )
    return Split(train, test, seed, checksum)


def _content(train: Iterable[str], test: Iterable[str], seed: int) -> dict[str, Any]:
    return {"seed": seed, "train": sorted(train), "test": sorted(test)}


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
