"""The plain doctor: one prompt per turn, the dialogue as its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentclinic.cases.model import Door
from agentclinic.clinic.payloads import DoctorPayload, Exchange
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.clinic.roles import History
from agentclinic.models.base import Image, Message, Model, Purpose, Reply, Request


@dataclass(frozen=True)
class Heard:
    """What reached the doctor since its last utterance."""

    speaker: str
    """Patient, Measurement or Clinic; empty before anybody spoke."""
    text: str
    images: tuple[Image, ...] = ()


class Doctor(Protocol):
    """Anything that can lead an encounter."""

    @property
    def history(self) -> str:
        """The dialogue as the doctor heard it."""
        ...

    async def act(
        self, heard: Heard, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> Reply:
        """Say the next thing; `turn` counts from 1, and on the `last` one only a diagnosis helps.

        `notes` is advice from somebody who plans along; it comes after everything else.
        """
        ...

    def say(self, heard: Heard, text: str) -> None:
        """Take words said in the doctor's name into its memory."""
        ...

    def state(self) -> object | None:
        """What `restore` needs to come back to this moment; None from a doctor that cannot go back."""
        ...

    def restore(self, state: object | None) -> None:
        """Come back to an earlier moment."""
        ...


class PlainDoctor:
    """Asks the model for the next utterance, as the seed's `DoctorAgent` does."""

    def __init__(
        self,
        door: Door,
        model: Model,
        prompt: Prompt,
        *,
        limit: int,
        bias: str | None = None,
        images: bool = False,
        tests: bool = True,
    ) -> None:
        self._tests = tests
        self.model = model
        self._door = door
        self._prompt = prompt
        self._limit = limit
        self._history = History()
        self._images: tuple[Image, ...] = ()
        # Nothing in here changes during the encounter: a provider's prompt cache can reuse all of it.
        self.system_prompt = joined(
            fill(prompt.text("system_base"), max_infs=limit, door=door_text(door)),
            prompt.text("images_suffix") if images else "",
            "" if tests else prompt.text("no_tests"),
            prompt.bias(bias),
        )

    @property
    def history(self) -> str:
        """The dialogue as the doctor heard it."""
        return self._history.text

    def state(self) -> tuple[str, tuple[Image, ...]]:
        """What `restore` needs to come back to this moment."""
        return self._history.text, self._images

    def restore(self, state: object | None) -> None:
        """Come back to an earlier moment."""
        assert isinstance(state, tuple)
        self._history.text, self._images = state

    async def act(
        self, heard: Heard, exchanges: tuple[Exchange, ...] = (), *, turn: int, last: bool, notes: str = ""
    ) -> Reply:
        """Say the next thing. `notes` go to the end of the prompt, with the last-turn reminder."""
        said = f"{heard.speaker}: {heard.text}" if heard.speaker else heard.text
        self._images = tuple(dict.fromkeys((*self._images, *heard.images)))  # asked for twice, shown once
        template = self._prompt.text("user_prompt_template")
        notes = joined(notes, self._prompt.text("last_turn") if last else "")
        user = fill(template, history=self._history.shown(), reply=said, turn=turn, max_infs=self._limit, notes=notes)
        if "{notes}" not in template:
            user = joined(user, notes)
        reply = await self.model.reply(
            Request(
                Purpose.DOCTOR,
                (Message("system", self.system_prompt), Message("user", user, images=self._images)),
                payload=DoctorPayload(self._door, exchanges, turn, self._limit, last, self._tests),
            )
        )
        self.say(heard, reply.text)
        return reply

    def say(self, heard: Heard, text: str) -> None:
        """Take what was heard, and words said in the doctor's name, into the history."""
        take(self._history, heard, text)

    def hear(self, entry: str) -> None:
        """Take something into the history outside the turns."""
        self._history.add(entry)


def take(history: History, heard: Heard, text: str) -> None:
    """Add a turn to a history: what was heard, and what the doctor said to it."""
    if heard.speaker:
        history.add(f"{heard.speaker}: {heard.text}")
    history.add(f"Doctor: {text}")


def door_text(door: Door) -> str:
    """What stands on the door, as text."""
    return f"Patient: {door.demographics}\nObjective: {door.objective}" if door.demographics else door.objective
