"""Labels: the truth about some of a run's diagnoses, by a person or by adjudication.

`agentclinic judge label` writes `RUN/labels/<labeler>.jsonl`; other files of the same form may be put beside them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.scoring.judges.panel import Unit
from agentclinic.vocabulary.compare import Relation

FOLDER = "labels"


class Label(BaseModel):
    """One line of a label file."""

    model_config = ConfigDict(extra="forbid")

    scenario_id: StrictInt
    correct: StrictBool | None
    """Null if the labeler is unsure."""
    case_hash: str | None = None
    """If given, the label counts only for this case."""
    repeat: int = Field(default=0, ge=0)
    diagnosis: str | None = None
    """If given, the label counts only for this diagnosis."""
    labeler: str | None = Field(default=None, validation_alias=AliasChoices("labeler", "labeller"))
    """In files of version 0.2: `labeller`."""
    relation: Relation | None = None
    reason: str | None = None
    drawn_by: tuple[str, ...] | None = None
    """The judges whose verdicts formed the strata of the sample; null if `judge label` did not draw it."""
    stratum: str | None = None
    stratum_size: int | None = None
    """Diagnoses in the stratum; those labeled ÷ this is the probability with which each was drawn."""
    undone: bool = False
    """Takes back the labeler's label for this diagnosis."""


def read_labels(path: Path) -> list[Label]:
    """The labels in a file of JSON lines, without those that were taken back."""
    labels: list[Label] = []
    for number, entry in read_json_lines(path, "a label", journal=True):
        try:
            label = Label.model_validate(entry)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"{path} line {number}: {where + ': ' if where else ''}{first['msg']}; "
                'a label looks like {"scenario_id": 3, "correct": true}'
            ) from None
        if label.undone:
            labels = [one for one in labels if _about(one) != _about(label)]
        else:
            labels.append(label)
    return labels


def _about(label: Label) -> tuple[object, ...]:
    return label.scenario_id, label.case_hash, label.repeat, label.labeler


def labels_in(folder: Path) -> list[Label]:
    return [label for path in sorted((folder / FOLDER).glob("*.jsonl")) for label in read_labels(path)]


@dataclass
class Matched:
    """Labels matched to a run's units, which are named by their position in the panel."""

    by_unit: dict[int, float] = field(default_factory=dict)
    """1 for right, 0 for wrong; the mean if labelers disagree."""
    unsure: set[int] = field(default_factory=set)
    """Units about which every labeler is unsure."""
    unused: int = 0
    """Labels that are not about any of the run's diagnoses."""
    designs: tuple[tuple[str, ...], ...] = ()
    """The lists of judges by whose verdicts samples were drawn."""
    labelers: tuple[str, ...] = ()


def match_labels(units: Sequence[Unit], labels: Iterable[Label]) -> Matched:
    """Find each label's unit by row and repeat; hash and diagnosis must agree if both sides have them."""
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        places[unit.scenario_id, unit.repeat].append(place)
    found: dict[int, dict[str | None, bool]] = defaultdict(dict)
    matched = Matched()
    used: list[Label] = []
    for label in labels:
        fitting = [place for place in places[label.scenario_id, label.repeat] if _fits(label, units[place])]
        if len(fitting) > 1:
            raise InputError(f"labels: scenario {label.scenario_id} means several cases in this run; add case_hash")
        if not fitting:
            matched.unused += 1
            continue
        used.append(label)
        if label.correct is None:
            matched.unsure.add(fitting[0])
        elif found[fitting[0]].setdefault(label.labeler, label.correct) != label.correct:
            raise InputError(
                f"labels: scenario {label.scenario_id}, repeat {label.repeat} is labeled both right and wrong; "
                "keep only one of these lines"
            )
    matched.by_unit = {place: sum(said.values()) / len(said) for place, said in found.items()}
    matched.unsure -= matched.by_unit.keys()
    matched.designs = tuple(sorted({label.drawn_by for label in used if label.drawn_by}))
    matched.labelers = tuple(sorted({label.labeler for label in used if label.labeler}))
    return matched


def _fits(label: Label, unit: Unit) -> bool:
    return (label.case_hash is None or unit.case_hash in (None, label.case_hash)) and (
        label.diagnosis is None or unit.diagnosis in (None, label.diagnosis)
    )
