"""Turning a chart's third person into a patient's own words, or into those of a caregiver.

A few rules of English rather than a grammar: they see the words that charts use and leave the rest alone.
"""

from __future__ import annotations

import re

from agentclinic.cases.model import Section

_IRREGULAR = {"has": "have", "is": "am", "does": "do", "goes": "go", "lies": "lie", "dies": "die", "ties": "tie"}
_NOT_VERBS = frozenset({"always", "sometimes", "previous", "was", "as", "this", "his", "us", "perhaps", "besides"})
_ADVERB = (
    r"(?:also|then|now|only|usually|occasionally|sometimes|rarely|never|currently|recently|often|always|still|later"
    r"|previously|formerly|initially|subsequently|further|additionally)\s+"
)
# What patients do in charts. Other words that end in s are as often plural nouns: they are left alone.
_VERBS = (
    "admits adds appears arrives asks attributes avoids becomes believes brings claims comes complains consumes "
    "continues coughs cries declines denies describes develops drinks eats employs endorses enjoys exercises exhibits "
    "expresses explains feels finds follows gets gives goes has hears holds is keeps lacks leaves lies lives looks "
    "loses mentions misses moves needs notes notices owns plays practices prefers presents recalls refuses remembers "
    "reports requires runs says seems sees shows sits sleeps smells smokes spends stands starts states stays stops "
    "struggles studies suffers takes tends thinks travels tries uses vapes visits wakes walks wants was wears works "
    "worries experiences rests does seeks demonstrates maintains receives undergoes"
).split()
_VERB = "|".join(_VERBS)
_SUBJECT = re.compile(rf"\b(?:[Tt]he patient|Patient|[Ss]he|[Hh]e)\b(?!['’]s\b)(\s+(?:{_ADVERB})?)(\w+)")
_NEXT_VERB = re.compile(
    rf"((?:[,;]|\band|\bbut|\bor|\bthen)\s+(?:(?:and|but|or|then)\s+)?(?:{_ADVERB})?)({_VERB})\b(?!\s+(?:are|is|were)\b)"
)
_RELATIVE = re.compile(r"\b(?:which|that|who)\b[^,;]*$", re.IGNORECASE)
_OTHER_SUBJECT = re.compile(r"\b(?:which|that|who|it|this|these|pain|symptoms?)\b", re.IGNORECASE)
_NO_SUBJECT = re.compile(rf"^((?:{_ADVERB})?)({_VERB}|had|smoked|drank|worked|lived|travel+ed)\b", re.IGNORECASE)
_DOING = (
    "experiencing having feeling noticing using taking waking sleeping seeing hearing losing gaining drinking "
    "consuming smoking wanting"
).split()
_DENIED_DOING = re.compile(rf"^Denies\s+(?:any\s+)?({'|'.join(_DOING)})\b")
_SAYS = r"(?:report|describe|note|mention|state|say|recall|explain|add|complain|present|endorse|admit)"
_OBJECT = (
    r"(?!\s+(?:the|it|this|these|those|them|my|myself|as|to|for|at)\b|\s+\w+ing\s+(?:an?|my|the|to|on|in|\w+ed)\b)"
)


def own_voice(text: str, section: Section) -> str:
    """A statement of the chart as the patient would say it."""
    text = re.sub(r"\b(?:[Tt]he patient|Patient)['’]s\b", "my", _ROLE.sub("", text))
    text = _denials(text)
    if section is not Section.FAMILY:  # there "he" is the father
        text = _first_person(text)
    text = re.sub(r"\b(?:[Tt]he patient|Patient)\b", "I", text)
    return _plainly(_addressed(text))


def _denials(text: str) -> str:
    text = _DENIED_DOING.sub(r"I have not been \1", text)
    return re.sub(r"^Den(?:ies|ied)\s+(?:any\s+|having\s+)?", "No ", text)


def _first_person(text: str) -> str:
    text = _SUBJECT.sub(lambda m: f"I{m[1]}{conjugated(m[2])}", text)
    text = _NO_SUBJECT.sub(lambda m: f"I {m[1].lower()}{conjugated(m[2].lower())}", text)
    text = re.sub(r"\b(?:her|him)\b(?=\s+(?:with|to|for|in|on|at|when|while|and|or|that|from|up|down)\b)", "me", text)
    text = re.sub(r"\b(gave|gives|told|offered|prescribed|made|brought|sent) (?:her|him)\b", r"\1 me", text)
    text = re.sub(r"\b(?:[Hh]er|[Hh]is)\b(?=\s+\w)", "my", text)
    text = re.sub(r"\b(?:himself|herself)\b", "myself", text)
    text = re.sub(r"\b(?:her|him)\b", "me", text)
    text = re.sub(r"\b(?:she|he|She|He)\b", "I", text)
    text = re.sub(r"\b(?:[Tt]he patient|Patient)\b", "I", text)
    begin = re.search(r"\bI\b", text)
    return text[: begin.start()] + _NEXT_VERB.sub(_following, text[begin.start() :]) if begin else text


