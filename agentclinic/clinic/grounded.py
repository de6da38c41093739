"""The grounded patient: what the model is shown of the case, the form of its answer, and the choice as parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from agentclinic.cases.matcher import Asked, Topic, asked_of_patient
from agentclinic.cases.matcher.statements import statement
from agentclinic.cases.matcher.talk import Talk, small_talk
from agentclinic.cases.model import Fact
from agentclinic.clinic.answers import MOST_FACTS, Part, answer_parts, withheld
from agentclinic.clinic.payloads import PatientPayload
from agentclinic.models.structured import at_most, choosing
from agentclinic.results.turn import Provenance
from agentclinic.vocabulary import lexicon

AnswerKind = Literal["answer", "denial", "unknown", "not_for_the_patient", "social"]
LONGEST_REPLY = 600
"""Characters a patient may say at once, about six sentences."""
LONGEST_ASKED = 80
"""Characters of the name of what was asked, in the record."""
MOST_PARTS = 8
"""Things asked at once: our longest labeled question lists nine, and the last of these are near synonyms."""


class GroundedPart(BaseModel):
    """One thing the doctor asked, and the facts that answer it."""

    model_config = ConfigDict(extra="forbid")

    asked: str = Field(json_schema_extra=at_most(LONGEST_ASKED))
    facts: list[str] = Field(max_length=MOST_FACTS)
    kind: AnswerKind


class GroundedAnswer(BaseModel):
    """What was asked, with the facts that answer it, and then the words."""

    model_config = ConfigDict(extra="forbid")

    parts: list[GroundedPart] = Field(max_length=MOST_PARTS)
    reply: str = Field(max_length=LONGEST_REPLY)


def shape_of(ids: tuple[str, ...]) -> type[GroundedAnswer]:
    """The form of an answer whose parts choose among these ids."""
    part: Any = choosing(GroundedPart, "facts", ids, MOST_FACTS)
    parts: Any = (list[part], Field(max_length=MOST_PARTS))
    answer = create_model(GroundedAnswer.__name__, __base__=GroundedAnswer, __doc__=GroundedAnswer.__doc__, parts=parts)
    return cast("type[GroundedAnswer]", answer)


def fact_lines(facts: Mapping[str, Fact]) -> str:
    """The facts under their headings, each with its id, how freely it is told, and the patient's own words for it."""
    lines = []
    for heads, below in groupby(facts.items(), key=lambda entry: entry[1].heads):
        lines += [f"{' / '.join(heads)}:", *(f"{name}: {fact.text}{_marks(fact)}" for name, fact in below)]
    return "\n".join(lines)


def _marks(fact: Fact) -> str:
    marks = {
        "only in private": fact.private,
        "only if asked directly": fact.told == "if pressed",
        "tell it to an open question": fact.told == "volunteered",
        "hesitantly": fact.sensitive,
    }
    how = ", ".join(mark for mark, holds in marks.items() if holds)
    return (f" [{how}]" if how else "") + (f' "{fact.says}"' if fact.says else "")


_ABOUT = {
    "manner": "You come across",
    "greet": "When greeted",
    "idea": "Asked what it might be",
    "worry": "Asked what worries you",
    "hope": "Asked what you hope for",
    "feel": "Asked how you feel about it",
}


def manner_lines(manner: Mapping[str, str]) -> str:
    """How the patient comes across, and what they say about themselves, from the annotation `Manner`."""
    return "\n".join(f"- {about}: {manner[kind]}" for kind, about in _ABOUT.items() if manner.get(kind))


def chosen_parts(given: GroundedAnswer, facts: Mapping[str, Fact], payload: PatientPayload) -> tuple[Part, ...]:
    """A model's choice as the parts of an answer, one for each of its own."""
    asked = given.parts or [GroundedPart(asked=payload.question, facts=[], kind="unknown")]
    return tuple(part for one in asked for part in _chosen(one, facts, payload, alone=len(asked) == 1))


def _chosen(
    given: GroundedPart, facts: Mapping[str, Fact], payload: PatientPayload, *, alone: bool
) -> tuple[Part, ...]:
    told = tuple(facts[name] for name in dict.fromkeys(given.facts) if name in facts)
    name = (given.asked.strip() or payload.question.strip())[:LONGEST_ASKED]
    topic = Topic(name, Asked.SYMPTOM, told) if told else _untold(given, name, payload, alone=alone)
    return tuple(
        replace(part, disclosure=replace(part.disclosure, topic=name), about=part.about or name)
        for part in answer_parts([topic], payload)
    )


def _names(asked: str, fact: Fact) -> bool:
    """Whether what was asked is what a fact tells."""
    return bool(lexicon.named(asked).names & statement(fact).main & ~lexicon.roots())


_DENIABLE = (Asked.SYMPTOM, Asked.BACKGROUND, Asked.FAMILY)


def _untold(given: GroundedPart, name: str, payload: PatientPayload, *, alone: bool) -> Topic:
    """What was asked and no fact answers, as the builtin patient would read it, so that denials sound natural."""
    read: list[Topic] = [*(asked_of_patient(payload.question, ()) if alone else ()), *asked_of_patient(name, ())]
    match given.kind:
        case "social":
            kinds = small_talk(name).kinds or small_talk(payload.question).kinds
            return Topic(kinds[0] if kinds else Talk.EXPLAINED, Asked.TALK, ())
        case "not_for_the_patient":
            return Topic(name, Asked.RESULT, ())
        case "unknown":
            details = [topic for topic in read if topic.kind is Asked.DETAIL]
            return details[0] if details else Topic(name, Asked.DETAIL, ())
    if kept := tuple(fact for fact in payload.facts if _names(name, fact) and withheld(fact, payload)):
        return Topic(name, Asked.SYMPTOM, kept)  # what is kept back is not denied either
    for topic in (topic for topic in read if topic.kind in _DENIABLE):
        (part,) = answer_parts([topic], payload)
        if part.disclosure.provenance is Provenance.DEFAULT_NEGATIVE or topic.concepts & payload.undeniable:
            return topic
    return Topic(name, Asked.SYMPTOM, ())
