"""Answer questions about a chart whose author says which questions each fact answers.

A question is split into the things it asks, each worded in full: "better or worse with use?" after "are they stiff?"
asks about the stiffness. Each is compared with the author's questions (`vectors`), and gets the facts whose questions
are most like it. What no fact answers is denied, or not known, or not understood; nothing is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import or_

import numpy as np

from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.asking import DID_IT_HELP, LISTED, MAIN_TYPES, every_clause, without_asides
from agentclinic.cases.matcher.cues import Asked
from agentclinic.cases.matcher.talk import ASKED_BESIDE, small_talk
from agentclinic.cases.matcher.topics import (
    WELL,
    Topic,
    called,
    deniable,
    finding_names,
    is_primary,
    label,
    opening,
    span,
    strange_words,
)
from agentclinic.cases.matcher.vectors import Floats, Index, features, index_of, knows, vector
from agentclinic.cases.model import Fact, Facts, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.text import content_words

SURE = 0.7
"""From this likeness on, a fact answers a question, and so do others nearly as like."""
NEAR = 0.5
"""From this likeness on, the fact most like a question is told if there is no surer one."""
NEAR_OPEN = 0.46
"""The same where "no" is no answer."""
AS_LIKE = 0.93
"""The part of the best likeness from which on another fact is told as well."""
SAME_NAME = 0.3
"""From this likeness on, a fact is told that names and affirms what would be denied."""
MOST_ALIKE = 3
"""Facts told of one thing asked."""
MOST_TOLD = 6
"""Facts told at once, unless more things are asked."""
MOST_ASKED = 40
"""Things in a question that are looked up; our longest labeled question lists 9."""


@dataclass(frozen=True)
class Ask:
    """One thing that a question asks."""

    text: str
    wordings: tuple[str, ...]
    """What it asks in full, in several ways."""
    clause: str
    """The question that it is in."""
    open: bool
    """Whether yes or no would be no answer."""
    of_kin: bool
    only: bool
    """Whether its clause asks for nothing else."""
    means: str = ""
    """The same with what "it" means."""


_ANTONYMS = re.compile(
    r"\b(better|worse|more|less|constant|sharp|dull|hot|cold|sudden(?:ly)?|gradual(?:ly)?|left|right|one|wet|dry|steady"
    r"|same|lighter|heavier|normal|regular|up|down|old|both|before|during|wax|come|comes|hot|slow|fast|mild|severe)"
    r",? (?:or|and) (?=(?:is it |are they )?(?:better|worse|more|less|intermittent|sharp|dull|hot|cold|sudden"
    r"|gradual|left|right|both|wet|productive|dry|in waves|lighter|heavier|irregular|down|up|new|after|wane|go|goes"
    r"|quick|slow|fast|severe|different|comes and goes|on and off)(?:ly)?\b)",
    re.IGNORECASE,
)
"""Two ends of one thing: "better or worse"."""
_OR_IS_IT = re.compile(
    r"((?:^|[.?!;] )(?:and |so )?(?:is|does|do|did|are|was|were|has|have) (?:it|they|this|that|the)\b[^.?!;]*?)"
    r",? or (?:is|does|do|did|are|was|were|has|have) (?:it|they|this|that)\b",
    re.IGNORECASE,
)
"""Begins the other of two answers to one question: "does it stay there, or does it travel?"."""
_AMONG = re.compile(
    r", (?:like|such as|including|especially|for example|say) [^,?]{1,40}, (?=ha(?:ve|s|d)\b|who\b|with\b|that\b)",
    re.IGNORECASE,
)
"""Examples in the middle of a question: "does anyone, like your mother, have diabetes?"."""
_TELL = re.compile(
    r"^(?:(?:and|so|now|please|can|could|would|will|you|i'd|i|like|want|to|just|first)[ ,]+)*"
    r"(?:tell me|describe|talk me through|walk me through|hear|explain)\b(?: (?:a (?:bit|little)|some) )?"
    r"(?:\s*(?:more|about|exactly|to me))*\s*",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"^.*\b(?:have|had|has|having|get|got|getting|been|any|noticed|notice|with|of|take|taken|taking|use|used|feel"
    r"|felt|feeling|like|about|from|for|tried|seen|see|or|do|does|did|be|are|is|was|were|your|his|her|the|an?|to|by"
    r"|if|when|in|on)\b\s*",
    re.IGNORECASE,
)
_ONLY_WHEN = re.compile(
    r"(?:and |or |so |but )*(?:for |since )?(?:how (?:much|many|long|often|bad|big|high|far|severe|hard)|when|where|why"
    r"|which(?: one)?|who)(?: (?:was|is|are|did|does|do|has|have|were)(?: (?:it|that|this|they|those|you))?)?"
    r"(?: (?:exactly|going on|happen|start|begin|last))?\W*",
    re.IGNORECASE,
)
_IT = re.compile(r"\b(?:it|that|this|they|them|these|those|one)\b", re.IGNORECASE)
_SHORT = re.compile(r"\b[a-z]+['’](?:ve|re|ll|d|s|m|t)\b", re.IGNORECASE)
_LEAD_WORD = re.compile(r"^(?:and|or|but|so|also|then|well|now|please|plus)\b[ ,]*", re.IGNORECASE)
_BEGINS_QUESTION = re.compile(
    r"^(?:and |or )?(?:when|where|how|what|which|who|why|is|are|was|were|do|does|did|have|has|had|can|could|would|will"
    r"|any)\b",
    re.IGNORECASE,
)
_YOU_TOO = re.compile(r"\b(?:you (?:or|and|had|have)|or you|have you|yourself|do you)\b(?! know)", re.IGNORECASE)
_CONDITIONAL = re.compile(
    r"\b(?:worse|better|brings?|sets?|triggers?|eases?|helps?|relieves?|changes?|affects?)\b", re.IGNORECASE
)


@lru_cache(maxsize=8192)
def asks(question: str, complaint: str = "") -> tuple[Ask, ...]:
    """The things that a question asks, with what "it" means: what was named before, or the main complaint."""
    found: list[Ask] = []
    meant, before = complaint, ""
    texts = every_clause(_AMONG.sub(" ", _OR_IS_IT.sub(r"\1 ", question))) or [question]
    for text in texts[:MOST_ASKED]:
        told = _TELL.match(text)
        if told and told.end() and ":" in text:  # "tell me about the pain: where is it"
            begins, _, rest = text.partition(":")
            meant = _noun(begins[told.end() :]) or meant
            text = rest.strip() if _BEGINS_QUESTION.match(rest.strip()) else text
        if DID_IT_HELP.fullmatch(text) and found:
            found.append(_helped(text, found[-1]))
            continue
        found += _of_clause(text, meant, before)
        meant = _first_named(text) or (_noun(text[told.end() :]) if told and told.end() else "") or meant
        before = text
    asking = [one for one in found if not _only_leads(one)]
    return tuple((asking or found)[:MOST_ASKED])


def _only_leads(one: Ask) -> bool:
    """Whether a thing asked only says what the others are about: "tell me about the pain"."""
    told = _TELL.match(one.text)
    return bool(told and told.end() and not _BEGINS_QUESTION.match(one.text[told.end() :]))


_ARTICLE = re.compile(r"^(?:the|your|this|that|these|those|his|her|any|an?)\s+", re.IGNORECASE)
_LONGEST_NOUN = 5
"""Words of what a doctor wants to hear about: "your right knee pain"."""


def _noun(text: str) -> str:
    return _ARTICLE.sub("", text.strip(" ,.:?")) if len(text.split()) <= _LONGEST_NOUN else ""


def _helped(text: str, last: Ask) -> Ask:
    thing = last.text
    wordings = ("did the medicine you took help", "did what you tried help", f"{thing} did it help")
    return Ask(text, wordings, text, open=False, of_kin=False, only=True)


def _first_named(text: str) -> str:
    """The first complaint that a clause names, which "it" means in the next."""
    hits = [hit for hit in lexicon.found(text) if hit.concept.type == "symptom"]
    if hits:
        return " ".join(lexicon.tokens(text)[hits[0].start : hits[0].end])
    thing = _OF_WHAT.match(text)
    return thing[1] if thing else ""


_OF_WHAT = re.compile(
    r"(?:and |so )?(?:when|how|what)(?: \w+)? (?:was|were|is|are) (?:your|his|her) (?:last |usual )?([a-z]{4,12})$",
    re.IGNORECASE,
)
"""A question about one thing, which "it" means in the next: "when was your last period"."""


def _of_clause(text: str, meant: str, before: str) -> list[Ask]:
    text = _PREAMBLE.sub("", text)
    plain = _ANTONYMS.sub(r"\1 ", without_asides(text)).strip()
    plain, examples = _without_examples(plain)
    opens = bool(cues.OPEN.search(text))
    of_kin = bool(cues.ASKS_OF_KIN.search(plain)) and not _YOU_TOO.search(plain)
    items = [item for raw in LISTED.split(plain) if (item := _LEAD_WORD.sub("", raw.strip(" .?,"))) and content(item)]
    if len(items) < 2:
        wordings = _in_full(plain, meant, before)
        if plain != text:
            wordings = (*wordings, text)
        means = _with_meant(plain, meant) if not examples and plain == text else ""
        return [Ask(plain, wordings, text, opens, of_kin, only=True, means=means)] if content(plain) else []
    first = items[0]
    begins = _HEAD.match(first)
    head = begins[0].strip() if begins else ""
    tail = _TAIL.search(items[-1])
    asked: list[Ask] = []
    for place, item in enumerate(items):
        own = bool(_BEGINS_QUESTION.match(item))
        item_open = bool(cues.OPEN.search(item)) if own else opens and not cues.YES_OR_NO.match(item)
        wordings = _listed(item, first, head, of_kin=of_kin) if place else ()
        if not place or own:
            wordings = _in_full(item, meant, first if place else before)
        if tail and place < len(items) - 1 and not _TAIL.search(item) and not own_question(items[place + 1 :]):
            wordings = (f"{item} {tail[0]}", *wordings)
        if place and not own and (bare := _without_time(item)):
            wordings = (*wordings, bare)
        if examples and place == len(items) - 1:
            wordings = (*wordings, f"{item} {examples}")
        kin_here = of_kin if not own or not place else bool(cues.ASKS_OF_KIN.search(item))
        means = _with_meant(item, meant) if own or not place else ""
        means = means if len(wordings) == 1 else ""
        asked.append(Ask(item, tuple(dict.fromkeys(wordings)), text, item_open, kin_here, only=False, means=means))
    return asked


def own_question(items: Sequence[str]) -> bool:
    return any(_BEGINS_QUESTION.match(item) for item in items)


def _listed(item: str, first: str, head: str, *, of_kin: bool) -> tuple[str, ...]:
    """What a later item of a list asks, with what it shares with the first."""
    if of_kin:
        return (f"{head} {item}", f"any {item} in the family")
    if _CONDITIONAL.search(first):
        # Not the item alone: "worse when you move or cough" does not ask for a cough.
        return (f"{first} {item}", f"{head} {item}")
    if not lexicon.named(item).names & lexicon.of_types(*MAIN_TYPES):
        return (f"{first} {item}", item, f"{head} {item}")
    return (item, f"{head} {item}")


def _without_time(item: str) -> str:
    """The finding of a list's item without when it happens: "coughing when your period is on"."""
    when = _WHEN_TAIL.search(item)
    bare = item[: when.start()].strip() if when else ""
    return bare if lexicon.named(bare).names & deniable() & ~lexicon.roots() & ~lexicon.bit("pain") else ""


