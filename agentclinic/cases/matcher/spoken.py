"""Answer questions about a chart whose author says which questions each fact answers.

A question is read as the things it asks (`reader`), and each gets the facts near enough to answer it. What no fact
answers is denied, not known or not understood; beside other answers, it is denied or passed over. MARGIN, AHEAD, ALSO,
AS_NEAR, WHOLE, SAME_NAME and ELSEWHERE were chosen on marked questions about charts that a network had not learned
(`benchmarks/reader_replies.py --set` shows what another value does), the others by reading replies. Readers of replies
mind an answer that is left out far more often than a further fact, so what is near is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from operator import or_

import numpy as np

from agentclinic import lazy
from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.asked_parts import (
    OPENS,
    as_asked,
    at_this_place,
    is_of_kin,
    mentioned_before,
    parts_of,
    sentence_of,
    whole_pieces,
    with_place,
)
from agentclinic.cases.matcher.asking import DID_IT_HELP, stems
from agentclinic.cases.matcher.cues import Asked
from agentclinic.cases.matcher.reader import Asks, Floats, Index, index_of, knows, read
from agentclinic.cases.matcher.statements import statement
from agentclinic.cases.matcher.talk import ASKED_BESIDE, FEELINGS, Talk, small_talk
from agentclinic.cases.matcher.topics import (
    WELL,
    Topic,
    called,
    deniable,
    finding_names,
    is_primary,
    label,
    listed_noun,
    opening,
    says_no_harm,
    span,
    story,
    strange_words,
)
from agentclinic.cases.model import Fact, Facts, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.text import content_words

MARGIN = 0.0
"""A fact is told if its nearness, plus a bonus for its lead over all others, exceeds what the reader needs by this."""
LEAST = -2.0
"""The least nearness, beside what is needed, of a fact that is told, whatever its lead."""
OF_TALK = 1.0
"""The same where nothing seems to be asked."""
AHEAD, MOST_AHEAD = 0.63, 6.0
"""The bonus per point of lead, and the largest lead that counts."""
ALSO = -1.0
"""How much nearer another fact must be to be told as well."""
PIECE = 1.0
"""How much nearer than needed a fact must be to a piece of what is asked, as "stiff" in "painful or stiff"."""
AS_NEAR = 3.0
"""How far behind the nearest fact another may be."""
AS_NEAR_OPEN = 3.0
"""The same where the patient is to describe something."""
NAMED = 1.0
"""How much nearer than needed a fact must be that affirms what is asked for by name."""
MOST_ALIKE = 3
"""Facts told of one thing asked."""
MOST_TOLD = 8
"""Facts told at once, unless more things are asked or a whole section is."""
ELSEWHERE = 4.0
"""Subtracted from the nearness of a denial about another part of the body."""
OPPOSITE = 2.0
"""Subtracted from the nearness of what makes it worse if it is asked what makes it better, and the other way round."""
OTHERS = 3.0
"""Subtracted from the nearness of a fact about the patient if relatives are asked about, and the other way round."""
SAME_NAME = -4.0
"""The least nearness, beside what is needed, of a fact that names what would be denied: it may be farther."""
ANOTHER = 0.5
"""How much nearer than needed a denial of something else must be."""
FAR = -6.0
"""A fact this far from what was asked before, beside what was needed, has nothing to do with it."""
DIRECT = 3.0
"""How much nearer than needed a fact must be to count as asked for by name: then it is told even if "if pressed"."""
BY_ITSELF = 1.0
"""How much nearer than needed a fact must be to answer "how long?", or "especially at night", without what was asked
before."""
PRESSED = 1.0
"""How much nearer than needed a fact must be to count as pressed for."""
SURE = 3.0
"""How much nearer than needed a fact must be to be told again beside new ones."""
CLOSE = 2.0
"""How far behind the nearest fact one may be and still be asked for directly."""

_TELL = cues.Cue(
    r"(?:tell me|describe|talk me through|walk me through|hear (?:more )?about|explain)\b"
    r"|^what(?:'s| is| was) (?:it|the pain|that) like"
)
_TELL_ALL = cues.Cue(
    r"\b(?:tell me|hear|talk) (?:(?:all|everything|more) )?about (?:it|this|that|them|these|those)"
    r"(?=\s*(?:$|[^\w\s]|(?:and|from|since|how|when|in)\b))"
    r"|\bdescribe (?:it|this|that|them)(?: (?:to|for) me)?\W*$"
)
"""Asks for the whole story."""
_AT_LENGTH = cues.Cue(
    r"\bin your own words\b|\bfrom the (?:very )?(?:beginning|start)\b"
    r"|\bsince (?:it|this|then|that)(?: all)? (?:started|began)\b"
    r"|\bthe whole story\b|\beverything that(?:['’]s| has)? happened\b"
)
"""Asks for the story at length."""
_TELL_OF = cues.Cue(r"\b(?:tell|describe|talk|walk|take) (?:\w+ )*(?:how|what|about|through|story|everything)\b")
_OPEN = lazy.regex(
    r"^(?:and |so |but |or )?(?:how|when|where|what|which|who|why|since when|tell|describe)\b", re.IGNORECASE
)
_CHOICE = lazy.regex(
    r"\bor (?:is|are|was|were|do|does|did|has|have|only|just|more|rather)\b|\bbetter or worse\b"
    r"|\bonly\b.*\bor\b|\b(?:only|too|as well)$",
    re.IGNORECASE,
)
"""Offers two answers, of which "no" is neither: "does it stay there, or does it travel?"."""
DOUBTFUL = -0.5
"""An item of a list gets no answer that is less near than this, if that is the answer to another thing asked."""
DOUBT = -1.5
"""The least nearness, beside what is needed, of the fact that is told rather than denying a follow-up or a choice."""
_WHICH = lazy.regex(
    r"(?:and |or |so |but )*(how (?:many|much|long|often|far|big|old|soon)|which|where|when|who|why)\b", re.IGNORECASE
)
"""Asks for something that a patient may not be able to say."""
_KNOWN_TO_ALL = {
    "meals": cues.Cue(r"\bwhat (?:(?:do|does) )?(?:you|he|she) (?:usually |normally |mostly )?eat\b|\bdiet\b"),
    "personal": cues.Cue(
        r"^(?:and |or |so |but )*who\b"
        r"|\bwhere (?:did|were|was|do|does|are|is) (?:you|he|she) (?:grow up|grew up|born|raised|from|come from|live)\b"
    ),
}
"""Details that every patient knows, so that no patient says "I couldn't say who"."""
_ASKS_WHO = cues.Cue(
    r"\bwho(?:'s| is| lives| else is| else lives)? (?:(?:there )?at home|with (?:you|him|her))\b"
    r"|\bwho (?:do|does) (?:you|he|she) live with\b|\bwho (?:looks|is there to look) after (?:you|him|her)\b"
)
"""Asks who is at home."""
_HOUSEHOLD = (
    r"married|wife|husband|partner|alone|kids?|child(?:ren)?|sons?|daughters?|parents?|mother|father|mom|mum|dad"
    r"|roommates?|flatmates?|widow\w*|divorced"
)
_LIVES = cues.Cue(rf"\b(?:liv(?:e|es|ing) (?:with|by)|{_HOUSEHOLD})\b")
"""Tells with whom someone lives."""
_HOME = cues.Cue(rf"\b(?:liv(?:e|es|ing)|home|house|flat|apartment|pets?|dogs?|cats?|stairs|farm|{_HOUSEHOLD})\b")
"""Tells how someone lives at home."""
_PEOPLE = cues.Cue(
    r"\b(?:famil\w*|house\w*|home|every(?:body|one)|nobody|no one|others?|brothers?|sisters?|cousins?|aunt|uncle"
    rf"|grand\w+|{_HOUSEHOLD})\b"
)
"""Tells of other people."""
_FUNCTIONS = (
    r"(?:hearing|(?:eye)?sight|vision|memory|balance|concentration|coordination|speech|voice|appetite|energy|mood|sleep"
    r"|walking|breathing|swallowing|digestion|skin|strength|sense of (?:smell|taste)|bowels|waterworks|eyes|ears)"
)
_HOW_IS = lazy.regex(
    rf"(?:and )?how(?:['’]s| is| are| has| have) (?:your|his|her) ({_FUNCTIONS})(?: been)?(?: lately| recently)?\W*"
    rf"|(?:and )?how about (?:your|his|her) ({_FUNCTIONS})\W*",
    re.IGNORECASE,
)
"""Asks how something of the body works."""
_FOLLOWS = lazy.regex(
    r"(?:and |or |but |so )*(?:is|are|was|were|do|does|did|has|have|had|can|could)(?:n['’]t)?"
    r" (?:it|that|they|those|these|this)\b",
    re.IGNORECASE,
)
"""Asks more about what was asked before: "and is it worse at night?". If a fact is not too far, it is told: half of
such questions about other charts have an answer that was not recognized."""
_EITHER = lazy.regex(r"\w\s+or\s+\w", re.IGNORECASE)
"""Two things that the reader does not tell apart, often a choice, and so not denied beside other answers."""
_EXAMPLE = lazy.regex(r"(?:for (?:example|instance)|such as|including)\b", re.IGNORECASE)
_SPANS = frozenset(
    "hour day week month year time past last few recent recently lately today daily before during while now".split()
)
"""Words that only say when: a fact that is near to these alone is not what was asked."""
_ANY_OTHER_THING = lazy.regex(r"(?:any |some )?(?:other|similar) \w+", re.IGNORECASE)
"""Ends a list without naming anything: "or other products"."""
_ANYTHING = lazy.regex(
    r"(?:have|has|did|do|does) (?:you|he|she|they) (?:ever |also )?(?:noticed?|had|have|seen|feel|felt)"
    r" (?:anything|any (?:other )?(?:changes?|symptoms?|problems?))"
    r"(?: (?:elsewhere|in|on|of|your|his|her|body|lately|recently|about|with|yourself|at|all|new|different|unusual))*",
    re.IGNORECASE,
)
"""Names nothing, and is not denied beside its examples."""
_ABOVE_ALL = lazy.regex(r"(?:especially|particularly|in particular)\b", re.IGNORECASE)
_IT = lazy.regex(r"\b(?:it|that|them|they|those|this)\b", re.IGNORECASE)
_ANY_OF_THEM = cues.Cue(r"\b(?:any|all|some|one|none) of (?:them|these|those)\b")
_OF_THEM = cues.Cue(r"(?:do|does|did|are|is|were|was|have|has) (?:they|it|these|those|this|that)\b")
"""Asks about what was spoken of before."""
_OWN_AND_KIN = cues.Cue(
    r"\byou(?:rself)?\b[^?.!;]{0,25}?\b(?:or|and)\b[^?.!;]{0,20}?"
    r"\b(?:famil(?:y|ies)|relatives?|parents?|mother|father|brothers?|sisters?|siblings?)\b"
)
"""Asks about the patient and the relatives at once."""
_BEGAN = lazy.regex(
    r"(?:and |so )*(?:exactly )?(?:when|what time|since when"
    r"|how (?:long|many (?:days|weeks|months|years)(?: or (?:days|weeks|months|years))*) ago)(?: exactly)?"
    r" (?:did|have|has|was|were) (?:you first (?:notice|feel|have|get)\b.*"
    r"|(?:all )?(?:it|this|that|they|things|these|your?|the|his|her)\b.*\b(?:start|begin|began|come on|first notice)\b)"
    r"|(?:and |so )*how long (?:has (?:this|it|that|all this) been (?:going on|there|like this|happening)"
    r"|have you (?:had|been having|been feeling) (?:this|it|these|that|like this)\b)",
    re.IGNORECASE,
)
"""Asks when it began: that is mostly told by the main complaint."""
_LAST_SAID = lazy.regex(
    r"(?:(?:i (?:understand|gather|hear|see|know)|you (?:said|say|told me|mentioned))(?: that)? )?"
    r"([^.?!]{3,120})[.!]\W*$",
    re.IGNORECASE,
)
"""What a doctor says before a question that says nothing without it."""
_GOES_ON = cues.Cue(r"\bhow long has (?:this|it|that) been\b")
"""After another question, this asks about what that was about."""
_ONLY_WHEN = lazy.regex(
    r"(?:and |or |so |but )*(?:for |since )?(?:how (?:much|many|long|often|bad|big|high|far|severe)|in what way|when"
    r"|where|why|which(?: one)?|who)(?: (?:was|is|are|did|does|do|has|have|were)(?: (?:it|that|this|they|those|you))?)?"
    r"(?: (?:exactly|been|happen|start|begin|last|changed?|a day|each day))?\W*",
    re.IGNORECASE,
)
"""Says nothing without what was asked before: "how much?"."""
_SHORT = lazy.regex(r"\b[a-z]+['’](?:ve|re|ll|d|s|m|t)\b", re.IGNORECASE)
_FAMILY = cues.Cue(
    r"\babout (?:your|his|her|the) family\b|\bfamily (?:medical |health )?history\b"
    r"|\b(?:illness|disease|problem|condition)\w* (?:that )?(?:runs? )?in (?:your|his|her|the) family\b"
    r"|\banything run in (?:your|his|her|the) family\b"
)
"""Asks for the history of the whole family."""
_ANY_OTHER = cues.Cue(r"\b(?:any|some) other (?:\w+ )?(?:illness|disease|problem|condition)(?:e?s)?$")
_MEDICINES = cues.Cue(
    r"\b(?:what|which|any|other|all|your) (?:[a-z]+ )?(?:medicines?|medications?|meds|drugs|tablets|pills)\b"
    r".*\b(?:you|he|she|they) (?:\w+ )?(?:tak|us|on\b)"
    r"|\b(?:you|he|she|they) (?:\w+ )?(?:on|taking|take|takes|using|use) (?:any|other|regular|daily|some)\b(?: \w+)?"
    r" (?:medicines?|medications?|meds|(?<!use any )drugs|tablets|pills)\b"
    r"|^(?:and )?(?:on|taking|take) any (?:other |regular )?(?:medicines?|medications?|tablets|pills)\b"
    r"|^(?:and )?(?:what|any|any other) (?:medicines?|medications?)\W*$"
)
"""Asks for all medicines, perhaps with examples."""
_LIFE = cues.Cue(
    r"\bsocial (?:history|background|situation)\b|\blife ?styles?\b"
    r"|\b(?:(?:home|daily|everyday|family) life|life (?:look like |like )?at home)\b"
    r"|\b(?:your life|(?:normal|typical|usual) day) (?:look )?like\b"
    r"|\babout (?:yourself|himself|herself)\b"
    r"|\babout (?:your|his|her) (?:(?:work|job) and (?:your |his |her )?(?:life|home|family|living)"
    r"|life|home|(?:daily|normal|usual) (?:routine|day)|living situation)\b"
)
"""Asks how someone lives."""
_HOME_ALONE = lazy.regex(r".*\babout (?:your|his|her) home(?: situation)?", re.IGNORECASE)
_CLAUSE_END = lazy.regex(r"[.,?:;]")
_WORSE = cues.Cue(r"\b(?:worse\w*|aggravat\w*|brings? (?:it|them|this) on|sets? (?:it|them|this) off|triggers?)\b")
_BETTER = cues.Cue(
    r"\b(?:better|eas(?:e|es|ed|ier)|reliev\w*|relief|helps?|helped|sooth\w*|(?:make|makes) it (?:stop|go away))\b"
)
_TOUCHED = cues.Cue(r"\b(?:affect|impact|interfer|chang|mean|stop|get in the way|limit)\w*")
"""Asks what the illness does to it."""
_ILLNESSES = cues.Cue(
    r"\b(?:what|which|any|other|all|past|previous|earlier|long[- ]term|chronic|serious|major)"
    r" (?:(?!heart|lung|kidney|liver|mental|skin|bowel|eye)\w+ ){0,3}?"
    r"(?:illness(?:es)?|diseases?|conditions?|health (?:problems?|issues?)|medical (?:problems?|issues?|history)"
    r"|diagnos[ei]s)\b|\bmedical history\b|\bpast (?:illness(?:es)?|history)\b"
)
"""Asks for all that the patient has or had."""
_WELL_SINCE = cues.Cue(r"\b(?:healthy|well|illness(?:es)?|conditions?)\b")
_NO_ILLNESS = cues.Cue(
    r"vaccin|\b(?:shots?|jabs?|booster|periods?|smear|born|pregnan\w*|negative|never|nobody|no one|normal|hospital"
    r"|colonoscopy|mammogram|check-?ups?|creatinine|readings?)\b|immuni|tetanus"
    r"|^no\b"
)
_WHOLE = {Section.PAST: "medical condition", Section.DRUGS: "medication"}
"""Sections that a question can ask for as a whole: "what medicines do you take?"."""
WHOLE = 0.0
"""How much nearer than the reader asks for a fact of such a section must be."""
MOST_OF_SECTION = 5
_TOOK = cues.Cue(r"\b(?:took|tried|chewed|gave (?:me|him|her|us)|put (?:me|him|her) on|had|course|courses|rounds?)\b")
"""Tells that something was taken."""
_NARROWED = cues.Cue(
    r"\b(?:new|chang\w+|start\w*|stopp?\w*|for (?:it|this|the|that|your)|miss\w*|often|dose|how|help\w*)\b"
)
_OF_LIFE = (Section.SOCIAL, Section.FAMILY)
"""Sections that tell nothing about the illness."""
_OF_BODY = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW, Section.PAST)
"""Sections of which no fact is about relatives, unless it names people."""
_TALK = {talk.value: talk for talk in Talk}


@dataclass(frozen=True)
class _Found:
    """What a chart says about one thing asked, the nearest first."""

    asks: Asks
    rows: tuple[int, ...]
    nearness: tuple[float, ...]
    """By how much each is nearer than needed."""
    of_kin: bool
    whole: bool = False
    """Whether it asks for a section of the background."""
    noun: str = ""
    """What it asks for, if that stands in a list of nouns."""


@dataclass(frozen=True, eq=False)
class _Chart:
    """What questions read of a chart, with a place for each fact; what few of them need is made when one does."""

    facts: Facts
    index: Index
    words: tuple[str, ...]
    """The words of each fact, and those of the patient for it."""
    harmless: tuple[bool, ...]
    """Whether each denies something, or calls something normal."""

    def named(self, row: int) -> int:
        """What a fact names, with what that is a kind of."""
        return lexicon.named(self.words[row]).closed

    def affirms(self, row: int, text: str) -> bool:
        """Whether a fact affirms what a text names."""
        named = lexicon.named(text).names & lexicon.of_types("symptom", "habit", "exposure")
        named &= ~lexicon.roots() & ~lexicon.bit("pain")
        return bool(named and not self.harmless[row] and named & self.named(row))

    def affirmed(self, section: Section) -> list[int]:
        """The facts of a section that deny nothing."""
        return [row for row, fact in enumerate(self.facts) if fact.section is section and not fact.denied]

    @cached_property
    def places_denied(self) -> tuple[tuple[int, int], ...]:
        """The places that each fact denies something of, and with those that they are part of.

        Most have no word of a place, and are not read for that.
        """
        place = lexicon.of_types("place")
        likely = [fact.denied and lexicon.may_name("place", text) for fact, text in self._read]
        both = [lexicon.named(text) if may else None for text, may in zip(self.words, likely, strict=True)]
        return tuple([(one.names & place, one.closed & place) if one else (0, 0) for one in both])

    @cached_property
    def of_patient(self) -> Floats:
        """1 for the facts about the patient alone."""
        return np.array(
            [fact.section in _OF_BODY and not _PEOPLE.search(text) for fact, text in self._read], np.float32
        )

    @cached_property
    def denies_of_kin(self) -> Floats | None:
        """1 for the denials about relatives; None if there are none."""
        denies = [fact.denied and fact.section is Section.FAMILY for fact in self.facts]
        return np.array(denies, dtype=np.float32) if any(denies) else None

    @cached_property
    def better(self) -> Floats:
        """1 for the facts that tell what makes it better and not worse."""
        return self._only(_BETTER, _WORSE)

    @cached_property
    def worse(self) -> Floats:
        """1 for the facts that tell what makes it worse and not better."""
        return self._only(_WORSE, _BETTER)

    def _only(self, one: cues.Cue, other: cues.Cue) -> Floats:
        return np.array([bool(one.search(text) and not other.search(text)) for text in self.words], dtype=np.float32)

    @cached_property
    def illnesses(self) -> frozenset[int]:
        """The facts of the past that name an illness or an operation."""
        named = lexicon.of_types("disease", "procedure") & ~lexicon.roots()
        return frozenset(
            row
            for row, (fact, text) in enumerate(self._read)
            if fact.section is Section.PAST
            and not self.harmless[row]
            and not _names_no_illness(fact)
            and lexicon.named(text).names & named
        )

    @cached_property
    def also_taken(self) -> tuple[int, ...]:
        """The facts of the story that tell of a drug which no fact about medicines names: lozenges that were tried."""
        story = ((row, self.facts[row]) for row in self.affirmed(Section.HISTORY))
        told = [row for row, fact in story if _TOOK.search(fact.says or fact.text)]
        if not told:
            return ()
        taken = (lexicon.named(text).names for fact, text in self._read if fact.section is Section.DRUGS)
        drugs = lexicon.of_types("drug") & ~lexicon.roots() & ~_in_general() & ~reduce(or_, taken, 0)
        return tuple(row for row in told if lexicon.named(self.words[row]).names & drugs)

    @cached_property
    def onset(self) -> list[int]:
        """The main complaint, if it says since when."""
        return [row for row, fact in enumerate(self.facts) if is_primary(fact) and statement(fact).timed]

    @property
    def _read(self) -> Iterator[tuple[Fact, str]]:
        return zip(self.facts, self.words, strict=True)


@lru_cache(maxsize=512)
def _chart_of(facts: Facts) -> _Chart | None:
    """None for a chart whose author gives no questions."""
    if not any(fact.asked for fact in facts):
        return None
    words = tuple([fact.matched_as or f"{fact.text} {fact.says}" for fact in facts])
    return _Chart(facts, index_of(facts), words, tuple(map(says_no_harm, facts)))


def _denied_elsewhere(text: str, chart: _Chart) -> Floats | None:
    """1 for the facts that deny something at a place other than the one a text names; None if there are none."""
    asked, place = lexicon.named(text), lexicon.of_types("place")
    if not asked.closed & place:
        return None
    elsewhere = [
        bool(wider) and not (asked.names & wider or asked.closed & own) & place for own, wider in chart.places_denied
    ]
    return np.array(elsewhere, dtype=np.float32) if any(elsewhere) else None


def _opposite(text: str, chart: _Chart) -> Floats | None:
    """1 for the facts that tell what makes it worse if a text asks what makes it better, and the other way round."""
    worse, better = _WORSE.search(text), _BETTER.search(text)
    if bool(worse) == bool(better):
        return None
    return chart.better if worse else chart.worse


@lru_cache(maxsize=1)
def _in_general() -> int:
    """The concepts that name no medicine or illness in particular."""
    return reduce(or_, map(lexicon.bit, (*_WHOLE.values(), "over the counter drug", "supplement")))


def _asks_of_life(asks: Asks, question: str) -> str:
    """What is asked about how someone lives: "life", or "home" alone; empty if nothing is."""
    if not _LIFE.may_be_in(question):
        return ""
    end = _CLAUSE_END.search(question, asks.start + len(asks.text))
    clause = question[asks.start : end.start() if end else None]
    if not _LIFE.search(clause):
        return ""
    return "home" if _HOME_ALONE.fullmatch(clause) else "life"


def _of_section(asks: Asks, near: Floats, question: str, chart: _Chart, *, of_kin: bool) -> list[int]:
    """The facts of a section of the background that is asked for as a whole."""
    facts, named = chart.facts, lexicon.named(asks.text).names

    def nearest(rows: Iterable[int]) -> list[int]:
        return sorted(rows, key=lambda row: -near[row])[:MOST_OF_SECTION]

    whole_family = _FAMILY.search(asks.text) or (of_kin and _ANY_OTHER.search(asks.text))
    if whole_family and not named & lexicon.of_types("disease", "symptom") & ~lexicon.roots():
        rows = [row for row, fact in enumerate(facts) if fact.section is Section.FAMILY]
        return sorted(rows, key=lambda row: (facts[row].denied, -near[row]))[:MOST_OF_SECTION]
    if (life := _asks_of_life(asks, question)) and not _TOUCHED.search(sentence_of(question, asks)[1]):
        return _of_life(near, chart, at_home=life == "home")
    if of_kin or _NARROWED.search(asks.text):
        return []
    if _MEDICINES.search(asks.text) and (rows := nearest(chart.affirmed(Section.DRUGS))):
        best = int(near.argmax())
        rows += [row for row in chart.also_taken if near[row] >= asks.needed + SAME_NAME]
        return rows if best in rows or near[best] < asks.needed + DIRECT else [best, *rows]
    if _ILLNESSES.search(asks.text) and (ill := chart.illnesses):
        nearer = near >= asks.needed + WHOLE
        past = nearest(chart.affirmed(Section.PAST))
        rows = [row for row in past if row in ill or (nearer[row] and not _names_no_illness(facts[row]))]
        direct = [
            row
            for row in _at_least(asks.needed + DIRECT, near)
            if not chart.harmless[row] or _WELL_SINCE.search(chart.words[row]) or named & chart.named(row)
        ]
        return list(dict.fromkeys((*sorted(direct, key=lambda row: -near[row])[:MOST_ALIKE], *rows)))
    for section, name in _WHOLE.items():
        if named & lexicon.bit(name) and not named & lexicon.of_types("drug", "disease") & ~_in_general():
            rows = [row for row in _at_least(asks.needed + WHOLE, near) if facts[row].section is section]
            rows = [row for row in rows if not facts[row].denied] or rows
            best = int(near.argmax())
            if best not in rows and near[best] >= asks.needed + DIRECT:  # "no regular medicines before the operation"
                rows.append(best)
            return nearest(rows)
    return []


def _at_least(bound: float, near: Floats) -> list[int]:
    """The facts that are as near as this."""
    rows: list[int] = (near >= bound).nonzero()[0].tolist()
    return rows


def _of_life(near: Floats, chart: _Chart, *, at_home: bool) -> list[int]:
    """What someone's life is like: first home and work, then habits; how one feels is not asked."""
    rows = chart.affirmed(Section.SOCIAL)
    home = [row for row in rows if _HOME.search(chart.words[row])]
    if at_home and home:
        return sorted(home, key=lambda row: -near[row])[:MOST_OF_SECTION]
    first = {*home, *(row for row in rows if _tells_job(chart.words[row]))}
    symptoms = lexicon.of_types("symptom")
    kept = [row for row in rows if row in first or not lexicon.named(chart.words[row]).names & symptoms]
    return sorted(kept or rows, key=lambda row: (row not in first, -near[row]))[:MOST_OF_SECTION]


