"""Rewriting a chart's third person in the words of the patient or of a caregiver, if the case gives no words of theirs.

A few rules of English, not a grammar: they know the words that charts use and quote the rest as it stands, because
plainly quoted notes read better than broken sentences.
"""

from __future__ import annotations

import re

from agentclinic import lazy
from agentclinic.cases.model import Section

_PATIENT = r"\b(?:[Tt]he patient|Patient)"
_THE_PATIENT, _THE_PATIENTS = lazy.regex(rf"{_PATIENT}\b"), lazy.regex(rf"{_PATIENT}['’]s\b")
_I, _YOU = lazy.regex(r"\bI\b"), lazy.regex(r"\b[Yy]ou\b")
_IRREGULAR = {"has": "have", "is": "am", "does": "do", "goes": "go", "lies": "lie", "dies": "die", "ties": "tie"}
_NOT_VERBS = frozenset({"always", "sometimes", "previous", "was", "as", "this", "his", "us", "perhaps", "besides"})
_ADVERB = (
    r"(?:also|then|now|only|usually|occasionally|sometimes|rarely|never|currently|recently|often|always|still|later"
    r"|previously|formerly|initially|subsequently|further|additionally)\s+"
)
# What patients do in charts. Other words that end in s may be plural nouns, so they are left alone.
_VERB = "|".join(
    (
        "admits adds appears arrives asks attributes avoids becomes believes brings claims comes complains consumes "
        "continues coughs cries declines denies describes develops drinks eats employs endorses enjoys exercises "
        "exhibits expresses explains feels finds follows gets gives goes has hears holds is keeps lacks leaves lies "
        "lives looks loses mentions misses moves needs notes notices owns plays practices prefers presents recalls "
        "refuses remembers reports requires runs says seems sees shows sits sleeps smells smokes spends stands starts "
        "states stays stops struggles studies suffers takes tends thinks travels tries uses vapes visits wakes walks "
        "wants was wears works worries experiences rests does seeks desires wishes demonstrates maintains "
        "receives undergoes"
    ).split()
)
_SUBJECT = lazy.regex(rf"\b(?:[Tt]he patient|Patient|[Ss]he|[Hh]e)\b(?!['’]s\b)(\s+(?:{_ADVERB})?)(\w+)")
_NEXT_VERB = lazy.regex(
    rf"((?:[,;]|\band|\bbut|\bor|\bthen)\s+(?:(?:and|but|or|then)\s+)?(?:{_ADVERB})?)({_VERB})\b(?!\s+(?:are|is|were)\b)"
)
_OTHER_SUBJECT = lazy.regex(
    r"\b(?:which|that|who|whom|when|while|if|because|since|after|before|as|where|it|this|these|pain|symptoms?)\b",
    re.IGNORECASE,
)
_NO_SUBJECT = lazy.regex(rf"^((?:{_ADVERB})?)({_VERB}|had|smoked|drank|worked|lived|travel+ed)\b", re.IGNORECASE)
_DOING = (
    "experiencing|having|feeling|using|taking|waking|sleeping|seeing|hearing|losing|gaining|drinking"
    "|consuming|smoking|wanting"
)
_SAYS = r"(?:report|describe|note|mention|state|say|recall|explain|add|complain|endorse|admit)"
_OBJECT = (
    r"(?!\s+(?:the|it|this|these|those|them|my|myself|as|to|for|at)\b|\s+\w+ing\s+(?:an?|my|the|to|on|in|\w+ed)\b)"
)
_ROLE = lazy.regex(
    r"^(?:(?:For|In) your role as (?:a|the) patient|As (?:a|the) patient(?: actor)?|For the patient actor)[,:]?\s*"
)
_QUOTED_YOU = lazy.regex(r"['\"‘“]\s*[Yy]ou\b")
_BEFORE_SUBJECT = lazy.regex(
    r"(?:^|[,;]\s|\b(?:when|if|that|since|because|while|after|before|as|and|which|where|until|once|but|although|what"
    r"|than)\s)$",
    re.IGNORECASE,
)
_AFTER_SUBJECT = lazy.regex(
    r"\s+(?:also|have|had|did|do|can|could|may|might|will|would|should|must|first|recently|now|never|feel|notice|began"
    r"|went|came|got|\w+ed)\b"
)
_Rules = tuple[tuple[re.Pattern[str], str], ...]