def _without_examples(text: str) -> tuple[str, str]:
    """A clause without the examples of what it asks for, and the examples."""
    found = _EXAMPLE.search(text)
    if found and found.start() > 3 and content(text[: found.start()]):
        return text[: found.start()].strip(" ,"), text[found.end() :].strip(" ,")
    return text, ""


_EXAMPLE = re.compile(
    r",? (?:such as|including|e\.g\.?|(?<!feel )(?<!feels )(?<!look )(?<!looks )(?<!sound )(?<!would )(?<!you )"
    r"(?<!it )(?<!they )(?<!is )(?<!that )like|, say,?|, for (?:example|instance),?) "
    r"(?!this\b|that\b|it\b|these\b|before)"
    r"|, (?=[^,]* for (?:example|instance)\W*$)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\b(?:since|in|on|around|during|when|near|at|over|before|after|while|with|down|lately|recently) [a-z' ]+$",
    re.IGNORECASE,
)
"""Says of the last item of a list, and so of all, where or when."""
_WHEN_TAIL = re.compile(r"\b(?:since|during|when|before|after|while) [a-z' ]+$", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"^(?:(?:so|now|and|okay|ok|right),? )?(?:tell me,|just to be clear,|may i ask,|can i ask,|out of interest,"
    r"|i ask every(?:body|one) this:"
    r"|(?:this|it|that|i)(?:'s|'m| is| may| might| must| know| can)[^,?:]*[,:] (?:but )?)\s*"
    r"(?=(?:if|is|are|was|were|do|does|did|have|has|had|can|could|when|where|how|what|which|who|why|any)\b)",
    re.IGNORECASE,
)


