"""Split a question into clauses, and each clause into the things it lists."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import or_
from typing import TypeVar

from agentclinic import lazy
from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.cues import Cue
from agentclinic.cases.model import Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.lexicon import Named
from agentclinic.vocabulary.text import STOP_WORDS, singular, tidy

MAIN_TYPES = ("symptom", "disease", "drug", "procedure", "habit", "life", "exposure", "person")
"""Types of concepts that can be asked about on their own; the others narrow a question down."""
_ASKS = (
    r"do|does|did|is|are|was|were|have|has|had|when|how|what|where|whether|can|could|would|will|any|who|which|why|if"
    r"|please|also"
)
_ALSO_ASKS = rf"(?:and|or)\s+(?=(?:{_ASKS})\b(?! (?:all|other)\b))"
_CLAUSE = Cue(
    rf"[?;]+\s*|\.\s+|—(?:and |or )?(?=(?:{_ASKS})\b)"
    rf"|,(?:\s*{_ALSO_ASKS}|\s+(?=(?:do|does|did|have|has|when|how|what|where|whether|can)\b))"
    # Most spaces are before other words, which are told by their first letters.
    rf"|\s(?=[-–ao\s])(?:[-–]\s(?:and |or )?(?=(?:{_ASKS})\b)|(?<!you\s)(?<!\byour\s)\s*{_ALSO_ASKS})"
)
_DASH = lazy.regex(r"—|\s[-–]\s")
# What a question mentions without asking about it: "besides the rash", "along with the ataxia", "that could …".
_ASIDE = Cue(
    r"\b(?:besides|other than|apart from|aside from|along with the|alongside the|in addition to"
    r"|that (?:could|might|may|would)|which (?:could|may|might)|(?:to |that )?suggest(?:s|ing|ive)?|prior to the"
    r"|before (?:the|this|it|these|you|your)|since (?:then|birth|it|the)|out of proportion|if applicable|on (?:a|your) "
    r"(?:smartwatch|monitor)|(?<!start )(?<!begin )with (?:the|these|this|it)|now or in the past"
    r"|at rest or (?:with|on|during)|(?:in|on) those areas"
    r"|that seem\w*|during (?:this|these|that))\b[^,;?()]*|^given [^,]*,"
    # A known symptom only gives the place of the one asked about: "numbness over the lesions".
    r"|\b(?:over|in|on|of|between|around) (?:the|these|those|this) (?:rash|lesion|patch|spot|wound|seizure"
    r"|episode|attack)\w*(?: areas?)?|\bbetween (?:seizure|episode|attack)s"
)
LISTED = Cue(
    r"[,:!()/\[\]]|\b(?:or|and|plus|like(?! (?:this|that|it|these|those)\b)|such as|including|e\.g\.?|i\.e\.?|versus|vs"
    r"|as well as|nor|but|especially|particularly)(?=\W|$)|—|\s[-–]\s"
)
_DEFINITE = lazy.regex(
    r"^(?:and |or |so |but )?(?:how |why )?(?:is|are|was|were|does|do|did|has|have|can|could)\s+"
    r"(?:the|your|this|these|that|those|his|her|its|their|my)\s+",
    re.IGNORECASE,
)
_CONDITION = Cue(
    r"\b(?:when(?:ever)?|while|during|after|following|upon|with(?!out)|triggered by|brought on by|related to|due to)\b"
    r"(?! (?:did|was|were|is|are|do|does)\b)"
)
_MOST_PARTS = 240
"""Things in a question that are looked up. Our longest labeled question lists 9; each costs half a millisecond, and
meanwhile every other encounter waits."""
_FEWEST_PARTS = 8
"""Things in a clause that are looked up, however many clauses there are: our longest labeled clause lists 7."""
_LONGEST_CLAUSE = 2000
"""Characters of a clause that are read."""
_SUBJECT_REACH = 3
"""Longest subject in words: "the double vision", "your right knee pain"."""


@dataclass(frozen=True, eq=False)
class Part:
    """One of the things a clause asks about."""

    text: str
    named: Named
    main: int
    """The concepts it names that can be asked about on their own."""
    stems: frozenset[str]
    whole: bool = False
    """Whether it is the whole clause, not one of its parts."""
    place: int = 0
    """Its index among the parts."""
    conditional: bool = False
    """Whether it is part of a condition or follows one: "blue with crying or feeding"."""
    wordings: tuple[str, ...] = ()
    """What it asks in full: after what a condition is about, with the clause before "how much?", or for "does it" with
    what was named before."""


@dataclass(frozen=True, eq=False)
class Clause:
    """One of the questions asked together."""

    text: str
    parts: tuple[Part, ...]
    names: int
    main: int
    places: int
    subject: int
    """What it is about: what it names, or what an earlier clause named."""
    before: int
    """What the previous clause is about."""
    known: int
    """The symptom it takes as known: "is the rash itchy" asks about the itch."""
    aspects: tuple[bool, ...]
    background: tuple[bool, ...]
    sections: frozenset[Section]
    """The background sections it asks about."""
    of_kin: bool
    where: bool
    when: bool
    """Asks only for a time."""
    worse: bool
    better: bool


# When it happens, before what is asked: "During an attack, does your eye water?"
_CIRCUMSTANCE = lazy.regex(
    r"(?:^|(?<=[.?!;] ))(?:and |so |or )?(?:during|in|with|when(?:ever)? you(?:'re| are| get| have)"
    r"(?: having| getting)?) (?:an?|the|these|those|this|your|each) (?:\w+ )?"
    r"(?:attack|episode|bout|spell|event|flare|pain|headache|period)s?(?: (?:come|happen|occur|start)s?)?, ",
    re.IGNORECASE,
)
# Asks for no more than the clause before it: "what have you tried, and did anything help?"
DID_IT_HELP = lazy.regex(
    r"(?:did|does|has|have|was|is|if so)(?: (?:it|that|this|they|any of (?:it|them|that|those|this)|anything))?"
    r"(?: (?:make|made) (?:a|any) difference| (?:been )?(?:work|help)(?:ed|ing|ful)?)?(?: at all)?\W*",
    re.IGNORECASE,
)
# "during or after exercise" is one thing.
_EITHER_TIME = Cue(
    r"\b(during|before|with|while|in|on|at|around|when) (?:or|and) (?=(?:after|during|before|with|around|following)\b)"
)


def every_clause(question: str) -> list[str]:
    """The clauses of a question, with those that ask for no more than the one before."""
    text = _CIRCUMSTANCE.sub("", tidy(question).replace("’", "'"))
    parts = _CLAUSE.split(_EITHER_TIME.sub(r"\1 ", text))
    return [_DASH.sub(": ", part).strip() for part in parts if part and part.strip()]


@lru_cache(maxsize=8192)
def clause_texts(question: str) -> tuple[str, ...]:
    texts = every_clause(question)
    texts = [text for place, text in enumerate(texts) if not (place and DID_IT_HELP.fullmatch(text))]
    return tuple(text for text in texts if not _is_lead(text)) or tuple(texts)


_LEADS = lazy.regex(r"(?:so|today|yesterday|on|at|in|before|after|just|by|now)\b", re.IGNORECASE)


def _is_lead(text: str) -> bool:
    """Whether a clause only leads up to a question: "today, at the party", "so to be clear"."""
    if not _LEADS.match(text) or cues.OPEN.search(text) or cues.ASKS.search(text):
        return False
    return not lexicon.named(text).names & lexicon.of_types("symptom", "disease", "drug", "procedure", "habit")


_Whole = TypeVar("_Whole", str, list[str])


def _ends(whole: _Whole, most: int) -> _Whole:
    """A text or list that is too long, without its middle: what is meant comes first or last."""
    return whole if len(whole) <= most else whole[: most // 2] + whole[-most // 2 :]


def without_asides(clause: str) -> str:
    """A clause without what it mentions in passing or takes as known."""
    return _ASIDE.sub(" ", clause)


@lru_cache(maxsize=8192)
def clauses(question: str) -> tuple[Clause, ...]:
    read: list[Clause] = []
    about = 0
    meant = ""
    texts = _ends(list(clause_texts(question)) or [question], _MOST_PARTS // _FEWEST_PARTS)
    for place, text in enumerate(texts, 1):
        clause = _clause(_ends(text, _LONGEST_CLAUSE), about, _MOST_PARTS // len(texts))
        if read and _BARE.fullmatch(text):
            full = (replace(part, wordings=(f"{read[-1].text} {part.text}",)) for part in clause.parts)
            clause = replace(clause, parts=tuple(full))
        elif meant:
            parts = tuple(with_meant(part, meant) for part in clause.parts)
            clause = clause if parts == clause.parts else replace(clause, parts=parts)
        read.append(clause)
        about = clause.main or about
        if place < len(texts):
            meant = _first_named(text) or meant
    return tuple(read)


# Who, before what is asked of them: "anyone at home or at the nursery with a cold?"
_SUBJECT = lazy.regex(
    r"(?:and |or |is |has |does )*any(?:one|body)(?: else)?(?: (?:at|in|around|near) .*)?", re.IGNORECASE
)
# Says nothing without the clause before.
_BARE = lazy.regex(
    r"(?:and |or |for |since )*(?:how (?:much|many|long|often|bad|big|high|far)|when|where|which(?: one)?)"
    r"(?: exactly)?",
    re.IGNORECASE,
)
_IT = lazy.regex(r"\b(?:it|that|they|them)\b", re.IGNORECASE)


# Of something: "a cough: any blood?"
_OF_IT = lazy.regex(r"(?:and |or |any )*(?:blood|mucus|pus|phlegm|slime)(?: in (?:it|them))?", re.IGNORECASE)


def with_meant(part: Part, meant: str) -> Part:
    """A part that also asks for what "it" means."""
    if _OF_IT.fullmatch(part.text):
        return replace(part, wordings=(f"{meant} {part.text}", *part.wordings))
    full = _IT.sub(meant, part.text, count=1)
    return part if full == part.text else replace(part, wordings=(*part.wordings, full))


def _first_named(text: str) -> str:
    """The first complaint that a clause names, which "it" means in the next."""
    hits = [hit for hit in lexicon.found(text) if hit.concept.type == "symptom"]
    return " ".join(lexicon.tokens(text)[hits[0].start : hits[0].end]) if hits else ""


# "pain or coldness in your arm": both are asked for there.
_BOTH_THERE = Cue(
    r"\b(pains?|swelling|numbness|weakness|tingling|stiffness|redness|aching|aches?|coldness|soreness|tenderness|lumps?)"
    r"( or | and )(\w+) ((?:in|on|of) (?:one of |either |any of )?(?:your|the|his|her|a|an|one|both)\b[^,;?]*)"
)


def _clause(text: str, before: int, most: int) -> Clause:
    plain = _BOTH_THERE.sub(r"\1 \4\2\3 \4", without_asides(text))
    whole = _part(plain)
    parts = _parts(plain, most)
    if len(parts) == 1 and plain != text:  # "are you well between the attacks?"
        parts[0] = replace(parts[0], wordings=(*parts[0].wordings, text))
    background = cues.which(cues.BACKGROUND_ASKED, plain)
    if len(parts) != 1 or parts[0].named != whole.named:
        parts.append(Part(plain, whole.named, whole.main, whole.stems, True, len(parts), False, (plain,)))
    return Clause(
        text,
        tuple(parts),
        whole.named.names,
        whole.main,
        whole.named.closed & lexicon.of_types("place"),
        whole.main or before,
        before,
        _known(text),
        cues.which(cues.ASPECTS_ASKED, text),
        background,
        frozenset([part.section for part, on in zip(cues.BACKGROUND, background, strict=True) if on]),
        bool(cues.ASKS_OF_KIN.search(plain)),
        bool(cues.WHERE.search(text)),
        bool(cues.WHEN.match(text)),
        bool(cues.WORSE.search(text)),
        bool(cues.BETTER.search(text)),
    )


def _parts(clause: str, most: int) -> list[Part]:
    """What a clause lists. Everything after a condition belongs to it."""
    parts: list[Part] = []
    conditional, may_be = False, _CONDITION.may_be_in(clause)
    for text in _ends(LISTED.split(clause), most):
        part = _part(text.strip(" ."))
        conditional = conditional or (may_be and bool(_CONDITION.search(text)))
        if part.named.names or part.stems:
            full = [] if part.named.names and not part.named.names & ~lexicon.of_types("place") else [part.text]
            if parts and (conditional or not full):
                full = [f"{parts[0].text} {part.text}", *(full if part.main else ())]
            wordings = tuple(full or [part.text])
            parts.append(Part(part.text, part.named, part.main, part.stems, False, len(parts), conditional, wordings))
    if len(parts) > 1 and _SUBJECT.fullmatch(parts[0].text):
        parts[0] = replace(parts[0], wordings=(clause,))
    return parts


@lru_cache(maxsize=16384)
def _part(text: str) -> Part:
    named = lexicon.named(text)
    return Part(text, named, named.names & lexicon.of_types(*MAIN_TYPES), stems(text))


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The beginning of a word by which its forms are recognized."""
    for ending in ("ing", "ness", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:6].rstrip("ey") if len(word) > 4 else word


