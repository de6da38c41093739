"""Find where a text names a diagnosis: by its title, synonyms, abbreviations, eponyms or codes.

Spoken names are those that people say, without names that are also complaints, such as migraine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from agentclinic import lazy
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import Clause, Mention, Phrasebook, clauses
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.names import FUNCTION, GENERIC, GRADE, ORGANISMS, form, name, stands_for
from agentclinic.vocabulary.ontology import key, ontology
from agentclinic.vocabulary.ontology import synonyms as public_names
from agentclinic.vocabulary.taxonomy import taxonomy
from agentclinic.vocabulary.text import LONGEST_NAME, fold, tidy, words

# The table also lists what disease names mention: organs, organisms, hormones, drugs.
_NO_DISEASE = frozenset(
    "ligament hormone aspirin atrioventricular cytomegalovirus system virus gastrointestinal genitourinary profundus "
    "dehydrogenase lobe ventricular tissue artery cava drug complex papillomavirus aureus mycobacteria puberty "
    "menopause climacteric development ss".split()
)
_SAYS_LITTLE = GENERIC | GRADE
_LONGEST = 8
"""The most words of a public name that is looked for; a longer name contains a shorter one."""


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


def one_word_diseases(text: str) -> list[Mention]:
    """The one-word names of Mondo in a text that the lexicon has as a disease: hepatitis, but not cold."""
    known, found = ontology(), list[Mention]()
    for clause in clauses(text):
        for at, word in enumerate(clause.words):
            place = known.place(key((form(word),)))
            if place is not None and known.is_mondo(place) and lexicon.is_disease(word) and _only_a_disease(word):
                found.append(Mention(known.names(place)[0], (word,), clause.negated[at] or clause.denied_after(at + 1)))
    return found


@lru_cache(maxsize=1)
def _names() -> Phrasebook:
    entries = [entry.names for entry in name_table().diseases]
    entries += [(disease.name, *disease.synonyms) for disease in knowledge().diseases.values()]
    return Phrasebook({n[0]: [name for name in n if _only_a_disease(name)] for n in entries})


def _only_a_disease(name: str) -> bool:
    if not words(name) or words(name)[-1] in _NO_DISEASE or len(name) <= 3:
        return False
    return not lexicon.is_symptom(name)


# Qualifiers that can be dropped from a name.
_QUALIFIERS = frozenset(
    "acute chronic subacute active severe mild moderate primary secondary recurrent idiopathic stable unstable "
    "bilateral unilateral left right possible probable early late advanced classic typical uncomplicated "
    "traumatic nontraumatic closed open displaced nondisplaced comminuted".split()
)
# A name must consist of more than these words.
_TOO_LITTLE = frozenset(
    "disease syndrome disorder infection injury failure tumor cancer carcinoma anemia deficiency normal behavior "
    "toxic exposure reaction fracture rupture dislocation cyst".split()
)
# The part of a title before "with" or "due to" must have more than these: they are in many charts.
_BROAD = _TOO_LITTLE | frozenset(
    "malignant benign neoplasm hemorrhage bleeding abscess ulcer hernia hypertension diabete mellitus infarction "
    "embolism thrombosis occlusion stenosis poisoning complication disruption displacement contusion laceration "
    "wound pain shock inflammation hypertensive heart chronic acute unspecified other specified type open closed "
    "intoxication abuse dependence use alcohol viral bacterial local mechanical postoperative device "
    "displaced nondisplaced initial encounter organ vein artery deep hand foot mouth".split()
)
# A chronic disease that a title names before the acute problem: "diabetes with ketoacidosis".
_LASTING = frozenset(
    "diabete chronic cirrhosis atherosclerosi atherosclerotic hypertensive hypertension dependence asthma epilepsy "
    "dementia sclerosis arthritis schizophrenia myeloma".split()
)
# What coders add to a title and people do not say.
_RESIDUE = lazy.regex(
    r",?\s*\b(?:NOS|NEC|not elsewhere classified|not otherwise specified|(?:organism|site|cause) unspecified"
    r"|unspecified (?:organism|site|cause|type|state|duration)|unspecified as to \w+|initial encounter.*"
    r"|subsequent encounter.*|sequela|(?:initial|subsequent) episode of care|episode of care unspecified"
    r"|without mention of .*|not stated as .*|of unspecified \w+|in relapse|in remission|uncontrolled"
    r"|(?:type )?(?:I|II|1|2) or unspecified type|unspecified)\b",
    re.IGNORECASE,
)
_LEADING = lazy.regex(
    r"^(?:other and unspecified|other specified|unspecified|other forms of|other|certain|chronic or unspecified)\s+",
    re.IGNORECASE,
)
_TAIL = lazy.regex(r"\s+(?:with|without|due to|following|affecting|involving|from|in)\s+.*|,.*", re.IGNORECASE)
_WITH = lazy.regex(r"^(?:diabetes|diabetes mellitus|.*\bdiabetes mellitus) with (?:diabetic )?(.+)$", re.IGNORECASE)
_BOTH = lazy.regex(r"^(?P<first>\w+) and (?P<second>\w+) of (?P<place>.+)$")
_NEOPLASM = lazy.regex(r"^(?P<second>secondary )?malignant neoplasm of (?:the )?(?P<site>.+)$", re.IGNORECASE)
# A test is named after what it looks for: "Hepatitis C virus antibody" is an assay, not the patient's disease.
_ASSAY = frozenset(
    "antibody antigen virus dna rna pcr screen test toxin culture titer igg igm iga ab ag viral load smear serology "
    "panel ratio index".split()
)
_AGENT = lazy.regex(r"\b(?:virus|antibod(?:y|ies)|antigen|dna|rna|pcr|toxin|igg|igm)s?\b(?! (?:infection|disease))")
_CAPITALS = lazy.regex(r"(?<![\w-])[A-Z]{3,6}(?![\w-])")
_LONGEST_EXTRA = 2
"""Words that a rewording may add to those of the name: "cancer of the gallbladder"."""


@dataclass(frozen=True)
class Found:
    """A name found in a text."""

    phrase: str
    broad: bool = False
    """Only the chronic disease in the title, which is not a leak in a past history."""


class Names:
    """Finds the names of one diagnosis in texts."""

    def __init__(self, diagnosis: str, synonyms: Iterable[str] = (), codes: Iterable[str] = ()) -> None:
        given = tuple(tidy(title)[:LONGEST_NAME] for title in (diagnosis, *synonyms))
        self._phrases = diagnosis_names(given[0], given[1:])
        titles = [variant for title in given for variant in (title, *_variants(title))]
        heads = list(dict.fromkeys(_heads(titles)))
        chronic = [other for head in heads if _LASTING & set(words(head)) for other in (head, *_group(head))]
        acute = [other for head in heads if head not in chronic for other in (head, *_group(head))]
        unknown = [title for title in given if not taxonomy().has(name(title))]
        public = [other for title in unknown for other in public_names(title) if _says_enough(other)]
        self._phrases += [head for head in dict.fromkeys((*acute, *public)) if head not in (*self._phrases, *chronic)]
        chronic = [head for head in dict.fromkeys(chronic) if head not in self._phrases]
        # Not what an abbreviation stands for: it may stand for other diseases as well.
        written_out = [phrase for phrase in self._phrases if not _is_short(phrase) and _says_enough(phrase)]
        full = {name(phrase).key: phrase for phrase in written_out}
        self._keys = {name(head).key: head for head in chronic if not _is_short(head)} | full
        self._words = frozenset(word for key in self._keys for word in key)
        self._longest = max((len(words(text)) for text in (*self._phrases, *chronic)), default=0) + _LONGEST_EXTRA
        shorts = {short: name(long).key for short, long in name_table().abbreviations.items()}
        known = [short for short, key in shorts.items() if key in full]
        broad = [short for short, key in shorts.items() if key in self._keys and key not in full]
        self._broad = frozenset((*chronic, *broad)) - frozenset((*self._phrases, *known))
        phrases = dict.fromkeys((*self._phrases, *chronic, *known, *broad))
        self._shorts = frozenset(filter(_is_short, phrases))
        self._book = Phrasebook({phrase: (phrase,) for phrase in phrases})
        self._codes = [_code_pattern(code) for code in codes if code.strip()]

    def find(self, text: str, heads: tuple[str, ...] = (), *, result: bool = False) -> Iterator[Found]:
        """Each name in the text, or in the headings above it, that is not denied.

        With `result`, the headings name tests, and bare numbers are values rather than codes.
        """
        whole = " ".join((*heads, text))
        for mention in dict.fromkeys(self._book.find(whole)):
            if mention.negated or (mention.key in self._shorts and not _is_written_in(mention.key, whole)):
                continue
            if result and (_only_an_assay(mention.words, heads, text) or _only_an_agent(mention.words, text)):
                continue
            yield Found(mention.key, mention.key in self._broad)
        if not (result and _AGENT.search(fold(text))):
            yield from self._reworded(text)
        for short in dict.fromkeys(_CAPITALS.findall(text)):
            # Not of two words: MRI has the initials of "mesenteric infarction".
            long = (text for text in self._phrases if len(set(words(text)) - FUNCTION) >= 3)
            phrase = next((text for text in long if stands_for(short, text)), None)
            if phrase and not _denied(short, text):
                yield Found(f"{short} for {phrase}")
        for pattern in self._codes:
            if code := pattern.search(text, loose=not result):
                yield Found(code)

    def _reworded(self, text: str) -> Iterator[Found]:
        """Reworded names: another word order, other word forms, a synonym of a part."""
        for clause in clauses(text):
            # Only stretches that begin and end with a word of the name.
            marked = [place for place, word in enumerate(clause.words) if self._words & set(name(word).words)]
            for first, start in enumerate(marked):
                for end in (place + 1 for place in marked[first : first + self._longest]):
                    if end > start + self._longest:
                        break
                    if any(clause.negated[start:end]):
                        continue
                    if end - start == 1 and clause.words[start].upper() in _short_words():
                        continue  # "all" is not a leukemia: abbreviations count only as written
                    phrase = self._keys.get(name(" ".join(clause.words[start:end])).key)
                    if phrase and not clause.denied_after(end):
                        yield Found(phrase, phrase in self._broad)


def diagnosis_names(diagnosis: str, synonyms: tuple[str, ...] = ()) -> list[str]:
    """How a text might name a diagnosis: in full, without parentheses, by what is in them, by synonyms."""
    titles = [tidy(title)[:LONGEST_NAME] for title in (diagnosis, *synonyms)]
    titles += [variant for title in titles for variant in _variants(title)]
    names = list(dict.fromkeys(titles))
    for variant in titles:
        core = [word for word in words(variant) if word not in _QUALIFIERS]
        if core and set(core) - _TOO_LITTLE and len(core) < len(words(variant)):
            names.append(" ".join(core))
    for variant in list(names):
        names += _group(variant)
    return [n for n in dict.fromkeys(map(str.strip, names)) if n and (_is_short(n) or _says_enough(n))]


def _says_enough(phrase: str) -> bool:
    return bool(set(words(phrase)) - _TOO_LITTLE - FUNCTION) and len("".join(words(phrase))) > 2


def _variants(title: str) -> Iterator[str]:
    """A title as people say it: with or without parentheses, without coders' words, with "cancer" for tumors."""
    outside = re.sub(r"\s*(?:\([^)]{0,200}\)|\[[^\]]{0,200}\])", "", title).strip()
    inside = [text for text in re.findall(r"[(\[]([^)\]]{0,200})[)\]]", title) if _is_alias(text)]
    plain = re.sub(r"[()\[\]]", "", title)
    for text in (outside, plain, *inside):
        yield text
        said = _LEADING.sub("", _RESIDUE.sub("", text)).strip(" ,")
        yield said
        before, comma, after = said.partition(", ")
        if comma and "," not in after and len(after.split()) <= 3:
            yield f"{after} {before}"
        yield from _parts(said)