def _in_full(text: str, meant: str, before: str) -> tuple[str, ...]:
    """What a text asks, with the question before if it says nothing by itself."""
    if _ONLY_WHEN.fullmatch(text) and before:
        return tuple(dict.fromkeys((f"{before} {text}", f"{text} {meant}", text)))
    return (text,)


def _with_meant(text: str, meant: str) -> str:
    """A text with what "it" means there; empty if it names a complaint or needs no more."""
    if not meant or _ONLY_WHEN.fullmatch(text) or lexicon.named(text).names & lexicon.of_types("symptom"):
        return ""
    return _IT.sub(meant, text, count=1) if _IT.search(text) else ""


def content(text: str) -> bool:
    return bool(re.search(r"[a-z0-9]{2}", text, re.IGNORECASE)) and bool(vector(text).any())


@lru_cache(maxsize=512)
def _complaint(facts: Facts) -> str:
    """What "it" means if nothing was named before: a pain, if that is the main complaint."""
    main = [fact for fact in facts if is_primary(fact)]
    closed = reduce(or_, (lexicon.named(fact.text).closed for fact in main), 0)
    return "pain" if closed & lexicon.bit("pain") else ""


@lru_cache(maxsize=32768)
def _named_in(fact: Fact) -> int:
    """What a fact names, with what that is a kind of."""
    return lexicon.named(f"{fact.text} {fact.says}").closed


