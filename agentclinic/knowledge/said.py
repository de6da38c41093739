"""Reading a doctor's diagnosis: which disease is named first, what is said about it, and whether it is a hedge."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.knowledge.names import name
from agentclinic.knowledge.text import clauses, words

_MARKUP = re.compile(r"[*`#>]+|(?<!\w)_+|_+(?!\w)")
_TOKEN = re.compile(r"^.*?\bDIAGNOSIS READY\b\W*", re.DOTALL)
_LEAD = re.compile(
    r"^(?:\d{1,2}[.)]\s+)?"
    r"(?:the |my |a |an |final |principal |most likely |likely |probable |possible |suspected |presumed |working "
    r"|primary (?=diagnosis)|clinical (?=diagnosis)|main (?=diagnosis)|could be |probably |this is |it is )*"
    r"(?:diagnosis(?: is| of)?[:\s]+)?(?:most likely |likely |probably )?(?:\d{1,2}[.)]\s+)?",
    re.IGNORECASE,
)
# A sentence that leads up to the diagnosis: what follows its last words is the name.
_SENTENCE = re.compile(
    r"^(?:[^.;\n]*?\b)?(?:diagnosis (?:is|of|would be)|(?:patient|he|she|child|boy|girl|man|woman|infant) "
    r"(?:most likely |likely |probably )?(?:has|suffers from)|consistent with|suggestive of|compatible with"
    r"|indicative of|diagnosed with|(?:i|we) (?:believe|think|suspect|conclude|would say)"
    r"(?: (?:that )?(?:this|it) is)?)\s+(?:that\s+)?",
    re.IGNORECASE,
)
# A full stop that ends no sentence: C. difficile, vs., St.
_STOP = re.compile(r"\b([A-Z]|vs|St)\.\s*(?=[a-zA-Z])")
_LIST = re.compile(r"\s+(?:\d{1,2}[.)]\s|[•▪]\s).*$", re.DOTALL)
# Where the first-named diagnosis ends.
_END = re.compile(
    r"\s*(?:,(?!\s*(?:acute|chronic|type|left|right|stage)\b)|;|\.\s|\n|\s[-–—]\s|:\s|\brather than\b|\binstead of\b"
    r"|\bmimicking\b|\bbecause\b|\bbased on\b|\bgiven\b|\bcausing\b|\bcontributing\b|\bpresenting\b|\bas evidenced\b"
    r"|\bleading to\b|\bresulting in\b|\bsupported by\b|\bnot\b).*$",
    re.IGNORECASE | re.DOTALL,
)
# Where what it comes with or from begins.
_TAIL = re.compile(
    r"\s*(?:\bwith\b|\bwithout\b|\bdue to\b|\bsecondary to\b|\bcaused by\b|\bcomplicated by\b|\bcomplicating\b"
    r"|\bassociated with\b|\bin the setting of\b|\bresulting from\b|\bfrom\b|\bafter\b|\bfollowing\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_CAUSE = re.compile(
    r"\b(?:due to|secondary to|caused by|complicating|in the setting of|resulting from|associated with|from|of)\b"
    r"\s+(?P<cause>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_GUESS = re.compile(
    r"[,;(–—]\s*(?:most )?(?:likely|probably|probable|possibly|presumed|presumably|suspected)\s+"
    r"(.+?)(?=[,;.()]|\bwith\b|\bgiven\b|$)",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\s*[(\[]([^)\]]*)[)\]]?")
_BUT = re.compile(r"^not\s+.+?\s+but\s+(?:rather\s+)?", re.IGNORECASE)
_OR = re.compile(r"(?:,\s*|\s+)(?:and/or|or|versus|vs\.?|alternatively)\s*,?\s+", re.IGNORECASE)
_SLASH = re.compile(r"(?<=[a-z])\s*/\s*(?=[a-z])", re.IGNORECASE)
_OPEN = re.compile(r"\beither\b|\bdifferential\b|\bdiagnoses\b", re.IGNORECASE)
_STATEMENT = re.compile(r"[;\n]|\.\s|\s[-–—]\s|\b(?:because|based on|given|with|without|no|due to)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Said:
    """A diagnosis taken apart."""

    text: str
    """All that was said, without lead-in and decoration."""
    full: str
    """The first-named diagnosis with what it comes with and from, without brackets."""
    principal: str
    """The first-named diagnosis alone."""
    cause: str
    """What it is said to come from."""
    brackets: tuple[str, ...]
    guesses: tuple[str, ...]
    """What is added as likely only: "leprosy, likely tuberculoid"."""
    hedged: bool
    denied: bool


@lru_cache(maxsize=65536)
def read(diagnosis: str) -> Said:
    """Take a diagnosis apart."""
    text = _STOP.sub(r"\1 ", _MARKUP.sub("", _TOKEN.sub("", diagnosis)))
    text = _without_lead(text)
    first = _LIST.sub("", text)
    hedged = _hedges(first)
    segments = [part.strip() for part in re.split(r"[;\n]|\.\s+", first) if words(part)]
    # "No embolism; chest wall pain": what is denied is not the diagnosis, what follows may be.
    stated = next((part for part in segments if not _denies(_outside(part))), None)
    denied = stated is None
    stated = _without_lead(stated) if stated is not None else first
    brackets = tuple(found.strip() for found in _BRACKETS.findall(stated) if words(found))
    full = _cut(_END, _outside(stated))
    principal = _cut(_TAIL, full)
    cause = _CAUSE.search(full)
    guesses = tuple(_GUESS.findall(text))
    return Said(text, full, principal, cause["cause"] if cause else "", brackets, guesses, hedged, denied)


def _without_lead(text: str) -> str:
    text = text.strip(" \n\"'.:")
    text = _BUT.sub("", _SENTENCE.sub("", text))
    return _LEAD.sub("", text).strip(" \n\"'.:")


def _cut(where: re.Pattern[str], text: str) -> str:
    return (where.sub("", text) or text).strip(" .,")


def _outside(text: str) -> str:
    return _BRACKETS.sub(" ", text).strip()


def _denies(text: str) -> bool:
    first = _cut(_END, text) if not text.lower().startswith("not ") else text
    return any(
        any(clause.negated) or any(clause.denied_after(end) for end in range(1, len(clause.words)))
        for clause in clauses(_TAIL.sub("", first) or first)
    )


def _hedges(text: str) -> bool:
    """Whether alternatives are named in place of one diagnosis; two names of one disease are none."""
    outside = _outside(text)
    statement = _STATEMENT.split(outside)[0]
    if _OPEN.search(statement):
        return True
    parts = _OR.split(statement)
    if len(parts) > 1 and parts[0].strip():
        return name(parts[0]) != name(_cut(_END, parts[1]))
    first = statement.split(",")[0]
    return any(not _one_thing(first, match) for match in _SLASH.finditer(first))


def _one_thing(text: str, slash: re.Match[str]) -> bool:
    """A slash inside one name: HIV/AIDS, or two names of one disease."""
    before, after = text[: slash.start()].split(), text[slash.end() :].split()
    if before and after and before[-1].isupper() and after[0].isupper():
        return True
    return name(text[: slash.start()]) == name(text[slash.end() :])
