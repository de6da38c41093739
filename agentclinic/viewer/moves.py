"""What a person does in a game: moves as the browser sends them, and the time they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentclinic.doctors.plain import StatedHypothesis
from agentclinic.errors import InputError
from agentclinic.jsonl import JsonLines, encodable, read_json_lines
from agentclinic.results.record import Record
from agentclinic.results.turn import Differential, Hypothesis, Source, as_differential
from agentclinic.results.utterance import (
    DIAGNOSIS_READY,
    OTHER_SPEAKER,
    OWN_LABEL,
    REQUEST_IMAGES,
    REQUEST_TEST,
    parse_action,
    read_utterance,
)
from agentclinic.vocabulary.compare import Relation, compare

Seat = Literal["doctor", "patient"]
SEATS: tuple[Seat, ...] = ("doctor", "patient")
Clock = Callable[[], float]
_LONGEST = 2000
"""Characters of what a person says in one turn: about a page."""
_MEANT = {
    "diagnosis": (r"\W*(?:diagnose\b|(?:(?:my|final|the) )*diagnosis(?: is\b|\s*[:=]))", "Commit to a diagnosis"),
    "test": (r"\W*order\s|:test\b", "Order an examination or test"),
}
"""What people type as a question when they mean to act, such as `diagnose X`; and the field for it."""
_TOKENS = {"question": "", "test": f"{REQUEST_TEST}: ", "diagnosis": f"{DIAGNOSIS_READY}: "}


class Move(BaseModel):
    """What a player does in a turn, as the browser sends it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: int
    kind: Literal["question", "test", "images", "diagnosis", "answer"]
    text: str = Field(default="", max_length=_LONGEST)
    differential: list[StatedHypothesis] = Field(default=[], max_length=20)
    confidence: float | None = Field(default=None, ge=0, le=1)
    """How likely the diagnosis is, if the move is one."""

    def words(self) -> str:
        """The move as an utterance of the encounter; refused if it would be read as something else."""
        text = encodable(self.text).strip()
        if self.kind in ("test", "diagnosis"):
            text = " ".join(text.split())
        if not text and self.kind != "images":
            raise InputError("There is nothing to send: the field is empty.")
        if self.kind == "answer":
            return text
        whole = REQUEST_IMAGES if self.kind == "images" else _TOKENS[self.kind] + text
        read = read_utterance(whole)
        if self.kind == "question":
            action = parse_action(read.action.content) if read.action.kind == "none" else read.action
            for kind, (typed, place) in _MEANT.items():
                if action.kind == kind or re.match(typed, text, re.IGNORECASE):
                    raise InputError(f'This is not a question for the patient: use "{place}". Nothing was sent.')
        if read.action.kind != self.kind or {OTHER_SPEAKER, OWN_LABEL} & {*read.slips}:
            tokens = f"{DIAGNOSIS_READY}, {REQUEST_TEST}, {REQUEST_IMAGES}"
            raise InputError(f"The clinic would misread this: leave out {tokens} and labels such as Doctor:.")
        return whole

    def stated(self) -> Differential | None:
        """The differential as of this move; the diagnosis has exactly the stated confidence."""
        given = [entry for entry in self.differential if entry.diagnosis.strip()]
        if self.kind == "diagnosis" and self.confidence is not None:
            said = " ".join(self.text.split())
            others = [entry for entry in given if not same(said, entry.diagnosis.strip())]
            total = sum(entry.probability for entry in others)
            share = min(1.0, (1 - self.confidence) / total) if total else 1.0
            given = [
                StatedHypothesis(diagnosis=said, probability=self.confidence),
                *(entry.model_copy(update={"probability": entry.probability * share}) for entry in others),
            ]
        return as_differential(
            Source.STATED,
            (Hypothesis(diagnosis=encodable(h.diagnosis.strip()), probability=h.probability) for h in given),
        )


def same(diagnosis: str, other: str) -> bool:
    return diagnosis.casefold() == other.casefold() or compare(diagnosis, other).relation is Relation.SAME


_Seconds = Annotated[float, Field(ge=0, lt=2.5e11)]
"""Since 1970; the limit is in the year 9892, and Python's dates end in 9999."""


class _Moment(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: int
    shown: _Seconds | None = None
    answered: _Seconds | None = None


class Times:
    """When a person was shown each turn and answered it, by the server's clock; kept in a file next to the game's."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lines: list[_Moment] = []
        for number, entry in read_json_lines(path, "a line of times") if path.exists() else ():
            try:
                self._lines.append(_Moment.model_validate(entry))
            except ValidationError:
                raise InputError(f"{path} line {number}: not a line of times; remove it") from None
        self._file = JsonLines(path, durable=False)

    def note(self, event: Literal["shown", "answered"], turn: int) -> None:
        entry = {"turn": turn, event: self._clock()}
        self._file.append(entry)
        self._lines.append(_Moment.model_validate(entry))

    def in_record(self, record: Record, seat: Seat) -> dict[str, Any]:
        """The record's `timing`, with the person's time on task: from when a turn was first shown until its answer.

        Reloading the page does not restart the clock; `restarts` counts how often the server was restarted meanwhile.
        """
        turns = []
        for turn in dict.fromkeys(entry.turn for entry in self._lines):
            shown = [e.shown for e in self._lines if e.turn == turn and e.shown is not None]
            answered = [e.answered for e in self._lines if e.turn == turn and e.answered is not None]
            if shown and answered:
                again = {"restarts": len(shown) - 1} if len(shown) > 1 else {}
                turns.append({"turn": turn, "seconds": round(answered[-1] - shown[0], 3), **again})
        first = next((entry.shown for entry in self._lines if entry.shown is not None), self._clock())
        timing, seconds = record.timing or {}, {entry["turn"]: entry["seconds"] for entry in turns}
        # Turns replayed from the recording took no time; the person's times come from here.
        spoken = [
            seconds.get(turn.turn, took) if turn.role == seat else took
            for turn, took in zip(record.transcript or (), timing.get("turns", ()), strict=True)
        ]
        return {
            **timing,
            "turns": spoken,
            "started_at": datetime.fromtimestamp(first, UTC).isoformat(),
            "seconds": round(self._clock() - first, 3),
            "on_task": turns,
            "on_task_seconds": round(sum(entry["seconds"] for entry in turns), 3),
        }

    def close(self) -> None:
        self._file.close()