def _is_alias(text: str) -> bool:
    """Whether parentheses hold a name: "(PML)" does, but "[E. coli]" is an organism and "[bands]" explains a word."""
    return not set(name(text).words) <= ORGANISMS and (" " in text.strip() or not text.strip().islower())


def _parts(said: str) -> Iterator[str]:
    """The parts of a title: the tumor of a site, two diseases of one place, a disease and its complication."""
    tumor = _NEOPLASM.match(said)
    if tumor:
        kinds = ("metastasis", "metastatic cancer") if tumor["second"] else ("cancer", "carcinoma")
        yield from (f"{kind} of {tumor['site']}" for kind in kinds)
    both = _BOTH.match(said)
    if both:
        yield from (f"{both[one]} of {both['place']}" for one in ("first", "second"))
    _, with_, turn = said.partition(" with ")
    for one in (both["first"], both["second"]) if both else (said.partition(" of ")[0],):
        companion = with_ and _LASTING & set(words(one))
        if one != said and _is_disease(one) and not companion:
            yield one
    if with_ and _group(turn):
        yield turn
    part = _WITH.match(said)
    if part:
        yield part[1]
        yield f"diabetic {part[1]}"


def _is_disease(text: str) -> bool:
    return bool(set(words(text)) - _BROAD) and bool(_group(text))


