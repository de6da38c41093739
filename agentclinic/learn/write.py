"""Experiences from one encounter: ask a model, then take out whatever names the diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict

from agentclinic.cases.leaks import names_of
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact
from agentclinic.clinic.doctor import door_text
from agentclinic.clinic.judge import Judge, by_code
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.doctors.reference import chart_exchanges
from agentclinic.memory.experience import MOST, Experience, LearnerPayload, Written
from agentclinic.memory.store import Known, step_key
from agentclinic.models.base import MalformedError, Message, Model, Purpose, RefusedError, Request
from agentclinic.results.record import Record, Verdict
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.turn import Exchange, Turn, as_told, asked_and_answered
from agentclinic.vocabulary.compare import Relation
from agentclinic.vocabulary.disease_names import Names, disease_mentions
from agentclinic.vocabulary.text import content_words, sentences

_SPEAKERS = {"doctor": "Doctor", "patient": "Patient", "measurement": "Laboratory", "clinic": "Clinic"}
_MOST_MISSED = 60
"""Statements of the chart that the learner is shown: a generated chart can have hundreds, most of them normal."""
_SAID = 0.6
"""A statement counts as told, in replies without provenance, from this share of its content words in the dialogue."""


class Learned(BaseModel):
    """The result of one encounter: experiences, or an error."""

    model_config = ConfigDict(frozen=True)

    experiences: tuple[Experience, ...] = ()
    removed: Mapping[str, int] = {}
    """Experiences that were not kept, by reason."""
    usage: Mapping[str, Mapping[str, int | None]] = {}
    error: str | None = None
    """The kind of error, as in records."""
    message: str = ""


async def learn_from(record: Record, case: Case, model: Model, prompt: Prompt, judge: Judge) -> Learned:
    """Let a model write experiences, and keep those that do not give the diagnosis away."""
    reply = await model.reply(_request(record, case, prompt))
    written = reply.parsed.experiences if isinstance(reply.parsed, Written) else []
    kept: list[Experience] = []
    removed: Counter[str] = Counter()
    names = names_of(case)
    for each in written[:MOST]:
        cleaned = without_names(each.kept(), names)
        if cleaned is None:
            removed["named the diagnosis"] += 1
        elif (why := await _objection(cleaned, case, judge)) is not None:
            removed[why] += 1
        else:
            kept.append(cleaned)
    return Learned(experiences=tuple(kept), removed=removed)


def only_new(learned: Learned, known: Known) -> Learned:
    """What was learned, without what the store or the same encounter already says; adds to `known`."""
    new: list[Experience] = []
    removed = Counter(learned.removed)
    for each in learned.experiences:
        if _same_step(each, new) or not known.add(each):
            removed["said the same as another"] += 1
        else:
            new.append(each)
    return learned.model_copy(update={"experiences": tuple(new), "removed": dict(removed)})


def _same_step(experience: Experience, others: list[Experience]) -> bool:
    """Whether another experience of the encounter suggests the same step: small models vary only the pattern."""
    done = {step_key(other) for other in others} - {""}
    return step_key(experience) in done


def _request(record: Record, case: Case, prompt: Prompt) -> Request:
    turns = record.transcript or []
    missed = "\n".join(f"- {line}" for line in _lines(missed_facts(turns, case))) or "(nothing)"
    user = fill(
        prompt.text("user_prompt_template"),
        door=door_text(case.door),
        dialogue="\n".join(_spoken(turns)) or "(nothing was said)",
        diagnosis=diagnosis_of(record) or "(none: the turns ran out)",
        truth=case.diagnosis,
        missed=missed,
    )
    return Request(
        Purpose.LEARNER,
        (Message("system", prompt.text("system_base")), Message("user", user)),
        schema=Written,
        payload=LearnerPayload(
            case.door, _exchanges(turns), chart_exchanges(case), diagnosis_of(record) or "", case.diagnosis
        ),
    )


def _spoken(turns: list[Turn]) -> Iterator[str]:
    for turn in turns:
        if turn.role in _SPEAKERS:
            yield f"{_SPEAKERS[turn.role]}: {turn.text}"


def _exchanges(turns: list[Turn]) -> tuple[Exchange, ...]:
    return tuple(
        Exchange(action.kind, action.content, reply.text, as_told(reply.disclosures))
        for _, action, reply in asked_and_answered(turns)
        if reply and reply.role != "clinic"
    )


def missed_facts(turns: list[Turn], case: Case) -> list[Fact]:
    """What the chart held that the doctor was never told."""
    told = {path for turn in turns for disclosure in turn.disclosures for path in disclosure.paths}
    said = frozenset[str]().union(
        *(
            content_words(turn.text)
            for turn in turns
            if turn.role in ("patient", "measurement") and not turn.disclosures
        )
    )
    return [fact for fact in case.facts if fact.path not in told and not _is_said(fact, said)]


def _is_said(fact: Fact, said: frozenset[str]) -> bool:
    own = content_words(fact.text)
    return bool(own) and len(own & said) >= _SAID * len(own)


def _lines(facts: list[Fact]) -> Iterator[str]:
    """Statements with their headings; denials come last, because there are many and they say little."""
    for fact in sorted(facts, key=lambda fact: fact.denied)[:_MOST_MISSED]:
        where = "history" if fact.section in PATIENT_SECTIONS else ": ".join(fact.heads) or "examination"
        yield f"{where}: {fact.text}"


def without_names(experience: Experience, names: Names) -> Experience | None:
    """The experience without the sentences that name the diagnosis; None if too little is left."""
    observation, suggestion = (_cleaned(part, names) for part in (experience.observation, experience.suggestion))
    step = experience.step
    if step and next(names.find(step.what), None):
        step = None
    if not observation or not suggestion:
        return None
    return Experience(observation=observation, suggestion=suggestion, step=step)


def _cleaned(text: str, names: Names) -> str:
    return " ".join(sentence for sentence in sentences(text) if next(names.find(sentence), None) is None)


async def _objection(experience: Experience, case: Case, judge: Judge) -> str | None:
    """Why the experience is not kept: a disease named in it, or its text as a whole, is the diagnosis or may be.

    Code and the judge must both clear it. A list or a denial that mentions the diagnosis gives it away as well, so the
    judge is asked about whatever code does not object to. Only a disease must be readable; a whole text never is.
    """
    step = f" {experience.step.what}" if experience.step else ""
    text = f"{experience.observation} {experience.suggestion}{step}"
    said = dict.fromkeys(" ".join(mention.words) for mention in disease_mentions(text) if not mention.negated)
    for phrase in (*said, text):
        asked = JudgePayload(phrase, case.diagnosis, case.answer_key)
        if _gives_away(by_code(asked)):
            return "named the diagnosis"
        try:
            verdict = await judge.ask(asked)
        except (MalformedError, RefusedError):
            return "not cleared by the judge"
        if _gives_away(verdict):
            return "named the diagnosis"
        if verdict.correct is None and phrase != text:
            return "not cleared by the judge"
    return None


def _gives_away(verdict: Verdict) -> bool:
    return bool(verdict.correct or verdict.correct_lenient or verdict.relation == Relation.BROADER)
