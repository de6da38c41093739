"""A question taken apart: clauses, the items each lists, and under which condition an item is asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from agentclinic.cases.matcher import ontology
from agentclinic.cases.matcher.readings import TRIGGERS, reading
from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import content_words

_ASKS = (
    r"do|does|did|is|are|was|were|have|has|had|when|how|what|where|whether|can|could|would|will|any|who|which|why|if"
    r"|please|also"
)
_CLAUSE = re.compile(
    rf"[?;]+\s*|(?:—|\s[-–]\s)(?:and |or )?(?=(?:{_ASKS})\b)"
    rf"|(?:,\s*|(?<!you)(?<!\byour)\s+)(?:and|or)\s+(?=(?:{_ASKS})\b(?! (?:all|other)\b))"
    rf"|,\s+(?=(?:do|does|did|have|has|when|how|what|where|whether|can)\b)|\.\s+",
    re.IGNORECASE,
)
_DASH = re.compile(r"—|\s[-–]\s")
# What is set aside in a question: "besides the rash", "along with the ataxia", "that could lower the threshold".
_ASIDE = re.compile(
    r"\b(?:besides|other than|apart from|aside from|along with the|alongside the|in addition to"
    r"|that (?:could|might|may|would)|which (?:could|may|might)|(?:to |that )?suggest(?:s|ing|ive)?|prior to the"
    r"|before (?:the|this|it|these|you|your)|since (?:then|birth|it|the)|out of proportion|if applicable|on (?:a|your) "
    r"(?:smartwatch|monitor)|(?<!start )(?<!begin )with (?:the|these|this|it)|now or in the past"
    r"|at rest or (?:with|on|during)|(?:in|on) those areas"
    r"|that seem\w*|during (?:this|these|that))\b[^,;?()]*|^given [^,]*,"
    # A symptom taken as known is where another is asked for: "numbness over the lesions".
    r"|\b(?:over|in|on|of|between|around) (?:the|these|those|this) (?:rash|lesion|patch|spot|wound|seizure"
    r"|episode|attack)"
    r"\w*(?: areas?)?|\bbetween (?:seizure|episode|attack)s",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"[,:!()/\[\]]|\b(?:or|and|plus|like|such as|including|e\.g\.?|i\.e\.?|versus|vs|as well as|nor|but|especially"
    r"|particularly)(?=\W|$)",
    re.IGNORECASE,
)
# "Neurological symptoms such as weakness" asks for weakness.
_HEADING = re.compile(
    r"\b(?:any |other |new |the )*(?:[\w-]+ ){0,2}(?:symptoms?|signs?|difficulties|behaviors)\s*"
    r"(?=\(|:|\blike\b|\bsuch as\b|\bincluding\b)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:when(?:ever)?|while|during|after|following|upon|with(?!out)|by|from|on|at|in (?=the (?:morning|evening"
    r"|afternoon)|cold|response)|due to|in relation to|relation to|related to|triggered|worse|worsen\w*|better"
    r"|improv\w*|reliev\w*|aggravat\w*|exacerbat\w*|lessen\w*|decreas\w+ when|against|toward|towards|despite"
    r"|lasting)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:worse|better|worsen\w*|improv\w*|reliev\w*|aggravat\w*|exacerbat\w*|eas(?:e|es|ed|ing)"
    r"|lessens?)\b",
    re.IGNORECASE,
)
_WEAK = frozenset({"on", "at", "from", "by", "with", "toward", "towards"})
_LASTING = re.compile(r"\b(?:lasting|longer than|more than|over) (\d+)", re.IGNORECASE)
_WITH = re.compile(r"\bwith\b", re.IGNORECASE)
ELSEWHERE = re.compile(
    r"\b(?:elsewhere|anywhere else|other (?:\w+ )?(?:joint|area|place|part|injur|bodily|site|location|lesion)\w*)",
    re.IGNORECASE,
)
_DEFINITE = re.compile(
    r"^(?:and |or |so |but )?(?:how |why )?(?:is|are|was|were|does|do|did|has|have|can|could)\s+(?:the|your"
    r"|this|these|that|those"
    r"|his|her|its|their|my)\s+",
    re.IGNORECASE,
)
_SUBJECT_REACH = 4
"""Words a subject may have: "the double vision", "your right knee pain"."""


@dataclass(frozen=True)
class Item:
    """One thing of a list that a question asks for."""

    text: str
    findings: frozenset[str]
    complaints: frozenset[str]
    things: frozenset[str]
    """What else it names, where it names no complaint."""
    places: frozenset[str]
    triggers: frozenset[str]
    """What brings the thing on, or takes it away, in the condition that restricts it."""
    terms: frozenset[str]
    """The other words and complaints of that condition."""
    bound: frozenset[str] = frozenset()
    """Findings whose name has the condition in it: chest pain on exertion."""
    elsewhere: bool = False
    """Whether it asks for other places than the known ones."""
    subject: frozenset[str] = frozenset()
    """The complaints it is asked of, which are taken as known."""

    @property
    def worse(self) -> bool:
        """Whether it asks for a change: "headaches worse in the morning"."""
        return bool(_CHANGE.search(self.text))

    @property
    def conditional(self) -> bool:
        """Whether it asks for something under a condition only."""
        return bool(self.triggers or self.terms)

    @property
    def names_something(self) -> bool:
        """Whether it names anything a chart could tell of."""
        return bool(self.findings or self.complaints or self.things)


@lru_cache(maxsize=8192)
def clauses(question: str) -> tuple[str, ...]:
    """The questions put in one breath."""
    parts = _CLAUSE.split(question.replace("’", "'"))
    return tuple(_DASH.sub(": ", part).strip() for part in parts if part and part.strip())


@lru_cache(maxsize=8192)
def items(clause: str) -> tuple[Item, ...]:
    """The things a clause lists, each with where and under which condition it is asked for."""
    known, rest = _beyond_the_known(clause)
    subject = ontology.named(known)
    plain = _HEADING.sub(" ", without_asides(rest))
    found = [_item(part) for part in _listed(plain)]
    found = [replace(item, subject=subject) for item in _placed(_inherited(_conditioned(found, plain)))]
    seen = {key for item in found for key in item.findings}
    # A name with "and" in it, or one whose words the list shares, is found in the whole only.
    mentions = [m for m in knowledge().finding_terms.find(plain) if m.key not in seen and len(m.words) > 1]
    return (*found, *(_item(" ".join(mention.words)) for mention in mentions))


def without_asides(clause: str) -> str:
    """A clause without what it sets aside or takes as known."""
    return _ASIDE.sub(" ", clause)


def _listed(text: str) -> list[str]:
    """The parts of a list; a word that joins two names of one complaint does not part them."""
    whole = [(span.start, span.end) for span in ontology.spans(text)]
    parts, begin = [], 0
    for cut in _ITEM.finditer(text):
        if any(start < cut.start() and cut.end() < end for start, end in whole):
            continue
        parts.append(text[begin : cut.start()])
        begin = cut.end()
    parts.append(text[begin:])
    return [single for part in parts for single in _with_parts(part.strip(" .?")) if single]


def _with_parts(part: str) -> list[str]:
    """Part at "with" where a second complaint follows: tiredness with swelling, but not pain with walking."""
    for marker in _WITH.finditer(part):
        tail = part[marker.end() :]
        inside = any(span.start < marker.start() < span.end for span in ontology.spans(part))
        if not inside and ontology.named(tail) and not reading(tail).things & TRIGGERS:
            return [part[: marker.start()].strip(), tail.strip()]
    return [part]


def _item(part: str) -> Item:
    head, tail = _split(part)
    change = _CHANGE.search(part)
    if not tail and change and reading(part[: change.start()]).things & TRIGGERS:
        head, tail = part[change.end() :], part[: change.start()]  # "Does lying down ease the pain?"
    mentions = knowledge().finding_terms.find(part)
    complaints = ontology.named(head)
    condition = reading(tail) if tail else None
    after = content_words(tail)
    rest = reading(_without_complaints(head))
    named = ontology.named(tail) if tail else frozenset()
    return Item(
        part,
        frozenset(mention.key for mention in mentions),
        complaints,
        frozenset() if complaints else reading(head).things,
        (rest.places | (reading(tail).places if tail else frozenset())) - {"skin"},
        condition.things & TRIGGERS if condition else frozenset(),
        ((condition.things - TRIGGERS) | named if condition else frozenset()) | frozenset(_LASTING.findall(part)),
        frozenset(mention.key for mention in mentions if after & set(mention.words)),
        bool(ELSEWHERE.search(part)),
    )


def _split(part: str) -> tuple[str, str]:
    """An item and the condition it stands under, which is not a mere place or a part of a complaint's name."""
    spans = ontology.spans(part)
    for marker in _CONDITION.finditer(part):
        if any(span.start < marker.start() < span.end for span in spans):
            continue
        tail = part[marker.end() :]
        if any(marker.end() <= span.start <= marker.end() + 1 for span in spans) and _CHANGE.match(marker[0]):
            continue  # "worse headache": the headache is asked for
        head = part[: marker.start()]
        if marker[0].lower() in _WEAK and ontology.named(tail) and not ontology.named(head):
            continue  # "late on your period": the period is asked for
        if reading(tail).things or ontology.named(tail):
            return part[: marker.start()], tail
    return part, ""