FEW = 3
"""Words and pairs of them below which a question says too little without what "it" means: "where is it?"."""
OF_KIN, OF_PATIENT = 0.49, 0.75
"""How much likeness counts of a fact about the family if the patient is asked about, and the reverse."""


def _likeness(one: Ask, index: Index, facts: Facts) -> Floats:
    plain = found = index.likeness(vector(one.wordings[0]))
    for text in one.wordings[1:]:
        found = np.maximum(found, 0.97 * index.likeness(vector(text)))
    if one.means:  # beside what "it" means, the rest of the question still counts
        full = index.likeness(vector(one.means))
        short = len(features(one.text)) < FEW
        found = full if short else np.maximum(0.97 * plain, 0.6 * plain + 0.4 * full)
    kin = np.array([fact.section is Section.FAMILY for fact in facts])
    if not (_YOU_TOO.search(one.clause) and cues.ASKS_OF_KIN.search(one.clause)):
        found = np.where(kin == one.of_kin, found, (OF_PATIENT if one.of_kin else OF_KIN) * found)
    if one.open:
        denied = np.array([fact.denied for fact in facts])
        if (told := _TELL.match(one.text)) and told.end():
            found = np.where(denied, 0.7 * found, found)
    return found


_WHOLE = {Section.DRUGS: "medication", Section.PAST: "medical condition"}
"""Sections that a question can ask for as a whole: "what medicines do you take?"."""
WHOLE = 0.45
"""From this likeness on, a fact of such a section is told."""
MOST_OF_SECTION = 5
_NARROWED = re.compile(
    r"\b(?:new|chang\w+|start\w*|stopp?\w*|for (?:it|this|the|that|your)|miss\w*|often|dose|how)\b", re.IGNORECASE
)


