"""How English denies things: which words and phrases of a text are negated, and whether a statement is a denial.

All other modules use this one to read denials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from agentclinic import lazy
from agentclinic.vocabulary.text import words

# --- which words of a text are negated ------------------------------------------------------------------------------

_NEGATIONS = frozenset({"no", "deny", "denied", "denying", "without", "neither", "nor"})
"""Negate the rest of the clause: "no fever, chills or sweats"."""
_PHRASE_NEGATIONS = (("negative", "for"), ("absence", "of"), ("free", "of"))
_NEAR_NEGATIONS = (("ruled", "out"), ("rule", "out"))
"""Negate up to the next comma, as "absent" does at the start of a part: "absent reflexes"."""
_SHORT_NEGATIONS = frozenset(
    "not never havent hasnt hadnt dont doesnt didnt isnt arent wasnt werent cannot cant".split()
)
"""Negate the next few words only: "I have not noticed any swelling, and it hurts"."""
_SHORT_REACH = 6
_DENIED_AFTER = frozenset({"absent", "none", "negative", "denied", "excluded", "unlikely"})
"""Negate the phrase they follow: "rebound tenderness absent", "Murmurs: none"."""
_LOOKED_FOR = frozenset(
    "present seen noted detected found observed identified demonstrated evident appreciated".split()
)
"""After "not", these say that something was looked for and is not there."""
_LINKING = frozenset({"is", "are", "was", "were", "has", "have", "been"})
_MOST_LINKING = 4
"""No sentence has more of them in a row: "has been", "is or was"."""
_RESUMES = frozenset(
    "has have had he she i it they there is was are with patient present presented presenting now complain "
    "consistent compatible suggestive suggesting indicative indicating concerning".split()
)
"""After a comma, these start a statement that an earlier negation does not reach: "no fever, has chills"."""
# A negation does not reach past the end of a sentence, or past a word that turns to what is present.
_STOP = r"\.(?:(?<!\d\.)(?!\d)|(?=\s))|[!?]"
_SENTENCE_END = lazy.regex(_STOP)
_CLAUSE_END = lazy.regex(
    rf"{_STOP}|\b(?:but|however|though|although|except|(?<!\bno )(?<!without )reports?|endorses?|admits?"
    r"|positive for|notable for)\b",
    re.IGNORECASE,
)
_TURNING = ("but", "though", "however", "except", "report", "endorse", "admit", "positive for", "notable for")
"""Without any of these only the ends of sentences match `_CLAUSE_END`, which is slow to look for."""
_COMMA = lazy.regex(r",(?!\d)")
_NEGATING = _NEGATIONS | _SHORT_NEGATIONS | {pair[0] for pair in (*_PHRASE_NEGATIONS, *_NEAR_NEGATIONS)} | {"absent"}
"""Without one of these no word is negated, which spares most clauses the closer look."""


@dataclass(frozen=True, eq=False)
class Clause:
    """The words of a stretch of text, and which of them are negated."""

    words: tuple[str, ...]
    negated: tuple[bool, ...]
    breaks: frozenset[int]
    """Positions of words that follow a comma."""

    def denied_after(self, end: int) -> bool:
        """Whether the phrase that ends here is denied by what follows it: "was ruled out", "not seen", ": none"."""
        for _ in range(_MOST_LINKING):
            if end >= len(self.words) or end in self.breaks or self.words[end] not in _LINKING:
                break
            end += 1
        if end >= len(self.words) or end in self.breaks:
            return False
        first, second = self.words[end], self.words[end + 1] if end + 1 < len(self.words) else ""
        closes = end + 1 == len(self.words) or end + 1 in self.breaks
        return (
            (first in _DENIED_AFTER and second not in ("for", "of"))
            or (first == "no" and closes)
            or (first, second) == ("ruled", "out")
            or (first == "not" and second in _LOOKED_FOR)
        )


@lru_cache(maxsize=16384)
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text, cut where a negation cannot reach further."""
    return tuple([clause for item in text.replace("\n", ";").split(";") for clause in _clauses_of(item)])


@lru_cache(maxsize=16384)  # laboratories report the same normal results in every encounter
def _clauses_of(item: str) -> tuple[Clause, ...]:
    """The clauses of a text without semicolons and line breaks, which end every clause."""
    lower = item.lower()
    end = _CLAUSE_END if any(word in lower for word in _TURNING) else _SENTENCE_END
    parts = end.split(item)
    return tuple([clause for part in parts if (clause := _clause(part)).words])


def _clause(part: str) -> Clause:
    if "," not in part:
        said = words(part)
        return Clause(said, _negated(said, frozenset()), frozenset())
    tokens: list[str] = []
    breaks = set()
    for piece in _COMMA.split(part):
        breaks.add(len(tokens))
        tokens += words(piece)
    said, places = tuple(tokens), frozenset(breaks - {0})
    return Clause(said, _negated(said, places), places)