def _heads(names: list[str]) -> Iterator[str]:
    """What comes before "with" or "due to", if it is more than a broad word."""
    for phrase in names:
        head = _TAIL.sub("", phrase).strip(" ,")
        if head and head != phrase and set(words(head)) - _BROAD - _QUALIFIERS - FUNCTION - GENERIC - GRADE:
            yield head


def _group(variant: str) -> list[str]:
    """Every name the table has for the same disease."""
    return [other for names in _groups().get(name(variant).key, ()) for other in names]


@lru_cache(maxsize=1)
def _groups() -> dict[frozenset[str], list[tuple[str, ...]]]:
    """The names that give each disease away, by the key of each name."""
    table = name_table().diseases
    by_name = {entry.names[0]: entry for entry in table}
    found: dict[frozenset[str], list[tuple[str, ...]]] = {}
    for entry in table:
        alike = (entry, *(by_name[other] for other in entry.leaks_with))
        group = tuple(text for one in alike for text in (*one.names, *one.short, *one.leaks))
        if len(group) > 1:
            # The table's abbreviations have one meaning, the leak checker's may have another: AS, aortic stenosis.
            for key in {name(text).key for text in group if text not in name_table().abbreviations}:
                if key - GENERIC:
                    found.setdefault(key, []).append(group)
    return found