_FAMILY = re.compile(
    r"\babout (?:your|his|her|the) family\b|\bfamily (?:medical |health )?history\b"
    r"|\b(?:illness|disease|problem|condition)\w* (?:that )?(?:runs? )?in (?:your|his|her|the) family\b",
    re.IGNORECASE,
)
"""Asks for the history of the whole family."""


def _of_section(one: Ask, likely: Floats, facts: Facts) -> list[int]:
    named = lexicon.named(one.text).names
    if _FAMILY.search(one.text) and not named & lexicon.of_types("disease", "symptom") & ~lexicon.roots():
        rows = [row for row, fact in enumerate(facts) if fact.section is Section.FAMILY]
        return sorted(rows, key=lambda row: (facts[row].denied, -likely[row]))[:MOST_OF_SECTION]
    if one.of_kin or _NARROWED.search(one.text):
        return []
    for section, name in _WHOLE.items():
        if named & lexicon.bit(name) and not named & lexicon.of_types("drug", "disease") & ~lexicon.bit(name):
            rows = [
                row
                for row, fact in enumerate(facts)
                if fact.section is section and not fact.denied and likely[row] >= WHOLE
            ]
            best = int(likely.argmax())
            if best not in rows and likely[best] >= SURE:  # "no regular medicines before the operation"
                rows.append(best)
            return sorted(rows, key=lambda row: -likely[row])[:MOST_OF_SECTION]
    return []


@dataclass(frozen=True)
class _Found:
    """What a chart says about one thing asked, the likest first."""

    ask: Ask
    rows: tuple[int, ...]
    scores: tuple[float, ...]
    best: float
    """The likeness of the fact most like it, told or not."""
    whole: bool = False
    """Whether it asks for a section of the background."""


OTHER_THING = 0.12
"""What is taken off for a fact that does not name the thing that is asked about."""
_CANDIDATES = 4


def _agreeing(one: Ask, likely: Floats, facts: Facts) -> Floats:
    asked = lexicon.named(one.text)
    main = asked.names & deniable() & ~lexicon.roots()
    if not main:
        return likely
    likely = likely.copy()
    wide = asked.closed & deniable() & ~lexicon.roots() & ~lexicon.bit("pain") | main
    enough = max(NEAR, float(likely.max()) - OTHER_THING)
    near = np.flatnonzero((likely >= enough) & (likely < SAME))
    for row in near[np.argsort(-likely[near], kind="stable")][:_CANDIDATES]:
        if not _names_of(facts[row]) & wide:
            likely[row] -= OTHER_THING
    return likely


SAME = 0.85
"""From this likeness on, a fact answers a question whatever it names."""


@lru_cache(maxsize=32768)
def _names_of(fact: Fact) -> int:
    """What a fact and its author's questions name, with what that is a kind of."""
    return lexicon.named(". ".join((fact.text, fact.says or "", *fact.asked[:2]))).closed


def _find(one: Ask, index: Index, facts: Facts) -> _Found:
    likely = _agreeing(one, _likeness(one, index, facts), facts)
    best = float(likely.max(initial=0.0))
    rows = _of_section(one, likely, facts) if best >= NEAR or _FAMILY.search(one.text) else []
    whole = bool(rows)
    if not rows and best >= SURE:
        close = np.flatnonzero(likely >= max(SURE, AS_LIKE * best))
        rows = [int(row) for row in close[np.argsort(-likely[close], kind="stable")][:MOST_ALIKE]]
    elif not rows and best >= (NEAR_OPEN if one.open else NEAR):
        rows = [int(likely.argmax())]
    if not rows and not one.open:
        rows = _same_name(one, likely, facts)
    return _Found(one, tuple(rows), tuple(float(likely[row]) for row in rows), best, whole)


