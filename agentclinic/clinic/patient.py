"""The patient: answers the doctor from the patient's part of the chart.

There are three ways (`run.simulator`). *Grounded*: the model names the facts that answer, then speaks. *Voiced*: our
matcher chooses the facts and the model only finds the words. *Free*: the model gets the script and writes what it
likes, as in the original. In the first two, code checks the words; if one repair fails, code words the facts.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.cases.matcher import Asked, Topic
from agentclinic.cases.model import Case, as_text
from agentclinic.clinic import reply_checks
from agentclinic.clinic.answers import (
    EXAMINE,
    MOST_FACTS,
    UNCLEAR,
    Part,
    answer_parts,
    matched,
    payload_of,
    withheld,
    worded,
)
from agentclinic.clinic.doctor import Dialogue, History, turn_of
from agentclinic.clinic.payloads import PatientPayload, SilentSymptom
from agentclinic.clinic.prompts import Prompt, fill, id_lines, placed
from agentclinic.config import is_builtin_or_person
from agentclinic.models.base import MalformedError, Message, Model, Purpose, RefusedError, Reply, Request, reads_prompts
from agentclinic.models.structured import choosing
from agentclinic.results.turn import Exchange, Provenance, Turn, Usage

Simulator = Literal["grounded", "voiced", "free"]
AnswerKind = Literal["answer", "denial", "unknown", "not_for_the_patient"]
_TOPIC_OF: dict[str, Asked] = {
    "answer": Asked.SYMPTOM,
    "denial": Asked.SYMPTOM,
    "unknown": Asked.BACKGROUND,
    "not_for_the_patient": Asked.RESULT,
}
LONGEST_REPLY = 600
"""Characters a patient may say at once, about six sentences."""


_NOTES = {
    EXAMINE: "I cannot know that. The doctor would have to examine me or order a test.",
    UNCLEAR: "I do not understand the question. I ask the doctor to say it in another way.",
}
"""Set phrases as notes to a voiced patient: given the phrases themselves, it would take "you" to mean itself."""


class GroundedAnswer(BaseModel):
    """The facts that answer the question, and then the words."""

    model_config = ConfigDict(extra="forbid")

    facts: list[str] = Field(max_length=MOST_FACTS)
    kind: AnswerKind
    reply: str = Field(max_length=LONGEST_REPLY)


class Patient:
    """Answers the doctor from the patient's script."""

    def __init__(
        self,
        case: Case,
        model: Model,
        prompt: Prompt,
        *,
        bias: str | None = None,
        silent_symptom: SilentSymptom = "deny",
        simulator: Simulator = "free",
        dialogue: Dialogue = "transcript",
        suggestions: bool = True,
    ) -> None:
        self.model = model
        self._suggestions = suggestions
        self.history = History()
        self._spoken = History()
        """The chat with the model, exactly as it was sent: nothing in it changes, so a prompt cache can reuse it."""
        self._case = case
        self._prompt = prompt
        self._silent: SilentSymptom = silent_symptom
        # The builtin patient speaks from the facts anyway, and what a person says is not checked.
        self._simulator: Simulator = "free" if is_builtin_or_person(model.name) else simulator
        self._dialogue = dialogue
        self._caregiver = payload_of(case, "").caregiver
        self._by_id = {f"f{place}": fact for place, fact in enumerate(case.patient_facts, start=1)}
        self._bias = bias

    @cached_property
    def system_prompt(self) -> str:
        prompt, simulator = self._prompt, self._simulator
        silence = {"free": "silent", "grounded": "grounded"}.get(simulator)
        parts = {
            "silence": prompt.text(f"{silence}_{self._silent}") if silence else "",
            "caregiver": prompt.text("caregiver") if self._caregiver else "",
            "bias": prompt.bias(self._bias),
        }
        opening = prompt.text("system_base" if simulator == "free" else f"{simulator}_system")
        return placed(opening, parts, patient=as_text(self._case.patient), facts=id_lines(self._by_id))

    async def answer(self, said: str, asked: tuple[Exchange, ...] = (), *, turn: int = 0) -> Turn:
        payload = payload_of(self._case, said, asked, self._silent)
        if self._simulator == "free":
            reply = turn_of(await self._free(said, payload), turn=turn, role="patient")
        else:
            attempt = _Attempt(turn, self._simulator, matched(payload))
            prompted = self._grounded_turn if self._simulator == "grounded" else self._voiced_turn
            reply = await self._ask(attempt, payload, prompted(attempt, payload))
        self.history.add("Doctor", said)
        self.history.add("Patient", reply.text)
        return reply

    @cached_property
    def _shape(self) -> type[GroundedAnswer]:
        """The schema of a choice among this case's ids, built only if a model is asked to choose."""
        return choosing(GroundedAnswer, "facts", tuple(self._by_id), MOST_FACTS)

    async def _free(self, said: str, payload: PatientPayload) -> Reply:
        messages = self._free_messages(said) if reads_prompts(self.model) else ()
        return await self.model.reply(Request(Purpose.PATIENT, messages, payload=payload))

    def _free_messages(self, said: str) -> tuple[Message, ...]:
        system = Message("system", self.system_prompt)
        if self._dialogue == "chat":
            return system, *self.history.messages("Patient", newest=said)
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), reply=said)
        return system, Message("user", user)

    def _kept(self, newest: str, reply: Turn, sent: str = "") -> Turn:
        """Add an exchange to the chat: what the model sent, or else what was said in its name."""
        self._spoken.add("Doctor", newest)
        self._spoken.add("Patient", sent or reply.text)
        return reply

    async def _ask(self, attempt: _Attempt, payload: PatientPayload, newest: str) -> Turn:
        """Ask the model, and again if its words cannot be said; if that fails too, code words the facts."""
        grounded = self._simulator == "grounded"
        messages = (Message("system", self.system_prompt), *self._spoken.messages("Patient", newest=newest))
        schema = self._shape if grounded else None
        for _ in range(2):
            try:
                reply = await self.model.reply(Request(Purpose.PATIENT, messages, schema=schema, payload=payload))
            except (MalformedError, RefusedError) as error:
                return self._kept(newest, attempt.by_code(error))
            attempt.add(reply)
            words, sent = reply.text, ""
            if grounded:
                if not isinstance(reply.parsed, GroundedAnswer):  # a tool call in place of an answer
                    return self._kept(newest, attempt.by_code(MalformedError("no facts were chosen")))
                attempt.choose(*self._chosen(reply.parsed, payload, attempt.matched))
                words, sent = reply.parsed.reply, reply.text
            said = attempt.read(words, payload.question)
            if said is not None:
                return self._kept(newest, attempt.by_model(said, words), sent)
            repair_prompt = fill(self._prompt.text(f"{self._simulator}_repair"), problem=attempt.problem)
            messages = (*messages, Message("assistant", reply.text or "(nothing)"), Message("user", repair_prompt))
        return self._kept(newest, attempt.by_code())

    def _voiced_turn(self, attempt: _Attempt, payload: PatientPayload) -> str:
        """The question with the parts that the matcher chose, for the model to say."""
        several = len(attempt.parts) > 1
        notes = dict.fromkeys(_NOTES.get(part.text, part.named if several else part.text) for part in attempt.parts)
        lines = "\n".join(f"- {note}" for note in notes)
        return fill(self._prompt.text("voiced_turn"), question=payload.question, lines=lines)

    def _grounded_turn(self, attempt: _Attempt, payload: PatientPayload) -> str:
        """The question with the facts that the matcher suggests, for the model to choose."""
        by_path = {fact.path: name for name, fact in self._by_id.items()}
        names = [by_path[path] for part in attempt.parts for path in part.disclosure.paths if path in by_path]
        hint = fill(self._prompt.text("suggested" if names else "none_suggested"), facts=", ".join(names))
        suggested = hint if self._suggestions else ""
        return fill(self._prompt.text("grounded_turn"), question=payload.question, suggested=suggested)

    def _chosen(
        self, given: GroundedAnswer, payload: PatientPayload, matched_parts: tuple[Part, ...]
    ) -> tuple[tuple[Part, ...], bool]:
        """The chosen facts as one part of an answer, and whether any of them is kept back.

        Without any fact, it is what the patient says if the chart is silent, or if no fact was asked for.
        """
        facts = tuple(self._by_id[name] for name in dict.fromkeys(given.facts) if name in self._by_id)
        if not facts and all(part.disclosure.provenance is Provenance.MANNER for part in matched_parts):
            return matched_parts, False
        kind = Asked.SYMPTOM if facts else _TOPIC_OF[given.kind]
        kept_back = any(withheld(fact, payload) for fact in facts)
        return answer_parts([Topic(payload.question.strip()[:80], kind, facts)], payload), kept_back


