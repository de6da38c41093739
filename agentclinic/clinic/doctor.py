"""What the clinic expects of a doctor, and what reaches one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agentclinic.cases.model import Door
from agentclinic.models.base import Image, Message, Reply
from agentclinic.results.actions import Action
from agentclinic.results.differential import Differential, Hypothesis, Source, as_differential
from agentclinic.results.turn import Exchange, Turn
from agentclinic.results.utterance import REPEATED, TOO_LONG, read_utterance, shortened


@dataclass(frozen=True)
class Recalled:
    """An experience from earlier cases, as memory offers it to a doctor; it does not say which case it comes from."""

    id: str
    observation: str
    """The clinical pattern that it is about."""
    suggestion: str
    """What to ask, examine or order, and why."""
    step: str | None = None
    """The same as an id of the knowledge base, `finding:NAME` or `test:NAME`, for the builtin doctor."""


@dataclass(frozen=True)
class Advice:
    """What memory offers the doctor for one turn."""

    text: str
    """The experiences as a marked block of the prompt."""
    recalled: tuple[Recalled, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """What to do, as ids of the knowledge base."""
        return tuple(each.step for each in self.recalled if each.step)


NO_ADVICE = Advice("", ())


@dataclass(frozen=True)
class Incoming:
    """What reached the doctor since its last utterance."""

    speaker: str
    """Patient, Measurement or Clinic; empty before anyone has spoken."""
    text: str
    images: tuple[Image, ...] = ()
    advice: Advice = NO_ADVICE
    """From memory, for this turn alone: it does not become part of the dialogue."""

    @property
    def line(self) -> str:
        """The words with their speaker, as they appear in a prompt."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True)
class Utterance:
    """What a custom doctor says, and how sure it is; scored like the numbers that other doctors state."""

    text: str
    """A question, or words with one of the control tokens."""
    differential: Mapping[str, float] | Sequence[str] = ()
    """Diagnoses with their probabilities (0 to 1), or only their names, most likely first."""
    confidence: float | None = None
    """Probability (0 to 1) that the diagnosis in the text is right; without a diagnosis in it, it does not count."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError("Utterance: text must be a text that is not empty")
        if self.differential and self.confidence is not None:
            raise ValueError("Utterance: give a differential or a confidence, not both")
        if isinstance(self.differential, str):
            raise ValueError("Utterance: differential must be a list of names, or probabilities by name")
        given = self.differential.values() if isinstance(self.differential, Mapping) else ()
        for number in (*given, *(() if self.confidence is None else (self.confidence,))):
            if not 0 <= number <= 1:
                raise ValueError(f"Utterance: {number!r} is not a probability; write 0.6 for 60%")

    def stated(self, action: Action | None) -> Differential | None:
        """The differential for the record; `action` is what the text was read as."""
        given: Mapping[str, float | None] = (
            self.differential if isinstance(self.differential, Mapping) else dict.fromkeys(self.differential)
        )
        if self.confidence is not None and action and action.kind == "diagnosis":
            given = {action.content: self.confidence}
        return as_differential(
            Source.STATED, (Hypothesis(diagnosis=str(name), probability=share) for name, share in given.items())
        )


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


Dialogue = Literal["chat", "transcript"]
"""How a model is shown the dialogue: as messages of a chat, or as one prompt, like the original."""


class History:
    """A dialogue as one agent knows it."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []

    @property
    def text(self) -> str:
        """The dialogue in the original's form: each entry is followed by a blank line."""
        return "".join(f"{_line(speaker, words)}\n\n" for speaker, words in self._entries)

    def add(self, speaker: str, words: str) -> None:
        """Append what someone said; no speaker for words that are not speech."""
        self._entries.append((speaker, words))

    def add_turn(self, incoming: Incoming, said: str) -> None:
        """Append what reached the doctor, and what the doctor said."""
        if incoming.speaker:
            self.add(incoming.speaker, incoming.text)
        self.add("Doctor", said)

    def said_by(self, speaker: str) -> tuple[str, ...]:
        """Everything one speaker said."""
        return tuple(words for who, words in self._entries if who == speaker)

    def shown(self) -> str:
        """The history as it appears in a prompt."""
        return self.text.rstrip() or "(nothing yet)"

    def messages(self, me: str, *, newest: str) -> list[Message]:
        """The dialogue as a chat: the words of `me` are the assistant's, all others are the user's.

        No one is labelled: small models copy labels, and whose words they are can be told from them (results begin with
        RESULTS:). `newest` ends the last of the user's messages. Roles alternate, as many chat templates require.
        """
        messages: list[Message] = []
        for speaker, words in (*self._entries, ("", newest)):
            role: Literal["assistant", "user"] = "assistant" if speaker == me else "user"
            if messages and messages[-1].role == role:
                messages[-1] = Message(role, f"{messages[-1].content}\n\n{words}")
            else:
                messages.append(Message(role, words))
        return messages


def _line(speaker: str, words: str) -> str:
    return f"{speaker}: {words}" if speaker else words


def turn_of(reply: Reply, *, turn: int, role: str) -> Turn:
    """A model's reply as a turn of the encounter; what code wrote from the chart is not shortened."""
    text = reply.text if reply.disclosures else shortened(reply.text)
    return Turn(
        turn=turn,
        role=role,
        text=text,
        raw=reply.text if text != reply.text else None,
        slips=(TOO_LONG,) if text != reply.text else (),
        disclosures=reply.disclosures,
        differential=reply.differential,
        usage=reply.usage,
        notes=reply.notes,
    )


def utterance(reply: Reply, *, turn: int, earlier: Iterable[str] = (), dialogue: Dialogue = "chat") -> Turn:
    """What a doctor says, read as one speaker's words; `earlier` is what it said before.

    In the transcript form, slips are counted but nothing is cut.
    """
    read = read_utterance(reply.text, earlier, cut=dialogue == "chat")
    said = turn_of(reply, turn=turn, role="doctor")
    raw = reply.text if read.text != reply.text.strip() else None
    return said.model_copy(update={"text": read.text, "raw": raw, "action": read.action, "slips": read.slips})


MOST_REPEATS = 3
"""From the next repetition on, a doctor is asked to commit: a small model that goes round in circles does not stop."""


class Repetition:
    """Whether a doctor has just repeated itself, and how often it has done so."""

    def __init__(self) -> None:
        self._now = False
        self._count = 0

    def note(self, said: Turn) -> None:
        """Take note of what the doctor said."""
        self._now = REPEATED in said.slips
        self._count += self._now

    @property
    def state(self) -> Literal["", "repeated", "stuck"]:
        """What the doctor has to be told: nothing, that it repeats itself, or that it must commit."""
        if not self._now:
            return ""
        return "stuck" if self._count > MOST_REPEATS else "repeated"


def door_text(door: Door) -> str:
    """What a doctor knows at the door, as text."""
    return f"Patient: {door.demographics}\nObjective: {door.objective}" if door.demographics else door.objective