def _negated(tokens: tuple[str, ...], breaks: frozenset[int]) -> tuple[bool, ...]:
    if _NEGATING.isdisjoint(tokens):
        return (False,) * len(tokens)
    marks: list[bool] = []
    reach = near = 0
    for index, token in enumerate(tokens):
        pair = tokens[index : index + 2]
        if index in breaks:
            near = 0
            if token in _RESUMES or (token == "and" and pair[-1] in _RESUMES):
                reach = 0
        marks.append(reach > 0 or near > 0)
        reach -= 1
        if token in _NEGATIONS or pair in _PHRASE_NEGATIONS:
            # "No, a cough" answers a question; it does not deny the cough.
            reach = 0 if token == "no" and index + 1 in breaks else len(tokens)
        elif pair in _NEAR_NEGATIONS or (token == "absent" and (index == 0 or index in breaks)):
            near = 1
        elif token in _SHORT_NEGATIONS:
            reach = max(reach, _SHORT_REACH)
    return tuple(marks)


# --- phrases in a text --------------------------------------------------------------------------------------------


class Mention(NamedTuple):
    """A phrase found in a text."""

    key: str
    words: tuple[str, ...]
    negated: bool


class Phrasebook:
    """Finds many phrases in a text, as whole words, longest first."""

    def __init__(self, phrases: Mapping[str, Iterable[str]]) -> None:
        self._keys: dict[tuple[str, ...], list[str]] = {}
        for key, variants in phrases.items():
            for variant in variants:
                if tokens := words(variant):
                    self._keys.setdefault(tokens, []).append(key)
        lengths: dict[str, set[int]] = {}
        for tokens in self._keys:
            lengths.setdefault(tokens[0], set()).add(len(tokens))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        """How many words the phrases with a given first word have."""

    def may_find(self, said: Iterable[str]) -> bool:
        """Whether any of a text's words begins a phrase: much faster than finding it."""
        return not self._lengths.keys().isdisjoint(said)

    def find(self, text: str) -> list[Mention]:
        """Every phrase in the text, without those inside a longer one."""
        return [mention for clause in clauses(text) for mention in _found(self, clause)]

    def find_in(self, clause: Clause) -> list[Mention]:
        found: list[Mention] = []
        said, lengths = clause.words, self._lengths
        if not self.may_find(said):
            return found
        after = 0
        for index, word in enumerate(said):
            if word not in lengths or index < after:
                continue
            for length in lengths[word]:
                end = index + length
                if end <= len(said) and (keys := self._keys.get(said[index:end])):
                    negated = clause.negated[index] or clause.denied_after(end)
                    found += [Mention(key, said[index:end], negated) for key in keys]
                    after = end
                    break
        return found


@lru_cache(maxsize=16384)  # clauses come again as the items of a text do
def _found(book: Phrasebook, clause: Clause) -> Sequence[Mention]:
    return book.find_in(clause)


# --- lists of denied things in a chart ------------------------------------------------------------------------------


class Denial(NamedTuple):
    """A sentence of a chart that opens with a denial."""

    items: tuple[str, ...]
    """Each denied thing as its own sentence; empty if splitting the sentence would change its meaning."""
    throughout: bool
    """The sentence does not continue with something present."""


_OPENING = lazy.regex(
    r"^(?:(?:the )?patient |she |he |they |mother |father |parents? )?"
    r"(?P<verb>denies|denied|deny|negative for|no history of|no|without)(?: \([^)]*\))?"
    r"(?: (?:any|experiencing|having))?\s+"
    r"(?P<list>.+?)[.;]?$",
    re.IGNORECASE,
)
# "Denies cough and fever; reports a rash" makes two statements.
_NEXT_STATEMENT = lazy.regex(
    r";\s+(?=(?:but\s+)?(?:reports?|denies|no|endorses|admits|notes|positive|negative)\b)", re.IGNORECASE
)
_ITEM_COMMA = lazy.regex(r",\s*(?:or|and|nor)\s+|,\s*")
# "or" is sure to separate items only between single words: "changes in bowel or bladder habits" is one item.
_PAIR = lazy.regex(r"^(\w+)\s+(?:or|nor|and)\s+(\w+)$")
_REPEATED = lazy.regex(r"^(?:no|denies|denied|without)\s+", re.IGNORECASE)
# An item that ends in an adjective lacks its noun: "respiratory, gastrointestinal, or urinary symptoms".
_ADJECTIVE = lazy.regex(r"(?:\w{2}(?:al|ic|ous|ular|ary|(?<!hist)(?<!mem)ory)|black|thick|known|legal)$", re.IGNORECASE)
# What follows is not denied.
_TURNS = lazy.regex(
    r"\b(?:but|however|except|although|though|apart from|other than|such as|including)\b"
    r"|,\s*(?:and\s+)?(?:(?:he|she|they|i)\s|(?:also\s+)?(?:has|had|have|is|was|are|takes|drinks|swallows|smokes|uses"
    r"|lives|works|eats|sleeps|feels|plays|reports?|notes|admits|complains|presents|describes|states|with)\b)",
    re.IGNORECASE,
)
# "No injury, normal sports medical two years ago": the second item is not denied.
_AFFIRMED = lazy.regex(r"^(?:normal|regular|usual|last|only|full|up to date)\b|\bago$", re.IGNORECASE)
# Longer parts are clauses, not items of a list.
_LONGEST_ITEM = 7