def _tells_job(text: str) -> bool:
    return bool(lexicon.named(text).closed & lexicon.bit("occupation") or cues.TELLS_JOB.search(text))


def _names_no_illness(fact: Fact) -> bool:
    return bool(_NO_ILLNESS.search(fact.says or fact.text))


def _find(asks: Asks, before: Asks | None, question: str, chart: _Chart) -> _Found:
    facts, index, needed = chart.facts, chart.index, asks.needed
    near = index.nearness(asks)
    if before is not None and near.max() < needed + BY_ITSELF and _ONLY_WHEN.fullmatch(asks.text):
        near_before = index.nearness(before) - before.needed
        if near_before.max() >= DIRECT:
            near = np.asarray(0.5 * (near + near_before + needed), dtype=np.float32)
    elif before is not None and DID_IT_HELP.fullmatch(asks.text):
        near = near + DIRECT * (index.nearness(before) >= before.needed)
    of_kin = is_of_kin(question, asks)
    if (elsewhere := _denied_elsewhere(with_place(asks, before, question), chart)) is not None:
        near = near - ELSEWHERE * elsewhere
    if unasked := _of_something_else(asks, before, near, chart):
        near[unasked] = needed + FAR
    if (opposite := _opposite(asks.text, chart)) is not None:
        near = near - OPPOSITE * opposite
    of_any, of_others = near, chart.of_patient if of_kin else chart.denies_of_kin
    if of_others is not None:
        near = near - OTHERS * of_others
    rows = _of_section(asks, near, question, chart, of_kin=of_kin)
    whole = bool(rows)
    best = int(near.argmax())
    if not rows and near[best] >= needed + (OF_TALK if asks.kind == "talk" else LEAST):
        lead = 0.0  # only one that is not near enough by itself needs one
        if near[best] < needed + MARGIN and (of_others is None or not of_others[best]):
            lead = AHEAD * min(MOST_AHEAD, _ahead(of_any, best))
        if near[best] + lead >= needed + MARGIN:
            rows = _near_to(best, asks, near, chart)
    if not whole:
        for row, nearer in _of_pieces(asks, index):
            near[row] = max(near[row], needed + nearer)
            rows = list(dict.fromkeys((*rows, row)))
    if not rows and asks.kind == "no":
        rows = _same_name(asks, near, chart, of_kin=of_kin)
    noun = "" if rows else _listed_noun(asks, question)
    if noun:
        rows = _same_words(noun, asks, near, chart, of_kin=of_kin)
    if not rows and near[best] >= needed + DOUBT and (_FOLLOWS.match(asks.text) or _EITHER.search(asks.text)):
        rows = [best]
    if not rows and _ASKS_WHO.search(asks.text):
        rows = [row for row, fact in enumerate(facts) if fact.section is Section.SOCIAL]
        rows = [row for row in rows if _LIVES.search(chart.words[row])]
        rows = sorted(rows, key=lambda row: -near[row])[:MOST_ALIKE]
    own_and_kin = rows and not whole and _OWN_AND_KIN.may_be_in(question)
    if own_and_kin and _OWN_AND_KIN.search(sentence_of(question, asks)[1]):
        told_of_kin = facts[rows[0]].section is Section.FAMILY
        rows = list(dict.fromkeys((*rows, *_same_name(asks, near, chart, of_kin=not told_of_kin))))
    if _BEGAN.match(asks.text) and (before is None or not _GOES_ON.search(asks.text)):
        rows = list(dict.fromkeys((*chart.onset, *rows)))
        near[chart.onset] = np.maximum(near[chart.onset], needed + SURE)
    nearness = tuple([float(near[row]) - needed for row in rows])
    return _Found(asks, tuple(rows), nearness, of_kin, whole, "" if rows else noun)


