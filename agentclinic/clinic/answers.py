"""What the patient answers: which facts answer a question, and how code words them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from agentclinic.cases.matcher import Asked, Topic, asked_of_patient
from agentclinic.cases.matcher.asking import stems
from agentclinic.cases.matcher.spoken import asked_directly
from agentclinic.cases.matcher.statements import statement
from agentclinic.cases.matcher.talk import Talk, asks_for_privacy
from agentclinic.cases.model import Case, Fact, Facts, Section, age_in_years, sex, speaks_for_self
from agentclinic.clinic import traits
from agentclinic.clinic.first_person import caregiver_voice, own_voice
from agentclinic.clinic.payloads import NO_TRAITS, PatientPayload, PatientTraits, SilentSymptom
from agentclinic.clinic.short_answers import SHORT, short_no
from agentclinic.clinic.shown import shown_by_examination
from agentclinic.results.turn import Disclosure, Effect, Exchange, Provenance
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.jargon import Mention
from agentclinic.vocabulary.text import fold

MOST_FACTS = 6
"""More facts at once would be a recitation, not an answer; the doctor can ask for the rest."""
MOST_AT_ONCE = 4
"""Facts that a patient tells unasked: "tell me more"."""
NOT_NOTICED = "No, I haven't noticed that."
NONE_OF_THOSE = "No, none of those."
OTHERWISE_NO = "Otherwise, nothing like that."
NOTHING_LIKE_THAT = "No, nothing like that."
NOT_SURE = "I'm not sure."
NOT_WATCHED = "Maybe, I'm not sure."
REST_NOT_WATCHED = "As for the rest, maybe, I'm not sure."
CANNOT_SAY = "I couldn't really say."
IS_IT_IMPORTANT = "Is that important, doctor?"
REST = "About the rest I couldn't say."
_CANNOT_SAY = {
    "timing": "I couldn't say exactly when.",
    "frequency": "I couldn't say how often.",
    "course": "I couldn't say what makes it better or worse.",
    "character": "I can't describe it any better than that.",
    "spread": "I couldn't say whether it goes anywhere else.",
    **{
        which: f"I couldn't say {which}."
        for which in ("how long", "how often", "how far", "how big", "how soon", "which", "where", "when", "why")
    },
    **dict.fromkeys(("severity", "how many", "how much"), "I couldn't put a number on it."),
    "how old": "I'd have to work that out.",
    "meals": "I don't really keep track of meals.",
    "personal": IS_IT_IMPORTANT,
}
"""What is said of an aspect of a complaint, or of a number or name, that the chart does not mention."""
UNCLEAR = "I'm not sure what you mean. Could you ask in another way?"
EXAMINE = "You would have to examine or test that yourself, doctor."
NO_FAMILY = "I don't know about my family history."
NOBODY = ("Nobody in my family that I know of.", "Nobody in the family that I know of.")
NOTHING_ELSE_IN_FAMILY = "Nothing else runs in the family, as far as I know."
IN_FAMILY = " in the family that I know of."
AS_FAR_AS = ", as far as I can tell."
NOTHING_MORE = "I think that's everything."
NOT_NOW = "I'd rather not go into that right now."
REST_NOT_NOW = "As for the rest, I'd rather not go into that right now."
NOTHING_TO_TELL = "There isn't much to tell there."
FORGOTTEN = "I can't think of it right now."
_VAGUE = (CANNOT_SAY, _CANNOT_SAY["how old"], IS_IT_IMPORTANT, NOTHING_TO_TELL)
"""Left out beside other answers, where it would not be clear what it is about."""
NO_DRUGS = ("No, I don't take anything like that.", NOTHING_LIKE_THAT)
_MAY_NAME_DISEASES = frozenset({Section.PAST, Section.DRUGS, Section.FAMILY, Section.ALLERGIES})
_TALK: Mapping[str, str] = {
    Talk.PRIVACY: "That's fine.",
    Talk.IDEA: "I don't know. I was hoping you could tell me.",
    Talk.WORRY: "I just want to know what's wrong.",
    Talk.HOPE: "I'd just like to find out what this is.",
    Talk.FEEL: "I'm managing.",
    Talk.CONSENT: "That's fine.",
    Talk.READY: "No, not right now.",
    Talk.GREET: "Hello, doctor.",
    Talk.THANKS: "You're welcome.",
    Talk.EXPLAINED: "All right, doctor.",
}
"""What a patient says where the case gives no words of its own."""
# What is said of the background if the chart is silent: the first pattern that the question matches. In each line the
# patient's own words come first, then a caregiver's.
_NOTHING: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "family history": (("", *NOBODY),),
    "allergies": (("", "No allergies that I know of.", "No allergies that we know of."),),
    "drugs": (("", *NO_DRUGS),),
    "past history": (
        (r"surger|operat", "No, I've never had an operation.", "No, no operations."),
        (r"hospital", "No, I've never been in the hospital.", "No, never in the hospital."),
        ("", "No, nothing like that.", "No, nothing like that."),
    ),
    "social history": (
        (r"smok|tobacco|cigar|vap", "No, I don't smoke.", "No, nobody smokes."),
        (r"alcohol|\bdrink", "No, I don't drink.", "No, no alcohol."),
        (r"\bdrugs?\b|substance|illicit|recreation", "No, I don't use drugs.", "No, no drugs."),
        (r"travel", "No, I haven't been anywhere.", "No, we haven't been anywhere."),
        (r"\b(?:pets?|animals?)\b", "No, no animals.", "No, no animals."),
    ),
}


_SET_PHRASES = (
    *(
        NOT_NOTICED,
        NONE_OF_THOSE,
        OTHERWISE_NO,
        NOTHING_LIKE_THAT,
        NOT_SURE,
        NOT_WATCHED,
        REST_NOT_WATCHED,
        CANNOT_SAY,
        IS_IT_IMPORTANT,
        UNCLEAR,
        EXAMINE,
        REST,
    ),
    *(
        NO_FAMILY,
        NOTHING_ELSE_IN_FAMILY,
        IN_FAMILY,
        NOTHING_MORE,
        NOT_NOW,
        REST_NOT_NOW,
        NOTHING_TO_TELL,
        FORGOTTEN,
        "I'm not sure what you mean by",
        ", maybe, I'm not sure.",
        AS_FAR_AS,
        "You mean",
    ),
    *_CANNOT_SAY.values(),
    *_TALK.values(),
    *sorted(SHORT),
    *(sentence for lines in _NOTHING.values() for line in lines for sentence in line[1:]),
)
SET_PHRASES = tuple(sorted(_SET_PHRASES, key=len, reverse=True))
"""Everything the patient says that is not in the case; it reveals nothing about it. The longest come first."""


@dataclass(frozen=True)
class Part:
    """The answer to one part of a question."""

    disclosure: Disclosure
    facts: tuple[Fact, ...]
    text: str
    """The answer in code's words."""
    about: str = ""
    """For a plain denial, what it denies."""
    short: str = ""
    """For a plain denial, how it is said beside other answers if it has no name: "No, I'm not."."""
    kept: bool = False
    """Whether there are facts that the patient keeps back."""

    @property
    def named(self) -> str:
        """The answer by itself, so that a plain denial says what it denies."""
        plain = self.text in _PLAIN_DENIALS and 0 < len(self.about) <= LONGEST_NAME
        return f"No {self.about}." if plain else self.text


