"""Names of diseases as people say them, without those that are also complaints, such as migraine."""

from __future__ import annotations

from functools import lru_cache

from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.phrases import Mention, Phrasebook
from agentclinic.vocabulary.text import words

# The table of names also has what other names mention: organs, organisms, hormones, drugs.
_NO_DISEASE = frozenset(
    "ligament hormone aspirin atrioventricular cytomegalovirus system virus gastrointestinal genitourinary profundus "
    "dehydrogenase lobe ventricular tissue artery cava drug complex papillomavirus aureus mycobacteria puberty "
    "menopause climacteric development ss".split()
)


def disease_mentions(text: str) -> list[Mention]:
    """The diseases that a text names, and whether it denies them."""
    return _names().find(text)


@lru_cache(maxsize=1)
def _names() -> Phrasebook:
    """The names of diseases, without those that are also complaints, such as migraine."""
    entries = [entry.names for entry in name_table().diseases]
    entries += [(disease.name, *disease.synonyms) for disease in knowledge().diseases.values()]
    return Phrasebook({n[0]: [name for name in n if _only_a_disease(name)] for n in entries})


def _only_a_disease(name: str) -> bool:
    if not words(name) or words(name)[-1] in _NO_DISEASE or len(name) <= 3:
        return False
    length = len(lexicon.tokens(name))
    return not any(hit.concept.type == "symptom" and hit.end - hit.start >= length for hit in lexicon.found(name))
