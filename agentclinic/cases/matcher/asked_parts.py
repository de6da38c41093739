"""The things that a question asks, in its context.

The network (`reader`) marks what a question asks. Left out here are greetings, what only tells something, and what the
doctor repeats; what stands apart is put together again, and what a list shares is given to each of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest

from agentclinic import lazy
from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.reader import Asks, read
from agentclinic.cases.matcher.talk import ASKS, is_talk, small_talk
from agentclinic.vocabulary import lexicon

MOST_ASKED = 40
"""Things in a question that are looked up; our longest labeled question lists 9."""
OPENS = lazy.regex(
    r"\bhow (?:can|may) (?:i|we) (?:best )?help\b|\bwhat (?:can|may) (?:i|we) do for you\b"
    r"|\bwhat(?:['’]s| has| is)? (?:it that )?(?:brings?|brought) you (?:in|here|to|along)\b"
    r"|\bwhat would you like to (?:talk about|discuss)\b|\bwhat seems to be\b"
    r"|\btell me what(?:['’]s| has| is)? (?:happened|been (?:going on|happening|worrying|troubling|bothering)|going on"
    r"|worries|troubles|brings|brought)\b",
    re.IGNORECASE,
)
"""Asks for the story, whatever else is asked."""
_HAS_ANY = (
    r"(?:(?:have|has|did|do|does) (?:you|he|she|they)(?: ever| also)?(?: had| noticed| felt| feel| have| get| got)?"
    r"|(?:is|was|are|were) there|noticed|had)"
)
_OF_A_PLACE = lazy.regex(
    rf"(?:{_HAS_ANY} )?(?:any |an? |is it |are they |or |and )*(?:pain|pains|painful|ache|aches|sore|soreness|red"
    r"|redness|swelling|swollen|itch|itching|itchy|numb|numbness|weak|weakness|stiff|stiffness|tender|tenderness|hot|warm"
    r"|lumps?|discharge|bleeding|blood|tingling|burning|tightness|pressure|cuts?|sores?|spots|rash(?:es)?|cramps?)",
    re.IGNORECASE,
)
"""A complaint that may be anywhere."""
_AT_A_PLACE = lazy.regex(
    r"(?:(?!noticed|seen|had|felt|got)\w+ ){0,2}?(?:pain|pains|ache|aches|aching|soreness|redness|swelling|swollen"
    r"|itching|itch|numbness|weakness|stiffness|tenderness|lumps?|discharge|bleeding|blood|tingling|burning|sores?"
    r"|ulcers?|rash|spots|cramps?|changes?|leaking|tightness|pressure|infections?)"
    r" ((?:in|on|of|from|around|at|over|behind|near|down|under|inside|between) .*)",
    re.IGNORECASE,
)
"""A complaint with its place."""
_STARTS_ANEW = lazy.regex(rf"{_HAS_ANY}\b", re.IGNORECASE)
"""Begins a list of complaints with a verb of its own."""
_ITS_PLACE = lazy.regex(
    r"(.*\b(?:in|on|of|from|around|at|over|with|to|affecting) )(?:your|his|her|the) \w+", re.IGNORECASE
)
_ANYWHERE = lazy.regex(r"(.*\b)(?:anywhere|elsewhere|somewhere)(?: else)?", re.IGNORECASE)
"""Both end with a place that another one may replace."""
_PLACE_ALONE = lazy.regex(r"(?:(?:such as|like|including|your|his|her|the|in|on|or) )*(\w+(?: or \w+)?)", re.IGNORECASE)
_JOINED = lazy.regex(r"[\s,/]*(?:(?:and|or) )?", re.IGNORECASE)
_OTHERS_ARE = (
    r"(?:else|around|at|in|of|on|with|you|your|he|she|they|his|her|home|work|school|family|house|household|daycare"
    r"|nursery|close|know|or|a|the|partner|pets?|animals?|friends?|colleagues?|children|kids|similar)"
)
_ANYONE = lazy.regex(
    rf"(?:is|has|have|does|did|was|are) (?:there )?(?:any|some)(?:one|body)(?: {_OTHERS_ARE})*", re.IGNORECASE
)
"""The beginning of a question about others, without what is asked of them."""
_OTHERS = lazy.regex(rf"{_OTHERS_ARE}(?: {_OTHERS_ARE})*", re.IGNORECASE)
"""More people or places of such a question: "or at work"."""
_RESTS = lazy.regex(
    r"(?:makes?|changes?|affects?|brings?|sets?|triggers?|helps?|eases?|worsens?) (?:it|that|this|them|things|the \w+)"
    r"(?: (?:on|off|up|any|at all|better|worse|or|and|ease|come on|go away))*"
    r"|how (?:is|are|was|has) (?:it|that|this|they)(?: been)?",
    re.IGNORECASE,
)
"""The end of a question whose beginning asks already: "does heat, or exercise, make it worse?"."""
_ADJECTIVES = (
    r"(?:painful|sore|red|swollen|itchy|numb|weak|stiff|tender|hot|warm|cold|dry|watery|puffy|blurred|blurry|better|worse"
    r"|dark|pale|black|bloody|heavy|irregular)"
)
_ADJECTIVE = lazy.regex(_ADJECTIVES, re.IGNORECASE)
_ENDS_WITH_ADJECTIVE = lazy.regex(rf"(.* ){_ADJECTIVES}", re.IGNORECASE)
_YOU_TOO = lazy.regex(r"\b(?:you (?:or|and|had|have)|or you|have you|yourself|do you)\b(?! know)", re.IGNORECASE)
_SENTENCE_END = lazy.regex(r"[.?!]|\s[-–—]\s|—")
_CLAUSE_END = lazy.regex(r"[.?!:]|\s[-–—]\s|—")
_STATEMENT = lazy.regex(
    r"(?:(?:ok(?:ay)?|all ?right|right|so|and|but|well|oh|ah|now|great|good|thanks?|thank you|hi|hello|sorry"
    r"|i see)[,. ]+)*"
    r"(?:(?:i|you|he|she|it|we|they|that|there|let)(?:['’](?:m|s|ve|ll|d|re))?|this|these|those|your|the|my|no"
    r"|congratulations|take|don['’]t|please|sounds|must|glad|\w+ (?:days|weeks|months|years))\b",
    re.IGNORECASE,
)
"""A sentence of a doctor that tells something, if it is no question."""
_ASKS = lazy.regex(
    r"(?:(?:and|or|so|but|ok(?:ay)?|well|now|also|then|please|right|first|sorry|thanks|thank you|good)[,. ]+)*"
    r"(?:tell|describe|show|talk|walk|take me|explain|give|list|point|any|what|how|when|where|which|who|why|do|does|did"
    r"|is|are|was|were|have|has|had|can|could|will|would|should)\b",
    re.IGNORECASE,
)
"""How what is asked begins; beside a question, other sentences only tell something."""
_IN_GENERAL = lazy.regex(
    r"(?:when|what|how|where)"
    r"(?! (?:do|did|does|is|are|was|were|have|has|had|can|could|would|will|about|long|often|bad)\b)"
    r".* (?:they|it|that|we|people|some|many)\b",
    re.IGNORECASE,
)
"""Tells something although it begins like a question: "when people feel low, they sometimes ..."."""
_YOU_SAID = lazy.regex(
    r"(?:^|[.?!;]\s)\s*(?:(?:so|and|but|well|now|ok(?:ay)?|right|thank you|thanks|i see)[,. ]+)*"
    r"(?:(?:when |since |as )?you (?:just )?(?:say|said|mention(?:ed)?|told me|were saying)"
    r"|(?:going|coming|if we go) back to)\b"
    r"[^,.?!;:–—]*(?:[,:;–—]| - )",
    re.IGNORECASE,
)
"""What a doctor repeats before asking: "you said it wakes you, is it ..."."""
_SAYS = lazy.regex(
    r"(?:(?:and|so|well|okay|right)[, ]+)*"
    r"(?:(?:i|you|he|she|it|we|they)\b|(?:this|that|there)(?:['’]s| is| are| was)\b)",
    re.IGNORECASE,
)
"""A statement before a dash, where "and the cough - how long?" asks."""
_ASKS_AFTER = (
    r"(?:(?:do|does|did|is|are|was|were|has|have|had|can|could)\b|what happens|(?:what|where|how(?: \w+)?)"
    r" (?:do|does|did|is|are|was|were|has|have|had|can|could)\b)"
)
_CONDITION_FIRST = lazy.regex(
    r"(?P<before>^|[.?!:;]\s+|\b(?:and|but|so|or|sure|check|clear),?\s)"
    r"(?P<condition>(?:when|if|while|whenever|once|after|as soon as)"
    r" (?:you|he|she|they|it|that|this|your|his|her|the) (?!say\b|said\b|mention)[^,.?!;:]{3,80}), (?:then )?"
    rf"(?P<asks>{_ASKS_AFTER} [^,.?!;:]{{3,80}}?)(?P<end>,? (?:(?:and|or) )?{_ASKS_AFTER}|, either\b|[.?!;:])",
    re.IGNORECASE,
)
"""A condition before what is asked under it."""
_ORGAN = lazy.regex(
    r"\b(?:lung|heart|liver|kidney|thyroid|bowel|skin|muscle|nerve|brain|eye|blood|bone|joint|stomach|prostate|bladder"
    r"|parathyroid|breast|colon|gut|gland|chest|sinus|ear|back)\b",
    re.IGNORECASE,
)
_SHARE_A_NOUN = lazy.regex(
    rf"(?P<organs>(?:{_ORGAN.pattern}(?:, (?:or |and )?| or | and |/))+{_ORGAN.pattern}) "
    r"(?P<noun>disease|trouble|problems?|conditions?|complaints?|cancers?|infections?|tumou?rs?|operations?|surgery)\b",
    re.IGNORECASE,
)
_BLOOD_IN = lazy.regex(
    r"\b(blood in (?:your|the|his|her)) (stools?|urine|pee|wee|water|motions|poo|poop|phlegm|vomit) or"
    r" (?:in )?(?:your |the |his |her )?(stools?|urine|pee|wee|water|motions|poo|poop|phlegm|vomit)\b",
    re.IGNORECASE,
)
_YOU_OR_ANYONE = lazy.regex(
    r"\b(do|does) (you|he|she) or (any(?:one|body)(?: (?:else|at|in|your|the|his|her|home|house|household|family))"
    r"{0,4}) (smoke or vape|smoke|vape)\b",
    re.IGNORECASE,
)
_BLACK_OUT = lazy.regex(r"\bblack(ed|ing)? out\b", re.IGNORECASE)
"""The network takes it for a color."""
_DRY = lazy.regex(
    r"\b(dry|sore|itchy|red|watery|swollen) (eyes|mouth|nose|skin|throat) or (eyes|mouth|nose|skin|throat)\b",
    re.IGNORECASE,
)
_YOU_AND_YOURS = lazy.regex(
    r"\b(how \w+ (?:have|had|do|did|are|were) you) and your (?:partner|husband|wife|boyfriend|girlfriend)\b",
    re.IGNORECASE,
)
"""The network takes them for two things asked."""
_EITHER = lazy.regex(r", either (?:at|by|from|for|in|on|to|with) [^,.?!;:]*?\bor\b[^,.?!;:]*", re.IGNORECASE)
"""The choices that a question leaves open: "do you take any pills, either from a doctor or from a shop?"."""
_WHAT_ONE_DOES = lazy.regex(
    r"(?P<clause>.*\b(?:when|while|if|whenever|after|before) (?:you|he|she|they) )"
    r"[a-z]+(?: (?:down|up|in|out|over|flat|deeply))?"
    r"|(?P<which>(?:and |or )?(?:how|when|what|where)\b[^,]* (?:do|does|did) (?:you|he|she|they) (?:last |usually )?)"
    r"[a-z]+",
    re.IGNORECASE,
)
"""Ends with what someone does; another verb may share the words before it: "worse when you lie down or cough"."""
_ONE_WORD = lazy.regex(r"(?![a-z]+(?:ing|ness|s)\b)[a-z]+", re.IGNORECASE)
_LONE = lazy.regex(r"how|what|which|when|where|who|why|tell me|you|about|has any(?:one|body)(?: ever)?", re.IGNORECASE)
"""What asks for nothing by itself."""
_TELL_MORE = lazy.regex(
    r"(?:(?:can|could|would|will) you (?:please )?)?(?:tell me|talk)(?: (?:a (?:bit|little)|more|something))*",
    re.IGNORECASE,
)
_TELL_MORE_ABOUT = lazy.regex(rf"(?:{_TELL_MORE.pattern}) about(?: (?:that|this|it))?", re.IGNORECASE)
_PRONOUN = lazy.regex(r"(?:that|this|it|them|those|these)?", re.IGNORECASE)
_MENTIONED = lazy.regex(
    r"\byou (?:just )?(?:mentioned|said|told me)(?: about| that)? ([^.?!;]{3,100})[.!]\s*$", re.IGNORECASE
)
"""What a doctor repeats and then asks about: "you mentioned a fall. Can you tell me more about that?"."""
_MENTIONED_FIRST = lazy.regex(
    r"\byou (?:just )?(?:mentioned|told me about|spoke of|said you had) (?:an?|the|your|some) "
    r"(?P<what>[^,.?!;:]{3,60}), (?P<asks>[^.!?;:]*)",
    re.IGNORECASE,
)
"""The same in one sentence: "you mentioned a fall, when was it?"."""
_WHAT_IS_IT = lazy.regex(r"\b((?:what|when|where|which|why|how) (?:was|is|did)) (?:it|that)\b", re.IGNORECASE)
_ASIDE = cues.Cue(r"\b(?:besides|apart from|aside from|other than|in addition to|as well as)\b")
_SET_ASIDE = lazy.regex(
    r"\s*(?:and |so )?(?:besides|apart from|aside from|other than|in addition to|as well as) [^,?!]*,", re.IGNORECASE
)
_HEAD = lazy.regex(
    r"(?:,|;|\band\b|\bor\b|[-–—])\s*(?:and |or |also )*"
    r"(?:do|does|did|is|are|was|were|has|have|had|any|what|who|how|can)\b",
    re.IGNORECASE,
)
"""Begins another question in a sentence."""


@lru_cache(maxsize=4096)
def as_asked(question: str) -> str:
    """A question without small talk, in the order and with the words that the network knows best.

    A condition stands behind what it is a condition of ("if you rest, does it ease?": "does it ease if you rest?"), and
    each thing in a list has the noun that they share ("lung or heart disease": "lung disease or heart disease").
    """
    text = small_talk(question).mixed or question
    text = _EITHER.sub(_unless_it_names, text)
    text = _CONDITION_FIRST.sub(_behind, text)
    text = _BLACK_OUT.sub(lambda found: f"pass{found[1] or ''} out", text)
    text = _SHARE_A_NOUN.sub(lambda found: _ORGAN.sub(rf"\g<0> {found['noun']}", found["organs"]), text)
    text = _BLOOD_IN.sub(r"\1 \2 or blood in your \3", text)
    text = _YOU_OR_ANYONE.sub(r"\1 \2 \4 or does \3 \4", text)
    text = _YOU_AND_YOURS.sub(r"\1", text)
    text = _MENTIONED_FIRST.sub(_named_again, text)
    return _DRY.sub(r"\1 \2 or \1 \3", text)


def _unless_it_names(choices: re.Match[str]) -> str:
    """The choices that a question leaves open if they name something to look up, such as a complaint; else nothing."""
    named = lexicon.named(choices[0]).names & lexicon.of_types("symptom", "disease", "procedure", "habit", "place")
    return choices[0] if named else ""


def _named_again(found: re.Match[str]) -> str:
    """What is asked about something that was mentioned, with its name instead of "it"."""
    before = found[0][: found.start("asks") - found.start()]
    return before + _WHAT_IS_IT.sub(lambda asks: f"{asks[1]} the {found['what']}", found["asks"])


def _behind(found: re.Match[str]) -> str:
    """What is asked under a condition, with the condition behind it."""
    return f"{found['before']}{found['asks'].rstrip()} {found['condition'].lower()}{found['end']}"


def parts_of(question: str) -> list[Asks]:
    """The things that a question asks, without small talk and what only asks for the story."""
    return list(_parts_of(question))


@lru_cache(maxsize=4096)
def _parts_of(question: str) -> Sequence[Asks]:
    text = as_asked(question)
    opens = OPENS.search(text)

    def only_opens(one: Asks) -> bool:
        return opens is not None and one.start <= opens.end() and opens.start() <= one.start + len(one.text)

    repeated = [said.span() for said in _YOU_SAID.finditer(text)]

    def is_repeated(one: Asks) -> bool:
        return any(start <= one.start and one.start + len(one.text) <= end for start, end in repeated)

    every = _asked_in(text)
    aside = _ASIDE.search(text) is not None
    every = [
        one
        for one, after in zip_longest(every, every[1:])
        if not (_LONE.fullmatch(one.text) or (aside and _is_set_aside(text, one)) or _leads_to(one, after, text))
    ]
    every = [_with_object(one, text) for one in every]
    asked = [one for one in every if not is_repeated(one)] or every
    parts = [one for one in asked if not is_talk(one.text) and not only_opens(one)]
    return _with_subjects(_at_their_place(_with_predicates(parts, text), text), text)


def _leads_to(one: Asks, after: Asks | None, question: str) -> bool:
    """Whether it only leads to what follows: "tell me more about ..."."""
    between = question[one.start + len(one.text) : after.start].split() if after else []
    return between == ["about"] and _TELL_MORE.fullmatch(one.text) is not None


def _with_object(one: Asks, question: str) -> Asks:
    """What it asks to be told about, if the network read only "tell me more about": what follows or was mentioned."""
    lead = _TELL_MORE_ABOUT.match(one.text)
    if lead is None or not _TELL_MORE_ABOUT.fullmatch(one.text):
        return one
    follows = re.split(r"[.,?!:;]", question[one.start + lead.end() :], maxsplit=1)[0].strip()
    if _PRONOUN.fullmatch(follows):
        follows = mentioned_before(question, one.start)
    return (_read_as_one(f"how about {follows}?", one.start) if follows else None) or one


def mentioned_before(question: str, at: int) -> str:
    """What the doctor says that the patient mentioned, in the sentence before the one that `at` is in."""
    begins = max(question.rfind(mark, 0, at) for mark in ".!?") + 1
    mentioned = _MENTIONED.search(question, 0, begins)
    return mentioned[1] if mentioned else ""


def _is_set_aside(question: str, asks: Asks) -> bool:
    """Whether something is named only as known: "besides the chest, ..."."""
    begins, sentence = sentence_of(question, asks)
    aside = _SET_ASIDE.match(sentence)
    return aside is not None and asks.start + len(asks.text) <= begins + aside.end()


def _asked_in(question: str) -> list[Asks]:
    """The things that a question asks, without those in sentences that only tell something, if it also asks."""
    parts = read(question)[:MOST_ASKED]
    asking = [one for one in parts if not _only_tells(question, one)]
    return asking or list(parts)


def _only_tells(question: str, asks: Asks) -> bool:
    after = _CLAUSE_END.search(question, asks.start)
    if not after or after[0] == "?":
        return False
    sentence = sentence_of(question, asks, _CLAUSE_END)[1].strip()
    if ASKS.search(sentence):
        return False
    if after[0] in ".!" and "?" in question:
        return not _ASKS.match(sentence) or bool(_IN_GENERAL.match(sentence))
    return bool(_STATEMENT.match(sentence)) and (after[0] in ".!" or bool(_SAYS.match(sentence)))


def sentence_of(question: str, asks: Asks, ends: re.Pattern[str] = _SENTENCE_END) -> tuple[int, str]:
    """The sentence of the question that a part is in, and where it begins."""
    end = asks.start + len(asks.text)
    begins = max((hit.end() for hit in ends.finditer(question, 0, asks.start)), default=0)
    after = ends.search(question, end)
    return begins, question[begins : after.start() if after else len(question)]


def _with_predicates(parts: Sequence[Asks], question: str) -> list[Asks]:
    """The parts, those of one clause about others put together: "is anyone at home, or a pet, feeling ill too?"."""
    whole: list[Asks] = []
    begun: list[Asks] = []
    for one in parts:
        if begun and not _follows(begun[-1], one, question):
            whole += begun
            begun = []
        if whole and _RESTS.fullmatch(one.text) and _follows(whole[-1], one, question):
            continue
        if _ANYONE.fullmatch(one.text) or (begun and _OTHERS.fullmatch(one.text)):
            begun.append(one)
        elif begun:
            clause = _read_as_one(f"{begun[0].text} {one.text}?", begun[0].start)
            whole += [clause] if clause else [*begun, one]
            begun = []
        else:
            whole.append(one)
    return whole + begun


def _follows(one: Asks, after: Asks, question: str) -> bool:
    """Whether nothing but "and", "or" or a comma stands between two things asked."""
    return _JOINED.fullmatch(question, one.start + len(one.text), after.start) is not None


def _at_their_place(parts: list[Asks], question: str) -> list[Asks]:
    """The parts, with the place that the last of a list names for all: "pain, swelling or redness in your legs"."""
    place = ""
    for at in reversed(range(len(parts))):
        one = parts[at]
        if place and _shares_place(parts, at, question):
            parts[at] = _read_as_one(f"{one.text} {place}?", one.start) or one
            continue
        named = _AT_A_PLACE.fullmatch(one.text)
        place = named[1] if named and lexicon.named(named[1]).closed & lexicon.of_types("place") else ""
    return parts


def _shares_place(parts: Sequence[Asks], at: int, question: str) -> bool:
    """Whether a part has the place of the one after it.

    Not if it stands under a verb that the place does not belong to: "coughed up any blood, or noticed swelling in ...".
    """
    one, after = parts[at], parts[at + 1]
    if not _follows(one, after, question) or not _OF_A_PLACE.fullmatch(one.text):
        return False
    if not _STARTS_ANEW.match(after.text) or _STARTS_ANEW.match(one.text):
        return True
    return not at or not _follows(parts[at - 1], one, question) or _shares_place(parts, at - 1, question)


def _with_subjects(parts: list[Asks], question: str) -> list[Asks]:
    """The parts, where an adjective alone is of what the one before it is of: "have your eyes been red or painful?"."""
    for at, one in enumerate(parts[1:], 1):
        before = parts[at - 1]
        if _follows(before, one, question):
            together = "," not in question[before.start + len(before.text) : one.start]
            parts[at] = (_done_likewise(before, one) if together else None) or _of_the_same(before, one)
    return parts


def _of_the_same(before: Asks, one: Asks) -> Asks:
    """An adjective with what the one before it is of; anything else as it is."""
    first = _ADJECTIVE.fullmatch(one.text) and _ENDS_WITH_ADJECTIVE.fullmatch(before.text)
    return (_read_as_one(f"{first[1]}{one.text}?", one.start) if first else None) or one


def _done_likewise(before: Asks, one: Asks) -> Asks | None:
    """What someone does, with the words before it that it shares: "cough" after "does it hurt when you lie down or"."""
    first = _WHAT_ONE_DOES.fullmatch(before.text)
    if first is None or not _ONE_WORD.fullmatch(one.text):
        return None
    return _read_as_one(f"{first['clause'] or first['which']}{one.text}?", one.start)


def whole_pieces(asks: Asks) -> list[Asks]:
    """The pieces of what is asked, each with the words that it shares with the first: "swelling in the belly", too."""
    if not asks.pieces:
        return []
    first, *others = asks.pieces
    at_a_place = _AT_A_PLACE.fullmatch(asks.text)
    whole = [first]
    for piece in others:
        named = lexicon.named(piece.text).closed
        if at_a_place and named and not named & ~lexicon.of_types("place"):
            complaint = asks.text[: at_a_place.start(1)]
            whole.append(_read_as_one(f"{complaint}in the {piece.text}?", piece.start) or piece)
        else:
            whole.append(_of_the_same(first, piece))
    return whole


def at_this_place(before: Asks, one: Asks, question: str) -> Asks | None:
    """A place alone with what was asked of the place before it: "changes in your skin or your eyes"."""
    named = lexicon.named(one.text).closed
    if not named or named & ~lexicon.of_types("place") or not _follows(before, one, question):
        return None
    place = _PLACE_ALONE.fullmatch(one.text)
    if place is None:
        return None
    if there := _ITS_PLACE.fullmatch(before.text):
        return _read_as_one(f"{there[1]}your {place[1]}?", one.start)
    anywhere = _ANYWHERE.fullmatch(before.text)
    return _read_as_one(f"{anywhere[1]}on your {place[1]}?", one.start) if anywhere else None


def _read_as_one(text: str, start: int) -> Asks | None:
    """What a text asks, if that is one thing."""
    found = read(text)
    return replace(found[0], start=start) if len(found) == 1 else None


def is_of_kin(question: str, asks: Asks) -> bool:
    """Whether something is asked about relatives: by its own words, those before, or the end of its list."""
    if not cues.ASKS_OF_KIN.may_be_in(question):
        return False
    begins, sentence = sentence_of(question, asks)
    cue = cues.ASKS_OF_KIN.search(sentence)
    if cue is None:
        return False
    you = _YOU_TOO.search(sentence)
    end = asks.start + len(asks.text)
    is_before = you is not None and cue.end() < you.start() and end <= begins + you.start()
    if you and not is_before and not cues.ASKS_OF_KIN.search(asks.text):
        return False
    named = begins + cue.start()
    return named < end or not _HEAD.search(question, end, named)


def with_place(asks: Asks, before: Asks | None, question: str) -> str:
    """The words of a part, with those before it if it is one more complaint of the same place: "or swollen?"."""
    if before is None or not _OF_A_PLACE.fullmatch(asks.text) or "?" in question[before.start : asks.start]:
        return asks.text
    return f"{before.text} {asks.text}"