class _Attempt:
    """One answer of a language-model patient: what it may say, what it said, what it cost."""

    def __init__(self, turn: int, simulator: Simulator, parts: tuple[Part, ...]) -> None:
        self.matched = parts
        """What our matcher would answer."""
        self.parts = parts
        self.problem = ""
        self._kept_back = False
        self._turn = turn
        self._simulator = simulator
        self._suggested = [path for part in parts for path in part.disclosure.paths]
        self._usage: Usage | None = None
        self._notes: dict[str, None] = {}
        self._slips: list[str] = []
        self._raw: str | None = None

    def add(self, reply: Reply) -> None:
        self._spend(reply.usage)
        self._notes.update(dict.fromkeys(reply.notes))

    def choose(self, parts: tuple[Part, ...], kept_back: bool) -> None:
        """Take a model's choice in place of the matcher's."""
        self.parts, self._kept_back = parts, kept_back

    def read(self, raw: str, question: str) -> str | None:
        """The model's own words, or None if they must not be used."""
        self._raw = raw
        said, slips = reply_checks.own_words(raw)
        self._slips += slips
        silent = all(part.disclosure.provenance in _SILENT or _denied(part) for part in self.parts)
        # The matcher's own wording withholds names of diseases, and the model has seen no more than that.
        facts = [
            text for part in self.parts for text in (part.text, *(f"{fact.text} {fact.says}" for fact in part.facts))
        ]
        kept_back = [reply_checks.KEPT_BACK] if self._kept_back else []
        wrong = kept_back or reply_checks.problems(said, facts, question, silent=silent)
        self._slips += [problem.kind for problem in wrong]
        self.problem = "; ".join(problem.message for problem in wrong)
        return None if wrong else said

    def by_model(self, said: str, raw: str) -> Turn:
        return self._turn_of(said, "model", raw if raw.strip() != said else None)

    def by_code(self, error: MalformedError | RefusedError | None = None) -> Turn:
        """The facts in code's words, because the model's cannot be used."""
        if error:
            self._spend(error.usage or Usage())
            self._slips.append(error.kind)
        self._notes[f"worded by code: {self.problem or error}"] = None
        return self._turn_of(worded(self.parts), "code", self._raw)

    def _turn_of(self, text: str, by: str, raw: str | None) -> Turn:
        return Turn(
            turn=self._turn,
            role="patient",
            text=text,
            raw=raw,
            slips=tuple(self._slips),
            disclosures=tuple(part.disclosure for part in self.parts),
            usage=self._usage,
            notes=tuple(self._notes),
            details={"simulator": self._simulator, "worded_by": by, "suggested": self._suggested},
        )

    def _spend(self, usage: Usage) -> None:
        self._usage = self._usage + usage if self._usage else usage


_SILENT = (Provenance.DEFAULT_NEGATIVE, Provenance.UNAVAILABLE, Provenance.NOT_UNDERSTOOD)


def _denied(part: Part) -> bool:
    """Whether the chart answers with no."""
    return bool(part.facts) and all(fact.denied for fact in part.facts)
