"""The patient: answers the doctor from the patient's part of the chart.

There are three ways (`run.simulator`). *Grounded*: the model names the facts that answer each part of a question, then
speaks. *Voiced*: our matcher chooses the facts and the model only finds the words. *Free*: the model gets the script
and writes what it likes, as in the original. In the first two, code checks the words; if one repair fails, code words
the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal

from agentclinic.cases.model import Case, Fact, as_text
from agentclinic.clinic import grounded, reply_checks
from agentclinic.clinic.answers import (
    EXAMINE,
    NOT_SURE,
    NOT_WATCHED,
    UNCLEAR,
    Part,
    as_heard,
    matched,
    payload_of,
    with_additions,
    withheld,
    worded,
)
from agentclinic.clinic.doctor import Dialogue, History, turn_of
from agentclinic.clinic.payloads import NO_TRAITS, PatientPayload, PatientTraits, SilentSymptom
from agentclinic.clinic.prompts import Prompt, fill, joined, placed
from agentclinic.config import is_builtin_or_person
from agentclinic.models.base import MalformedError, Message, Model, Purpose, RefusedError, Reply, Request, reads_prompts
from agentclinic.results.turn import Effect, Exchange, Provenance, Turn, Usage

Simulator = Literal["grounded", "voiced", "free"]
_NOTES = {
    EXAMINE: "I cannot know that. The doctor would have to examine me or order a test.",
    UNCLEAR: "I do not understand the question. I ask the doctor to say it in another way.",
}
"""Set phrases as notes to a voiced patient: given the phrases themselves, it would take "you" to mean itself."""


class Patient:
    """Answers the doctor from the patient's script."""

    def __init__(
        self,
        case: Case,
        model: Model,
        prompt: Prompt,
        *,
        bias: str | None = None,
        traits: PatientTraits = NO_TRAITS,
        silent_symptom: SilentSymptom = "deny",
        simulator: Simulator = "free",
        dialogue: Dialogue = "transcript",
        suggestions: bool = True,
    ) -> None:
        self.model = model
        self._suggestions = suggestions
        self.history = History()
        self._spoken = History()
        """The chat with the model as it is sent again: of a grounded patient only what doctor and patient said, of a
        voiced one with the notes too. Nothing in it changes, so a prompt cache can reuse it."""
        self._case = case
        self._prompt = prompt
        self._silent: SilentSymptom = silent_symptom
        # The builtin patient speaks from the facts anyway, and what a person says is not checked.
        self._simulator: Simulator = "free" if is_builtin_or_person(model.name) else simulator
        self._dialogue = dialogue
        self._bias = bias
        self._traits = traits

    @property
    def controls_traits(self) -> bool:
        """Whether code decides what the traits do: a model that writes what it likes has them in its prompt."""
        return self._simulator != "free" or is_builtin_or_person(self.model.name)

    @cached_property
    def _by_id(self) -> dict[str, Fact]:
        return {f"f{place}": fact for place, fact in enumerate(self._case.patient_facts, start=1)}

    @cached_property
    def system_prompt(self) -> str:
        prompt, simulator, known = self._prompt, self._simulator, payload_of(self._case, "")
        silence = {"free": "silent", "grounded": "grounded"}.get(simulator)
        manner = grounded.manner_lines(known.manner) if simulator == "grounded" else ""
        parts = {
            "silence": prompt.text(f"{silence}_{self._silent}") if silence else "",
            "manner": fill(prompt.text("manner"), lines=manner) if manner else "",
            "caregiver": prompt.text("caregiver") if known.caregiver else "",
            "traits": "" if self.controls_traits else self._traits_text(),
            "bias": prompt.bias(self._bias),
        }
        opening = prompt.text("system_base" if simulator == "free" else f"{simulator}_system")
        return placed(opening, parts, patient=as_text(self._case.patient), facts=grounded.fact_lines(self._by_id))

    def _traits_text(self) -> str:
        """The patient's traits for a model that writes what it likes; a user's own prompt file need not have them."""
        prompt, levels = self._prompt.completed(), self._traits.levels
        lines = "\n".join(f"- {prompt.text(f'trait_{name}_{level}')}" for name, level in levels.items())
        return fill(prompt.text("traits"), lines=lines) if lines else ""

    async def answer(self, said: str, asked: tuple[Exchange, ...] = (), *, turn: int = 0) -> Turn:
        payload = payload_of(self._case, said, asked, self._silent, self._traits)
        if self._simulator == "free":
            reply = turn_of(await self._free(said, payload), turn=turn, role="patient")
        else:
            attempt = _Attempt(turn, self._simulator, matched(payload))
            reply = await self._ask(attempt, payload)
        self.history.add("Doctor", said)
        self.history.add("Patient", reply.text)
        return reply

    @cached_property
    def _shape(self) -> type[grounded.GroundedAnswer]:
        """The schema of a choice among this case's ids, built only if a model is asked to choose."""
        return grounded.shape_of(tuple(self._by_id))

    async def _free(self, said: str, payload: PatientPayload) -> Reply:
        messages = self._free_messages(said) if reads_prompts(self.model) else ()
        return await self.model.reply(Request(Purpose.PATIENT, messages, payload=payload))

    def _free_messages(self, said: str) -> tuple[Message, ...]:
        system = Message("system", self.system_prompt)
        if self._dialogue == "chat":
            return system, *self.history.messages("Patient", newest=said)
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), reply=said)
        return system, Message("user", user)

    async def _ask(self, attempt: _Attempt, payload: PatientPayload) -> Turn:
        """Ask the model, and again if its words cannot be said; if that fails too, code words the facts."""
        chooses = self._simulator == "grounded"
        newest = self._grounded_turn(attempt, payload) if chooses else self._voiced_turn(attempt, payload)
        messages = (Message("system", self.system_prompt), *self._spoken.messages("Patient", newest=newest))
        reply = await self._tried(attempt, payload, messages, chooses=chooses)
        # A choice is not sent again, nor what helped to make it.
        self._spoken.add("Doctor", self._grounded_text(payload.question) if chooses else newest)
        self._spoken.add("Patient", reply.text)
        return reply

    async def _tried(
        self, attempt: _Attempt, payload: PatientPayload, messages: tuple[Message, ...], *, chooses: bool
    ) -> Turn:
        schema = self._shape if chooses else None
        for _ in range(2):
            request = Request(Purpose.PATIENT, messages, schema=schema, described=chooses, payload=payload)
            try:
                reply = await self.model.reply(request)
            except (MalformedError, RefusedError) as error:
                return attempt.by_code(error)
            attempt.add(reply)
            words = reply.text
            if chooses:
                if not isinstance(reply.parsed, grounded.GroundedAnswer):  # a tool call in place of an answer
                    return attempt.by_code(MalformedError("no facts were chosen"))
                attempt.choose(reply.parsed, self._by_id, payload)
                words = reply.parsed.reply
            said = attempt.read(words, payload)
            if said is not None:
                return attempt.by_model(said, words)
            repair_prompt = fill(self._prompt.text(f"{self._simulator}_repair"), problem=attempt.problem)
            messages = (*messages, Message("assistant", reply.text or "(nothing)"), Message("user", repair_prompt))
        return attempt.by_code()

    def _voiced_turn(self, attempt: _Attempt, payload: PatientPayload) -> str:
        """The question with the parts that the matcher chose, for the model to say."""
        several = len(attempt.parts) > 1
        notes = dict.fromkeys(_NOTES.get(part.text, part.named if several else part.text) for part in attempt.parts)
        lines = "\n".join(f"- {note}" for note in notes)
        return fill(self._prompt.text("voiced_turn"), question=payload.question, lines=lines)

    def _grounded_turn(self, attempt: _Attempt, payload: PatientPayload) -> str:
        """The question with the facts that the matcher suggests and those kept back, for the model to choose."""
        by_path = {fact.path: name for name, fact in self._by_id.items()}
        asked_for = [part for part in attempt.parts if not part.disclosure.added]
        told = [path for part in asked_for for path in (*part.disclosure.paths, *_paths(part.disclosure.vague))]
        names = [by_path[path] for path in told if path in by_path]
        hint = fill(self._prompt.text("suggested" if names else "none_suggested"), facts=", ".join(names))
        held = {effect.path for part in attempt.parts for effect in part.disclosure.withheld}
        kept = ", ".join(name for name, fact in self._by_id.items() if fact.path in held or withheld(fact, payload))
        keep = fill(self._prompt.text("kept_back"), facts=kept) if kept else ""
        of_traits = self._trait_notes(attempt.parts, by_path) if payload.traits.any else ()
        return self._grounded_text(payload.question, joined(hint if self._suggestions else "", keep, *of_traits))

    def _trait_notes(self, parts: tuple[Part, ...], by_path: Mapping[str, str]) -> Iterator[str]:
        """What the patient's traits ask of this reply: what is said vaguely, asked back, or added."""
        prompt = self._prompt.completed()
        for part in parts:
            vague = set(_paths(part.disclosure.vague))
            for fact in part.facts:
                if fact.path in vague:
                    yield fill(prompt.text("said_vaguely"), fact=by_path[fact.path], words=fact.text)
            if part.disclosure.added:
                yield fill(prompt.text("also_said"), words=part.text)
            elif part.disclosure.provenance is Provenance.NOT_UNDERSTOOD and part.text != UNCLEAR:
                yield fill(prompt.text("not_understood"), words=part.text)

    def _grounded_text(self, question: str, suggested: str = "") -> str:
        return fill(self._prompt.text("grounded_turn"), question=question, suggested=suggested)