# Words that many facts share: one of them alone is not a match.
VAGUE = frozenset(
    "doe pain painful ache hurt sore soreness discomfort tender day week month year hour minute time ago since start "
    "started began begin change changed trouble problem issue difficulty normal history past medical health condition "
    "family last long often usually associated worse worsen worsened worsening better severe mild moderate new recent "
    "significant any anything else thing area body side left right able come go make take taken took taking use used "
    "during after before first second further detail specifically related concern kind type sign prior previous "
    "previously similar habit habits loss lose lost increase increased decrease decreased reduced sudden suddenly "
    "gradual frequent frequently frequency episode occur occurred happen happened notice developed develop continue "
    "ever even still keep current currently now today yesterday general generally including such especially when "
    "while without within whether only very more often too just really quite bit lot unusual unusually abnormal "
    "excessive persistent persistently constant continuous recurrent chronic acute one two three both upper lower "
    "around near along toward towards against under elsewhere somewhere small large poor initial own way away "
    "child mother father parent boy girl infant baby son daughter he she himself herself patient say said ask "
    "diagnosed disease disorder illness treatment treated presence absent present help need needed want wanted seem "
    "let know understand experience improve improves relieve relief trigger triggered provoke being done got had doing "
    "each every day age old everyday known done day-to-day along daily weekly weight degree extreme given another "
    "evaluation dose dosage wide base based rapid per few several many number brought symptom associated complaint "
    "visit doctor clear".split()
)
_VAGUE_STEMS = frozenset(stem(singular(word)) for word in VAGUE) | {""}


@lru_cache(maxsize=32768)
def stems(text: str) -> frozenset[str]:
    return frozenset(map(_stem_of, lexicon.tokens(text))) - _VAGUE_STEMS


@lru_cache(maxsize=16384)
def _stem_of(word: str) -> str:
    """The stem of a word that says something by itself; empty for any other."""
    return stem(word) if word not in STOP_WORDS and word.isalpha() else ""


def _known(clause: str) -> int:
    begins = _DEFINITE.match(clause)
    if not begins:
        return 0
    rest = clause[begins.end() :]
    hits = lexicon.found(rest)
    subject = [hit for hit in hits if hit.end <= _SUBJECT_REACH and hit.concept.type in MAIN_TYPES]
    if not subject or max(hit.end for hit in subject) >= len(lexicon.tokens(rest)):
        return 0
    return reduce(or_, [lexicon.bit(hit.concept.name) for hit in subject])
