"""Patterns for what questions ask and statements tell: when, how bad, about whom, in general."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache, reduce
from itertools import count
from operator import or_

from agentclinic import lazy
from agentclinic.cases.model import Section


class Asked(StrEnum):
    """What kind of thing a question is about; it decides what silence in the chart means."""

    OPENING = "opening"
    MORE = "more"
    """The rest of the story: "tell me more", "anything else?"."""
    SYMPTOM = "symptom"
    DETAIL = "detail"
    """What "yes" and "no" do not answer: when, where, how bad, what it is like."""
    BACKGROUND = "background"
    FAMILY = "family"
    RESULT = "result"
    TALK = "talk"
    """No fact at all: a greeting, an explanation, feelings and wishes (`matcher.talk`)."""
    REST = "rest"
    """Another question beside one that is answered, of which nothing is known."""
    UNCLEAR = "unclear"
    """Not understood: never denied."""


_WORD = lazy.regex(r"[a-z0-9]+")
_PLACES = count()
_NEEDING: dict[str, dict[str, int]] = {}
"""The cues, as bits, that match only texts with one of several pieces of words, by piece and its first two letters."""
_ANY: list[int] = []
"""Those that may match any text."""


@lru_cache(maxsize=32768)
def _of_word(word: str) -> int:
    """The cues that may match a text with this word."""
    found = 0
    for at in range(len(word) - 1):
        for piece, bits in _NEEDING.get(word[at : at + 2], _NONE).items():
            if word.startswith(piece, at):
                found |= bits
    return found


_NONE: dict[str, int] = {}


@lru_cache(maxsize=4096)
def _lowered(text: str) -> tuple[str, int]:
    """A text in lower case, and the cues that may match it."""
    lower = text.lower()
    return lower, reduce(or_, map(_of_word, _WORD.findall(lower)), _any_text())


@lru_cache(maxsize=1)
def _any_text() -> int:
    return sum(_ANY)


class Cue:
    """A pattern in lower case that is looked for in any case: four times as fast as one that ignores the case.

    It is only looked for in a text with a word that it needs: few cues match a text, and all of them are tried.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = lazy.regex(pattern)
        self.bit = 1 << next(_PLACES)
        pieces = needed(pattern)
        if pieces and min(map(len, pieces)) > 1:
            for piece in pieces:
                alike = _NEEDING.setdefault(piece[:2], {})
                alike[piece] = alike.get(piece, 0) | self.bit
        else:
            _ANY.append(self.bit)
        for cached in (_of_word, _lowered, _any_text):
            cached.cache_clear()

    def search(self, text: str) -> re.Match[str] | None:
        lower, possible = _lowered(text)
        return self.pattern.search(lower) if possible & self.bit else None

    def match(self, text: str) -> re.Match[str] | None:
        lower, possible = _lowered(text)
        return self.pattern.match(lower) if possible & self.bit else None

    def may_be_in(self, text: str) -> bool:
        """Whether any piece of a text may match: as quick for each piece as for the first."""
        return bool(_lowered(text)[1] & self.bit)

    def sub(self, replacement: str, text: str) -> str:
        """The text with its matches replaced; everything else keeps its case."""
        return self._any_case.sub(replacement, text) if self.search(text) else text

    def split(self, text: str) -> list[str]:
        """The text between matches, in its own case; a pattern to split at may have no groups."""
        if not text.isascii():  # a letter may become two
            return self._any_case.split(text)
        parts, at = [], 0
        for match in self.pattern.finditer(_lowered(text)[0]):
            parts.append(text[at : match.start()])
            at = match.end()
        parts.append(text[at:])
        return parts

    @cached_property
    def _any_case(self) -> re.Pattern[str]:
        return re.compile(self.pattern.pattern, re.IGNORECASE)


def which(cues: Sequence[Cue], text: str) -> tuple[bool, ...]:
    """Which of some cues a text has."""
    lower, possible = _lowered(text)
    return tuple([bool(possible & cue.bit and cue.pattern.search(lower)) for cue in cues])


def _any(*patterns: str) -> Cue:
    """Any of several patterns. Those that begin with a word are tried only where one begins."""
    every = _alternatives("|".join(patterns))
    bounded = [one.removeprefix(r"\b") for one in every if one.startswith(r"\b")]
    others = [one for one in every if not one.startswith(r"\b")]
    return Cue("|".join([rf"\b(?:{'|'.join(bounded)})", *others] if bounded else others))