def payload_of(
    case: Case,
    question: str,
    asked: tuple[Exchange, ...] = (),
    silent: SilentSymptom = "deny",
    of_patient: PatientTraits = NO_TRAITS,
) -> PatientPayload:
    """What the patient of a case knows when asked a question."""
    speaker = case.annotations.get("speaker")
    manner = case.annotations.get("Manner")
    return PatientPayload(
        case.door,
        case.patient_facts,
        question,
        asked,
        silent,
        caregiver=speaker not in (None, "patient") or not speaks_for_self(case.door.demographics),
        manner=manner if isinstance(manner, dict) else {},
        undeniable=shown_by_examination(case.exam_facts),
        traits=of_patient,
    )


def matched(payload: PatientPayload) -> tuple[Part, ...]:
    """The answer to each part of the question, from the facts our matcher finds; without any, as configured."""
    if not payload.traits.any:
        return answer_parts(asked_of_patient(payload.question, payload.facts), payload)
    not_understood, rest = as_heard(payload)
    topics = asked_of_patient(rest.question, rest.facts) if rest.question else []
    if not_understood:  # what is left of a question tells no more than the whole, and is not asked back as well
        meant = {fact.path for topic in asked_of_patient(payload.question, payload.facts) for fact in topic.facts}
        topics = [topic for topic in topics if topic.kind is not Asked.UNCLEAR]
        topics = [topic for topic in topics if all(fact.path in meant for fact in topic.facts)]
    return with_additions((*not_understood, *answer_parts(topics, rest)), payload)