def _paths(effects: Iterable[Effect]) -> Iterator[str]:
    return (effect.path for effect in effects)


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

    def choose(self, given: grounded.GroundedAnswer, facts: Mapping[str, Fact], payload: PatientPayload) -> None:
        """Take a model's choice in place of the matcher's; what the patient's traits decide stays."""
        not_understood, rest = as_heard(payload)
        parts = grounded.chosen_parts(given, facts, rest) if rest.question else ()
        self.parts = with_additions((*not_understood, *parts), payload)
        held = {path for part in self.parts for path in _paths(part.disclosure.withheld)}
        chosen = (facts[name] for part in given.parts for name in part.facts if name in facts)
        self._kept_back = any(fact.path in held or withheld(fact, payload) for fact in chosen)

    def read(self, raw: str, payload: PatientPayload) -> str | None:
        """The model's own words, or None if they must not be used."""
        self._raw = raw
        said, slips = reply_checks.own_words(raw)
        self._slips += slips
        kept_back = [reply_checks.KEPT_BACK] if self._kept_back else []
        wrong = kept_back or reply_checks.problems(said, self._told(payload), payload.question)
        self._slips += [problem.kind for problem in wrong]
        self.problem = "; ".join(problem.message for problem in wrong)
        return None if wrong else said

    def _told(self, payload: PatientPayload) -> reply_checks.Told:
        """What the words may tell."""
        untold = [part for part in self.parts if not part.facts and part.disclosure.provenance in _SILENT]
        social = any(part.disclosure.provenance is Provenance.MANNER for part in self.parts)
        chosen = tuple(fact for part in self.parts for fact in part.facts)
        earlier = {path for exchange in payload.asked for part in exchange.disclosures for path in part.paths}
        return reply_checks.Told(
            facts=chosen,
            # The matcher's own wording withholds names of diseases, and the model has seen no more than that.
            words=(*(part.text for part in self.parts), *(payload.manner.values() if social else ())),
            before=tuple(fact for fact in payload.facts if fact.path in earlier),
            denied=tuple(part.about for part in untold),
            open=all(part.text in (NOT_SURE, NOT_WATCHED) for part in self.parts),
            silent=all(part in untold or _denied(part) for part in self.parts),
            kept=tuple(fact for fact in payload.facts if fact not in chosen and withheld(fact, payload)),
        )

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