_PIECE = lazy.regex(
    r"(?P<group>\((?:\?(?P<look><?[=!])|\?:|\?P<\w+>)?)|(?P<end>\))|(?P<bar>\|)|(?P<letter>[a-z0-9])|\[\^?\]?(?:\\.|[^]])*\]|\\.|."
)
_TIMES = lazy.regex(r"([?*]|\{0?,\d*\}|\{0\})\??|(?:\+|\{\d+(?:,\d*)?\})\??")


def needed(pattern: str) -> frozenset[str]:
    """Pieces of words of which every text that a pattern in lower case matches has one; empty if none are known.

    Of the parts that a match must have, the one whose shortest piece is longest, and no common word.
    """
    pieces, end = _needed(pattern, 0)
    assert end == len(pattern), f"unbalanced: {pattern}"
    return pieces


def _needed(pattern: str, at: int) -> tuple[frozenset[str], int]:
    """The same for the alternatives from a place to the bracket that closes them, with where that is."""
    every: list[frozenset[str]] = []
    parts, letters = list[frozenset[str]](), ""
    while True:
        piece = _PIECE.match(pattern, at)
        letter, inner = "", frozenset[str]()
        if piece and piece["group"]:
            inner, at = _needed(pattern, piece.end())
            inner = frozenset() if piece["look"] else inner
            at += 1
        elif piece and not piece["end"] and not piece["bar"]:
            letter, at = piece["letter"] or "", piece.end()
        else:
            parts.append(frozenset({letters} - {""}))
            every.append(max(parts, key=lambda one: (min(map(_tells, one), default=0), -len(one))))
            if not piece or piece["end"]:
                return (frozenset().union(*every) if all(every) else frozenset()), at
            parts, letters, at = [], "", piece.end()
            continue
        times = _TIMES.match(pattern, at)
        at = times.end() if times else at
        if times and times[1]:
            letter, inner = "", frozenset()
        parts.append(inner)
        if letter and not times:
            letters += letter
        else:
            parts.append(frozenset({letters + letter} - {""}))
            letters = ""


_COMMON = frozenset(
    "any are did do does for had has have her his how in is it that the this was what when you your".split()
)
"""Words of so many questions that a cue that needs one of them is looked for in nearly all."""


def _tells(piece: str) -> int:
    return 1 if piece in _COMMON else len(piece)


def _alternatives(pattern: str) -> list[str]:
    found, depth = [""], 0
    for piece in re.findall(r"\\.|\[(?:\\.|[^]])*\]|.", pattern):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            found.append("")
        else:
            found[-1] += piece
    return found


@dataclass(frozen=True)
class Aspect:
    """An aspect of a complaint, with patterns for questions that ask about it and statements that tell it."""

    name: str
    asked: Cue
    told: Cue