def _without_complaints(text: str) -> str:
    """What a text says beyond the complaints it names; their own words for places belong to their names."""
    left, begin = [], 0
    for span in ontology.spans(text):
        if span.name in LOCAL or span.name in _SITED:
            continue
        left.append(text[begin : span.start])
        begin = max(begin, span.end)
    left.append(text[begin:])
    return " ".join(left)


def _conditioned(listed: list[Item], text: str) -> list[Item]:
    """A condition after a pair holds for both ("pain or weakness when you lift it"), in a longer list for the last."""
    if "," in text:
        return listed
    kept = list(listed)
    for at in range(len(kept) - 1, 0, -1):
        here, before = kept[at], kept[at - 1]
        if here.conditional and not here.worse and not before.conditional and before.names_something:
            kept[at - 1] = replace(before, triggers=here.triggers, terms=here.terms)
    return kept


_SITED = frozenset({"testicle", "breast"})
"""Complaints named by their place, which other complaints can have too."""


def _inherited(listed: list[Item]) -> list[Item]:
    """A mere place in a list goes with the complaint before it: "a rash on the face, the neck or only on the arms"."""
    kept: list[Item] = []
    for item in listed:
        if item.places and not item.names_something and not item.conditional and kept:
            before = next((earlier for earlier in reversed(kept) if earlier.complaints & LOCAL), None)
            if before is not None:
                item = replace(before, text=item.text, places=item.places, elsewhere=False)
        kept.append(item)
    return kept