def _near_to(best: int, asks: Asks, near: Floats, chart: _Chart) -> list[int]:
    """The nearest fact, and others that are nearly as near or that affirm what is asked for by name."""
    reach = AS_NEAR_OPEN if _TELL.search(asks.text) else AS_NEAR
    enough = max(asks.needed + ALSO, float(near[best]) - reach)
    others = _at_least(min(enough, asks.needed + NAMED), near)
    of_life = chart.facts[best].section in _OF_LIFE
    rows = [best]
    for row in sorted(others, key=lambda row: -near[row]):
        if len(rows) >= MOST_ALIKE:
            break
        is_near = near[row] >= enough or chart.affirms(row, asks.text)
        if row == best or not is_near:
            continue
        if not of_life or chart.facts[row].section in _OF_LIFE or near[row] >= near[best] - CLOSE:
            rows.append(row)
    return rows[:MOST_ALIKE]


def _listed_noun(asks: Asks, question: str) -> str:
    begins = max(question.rfind(mark, 0, asks.start) for mark in ".?!") + 1
    return listed_noun(asks.text, question[begins : asks.start])


def _at_this_place(one: _Found, last: _Found, question: str, chart: _Chart) -> _Found:
    """A place named alone, with what was asked before it if that gives a better answer; otherwise as it is.

    A fact that was told of the place before says nothing about this one, unless it names it.
    """
    asks = None if one.whole else at_this_place(last.asks, one.asks, question)
    if asks is None:
        return one
    there = _find(asks, last.asks, question, chart)
    if not there.rows:
        return one if one.rows else there
    places = lexicon.named(one.asks.text).closed & lexicon.of_types("place")
    told_before = there.rows[0] in last.rows and not places & lexicon.named(chart.words[there.rows[0]]).names
    return one if told_before or (one.rows and there.nearness[0] <= one.nearness[0]) else there


