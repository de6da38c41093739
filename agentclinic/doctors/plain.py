"""The plain doctor: one request per turn, the dialogue as its memory.

After its diagnosis, and outside the dialogue, it can be asked how sure it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import (
    Assignment,
    History,
    Incoming,
    Observation,
    Repetition,
    door_text,
    is_readable,
    one_name,
    turn_of,
    utterance,
)
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.clinic.prompts import fill, joined, placed
from agentclinic.models.base import Image, Message, ModelError, Purpose, Reply, Request, reads_prompts
from agentclinic.models.structured import at_most
from agentclinic.results.turn import NOTHING_ASKED, Exchange, Hypothesis, Source, Turn, as_differential
from agentclinic.results.utterance import DIAGNOSIS_READY, UNCLEAR, Action


@dataclass(frozen=True)
class ConfidencePayload:
    """What the doctor knows when asked, after the diagnosis, how sure it is."""

    door: Door
    exchanges: tuple[Exchange, ...]
    diagnosis: str


class StatedHypothesis(BaseModel):
    """A diagnosis and how likely the doctor thinks it is."""

    diagnosis: str = Field(json_schema_extra=at_most(80))
    probability: float = Field(ge=0, le=1)


class StatedDifferential(BaseModel):
    """What a doctor answers when asked how sure it is."""

    hypotheses: list[StatedHypothesis] = Field(min_length=1, max_length=10)


async def elicit(doctor: PlainDoctor, exchanges: tuple[Exchange, ...], diagnosis: str, *, turn: int) -> Turn:
    """The differential that the doctor's model states when asked, as a turn that is not part of the dialogue.

    It is None if the answer does not have the required form. A failure is noted and does not count against the doctor.
    """
    given = doctor.assignment
    asked = fill(given.prompts["doctor"].text("confidence"), diagnosis=diagnosis, history=doctor.history.rstrip())
    try:
        reply = await doctor.model.reply(
            Request(
                Purpose.CONFIDENCE,
                (Message("system", doctor.system_prompt), Message("user", asked)),
                schema=StatedDifferential,
                payload=ConfidencePayload(given.door, exchanges, diagnosis),
            )
        )
    except ModelError as error:
        return Turn(turn=turn, role="confidence", text="", notes=(f"confidence not stated: {error.kind}",))
    differential = None
    if isinstance(reply.parsed, StatedDifferential):
        stated = (Hypothesis(diagnosis=h.diagnosis, probability=h.probability) for h in reply.parsed.hypotheses)
        differential = as_differential(Source.ELICITED, stated)
    return turn_of(replace(reply, differential=differential), turn=turn, role="confidence")


class PlainDoctor:
    """Asks the model for the next utterance, as the original's `DoctorAgent` does."""

    def __init__(self, assignment: Assignment, *, tests: bool = True) -> None:
        self.assignment = assignment
        self.model = assignment.model
        self.dialogue = assignment.dialogue
        self._door = assignment.door
        self._prompt = assignment.prompts["doctor"]
        self._limit = assignment.limit
        self._tests = tests
        self._history = History()
        self._chatted = History()
        """The dialogue as a chat."""
        self._waiting: list[str] = []
        """What reached the doctor since it last said something that was understood."""
        self._images: tuple[Image, ...] = ()
        self._repetition = Repetition()
        self.asked = 0
        """How often the doctor has spoken, for prompts that count it."""
        self.instructions: str | None = None
        """A system prompt in place of the one made from the prompt file."""
        self._parts = {
            "images": self._prompt.text("images_suffix") if assignment.images else "",
            "no_tests": "" if tests else self._prompt.text("no_tests"),
            "bias": assignment.bias_text,
            "policy": assignment.policy,
        }

    @property
    def system_prompt(self) -> str:
        """The doctor's instructions.

        With our own file, they do not change during the encounter, so that a provider's prompt cache can reuse them;
        the original's file counts the questions here.
        """
        if self.instructions is not None:
            return self.instructions
        return placed(
            self._prompt.text("chat_system" if self.dialogue == "chat" else "system_base"),
            self._parts,
            max_infs=self._limit,
            infs=self.asked,
            door=door_text(self._door),
            objective=self._door.told,
        )

    @property
    def history(self) -> str:
        return self._history.text

    @property
    def stuck(self) -> bool:
        """Whether it has repeated itself too often and is asked to commit."""
        return self._repetition.state == "stuck"

    async def act(self, seen: Observation) -> tuple[Turn]:
        return (self.speak(seen, await self.model.reply(self.request(seen, prompts=reads_prompts(self.model)))),)

    def request(self, seen: Observation, *, prompts: bool = True) -> Request:
        """What the model is asked this turn: first the system prompt, last the notes with the last-turn reminder."""
        if seen.incoming.images:
            self._images = tuple(dict.fromkeys((*self._images, *seen.incoming.images)))  # asked for twice, shown once
        payload = DoctorPayload(
            self._door,
            seen.exchanges,
            seen.turn,
            self._limit,
            seen.last,
            self._tests,
            advised=seen.suggested,
            may_order=seen.may_order,
        )
        if not prompts:
            return Request(Purpose.DOCTOR, (), payload=payload)
        dialogue = self._chat if self.dialogue == "chat" else self._transcript
        messages = (Message("system", self.system_prompt), *dialogue(seen, joined(seen.advice, seen.notes)))
        return Request(Purpose.DOCTOR, messages, payload=payload)

    def speak(self, seen: Observation, reply: Reply) -> Turn:
        """Take the model's reply as this doctor's utterance, and remember it."""
        said = utterance(reply, turn=seen.turn, earlier=self._history.said_by("Doctor"), dialogue=self.dialogue)
        self._repetition.note(said)
        self.say(seen.incoming, said.text, understood=said.action is None or said.action.kind != "none")
        return said

    async def clarified(self, said: Turn) -> Turn:
        """A diagnosis; if it cannot be read as one disease, the model is asked once for the name alone.

        If its second answer cannot be read either, the first one stands.
        """
        assert said.action is not None
        asked = Incoming("Clinic", self._prompt.text("one_name"))
        if not asked.text or is_readable(said.action.content, self._door.menu):
            return said
        *before, newest = self._chatted.messages("Doctor", newest=asked.text)
        messages = (Message("system", self.system_prompt), *before, replace(newest, images=self._images))
        name, reply = await one_name(self.model, Request(Purpose.DOCTOR, messages), self._door.menu)
        text, both = f"{DIAGNOSIS_READY}: {name}" if name else said.text, joined(said.raw or said.text, reply.text)
        if name:
            self.say(asked, text)
        return said.model_copy(
            update={
                "text": text,
                "raw": both if both != text else None,
                "action": Action("diagnosis", name) if name else said.action,
                "slips": (*said.slips, UNCLEAR),
                "usage": (said.usage or NOTHING_ASKED) + reply.usage,
                "notes": (*said.notes, *reply.notes),
            }
        )

    def _transcript(self, seen: Observation, notes: str) -> list[Message]:
        """The dialogue in one prompt, as in the original."""
        user = placed(
            self._prompt.text("user_prompt_template"),
            {"notes": joined(notes, self._prompt.text("last_turn") if seen.last else "")},
            history=self._history.shown(),
            reply=seen.incoming.line,
            turn=seen.turn,
            max_infs=self._limit,
        )
        return [Message("user", user, images=self._images)]

    def _chat(self, seen: Observation, notes: str) -> list[Message]:
        """The dialogue as messages. The newest has what applies to this turn only: counter, reminders and notes."""
        newest = joined(*self._waiting, self.told(seen, notes))
        messages = self._chatted.messages("Doctor", newest=newest)
        return [*messages[:-1], Message("user", messages[-1].content, images=self._images)]

    def told(self, seen: Observation, notes: str = "") -> str:
        """What reached the doctor, then what applies to this turn only."""
        state = self._repetition.state
        if state == "repeated" and not self._tests:
            state = ""  # it is told to order a test
        template = self._prompt.text("chat_last" if seen.last else f"chat_{state or 'turn'}")
        return joined(self._heard(seen.incoming), notes, fill(template, turn=seen.turn, max_infs=self._limit))

    def _heard(self, incoming: Incoming) -> str:
        return incoming.text if incoming.speaker else self._prompt.text("chat_opening", incoming.text)

    def say(self, incoming: Incoming, text: str, *, understood: bool = True) -> None:
        """Add what reached the doctor, and words said in its name, to the history.

        Words that the clinic did not understand are left out of the chat: a small model that sees its own mistake
        there makes it again.
        """
        self._history.add_turn(incoming, text)
        self.asked += 1
        self._waiting.append(self._heard(incoming))
        if understood:
            self._chatted.add("", joined(*self._waiting))
            self._chatted.add("Doctor", text)
            self._waiting.clear()

    def hear(self, entry: str) -> None:
        self._history.add("", entry)
        self._waiting.append(entry)
