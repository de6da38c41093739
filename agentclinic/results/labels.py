"""Labels: the truth about some of a run's diagnoses, by a person or by adjudication.

`agentclinic judge label` writes `RUN/labels/<labeler>.jsonl`; other files of the same form may be put beside them.
They measure the run's judges, and they decide what the judge could not read.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.results.record import Record, Status, Verdict
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

    def fits(self, case_hash: str | None, diagnosis: str | None) -> bool:
        """Whether it is about this case and diagnosis, as far as both sides say."""
        same_case = self.case_hash is None or case_hash in (None, self.case_hash)
        return same_case and (self.diagnosis is None or diagnosis in (None, self.diagnosis))


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


class Decisions:
    """What people say about the diagnoses that a run's judge could not read."""

    def __init__(self, folder: Path) -> None:
        self._labels: dict[tuple[int, int], list[Label]] = defaultdict(list)
        for label in labels_in(folder):
            if label.correct is not None:
                self._labels[label.scenario_id, label.repeat].append(label)

    def applied(self, record: Record, diagnosis: str | None) -> Record:
        """The record as most of its labelers decide, if the judge could not read the diagnosis and they are not tied.

        By the lenient rule a label counts as by the strict one: it does not say what is accepted in part.
        """
        given = self._labels.get((record.scenario_id, record.repeat), ())
        if record.status != Status.NOT_READABLE or not given:
            return record
        said = {(one.labeler, one.correct) for one in given if one.fits(record.case_hash, diagnosis)}
        yes = sum(correct is True for _, correct in said)
        if 2 * yes == len(said):
            return record
        right = 2 * yes > len(said)
        who = ", ".join(sorted({labeler for labeler, _ in said if labeler})) or "a person"
        verdict = Verdict(right, None, f"labeled by {who}", right, "person")
        return record.model_copy(update={"status": Status.DIAGNOSED.value, "correct": right, "judgement": verdict})
