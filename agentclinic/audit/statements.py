"""A text as statements: what each one affirms and what it denies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from agentclinic.cases.matcher.readings import reading, stem
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import find_denial, says_none
from agentclinic.vocabulary.lexicon import complaints
from agentclinic.vocabulary.text import STOP_WORDS, sentences, words

_BULLETS = re.compile(r"\s*(?:\n+|(?:^|(?<=\s))[-•*]+\s+(?=\S))\s*")
_MARKUP = re.compile(r"[*`#]{1,3}|(?<!\w)_+|_+(?!\w)")
# The original clinic added this to the reply before the last turn.
_FRAME = re.compile(r"\s*This is the final question\. Please provide a diagnosis\.?\s*$")
_LEAD = re.compile(r"^\s*RESULTS?\s*:\s*")
_VERB = (
    r"(?:['’](?:m|ve|s|re|d)\b|\s+(?:also |just |still |really |only |now |usually |often "
    r"|sometimes |definitely |mostly )?"
    r"(?:am|is|are|was|were|have|has|had|do|does|did|can|could|feel|feels|felt|get|gets|got|take|took|would|will|work|"
    r"live|smoke|drink|noticed|started|began|went|think|can't|cannot|don't|don’t|haven't|haven’t|never|not|seem|seems|"
    r"usually|sometimes|feel|find|experience|experienced|notice|know|wake|woke|tried|use|used|eat|sleep|see|hear)\b)"
)
# Where a statement, and with it a denial, ends. "But" and "except" introduce what is present.
_CUT = re.compile(
    r"\s*(?:[;—–]|\s-\s|\.\.\.|…)\s*"
    r"|,?\s*\b(?:but|however|though|although|except(?: for| that)?|whereas|apart from|aside from|other than|because"
    r"|despite)\b,?\s*"
    r"|,\s*(?:and |so |or |then )?(?=(?:just|only|mostly|mainly|especially|particularly|reports?|endorses?|admits?"
    r"|positive for|notable for|with (?!no\b)|has|had|have|is|was|denies|denied|no|without|not)\b)"
    rf"|,?\s+and\s+(?=(?:i|it|he|she|they|we|there|this|that|the \w+|my \w+|his \w+|her \w+){_VERB})"
    rf"|,\s*(?:so |then |yet |which |while )?(?=(?:i|it|he|she|they|we|there|this|that|the \w+|my \w+|his \w+|her \w+)"
    rf"{_VERB})"
    r"|,?\s+and\s+(?=(?:no|denies|without|not)\b)",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"^\W*(?P<word>yes|yeah|yep|correct|right|exactly|no|nope|not really|not at all)\b\s*[,.!:—-]+\s*", re.I
)
_UNSURE = re.compile(
    r"\b(?:not (?:really |entirely |quite |exactly )?(?:sure|certain)|unsure|(?:don|didn"
    r"|couldn)['’]?t (?:really )?(?:know|recall|remember)"
    r"|do not (?:know|recall|remember)|can(?:['’]?t|not) (?:really )?(?:say|recall|remember|tell|think|share|answer)"
    r"|no idea|hard to say|have(?:n['’]?t| not) been told|not (?:been )?(?:told|mentioned)|you would have to)\b",
    re.IGNORECASE,
)
NORMAL = re.compile(
    r"\b(?<!than )(?:normal(?:ly)?|fine|okay|ok|unremarkable|as usual|like usual|healthy"
    r"|regular(?:ly)?|well|intact|unchanged|good|clear"
    r"|within normal limits|symmetric\w*|wnl|no (?:significant |acute |notable |visible )?abnormalit\w+|stable|soft"
    r"|great|same as (?:always|before))\b",
    re.IGNORECASE,
)
# The chart, or the laboratory, has no result.
SILENT = re.compile(
    r"\bnot (?:directly |specifically |yet |explicitly )?(?:specified|available|applicable"
    r"|done|performed|provided|in (?:the|my) chart|recorded|reported|mentioned|assessed"
    r"|documented|measured|on file|been (?:done|performed))\b|\bunavailable\b|\bnon-?applicable\b|\bn/?a\b|\bpending\b"
    r"|\bno (?:data|results?|information|record)\b|\bwas not done\b",
    re.IGNORECASE,
)
_HEADED = re.compile(r"^(?P<head>[^:]{1,60}?):\s*(?P<body>.*)$", re.DOTALL)
_SHORT = 3
"""A body of at most this many words says only whether its heading is present."""
_PRESENT = re.compile(r"^\W*(?:positive|present|yes|noted|detected)\b", re.IGNORECASE)
# "Sweating has not been a problem" denies what comes before.
_NO_MATTER = re.compile(
    r"^\W*(?:(?:been|really|too|much|of|be|an?|any|ever|noted|palpable)\W+)*(?:problem|issue"
    r"|concern|present|there|trouble|bother\w*|seen|noted"
    r"|detected|observed|found|identified|palpable|evident|appreciated)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Statement:
    """A part of a text with one subject, as it was said."""

    text: str
    affirmed: str
    """The part that says something is present."""
    denied: str
    """The part that says something is absent."""
    unsure: bool = False
    normal: bool = False
    answer: bool = False
    """Only "yes" or "no" to the question."""


def data_lines(name: str) -> list[str]:
    """The lines of a file in `data/`, without its comments."""
    lines = (Path(__file__).parent / "data" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def plain(reply: str) -> str:
    """A reply without markup and frame."""
    reply = _LEAD.sub("", _FRAME.sub("", reply))
    return _MARKUP.sub("", reply.replace("’", "'").replace("\u201c", '"').replace("\u201d", '"')).strip().strip('"')


@lru_cache(maxsize=16384)
def statements(text: str) -> tuple[Statement, ...]:
    """The statements of a text, in order."""
    found: list[Statement] = []
    for line in _BULLETS.split(plain(text)):
        for sentence in sentences(line or ""):
            answer = _ANSWER.match(sentence)
            if answer:
                yes = answer["word"].lower().startswith(("y", "c", "r", "e"))
                found.append(Statement(answer["word"], "yes" if yes else "", "" if yes else "no", answer=True))
                sentence = sentence[answer.end() :]
            found += [_statement(part) for part in _CUT.split(sentence) if part and words(part)]
    return tuple(found)


def _statement(part: str) -> Statement:
    part = part.strip(" ,.")
    headed = _HEADED.match(part)
    said = part
    if headed and says_none(headed["body"]):
        said = f"no {headed['head']}"
    elif headed and _PRESENT.match(headed["body"]) and len(words(headed["body"])) <= _SHORT:
        said = headed["head"]
    cue = find_denial(said)
    affirmed, denied = (said[: cue.start()], said[cue.end() :]) if cue else (said, "")
    if _NO_MATTER.match(denied):
        affirmed, denied = "", affirmed
    return Statement(part, affirmed, denied, bool(_UNSURE.search(part)), bool(NORMAL.search(part)))


# --- concepts: findings of the knowledge base, and the lexicon's basic complaints ----------------------------------

# Complaints by their name alone. The lexicon's others are subjects ("sleep", "vision", "weight"): a mention says
# nothing about whether anything is wrong.
COMPLAINTS = frozenset(
    {"suicidality", "hallucination", "delusion", "guilt", "loss of interest", "mania", "aggression", "restlessness",
     "anxiety", "low mood", "confusion", "consciousness", "seizure", "blood in urine", "painful urination",
     "urinary frequency", "thirst", "hematemesis", "diarrhea", "constipation", "nausea", "vomiting", "heartburn",
     "choking", "abdominal swelling", "jaundice", "hemoptysis", "sputum", "cough", "wheeze", "apnea", "breathlessness",
     "palpitations", "sore throat", "night sweats", "sweating", "fever", "chills", "fatigue",
     "light and sound sensitivity", "neck stiffness", "headache", "vertigo", "tremor", "stiffness", "numbness",
     "weakness", "face droop", "swelling", "bruising", "nosebleed", "vaginal bleeding", "bleeding",
     "vaginal discharge", "painful sex", "itch", "skin lesion", "scaling", "redness", "cyanosis", "pallor", "lump",
     "temperature intolerance"}
)  # fmt: skip
# Complaints in one place, which say nothing about another place.
LOCAL = frozenset(
    {"redness", "swelling", "numbness", "weakness", "stiffness", "skin lesion", "lump", "itch", "scaling", "bruising",
     "bleeding"}
)  # fmt: skip


@dataclass(frozen=True)
class Concept:
    """A symptom, sign or result that a text names."""

    key: str
    """The id of a finding, or "~" and the name of a basic complaint."""
    name: str
    kin: frozenset[str]
    """The basic complaints with the same words."""
    places: frozenset[str]

    @property
    def kind(self) -> str | None:
        """The kind of a finding (symptom, sign, lab, …); None for a complaint."""
        return None if self.key.startswith("~") else knowledge().findings[self.key].kind

    @cached_property
    def keys(self) -> frozenset[str]:
        """Its own key and those of its kin."""
        return frozenset({self.key, *(f"~{name}" for name in self.kin)})


@lru_cache(maxsize=32768)
def concepts(text: str) -> tuple[Concept, ...]:
    """The symptoms, signs and results that a text names."""
    found: dict[str, Concept] = {}
    places = reading(text).places
    covered: set[str] = set()
    for mention in knowledge().finding_terms.find(text):
        kin = complaints(" ".join(mention.words))
        covered |= kin
        found.setdefault(mention.key, Concept(mention.key, knowledge().findings[mention.key].name, kin, places))
    others = complaints(text) - covered
    if "swelling" in others and "abdomen" in places:
        others |= {"abdominal swelling"}
    for name in sorted(others):
        found[f"~{name}"] = Concept(f"~{name}", name, frozenset({name}), places)
    return tuple(found.values())


@lru_cache(maxsize=32768)
def concept_keys(text: str) -> frozenset[str]:
    """The keys of all concepts in a text, and of their kin."""
    return frozenset().union(*(concept.keys for concept in concepts(text)))


@lru_cache(maxsize=32768)
def stems(text: str) -> frozenset[str]:
    """The meaningful words of a text by their first letters, without numbers."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS and not word[0].isdigit())