def _unless_told_beside(one: _Found, found: Sequence[_Found], question: str, chart: _Chart) -> _Found:
    """An item of a list, without a doubtful answer that is rather that to another thing of the same question."""
    if not one.rows or one.nearness[0] >= DOUBTFUL or one.asks.kind != "no" or one.whole:
        return one
    if not any(one.rows[0] in other.rows and other.nearness[0] >= 0 for other in found if other is not one):
        return one
    named = lexicon.named(one.asks.text).closed & ~lexicon.roots() & ~lexicon.of_types("place")
    noun = "" if named & chart.named(one.rows[0]) else _listed_noun(one.asks, question)
    return replace(one, rows=(), nearness=(), noun=noun) if noun else one


def _of_something_else(asks: Asks, before: Asks | None, near: Floats, chart: _Chart) -> list[int]:
    """What the chart denies or calls normal, but no one asked: it is not near enough, or far from what "it" is."""
    rows = _at_least(asks.needed + LEAST, near)
    harmless = [row for row in rows if chart.harmless[row]]
    refers = before is not None and _IT.search(asks.text) is not None
    of_them = refers and _ANY_OF_THEM.search(asks.text)
    if not harmless and not of_them:
        return []
    unrelated: list[int] = []
    far = near < asks.needed + ANOTHER
    if before is not None and refers:
        apart = chart.index.nearness(before) < before.needed + FAR
        if of_them:
            unrelated = [row for row in rows if apart[row] and far[row]]
        far |= apart
    elif _OF_THEM.match(asks.text):
        far |= (near < asks.needed + DIRECT) & np.array([own != 0 for own, _ in chart.places_denied])
    named = lexicon.named(asks.text)
    alike = named.names & ~lexicon.roots() | named.closed & lexicon.of_types("place")
    return [*unrelated, *(row for row in harmless if far[row] and not alike & chart.named(row))]


