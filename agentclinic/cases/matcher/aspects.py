"""Sides of the complaint that questions ask for: when, how often, how bad, where, what changes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentclinic.cases.matcher import ontology
from agentclinic.cases.matcher.parts import Item, without_asides
from agentclinic.cases.matcher.readings import TRIGGERS, reading
from agentclinic.cases.matcher.symptoms import CHANGED, STORY, negative, of_kin, speaks_of
from agentclinic.cases.matcher.topics import Asked, Topic
from agentclinic.cases.model import Fact, Section

_TIME = (
    r"\d+[\s-]*(?:second|minute|hour|day|week|month|year)s?\b(?!-old)|\b(?:past|last|several|few|couple of|an?"
    r"|one|two|three"
    r"|four|five|six|seven|eight|nine|ten|many) (?:few |several |couple of )?(?:minute|hour|day|week|month|year)s?\b"
    r"|\bearlier (?:this|today)\b|\bincreasing(?:ly)?\b|\bago\b|\bsince\b|\bsudden(?:ly)?\b|\bgradual(?:ly)?\b"
    r"|\binsidious|\byesterday\b|\bthis morning\b|\bovernight\b"
    r"|\b(?:minute|hour|day|week|month|year)s?-long\b|\bprogressive(?:ly)?\b|\babrupt(?:ly)?\b|\blast night\b"
)


@dataclass(frozen=True)
class _Aspect:
    """A side of the complaint that questions ask for, and how statements that tell it read."""

    name: str
    asked: re.Pattern[str]
    told: re.Pattern[str]


def _aspect(name: str, asked: str, told: str) -> _Aspect:
    return _Aspect(name, re.compile(asked, re.IGNORECASE), re.compile(told, re.IGNORECASE))


_ASPECTS = (
    _aspect(
        "timing",
        r"\bwhen (?:did|was|were|do|does)?\b.{0,60}\b(?:start\w*|beg[aiu]n\w*|occur\w*|happen\w*|first|notice\w*|onset"
        r"|appear\w*|come on|develop\w*|last)\b|\bhow long\b|\bsince when\b|\bonset\b|\bduration\b|\bsuddenly\b"
        r"|\bsudden or\b|\bgradual(?:ly)?\b|\bhow (?:fast|quickly|many (?:minutes|hours|days|weeks|months|years))\b"
        r"|\bfor how\b|\btimeline\b|\btime course\b|\bdid (?:it|this|they|the \w+(?: \w+)?) (?:start|begin"
        r"|come on|appear"
        r"|develop)\b|\b(?:lasted|been present)\b.{0,30}\b(?:day|week|month|year)s?\b",
        _TIME,
    ),
    _aspect(
        "frequency",
        r"\bhow (?:often|frequent\w*|many (?:times|episodes))\b|\bfrequency of\b",
        r"\btimes\b|\bseveral episodes\b|\bfrequen|\bdaily\b|\bevery\b|\bonce\b|\btwice\b|\brecurr|\boccasional|\bper "
        r"(?:day|week)"
        r"|\bconstant|\bintermittent",
    ),
    _aspect(
        "course",
        r"\bfluctuat|\bcome[s]? and go|\bconstant or\b|\b(?:get|gett|becom|grow)(?:s|ing|ten|en)? (?:worse"
        r"|better)\b(?!\s+"
        r"(?:with|when|after|during|while|at|on|in)\b)|\bhow (?:has|have|did) .{0,40}\b(?:chang|progress|evolv|develop)"
        r"|\bprogress|\bchanged over\b|\bhas (?:it|this|that|the \w+) (?:changed|grown|spread)\b|\bbetter,? or "
        r"worse\b|\bworse,? or better\b|\bmake[s]? (?:it|them|the \w+|this|your "
        r"\w+) (?:any )?(?:better|worse)|\bwhat (?:makes|helps|relieves|triggers|brings|worsens|aggravates|improves)"
        r"|\bwhich activit|\bwhen (?:is|are) (?:it|they|the \w+) (?:at (?:its|their) )?(?:worst|worse|best"
        r"|better)\b|\banything (?:that )?(?:make|help|relieve|trigger|worsen|aggravate|improve|eas)"
        r"|\b(?:aggravat|alleviat"
        r"|reliev"
        r"|exacerbat)\w+ (?:or \w+ )?factors|\bany triggers\b|\bworsened or improved\b|\bimproved or worsened\b",
        CHANGED.pattern,
    ),
    _aspect(
        "severity",
        r"\bhow (?:severe|bad|intense|strong)\b|\bscale\b.{0,25}\b(?:10|ten)\b|\b(?:10|ten)[- ]point|\brate (?:the"
        r"|your)\b"
        r"|\bseverity\b",
        r"\bsevere\w*|\bmild\w*|\bmoderate\w*|/10\b|\bintens|\bout of (?:10|ten)\b|\bworst\b|\bunbearable\b|\blow "
        r"grade\b",
    ),
    _aspect(
        "character",
        r"\bsharp\b.{0,20}\bor\b|\bdull\b|\bwhat (?:does|is) (?:it|the \w+|this|your \w+) (?:feel )?like\b|\bdescribe "
        r"(?:the|your|this) (?:pain|discomfort|headache|sensation|cough|rash)|\bcharacter\b|\bquality of\b|\bkind "
        r"of pain\b"
        r"|\btype of pain\b",
        r"\bsharp|\bdull|\bburning|\bcramp|\bthrob|\bstab|\bsqueez|\baching|\bpressure|\bcolicky|\btight|\btearing"
        r"|\bsevere"
        r"|\bcrushing|\bshooting|\bdescribe|\bdry\b|\bproductive|\bpulsat",
    ),
    _aspect(
        "spread",
        r"\bradiat|\bspread|\bmigrat|\bmov(?:e|es|ed|ing) (?:anywhere|elsewhere|to|toward|down)\b"
        r"|\btravel (?:anywhere|to"
        r"|down)\b|\bgo anywhere else\b",
        r"\bradiat|\bspread|\bmov(?:ed|es) to|\bmigrat|\bshoot(?:s|ing)|\bextend|\bdistribut|\bother (?:areas|parts)"
        r"|\bpain (?:around|over|in|behind) ",
    ),
    _aspect(
        "treatment",
        r"\btried\b|\btaken anything\b|\btake anything for\b|\btreat(?:ed|ing|ments?)\b(?! with)|\bhome remed"
        r"|\bdone anything for\b",
        r"\btried\b|\battempt|\bremov|\btopical|\btook\b|\btaken\b|\btaking\b|\btreat|\brelie[fv]|\bibuprofen"
        r"|\bacetaminophen|\bmedicat|\bcream"
        r"|\bointment|\bantibiotic|\buse of\b|\bover-the-counter",
    ),
)  # fmt: skip
_WHERE = re.compile(r"\bwhere (?:is|are|does|do|did|exactly|else)\b|\blocat|\bpoint to\b|\bis it more on\b", re.I)
# "Any fever or sudden pain?" lists symptoms; it does not ask when they began.
WHEN = re.compile(
    r"(?:and |so )?(?:when did|how long (?:has|have|had|did|ago)(?! you (?:been )?(?:tak|smok|drink|us)))\b", re.I
)
_LISTED = re.compile(
    r"(?:and |or |also )?(?:any|have you (?:had|noticed|ever|been|experienced)|are there|is there|do you have|has "
    r"(?:he|she)|have there been|were there)\b",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"\b(?:when did|how|what makes|where|better or worse|worse or better|anything (?:that )?(?:make|help|relieve"
    r"|trigger)|tried|triggers|factors|come and go|fluctuate\b|getting (?:worse|better))",
    re.IGNORECASE,
)
# Asked for one direction only, the other is no answer.
_WORSE = re.compile(r"\bwors|\baggravat|\bexacerbat|\btrigger|\bbrings?\b.{0,10}\bon\b|\bprovok", re.IGNORECASE)
_BETTER = re.compile(r"\bbetter|\bimprov|\brelie[fv]|\bhelp|\beas(?:e|es|ed|ing)\b|\balleviat|\bresolv", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|they|them|this|these)\b", re.IGNORECASE)
_HABIT = re.compile(r"smok|tobacco|cigarette|\bvap|\bpacks? (?:per|a|of)\b|alcohol|\bdrinks?\b|\bwine|\bbeer", re.I)
_BACK = re.compile(
    r"\b(?:these|the|this|those) (?:symptoms?|episodes?|attacks?|condition)\b|\bof symptoms\b|^it\b"
    r"|^they (?:began|start|last|come|occur|worsen)"
    r"|^(?:worse|worsen\w*|better|exacerbat\w*|relie[fv]\w*|improve\w*|sudden|gradual|aggravat\w*)\b",
    re.IGNORECASE,
)


def aspect_topics(clause: str, facts: Sequence[Fact], before: str = "") -> list[Topic]:
    """The sides of the complaint a clause asks for, each with the statements that tell it.

    "How long do they last?" is asked of what the clause before it names.
    """
    if _LISTED.match(clause) and not _HOW.search(clause):
        return []
    subject = _subject(clause)
    if not subject.names_something and _PRONOUN.search(clause):
        subject = _subject(before)
    story = [f for f in facts if f.section in STORY and _of_the_complaint(f)]
    past = [f for f in facts if f.section is Section.PAST and _of_the_complaint(f) and not f.denied]
    topics = []
    for aspect in _ASPECTS:
        if not aspect.asked.search(clause):
            continue
        here = [*story, *past] if aspect.name == "timing" else story
        told = [f for f in here if aspect.told.search(f.text) and _same_direction(aspect.name, clause, f)]
        placed = aspect.name != "spread"
        topics.append(Topic(aspect.name, Asked.SYMPTOM, tuple(_about_the_same(subject, told, here, placed=placed))))
    if _WHERE.search(clause):
        told = [f for f in story if not negative(f) and _tells_more_of_place(clause, f)]
        topics.append(Topic("where", Asked.SYMPTOM, tuple(_about_the_same(subject, told, story, placed=True))))
    return topics


def _same_direction(aspect: str, clause: str, fact: Fact) -> bool:
    if aspect != "course":
        return True
    worse, better = _WORSE.search(clause), _BETTER.search(clause)
    if bool(worse) == bool(better) or "fluctuat" in clause.lower():
        return True
    return bool((_WORSE if worse else _BETTER).search(fact.text)) or not (
        _WORSE.search(fact.text) or _BETTER.search(fact.text)
    )


def _tells_more_of_place(clause: str, fact: Fact) -> bool:
    """Whether a statement names a place beyond the one the question takes as known."""
    charted, known = reading(fact.text).places, reading(clause.split("(")[0]).places
    return bool(charted - known) or bool(charted and _FINER.search(fact.text))


_FINER = re.compile(
    r"\b(?:left|right|upper|lower|around|behind|below|above|under|both|bilateral|middle|umbilic\w*)\b", re.I
)


def _of_the_complaint(fact: Fact) -> bool:
    """Whether a statement of the story is not, in truth, one about habits or kin."""
    return not _HABIT.search(fact.text) and not of_kin(fact)


def _about_the_same(subject: Item, told: list[Fact], story: list[Fact], *, placed: bool) -> list[Fact]:
    """Of the statements that tell a side, those about the symptom asked for, where the chart knows it."""
    subject = subject if placed else replace(subject, places=frozenset())
    if not subject.names_something:
        return [f for f in told if not f.denied]
    known = [f for f in story if speaks_of(subject, f)]
    if not known:
        return []
    # "These symptoms", "it": such a statement goes with the one before.
    return [f for f in told if f in known or _BACK.search(f.text)]


def _subject(clause: str) -> Item:
    """What a clause asks a side of: everything it names but the words for sides."""
    clause = without_asides(clause)
    read = reading(clause)
    complaints = ontology.named(clause)
    things = frozenset() if complaints else read.things - TRIGGERS - _NO_SUBJECT
    return Item(clause, frozenset(), complaints, things, read.places - {"skin"}, frozenset(), frozenset())


_NO_SUBJECT = reading(
    "radiate spread migrate radiates spreading better worse relieve help sharp dull tried treatment factor exactly "
    "locate located point trigger aggravating alleviating relieving progress progressed rapidly rate scale bad intense "
    "bring brings constant fluctuate suffering going gone quickly fast suddenly gradually onset duration timeline "
    "course medicine remedy home brought eases tend whole kind aggravate ease severity"
).things