def split_statements(sentence: str) -> list[str]:
    """Split a sentence at the semicolons where it turns from what is denied to what is reported, or back."""
    return _NEXT_STATEMENT.split(sentence)


def read_denial(sentence: str) -> Denial | None:
    """Read a sentence that opens with a denial; None for any other."""
    opening = _OPENING.match(sentence)
    if not opening:
        return None
    verb = opening["verb"].lower()
    verb = verb.capitalize() if verb.startswith("no") else "Denies"
    return Denial(tuple(f"{verb} {item}" for item in _items(opening["list"])), not _TURNS.search(sentence))


def _items(text: str) -> list[str]:
    if _TURNS.search(text):
        return []
    parts: list[list[str]] = []
    for part in _ITEM_COMMA.split(text):
        if parts and _ADJECTIVE.search(parts[-1][-1]):
            parts[-1].append(part)
        else:
            parts.append([part])
    items: list[str] = []
    for part in map(", ".join, parts):
        pair = _PAIR.match(part.strip())
        singles = pair.groups() if pair and not _ADJECTIVE.search(pair[1]) else (part,)
        items += [_REPEATED.sub("", single).strip(" .") for single in singles]
    # "No significant past medical, surgical or psychiatric history": the items share their last word.
    shared_end = len(items) > 1 and items[-1].lower().endswith("history")
    if shared_end or any(_AFFIRMED.search(item) for item in items[1:]):
        return []
    return items if all(0 < len(item.split()) <= _LONGEST_ITEM for item in items) else []


# --- answers, results and whole statements --------------------------------------------------------------------------

_DENY = r"den(?:y|ies|ied)"
_NOT_FOUND = rf"not (?:{'|'.join(sorted(_LOOKED_FOR))}|palpable)"
_NO = lazy.regex(r"^\W*(?:no|not really|none|never|i (?:have not|haven't|don't|do not))\b", re.IGNORECASE)
# "I have a cough" does not answer yes to another question; "I have." does.
_YES = lazy.regex(r"^\W*(?:(?:yes|yeah|correct|that's right)\b|i (?:do|have)\s*(?:[.,!]|$))", re.IGNORECASE)
_NOTHING_FOUND = lazy.regex(
    r"\bnormal\b|unremarkable|no (?:significant |acute |visible )?abnormal|\bclear\b|negative|no growth", re.IGNORECASE
)
_ABSENT = lazy.regex(rf"(?:no|denies|denied|without|absence of)\s+\w|{_NOT_FOUND}\b", re.IGNORECASE)
_NO_INFORMATION = lazy.regex(
    r"(?:no|without)\s+(?:(?:further|relevant|prior|clear)\s+)?"
    r"(?:information|data|results?|answer|mention|idea|record|test|testing|report|assessment|documentation"
    r"|examination|imaging|way|one)\b",
    re.IGNORECASE,
)
_STATEMENT = lazy.regex(
    rf"^(?:{_DENY}|no|without|there(?:'s| is) no|on review, there's no|negative|never|not)\b"
    r"|\b(?:has|have|had|did|does|do) not (?:noticed?|report|have|experienced?|had)\b|\bdenies\b",
    re.IGNORECASE,
)
_WORD = lazy.regex(rf"\b(?:no|not|never|none|without|{_DENY}|neither|nor|normal|negative|\w+n['’]t)\b", re.IGNORECASE)


def answers_no(reply: str) -> bool:
    """Whether a reply opens with a plain no: "No.", "Not really, ...", "I haven't"."""
    return bool(_NO.match(reply))


def answers_yes(reply: str) -> bool:
    """Whether a reply opens with a plain yes: "Yes, ...", "I do."."""
    return bool(_YES.match(reply))


def finds_nothing(report: str) -> bool:
    return bool(_NOTHING_FOUND.search(report))


def says_absent(state: str) -> bool:
    """Whether a finding's state, in any words, says that it was looked for and is absent.

    "Not sure", "not examined" and "no information" leave it open.
    """
    return bool(_ABSENT.match(state)) and not _NO_INFORMATION.match(state)


def is_denial(statement: str) -> bool:
    """Whether a statement of a chart denies: it opens with a denial, or says "does not have", "has not noticed"."""
    return bool(_STATEMENT.search(statement))


def has_denying_word(text: str) -> bool:
    return bool(_WORD.search(text))