def as_heard(payload: PatientPayload) -> tuple[tuple[Part, ...], PatientPayload]:
    """What the patient says to the words it does not understand, and the payload with the rest of the question."""
    heard = traits.heard(payload)
    rest = payload if heard.understood == payload.question else replace(payload, question=heard.understood)
    if not heard.unknown and not heard.taken:
        return (), rest
    parts = [_misheard(mention, instead, payload) for mention, instead in heard.taken]
    for mention in heard.unknown:
        asks_back = f"I'm not sure what you mean by “{mention.word}”."
        parts.append(Part(Disclosure(mention.word, Provenance.NOT_UNDERSTOOD), (), asks_back))
    told = {path for part in parts for path in part.disclosure.paths}
    if rest.question:
        told |= {fact.path for topic in asked_of_patient(rest.question, rest.facts) for fact in topic.facts}
    meant = (fact for topic in asked_of_patient(payload.question, payload.facts) for fact in topic.facts)
    reason = traits.MISUNDERSTOOD if heard.taken else traits.WORD_UNKNOWN
    lost = dict.fromkeys(
        Effect(fact.path, reason) for fact in meant if fact.path not in told and not withheld(fact, payload)
    )
    words = (Effect(f"{traits.WORD}/{part.disclosure.topic}", reason) for part in parts)
    first = replace(parts[0], disclosure=replace(parts[0].disclosure, withheld=tuple(lost) or tuple(words)))
    return (first, *parts[1:]), rest


def _misheard(mention: Mention, instead: str, payload: PatientPayload) -> Part:
    """The answer to a question of which a word was taken for something else: facts about that, and never a denial."""
    other = replace(payload, question=instead)
    found = [topic for topic in asked_of_patient(instead, payload.facts) if topic.facts]
    parts = [part for part in answer_parts(found, other) if part.facts]
    text = " ".join([f"You mean {mention.term.taken_for}?", *(part.text for part in parts)])
    paths = tuple(path for part in parts for path in part.disclosure.paths)
    vague = tuple(effect for part in parts for effect in part.disclosure.vague)
    source = Provenance.CHART if parts else Provenance.NOT_UNDERSTOOD
    told = tuple(fact for part in parts for fact in part.facts)
    return Part(Disclosure(mention.word, source, paths, vague=vague), told, text)


def with_additions(parts: tuple[Part, ...], payload: PatientPayload) -> tuple[Part, ...]:
    """The parts of an answer, and what a talkative patient adds to them."""
    told = _told(payload) | {path for part in parts for path in part.disclosure.paths}
    voice = _voice(payload)
    added = []
    for one in traits.additions(payload, told):
        if one.fact is None:
            talk = Disclosure("feelings", Provenance.MANNER, added=(one.effect,))
            added.append(Part(talk, (), one.text))
        else:
            name = one.fact.heads[-1] if one.fact.heads else "social history"
            disclosure = Disclosure(name, Provenance.CHART, (one.fact.path,), added=(one.effect,))
            added.append(Part(disclosure, (one.fact,), _said_of(one.fact, voice)))
    return (*parts, *added)


