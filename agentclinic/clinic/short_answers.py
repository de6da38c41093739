"""What a patient says to a question that a plain "no" answers: "are you limping?" - "No, I'm not."."""

from __future__ import annotations

import re
from itertools import product

from agentclinic import lazy

_NOT = {
    "is": "isn't",
    "are": "aren't",
    "was": "wasn't",
    "were": "weren't",
    "do": "don't",
    "does": "doesn't",
    "did": "didn't",
    "have": "haven't",
    "has": "hasn't",
    "had": "hadn't",
    "can": "can't",
}
_FIRST = {"is": "I'm not", "are": "I'm not", "were": "I wasn't"}
"""What the patient says of himself or herself where the verb changes."""
_CLAUSE = lazy.regex(
    rf"(?:(?:and|or|but|so|also|then|now) )*(?P<verb>{'|'.join(_NOT)})(?:n['’]t)? "
    r"(?P<who>you|he|she|it|they|there|that|this|these|those|any(?:one|body)|some(?:one|body)|anything"
    r"|(?:the|an?|your|his|her|their) (?P<noun>[\w'’-]+))\b(?! (?:or|and)\b)",
    re.IGNORECASE,
)
_PEOPLE = lazy.regex(
    r"(?:husband|wife|partner|mother|father|mom|mum|dad|parents?|brothers?|sisters?|son|sons|daughters?|child"
    r"|children|kids?|friends?|family|relatives?|boyfriend|girlfriend|baby|doctor)(?:['’]s)?",
    re.IGNORECASE,
)
_UNDER_A_CONDITION = lazy.regex(
    r"\b(?:when|if|while|whenever|after|once|before|by|with) (?:you|he|she|they|it|your|his|her|the|a|\w+ing)\b",
    re.IGNORECASE,
)
"""Asks under what condition something comes or goes: few patients are sure that it does not."""
NOT_THAT_NOTICED = "Not that I've noticed."
_PRONOUNS = {"that": "it", "this": "it", "these": "they", "those": "they"}
_ONE = frozenset(("is", "was", "has", "does"))
_SEVERAL = frozenset(("are", "were", "have", "do"))


def short_no(clause: str) -> str:
    """The short answer to what a doctor asks; empty if it is no such question, or about other people."""
    asked = _CLAUSE.match(clause.strip())
    if asked is None:
        return ""
    verb, who = asked["verb"].lower(), asked["who"].lower()
    if who not in ("you", "anything") and _UNDER_A_CONDITION.search(clause):
        return NOT_THAT_NOTICED
    if who.startswith(("anyone", "anybody", "someone", "somebody")):
        return "No, nobody."
    if who == "anything":
        return "No, nothing."
    if who == "you":
        return _first(verb)
    if asked["noun"]:
        if _PEOPLE.fullmatch(asked["noun"]) or verb not in _ONE | _SEVERAL:
            return ""
        return _third("it" if verb in _ONE else "they", verb)
    return _third(_PRONOUNS.get(who, who), verb)


def _first(verb: str) -> str:
    return f"No, {_FIRST.get(verb, f'I {_NOT[verb]}')}."


def _third(who: str, verb: str) -> str:
    return f"No, {who} {_NOT[verb]}."


SHORT = frozenset(
    (
        "No, nobody.",
        "No, nothing.",
        NOT_THAT_NOTICED,
        *map(_first, _NOT),
        *(_third(who, verb) for who, verb in product(("he", "she", "it", "they", "there"), _NOT)),
    )
)
"""All of these answers."""
