"""What doctors say besides asking for facts: greetings, thanks, explanations, and questions about feelings and wishes.

Sentences like these are answered from the patient's manner, not from the chart. A sentence that also asks for
something is left to the matcher.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.asking import clause_texts
from agentclinic.vocabulary.text import tidy


class Talk(StrEnum):
    """What a sentence is, if it asks for no fact."""

    PRIVACY = "privacy"
    IDEA = "idea"
    WORRY = "worry"
    HOPE = "hope"
    FEEL = "feel"
    CONSENT = "consent"
    READY = "ready"
    GREET = "greet"
    THANKS = "thanks"
    EXPLAINED = "explained"


@dataclass(frozen=True)
class Said:
    """An utterance without its small talk, and what small talk there was."""

    rest: str
    kinds: tuple[Talk, ...]
    mixed: str
    """The same, but with whole sentences of which a part asks for feelings or wishes."""


_SENTENCE = lazy.regex(
    r"(?<=[.?!])(?<!\bdr\.)(?<!\bmr\.)(?<!\bms\.)(?<!\bmrs\.)(?<!e\.g\.)(?<!i\.e\.)\s+|\n+", re.IGNORECASE
)
_YOU = (
    r"(?:you|he|she|they|your (?:child|son|daughter|baby|boy|girl|kid|grandson"
    r"|granddaughter|family))"
)
_ALONE = (
    r"\b(?:alone|in private|privately|one[- ]on[- ]one)\b|\bwait(?:ing)? outside\b|\bstep(?:ping)? out(?:side)?\b"
    r"|\bleave (?:us|the room)\b|\bjust (?:the two of us|you and (?:me|i))\b"
)
_TOGETHER = r"(?:speak|talk|chat|see|word|moment|minute|time|discuss|ask|wait|step|leave|mind|conversation)"
_KINDS: tuple[tuple[Talk, str], ...] = (
    (Talk.PRIVACY, rf"\b{_TOGETHER}\w*\b.*(?:{_ALONE})|(?:{_ALONE}).*\b{_TOGETHER}"),
    (
        Talk.IDEA,
        rf"\bwhat do {_YOU} (?:think|believe|suspect|feel)\b.{{0,40}}\b(?:caus|going on|wrong|happening|behind"
        rf"|this is|is it|it is|this might|it might|it could)"
        rf"|\bhow {_YOU} see (?:things|it|this)\b"
        rf"|\bany (?:idea|thoughts?|theor)\w* (?:of |about |on |as to )?(?:what|why)|\bwhat (?:might|could"
        rf"|may) (?:be causing|have caused|this be)"
        rf"|\bdo {_YOU} have (?:any |an )?(?:idea|theor)\w*\b|\bwhat.{{0,20}}\byour (?:own )?(?:idea|theory"
        rf"|thoughts?)\b",
    ),
    (
        Talk.WORRY,
        rf"\bwhat(?:'s| is)? (?:it that )?(?:mainly |really )?(?:worr|concern|frighten|scar|bother)\w* {_YOU}\b"
        rf"|\bwhat (?:are|is) {_YOU} (?:most "
        rf"|particularly |especially )?(?:worried|concerned|afraid|scared)\b"
        rf"|\b(?:anything|something)(?: in particular| specific| else)?(?: that)?(?: {_YOU}(?:'re| are|'s"
        rf"| is))? (?:particularly |especially |most )?(?:worr|concern|afraid|scar)\w*"
        rf"|\b(?:biggest|main|greatest) (?:worry|fear)\b|\b(?:are|is) {_YOU} (?:worried|concerned|afraid"
        rf"|scared) (?:about|of|that)\b"
        r"|\bwhat are your (?:biggest |main )?(?:worries|fears)\b",
    ),
    (
        Talk.HOPE,
        rf"\b(?:what|how) (?:are|were|is|do|would) {_YOU} (?:hop|expect|like|want)\w*\b"
        r"(?! to (?:talk|discuss|speak|see me)\b).{0,30}\b(?:for|from|today"
        rf"|visit|me to do|do for|help|get out)"
        rf"|\bwhat (?:are|is) {_YOU} (?:most |really |mainly )?hoping\b|\bwhat would {_YOU} like (?:me|us)\b"
        rf"|\byour (?:expectations|goals?)\b"
        rf"|\bmatters? most to {_YOU}\b",
    ),
    (
        Talk.FEEL,
        rf"\bhow (?:are|is|have|has) {_YOU} (?:been )?(?:coping|managing|holding up|dealing|handling|doing with)\b"
        r"(?! with \w+ing\b)"
        rf"|\bhow (?:do|does|are|is) {_YOU} (?:feel|feeling) (?:about|emotionally)\b|\bhow (?:does|has|is) (?:this"
        rf"|that|it|all (?:this|of this)) (?:been )?(?:make|made|making|affect\w*) {_YOU} (?:feel|emotionally|mentally)"
        rf"|\bhow (?:are|is) {_YOU}(?: doing)?(?: today| this (?:morning|afternoon|evening))?\s*[?.!]*$"
        rf"|\bhow is this affecting your mood",
    ),
    (
        Talk.CONSENT,
        rf"^(?:so |and |now |well )?(?:is|would|will) (?:that|this|it) (?:be )?(?:ok(?:ay)?|alright|all right|fine)\b"
        rf"|\b(?:is|would) (?:that|this|it) (?:be )?(?:ok(?:ay)?|alright|all right|fine)(?: with you| by you)?\s*\?$"
        rf"|\bdo(?:es)? (?:you|that|this) (?:agree|make sense|sound (?:ok(?:ay)?|good|alright|reasonable))"
        rf"|\b(?:ok|okay|all right|alright) with {_YOU}|\b(?:may|can|could|shall) (?:i|we) (?:please |now "
        rf"|just )*(?:examine|take a look|have a look|check you\b|do (?:a|an|the|some)|perform|order|run|draw"
        rf"|take (?:some|a) blood|ask you\b)"
        rf"|\b(?:is it|would it be|are you) (?:ok(?:ay)?|alright|all right|fine|comfortable|happy) (?:if|for|to"
        rf"|with)\b|\bdo you mind if\b|\bwould you mind\b",
    ),
    (
        Talk.READY,
        r"\b(?:do you have|any) (?:any )?(?:other )?questions?(?: for (?:me|us)| about (?:this|that|the plan))?\s*\?*$",
    ),
    (
        Talk.GREET,
        r"^(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|welcome|greetings)\b[^?]*$"
        r"|^(?:my name(?:'s| is)|i(?:'m| am) (?:dr|doctor|your doctor|the doctor|one of the))\b[^?]*$|^(?:it's "
        r"|it is )?(?:nice|good|pleased|a pleasure) to (?:meet|see)\b[^?]*$",
    ),
    (Talk.THANKS, r"^(?:ok(?:ay)?,? |great,? |alright,? )?(?:thank|thanks|many thanks|i appreciate)\b[^?]*$"),
)
_CUES = tuple(cues.Cue(pattern) for _, pattern in _KINDS)
# A sentence that tells the patient something and asks nothing.
_TELLS = lazy.regex(
    r"^(?:(?:ok(?:ay)?|all ?right|right|well|so|now|and|great|good|sure|of course|in the meantime|meanwhile|first"
    r"|next|then|for now)[,.! ]+)*"
    r"(?:you (?:must|poor|did well|gave|are doing|have been (?:very|so))|you're (?:doing|being|very|so)|it must"
    r"|you've been (?:very|so)"
    r"|i(?:'m| am|'ll| will|'d| would|'ve| have)?|we(?:'re| are|'ll| will|'d|'ve| have)?|let(?:'s| us| me)|that"
    r"|this|these|given|based on|from what|to (?:help|better|get|make|be|rule)"
    r"|(?:your|the) (?:tests?|results?|nurse|scan|next step|plan|examination|lab)|there(?:'s| is) no|don't"
    r"|please (?:don't|try|rest|let|be)|no need|understood|noted|got it|i see|ok(?:ay)?"
    r"|great|good|perfect|excellent|sorry)\b",
    re.IGNORECASE,
)
ASKS = lazy.regex(
    r"\b(?:tell me|describe|explain (?:to|how|what)|(?:want|like|love|need|have) to (?:ask|know|hear|learn"
    r"|understand|clarify|get|discuss|talk|go over|explore)|wonder\w*|curious|ask(?:ing)? (?:you |a |some |about)|"
    r"know (?:if|whether|about|more|when|how|what)|please (?:tell|describe|list|share|explain|mention)|let me know"
    r"|share|walk me through|examine|listen|palpate|check|measure|test results?|auscult)\b"
    r"|\?\s*$",
    re.IGNORECASE,
)
_LEAD = lazy.regex(
    r"^(?:(?:hello|hi|hey|good (?:morning|afternoon|evening)|welcome|thanks?(?: you)?(?: (?:so"
    r"|very) much)?(?: for [^,.?!;:]*)?|ok(?:ay)?|all ?right|right|i see|i understand|"
    r"got it|understood|sure|great|i(?:'m| am) (?:so |very )?sorry(?: to hear (?:that|this|about [^,.?!]*))?"
    r"|that (?:sounds|must be) [^,.?!]*)"
    r"(?:,? (?:mr|mrs|ms|miss|sir|madam|ma'am)\b\.?(?: [A-Z]\w+)?)?[,.!;:—-]+\s*)+",
    re.IGNORECASE,
)
_PRIVATE = _CUES[0]


def asks_for_privacy(text: str) -> bool:
    """Whether the doctor asks to speak with the patient alone."""
    return bool(_PRIVATE.search(text.replace("’", "'")))


@lru_cache(maxsize=4096)
def small_talk(utterance: str) -> Said:
    """Split an utterance into what asks for facts and what does not."""
    rest: list[str] = []
    mixed: list[str] = []
    kinds: list[Talk] = []
    for sentence in _SENTENCE.split(tidy(utterance).replace("’", "'")):
        plain = _LEAD.sub("", sentence).strip()
        here = [kind for (kind, _), on in zip(_KINDS, cues.which(_CUES, plain or sentence), strict=True) if on]
        if not here and sentence.strip() and (not plain or (_TELLS.match(plain) and not ASKS.search(plain))):
            here = [Talk.EXPLAINED]
        kinds += here
        if not here:
            rest.append(plain)
            mixed.append(plain)
        elif set(here) & set(_ASKED):
            mixed.append(plain)
            first, *later = clause_texts(plain) or [plain]
            before = [first] if any(map(is_talk, later)) else []  # else the small talk is in the first
            rest += (f"{clause}?" for clause in (*before, *later) if _is_question(clause))
    return Said(" ".join(filter(None, rest)), _answered(kinds), " ".join(filter(None, mixed)))


def _is_question(clause: str) -> bool:
    """Whether a clause beside small talk asks for facts: "how are you coping, and is the appetite gone?"."""
    asks = cues.YES_OR_NO.match(clause) or cues.OPEN.search(clause) or clause.lower().startswith("any ")
    return bool(asks) and not is_talk(clause)


def is_talk(clause: str) -> bool:
    """Whether a clause asks for feelings or wishes, or for no fact at all."""
    return any(cues.which(_CUES, f"{clause}?"))


def _answered(kinds: list[Talk]) -> tuple[Talk, ...]:
    """What is answered: everything asked for, or else a greeting or the last thing said."""
    asked = [kind for kind in dict.fromkeys(kinds) if kind in _ASKED]
    if not asked and Talk.GREET in kinds:
        return (Talk.GREET,)
    return tuple(asked or kinds[-1:])


FEELINGS = lazy.regex(
    r"\b(?:feel\w*|cop(?:e|ing)|manag\w+|handl\w+|deal\w*|holding up|mood|spirits|emotion\w*|upset|worr\w*|afraid"
    r"|fear\w*|scar\w*|concern\w*|anxious|fright\w*|nervous|bother\w*|mind|expect\w*|want\w*|like"
    r"|hop(?:e|ed|ing)(?! (?:for|to have) (?:a |more )?(?:bab|child|kid))"
    r"|wish\w*|help|think\w*|thoughts?|ideas?|reckon|suspect|believe|guess|caus\w*|theor\w*|going on|mak(?:e|ing) of"
    r"|put (?:it|this|that|all this) down|explain|explanation|matters?)\b",
    re.IGNORECASE,
)
"""A word without which nothing is asked about ideas, worries, hopes or feelings."""
ASKED_BESIDE = (Talk.IDEA, Talk.WORRY, Talk.HOPE, Talk.FEEL)
"""What is answered beside facts, too."""
_ASKED = (Talk.PRIVACY, Talk.IDEA, Talk.WORRY, Talk.HOPE, Talk.FEEL, Talk.CONSENT, Talk.READY)
