"""Parse a doctor's diagnosis: which disease is named first, what is said about it, and whether it hedges."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, takewhile

from agentclinic.vocabulary.denial import denies_something
from agentclinic.vocabulary.names import name, names_disease
from agentclinic.vocabulary.text import LONGEST_NAME, tidy, words

_MARKUP = re.compile(r"[*`#>]+|(?<!\w)_+|_+(?!\w)")
_TAGS = re.compile(r"<!--.*?(?:-->|$)|</?[a-z][^<>\n]{0,200}>", re.IGNORECASE | re.DOTALL)
# A small model's JSON: {"diagnosis": "gout"}.
_JSON = re.compile(
    r"^\W{0,9}(?:json\s+)?\{\s?\"[\w ]{0,40}diagnosis[\w ]{0,40}\"\s?:\s?\"([^\"]*).*$", re.IGNORECASE | re.DOTALL
)
_TOKEN = re.compile(r"^.*?\bDIAGNOSIS READY\b\W*", re.DOTALL)
_LEAD = re.compile(
    r"^(?:\d{1,2}[.)]\s+)?"
    r"(?:(?:(?:most )?likely|primary|principal|leading|top)(?: diagnosis)?(?: 1)?:\s+|diagnosis 1:\s+)?"
    r"(?:the |my |a |an |final |principal |most likely |likely |probable |possible |suspected |presumed |working "
    r"|primary (?=diagnosis)|clinical (?=diagnosis)|main (?=diagnosis)|could be |probably |this is |it is )*"
    r"(?:diagnosis(?: is| of)?[:\s]+)?(?:most likely |likely |probably )?(?:\d{1,2}[.)]\s+)?",
    re.IGNORECASE,
)
# Signs that separate one diagnosis from the next: "gout | lupus", "gout -> lupus", "gout > lupus".
_BREAK = re.compile(r"\s?(?:[|\\→⇒➔…\t]|[-=]>|//|\.{2,}|(?<=\w)\s[>*=~•▪]+\s(?=[^\W\d]))\s?")
# The start of a sentence that leads up to the name of the disease.
_SENTENCE = re.compile(
    r"^(?:[^.;\n]*?\b)?(?:diagnosis (?:is|of|would be)|(?:patient|he|she|you|child|boy|girl|man|woman|infant) "
    r"(?:most likely |likely |probably )?(?:has|have|suffers from)|consistent with|suggestive of|compatible with"
    r"|indicative of|diagnosed with|(?:i|we) (?:believe|think|suspect|conclude|would say)"
    r"(?: (?:that )?(?:this|it) is)?)\s+(?:that\s+)?",
    re.IGNORECASE,
)
# Courtesies, or what the diagnosis is based on, before the diagnosis.
_PREFACE = re.compile(
    r"^(?:(?:thank(?:s| you)|hello|hi|dear|ok(?:ay)?|sure|certainly|understood|alright)\b[^.!;\n]{0,200}[.!;\n]\s*)*"
    r"(?:(?:in (?:summary|conclusion|my (?:\w+ )?(?:opinion|view|judge?ment))|overall|therefore|thus|hence|so"
    r"|(?:based on|given|considering|after (?:\w+ )?(?:consider|review|evaluat|assess|weigh)\w*)\b[^,;.\n]{0,200})"
    r",\s+)?",
    re.IGNORECASE,
)
# A full stop that does not end a sentence: C. difficile, vs., St.
_STOP = re.compile(r"\b([A-Z]|vs|St)\.\s*(?=[a-zA-Z])")
_LIST = re.compile(r"\s+(?:\d{1,2}[.)]\s|[•▪]\s).*$", re.DOTALL)
# Reasons, effects and rejected alternatives: nothing after one of these belongs to the diagnosis.
_REASON = (
    r"\brather than\b|\binstead of\b|\bmimicking\b|\bbecause\b|\bbased on\b|\bgiven\b|\bcausing\b"
    r"|\bcontributing\b|\bpresenting\b|\bmanifest(?:ing|ed)\b|\bas evidenced\b|\bevidenced by\b|\bleading to\b"
    r"|\bresulting in\b|\bsupported by\b|\bsuggested by\b|\bexplaining\b|\bnot\b"
    r"|\buntil proven\b|\ba\.?k\.?a\b|\balso (?:known as|called)\b"
)
_REASONS = re.compile(rf"\s*(?:{_REASON}).*$", re.IGNORECASE | re.DOTALL)
# Where the first-named diagnosis ends.
_END = re.compile(
    rf"\s*(?:,(?!\s*(?:acute|chronic|type|left|right|stage)\b)|;|\.\s|\n|\s[-–—]\s|:\s|{_REASON}).*$",
    re.IGNORECASE | re.DOTALL,
)
_QUALIFIED = re.compile(r",\s*")
# What introduces a cause.
_FROM = (
    r"\bdue to\b|\bsecondary to\b|\bcaused by\b|\bresulting from\b"
    r"|\bas (?:an?|the) (?:\w+ )?(?:result|complication|consequence|manifestation|presentation|sign|feature) of\b"
    r"|\battribut(?:ed|able) to\b|\bfrom\b"
)
# What introduces a cause or an accompanying condition.
_TAIL = re.compile(
    rf"\s*(?:{_FROM}|\bwith\b|\bwithout\b|\bcomplicated by\b|\bcomplicating\b|\bsuperimposed on\b|\bassociated with\b"
    r"|\bin the (?:setting|context) of\b|\bon a background of\b|\b(?:triggered|precipitated|provoked|induced) by\b"
    r"|\bin an? (?:\w+ )?(?:patient|man|woman|child|infant|host)\b|\bstatus post\b|\bafter\b|\bfollowing\b"
    r"|\bat the (?:site|level|place) of\b"
    r"|\b(?:at|through|along) (?:a|an|the|his|her) (?:prior|previous|old|former)\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_BY_CAUSE = re.compile(
    rf"^(?:{_FROM}|(?:triggered|precipitated|provoked|induced|exacerbated) by\b|related to\b|associated with\b)\s+",
    re.IGNORECASE,
)
_OF_CAUSE = re.compile(rf"{_BY_CAUSE.pattern}|\b(?:related|induced|associated|mediated|triggered)$", re.IGNORECASE)
_CAUSES = re.compile(rf"(?:{_FROM})\s+", re.IGNORECASE)
_PARTS = re.compile(r"\s*(?:,|:\s|\s[-–—]\s)\s*")
# The doctor settles on what follows: "diarrhea, most likely C. difficile infection".
_SETTLES = re.compile(
    r"^(?:(?:most |very |highly )?(?:likely|probably|probable|consistent with|compatible with|suggestive of"
    r"|suspicious for|concerning for|worrisome for|suspected|presumed)|favou?r(?:ing|ed)?|specifically|namely"
    r"|i\.?e\.?)\s+(?:an?\s+|the\s+)?",
    re.IGNORECASE,
)
_LIKELY_AFTER = re.compile(
    r"\s+(?:(?:is|being|seems)\s+)?(?:most |more |very )?(?:likely|probable|favou?red|suspected|preferred)"
    r"(?:\s+(?:over|than)\b.*)?$",
    re.IGNORECASE | re.DOTALL,
)
# What is feared or left out is not diagnosed: "fear of cancer", "anything but gout".
_ONLY_MENTIONED = re.compile(
    r"^(?:(?:patient|he|she|it|this|i|we|there)\s+(?:\w+\s+){0,2}(?:not|never|no longer|no|\w+n['’]t)\s"
    r"|(?:(?:patient|he|she|i)\s+(?:is|am)\s+)?"
    r"(?:(?:anything|everything|nothing|all)\s+(?:but|except|besides|other than)"
    r"|(?:(?:\w+\s){0,2}history|(?:\w+\s){0,2}risk|exposure)\s+(?:of|for|to)|screening\s+for"
    r"|(?:fears?|dread|worry|worries|anxiety|phobia|concerns?)\s+(?:of|about|over|that)"
    r"|(?:afraid|scared|frightened|worried|anxious|concerned)\s+(?:of|about|over|that|by)"
    r"|(?:fears|feared|unlike|other than|except|excluding|instead of|rather than|neither))\s)",
    re.IGNORECASE,
)
# Words addressed to the judge are not part of a diagnosis; a few are in other languages.
_TO_THE_JUDGE = re.compile(
    r"\b(?:ignore|disregard|override|ignorier\w*|ignorez|ignora|antworte\w*|r[ée]pond\w*|responda|responde|judge|moderator"
    r"|grader|evaluator|verdict|instructions?|prompt|answer key|ground truth"
    r"|(?:correct|reference|true) (?:diagnosis|answer)|yes or no|you (?:must|should|will)|narrower_\w+|relation\s?[:=]"
    r"|(?:answer|respond|reply|output|say|return|write|print)s?\s(?:(?:with|only|just|me|the|a|word)\s){0,3}[\"'“]?"
    r"(?:yes|correct|same)"
    r"|(?:mark|grade|score|rate|count|accept|treat|consider)(?:s|ed)?\s(?:\w+\s){0,3}as\s(?:an?\s)?"
    r"(?:yes|correct|right|same|true|match))\b",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(r"[,(\[:–—]|\s-\s|\b(?:and|so|please|but|then)\b", re.IGNORECASE)
_DOUBTED = re.compile(r"\b(?:less (?:likely|probable)|unlikely|doubtful|to be excluded)\b", re.IGNORECASE)
_POSSIBLE = re.compile(r"\bpossibl[ey]\b", re.IGNORECASE)
# Named only to be set aside: "less likely lymphoma", "rule out cancer".
_ASIDE = re.compile(
    r"(?:[,;(–—]\s*|\s-\s*|\s+(?:but|with|and)\s+)(?:\w+\s+)?(?:less likely|less probable|rule out|r/o|(?:cannot|can't|"
    r"to|need to|must) (?:exclude|rule out)|consider(?:ed)? also|also consider)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
# Which alternative the doctor prefers: "A vs B, favor A", "A or B; B more likely".
_FAVORED = (
    re.compile(
        r"\b(?:favou?r(?:ing|s)?|lean(?:ing)? towards?|more likely|most likely|suspect)\s+(?:the\s+)?(?P<it>[^,;.()]+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:^|[,;.(]|\bwith\b|\bbut\b)\s*(?:the\s+)?(?P<it>[^,;.()]{1,120}?)\s+(?:(?:is|being|seems)\s+)?"
        r"(?:strongly\s+)?(?:favou?red|more likely|most likely|more probable|preferred)\b",
        re.IGNORECASE,
    ),
)
_CAUSE = re.compile(
    r"\b(?:due to|secondary to|caused by|complicating|in the setting of|resulting from|associated with|from|of)\b"
    r"\s+(?P<cause>.+)$",
    re.IGNORECASE | re.DOTALL,
)
# Not "possibly": a mere possibility makes no claim that the chart would have to support.
_GUESS = re.compile(
    r"[,;(–—]\s*(?:most )?(?:likely|probably|probable|presumed|presumably|suspected)\s+"
    r"(.+?)(?=[,;.()]|\bwith\b|\bgiven\b|$)(?:\s*\(([^)]{0,200})\))?",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\s*[(\[]([^)\]]*)[)\]]?")
_BUT = re.compile(r"^not\s+.+?\s+but\s+(?:rather\s+)?", re.IGNORECASE)
_OR = re.compile(
    r"(?:,\s*|\s+)(?:and/or|or(?! (?:higher|greater|more|later|above|worse|less|lower))|versus|vs\.?|alternatively)"
    r"\s*,?\s+",
    re.IGNORECASE,
)
_LEFT_OPEN = re.compile(r"\b(?:or|versus|vs)$", re.IGNORECASE)
_JOINED = re.compile(
    r",?\s(?:[+&]|plus|as well as|along with|together with|in addition to|(?:but|and) also)\s"
    r"|(?<=[a-z]{3})[+&](?=[a-z]{3})",
    re.IGNORECASE,
)
_AND = re.compile(r"\sand\s", re.IGNORECASE)
_AGAINST = re.compile(r"(?:versus|vs)\b", re.IGNORECASE)
_SLASH = re.compile(r"(?<=[a-z])\s*/\s*(?=[a-z])", re.IGNORECASE)
_OPEN = re.compile(r"\beither\b|\bdifferential\b|\bdiagnoses\b", re.IGNORECASE)
_STATEMENT = re.compile(r"[;\n]|\.\s|\s[-–—]\s|\b(?:because|based on|given|with|without|no|due to)\b", re.IGNORECASE)


_MOST_SLASHES = 8
"""More than two names for one disease ever have."""


@dataclass(frozen=True)
class ParsedDiagnosis:
    """The parts of a diagnosis."""

    text: str
    """The whole text without lead-in and markup."""
    full: str
    """The first-named diagnosis with its causes and accompanying conditions, without parentheses."""
    principal: str
    """The first-named diagnosis alone."""
    cause: str
    """What it is said to be due to."""
    causes: tuple[str, ...]
    """Every stated cause, in order: "hyponatremia due to SIADH from lung cancer"."""
    parts: tuple[str, ...]
    """What follows the first-named diagnosis after commas, dashes or a colon."""
    possible: tuple[str, ...]
    """The same, but only as a possibility."""
    settled: tuple[str, ...]
    """What the doctor settles on after a broader name: "diarrhea, most likely C. difficile infection"."""
    brackets: tuple[str, ...]
    guesses: tuple[str, ...]
    """Kinds added as likely: "leprosy, likely tuberculoid"."""
    likely_causes: tuple[str, ...]
    """Causes added as likely: "gout, likely from diuretics"."""
    hedged: bool
    open_brackets: bool
    """The parentheses name alternatives: "food poisoning (Staphylococcus or Bacillus)"."""
    denied: bool


@lru_cache(maxsize=65536)
def parse(diagnosis: str) -> ParsedDiagnosis:
    text = tidy("\n".join(_TOKEN.sub("", diagnosis).splitlines()))[:LONGEST_NAME]
    text = _JOINED.sub(
        " and ", _STOP.sub(r"\1 ", _MARKUP.sub("", _BREAK.sub("; ", _TAGS.sub(" ", _JSON.sub(r"\1", text)))))
    )
    text = _without_lead(text)
    first = _LIST.sub("", text)
    kept = _ASIDE.sub("", first).strip()
    # "A or, less likely, B" still names B.
    first = first if not kept or _LEFT_OPEN.search(kept) else kept
    favored = _favored(first) if _hedges(first) else ""
    parts_of_text = (_to_the_patient(part) for part in re.split(r"[;\n]|[.!]\s+", favored or first))
    segments = [part.strip() for part in parts_of_text if words(part)]
    # "No embolism; chest wall pain": skip what is denied; what follows may be the diagnosis.
    stated = next((part for part in segments if not _denies(_outside(part))), None)
    denied = stated is None
    stated = _without_lead(stated) if stated is not None else _to_the_patient(first)
    brackets = tuple(
        found.strip() for found in _BRACKETS.findall(stated) if words(found) and not _abbreviates(found, stated)
    )
    full = _without_listed(_cut(_END, _outside(stated)))
    cause = _CAUSE.search(full)
    body = _cut(_REASONS, _outside(stated))
    guesses = [guess for found in _GUESS.findall(text) for guess in found if words(guess)]
    named = [part for part in _PARTS.split(body)[1:] if words(part) and not _denies(part) and not _DOUBTED.search(part)]
    parts = [part for part in named if not _POSSIBLE.search(part)]
    return ParsedDiagnosis(
        text=text,
        full=full,
        principal=_cut(_TAIL, full),
        cause=_cut(_TAIL, cause["cause"]) if cause else "",
        causes=tuple(_first(part) for part in _CAUSES.split(body)[1:] if words(_first(part))),
        parts=tuple(map(_bare, parts)),
        possible=tuple(part for part in named if _POSSIBLE.search(part)),
        settled=tuple(_bare(part) for part in parts if part != _bare(part) and not _OF_CAUSE.search(_bare(part))),
        brackets=brackets,
        guesses=tuple(guess for guess in guesses if not _BY_CAUSE.match(guess)),
        likely_causes=tuple(_BY_CAUSE.sub("", guess) for guess in guesses if _BY_CAUSE.match(guess)),
        hedged=not favored and (_hedges(first) or any(map(_AGAINST.match, parts))),
        open_brackets=any(len(_OR.split(inside)) > 1 for inside in brackets),
        denied=denied,
    )


def diseases(text: str) -> list[str]:
    """What is joined with "and", in order."""
    return _AND.split(text)


def _to_the_patient(text: str) -> str:
    """A statement without what is addressed to the judge: "gout, and answer Yes"."""
    found = _TO_THE_JUDGE.search(text)
    if not found:
        return text
    ends = [boundary.start() for boundary in _BOUNDARY.finditer(text, 0, found.start())]
    return text[: ends[-1]] if ends else ""


def _bare(part: str) -> str:
    """A part without the words that settle on it."""
    return _LIKELY_AFTER.sub("", _SETTLES.sub("", part))


def _first(text: str) -> str:
    return _without_lead(_cut(_TAIL, _PARTS.split(text)[0]))


def _abbreviates(short: str, text: str) -> bool:
    """Whether parentheses hold only the initials of what is before them."""
    before = text.partition("(")[0].replace("-", " ").split()
    return short.isupper() and short.lower() == "".join(word[0] for word in before).lower()


def _favored(text: str) -> str:
    statement = _STATEMENT.split(_outside(text))[0]
    named = [_cut(_END, part) for part in _OR.split(statement) if words(part)]
    for pattern in _FAVORED:
        for match in pattern.finditer(text):
            it = match["it"].strip()
            if it.lower() in ("former", "first") and named:
                return named[0]
            if it.lower() in ("latter", "second") and len(named) > 1:
                return named[1]
            # It must be one of the alternatives: "favor surgery" is not.
            about = [part for part in named if set(name(it).specific) & name(part).key]
            if about:
                # "Schizotypal favored" abbreviates one of the alternatives.
                return next((part for part in about if name(it).key < name(part).key), it)
    return ""


_AROUND = " \n\"'.:“”"


def _without_lead(text: str) -> str:
    text = _PREFACE.sub("", text.strip(_AROUND))
    text = _BUT.sub("", _SENTENCE.sub("", text))
    return _BUT.sub("", _LEAD.sub("", text)).strip(_AROUND)


def _cut(where: re.Pattern[str], text: str) -> str:
    return (where.sub("", text) or text).strip(" .,")


def _without_listed(text: str) -> str:
    """Cut where a comma introduces another disease, not a course or a side: "gout, acute appendicitis"."""
    first, *rest = _QUALIFIED.split(text)
    own = takewhile(lambda part: not names_disease(_cut(_TAIL, part)), rest)
    return ", ".join((first, *own))


def _outside(text: str) -> str:
    return _BRACKETS.sub(" ", text).strip()


def _denies(text: str) -> bool:
    if _ONLY_MENTIONED.match(_without_lead(text)):
        return True
    first = _cut(_END, text) if not text.lower().startswith("not ") else text
    return bool(_DOUBTED.search(first)) or denies_something(_TAIL.sub("", first) or first)


def _hedges(text: str) -> bool:
    """Whether the text names alternatives; two names of one disease are not alternatives."""
    outside = _outside(text)
    statement = _STATEMENT.split(outside)[0]
    if _OPEN.search(statement):
        return True
    parts = _OR.split(statement)
    if len(parts) > 1 and parts[0].strip():
        return name(parts[0]) != name(_cut(_END, parts[1]))
    first = statement.split(",")[0]
    return any(not _one_thing(first, match) for match in islice(_SLASH.finditer(first), _MOST_SLASHES))


def _one_thing(text: str, slash: re.Match[str]) -> bool:
    """Whether a slash is part of one name (HIV/AIDS) or separates two names of one disease."""
    before, after = text[: slash.start()].split(), text[slash.end() :].split()
    if before and after and before[-1].isupper() and after[0].isupper():
        return True
    return name(text[: slash.start()]) == name(text[slash.end() :])
