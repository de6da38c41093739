"""The plain doctor: one prompt per turn, the dialogue as its memory."""

from __future__ import annotations

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import History, Incoming, door_text, utterance
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.models.base import Image, Message, Model, Purpose, Request
from agentclinic.results.turn import Exchange, Turn


class PlainDoctor:
    """Asks the model for the next utterance, as the original's `DoctorAgent` does."""

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
        self.model = model
        self._door = door
        self._prompt = prompt
        self._limit = limit
        self._tests = tests
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
        """The dialogue as the doctor knows it."""
        return self._history.text

    async def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...] = (), *, turn: int, last: bool, notes: str = ""
    ) -> tuple[Turn]:
        """Say the next thing. `notes` go to the end of the prompt, with the last-turn reminder."""
        reply = await self.model.reply(self.request(incoming, exchanges, turn=turn, last=last, notes=notes))
        self.say(incoming, reply.text)
        return (utterance(reply, turn=turn),)

    def request(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> Request:
        """What the model is asked this turn; its first message is the system prompt."""
        self._images = tuple(dict.fromkeys((*self._images, *incoming.images)))  # asked for twice, shown once
        template = self._prompt.text("user_prompt_template")
        notes = joined(notes, self._prompt.text("last_turn") if last else "")
        user = fill(
            template, history=self._history.shown(), reply=incoming.line, turn=turn, max_infs=self._limit, notes=notes
        )
        if "{notes}" not in template:
            user = joined(user, notes)
        return Request(
            Purpose.DOCTOR,
            (Message("system", self.system_prompt), Message("user", user, images=self._images)),
            payload=DoctorPayload(self._door, exchanges, turn, self._limit, last, self._tests),
        )

    def say(self, incoming: Incoming, text: str) -> None:
        """Add what reached the doctor, and words said in its name, to the history."""
        self._history.add_turn(incoming, text)

    def hear(self, entry: str) -> None:
        """Add something to the history outside the turns."""
        self._history.add(entry)