def _of_pieces(asks: Asks, index: Index) -> Iterator[tuple[int, float]]:
    """The facts that answer a piece of what is asked, and by how much each is nearer than needed."""
    for piece in whole_pieces(asks):
        near = index.nearness(piece)
        best = int(near.argmax())
        if near[best] >= piece.needed + PIECE:
            yield best, float(near[best]) - piece.needed


def _ahead(near: Floats, best: int) -> float:
    """How much nearer a fact is than all others; 0 if another is nearer."""
    if len(near) < 2:
        return MOST_AHEAD
    ordered = near.copy()
    ordered.partition(len(near) - 2)
    second, first = ordered[-2:]
    return float(first - second) if near[best] == first else 0.0


def _same_name(asks: Asks, near: Floats, chart: _Chart, *, of_kin: bool) -> list[int]:
    """The nearest fact that names what would be denied."""
    named = lexicon.named(asks.text)
    asked = named.names & deniable() & ~lexicon.roots() & ~lexicon.bit("pain")
    places = named.closed & lexicon.of_types("place")
    if not asked:
        return []
    alike = [
        (float(near[row]), -row)
        for row in _at_least(asks.needed + SAME_NAME, near)
        if (chart.facts[row].section is Section.FAMILY) == of_kin
        and (names := chart.named(row)) & asked
        and not (places and names & lexicon.of_types("place") and not places & names)
    ]
    return [-max(alike)[1]] if alike else []