def _placed(listed: list[Item]) -> list[Item]:
    """A complaint that can be anywhere takes the place of the next item of the list, or of the one before."""
    placed = []
    for at, item in enumerate(listed):
        if not item.places and item.complaints & LOCAL:
            near = [*listed[at + 1 :], *reversed(listed[:at])]
            other = next((other for other in near if other.places), None)
            if other is not None:
                item = replace(item, places=other.places, elsewhere=other.elsewhere)
        placed.append(item)
    return placed


@lru_cache(maxsize=8192)
def _beyond_the_known(clause: str) -> tuple[str, str]:
    """The symptom a clause takes as known, and what it asks of it: "Is the rash itchy?" asks for the itch.

    Where nothing is left that could be asked for, the symptom itself is: "Has your appetite changed?"
    """
    begins = _DEFINITE.match(clause)
    if not begins:
        return "", clause
    subject = clause[begins.end() :].split()
    for reach in range(min(_SUBJECT_REACH, len(subject) - 1), 0, -1):
        known, left = " ".join(subject[:reach]), " ".join(subject[reach:])
        spans = ontology.spans(known)
        if not spans or _PREDICATE.search(known) or spans[-1].end < len(known) or _crosses(known, left):
            continue
        asks = ontology.named(left) or reading(left).things
        return (known, f"Is it {left}") if asks else ("", clause)
    return "", clause


_PREDICATE = re.compile(r",|\b(?:had|have|any|been|get|gets|feel|noticed|experienced|appear|become)\b", re.IGNORECASE)


def _crosses(known: str, left: str) -> bool:
    """Whether a complaint's name runs on beyond the words taken as the subject."""
    whole = f"{known} {left}"
    return any(span.start < len(known) < span.end for span in ontology.spans(whole))


LOCAL = frozenset(
    {"pain", "swelling", "numbness", "weakness", "stiffness", "rash", "skin lesion", "lump", "itch", "scale",
     "redness", "warmth", "tenderness", "patch", "bumps", "blisters", "ulcer", "wound", "pigment", "thickening",
     "injury", "cramps", "discharge", "locking", "instability", "range of motion", "joint complaint",
     "skin dryness", "tremor", "bruising", "petechiae", "involuntary movement", "morphology", "skin complaint",
     "hives", "posture of limb", "bleeding"}
)  # fmt: skip
"""Complaints that can be anywhere on the body: said of one place, they say nothing of another."""
