"""Words and names in a diagnosis: which words may stand beside a disease's name, and which name a phrase ends in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from agentclinic import lazy
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.lexicon import found
from agentclinic.vocabulary.name_table import name_table, word_list
from agentclinic.vocabulary.names import (
    COURSE,
    FUNCTION,
    GENERIC,
    GRADE,
    ORGANISMS,
    Name,
    form,
    is_known_key,
    is_misspelling,
    is_place,
    name,
    name_of,
    spelled,
)
from agentclinic.vocabulary.ontology import ontology
from agentclinic.vocabulary.text import words


@dataclass(frozen=True)
class Phrase:
    """A disease as it is written: the known name at its end, and the words before and after."""

    core: Name | None
    """None if the words say something about a disease without naming one: "bilateral"."""
    added: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Words that fit nowhere."""

    @cached_property
    def words(self) -> frozenset[str]:
        """All words, as written and with the usual names."""
        core = self.core.key | set(self.core.spelled) if self.core else frozenset()
        return core | {*self.added, *name_of(self.added).words}


_UNSAFE, _BESIDE, PLAIN = word_list("unsafe"), word_list("beside"), word_list("plain")
_SIGNS, _OFTEN_SECONDARY = word_list("signs"), word_list("often_secondary")
_SECONDARY_ENDINGS = tuple(word_list("secondary_endings"))
_MEDICAL = lazy.regex(rf".{{2,}}(?:{'|'.join(sorted(word_list('medical_endings')))})")
_PLAIN_WORDS = Path(__file__).parent / "data" / "plain_words.txt"
"""Words that describe, place, grade or explain a disease and can in no sentence deny it, doubt it or move it away."""
_CLAUSE = frozenset({"is", "it", "for"})
"""Words of a statement about the disease rather than of its name."""
_COUNTED = frozenset(
    "stage grade type class level degree factor group category phase trisomy gold rai nyha killip hinchey child figo "
    "vitamin score hess".split()
)
"""What a number may count; any other may be a share, a rank or a year."""
_RARE, _LONG = 3, 7
"""Public diseases in whose names a short word must occur; rarer ones are surnames, genes and everyday words."""
_SHORT = lazy.regex(r"[1-9]|1\d|[a-e]|[1-4][abc]|[1-9](?:st|nd|rd|th)|[a-z]{1,5}[1-9]\d{0,2}[a-z]?\d?")
"""Stages, types, vertebrae, genes and markers."""
_LONGEST_WORD = 50
"""The longest in medical dictionaries has 45 letters."""
_MOST_WORDS = 21
"""Words of the longest public name."""
_PREFIX = lazy.regex(
    r"(?:post|peri|pre|non|anti|intra|extra|sub|supra|retro|inter|para|hyper|hypo|poly|micro|macro|multi|trans)(?=\w{4})"
)


@lru_cache(maxsize=1)
def _safe() -> frozenset[str]:
    """Words that describe a disease: those of public names, of our tables, of findings and of tests."""
    public: set[str] = set()
    count: dict[str, set[str]] = {}
    for line in ontology().keys:
        text, _, place = line.partition("\t")
        for word in text.split(" "):
            if len(word) >= _LONG:
                public.add(word)
            elif len(word) > 2:
                count.setdefault(word, set()).add(place)
    public |= {word for word, places in count.items() if len(places) >= _RARE}
    table, known = name_table(), knowledge()
    texts = [text for entry in table.diseases for text in entry.names]
    texts += [text for group in (*table.organisms, *table.kinds.values()) for text in group]
    texts += [*table.words.values(), *table.kinds]
    texts += [finding.name for finding in known.findings.values()] + [test.name for test in known.tests.values()]
    ours = {form(word) for text in texts for word in words(text) if len(word) > 2}
    plain = {form(word) for word in words(_PLAIN_WORDS.read_text(encoding="utf-8"))}
    return frozenset(public | ours | plain | ORGANISMS | GRADE | COURSE | FUNCTION | GENERIC | PLAIN)


def is_medical(word: str) -> bool:
    """Whether a word ends as medical words do, whatever it means."""
    return _MEDICAL.fullmatch(word) is not None


def _is_safe(word: str) -> bool:
    if word in _UNSAFE or word.startswith("pseudo") or len(word) > _LONGEST_WORD:
        return False
    if word in _safe() or _SHORT.fullmatch(word) or is_medical(word) or is_place(word):
        return True
    prefix = _PREFIX.match(word)
    return prefix is not None and _is_safe(form(word[prefix.end() :]))