def _rules(*rules: tuple[str, str]) -> _Rules:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


_DENIALS = _rules(
    (r"^Den(?:ies|ied)\s+(?:any\s+)?(taking|using|smoking|drinking)\b", r"I am not \1"),
    (r"^Den(?:ies|ied)\s+(?:(?:any|having|experiencing|noticing)\s+)*", "No "),
)
_PRONOUNS = _rules(
    (r"\b(about|to|at|for|toward|towards) (?:her|him)\b(?=\s+\w+ly\b)", r"\1 me"),
    (r"\b(?:her|him)\b(?=\s+(?:with|to|for|in|on|at|when|while|and|or|that|from|up|down)\b)", "me"),
    (
        r"\b(gave|gives|told|offered|prescribed|made|makes|brought|sent|keeps|kept|leaves|left|lets|wakes|woke) "
        r"(?:her|him)\b(?=\s+(?:\w+ed|\w+ing|a|an|the|awake|tired|sick|weak|unable|up|down|to|short|dizzy|feel)\b|[.,;]|$)",
        r"\1 me",
    ),
    (r"\b(gave|gives|told|offered|prescribed|made|brought|sent) (?:her|him)\b", r"\1 me"),
    (r"\b(?:[Hh]er|[Hh]is)\b(?=\s+\w)", "my"),
    (r"\b(?:himself|herself)\b", "myself"),
    (r"\b(?:her|him)\b", "me"),
    (r"\b(?:she|he|She|He)\b", "I"),
    (rf"{_PATIENT}\b", "I"),
)
_YOU_TO_I = _rules(
    (r"\b[Yy]ou(?: are|['’]re)\b", "I am"),
    (r"\b[Yy]ou were\b", "I was"),
    (r"\b[Yy]ou['’]ve\b", "I have"),
    (r"\b[Yy]ou['’]d\b", "I had"),
    (r"\b[Yy]our\b", "my"),
    (r"\byourself\b", "myself"),
)
# A patient says "I have had a cough", not "I report a cough", and "I came in with", not "I present with".
_PLAIN = _rules(
    (r"^I present(?:ed)? to (?=the|an?|my|our)", "I came to "),
    (r"^I present(?:ed)? (?=with|for|after|because|due|complaining|today|at|following)", "I came in "),
    (r"^(I came (?:in|to [^,;]*?) with )(?:an? )?(?:chief )?complaints? of ", r"\1"),
    (rf"^I (?:also )?{_SAYS} (?:of )?that (?=\w)", ""),
    (rf"\bI (also )?{_SAYS} noticing\b", r"I \1noticed"),
    (rf"\bI (also )?{_SAYS} being\b", r"I am \1"),
    (rf"^I (also )?{_SAYS} (?=the (?:\w+ ){{0,2}}(?:onset|appearance|presence|development) of)", r"I \1noticed "),
    (rf"\bI (also )?{_SAYS} (?:of )?({_DOING})\b", r"I have \1been \2"),
    (rf"^I (also )?{_SAYS}(?: of| with)?{_OBJECT} (?!I\b)", r"I \1have had "),
    (r"I also have had", "I have also had"),
    (r"\b(\w+ing|about|to|for|with|of|at) I\b(?=[.,;]|\s+(?:in|with|and|to|for|at|on)\b)", r"\1 me"),
)


