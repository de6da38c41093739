"""What the clinic expects of a doctor, and what reaches one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentclinic.cases.model import Door
from agentclinic.models.base import Image, Reply
from agentclinic.results.turn import Exchange, Turn


@dataclass(frozen=True)
class Incoming:
    """What reached the doctor since its last utterance."""

    speaker: str
    """Patient, Measurement or Clinic; empty before anyone has spoken."""
    text: str
    images: tuple[Image, ...] = ()

    @property
    def line(self) -> str:
        """The words with their speaker, as they appear in a prompt."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class Doctor(Protocol):
    """Anything that can lead an encounter."""

    @property
    def history(self) -> str:
        """The dialogue as the doctor knows it."""
        ...

    async def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> tuple[Turn, ...]:
        """Take a turn: return any side work (a planner's turn), then the doctor's own utterance.

        `turn` counts from 1; on the `last` turn only a diagnosis helps. `notes` is a planner's advice and comes after
        everything else.
        """
        ...

    def say(self, incoming: Incoming, text: str) -> None:
        """Add words said in the doctor's name to its memory."""
        ...


class History:
    """A dialogue as one agent knows it, in the original's form: each entry is followed by a blank line."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, *entries: str) -> None:
        """Append entries."""
        self.text += "".join(f"{entry}\n\n" for entry in entries)

    def add_turn(self, incoming: Incoming, said: str) -> None:
        """Append what reached the doctor, and what the doctor said."""
        if incoming.speaker:
            self.add(incoming.line)
        self.add(f"Doctor: {said}")

    def shown(self) -> str:
        """The history as it appears in a prompt."""
        return self.text.rstrip() or "(nothing yet)"


def turn_of(reply: Reply, *, turn: int, role: str) -> Turn:
    """A model's reply as a turn of the encounter."""
    return Turn(
        turn=turn,
        role=role,
        text=reply.text,
        disclosures=reply.disclosures,
        differential=reply.differential,
        usage=reply.usage,
        notes=reply.notes,
    )


def utterance(reply: Reply, *, turn: int) -> Turn:
    """What a doctor says."""
    return turn_of(reply, turn=turn, role="doctor")


def door_text(door: Door) -> str:
    """What a doctor knows at the door, as text."""
    return f"Patient: {door.demographics}\nObjective: {door.objective}" if door.demographics else door.objective
