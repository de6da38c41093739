"""Disease names in one form, whatever their spelling, abbreviations, synonyms, word forms and word order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from rapidfuzz.distance import OSA

from agentclinic import lazy
from agentclinic.vocabulary.lexicon import found
from agentclinic.vocabulary.name_table import name_table, relations, siblings
from agentclinic.vocabulary.text import tidy, words

FUNCTION = frozenset("an and at by for from in is it of on the to with due type subtype sided point".split())
"""Words without meaning in a name. "a" is not one of them: hepatitis A."""
GENERIC = frozenset("disease syndrome disorder condition infection infestation illness process lesion problem".split())
"""Words that do not name a disease on their own."""
GRADE = frozenset(
    "severe mild moderate active classic classical typical likely probable probably suspected presumed possible "
    "possibly new onset newly diagnosed confirmed uncomplicated complicated symptomatic early late advanced "
    "progressive recurrent persistent refractory untreated uncontrolled exacerbation flare attack episode relapse "
    "consistent clinical most stage grade marked underlying current emerging overt superimposed evolving".split()
)
"""Words that grade a disease, or the doctor's confidence, without making it a different disease."""
ORGANISMS = frozenset(
    "virus bacteria fungus parasite streptococcus staphylococcus pneumococcus meningococcus gonococcus cryptococcus "
    "candida tuberculosis legionella klebsiella pseudomona mycoplasma chlamydia escherichia coli salmonella shigella "
    "campylobacter clostridioides clostridium helicobacter haemophilus listeria neisseria enterococcus herpes "
    "cytomegaloviru influenza adenoviru rotaviru noroviru enteroviru coxsackieviru parvoviru varicella zoster "
    "aspergillus histoplasma blastomyce coccidioides pneumocystis toxoplasma plasmodium falciparum vivax ovale "
    "malariae giardia entamoeba borrelia treponema rickettsia bartonella brucella nocardia actinomyce mycobacterium "
    "epstein aureus pneumoniae pylori mucor norovirus rotavirus adenovirus cytomegalovirus".split()
)
_PREFIXES = frozenset(
    "post pre anti micro macro multi sub hyper hypo pseudo neo intra inter extra auto meta peri para poly gastro "
    "cardio osteo broncho musculo cerebro veno vaso retro supra infra ultra hemo neuro".split()
)
# Not x: X-linked.
_ROMAN = {
    "i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11",
    "xii": "12", "xiii": "13", "xiv": "14", "xv": "15", "xvi": "16", "iia": "2a", "iib": "2b", "iic": "2c",
    "iiia": "3a", "iiib": "3b", "iiic": "3c",
}  # fmt: skip
_GREEK = {
    ord(letter): f" {word} "
    for letter, word in zip("αβγδεκλμω", "alpha beta gamma delta epsilon kappa lambda mu omega".split(), strict=True)
}
_GREEK_NUMBERED = lazy.regex(r"\b(alpha|beta|gamma|delta)(?=\d)", re.IGNORECASE)
_BRITISH = (
    (lazy.regex(r"ae|oe(?!x)"), "e"), (lazy.regex(r"our"), "or"), (lazy.regex(r"is(?=(?:e|ed|ing|ation)$)"), "iz"),
    (lazy.regex(r"leuc(?=[eo])"), "leuk"), (lazy.regex(r"sulph"), "sulf"), (lazy.regex(r"(?<=[bt])re$"), "er"),
)  # fmt: skip
# Adjectives formed from a disease: neutropenic fever is fever in neutropenia.
_ADJECTIVES = (("emic", "emia"), ("penic", "penia"), ("otic", "osis"), ("itic", "itis"), ("oxic", "oxia"))
# Adjectives that mean something else: nephritic syndrome is more than nephritis, an antibiotic is not antibiosis.
_NOT_AN_ADJECTIVE = lazy.regex(r"anti|nephritic$|narcotic$|hypnotic$")
# Greek and Latin plurals once `words` has removed a final s: keratoses, arthritides, fibromata.
_PLURALS = (("ose", "osis"), ("itide", "itis"), ("omata", "oma"), ("stase", "stasis"))
# Abbreviations that are also English words: read as abbreviations only alone or when nothing else is in capitals.
_ALSO_WORDS = frozenset("ALL AS TEN MEN HIT CAP PAN PAD FAS IDA MS AR MAC DRESS COP MALT GIST PET RAS".split())
_ABBREVIATION = lazy.regex(r"(?<![\w.])[A-Za-z][A-Za-z0-9]*(?:-[A-Z])?(?![\w])")
# "a" is a type after these words, and an article elsewhere.
_ARTICLE = lazy.regex(r"(?<!\bhepatitis )(?<!\bhemophilia )(?<!\binfluenza )(?<!\btype )\b(?:a|an|the)\s+(?=\w)")
# What follows one of these goes before the head: "stenosis of the mitral valve" becomes "mitral valve stenosis",
# "anemia, iron deficiency" becomes "iron deficiency anemia".
_AFTER_HEAD = lazy.regex(
    r"(?:\s*,\s*|\s+(?:of|in|due to|caused by|secondary to|from|involving|affecting|because of|resulting from"
    r"|related to|associated with|to)\s+)(?:the\s+|a\s+|an\s+)?",
    re.IGNORECASE,
)
_POSSESSIVE = lazy.regex(r"['’]s\b")
_WITHOUT = lazy.regex(r"\bwithout\s+(?=[a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Name:
    """A name in its one form; the last word is the head."""

    words: tuple[str, ...]
    spelled: tuple[str, ...] = field(default=(), compare=False)
    """The same before synonyms were replaced."""

    @cached_property
    def key(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def specific(self) -> tuple[str, ...]:
        """The words that say which disease it is."""
        return tuple(word for word in self.words if word not in GENERIC and word not in GRADE)


def name(text: str) -> Name:
    return name_of(spelled(text))


@lru_cache(maxsize=65536)
def name_of(tokens: tuple[str, ...]) -> Name:
    """The name that these words make, in the form of `spelled`."""
    return Name(_book().replace(tokens), tokens)


@lru_cache(maxsize=16384)
def spelled(text: str) -> tuple[str, ...]:
    """The words of a name in one spelling, head last, abbreviations written out; synonyms stay as they are."""
    text = _POSSESSIVE.sub("", tidy(text))
    text = _GREEK_NUMBERED.sub(r"\1 ", text if text.isascii() else text.translate(_GREEK))
    text = _ARTICLE.sub("", _expand(_WITHOUT.sub("non-", text)))
    tokens = [token for part in reversed(_AFTER_HEAD.split(text)) for token in _join_prefixes(words(part))]
    return tuple(token for token in map(form, tokens) if token not in FUNCTION)


@lru_cache(maxsize=4096)
def implied(meant: Name) -> frozenset[str]:
    """Words a name implies: those of its synonyms, and the organism that is its only cause."""
    implied_words = set(_book().words_of.get(meant.words, ()))
    for disease, organism in _causes():
        if disease <= meant.key:
            implied_words |= organism
    return frozenset(implied_words | {wide for word in implied_words for wide in wider(word)})


@lru_cache(maxsize=1)
def _causes() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """The words of diseases that have one cause, and those of the cause."""
    return tuple((name(disease).key, name(organism).key) for disease, organism in name_table().caused_by.items())


def _expand(text: str) -> str:
    known = _abbreviations()
    alone = text.strip()
    if alone.upper() in known and " " not in alone:
        return known[alone.upper()]
    all_capitals = alone.isupper() and " " in alone

    def expand(match: re.Match[str]) -> str:
        short = match[0]
        if all_capitals and short in _ALSO_WORDS:
            return short
        # Two letters, and abbreviations that are also English words, count in capitals only.
        any_case = len(short) > 2 and short.upper() not in _ALSO_WORDS
        kept = short.upper() if any_case else short
        if len(short) > 2 and short[-1] == "s" and short[:-1].isupper():  # "bilateral PEs"
            kept = short[:-1] if short[:-1] in known else kept
        base, dash, kind = kept.partition("-")
        return known.get(kept) or (f"{known[base]} {kind}" if dash and base in known else short)

    return _ABBREVIATION.sub(expand, text)


@lru_cache(maxsize=1)
def _abbreviations() -> dict[str, str]:
    known = name_table().abbreviations
    return {**{short.upper(): full for short, full in known.items()}, **known}


def _join_prefixes(tokens: tuple[str, ...]) -> list[str]:
    """Join a prefix to its word: "post traumatic" becomes "posttraumatic"."""
    joined: list[str] = []
    for token in tokens:
        if joined and joined[-1] in _PREFIXES:
            joined[-1] += token
        else:
            joined.append(token)
    return joined


@lru_cache(maxsize=65536)
def form(token: str) -> str:
    negated = token.startswith("non") and len(token) > 6
    bare = token[3:] if negated else token
    if len(bare) > 4:
        for british, american in _BRITISH:
            bare = british.sub(american, bare)
    for plural, one in _PLURALS:
        if len(bare) > len(plural) + 3 and bare.endswith(plural):
            bare = bare.removesuffix(plural) + one
    bare = _word_forms().get(bare, bare)
    for ending, noun in _ADJECTIVES:
        if len(bare) > len(ending) + 2 and bare.endswith(ending) and not _NOT_AN_ADJECTIVE.match(bare):
            bare = bare.removesuffix(ending) + noun
    return ("non" if negated else "") + _ROMAN.get(bare, bare)


@lru_cache(maxsize=1)
def _word_forms() -> dict[str, str]:
    return {token: words(word)[0] for form, word in name_table().words.items() for token in words(form)}


class _Book:
    """Replaces synonyms with the usual name, longest first."""

    def __init__(self) -> None:
        self._usual: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._by_key: dict[frozenset[str], tuple[str, ...]] = {}
        self.words_of: dict[tuple[str, ...], set[str]] = {}
        """The words of all synonyms of a usual name."""
        for group in (*name_table().organisms, *name_table().synonyms):
            self._add([tokens for tokens in map(spelled, group) if tokens])
        self._lengths: dict[str, int] = {}
        for tokens in self._usual:
            self._lengths[tokens[0]] = max(len(tokens), self._lengths.get(tokens[0], 0))

    def _add(self, group: list[tuple[str, ...]]) -> None:
        # Two groups that share a spelling ("renal" is "kidney") are one.
        usual = next((self._usual[tokens] for tokens in group if tokens in self._usual), group[0])
        for tokens in (*group, usual):
            self._usual.setdefault(tokens, usual)
            self._by_key.setdefault(frozenset(tokens), usual)
            self.words_of.setdefault(usual, set()).update(tokens)

    def replace(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """Replace every synonym, then once more: a replacement may complete another name."""
        once = self._once(tokens)
        return once if once == tokens else self._once(once)

    def _once(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        whole = self._by_key.get(frozenset(tokens))
        if whole is not None:
            return whole
        result: list[str] = []
        index = 0
        while index < len(tokens):
            for end in range(min(len(tokens), index + self._longest(tokens[index])), index, -1):
                usual = self._usual_name(tokens[index:end])
                if usual is not None:
                    result.extend(usual)
                    index = end
                    break
            else:
                result.append(tokens[index])
                index += 1
        # "Peptic ulcer disease disease": drop a word repeated at once.
        return tuple(word for place, word in enumerate(result) if place == 0 or word != result[place - 1])

    def _longest(self, first: str) -> int:
        """How many words the longest name has that begins with this one."""
        return max(self._lengths.get(first, 0), self._lengths.get(first.removeprefix("non"), 0))

    def _usual_name(self, part: tuple[str, ...]) -> tuple[str, ...] | None:
        usual = self._usual.get(part)
        if usual is None and part[0].startswith("non"):
            negated = self._usual.get((part[0][3:], *part[1:]))
            return ("non" + negated[0], *negated[1:]) if negated else None
        return usual


@lru_cache(maxsize=1)
def _book() -> _Book:
    return _Book()


def _related() -> list[tuple[str, ...]]:
    tables = (*relations("broader"), *relations("narrower"), *relations("manifestations"))
    return [*siblings(), *((entry.name, *entry.of) for entry in tables)]


COURSE = frozenset("acute chronic subacute left right bilateral".split())
"""Words that neither change which disease a name means nor name one themselves."""


@lru_cache(maxsize=1)
def _known() -> frozenset[frozenset[str]]:
    return frozenset(name(text).key for group in (*name_table().synonyms, *_related()) for text in group)


def is_known_key(words: frozenset[str]) -> bool:
    """Whether a disease of the tables has a name with these words."""
    return words in _known()


def is_place(word: str) -> bool:
    return any(hit.concept.type == "place" for hit in found(word))


def narrower(word: str) -> frozenset[str]:
    """Words for kinds of the same thing: haloperidol is an antipsychotic."""
    return frozenset(map(form, name_table().kinds.get(word, ())))


@lru_cache(maxsize=1)
def _wider() -> dict[str, frozenset[str]]:
    above: dict[str, set[str]] = {}
    for wide in name_table().kinds:
        for word in narrower(wide):
            above.setdefault(word, set()).add(wide)
    return {word: frozenset(up | {top for one in up for top in above.get(one, ())}) for word, up in above.items()}


def wider(word: str) -> frozenset[str]:
    """Words for what this is a kind of: a pneumococcus is a streptococcus and a bacterium."""
    return _wider().get(word, frozenset())


def stands_for(short: str, full: str) -> bool:
    """Whether an abbreviation missing from the table plainly abbreviates this name: FMD, fibromuscular dysplasia."""
    return short.strip().replace("-", "") not in _abbreviations() and abbreviates(short, full)


def abbreviates(short: str, full: str) -> bool:
    """Whether it starts with the first letter, has the initials of all words in order, and only letters of the name."""
    letters = short.strip().replace("-", "")
    parts = [word for word in words(full) if word not in FUNCTION]
    if not (2 <= len(letters) <= 6 and letters.isalpha() and letters.isupper() and len(parts) > 1):
        return False
    initials, lower = "".join(word[0] for word in parts), letters.lower()
    return lower[0] == initials[0] and _in_order(initials, lower) and _in_order(lower, "".join(parts))


def _in_order(few: str, many: str) -> bool:
    rest = iter(many)
    return all(letter in rest for letter in few)


def is_misspelling(word: str, other: str) -> bool:
    """One letter wrong, missing, extra or swapped with its neighbor; two in a long word."""
    # Hyper- is not hypo-, and -itis is not -oma, however few letters differ.
    if word[0] != other[0] or word[:5].startswith(("hyper", "hypo")):
        return False
    if word[-2:] != other[-2:] and sorted(word) != sorted(other):
        return False
    allowed = 2 if min(len(word), len(other)) >= 10 else 1
    return OSA.distance(word, other, score_cutoff=allowed) <= allowed
