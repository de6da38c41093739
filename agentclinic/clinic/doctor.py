"""What the clinic expects of a doctor, and what reaches one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agentclinic.cases.model import Door
from agentclinic.clinic.prompts import Prompts
from agentclinic.jsonl import encodable
from agentclinic.models.base import Image, Message, Model, ModelError, Reply, Request
from agentclinic.results.turn import (
    NOTHING_ASKED,
    Differential,
    Exchange,
    Hypothesis,
    Source,
    Turn,
    Usage,
    as_differential,
)
from agentclinic.results.utterance import REPEATED, TOO_LONG, Action, name_in, read_utterance, shortened
from agentclinic.vocabulary.compare import commits
from agentclinic.worlds.menu import named_ending
from agentclinic.worlds.model import World


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
        return _line(self.speaker, self.text)


@dataclass(frozen=True)
class Observation:
    """What the doctor knows on its turn."""

    incoming: Incoming
    exchanges: tuple[Exchange, ...] = ()
    """The finished turns."""
    turn: int = 1
    """Counted from 1."""
    last: bool = False
    """Whether only a diagnosis counts now."""
    notes: str = ""
    """A planner's notes, which come after everything else."""
    advice: str = ""
    """Advice from elsewhere. Like the notes, it is for this turn alone and does not become part of the dialogue."""
    suggested: tuple[str, ...] = ()
    """The steps in the advice, as ids of the knowledge base, for models that read no prompts."""
    recalled: tuple[object, ...] = ()
    """The experiences behind the advice, for a custom doctor that has `recall`."""
    may_order: Callable[[str], bool] | None = None
    """Whether the laboratory would do a test of this name now, for models that read no prompts; None: it does all."""


Dialogue = Literal["chat", "transcript"]
"""How a model is shown the dialogue: as chat messages, or as one prompt, as in the original."""


@dataclass(frozen=True)
class Assignment:
    """What a doctor is given before an encounter; never the chart."""

    door: Door
    model: Model
    prompts: Prompts
    limit: int
    """Turns the doctor may take."""
    bias: str | None = None
    images: bool = False
    """Whether the doctor may ask for images."""
    dialogue: Dialogue = "transcript"
    clarify: bool = False
    """Whether a diagnosis that cannot be read as one disease is asked for once more."""
    policy: str = ""
    """The planning rules as part of the system prompt, or with `policy_in_prompt` all of the test policy; empty without
    a planner."""

    @property
    def bias_text(self) -> str:
        """What the bias adds to the system prompt."""
        return self.prompts["doctor"].bias(self.bias)


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
            raise ValueError("Utterance: text must be a non-empty string")
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

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Take a turn: return any side work (a planner's turn), then the doctor's own utterance."""
        ...


class Speaker(Doctor, Protocol):
    """A doctor that remembers the dialogue, to which a planner can be added."""

    @property
    def history(self) -> str:
        """The dialogue as the doctor knows it."""
        ...

    def say(self, incoming: Incoming, text: str) -> None:
        """Add words said in the doctor's name to its memory."""
        ...


class History:
    """A dialogue as one agent knows it."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []

    @property
    def text(self) -> str:
        """The dialogue in the original's form: each entry is followed by a blank line."""
        return "".join([f"{_line(speaker, words)}\n\n" for speaker, words in self._entries])

    def add(self, speaker: str, words: str) -> None:
        """Append what someone said; no speaker for words that are not speech."""
        self._entries.append((speaker, words))

    def replace(self, text: str) -> None:
        """Forget the dialogue, and take this text in its place."""
        self._entries = [("", text.rstrip("\n"))] if text.strip() else []

    def add_turn(self, incoming: Incoming, said: str) -> None:
        """Append what reached the doctor, and what the doctor said."""
        if incoming.speaker:
            self.add(incoming.speaker, incoming.text)
        self.add("Doctor", said)

    def said_by(self, speaker: str) -> tuple[str, ...]:
        return tuple([words for who, words in self._entries if who == speaker])

    def shown(self) -> str:
        return self.text.rstrip() or "(nothing yet)"

    def messages(self, me: str, *, newest: str) -> list[Message]:
        """The dialogue as a chat: the words of `me` are the assistant's, all others are the user's.

        Messages have no labels: small models copy them, and it is clear whose words they are (results begin with
        RESULTS:). `newest` ends the user's last message. Roles alternate, as many chat templates require.
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
    if text == reply.text:
        return _turn(reply, turn=turn, role=role, text=text)
    return _turn(reply, turn=turn, role=role, text=text, raw=reply.text, slips=(TOO_LONG,))


def utterance(reply: Reply, *, turn: int, earlier: Iterable[str] = (), dialogue: Dialogue = "chat") -> Turn:
    """What a doctor says, read as one speaker's words; `earlier` is what it said before.

    In the transcript form, slips are counted but nothing is cut.
    """
    read = read_utterance(reply.text, earlier, cut=dialogue == "chat")
    raw = reply.text if read.text != reply.text.strip() else None
    return _turn(reply, turn=turn, role="doctor", text=read.text, raw=raw, action=read.action, slips=read.slips)


def _turn(reply: Reply, **said: Any) -> Turn:
    return Turn(
        **said, disclosures=reply.disclosures, differential=reply.differential, usage=reply.usage, notes=reply.notes
    )


def spoken(said: str | Utterance, *, turn: int, earlier: Iterable[str] = (), dialogue: Dialogue = "chat") -> Turn:
    """The turn of a doctor that returns only its words, so that their cost is unknown."""
    given = Utterance(said) if isinstance(said, str) else said
    heard = utterance(
        Reply(encodable(given.text), usage=Usage(requests=0)), turn=turn, earlier=earlier, dialogue=dialogue
    )
    return heard.model_copy(update={"differential": given.stated(heard.action)})


def is_readable(diagnosis: str, menu: World | None) -> bool:
    """Whether a diagnosis can be read as one disease; in a solvable world, as one of the menu."""
    return named_ending(menu, diagnosis) is not None if menu else commits(diagnosis)


async def one_name(model: Model, request: Request, menu: World | None) -> tuple[str, Reply]:
    """The disease in a model's answer when asked for the name alone, and the answer.

    The name is empty if none can be read or the model fails: its first answer then stands.
    """
    try:
        reply = await model.reply(request)
    except ModelError as error:
        note = f"the request for one disease failed: {error.kind}"
        return "", Reply("", usage=error.usage or NOTHING_ASKED, notes=(note,))
    name = name_in(reply.text)
    return name if is_readable(name, menu) else "", reply


REPEATS_BEFORE_COMMITTING = 3
"""After this many repetitions, the next one makes us ask the doctor to commit: a small model that goes in circles does
not stop on its own."""


class Repetition:
    """Whether a doctor has just repeated itself, and how often it has done so."""

    def __init__(self) -> None:
        self._now = False
        self._count = 0

    def note(self, said: Turn) -> None:
        """Look at what the doctor just said."""
        self._now = REPEATED in said.slips
        self._count += self._now

    @property
    def state(self) -> Literal["", "repeated", "stuck"]:
        """What to tell the doctor: nothing, that it repeats itself, or that it must commit."""
        if not self._now:
            return ""
        return "stuck" if self._count > REPEATS_BEFORE_COMMITTING else "repeated"


def door_text(door: Door) -> str:
    return f"Patient: {door.demographics}\nObjective: {door.told}" if door.demographics else door.told