def _same_words(noun: str, asks: Asks, near: Floats, chart: _Chart, *, of_kin: bool) -> list[int]:
    """The nearest fact that affirms, in the same words, what would otherwise be denied: "heater"."""
    asked = stems(noun)
    if not asked:
        return []
    alike = [
        (float(near[row]), -row)
        for row in _at_least(asks.needed + SAME_NAME, near)
        if not chart.harmless[row]
        and (chart.facts[row].section is Section.FAMILY) == of_kin
        and asked <= stems(chart.words[row])
    ]
    return [-max(alike)[1]] if alike else []


def answer(question: str, facts: Facts) -> list[Topic] | None:
    """What a chart says about a question; None if its author gives no questions."""
    chart = _chart_of(facts)
    if chart is None:
        return None
    said = small_talk(question)
    talk = [Topic(kind, Asked.TALK, ()) for kind in said.kinds]
    rest = as_asked(question)
    parts = parts_of(question)
    if talk and not (parts and (content_words(said.mixed) or _ONLY_WHEN.fullmatch(parts[0].text))):
        first = _story(said.rest, (), facts) if said.rest else None
        return [first] if first else talk
    feelings = [topic for topic in talk if topic.name in ASKED_BESIDE]
    said_before = {one.start: before for before, one in pairwise(read(rest))}
    before = [said_before.get(one.start, last) for last, one in zip((None, *parts), parts, strict=False)]
    if parts and before[0] is None and _ONLY_WHEN.fullmatch(parts[0].text):
        said_first = _LAST_SAID.search(question[: max(0, question.find(parts[0].text))])
        before[0] = (read(said_first[1]) or (None,))[-1] if said_first else None
    found = [_find(one, last, rest, chart) for last, one in zip(before, parts, strict=True)]
    for at in range(1, len(found)):
        found[at] = _at_this_place(found[at], found[at - 1], rest, chart)
    found = [_unless_told_beside(one, found, rest, chart) for one in found]
    found = _trimmed([one for one in found if len(found) == 1 or not _asks_vaguely(one)])
    topics: list[Topic] = []
    tell_all = _TELL_ALL.search(rest)
    of_all = tell_all and not mentioned_before(rest, tell_all.start())
    opens = (_AT_LENGTH.search(rest) and _TELL_OF.search(rest)) or of_all or OPENS.search(rest)
    answers = bool(opens) or any(one.rows for one in found)
    for one in found:
        topic = _topic(one, facts, answers=answers, only=len(found) == 1)
        if topic is not None and topic not in topics:
            topics.append(topic)
    if len(topics) > 1 and any(
        one.asks.kind == "no" and not one.rows and _EITHER.search(one.asks.text) for one in found
    ):
        topics = [topic for topic in topics if not _denies_the_rest(topic)]
    tells_story = any(topic.kind in (Asked.OPENING, Asked.MORE) for topic in topics)
    if not tells_story and opens:
        topics.insert(0, Topic("opening", Asked.OPENING, _told_first(rest, facts)))
    topics.sort(key=lambda topic: topic.kind is Asked.TALK)
    topics += [topic for topic in feelings if topic not in topics]
    if not topics and said.rest and (first := _story(said.rest, (), facts)):
        return [first]
    return topics or talk[:1] or [Topic(question.strip(), Asked.UNCLEAR, ())]


