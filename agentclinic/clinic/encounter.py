"""One case and one doctor, until the encounter ends; independent of files, runs and scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from agentclinic.cases.model import Case
from agentclinic.clinic.desk import Desk
from agentclinic.clinic.doctor import Dialogue, Doctor, History, Incoming, Observation, Utterance, spoken
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.models.base import OWN_FAULTS, Image, ModelError
from agentclinic.results.record import Fault, Status
from agentclinic.results.turn import Differential, Exchange, Turn, as_told
from agentclinic.results.utterance import Action

_ADDRESSEE = {"question": "patient", "test": "measurement", "images": "clinic", "none": "clinic"}


@dataclass(frozen=True)
class Clinic:
    """Everyone the doctor meets in one encounter."""

    case: Case
    patient: Patient | Desk
    laboratory: Laboratory | Desk
    doctor_prompt: Prompt
    """For what the clinic itself says: that images are shown, or that there are none."""
    images: bool = False
    """Whether the doctor may ask for images."""


@dataclass
class Transcript:
    """What happened in an encounter."""

    turns: list[Turn] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    """What was asked and answered, as the doctor knows it."""
    answered: list[Exchange] = field(default_factory=list)
    """The same as the patient knows it: with the facts that each reply told."""
    status: Status = Status.MAX_INFS_REACHED
    diagnosis: str | None = None
    fault: Fault | None = None
    speaker: str = "doctor"
    """Who speaks next, and is therefore at fault if the encounter fails now."""
    seconds: list[float | None] = field(default_factory=list)
    """How long each of `turns` took; None for side work, whose time counts toward the words it led to."""
    _since: float = field(default_factory=time.perf_counter, repr=False)

    def add(self, *turns: Turn) -> None:
        """Add what was just said: any side work, then the words."""
        now = time.perf_counter()
        self.turns += turns
        self.seconds += [*[None] * (len(turns) - 1), round(now - self._since, 3)]
        self._since = now

    def amend(self, diagnosed: Turn) -> None:
        """Replace the last turn, a diagnosis, by the same turn after the doctor was asked about it."""
        assert diagnosed.action is not None
        spent = (self.seconds.pop() or 0.0) + time.perf_counter() - self._since
        self.turns[-1], self.diagnosis = diagnosed, diagnosed.action.content
        self.seconds.append(round(spent, 3))
        self._since = time.perf_counter()

    @property
    def num_turns(self) -> int:
        return len({turn.turn for turn in self.turns if turn.role == "doctor"})

    @property
    def differential(self) -> Differential | None:
        given = [turn.differential for turn in self.turns if turn.differential]
        return given[-1] if given else None

    def fail(self, error: str, message: str, *, own: bool, traceback: str | None = None) -> None:
        """End with a fault of the current speaker; `own` if it would be the doctor's own fault."""
        self.status = Status.DOCTOR_FAILED if own and self.speaker == "doctor" else Status.MODEL_FAILED
        self.fault = Fault(self.speaker, error, message, traceback)


