"""What a statement in the patient's script tells: what it names or denies, about whom, and which aspects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.asking import MAIN_TYPES, stems
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.denial import is_denial
from agentclinic.vocabulary.lexicon import Named
from agentclinic.vocabulary.text import fold


@dataclass(frozen=True)
class Statement:
    """What a statement tells."""

    fact: Fact
    text: str
    """Its words, and those of the patient for it."""
    named: Named
    main: int
    places: int
    stems: frozenset[str]
    negative: bool
    of_kin: bool
    well: bool
    """Says that the patient has no illness worth mentioning."""
    nothing_else: bool
    """Says that there are no other complaints."""
    primary: bool
    drugs: bool
    aspects: tuple[bool, ...]
    timed: bool
    """Mentions any time at all."""
    worse: bool
    better: bool
    length: int


_JOINTS = ("knee", "ankle", "wrist", "elbow", "shoulder", "hip", "finger", "toe")
_IN_JOINTS = {"pain": "joint pain", "swelling": "joint swelling"}


def _with_joints(named: Named) -> Named:
    """An ache in the knee is a pain of a joint, whatever stands between the two words."""
    at_joint = any(named.closed & lexicon.bit(joint) for joint in _JOINTS)
    more = [name for kind, name in _IN_JOINTS.items() if at_joint and named.names & lexicon.bit(kind)]
    names, closed = named.names, named.closed
    for name in more:
        names, closed = names | lexicon.bit(name), closed | lexicon.closed(name)
    return Named(names, closed)


_TIMING = next(aspect for aspect in cues.ASPECTS if aspect.name == "timing")


# Every question reads all the chart's statements.
@lru_cache(maxsize=32768)
def statement(fact: Fact) -> Statement:
    # Patients have the plain words that doctors ask in.
    text = fact.matched_as or (f"{fact.text} {fact.says}" if fact.says else fact.text)
    named = _with_joints(lexicon.named(text))
    return Statement(
        fact,
        text,
        named,
        named.names & lexicon.of_types(*MAIN_TYPES),
        named.names & lexicon.of_types("place"),
        stems(text),
        fact.denied or is_denial(text),
        fact.section is Section.FAMILY or bool(cues.TELLS_OF_KIN.search(text)),
        bool(cues.WELL.search(text)) and not cues.NOT_WELL.search(text),
        bool(cues.NOTHING_ELSE.search(text)),
        any(fold(head) == "primary symptom" for head in fact.heads),
        bool(cues.TELLS_DRUGS.search(text)),
        cues.which(cues.ASPECTS_TOLD, text),
        bool(named.names & lexicon.of_types("time") or _TIMING.told.search(text) or cues.CLOCK.search(text)),
        bool(cues.WORSE.search(text)),
        bool(cues.BETTER.search(text)),
        len(lexicon.tokens(text)),
    )