_SPAN = r"(?:second|minute|hour|day|night|week|month|year)s?"
ASPECTS = (
    Aspect(
        "timing",
        _any(
            r"\bwhen (?:did|was|were|do|does)?\b.{0,60}\b(?:start|beg[aiu]n|occur|happen|first|notice|onset|appear)",
            r"\bwhen (?:did|was|were|do|does)?\b.{0,60}\b(?:come on|develop|last|show up|set in)",
            r"\bhow long\b|\bsince when\b|\bonset\b|\bduration\b|\bsudden(?:ly)?\b.{0,15}\bor\b|\bgradual(?:ly)?\b",
            rf"\bhow (?:fast|quickly|soon|many {_SPAN})\b|\bfor how\b|\btime ?line\b|\btime course\b|\ball at once\b",
            r"\bdid (?:it|this|they|the \w+(?: \w+)?) (?:start|begin|come on|appear|develop)\b|\bwhen was\b",
            rf"\b(?:lasted|been present|going on)\b.{{0,30}}\b{_SPAN}\b|\bwhat age\b",
            r"\bwhat (?:were|was) (?:you|he|she|they) doing\b|\blast (?:seen|known) (?:well|normal)\b",
        ),
        _any(
            rf"(?<!\d)\d+[\s-]*{_SPAN}\b(?!-old)",
            rf"\b(?:past|last|several|few|couple of|an?|one|two|three|four|five|six|seven|eight|nine|ten|many)"
            rf" (?:few |several |couple of )?{_SPAN}\b",
            r"\bearlier (?:this|today)\b|\bincreasing(?:ly)?\b|\bago\b|\bsince\b|\bsudden(?:ly)?\b|\bgradual(?:ly)?\b",
            r"\binsidious|\byesterday\b|\bthis morning\b|\bovernight\b|\bprogressive(?:ly)?\b|\babrupt(?:ly)?\b",
            rf"\b(?:began|started|starts|begins)\b|\blast night\b|\b{_SPAN}-long\b|\bchronic\b|\bacute\b"
            rf"|\bat birth\b|\bchildhood\b|\bage of\b|\bat age\b",
        ),
    ),
    Aspect(
        "frequency",
        _any(
            r"\bhow (?:often|frequent\w*|many (?:times|episodes|attacks|bouts|spells|of (?:these|those|them)"
            r"|a day|per))\b|\bfrequency of\b|\bevery (?:day|night)\b"
        ),
        _any(
            r"\btimes\b|\bepisodes\b|\bfrequen|\bdaily\b|\bevery\b|\bonce\b|\btwice\b|\brecurr|\boccasional",
            r"\b(?:attacks|bouts|spells) (?:in|over|per|each|a (?:day|week|month|year))\b|\bper (?:day|week)|\bconstant"
            r"|\bintermittent|\bnightly\b|\bweekly\b|\brarely\b",
        ),
    ),
    Aspect(
        "course",
        _any(
            r"\bfluctuat|\bcomes? and goe?s?\b|\bconstant\b|\b(?:get|gett|becom|grow)(?:s|ing|ten|en)? "
            r"(?:worse|better)\b",
            r"\bhow (?:has|have|did) .{0,40}\b(?:chang|progress|evolv|develop)|\bprogress|\bchanged over\b",
            r"\bhas (?:it|this|that|the \w+) (?:changed|grown|spread)\b|\bbetter,? or worse\b|\bworse,? or better\b",
            r"\bmakes? (?:it|them|the \w+|this|your \w+) (?:any )?(?:better|worse)|\bwhich activit|\bany triggers\b",
            r"\bwhat (?:makes|helps|relieves|triggers|brings|worsens|aggravates|improves|sets|eases)",
            r"\bwhen (?:is|are) (?:it|they|the \w+) (?:at (?:its|their) )?(?:worst|worse|best|better)\b",
            r"\banything (?:that )?(?:make|help|relieve|trigger|worsen|aggravate|improve|eas|set|bring)",
            r"\b(?:aggravat|alleviat|reliev|exacerbat)\w+ (?:or \w+ )?factors|\bsteady\b|\bintermittent\b|\bin waves\b",
            r"\b(?:bring|set)s? (?:it|them|this|the \w+) (?:on|off)\b|\b(?:it|they|this|the \w+) (?:settle|ease"
            r"|go away|let up)s?\b",
            r"\b(?:worsen|improv)ed or\b|\bworse (?:when|with|at|in|on|after)\b|\b(?:better|eased?|helped) "
            r"(?:by|when|with)",
        ),
        _any(
            r"\bwors(?:e|en\w*)\b|\bimprov\w+|\bbetter\b|\brelie(?:f|ve\w*)\b|\balleviat\w+|\baggravat\w+",
            r"\bexacerbat\w+|\btrigger\w*",
            r"\bprovok\w+|\bbrought on\b|\bbrings? (?:it |them )?on\b|\beas(?:e|es|ed|ing)\b",
            r"\bfluctuat\w+|\bcomes? and go|\bgo(?:es)? away\b",
            r"\bsubsid\w+|\bdisappear\w*|\bintermittent\w*|\bresolv\w+",
            r"\bintensif\w+|\bespecially\b|\bdecreases?\b|\bincreas\w+\b|\bescalat\w+|\bhelps?\b|\bprogress\w*\b",
            r"\bsettles?\b|\bpersist\w*|\bconstant\w*",
        ),
    ),
    Aspect(
        "severity",
        _any(
            r"\bhow (?:severe|bad|intense|strong|much(?! time)|high)\b|\bscale\b.{0,25}\b(?:10|ten)\b|\b(?:10"
            r"|ten)[- ]point",
            r"\brate (?:the|your|it|this|that)\b|\bseverity\b|\b(?:0|zero|1|one) (?:to|-) (?:10|ten)\b",
        ),
        _any(
            r"\bsevere\w*|\bmild\w*|\bmoderate\w*|/10\b|\bintens|\bout of (?:10|ten)\b|\bworst\b|\bunbearable\b",
            r"\blow[ -]grade\b|\b\d+(?:\.\d+)? ?(?:°|kg|lb|pounds|pads|ml)",
        ),
    ),
    Aspect(
        "character",
        _any(
            r"\bsharp\b|\bdull\b|\bwhat (?:does|is|do) (?:it|they|the \w+|this|your \w+) (?:feel |look )?like\b",
            r"\bdescribe (?:the|your|this|how)|\bcharacter\b|\bquality of\b|\b(?:kind|type|sort) of\b|\bcolou?r\b",
        ),
        _any(
            r"\bsharp|\bdull|\bburning|\bcramp|\bthrob|\bstab|\bsqueez|\baching|\bpressure|\bcolicky|\btight|\btearing",
            r"\bcrushing|\bshooting|\bdescribe|\bdry\b|\bproductive|\bpulsat|\bwatery|\bbloody|\bgreen|\byellow"
            r"|\bred\b",
        ),
    ),
    Aspect(
        "spread",
        _any(
            r"\bradiat|\bspread|\bmigrat|\bmov(?:e|es|ed|ing) (?:anywhere|elsewhere|to|toward|down|into)\b",
            r"\btravel\w* (?:anywhere|to|down|up|into)\b|\bgo(?:es)? (?:anywhere|to|through|into|down)\b|\bshoot\w* ",
            r"\belsewhere\b|\banywhere else\b|\bother (?:parts|areas|places|joints)\b",
        ),
        _any(
            r"\bradiat|\bspread|\bmov(?:ed|es) (?:to|from)|\bmigrat|\b(?:runs?|going|goes|went|travels?) (?:down"
            r"|up|into)\b",
            r"\bshoot(?:s|ing)|\bextend|\bdistribut|\bother (?:areas|parts)",
            r"\bpain (?:around|over|in|behind) |\belsewhere\b|\bextremities\b|\bfrom \w+ to \w+",
        ),
    ),
    Aspect(
        "treatment",
        _any(
            r"\btried\b|\btaken anything\b|\btake anything for\b|\btreat(?:ed|ing|ments?)\b(?! with)|\bhome remed",
            r"\bdone anything for\b|\bput on\b|\bdid (?:it|that|they) help\b",
            r"\bwhat (?:have|has|are|did|do) (?:you|he|she|they) (?:been )?(?:tak|us|giv)\w+ (?:to|for) (?!granted)",
        ),
        _any(
            r"\btried\b|\battempt|\bremov|\btopical|\btook\b|\btaken\b|\btaking\b|\btreat|\brelie[fv]|\bmedicat"
            r"|\bcream",
            r"\bointment|\bantibiotic|\buse of\b|\bover-the-counter|\bmanaged\b",
        ),
    ),
)
ASPECTS_ASKED, ASPECTS_TOLD = tuple(one.asked for one in ASPECTS), tuple(one.told for one in ASPECTS)
WHEN = _any(r"(?:and |so )?(?:when did|when was|how long (?:has|have|had|did|ago)|for how long|since when)\b")
"""Asks only for a time."""
CLOCK = _any(r"\b\d{1,2}[:.]\d{2}\b|\b(?:noon|midnight|breakfast|supper|dinner)\b")
WHERE = _any(
    r"\bwhere(?:abouts)? (?:is|are|does|do|did|exactly|else|in|on|it|the|your)\b|\blocat|\bpoint to\b"
    r"|\bwhich (?:side|part)"
)
WORSE = _any(r"\bwors|\baggravat|\bexacerbat|\btrigger|\bbrings?\b.{0,20}\bon\b|\bprovok|\bsets?\b.{0,20}\boff\b")
BETTER = _any(r"\bbetter|\bimprov|\brelie[fv]|\bhelp|\beas(?:e|es|ed|ing)\b|\balleviat|\bresolv|\bsettle|\bcalm")

