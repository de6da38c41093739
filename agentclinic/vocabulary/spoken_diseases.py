"""Names of diseases as people say them, without those that are also complaints, such as migraine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import Clause, Mention, Phrasebook, clauses
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.names import FUNCTION, GENERIC, GRADE, form
from agentclinic.vocabulary.ontology import key, ontology
from agentclinic.vocabulary.text import words

# The table of names also has what other names mention: organs, organisms, hormones, drugs.
_NO_DISEASE = frozenset(
    "ligament hormone aspirin atrioventricular cytomegalovirus system virus gastrointestinal genitourinary profundus "
    "dehydrogenase lobe ventricular tissue artery cava drug complex papillomavirus aureus mycobacteria puberty "
    "menopause climacteric development ss".split()
)
_SAYS_LITTLE = GENERIC | GRADE
_LONGEST = 8
"""Words of the longest public name that is looked for; a longer name has a shorter one in it."""


def disease_mentions(text: str) -> list[Mention]:
    found = _names().find(text)
    ours = {word for mention in found for word in mention.words}
    return found + [mention for mention in _public(text) if not ours.intersection(mention.words)]


@lru_cache(maxsize=4096)
def _public(text: str) -> tuple[Mention, ...]:
    """The names of Mondo in a text, longest first; not those of one word, as many are everyday words."""
    return tuple(
        mention
        for clause in clauses(text)
        for start, end in pairwise(sorted({0, *clause.breaks, len(clause.words)}))
        for mention in _public_between(clause, start, end)
    )


def _public_between(clause: Clause, start: int, last: int) -> Iterator[Mention]:
    known = ontology()
    forms = {place: form(clause.words[place]) for place in range(start, last)}
    while start < last:
        for end in range(min(start + _LONGEST, last), start + 1, -1):
            plain = [word for place in range(start, end) if (word := forms[place]) not in FUNCTION]
            if {forms[start], forms[end - 1]} & FUNCTION or len(set(plain) - _SAYS_LITTLE) < 2:
                continue
            place, part = known.place(key(plain)), clause.words[start:end]
            if place is not None and known.is_mondo(place) and _only_a_disease(" ".join(part)):
                yield Mention(known.names(place)[0], part, clause.negated[start] or clause.denied_after(end))
                start = end - 1
                break
        start += 1


@lru_cache(maxsize=1)
def _names() -> Phrasebook:
    entries = [entry.names for entry in name_table().diseases]
    entries += [(disease.name, *disease.synonyms) for disease in knowledge().diseases.values()]
    return Phrasebook({n[0]: [name for name in n if _only_a_disease(name)] for n in entries})


def _only_a_disease(name: str) -> bool:
    if not words(name) or words(name)[-1] in _NO_DISEASE or len(name) <= 3:
        return False
    length = len(lexicon.tokens(name))
    return not any(hit.concept.type == "symptom" and hit.end - hit.start >= length for hit in lexicon.found(name))
