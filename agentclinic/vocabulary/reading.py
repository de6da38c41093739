"""Read a doctor's diagnosis completely: every word is accounted for, or the answer is not readable.

An answer is a disease with what is said about it: other names in brackets, kinds and places after commas, causes,
complications, and what it is not. A word that fits nowhere makes the answer not readable, so nothing needs to look for
ways to deny, to hedge or to address the judge: whatever is not understood is never credited.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from agentclinic import lazy
from agentclinic.vocabulary.name_table import word_list
from agentclinic.vocabulary.names import Name, abbreviates, form, name_of, spelled
from agentclinic.vocabulary.phrases import Phrase, find_core, is_known, is_medical, is_named, is_sign, is_whole, phrase
from agentclinic.vocabulary.text import LONGEST_NAME, tidy, words

_AROUND, _LEADS, _NOTHING = word_list("around"), word_list("leads"), word_list("nothing")
MOST_WORDS = 60
"""The longest right answer among our labeled rows has 30 words; twice that is an essay."""


class Kind(StrEnum):
    """What an answer does."""

    COMMITS = "names one disease"
    SEVERAL = "names several diseases"
    HEDGES = "names alternatives instead of one diagnosis"
    DENIES = "denies a disease instead of naming one"
    NOTHING = "names no diagnosis"
    UNREAD = "cannot be read"


@dataclass(frozen=True)
class Answer:
    """What was read in a diagnosis."""

    kind: Kind
    unread: str = ""
    """The words that could not be read; if nothing could, why not."""
    aside: str = ""
    """The same in later statements."""
    main: Phrase = field(default_factory=lambda: Phrase(None))
    also: tuple[Phrase, ...] = ()
    """Other names for it, or its kind: in brackets, after a comma, after "most likely"."""
    causes: tuple[Phrase, ...] = ()
    others: tuple[Phrase, ...] = ()
    """What comes with it."""
    further: tuple[Phrase, ...] = ()
    """Diseases named beside it, as in a list."""
    denied: tuple[Phrase, ...] = ()
    unsure: tuple[Phrase, ...] = ()
    """What is named only as possible, or as one of several causes or kinds."""

    @property
    def left_open(self) -> frozenset[str]:
        """Words that the answer does not commit to."""
        return frozenset(word for one in self.unsure for word in one.words)


class _UnreadError(Exception):
    """Why an answer cannot be read: the words that fit nowhere, in quotation marks, or what is wrong with it."""


# --- the grammar ----------------------------------------------------------------------------------------------------

_JSON = lazy.regex(r"^\W{0,9}(?:json\s+)?\{\s?\"[\w ]{0,40}diagnosis\"\s?:\s?\"([^\"]*)\"\s?\}\W{0,9}$", re.IGNORECASE)
_TOKEN = lazy.regex(r"^.{0,2000}?\bDIAGNOSIS READY\b\W*", re.DOTALL)
_MARKUP = lazy.regex(r"\*{1,3}|(?<!\w)_+|_+(?!\w)|^[#>\s]+|`+|(?m:^\s?[-•▪]\s)")
_SURE = lazy.regex(
    r"[(,;.\s]{0,3}\b(?:with )?(?:(?:very )?high confidence|confidence:? (?:very )?(?:high|(?:[5-9]\d|100)\s?%)"
    r"|(?:[5-9]\d|100)\s?% confiden(?:ce|t))\)?\.?$",
    re.IGNORECASE,
)
# How hurried clinicians write.
_SHORTHAND = tuple(
    (lazy.regex(short), full)
    for short, full in (
        (r"\bw/\s?", "with "), (r"\b1°", "primary"), (r"\b2°( to\b)?", r"secondary\1"), (r"\+ve\b|\bpos\b", "positive"),
        (r"\bR\b(?=\s[a-zA-Z])", "right"), (r"\bL\b(?=\s[a-zA-Z])", "left"), (r"\bi\.e\.", "ie"), (r"\s=\s", ": "),
    )
)  # fmt: skip
_AT_LEAST = lazy.regex(r" or (?:higher|greater|more|later|above|worse)\b|(?<=\bstage) 0\b", re.IGNORECASE)
_STOP = lazy.regex(r"\b([A-Z]|St|spp|vs|Strep|Staph|approx)\.\s?(?=[a-zA-Z])")
_ODD = lazy.regex(r"[^\w\s.,;:()\[\]'\"’‘“”\-‐‑–—/+&*`#•▪°!]|!(?=\S)|\.{2,}")
_SENTENCES = lazy.regex(r"[;\n]|[.!]\s+|(?<!\S)\d{1,2}[.)]\s")
_BRACKETS = lazy.regex(r"\s?[(\[]([^()\[\]]{0,200})[)\]]")
_CAUSE = (
    r"due to|secondary to|caused by|resulting from|as (?:an? |the )?(?:\w+ )?(?:result|complication|consequence"
    r"|manifestation|sign|presentation) of|attribut(?:ed|able) to|because of"
    r"|(?:triggered|precipitated|provoked|induced|exacerbated) by|(?:related|linked) to|from"
)
_WITH = (
    r"with|without|given|based on|because|supported by|contributing to|explaining|such as|complicated by|causing"
    r"|leading to|resulting in|presenting (?:as|with)|manifest(?:ing|ed) (?:as|by|with)|including|involving|affecting"
    r"|during|associated with|in the (?:setting|context) of|on a background of|superimposed on"
    r"|after|following|complicating|progressing to|evolving into"
    r"|in an? (?=(?:\w+[ -]){0,3}(?:patient|man|woman|child|infant|host|smoker)\b)"
)
_NOT = r"rather than|instead of|and not|but not|not|less likely|unlikely"
_LIKELY = (
    r"(?:most |very |highly |more )?(?:likely|probably|probable|consistent with|compatible with|suggestive of"
    r"|suspected|presumed|presumably)|specifically|namely|ie,?|a\.?k\.?a\.?|also (?:known as|called)|favou?ring"
)
_MAYBE = r"possibl[ye]|perhaps|maybe|consider|with possible"
_DOUBT = lazy.regex(rf"\b(?:{_NOT}|{_MAYBE}|{_LIKELY})\b", re.IGNORECASE)
_ALTERNATIVES = lazy.regex(r"\b(?:or|vs|versus)\b", re.IGNORECASE)
_OR = r"or|vs\.?|versus|and/or"
_JOINT = lazy.regex(
    rf"\s*(?:(?P<stop>,\s?(?:and )?|\s[-–—]\s|:\s)\s*)?\b(?:(?P<not>{_NOT})|(?P<maybe>{_MAYBE})|(?P<likely>{_LIKELY})"
    rf"|(?P<cause>{_CAUSE})|(?P<with>{_WITH}|(?<=, )no(?: evidence of| signs? of)?)|(?P<or>{_OR})"
    r"|(?P<and>and|plus|as well as))\b\s*(?:an?\s|the\s)?"
    r"|(?P<slash>(?-i:(?<=[a-z]{3})\s*/\s?(?=[A-Za-z][a-z]{2})))|\s*(?P<comma>,|\s[-–—]\s|:\s|\s[+&]\s)\s*",
    re.IGNORECASE,
)
_ORGANISM = lazy.regex(r"\b([A-Z])\. ?([a-z]{4,})\b")
_WHY = lazy.regex(r"(?:given|based on|because of|considering)\b", re.IGNORECASE)
_FORMERLY = lazy.regex(r"^(?:formerly|previously) (?:known as |called )?", re.IGNORECASE)
_OPENS = lazy.regex(r"^(?:(?:the )?differentials?(?: diagnos[ie]s)?|ddx?|diagnoses|either)\b:?\s?", re.IGNORECASE)
# Courtesies, and what a diagnosis is based on.
_PREFACE = lazy.regex(
    r"^(?:(?:thank(?:s| you)|hello|ok(?:ay)?|sure|certainly|understood)\b(?: \w+){0,2}[.!,]\s*)?"
    r"(?:(?:in (?:summary|conclusion|my (?:\w+ )?(?:opinion|view|judge?ment))|overall|therefore|thus"
    r"|(?:based on|given|considering|after (?:\w+ )?(?:consider|review|evaluat|assess|weigh)\w*)(?:\s(?:all|of|the"
    r"|these|this|your|available|clinical|everything|information|evidence|findings?|results?|data|history|tests?|symptoms?"
    r"|labs?|imaging|examination|presentation|picture|and|laboratory|physical|exam)\b)+),\s*)?",
    re.IGNORECASE,
)
_NOT_BUT = lazy.regex(r"^(?:it is |this is )?not\s(?P<it>.{1,100}?),? but (?:rather )?", re.IGNORECASE)
_RULED_OUT = lazy.regex(
    r"^(?P<it>.+?)\s(?:(?:is|was|has been|are|were)\s)?(?:ruled out|excluded|unlikely|less likely|not present|absent)$",
    re.IGNORECASE,
)
_DENIED = lazy.regex(
    r"^(?:not|no (?:current )?(?:evidence|signs?) of|no|unlikely|ruled out|without|never)\s(?P<it>.+)$", re.IGNORECASE
)


@lru_cache(maxsize=65536)
def read(diagnosis: str, truths: tuple[Name, ...] = ()) -> Answer:
    """Read an answer; the true names, if given, count as known names."""
    try:
        return _read(_plain(diagnosis), truths)
    except _UnreadError as error:
        return Answer(Kind.UNREAD, str(error))


def _plain(text: str) -> str:
    """The text without token, markup and stated confidence; only Latin and Greek letters, nothing hidden."""
    text = unicodedata.normalize("NFC", tidy(_TOKEN.sub("", text)))
    if len(text) > LONGEST_NAME or len(words(text)) > MOST_WORDS:
        raise _UnreadError(f"more than {MOST_WORDS} words")
    for letter in set(text):
        strange = letter.isalpha() and not unicodedata.name(letter, "").startswith(("LATIN", "GREEK SMALL"))
        if strange or (unicodedata.category(letter) in ("Mn", "Cf", "Cc") and letter != "\n"):
            raise _UnreadError(next((repr(word) for word in text.split() if letter in word), "a hidden character"))
    text = _MARKUP.sub("", _JSON.sub(r"\1", text)).strip(" \n\"'“”.")
    for short, full in _SHORTHAND:
        text = short.sub(full, text)
    text = _AT_LEAST.sub("", _STOP.sub(r"\1 ", _SURE.sub("", _ORGANISM.sub(_organism, text))))
    if odd := _ODD.search(text):
        raise _UnreadError(repr(odd[0]))
    return text


def _organism(short: re.Match[str]) -> str:
    """The usual name of an organism; the epithet is enough where the table does not have the short form."""
    tokens = (short[1].lower(), form(short[2]))
    usual = name_of(tokens).words
    return short[2] if usual == tokens else " ".join(usual)


def _read(text: str, truths: tuple[Name, ...]) -> Answer:
    if set(words(text)) <= _NOTHING:
        return Answer(Kind.NOTHING)
    text = _PREFACE.sub("", text)
    opens = _OPENS.match(text)
    parts = [part for part in _SENTENCES.split(text[opens.end() :] if opens else text) if words(part)]
    said = [_statement(part, truths) for part in parts]
    denied = tuple(phrase for one in said for phrase in one.denied)
    stated = [one for one in said if one.kind is not Kind.DENIES]
    if not stated:
        return Answer(Kind.DENIES, denied=denied)
    first, further = stated[0], tuple(one.main for one in stated[1:])
    if first.kind is Kind.HEDGES and _chooses(first, parts[said.index(first) + 1 :]):
        raise _UnreadError("alternatives with a choice between them")
    aside = " ".join(
        filter(None, (first.aside, *(f"{one.unread} {one.aside}".strip() for one in said if one is not first)))
    )
    others = tuple(one for one in further if one.core)
    answer = replace(first, further=(*first.further, *others), denied=denied, aside=aside)
    several = answer.further or any(one.core for one in answer.also)
    return replace(answer, kind=Kind.HEDGES) if opens and several else answer


def _chooses(hedge: Answer, later: list[str]) -> bool:
    """Whether a later statement may choose between the alternatives, because it has a word of one of them."""
    named = {word for one in (hedge.main, *hedge.further) for word in one.words}
    return not named.isdisjoint(word for part in later for word in name_of(spelled(part)).words)


def _statement(text: str, truths: tuple[Name, ...]) -> Answer:
    text = _without_around(text)
    if found := _NOT_BUT.match(text):
        denied, answer = phrase(found["it"], truths), _statement(text[found.end() :], truths)
        unread = " ".join(filter(None, (*denied.unread, answer.unread)))
        return replace(answer, denied=(*answer.denied, denied), unread=unread)
    if not is_whole(text, truths):
        for pattern in (_DENIED, _RULED_OUT):
            if (found := pattern.match(text)) and not _JOINT.search(found["it"]):
                it = phrase(found["it"], truths)
                if it.unread:
                    raise _UnreadError(repr(text))
                return Answer(Kind.DENIES, denied=(it,))
    pieces = _all_pieces(text, truths)
    of = {kind: tuple(said for one, said in pieces if one == kind) for kind in _CLASSES}
    if not of["main"]:
        why, comma, rest = text.rpartition(", ")
        if not comma or not _WHY.match(why) or any(said.unread for _, said in pieces):
            raise _UnreadError(repr(text))
        return _statement(rest, truths)
    if of["or"]:
        named = (*of["main"], *of["or"])
        beside = [said for kind, said in pieces if kind not in ("main", "or")]
        if any(one.core is None or one.unread for one in named) or any(one.core or one.unread for one in beside):
            raise _UnreadError("'or'")
        if len({one.core.key for one in named if one.core}) > 1:
            if not _ALTERNATIVES.search(text):  # "A/B" may be two names of one disease
                raise _UnreadError("'/'")
            return Answer(Kind.HEDGES, main=named[0], further=named[1:])
    unread, aside = (
        " ".join(word for kind, said in pieces for word in said.unread if (kind in _LASTING - {"cause"}) is lasting)
        for lasting in (False, True)
    )
    unsure = of["maybe"] + of["open"] + (of["cause"] + of["with"] + of["kind"] if of["open"] else ())
    return Answer(
        Kind.COMMITS,
        unread,
        aside,
        main=of["main"][0],
        also=of["kind"],
        causes=of["cause"],
        others=of["with"],
        further=of["and"],
        denied=of["not"] + of["without"],
        unsure=unsure,
    )


def _all_pieces(text: str, truths: tuple[Name, ...]) -> list[tuple[str, Phrase]]:
    """The parts of a statement, and then of its brackets, which belong to the part that they follow."""
    outside = _BRACKETS.sub(" ", text)
    if set("()[]") & set(outside):
        raise _UnreadError("brackets within brackets")
    placed = list(_pieces(outside, "main", truths))
    pieces, longer = [(kind, said) for _, kind, said in placed], 0
    for found in _BRACKETS.finditer(text):
        content = _FORMERLY.sub("", found[1])
        before = [kind for start, kind, _ in placed if start <= found.start() - longer]
        longer += len(found[0]) - 1
        if not _abbreviates(content, text):
            first = before[-1] if before and before[-1] in _LASTING else "kind"
            pieces += [(kind, said) for _, kind, said in _pieces(content, first, truths)]
    return pieces


_CLASSES = ("main", "kind", "cause", "with", "without", "not", "maybe", "open", "or", "and")
_LASTING = frozenset({"cause", "with", "without", "not", "maybe"})
"""What follows one of these after a comma or "and" is more of the same."""


def _pieces(text: str, first: str, truths: tuple[Name, ...]) -> Iterator[tuple[int, str, Phrase]]:
    """The parts of a statement, each with its place and how it is joined to what comes before."""
    joints = list(_JOINT.finditer(text))
    starts, ends = [0, *(joint.end() for joint in joints)], [*(joint.start() for joint in joints), len(text)]
    place, kind = 0, first
    while place < len(starts):
        if place:
            kind = _class(joints[place - 1], kind)
        last = _extent(text, starts, ends, place, truths)
        part = text[starts[place] : ends[last]]
        if kind != "main" and (excluded := _RULED_OUT.match(part)):
            part, kind = excluded["it"], "not"
        if words(part):
            said = phrase(part, truths, beside=kind in _LASTING)
            absent = said.core or is_sign(said) or any(map(is_medical, said.added))
            if (kind == "not" and not said.core) or (kind == "without" and not absent):
                raise _UnreadError(repr(part))
            yield starts[place], ("kind" if kind == "and" and said.core is None else kind), said
        elif place == len(starts) - 1 and place and not joints[-1]["comma"]:
            raise _UnreadError(repr(joints[-1][0].strip()))
        elif kind in ("or", "maybe") or (place == 0 and joints and joints[0]["likely"]):
            kind = f"still:{kind}"
        place = last + 1


def _class(joint: re.Match[str], state: str) -> str:
    if state.startswith("still:"):
        return state.removeprefix("still:")
    if joint["or"] or joint["slash"]:
        return "or" if state in ("main", "or") else "open"
    if joint["and"] or joint["comma"]:
        sign = (joint["and"] or joint["comma"]).strip().lower()
        if state in _LASTING and sign not in ("-", "–", "—", ":"):
            return state
        return "kind" if sign in (",", "-", "–", "—", ":") else "and"
    if joint["likely"]:
        return "kind"
    if joint["with"]:
        return "without" if joint["with"].lower().startswith(("without", "no")) else "with"
    return next(kind for kind in ("not", "maybe", "cause") if joint[kind])


def _extent(text: str, starts: list[int], ends: list[int], place: int, truths: tuple[Name, ...]) -> int:
    """The last part of the name that begins here: names may contain joints ("granulomatosis with polyangiitis")."""
    wholes = {
        last: name_of(spelled(text[starts[place] : ends[last]]))
        for last in range(place, min(len(ends), place + _MOST_JOINTS))
        if words(text[starts[last] : ends[last]]) and not _DOUBT.search(text[starts[place] : starts[last]])
    }
    true = [last for last, named in wholes.items() if any(is_named(named, one) for one in truths)]
    longer = [last for last, named in wholes.items() if last > place and is_known(named)]
    if true or longer:
        return max(true or longer)
    # "Hand and wrist osteoarthritis": what comes before "and" lacks the disease.
    if place == 0 and len(ends) > 1 and re.fullmatch(r"\s(?:and|or)\s|\s*[,/]\s*", text[ends[0] : starts[1]]):
        tokens = spelled(text[: ends[0]])
        if tokens and find_core(tokens, truths)[0] is None and find_core(spelled(text[: ends[1]]), truths)[0]:
            return 1
    return place


_MOST_JOINTS = 5
"""Joints within one name: "hand, foot and mouth disease" has two."""


def _without_around(text: str) -> str:
    """The text without words that lead to a diagnosis or follow it."""
    text = _AFTER.sub("", text.strip(" \"'“”.,:"))
    cut = 0
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if word not in _AROUND:
            break
        if word in _LEADS or text[match.end() : match.end() + 1] == ":":
            cut = match.end()
    return text[cut:].strip(" :,")


_WORD = lazy.regex(r"[^\W_]+(?:['’]s)?")
_AFTER = lazy.regex(
    r",?\sof (?:unknown|unclear|undetermined) (?:cause|a?etiology|origin)$|,? to be confirmed$"
    r"|,?\s(?:(?:is|as|being)\s(?:the\s|my\s|our\s)?)?(?:(?:most |very )?(?:likely|probable|final|working|clinical"
    r"|principal|primary|leading|single|best)\s){0,3}(?:diagnosis|answer|confirmed|most likely|(?<!less )likely)$",
    re.IGNORECASE,
)


def _abbreviates(short: str, text: str) -> bool:
    """Whether brackets hold only the initials of what is before them."""
    before = text.partition(f"({short}")[0].replace("-", " ").split()
    return any(abbreviates(short, " ".join(before[start:])) for start in range(len(before)))