OPENING = _any(
    r"what (?:(?:brings|brought)(?! (?:it|this|them|the \w+) on)|seems|can i|made you|is going on|has been going)",
    r"what are your (?:main )?(?:symptoms|concerns)|how can i help",
    r"what (?:has|have) brought you|what's (?:brought|going on|been|wrong|the (?:matter|problem))",
    r"main (?:concern|complaint|problem|symptoms?)|in your own words|how are you feeling|what (?:symptoms|happened)",
    r"tell me (?:more |a bit more )?about (?:your (?:symptoms?|problem|complaint)|what|how|yourself|why)",
    r"(?:describe|explain) (?:your|the|all (?:your|the)|his|her) (?:current |main )?(?:symptoms?|problem|complaint)",
    r"tell me (?:more |a bit more )?about (?:this|the|these|your) (?:pain|attack|episode|spell"
    r"|problem)s?(?: (?:that|which)|\W*$)",
    r"reason for (?:your|the|this) visit|why (?:have you come|are you here)|what is (?:the matter|wrong|bothering)",
)
EXAMINED = _any(
    r"\b(?:let me|i(?:'d| would) like to|can i|may i|i will|i'll) (?:examine|check|listen|look|palpate|feel|measure)",
    r"\bblood pressure (?:today|reading|now)|\bon (?:\w+ )?(?:exam|examination|palpation|auscultation|inspection)\b",
    r"\b(?:test|lab|scan|x-?ray|biopsy|imaging|ecg|ekg|mri|ct) (?:results?|show)",
    r"\b(?:maneuver|manoeuvre|impingement test|\w+ (?:test|sign) (?:positive|negative))\b",
    r"\b(?:\w+-\w+|\w+['’]s) (?:test|sign|maneuver|manoeuvre)\b|\bresults? of\b",
    r"\bhow tall\b|\byour height\b",
    r"\bwhat (?:is|was|are) your (?:temperature|blood pressure|heart rate|pulse|vital|oxygen)",
)
ANYTHING_ELSE = _any(
    r"\b(?:any|other|additional|associated|new|what) (?:(?:other|additional|associated|new) ){0,4}symptoms?\b"
    r"[^,(:]{0,25}$",
    r"\banything else\b",
)
MORE = _any(
    r"^(?:and |so |ok(?:ay)?,? )?(?:can|could|would) you (?:please )?(?:tell me (?:a (?:bit|little) )?more|elaborate"
    r"|say more|go on)"
    r"(?: (?:about|on) (?:that|this|it|what(?:'s| is| has been) (?:going on|happening)))?\W*$",
    r"^(?:please )?(?:tell me (?:a (?:bit|little) )?more|go on|continue|elaborate|say more|keep going|and then\??"
    r"|what else\??)"
    r"(?: (?:about|on) (?:that|this|it))?\W*$",
    r"\b(?:anything|something)(?: else)?(?: that)? (?:you(?:'d| would)? (?:like|want) (?:to )?(?:tell|share|add|say"
    r"|talk|discuss|mention))",
    r"^what happened (?:next|then|after that)\W*$|^(?:is|was) there anything else\b|^anything else\b",
)
OPEN = _any(
    r"^(?:and |or |so |but |please )*(?:when|how|what|where|which|who|whom|why|since when|for how)\b",
    r"\b(?:tell me|describe|explain|walk me through|give me|list|rate|point to|show me)\b",
)
"""Asks for more than yes or no."""
YES_OR_NO = _any(r"(?:and |or |so |but )*(?:do|does|did|have|has|had|is|are|was|were|any|ever|can|could|would|will)\b")
ASKS = _any(r"\b(?:do|does|did|have|has|had|are|is|was|were|any|ever|can|could)\b")
BEFORE = _any(
    r"\bhistory of\b|\bdiagnosed\b|\bever (?:had|been|have)\b|\bprior\b|\bprevious(?:ly)?\b|\bin the past\b",
    r"\bhave you had|\bpersonal history\b|\bdo you have\b|\bany known\b|\bunderlying\b|\bany other\b|\bbefore\b",
)
PRONOUN = _any(r"\b(?:it|they|them|this|these|that|those)\b")
_BEGINNINGS = (
    "when", "how long", "how often", "how many", "how much", "how", "where", "what", "which", "who", "why", "does",
    "do", "did", "is", "are", "was", "were", "have", "has", "had", "any", "can", "could", "would", "tell", "describe",
)  # fmt: skip
_BEGINS = _any(rf"^(?:and |or |so |but )?({'|'.join(_BEGINNINGS)})\b")