def _same_name(one: Ask, likely: Floats, facts: Facts) -> list[int]:
    """The fact most like a question that names and affirms what would be denied."""
    named = lexicon.named(one.text)
    asked = named.names & deniable() & ~lexicon.roots() & ~lexicon.bit("pain")
    places = named.closed & lexicon.of_types("place")
    if not asked:
        return []
    alike = [
        (float(likely[row]), -int(row))
        for row in np.flatnonzero(likely >= SAME_NAME)  # few: what they name is read for these only
        if not facts[row].denied
        and (facts[row].section is Section.FAMILY) == one.of_kin
        and (names := _named_in(facts[row])) & asked
        and not (places and names & lexicon.of_types("place") and not places & names)
    ]
    return [-max(alike)[1]] if alike else []


def answer(question: str, facts: Facts) -> list[Topic] | None:
    """What a chart says about a question; None if its author gives no questions."""
    index = index_of(facts)
    if index is None:
        return None
    said = small_talk(question)
    talk = [Topic(kind, Asked.TALK, ()) for kind in said.kinds]
    if talk and not content_words(said.rest):
        return talk
    feelings = [topic for topic in talk if topic.name in ASKED_BESIDE]
    found = [_find(one, index, facts) for one in asks(_asking(said.rest or question), _complaint(facts))]
    found = _trimmed(_by_whole(found, index, facts))
    topics: list[Topic] = []
    answers = any(one.rows for one in found)
    for one in found:
        covered = any(other.rows for other in found if other.ask.clause == one.ask.clause)
        if covered and not one.rows and _narrows(one.ask):
            continue
        topic = _topic(one, facts, answers=answers)
        if topic is not None and topic not in topics:
            topics.append(topic)
    topics.sort(key=lambda topic: topic.kind is Asked.REST)
    return [*topics, *feelings] or [Topic(question.strip(), Asked.UNCLEAR, ())]


def _narrows(one: Ask) -> bool:
    """Whether a part of a list names nothing by itself: "in the neck, the shoulder or the arm"."""
    return not _BEGINS_QUESTION.match(one.text) and not lexicon.named(one.text).names & deniable()


_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_TELLS = re.compile(
    r"(?:you|your|i|it|that|this|we|let|don't|do not|poor|good|thank|thanks|take your time|please|sorry|no need|well"
    r"|hi|hello|don|there)\b",
    re.IGNORECASE,
)


def _asking(question: str) -> str:
    """A question without sentences beside it that only tell the patient something."""
    sentences = _SENTENCE.split(question)
    asking = [one for one in sentences if one.endswith("?") or _TELL.sub("", one) != one or _may_ask(one)]
    return " ".join(asking) if any(one.endswith("?") for one in asking) else question


DIRECT = 0.8
"""From this likeness on, a question asks for a fact by name: what is only told if pressed is told then."""


@lru_cache(maxsize=4096)
def asked_directly(question: str, facts: Facts) -> frozenset[str]:
    """The paths of the facts that a part of a question asks for in nearly the words of the author's questions."""
    index = index_of(facts)
    if index is None:
        return frozenset()
    parts = asks(_asking(small_talk(question).rest or question), _complaint(facts))
    alike = [index.likeness(vector(text)) for one in parts for text in one.wordings]
    return frozenset(facts[row].path for like in alike for row in np.flatnonzero(like >= DIRECT))


def _may_ask(sentence: str) -> bool:
    """Whether a sentence without a question mark names something that can be asked for: "And the fever."."""
    return not _TELLS.match(sentence) and bool(lexicon.named(sentence).names & deniable())