class Seat:
    """The doctor's seat in one encounter: a model or a program observes and acts until it is done.

    If the patient or the laboratory fails, the encounter ends with a fault.
    """

    def __init__(self, clinic: Clinic, limit: int, dialogue: Dialogue = "chat") -> None:
        self.transcript = Transcript()
        self.history = History()
        """The dialogue as it is heard in this seat."""
        self.done = False
        self._clinic = clinic
        self._limit = limit
        self._dialogue: Dialogue = dialogue
        self._turn = 1
        self._incoming = Incoming("", clinic.doctor_prompt.text("opening"))
        self._corrected = False

    def observe(self) -> Observation:
        """What reached the doctor, and what was said before."""
        laboratory, exchanges = self._clinic.laboratory, tuple(self.transcript.exchanges)
        may_order = laboratory.may_order if isinstance(laboratory, Laboratory) else None
        return Observation(self._incoming, exchanges, self._turn, last=self._turn == self._limit, may_order=may_order)

    async def act(self, said: str | Utterance | Sequence[Turn]) -> None:
        """Say something as the doctor, given as words or as turns with side work to record, and wait for the answer."""
        if self.done:
            raise RuntimeError("the encounter is over: nothing more can be said")
        if isinstance(said, str | Utterance):
            earlier = self.history.said_by("Doctor")
            said = (spoken(said, turn=self._turn, earlier=earlier, dialogue=self._dialogue),)
        self.transcript.add(*said)
        words, last = said[-1], self._turn == self._limit
        assert words.action is not None, "a doctor's utterance carries its action"
        self.history.add_turn(self._incoming, words.text)
        if words.action.kind == "diagnosis":
            self.transcript.status, self.transcript.diagnosis = Status.DIAGNOSED, words.action.content
            self.done = True
        elif last and (words.action.kind != "none" or self._corrected):
            self.done = True
        else:
            # No turn is left to correct words on the last turn that are not an action: the clinic answers them, and the
            # doctor may speak once more.
            self._corrected = last
            try:
                await self._answer(words, words.action)
            except ModelError as error:
                self.fail(error)
            self._turn += not last

    def fail(self, error: ModelError) -> None:
        """End the encounter with a fault of the current speaker."""
        self.transcript.fail(error.kind, str(error), own=error.kind in OWN_FAULTS, traceback=error.traceback)
        self.done = True

    async def _answer(self, said: Turn, action: Action) -> None:
        """Let the patient, the laboratory or the clinic answer; patient and laboratory overhear each other."""
        clinic, transcript = self._clinic, self.transcript
        transcript.speaker = _ADDRESSEE[action.kind]
        shown: tuple[Image, ...] = ()
        if action.kind == "question":
            speaker = "Patient"
            reply = await clinic.patient.answer(said.text, tuple(transcript.answered), turn=said.turn)
            clinic.laboratory.history.add("Doctor", said.text)
            clinic.laboratory.history.add(speaker, reply.text)
        elif action.kind == "test":
            speaker = "Measurement"
            reply = await clinic.laboratory.report(action.content, said.text, turn=said.turn)
            clinic.patient.history.add("Doctor", said.text)
            clinic.patient.history.add(speaker, reply.text)
        else:
            speaker = "Clinic"
            if action.kind == "images":
                shown = (Image(clinic.case.image),) if clinic.images and clinic.case.image else ()
                text = clinic.doctor_prompt.text("images_shown" if shown else "images_off")
            else:
                text = fill(clinic.doctor_prompt.text(_unclear(action.content)), form=action.content)
            reply = Turn(turn=said.turn, role="clinic", text=text)
        transcript.add(reply)
        transcript.answered.append(Exchange(action.kind, action.content, reply.text, reply.disclosures))
        transcript.exchanges.append(Exchange(action.kind, action.content, reply.text, as_told(reply.disclosures)))
        transcript.speaker = "doctor"
        self._incoming = Incoming(speaker, reply.text, shown)


def _unclear(form: str) -> str:
    """The key of the clinic's answer to words that are not an action; `form` is how to write what was meant."""
    if not form:
        return "said_nothing"
    return "name_missing" if form.endswith(":") else "exact_form"


async def encounter(seat: Seat, doctor: Doctor, *, seconds: float | None = None, own_time: bool = False) -> Transcript:
    """Let a doctor act from the seat until the encounter is done, for at most `seconds`.

    A doctor that fails ends the encounter with a fault. With `own_time`, taking too long is the doctor's own fault (a
    custom program), not an endpoint's.
    """
    with anyio.move_on_after(seconds) as scope:
        try:
            while not seat.done:
                await anyio.lowlevel.checkpoint()  # builtin roles never wait: give other encounters a chance to run
                await seat.act(await doctor.act(seat.observe()))
        except ModelError as error:
            seat.fail(error)
    if scope.cancelled_caught:
        seat.transcript.fail("encounter_timeout", f"the encounter took longer than {seconds:g} s", own=own_time)
        seat.done = True
    return seat.transcript