def beginning(clause: str) -> int:
    """The question word a clause begins with, as a number; -1 if none."""
    begins = _BEGINS.match(clause)
    return _BEGINNINGS.index(begins[1]) if begins else -1


_KIN = (
    r"mother|father|parents?|brothers?|sisters?|siblings?|uncle|aunt|cousin|grand(?:mother|father|parents?|ma|pa)"
    r"|relatives?|family members?"
)
ASKS_OF_KIN = _any(
    r"(?<!or )\bfamil(?:y|ial)\b(?! (?:members? )?(?:or friends )?(?:notice|said|report|mention|describe|doctor|you))",
    r"\bparents?\b(?! notice)|\bmother|\bfather|sibling|brother|sister|\brelatives?\b|\bruns? in\b|heredit",
    r"\bgenetic|grandp|cousin|\baunt|\buncle",
)
TELLS_OF_KIN = _any(
    r"\bfamil(?:y|ial) history\b|(?<!child )\bin the family\b|\bfamily or personal\b|\bruns in\b",
    r"\bhereditary\b|\bgenetic diseases?\b",
    rf"\b(?:{_KIN})\b(?!['’]?s? (?:reports?|notes?|states?|says?|mentions?|notice[sd]?|brings?|brought|describes?"
    rf"|denie[sd]|deny|gave|think|believe|is worried|are worried|is a|witnessed|took|taking))[^.;,]{{0,40}}\b(?:has|had"
    rf"|have|with|died|history|suffer\w*|diagnosed|committ\w+|similar|healthy)\b",
)
NOTHING_ELSE = _any(
    r"\b(?:no|denies|denied|without|any|nor)\b[^.;,]{0,20}\b(?:other|additional|further|associated)\b[^.;]{0,30}"
    r"\b(?:symptoms?|complaints?|concerns?|issues|problems|abnormalit\w+|findings)\b",
    r"\ball other systems\b|\botherwise (?:is )?(?:negative|unremarkable|normal|well)\b|\bnothing else\b",
    r"\breview (?:of systems )?(?:is |was )?(?:otherwise )?(?:negative|unremarkable|noncontributory)\b",
    r"\bno (?:significant|reported|remarkable|notable|specific|abnormal) "
    r"(?:findings|abnormalit\w+|symptoms|complaints)",
    r"\bno (?:complaints|concerns|symptoms)\b|\bwithin normal limits\b",
    r"^(?:none|negative|unremarkable|noncontributory)\b",
)
WELL = _any(
    r"\b(?:no|denies|without)\b(?: (?:any|known|significant|relevant|prior|previous|chronic|serious|major|other|past"
    r"|personal|family or personal|history of|notable|important|underlying|medical|pre-?existing|or|and|reported"
    r"|\w+ical|psychiatric))* "
    r"(?:medical|health|past illness\w*|illness(?:es)?|diseases?|conditions?|history(?! of)|issues|problems|surgical"
    r"|diagnos[ei]s)\b",
    r"\b(?:previously|generally|otherwise|usually|always) (?:been )?(?:well|healthy)\b",
    r"\bunremarkable\b|\binsignificant\b",
    r"\bnoncontributory\b|\bsignificant past illness|^(?:none|nil|negative)\b",
)
NOT_WELL = _any(
    r"\brecent (?:illness|infection)|\bbirth history\b|^(?:no |negative )?family history\b|\bsocial history\b"
)
ASKS_JOB = _any(
    r"\boccupation|\b(?:your|his|her) (?:job|work)\b|for a living|\bdo you work\b|\bkind of work\b"
    r"|\bwhat do you do\W*$",
    r"\bdo for (?:work|a job|money)\b|\bwhat jobs?\b|\bgo to (?:school|work)\b",
)
TELLS_JOB = _any(
    r"\b(?:runs?|works?|worked|working|employed|job|student|pupil|grade|school|college|retired|former|owns?|owner)\b",
    r"\b(?:clerk|teacher|nurse|driver|farmer|cook|carpenter|electrician|tailor|engineer|manager|accountant"
    r"|self-employed)\b",
)
IN_GENERAL = _any(
    r"\b(?:otherwise|all other|no other|additional|unremarkable|negative|within normal|normal limits)\b",
    r"\bno (?:significant|relevant|known|notable)\b",
)
TELLS_DRUGS = _any(
    r"\bmedications?\b|\bmedicines?\b|\btak(?:es|ing)\b|\btaken (?!to\b)|\btook\b|\bprescribed\b|\btreated with\b",
    r"\bon [a-z]+(?:mab|pril|olol|statin|formin|sartan|azole|cillin|ine|one|ide|arin)\b|\btreatment includes\b",
    r"\buse of [a-z]+(?:ine|ol|en|in)\b|\bsupplements?\b|\bvitamins?\b|\bcontracepti|\bantibiotics?\b|\bibuprofen\b",
    r"\baspirin\b|\bacetaminophen\b|\b(?:controlled|managed) (?:with|by|on)\b|\binsulin\b|\bwarfarin\b",
    r"\b\w{3,}(?:pril|sartan|olol|statin|mycin|cillin|azole|formin|gliptin|mab|tidine|oxetine|zepam|zolam|barbital"
    r"|triptan|parin|xaban|thiazide|semide|peridone|thyroxine)\b",
)


