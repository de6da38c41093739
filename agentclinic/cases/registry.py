"""The known data sets, and which of their cases a run plays. To add a data set, add an entry to `DATASETS`."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath

from agentclinic.cases import solvable
from agentclinic.cases.formats import NEJM, OSCE, Format, Row, read_case, read_rows
from agentclinic.cases.model import Case
from agentclinic.config import suggestion
from agentclinic.errors import CaseError, ConfigError
from agentclinic.files import exists, expanded
from agentclinic.jsonl import encodable
from agentclinic.privacy import DataClass


def parse_rows(text: str, count: int, names: Mapping[str, int] | None = None) -> list[int]:
    """Parse rows such as "3,7,10-20" (counted from 0, inclusive), or `names` of cases; each once, in file order."""
    rows: set[int] = set()
    for part in text.split(","):
        part = str((names or {}).get(part.strip(), part))
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise ConfigError(
                f"scenarios: cannot read {part.strip()!r}; write rows and ranges, such as 3,7,10-20, or ids of cases"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ConfigError(f"scenarios: the range {part.strip()} runs backwards; write {last}-{first}")
        if last >= count:
            raise ConfigError(f"scenarios: row {last} does not exist; the data set has rows 0-{count - 1}")
        rows.update(range(first, last + 1))
    return sorted(rows)


def select(
    cases: Sequence[Case],
    *,
    scenarios: str | None = None,
    offset: int = 0,
    sample: int | None = None,
    num_scenarios: int | None = None,
    seed: int = 0,
    lockbox: bool = False,
) -> list[Case]:
    """Choose cases by row or id, or apply `offset`, then `sample`, then `num_scenarios`.

    File order is kept, except in data sets that are mixed. Lockbox cases are left out unless `lockbox` is true; to say
    that a row is in the lockbox, it must be among `cases`.
    """
    if scenarios is not None:
        by_row = {case.scenario_id: case for case in cases}
        rows = parse_rows(scenarios, max(by_row, default=-1) + 1, {case.name: row for row, case in by_row.items()})
        for row in rows:
            if row not in by_row:
                raise ConfigError(f"scenarios: row {row} is not among these cases")
            if by_row[row].in_lockbox and not lockbox:
                raise ConfigError(f"scenarios: row {row} is in the lockbox; --lockbox opens it, once per release")
        if offset or sample is not None:
            raise ConfigError("scenarios already names the rows; leave out offset and sample")
        chosen = [by_row[row] for row in rows]
    else:
        if not lockbox:
            cases = [case for case in cases if not case.in_lockbox]
        if offset >= len(cases):
            raise ConfigError(f"offset {offset} skips all {len(cases)} scenarios; use a smaller one")
        chosen = _mixed(cases)[offset:]
        if sample is not None:
            if sample > len(chosen):
                raise ConfigError(f"sample {sample} is more than the {len(chosen)} scenarios left; use a smaller one")
            rows = sorted(random.Random(seed).sample(range(len(chosen)), sample))
            chosen = [chosen[row] for row in rows]
    return chosen[:num_scenarios]


def _mixed(cases: Sequence[Case]) -> list[Case]:
    """The cases in the order in which they are played.

    OpenOSCE's file lists its cases by specialty, twins side by side. In that order, a few cases would be of one kind,
    and a person would meet the same opening twice in a row. So they are shuffled, always in the same way.
    """
    chosen, known = list(cases), DATASETS.get(cases[0].dataset) if cases else None
    if known is None or not known.mixed:
        return chosen
    rng = random.Random(known.name)
    for _ in range(100):
        rng.shuffle(chosen)
        if not any(after.annotations.get("twin_of") == one.name for one, after in pairwise(chosen)):
            break
    return chosen


SHUFFLED = " with shuffled charts"
"""Ends the name of a data set whose patients were given each other's charts."""
SWAPPED = " with swapped patients"
"""Ends the name of a data set whose patients are introduced as members of other groups."""
_BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True)
class Dataset:
    """A known data set: its format and where its file should be."""

    name: str
    format: Format
    path: Path
    """Relative to the working folder; `datasets` in the config overrides it."""
    about: str
    images: bool = False
    bundled: bool = False
    mixed: bool = False
    """Played in a shuffled order."""
    completed: bool = False
    """Whether its charts are written to be completed with normal results and solved in the time of the setting."""
    data_class: DataClass = DataClass.PUBLIC
    """The class of rows that do not state one."""


DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "OpenOSCE_Demo",
            OSCE,
            _BUNDLED / "openosce_demo.jsonl",
            "Original demonstration cases, shipped with the package; not validated by clinicians",
            bundled=True,
            completed=True,
        ),
        Dataset(
            "OpenOSCE",
            OSCE,
            _BUNDLED / "openosce.jsonl",
            "Original cases with complete charts, shipped with the package; not validated by clinicians",
            bundled=True,
            mixed=True,
            completed=True,
        ),
        Dataset(
            "OpenOSCE_1",
            OSCE,
            _BUNDLED / "openosce_1.jsonl",
            "OpenOSCE as it was in version 1, to repeat earlier results",
            bundled=True,
        ),
        Dataset("MedQA", OSCE, Path("processed_data/agentclinic_medqa.jsonl"), "107 cases made from MedQA questions"),
        Dataset(
            "MedQA_Ext",
            OSCE,
            Path("processed_data/agentclinic_medqa_extended.jsonl"),
            "214 cases made from MedQA questions; contains MedQA",
        ),
        Dataset(
            "NEJM",
            NEJM,
            Path("processed_data/agentclinic_nejm.jsonl"),
            "15 image challenges of the New England Journal of Medicine",
            images=True,
        ),
        Dataset(
            "NEJM_Ext",
            NEJM,
            Path("processed_data/agentclinic_nejm_extended.jsonl"),
            "120 image challenges; contains NEJM",
            images=True,
        ),
        Dataset(
            "MIMICIV",
            OSCE,
            Path("processed_data/agentclinic_mimiciv.jsonl"),
            "Cases made from MIMIC-IV admissions",
            data_class=DataClass.CREDENTIALED,
        ),
    )
}


def resolve(name: str, paths: Mapping[str, str]) -> tuple[str, Path, Format | None]:
    """The name, file and format of a data set given by its name, a key of `datasets` or the path of a file."""
    known = DATASETS.get(name)
    if solvable.spec(name):
        raise CaseError(f"{name[:200]!r} has no case file: its cases are drawn; `agentclinic world check` checks it")
    if name in paths:
        return name, Path(paths[name]), known.format if known else None
    if known:
        return name, known.path, known.format
    path = expanded(name)
    if path.suffix in (".jsonl", ".json") or exists(path):
        return encodable(path.stem), path, None
    beside = [f"{name}{suffix}" for suffix in (".jsonl", ".json") if exists(expanded(f"{name}{suffix}"))]
    meant = (
        f"; did you mean the file {beside[0]}?" if beside else suggestion(name, {*DATASETS, *paths, *solvable.names()})
    )
    raise CaseError(f"unknown data set {name[:200]!r}{meant}")


def default_class(dataset: str, path: Path, paths: Mapping[str, str] | None = None) -> DataClass:
    """The data class of rows that do not state one: credentialed for anything that looks like MIMIC-IV.

    What counts is the name of the data set, the file or a folder it is in; a hard link to a credentialed data set, or
    to a file with such a name, counts too.
    """
    real = expanded(path).resolve()
    if "mimic" in dataset.lower() or _is_called_mimic(path) or _is_called_mimic(real):
        return DataClass.CREDENTIALED
    if any(real == guarded or _same_file(real, guarded) for guarded in _credentialed_files(real, paths or {})):
        return DataClass.CREDENTIALED
    return DATASETS[dataset].data_class if dataset in DATASETS else DataClass.PUBLIC


def class_by_name(dataset: str) -> DataClass:
    """The data class by the name of the data set alone, for records, whose case file may be anywhere."""
    if _is_called_mimic(PurePath(dataset)):
        return DataClass.CREDENTIALED
    return DATASETS[dataset].data_class if dataset in DATASETS else DataClass.PUBLIC


def _is_called_mimic(path: PurePath) -> bool:
    """Whether the file's name contains MIMIC, or the name of a folder begins with it."""
    return "mimic" in path.name.lower() or any(folder.lower().startswith("mimic") for folder in path.parts[:-1])


def _credentialed_files(file: Path, paths: Mapping[str, str]) -> Iterator[Path]:
    """Files known to be credentialed and, if `file` has other hard links, those next to it that look like MIMIC-IV."""
    for known in DATASETS.values():
        if known.data_class is DataClass.CREDENTIALED:
            yield known.path.resolve()
    for name, given in paths.items():
        if (name in DATASETS and DATASETS[name].data_class is DataClass.CREDENTIALED) or "mimic" in name.lower():
            yield expanded(given).resolve()
    if file.is_file() and file.stat().st_nlink > 1:
        beside = [path for path in file.parent.iterdir() if _is_called_mimic(path)]
        for path in beside:
            yield from path.iterdir() if path.is_dir() else (path,)


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def load_cases(
    name: str,
    paths: Mapping[str, str] | None = None,
    *,
    lockbox: bool = False,
    seed: int = 0,
    count: int = solvable.USUAL,
    first: int = 0,
) -> list[Case]:
    """The cases of a data set in file order, without its lockbox unless `lockbox` is true.

    `scenario_id` is the row in the file; a place in the list is not, since rows may be missing. `seed`, `count` and
    `first` are for solvable worlds, whose cases are drawn.
    """
    if world := solvable.spec(name):
        path, dataset = world.path, world.name
        rows = enumerate(solvable.draw_rows(world, seed, count, first), first)
        return [read_case(Row(path, number + 1, number, row), dataset, OSCE) for number, row in rows]
    dataset, path, expected = resolve(name, paths or {})
    if solvable.looks_like_world(path):
        raise CaseError(f"{path}: this is a world, not a file of cases; write Solvable:{name} to draw cases from it")
    default = default_class(dataset, path, paths)
    every = [read_case(row, dataset, expected, default) for row in read_rows(path)]
    if not every:
        raise CaseError(f"{path}: has no cases; write one JSON object per line (see docs/datasets.md)")
    cases = every if lockbox else [case for case in every if not case.in_lockbox]
    if not cases:
        raise CaseError(f"{path}: all cases are in the lockbox; lockbox=True loads them, once per release")
    return cases