def _by_whole(found: Sequence[_Found], index: Index, facts: Facts) -> list[_Found]:
    """With a clause taken as one question where its parts are less like anything than the whole."""
    kept: list[_Found] = []
    for clause in dict.fromkeys(one.ask.clause for one in found):
        parts = [one for one in found if one.ask.clause == clause]
        if len(parts) > 1:
            first = parts[0].ask
            whole = _find(replace(first, text=clause, wordings=(clause,)), index, facts)
            unsure = [one for one in parts if not one.rows or one.best < SURE]
            if whole.best >= SURE and whole.rows and unsure and whole.best > max(one.best for one in unsure):
                told = {row for one in parts if one.rows and one.best >= SURE for row in one.rows}
                sure = [one for one in parts if one not in unsure]
                if not (set(whole.rows) & told):
                    sure = [whole, *sure]
                silent = [one for one in unsure if _stands_alone(one)]
                parts = [*sure, *silent]
        kept += parts
    return kept


def _stands_alone(one: _Found) -> bool:
    """Whether a part of a list names something that must not be passed over."""
    return bool(not one.rows and lexicon.named(one.ask.text).names & deniable() & ~lexicon.roots())


def _trimmed(found: Sequence[_Found]) -> list[_Found]:
    """Each thing's best answer, and of the others the likest as long as there is room."""
    answered = [one for one in found if one.rows]
    spare = sorted((score for one in answered for score in one.scores[1:]), reverse=True)
    room = max(0, MOST_TOLD - len(answered))
    bound = spare[room - 1] if room and len(spare) >= room else (0.0 if room else 2.0)
    kept = [[at for at in range(len(one.rows)) if not at or one.scores[at] >= bound] for one in found]
    return [
        replace(one, rows=tuple(one.rows[at] for at in places), scores=tuple(one.scores[at] for at in places))
        for one, places in zip(found, kept, strict=True)
    ]


def _topic(one: _Found, facts: Facts, *, answers: bool) -> Topic | None:
    ask = one.ask
    if ask.only and one.best < 0.9:
        if cues.MORE.search(ask.text):
            return Topic("more", Asked.MORE, tuple(facts[row] for row in one.rows) if finding_names(ask.text) else ())
        if cues.OPENING.search(ask.text):
            return Topic("opening", Asked.OPENING, opening(facts))
        if cues.ANYTHING_ELSE.search(ask.text) and not finding_names(ask.text):
            return Topic("other symptoms", Asked.MORE, tuple(facts[row] for row in one.rows))
    names = finding_names(ask.text)
    name = names[0] if names else label(ask.text)
    if one.rows:
        told = tuple(facts[row] for row in one.rows)
        if one.whole and told[0].section is Section.FAMILY:
            return Topic("family history", Asked.FAMILY, told)
        close = {
            facts[row].path for row, score in zip(one.rows, one.scores, strict=True) if score >= 0.8 * one.scores[0]
        }
        return Topic(name, Asked.SYMPTOM, told, direct=frozenset(close))
    if (told_of := _TELL.match(ask.text)) and told_of.end():
        return Topic("opening", Asked.OPENING, opening(facts))
    if cues.EXAMINED.search(ask.text):
        return Topic("examination or result", Asked.RESULT, ())
    named = lexicon.named(ask.text)
    main = named.names & lexicon.of_types(*MAIN_TYPES)
    strange = [word for word in strange_words(_SHORT.sub(" ", ask.text)) if not knows(word)]
    if len(strange) > 1 or (strange and not main):
        return Topic(name, Asked.UNCLEAR, (), span(ask.text, strange))
    if ask.of_kin:
        return Topic("family history", Asked.FAMILY, (), ask.text)
    if not ask.open and not WELL.search(ask.text):
        for section in cues.BACKGROUND:
            if section.section is not Section.FAMILY and section.asked.search(ask.text):
                return Topic(section.section.value.replace("_", " "), section.kind, (), ask.text)
        if main & deniable():
            return Topic(name, Asked.SYMPTOM, (), called(ask.text, names), main)
    if answers:
        return Topic("rest", Asked.REST, ())
    aspects = [aspect.name for aspect in cues.ASPECTS if aspect.asked.search(ask.text)]
    return Topic(aspects[0] if aspects else name, Asked.DETAIL, ())
