"""Write an order as one line of a list, without what depends on a result."""

from __future__ import annotations

import re
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.matcher.order_kinds import CLASSES, EXAM, GERMS, is_measured, only_sites
from agentclinic.cases.matcher.order_reasons import without_reason
from agentclinic.cases.matcher.order_spellings import WRITTEN_OUT
from agentclinic.cases.matcher.order_words import reading

_NUMBERED = lazy.regex(r"(?:^|(?<=[\s,;:.]))\(?\d{1,2}[.)]\s+(?=[A-Za-z(])|(?:^|(?<=\s))[*•]\s+|^[-–]\s+")
_DASHED = lazy.regex(r"(?:^|(?<=\s))[-–]\s+(?=[A-Za-z(])")
"""The items of a line that begins with a dash."""
_DASH = lazy.regex(r"\s+[-–—]+\s+")
_POSSESSIVE = lazy.regex(r"(?<=\w)['’]s\b")
"""Of a sign: "Brudzinski's"."""


@lru_cache(maxsize=4096)  # an order is matched against several charts
def one_line(order: str) -> str:
    """An order as one line: a list's lines, numbers and slashes become commas, a dash before an explanation a colon."""
    lines = [_NUMBERED.sub(", ", _undashed(line.strip())) for line in _unconditional(order)[0].split("\n")]
    line = _DASH.sub(": ", re.sub(r"(?:\s*[,;]\s*){2,}", ", ", ", ".join(lines)).strip(" ,;"))
    line = _POSSESSIVE.sub("", line)
    for written, meant in WRITTEN_OUT:
        line = written.sub(meant, line)
    return _SLASHED.sub(lambda found: _without_slashes(found[0]), line) if "/" in line else line


def _undashed(line: str) -> str:
    return _DASHED.sub(", ", line) if line[:1] in "-–" else line


_RESULT = (
    r"(?:positive|negative|abnormal|normal|non-?diagnostic|not diagnostic|inconclusive|indeterminate|equivocal|elevated"
    r"|raised|unclear|unremarkable|unrevealing|suspicious|borderline|confirmed|reactive|detected|shows?|too \w+"
    r"|high|low|falls?|drops?|rises?|above|below|present|absent|not possible|unavailable|contraindicated|reduced|seen"
    r"|persists?|(?:not )?found)\b"
)
_IF = lazy.regex(r"\b(?:if|unless|in case)\b", re.IGNORECASE)
_CONDITIONAL = lazy.regex(
    rf"\b(?:if|unless|in case)\b[^,;.]*?\b{_RESULT}[^,;.]*?,\s*(?:then\s+)?[^,;.]+"
    rf"|(?:\b(?:then|followed by|and|plus)\s+|[+&]\s*)?"
    rf"(?P<what>(?!\s*(?:if|unless|in case)\b)(?:(?!\b(?:then|followed by|and|plus)\b)[^,;.+&])*?\b"
    rf"(?:only )?(?:if|unless|in case)\b[^,;.]*?\b{_RESULT}(?:\([^)]*\)|[^,;.(])*)",
    re.IGNORECASE,
)
"""A test that is wanted only if another one has a certain result: "CT angiogram if positive"."""


def conditional(order: str) -> tuple[str, ...]:
    """The parts of an order that depend on a result; none if there is no other part."""
    return _unconditional(order)[1]


@lru_cache(maxsize=4096)
def _unconditional(order: str) -> tuple[str, tuple[str, ...]]:
    if not _IF.search(order):
        return order, ()
    waiting = tuple((found["what"] or found[0]).strip(" ,;.") for found in _CONDITIONAL.finditer(order))
    rest = _CONDITIONAL.sub("", order)
    return (rest, waiting) if reading(rest).named else (order, ())


_RATIO = lazy.regex(r"\bratio\b", re.IGNORECASE)
_SLASHED = lazy.regex(r"[^,;:()\[\]]*/[^,;:()\[\]]*")
_SLASH = lazy.regex(r"\s*/\s*(?!(?:kg|min|h|hr|hour|day|dose)\b)")


def _without_slashes(text: str) -> str:
    """Tests that are separated by slashes as a list: "CBC/BMP/TSH"; names with a slash, "PT/INR", stay as they are."""
    done, *rest = _SLASH.split(text)
    for piece in rest:
        last = done.rsplit(",", 1)[-1]
        apart = reading(last).phrases + reading(piece).phrases == reading(f"{last} {piece}").phrases
        apart = apart and not _RATIO.search(piece) and not _by_one_swab(last, piece)
        done += (", " if apart and _may_be_two(last, piece) else "/") + piece
    return done


def _may_be_two(last: str, piece: str) -> bool:
    """Whether a slash stands between two tests; one of them may be a word that we do not know: "LDH/hapto"."""
    both = (last, piece)
    alone = [_stands_alone(text) for text in both]
    reads = [reading(without_reason(text)) for text in both]
    examined = [only_sites(read) or set(read.by_kind) == {"systems"} for read in reads]
    if all(examined):
        return True  # "eyes/skin/joints for inflammation"
    unknown = [bool(_UNKNOWN.fullmatch(text)) and not reading(text).by_kind for text in both]
    return any(alone) and all(one or other for one, other in zip(alone, unknown, strict=True))


_UNKNOWN = lazy.regex(r"\s*[A-Za-z][A-Za-z0-9]{2,}\s*")


def _by_one_swab(last: str, piece: str) -> bool:
    """Whether germs are looked for in one specimen by one method: "vesicle swab VZV/HSV PCR"."""
    one, other = reading(last), reading(piece)
    germs = all(read.of("values") and read.of("values") <= GERMS for read in (one, other))
    return germs and "pcr" in other.of("tests") and "pcr" not in one.of("tests")


def _stands_alone(text: str) -> bool:
    read = reading(text)
    if read.by_kind and read.of("values") and read.of("values") <= CLASSES:
        return False  # "parvovirus IgM/IgG"
    if only_sites(read) and EXAM.search(text):
        return True  # "hearing/otoscopy"
    return is_measured(read) or any(read.of(kind) for kind in ("vitals", "parts", "methods", "systems"))