@lru_cache(maxsize=1)
def _short_words() -> frozenset[str]:
    return frozenset(short.upper() for short in name_table().abbreviations)


def _is_short(phrase: str) -> bool:
    """Whether a phrase is an abbreviation, which counts only as written: "all" and "pe" are other words."""
    return " " not in phrase and 2 <= len(phrase) <= 6 and sum(char.isupper() for char in phrase) >= 2


def _is_written_in(short: str, text: str) -> bool:
    # Not in a heading that is all capitals: "ALL CULTURES".
    found = re.search(rf"(?<![\w]){re.escape(short)}(?:s|'s)?(?![\w])", text)
    return bool(found) and not (len(short) <= 4 and text.isupper() and " " in text.strip())


def _denied(short: str, text: str) -> bool:
    return all(mention.negated for mention in Phrasebook({short: (short,)}).find(text))


def _only_an_assay(found: tuple[str, ...], heads: tuple[str, ...], text: str) -> bool:
    """Whether the name is only in the headings, as part of a test's name."""
    tested = words(" ".join(heads))
    return not _places(found, words(text)) and bool(_places(found, tested) and _ASSAY & set(tested))


def _only_an_agent(found: tuple[str, ...], text: str) -> bool:
    """Whether the text only names what was found in a specimen: "varicella zoster virus"."""
    said = words(text)
    ends = [place + len(found) for place in _places(found, said)]
    return bool(ends) and all(_AGENT.search(" ".join(said[end : end + 3])) for end in ends)


def _places(few: tuple[str, ...], many: tuple[str, ...]) -> list[int]:
    return [place for place in range(len(many)) if many[place : place + len(few)] == few]


@dataclass(frozen=True)
class _Code:
    """How a code may be written: on its own, or only after a word like "ICD-10"."""

    anywhere: re.Pattern[str] | None
    in_words: re.Pattern[str] | None
    announced: re.Pattern[str]

    def search(self, text: str, *, loose: bool) -> str | None:
        patterns = (self.anywhere, self.announced, self.in_words if loose else None)
        return next((found[0] for pattern in patterns if pattern and (found := pattern.search(text))), None)


_ANNOUNCES = r"\b(?:ICD(?:[- ]?(?:9|10))?(?:[- ]?CM)?|codes?|coded|dx)\b\W{0,4}(?:\w+\W+){0,2}?"


@lru_cache(maxsize=4096)
def _code_pattern(code: str) -> _Code:
    plain = code.replace(".", "").strip().upper()
    category, rest = plain[:3], plain[3:]
    ending = rf"(?:\.?{re.escape(rest)})?(?![\w])"
    announced = re.compile(rf"{_ANNOUNCES}{re.escape(category)}{ending}", re.IGNORECASE)
    if not plain.isdigit():
        # Only as written: "e43" may be part of a serial number, and "HLA-B27" is not mononucleosis.
        anywhere = re.compile(rf"(?<![\w-]){re.escape(category)}(?:\.?[0-9A-Z]{{1,4}})?(?![\w])")
        return _Code(anywhere, None, announced)
    # Three digits alone may be any number; with a dot, or with five digits, they are a code.
    dotted = re.compile(rf"(?<![\w.]){category}\.{rest}(?![\w])") if rest else None
    bare = re.compile(rf"(?<![\w.]){plain}(?![\w])") if len(plain) >= 4 else None
    both = [pattern.pattern for pattern in (dotted, bare) if pattern]
    return _Code(None, re.compile("|".join(both)) if both else None, announced)