def _denies_the_rest(topic: Topic) -> bool:
    """Whether what is denied has no name, so that all the rest is denied: "otherwise, nothing like that"."""
    nameless = topic.kind is Asked.SYMPTOM and not topic.facts and not topic.words
    return nameless and not cues.YES_OR_NO.match(topic.asked)


def _asks_vaguely(one: _Found) -> bool:
    """Whether it asks for nothing by itself: "anything else", "especially at night", or an example that is unknown.

    Beside answers, it would only be denied without a name: "otherwise, nothing like that".
    """
    text = one.asks.text
    nearest = one.nearness[0] if one.rows else LEAST
    if _ABOVE_ALL.match(text) and nearest < BY_ITSELF:
        return not finding_names(text)
    if nearest >= DIRECT or one.whole:
        return False
    if _names_nothing(text) and (not one.rows or content_words(text) <= _SPANS):
        return True
    if cues.ANYTHING_ELSE.search(text) or (not one.rows and _ANYTHING.fullmatch(text)):
        return not finding_names(text)
    if one.rows or not _EXAMPLE.match(text):
        return bool(_EXAMPLE.match(text) or _ANY_OTHER_THING.fullmatch(text)) and not lexicon.named(text).names
    return not (one.noun or called(text, finding_names(text)))


def _names_nothing(text: str) -> bool:
    """Whether words ask for nothing, or only say when: "in the past few weeks", "also at night"."""
    if cues.YES_OR_NO.match(text) or cues.OPEN.search(text) or _AT_LENGTH.search(text):
        return False
    named = lexicon.named(text)
    when = ("time", "trigger") if named.closed & lexicon.bit("time of day") else ("time",)
    return not named.names & ~lexicon.of_types(*when) and not strange_words(text)