def answer_parts(topics: Iterable[Topic], payload: PatientPayload) -> tuple[Part, ...]:
    """The answers to topics; no fact is mentioned twice, and none again unless it is the best answer to a part."""
    voice = _voice(payload)
    parts: list[Part] = []
    topics = tuple(topics)
    takes_some = any(fact.section is Section.DRUGS and not fact.denied for topic in topics for fact in topic.facts)
    told = _told(payload)
    news = any(fact.path not in told and not withheld(fact, payload) for topic in topics for fact in topic.facts)
    seen: set[str] = set()
    for topic in topics:
        again = topic.kind is Asked.OPENING and all(fact.path in told for fact in topic.facts)
        asked_for = _more(topic, payload) if again or topic.kind is Asked.MORE else topic.facts
        open_ones = tuple(fact for fact in asked_for if not withheld(fact, payload))
        nearest = {fact.path for fact in topic.facts[:1]}
        fresh = any(fact.path not in told for fact in open_ones)
        known = {fact.path for fact in open_ones if fact.path in told} if news and (topic.direct or fresh) else set()
        known -= nearest if topic.direct & nearest or fresh else set()
        facts = [fact for fact in _distinct(open_ones) if fact.path not in seen | known][:MOST_FACTS]
        if open_ones and not facts:
            continue
        paths = _same_wording(open_ones, facts)
        seen.update(paths)
        shaped = _Shaped(facts, tuple(facts))
        if payload.traits.any:
            shaped = _shaped(facts, topic, payload)
            facts, paths = shaped.said, _same_wording(open_ones, shaped.exact)
        if shaped.withheld and not facts:
            text, provenance = _kept_back(shaped.withheld), Provenance.UNAVAILABLE
        elif facts:
            text, provenance = _tell(topic, facts, voice), Provenance.CHART
        elif asked_for:
            wanted = any(fact.private and _asked_for(fact, payload.question) for fact in asked_for)
            text, provenance = NOT_NOW if wanted else CANNOT_SAY, Provenance.UNAVAILABLE
        else:
            text, provenance = _silence(topic, payload)
            if takes_some and text in NO_DRUGS:
                text = NOTHING_LIKE_THAT
        disclosure = Disclosure(topic.name, provenance, paths, shaped.withheld, shaped.vague)
        about = topic.words if topic.kind in (Asked.SYMPTOM, Asked.FAMILY) else ""
        kept = bool(asked_for) and not facts
        parts.append(Part(disclosure, tuple(facts), text, about, short_no(topic.asked), kept))
    return tuple(_without_denial_of_kept(_without_false_denial_of_kin(parts, payload, told)))


