"""Labels: the truth about some of a run's diagnoses, by a person or by adjudication."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from agentclinic.errors import InputError
from agentclinic.jsonl import read_lines
from agentclinic.scoring.judges.panel import Unit


class Label(BaseModel):
    """One line of a label file."""

    model_config = ConfigDict(extra="forbid")

    scenario_id: StrictInt
    correct: StrictBool
    case_hash: str | None = None
    """If given, the label counts only for this case."""
    repeat: int = Field(default=0, ge=0)
    diagnosis: str | None = None
    """If given, the label counts only for this diagnosis."""
    labeller: str | None = None
    reason: str | None = None


def read_labels(path: Path) -> list[Label]:
    """The labels in a file of JSON lines."""
    labels = []
    for number, line, _ in read_lines(path):
        try:
            labels.append(Label.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"{path} line {number}: {where + ': ' if where else ''}{first['msg']}; "
                'a label looks like {"scenario_id": 3, "correct": true}'
            ) from None
    return labels


class Matched(NamedTuple):
    """Labels matched to a run's units."""

    by_unit: dict[int, bool]
    """By the unit's position in the panel."""
    unused: int
    """Labels that are not about any of the run's diagnoses."""


def match_labels(units: Sequence[Unit], labels: Iterable[Label]) -> Matched:
    """Find each label's unit by row and repeat; hash and diagnosis must agree if both sides have them."""
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        places[unit.scenario_id, unit.repeat].append(place)
    found: dict[int, bool] = {}
    unused = 0
    for label in labels:
        fitting = [place for place in places[label.scenario_id, label.repeat] if _fits(label, units[place])]
        if len(fitting) > 1:
            raise InputError(f"labels: scenario {label.scenario_id} means several cases in this run; add case_hash")
        for place in fitting:
            if found.setdefault(place, label.correct) != label.correct:
                raise InputError(
                    f"labels: scenario {label.scenario_id}, repeat {label.repeat} is labeled both right and wrong; "
                    "keep only one of these lines"
                )
        unused += not fitting
    return Matched(found, unused)


def _fits(label: Label, unit: Unit) -> bool:
    return (label.case_hash is None or unit.case_hash in (None, label.case_hash)) and (
        label.diagnosis is None or unit.diagnosis in (None, label.diagnosis)
    )