@lru_cache(maxsize=4096)
def asked_directly(question: str, facts: Facts) -> frozenset[str]:
    """The paths of the facts that a part of a question asks for nearly by name."""
    chart = _chart_of(facts)
    if chart is None:
        return frozenset()
    paths: set[str] = set()
    for asks in parts_of(question):
        near = chart.index.nearness(asks)
        paths |= {facts[row].path for row in _at_least(max(asks.needed + PRESSED, near.max() - CLOSE), near)}
    return frozenset(paths)


def _trimmed(found: Sequence[_Found]) -> list[_Found]:
    """Each thing's best answer, and of the others the nearest as long as there is room."""
    answered = [one for one in found if one.rows]
    spare = sorted((score for one in answered if not one.whole for score in one.nearness[1:]), reverse=True)
    room = max(0, MOST_TOLD - len(answered))
    bound = spare[room - 1] if room and len(spare) >= room else (-np.inf if room else np.inf)
    kept = [[at for at in range(len(one.rows)) if not at or one.whole or one.nearness[at] >= bound] for one in found]
    return [
        replace(one, rows=tuple(one.rows[at] for at in places), nearness=tuple(one.nearness[at] for at in places))
        if len(places) < len(one.rows)
        else one
        for one, places in zip(found, kept, strict=True)
    ]


def _topic(one: _Found, facts: Facts, *, answers: bool, only: bool) -> Topic | None:
    text = one.asks.text
    vague = not one.rows or one.nearness[0] < DIRECT
    if not one.whole and (only or _TELL_ALL.search(text)) and (vague or cues.OPENING.search(text)):
        first = _story(text, one.rows, facts)
        if first:
            return first
    names = finding_names(text)
    name = names[0] if names else label(text)
    if one.rows:
        return _told(one, facts, name)
    return _silent(one, name, names, answers=answers, facts=facts)


def _story(text: str, rows: Sequence[int], facts: Facts) -> Topic | None:
    """What is told when a question asks for the story, or for more of it; None if it asks for something else."""
    if cues.MORE.search(text):
        return Topic("more", Asked.MORE, tuple(facts[row] for row in rows) if finding_names(text) else ())
    if any(asks.search(text) for asks in (cues.OPENING, _TELL_ALL, OPENS)):
        return Topic("opening", Asked.OPENING, _told_first(text, facts))
    if cues.ANYTHING_ELSE.search(text) and not finding_names(text):
        return Topic("other symptoms", Asked.MORE, tuple(facts[row] for row in rows))
    return None


def _told_first(text: str, facts: Facts) -> tuple[Fact, ...]:
    """The opening, or the story if the doctor asks for it."""
    return story(facts) if _AT_LENGTH.search(text) else opening(facts)


def _told(one: _Found, facts: Facts, name: str) -> Topic:
    told = tuple(facts[row] for row in one.rows)
    if one.whole and told[0].section is Section.FAMILY:
        return Topic("family history", Asked.FAMILY, told)
    enough = max(SURE, one.nearness[0] - CLOSE)
    whole = one.whole and told[0].section is not Section.SOCIAL  # "your life at home" does not ask for habits by name
    close = {fact.path for fact, near in zip(told, one.nearness, strict=True) if near >= enough or whole}
    return Topic(name, Asked.SYMPTOM, told, direct=frozenset(close))


def _silent(one: _Found, name: str, names: Sequence[str], *, answers: bool, facts: Sequence[Fact]) -> Topic | None:
    """A thing that no fact answers: who is asked about, what can be denied, and what is not understood."""
    text = one.asks.text
    if one.asks.kind in ASKED_BESIDE and FEELINGS.search(text):
        return Topic(_TALK[one.asks.kind], Asked.TALK, ())
    if one.asks.kind == "talk" or DID_IT_HELP.fullmatch(text):
        is_talk = one.asks.kind == "talk"
        return None if answers else Topic(Talk.CONSENT, Asked.TALK, ()) if is_talk else Topic(name, Asked.DETAIL, ())
    if _TELL.search(text) and not answers:
        return Topic("opening", Asked.OPENING, opening(facts))
    if cues.EXAMINED.search(text):
        return Topic("examination or result", Asked.RESULT, ())
    if answers and _EITHER.search(text):
        return None
    named = lexicon.named(text)
    main = named.names & deniable()
    strange = [word for word in strange_words(_SHORT.sub(" ", text)) if not knows(word)]
    if 2 * len(strange) > len(content_words(text)):
        return None if answers else Topic(name, Asked.UNCLEAR, (), span(text, strange))
    if one.of_kin and one.asks.kind == "no":
        return Topic("family history", Asked.FAMILY, (), one.noun)
    if one.asks.kind == "no" and not any(cue.search(text) for cue in (_OPEN, _CHOICE, WELL)):
        for section in cues.BACKGROUND:
            if section.section is not Section.FAMILY and section.asked.search(text):
                return Topic(section.section.value.replace("_", " "), section.kind, (), text, asked=text)
        return Topic(name, Asked.SYMPTOM, (), called(text, names) or one.noun, main, asked=text)
    for known, asks in _KNOWN_TO_ALL.items():
        if asks.search(text):
            return Topic(known, Asked.DETAIL, ())
    if well := _HOW_IS.fullmatch(text):
        noun = (well[1] or well[2]).lower()
        return Topic(
            noun, Asked.DETAIL, (), noun, lexicon.named(f"{noun} loss, trouble with {noun}").closed & deniable()
        )
    aspects = [aspect.name for aspect in cues.ASPECTS if aspect.asked.search(text)]
    which = _WHICH.match(text)
    if answers and not which:
        return None
    unsaid = which[1].lower() if which else name
    return Topic(aspects[0] if aspects and not answers else unsaid, Asked.DETAIL, ())