def _without_denial_of_kept(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts. Beside something kept back, which "nothing like that" would deny, only what has a name is denied."""
    parts = tuple(parts)
    any_kept = any(one.kept for one in parts)
    for part in parts:
        if part.text not in _PLAIN_DENIALS or not any_kept:
            yield part
        elif part.named != part.text:
            yield replace(part, text=part.named)
        else:
            unknown = replace(part.disclosure, provenance=Provenance.UNAVAILABLE)
            yield replace(part, disclosure=unknown, text=part.short)


def _without_false_denial_of_kin(parts: Sequence[Part], payload: PatientPayload, told: Set[str]) -> Iterator[Part]:
    """The parts. If the chart says more about relatives, only what was asked is denied, and not that there is more."""
    if not any(part.text in NOBODY for part in parts):
        yield from parts
        return
    now = told | {path for part in parts for path in part.disclosure.paths}
    of_family = [fact for fact in payload.facts if fact.section is Section.FAMILY and not fact.denied]
    some = any(fact.section is Section.FAMILY for part in parts for fact in part.facts)
    untold = [fact for fact in of_family if fact.path not in now]
    for part in parts:
        denies_all = part.text in NOBODY and some and bool(untold)
        if denies_all and part.about and not any(_asked_for(fact, part.about) for fact in untold):
            yield replace(part, text=f"No {part.about}{IN_FAMILY}")
        elif denies_all:
            unknown = replace(part.disclosure, provenance=Provenance.UNAVAILABLE)
            yield replace(part, disclosure=unknown, text="")
        else:
            yield part


def _same_wording(facts: Iterable[Fact], told: Iterable[Fact]) -> tuple[str, ...]:
    """The paths of the facts that are told by telling some of them."""
    same = {_wording(fact) for fact in told}
    return tuple(fact.path for fact in facts if _wording(fact) in same)


class _Shaped(NamedTuple):
    """Facts as the patient's traits let them be told."""

    said: list[Fact]
    """In the words that are used for them."""
    exact: tuple[Fact, ...]
    withheld: tuple[Effect, ...] = ()
    vague: tuple[Effect, ...] = ()


def _shaped(facts: Sequence[Fact], topic: Topic, payload: PatientPayload) -> _Shaped:
    said, exact, kept, vague = list[Fact](), list[Fact](), list[Effect](), list[Effect]()
    opening = topic.kind in (Asked.OPENING, Asked.MORE)
    broad = opening or topic.kind in (Asked.BACKGROUND, Asked.FAMILY)
    for fact in facts:
        direct = (fact.path in topic.direct and not broad) or _asked_for(fact, payload.question)
        treatment = traits.treated(fact, payload, direct=direct, opening=opening)
        if treatment is None:
            exact.append(fact)
            said.append(fact)
        elif treatment.vague:
            vague.append(treatment.effect)
            said.append(replace(fact, text=treatment.vague, says=treatment.vague))
        else:
            kept.append(treatment.effect)
    return _Shaped(said, tuple(exact), tuple(kept), tuple(vague))


def _kept_back(withheld: Sequence[Effect]) -> str:
    """What is said where everything that was asked for is kept back."""
    reasons = {effect.reason for effect in withheld}
    if traits.NOT_RECALLED in reasons:
        return FORGOTTEN
    return NOT_NOW if traits.RELUCTANT in reasons else CANNOT_SAY


def _more(topic: Topic, payload: PatientPayload) -> tuple[Fact, ...]:
    """What the patient tells next: what was asked for, or else the next part of the story."""
    told = _told(payload)
    asked_for = tuple(fact for fact in topic.facts if fact.path not in told)
    if asked_for:
        return asked_for
    of_story = (Section.SYMPTOMS,) if topic.name == "other symptoms" else (Section.HISTORY, Section.SYMPTOMS)
    story = [
        fact
        for fact in payload.facts
        if (fact.told == "volunteered" or (fact.told == "if asked" and fact.section in of_story and not fact.denied))
        and fact.path not in told
        and not withheld(fact, payload)
    ]
    return tuple(sorted(story, key=lambda fact: (not fact.private, fact.told != "volunteered")))[:MOST_AT_ONCE]


def _told(payload: PatientPayload) -> frozenset[str]:
    """The facts told in earlier replies."""
    return frozenset([path for exchange in payload.asked for part in exchange.disclosures for path in part.paths])


def _asked_for(fact: Fact, question: str) -> bool:
    """Whether a question names what a fact tells."""
    told = statement(fact)
    named = (told.main | told.places) & lexicon.named(question).names & ~lexicon.roots()
    return bool(named or (told.stems | stems(fact.says or "")) & stems(question))


def withheld(fact: Fact, payload: PatientPayload) -> bool:
    """Whether the patient keeps a fact back: for want of privacy, or because no one pressed for it."""
    if not fact.private and fact.told != "if pressed":
        return False
    earlier = [exchange.content for exchange in payload.asked if exchange.kind == "question"]
    if fact.private and not any(map(asks_for_privacy, (payload.question, *earlier))):
        return True
    if fact.told != "if pressed":
        return False
    asked = lexicon.named(payload.question)
    told = statement(fact)
    # A complaint is also named by what it is a kind of; "lifestyle" does not name drinking.
    wider = told.named.closed & lexicon.of_types("symptom") & ~lexicon.roots()
    named = (told.main | wider) & asked.names or fact.path in asked_directly(payload.question, Facts.of(payload.facts))
    again = any(fact in topic.facts for said in earlier for topic in asked_of_patient(said, payload.facts))
    return not (named or again)


def worded(parts: Sequence[Part]) -> str:
    """The parts as one reply: each thing said once, and plain denials together."""
    if added := [part for part in parts if part.disclosure.added]:
        asked_for = [part for part in parts if not part.disclosure.added]
        return _joined([worded(asked_for), *(part.text for part in added)])
    if any(part.facts for part in parts):
        parts = [part if part.about or not part.short else replace(part, text=part.short) for part in parts]
    parts = _kin_together(parts)
    denied = [part for part in parts if part.text in _PLAIN_DENIALS]
    said = list(dict.fromkeys(part.text for part in parts if part.text and part.text not in _PLAIN_DENIALS))
    of_family = any(fact.section is Section.FAMILY for part in parts for fact in part.facts)
    if of_family and not set(NOBODY).isdisjoint(said):
        said = [*(text for text in said if text not in NOBODY), NOTHING_ELSE_IN_FAMILY]
    if NOT_WATCHED in said and (len(said) > 1 or denied):
        said.remove(NOT_WATCHED)
        said.append(_unsure([part.about for part in parts if part.text == NOT_WATCHED]))
    if NOT_NOW in said and (len(said) > 1 or denied):
        said[said.index(NOT_NOW)] = REST_NOT_NOW
        said.sort(key=REST_NOT_NOW.__eq__)
    for vague in _VAGUE:
        if (len(said) > 1 or denied) and vague in said:
            said.remove(vague)
    if denied and all(part.disclosure.provenance is Provenance.DEFAULT_NEGATIVE for part in parts) and said:
        return NONE_OF_THOSE
    if denied and not any(part.facts for part in parts):
        return _joined([_denial(denied, alone=True), *said])
    if denied:
        denial = _denial(denied, alone=not said)
        if denial != OTHERWISE_NO or not {REST_NOT_WATCHED, "No, nothing."} & set(said):
            manner = {part.text for part in parts if part.disclosure.provenance is Provenance.MANNER}
            said = [*(text for text in said if text not in manner), denial, *(text for text in said if text in manner)]
    return _joined(said)


def _kin_together(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts, with what is denied of relatives by name in one sentence."""
    named = [part for part in parts if part.text == f"No {part.about}{IN_FAMILY}"]
    if len(named) < 2:
        return parts
    text = f"No {_listed([part.about for part in named])}{IN_FAMILY}"
    return [replace(part, text=text if part is named[0] else "") if part in named else part for part in parts]


def _denial(denied: Sequence[Part], *, alone: bool) -> str:
    names = list(dict.fromkeys(part.about for part in denied))
    if alone:
        return denied[0].text if len(denied) == 1 else NONE_OF_THOSE
    if not all(names) or max(map(len, names)) > LONGEST_NAME:
        return OTHERWISE_NO
    return f"No {_listed(names)}."


def _unsure(names: Sequence[str]) -> str:
    if not all(names) or max(map(len, names)) > LONGEST_NAME:
        return REST_NOT_WATCHED
    named = _listed(list(dict.fromkeys(names)))
    return f"{named[:1].upper()}{named[1:]}, maybe, I'm not sure."


_PLAIN_DENIALS = (NOT_NOTICED, NOTHING_LIKE_THAT)
LONGEST_NAME = 40
"""Characters of something that is denied by name; longer ones are clauses."""


def _listed(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_NO = re.compile(r"No, (?=(\w))")


def _joined(texts: Iterable[str]) -> str:
    """Sentences in a row; "No," is said once, not before each denial."""
    said: list[str] = []
    denying = False
    for sentence in dict.fromkeys(sentence for text in texts for sentence in _SENTENCE.split(text)):
        no = _NO.match(sentence)
        if no and denying and sentence not in SHORT:
            said.append(f"{no[1].upper()}{sentence[no.end() + 1 :]}")
        else:
            said.append(sentence)
        denying = denying or bool(no)
    return " ".join(said)


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def _distinct(facts: tuple[Fact, ...]) -> list[Fact]:
    """Facts in order, without repeated wordings: charts say the same thing in several sections."""
    return list({_wording(fact): fact for fact in reversed(facts)}.values())[::-1]


def _wording(fact: Fact) -> str:
    return fold(fact.says or fact.text).strip(" .")


def _tell(topic: Topic, facts: list[Fact], voice: Callable[[Fact, str], str]) -> str:
    text = _joined(_said_of(fact, voice) for fact in facts)
    denied = topic.kind is Asked.SYMPTOM and all(fact.denied and not fact.says for fact in facts)
    return f"No. {text}" if denied and not text.startswith("No ") else text


def _said_of(fact: Fact, voice: Callable[[Fact, str], str]) -> str:
    return fact.says or _sentence(voice(fact, without_disease(fact)))


def own_words(case: Case, fact: Fact) -> str:
    """How the patient of a case says a fact, in code's words where the author gives none."""
    return _said_of(fact, _voice(payload_of(case, "")))


def _silence(topic: Topic, payload: PatientPayload) -> tuple[str, Provenance]:
    match topic.kind:
        case Asked.TALK:
            return payload.manner.get(topic.name) or _TALK[topic.name], Provenance.MANNER
        case Asked.RESULT:
            return EXAMINE, Provenance.UNAVAILABLE
        case Asked.UNCLEAR:
            asks_back = f"I'm not sure what you mean by “{topic.words}”." if topic.words else UNCLEAR
            return asks_back, Provenance.NOT_UNDERSTOOD
        case Asked.MORE | Asked.OPENING:
            return NOTHING_MORE, Provenance.UNAVAILABLE
        case Asked.REST:
            return REST, Provenance.UNAVAILABLE
        case Asked.DETAIL if topic.words:
            return _how_it_is(topic, payload)
        case Asked.DETAIL:
            return _CANNOT_SAY.get(topic.name, CANNOT_SAY), Provenance.UNAVAILABLE
    if payload.silent_symptom != "deny":
        return NO_FAMILY if topic.kind is Asked.FAMILY else NOT_SURE, Provenance.UNAVAILABLE
    if topic.kind is Asked.SYMPTOM:
        if topic.concepts & payload.undeniable:
            return NOT_WATCHED, Provenance.UNAVAILABLE
        felt = topic.concepts & lexicon.of_types("symptom")
        return NOT_NOTICED if felt else NOTHING_LIKE_THAT, Provenance.DEFAULT_NEGATIVE
    known = [
        caregivers if payload.caregiver else own
        for pattern, own, caregivers in _NOTHING.get(topic.name, ())
        if re.search(pattern, topic.words, re.IGNORECASE)
    ]
    if not known:
        return NOTHING_TO_TELL if topic.name == "social history" else NOT_SURE, Provenance.UNAVAILABLE
    several = topic.name == "social history" and len(known) > 1
    return NOTHING_LIKE_THAT if several else known[0], Provenance.DEFAULT_NEGATIVE


def _how_it_is(topic: Topic, payload: PatientPayload) -> tuple[str, Provenance]:
    """What is said of something of the body that the chart does not mention."""
    if payload.silent_symptom != "deny" or topic.concepts & payload.undeniable:
        return NOT_WATCHED, Provenance.UNAVAILABLE
    whose = "The" if payload.caregiver else "My"
    is_fine = "are fine" if topic.words.endswith("s") else "is fine"
    return f"{whose} {topic.words} {is_fine}{AS_FAR_AS}", Provenance.DEFAULT_NEGATIVE


@lru_cache(maxsize=1)
def _disease_names() -> dict[str, list[str]]:
    """All names of diseases, the longest first, by the words that a text with one of them has: its first."""
    by_word: dict[str, list[str]] = {}
    names = {name for d in knowledge().diseases.values() for name in (d.name, *d.synonyms)}
    for name in sorted(names, key=len, reverse=True):
        first = _WORD.findall(name.lower().replace("'", ""))[0].removesuffix("s")
        for word in (first, f"{first}s"):
            by_word.setdefault(word, []).append(name)
    return by_word


@lru_cache(maxsize=1024)
def _disease_pattern(*first: str) -> re.Pattern[str]:
    """Matches the names of diseases that begin with one of these words."""
    names = dict.fromkeys(name for word in first for name in _disease_names()[word])
    patterns = [_name_pattern(name) for name in sorted(names, key=len, reverse=True)]
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")


_WORD = re.compile(r"\w+")


def _name_pattern(name: str) -> str:
    """A name in any case, with or without possessives and hyphens; an abbreviation exactly as written."""
    if name.isupper():
        return re.escape(name)
    stems = (re.escape(word.removesuffix("s")) for word in re.split(r"[\s-]+", name.replace("'", "")))
    return "(?i:" + r"(?:['’]?s)?[\s-]+".join(stems) + "(?:['’]?s)?)"


_A_CONDITION = re.compile(r"\ban? a condition\b", re.IGNORECASE)
# "my old a condition", after a name was withheld, becomes "my old condition".
_HIS_CONDITION = re.compile(
    r"\b((?:my|your|his|her|their|the|this)(?: (?:old|known|usual|chronic|previous|past))?) a condition\b",
    re.IGNORECASE,
)


def without_disease(fact: Fact) -> str:
    """The fact with the names of all known diseases withheld, unless it is past, drug or family history or an allergy.

    All names alike: what is withheld must not depend on the true diagnosis.
    """
    first = sorted(_disease_names().keys() & set(_WORD.findall(fact.text.lower())))
    if fact.section in _MAY_NAME_DISEASES or not any(_disease_pattern(word).search(fact.text) for word in first):
        return fact.text
    withheld = _disease_pattern(*first).sub("a condition", fact.text)
    withheld = _A_CONDITION.sub("a condition", withheld)
    return _HIS_CONDITION.sub(r"\1 condition", withheld)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".;,")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _voice(payload: PatientPayload) -> Callable[[Fact, str], str]:
    """Who speaks: the patient, or a caregiver who says "my daughter"."""
    if not payload.caregiver:
        return lambda fact, text: own_voice(text, fact.section)
    age = age_in_years(payload.door.demographics)
    gender = sex(payload.door.demographics) or ""
    child = {"female": "my daughter", "male": "my son"}.get(gender, "my child")
    subject = child if age is not None and age < 18 else "the patient"
    pronoun = {"female": "she", "male": "he"}.get(gender, subject)
    return lambda _, text: caregiver_voice(text, subject, pronoun)