def _apply(rules: _Rules, text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


# Where a relative tells of "her daughter" or "the child", or "she" may be the mother: quoted as it stands.
_OF_ANOTHER = lazy.regex(
    r"^The patient, |\b(?:mother|father|parents?|wife|husband|sister|brother|friend|roommates?)\b.*"
    r"\b(?:(?:her|his|their) (?:son|daughter|child|boy|girl)|the (?:son|daughter|child|boy|girl|infant|baby))\b"
    r"|\b(?:mother|sister|wife|daughter|girlfriend)\b[^.;]*\bshe\b|\b(?:father|brother|husband|boyfriend)\b[^.;]*\bhe\b",
    re.IGNORECASE,
)


def own_voice(text: str, section: Section) -> str:
    """A statement of the chart as the patient would say it."""
    text = _apply(_DENIALS, _ROLE.sub("", text))
    if section is not Section.FAMILY and _OF_ANOTHER.search(text):
        return _THE_PATIENTS.sub("my", text)
    text = _THE_PATIENTS.sub("my", text)
    if section is not Section.FAMILY:  # there "he" is the father
        text = _first_person(text)
    text = _THE_PATIENT.sub("I", text)
    if not _QUOTED_YOU.search(text):  # scripts in prose address the actor: "You have been coughing"
        text = _YOU.sub(_i_or_me, _apply(_YOU_TO_I, text))
    return _apply(_PLAIN, text)


def _first_person(text: str) -> str:
    text = _SUBJECT.sub(lambda m: f"I{m[1]}{_first_person_verb(m[2])}", text)
    text = _NO_SUBJECT.sub(lambda m: f"I {m[1].lower()}{_first_person_verb(m[2].lower())}", text)
    text = _apply(_PRONOUNS, text)
    return _NEXT_VERB.sub(_following, text) if _BEGINS_WITH_I.match(text) else text


_BEGINS_WITH_I = lazy.regex(r"(?:[^,]{1,40}, )?I ")
_REACH = 300
"""How many characters before a word are searched for its subject: a long sentence."""


def _following(match: re.Match[str]) -> str:
    """A verb after "and" has the same subject as the first, unless another clause or subject came in between."""
    before = match.string[max(0, match.start() - _REACH) : match.start()].rsplit("I ", 1)[-1]
    return match[0] if _OTHER_SUBJECT.search(before) else match[1] + _first_person_verb(match[2])


def _first_person_verb(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if verb.endswith(("sses", "ches", "shes", "xes")):
        return verb[:-2]
    if verb.endswith("s") and not verb.endswith("ss") and verb not in _NOT_VERBS:
        return verb[:-1]
    return verb


def _i_or_me(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - _REACH) : match.start()]
    return "I" if _BEFORE_SUBJECT.search(before) or _AFTER_SUBJECT.match(match.string, match.end()) else "me"


_PARENTS_SAY = lazy.regex(
    rf"^(?:(?:The|Her|His|{_PATIENT}['’]s)\s+)?(?:mother|father|parents?|caregivers?|Mother|Father|Parents?|Caregivers?)\s+"
    r"(?:also\s+)?(?:reports?|says?|notes?|states?|mentions?|describes?|recalls?|adds?)\s+(?:that\s+)?(?!to\b)"
)


def caregiver_voice(text: str, subject: str, pronoun: str) -> str:
    """A statement of the chart as someone who speaks for the patient would say it."""
    text = _PARENTS_SAY.sub("", _ROLE.sub("", re.sub(r"^Denies\b(?: any)?", "No", text)))
    text = re.sub(
        r"\b(?:[Tt]he patient|[Tt]he (?:infant|child|baby|newborn|boy|girl|toddler)|Patient)\b", subject, text
    )
    text = re.sub(r"\b(?:her|his|their) (?:son|daughter|child|baby|infant)\b", subject, text)
    verbs = {"have": "has", "ve": "has", "are": "is", "re": "is", "were": "was", "do": "does"}
    text = re.sub(
        r"\b([Yy])ou(?:\s+|(?=['’]))(have|['’]ve|are|['’]re|were|do)\b",
        lambda m: f"{subject if m[1] == 'Y' else pronoun} " + verbs[m[2].lstrip("'’")],
        text,
    )
    text = re.sub(r"\b[Yy]our\b", {"he": "his", "she": "her"}.get(pronoun, "their"), text)
    return re.sub(r"\byou\b", pronoun, re.sub(r"\bYou\b", subject, text))