@dataclass(frozen=True)
class Background:
    """A section of the background, with a pattern for questions about it."""

    section: Section
    kind: Asked
    asked: Cue


BACKGROUND = (
    Background(Section.FAMILY, Asked.FAMILY, ASKS_OF_KIN),
    Background(Section.ALLERGIES, Asked.BACKGROUND, _any(r"\ballerg(?:y|ies|ic to)\b|\ballergic\b(?! rhinitis)")),
    Background(
        Section.DRUGS,
        Asked.BACKGROUND,
        _any(
            r"medications?|medicines?|\bmeds\b|prescribed|prescription (?:or|and|med|drug)\w*|\bpills?\b|\btablets?\b",
            r"supplements?|over.the.counter|taking any(?:thing)?\b|\b(?:you|he|she) taking\b|what drugs|\bherbal",
            r"\b(?:do|does|did) (?:you|he|she|they) take\b(?! (?:long|time|care|a while))|\bdrugs? (?:do|are) you\b",
            r"\bnsaids?\b|\bantibiotics?\b|\bsteroids?\b|\bblood thinners?\b|\bcontracepti",
        ),
    ),
    Background(
        Section.PAST,
        Asked.BACKGROUND,
        _any(
            r"(?:past |previous |medical |prior |health |surgical )(?:medical |health )?"
            r"(?:history|conditions?|problems?|illness(?:es)?|issues)",
            r"chronic (?:conditions?|illness(?:es)?|diseases?|medical)|surger|operations?\b|hospitali|underlying",
            r"\bother (?:health|medical)|\bserious illness|\bmajor illness|\bbeen healthy\b|\bdiagnos(?:is|ed with)\b",
            r"\bbeing treated for\b|\bhistory of\b",
        ),
    ),
    Background(
        Section.SOCIAL,
        Asked.BACKGROUND,
        _any(
            r"smok|tobacco|cigarette|\bvap(?:e|ing)|alcohol|\bdrink\b(?! (?:enough|plenty))|recreational|illicit",
            r"street drugs|drug use|use (?:any )?drugs|\binject\w* (?:any )?drug|occupation|\bjob\b|for a living",
            r"\bwhat (?:kind|type|sort) of work\b|(?<!affect )(?<!affecting )(?<!with )\byour work\b|\bdo you work\b",
            r"\bwhere do you live|\bwho do you live|\blive (?:with|alone)|\bliving situation|\bhobb|\bpets?\b",
            r"(?<!it )(?<!pain )\btravel(?:ed|led|ing|ling)?\b(?! (?:down|to your))|sexually active|\banimals?\b",
            r"sexual (?:history|partners?|activity)|\bpartners?\b(?! (?:had|have|been))|condom|\bdiet\b|lifestyle",
            r"social history|\bsubstance|\bmarried\b|\boccupational",
        ),
    ),
    Background(
        Section.DEMOGRAPHICS,
        Asked.BACKGROUND,
        _any(
            r"how old|\bteenager\b|\ban adult\b|what age|\bage and (?:sex|gender)|\byour (?:sex|gender)\b",
            r"\b(?:your|his|her|their|patient['’]?s|child['’]?s|baby['’]?s|infant['’]?s|newborn['’]?s) "
            r"(?:exact )?age\b",
        ),
    ),
)
BACKGROUND_ASKED = tuple(one.asked for one in BACKGROUND)