# --- phrases --------------------------------------------------------------------------------------------------------


def is_known(named: Name) -> bool:
    """Whether a name is that of a disease in our tables or the public vocabularies."""
    if not set(named.specific) - COURSE:
        return False
    # "Viral infection" is viral disease, but "eye" is not eye disease.
    public = ontology().whole(named) if named.key & GENERIC else ontology().exactly(named)
    return is_known_key(named.key) or public is not None


def is_sign(said: Phrase) -> bool:
    """Whether a phrase names what diseases lead to: a complaint, or a condition such as heart failure."""
    if said.core is None:
        return any(hit.concept.type == "symptom" for hit in found(" ".join(said.added)))
    *before, last = [word for word in said.core.specific if word not in COURSE] or [""]
    often = last in _OFTEN_SECONDARY or (last.endswith(_SECONDARY_ENDINGS) and last != "leukemia")
    return last in _SIGNS or (often and all(map(is_place, before)))


@lru_cache(maxsize=1)
def _organisms() -> frozenset[str]:
    return ORGANISMS | {word for group in name_table().organisms for text in group for word in name(text).words}


def is_organism(said: Phrase) -> bool:
    """Whether a phrase names a germ rather than the disease it causes."""
    return said.core is not None and not _organisms().isdisjoint(said.core.key)


def phrase(text: str, truths: tuple[Name, ...] = (), *, beside: bool = False) -> Phrase:
    """Read a noun phrase: a known name or one of the true ones, and the words that describe it.

    What stands beside a disease may be in the past or in the family: "after previous surgery".
    """
    tokens = tuple(_spelling(token, truths) for token in spelled(text))
    core, added = find_core(tokens, truths)
    unread = tuple(w for w in added if not (_is_safe(w) or (beside and w in _BESIDE)))
    unread += tuple(word for word in words(text) if word in _CLAUSE)
    if _COUNTED.isdisjoint(words(text)):
        unread += tuple(word for word in added if word.isdigit())
    return Phrase(core, added, unread or (added if core and _is_other(added, text) else ()))


def _is_other(before: tuple[str, ...], text: str) -> bool:
    """Whether a second disease stands before the name without a link: "psoriasis gout", not "diabetic gout"."""
    named = name_of(tuple(word for word in before if word not in GRADE | COURSE))
    said, stands_first = Phrase(named), words(text)[: len(named.spelled)] == named.spelled
    return bool(named.words) and stands_first and is_known(named) and not is_sign(said) and not is_organism(said)


@lru_cache(maxsize=4096)
def phrase_of(named: Name) -> Phrase:
    """The same for a true name, of which nothing needs to be known."""
    return Phrase(*find_core(named.spelled, ()))


def _spelling(token: str, truths: tuple[Name, ...]) -> str:
    """A misspelled word of the true name in its right spelling."""
    if len(token) < 6 or _is_safe(token):
        return token
    return next((word for true in truths for word in true.spelled if is_misspelling(token, word)), token)


def find_core(tokens: tuple[str, ...], truths: tuple[Name, ...]) -> tuple[Name | None, tuple[str, ...]]:
    """The longest known name at the end of a phrase, and the other words."""
    end = len(tokens)
    while end:
        for start in range(max(0, end - _MOST_WORDS), end):
            named = name_of(tokens[start:end])
            if any(is_named(named, true) for true in truths) or is_known(named):
                return named, tokens[:start] + tokens[end:]
        # Only a grade, a stage or a side may follow the name.
        if tokens[end - 1] not in GRADE | COURSE and not _SHORT.fullmatch(tokens[end - 1]):
            break
        end -= 1
    return None, tokens


def is_named(named: Name, true: Name) -> bool:
    if named.key == true.key or named.spelled == true.spelled:
        return True
    # "Brugada" is Brugada syndrome, but the kidney is not kidney disease.
    bare = {*named.specific} - COURSE
    return named.specific == true.specific and bool(bare) and not all(map(is_place, bare))


def is_whole(text: str, truths: tuple[Name, ...]) -> bool:
    """Whether a text is one name, of the truth or of a disease in the tables."""
    named = name_of(spelled(text))
    return any(is_named(named, true) for true in truths) or is_known(named)