def _following(match: re.Match[str]) -> str:
    """A verb after "and" has the same subject as the first, unless something else came between."""
    before = match.string[: match.start()].rsplit("I ", 1)[-1]
    if _RELATIVE.search(before) and not match[1].startswith(","):
        return match[0]
    if match[2] in ("is", "was", "does", "comes", "goes") and _OTHER_SUBJECT.search(before):
        return match[0]
    return match[1] + conjugated(match[2])


def conjugated(verb: str) -> str:
    """A verb of the third person in the first."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if verb.endswith(("sses", "ches", "shes", "xes")):
        return verb[:-2]
    if verb.endswith("s") and not verb.endswith("ss") and verb not in _NOT_VERBS:
        return verb[:-1]
    return verb


_ROLE = re.compile(
    r"^(?:(?:For|In) your role as (?:a|the) patient|As (?:a|the) patient(?: actor)?|For the patient actor)[,:]?\s*"
)
_QUOTED_YOU = re.compile(r"['\"‘“]\s*[Yy]ou\b")
_BEFORE_SUBJECT = re.compile(
    r"(?:^|[,;]\s|\b(?:when|if|that|since|because|while|after|before|as|and|which|where|until|once|but|although|what"
    r"|than)\s)$",
    re.IGNORECASE,
)
_AFTER_SUBJECT = re.compile(
    r"\s+(?:also|have|had|did|do|can|could|may|might|will|would|should|must|first|recently|now|never|feel|notice|began"
    r"|went|came|got|\w+ed)\b"
)


def _addressed(text: str) -> str:
    """Scripts in prose address the actor: "You have been coughing"."""
    if _QUOTED_YOU.search(text):
        return text
    text = re.sub(r"\b[Yy]ou(?: are|['’]re)\b", "I am", text)
    text = re.sub(r"\b[Yy]ou were\b", "I was", text)
    text = re.sub(r"\b[Yy]ou['’]ve\b", "I have", text)
    text = re.sub(r"\b[Yy]ou['’]d\b", "I had", text)
    text = re.sub(r"\b[Yy]our\b", "my", text)
    text = re.sub(r"\byourself\b", "myself", text)
    return re.sub(r"\b[Yy]ou\b", _i_or_me, text)


def _i_or_me(match: re.Match[str]) -> str:
    before, after = match.string[: match.start()], match.string[match.end() :]
    return "I" if _BEFORE_SUBJECT.search(before) or _AFTER_SUBJECT.match(after) else "me"


def _plainly(text: str) -> str:
    """Nobody says "I report a cough"."""
    text = re.sub(rf"^I (?:also )?{_SAYS} (?:of )?that (?=\w)", "", text)
    text = re.sub(rf"\bI (also )?{_SAYS} (?:of )?({'|'.join(_DOING)})\b", r"I have \1been \2", text)
    text = re.sub(rf"^I (also )?{_SAYS}(?: of| with)?{_OBJECT} (?!I\b)", r"I \1have had ", text)
    return text.replace("I also have had", "I have also had")


def caregiver_voice(text: str, subject: str, pronoun: str) -> str:
    """A statement of the chart as somebody says it who speaks for the patient."""
    text = re.sub(r"\b(?:[Tt]he patient|Patient)['’]s mother\b|\b(?:His|Her|The) mother\b|^Mother\b", "I", text)
    text = re.sub(
        r"\bI (reports|says|notes|states|denies|describes|gives|brings|recalls|has|is|was)\b",
        lambda m: f"I {conjugated(m[1])}",
        text,
    )
    text = re.sub(
        r"\b(?:[Tt]he patient|[Tt]he (?:infant|child|baby|newborn|boy|girl|toddler)|Patient)\b", subject, text
    )
    text = re.sub(r"\b(?:her|his|their) (?:son|daughter|child|baby|infant)\b", subject, text)
    if pronoun == "he":  # then "she" is the mother, who speaks
        text = re.sub(r"\b[Ss]he(\s+)(\w+)", lambda m: f"I{m[1]}{conjugated(m[2])}", text)
    text = re.sub(r"^I (?:report|say|note|state) that ", "", text)
    text = re.sub(r"^Denies\b(?: any)?", "No", text)
    return _third_person(_ROLE.sub("", text), subject, pronoun)


def _third_person(text: str, subject: str, pronoun: str) -> str:
    verbs = {
        "have": "has",
        "'ve": "has",
        "’ve": "has",
        "are": "is",
        "'re": "is",
        "’re": "is",
        "were": "was",
        "do": "does",
    }
    own = {"he": "his", "she": "her"}.get(pronoun, "their")
    text = re.sub(
        r"\b([Yy])ou(?:\s+|(?=['’]))(have|['’]ve|are|['’]re|were|do)\b",
        lambda m: f"{subject if m[1] == 'Y' else pronoun} {verbs[m[2]]}",
        text,
    )
    text = re.sub(r"\b[Yy]our\b", own, text)
    text = re.sub(r"\bYou\b", subject, text)
    return re.sub(r"\byou\b", pronoun, text)
