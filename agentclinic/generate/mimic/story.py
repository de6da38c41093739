"""What a case may tell of the patient's story: the history in a note, or the triage words; never the diagnosis."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from agentclinic.generate.mimic.results import REMOVED
from agentclinic.vocabulary.text import sentences

Gives = Callable[[str], bool]
"""Whether a text gives the diagnosis away."""

# Headings of discharge notes. Only the history is used; the rest was written knowing how the stay ended.
_TOLD = {
    "chief complaint": "Chief complaint",
    "history of present illness": "History of present illness",
    "hpi": "History of present illness",
    "past medical history": "Past medical history",
    "pmh": "Past medical history",
    "past surgical history": "Past surgical history",
    "social history": "Social history",
    "family history": "Family history",
}
_DRUGS = "medications on admission"
# Headings that may have text after the colon; any other line that ends in a colon opens a section that is left out.
_HEADINGS = (
    *_TOLD,
    _DRUGS,
    *("name", "unit no", "admission date", "discharge date", "date of birth", "sex", "service", "allergies"),
    "attending",
    *("major surgical or invasive procedure", "review of systems", "ros", "physical exam", "pertinent results"),
    *("brief hospital course", "hospital course", "discharge medications", "discharge disposition", "facility"),
    *("discharge diagnosis", "discharge diagnoses", "discharge condition", "discharge instructions"),
    *("followup instructions", "follow-up instructions", "transitional issues", "impression", "assessment and plan"),
    *("active issues", "chronic issues", "acute issues", "imaging", "studies", "micro", "microbiology", "ed course"),
)
_KNOWN = "|".join(sorted(map(re.escape, _HEADINGS), key=len, reverse=True))
_HEADING = re.compile(
    rf"^[ \t]*(?:(?P<known>{_KNOWN})[ \t]*:[ \t]*(?P<rest>.*)"
    r"|(?P<other>[A-Z][\w /&,'()\-]{1,60}):[ \t]*)$",
    re.IGNORECASE | re.MULTILINE,
)

# From here on, a history tells what the hospital found and did.
_COURSE = re.compile(
    r"\b(?:in|to|at|from|via|on arrival (?:to|in|at)|upon arrival (?:to|in|at)) (?:the |our |an? )?"
    r"(?:ED|ER|E\.D\.|emergency (?:department|room)|OSH|outside hospital|ICU|MICU|SICU|CCU|floor|wards?)\b"
    r"|\b(?:ED|ER|hospital) course\b|\binitial (?:vitals|vital signs|VS)\b"
    r"|\b(?:vitals|vital signs|VS)\s*(?:on|were|:|-)"
    r"|\b(?:on|upon) (?:arrival|presentation|admission|transfer)\b",
    re.IGNORECASE,
)
# What a sentence must not report: results, readings of pictures, conclusions and treatment.
_TEST = re.compile(
    r"\b(?:labs?|laborator\w+|CT|CTA|CTPA|MRI|MRCP|MRA|CXR|x-?rays?|EKG|ECG|TTE|TEE|echo\w*|ultrasound|US|imaging|scans?"
    r"|biops\w+|cath\w*|angiogra\w+|ERCP|EGD|endoscop\w+|colonoscop\w+|cultures?|patholog\w+)\b",
    re.IGNORECASE,
)
_SHOWED = re.compile(
    r"\b(?:show\w*|reveal\w*|demonstrat\w*|notable|significant|consistent|concern\w*|suggest\w*|positive|read|found|with|was|were)\b",
    re.IGNORECASE,
)
_CONCLUDED = re.compile(
    r"\b(?:diagnosed with|diagnosis of|found to have|found to be|consistent with|concern(?:ing)? for|suspicious for"
    r"|impression|ruled in|given the finding|was (?:given|started on|admitted|transferred|intubated|taken to))\b",
    re.IGNORECASE,
)
_SOMEBODY = re.compile(rf"\b(?:Mr|Mrs|Ms|Miss|Dr)\.?\s*{REMOVED}", re.IGNORECASE)
_OLD = re.compile(
    rf"\b(?:an?\s+)?{REMOVED}[\s-]*(?:years?|yrs?|y)[\s/-]*(?:olds?|o)?\b\.?\s*(?=(?P<who>[A-Za-z]+))?", re.IGNORECASE
)
_SOMEONE_WITH = re.compile(rf"^\W*{REMOVED}\s*(?=(?:with|w/|who|has|is|was|presents?|presented)\b)", re.IGNORECASE)
_SOMEWHERE = re.compile(
    rf"\s*\b(?:at|to|from|by|on|in|since|of|with Dr\.?|until|around)\s+(?:the\s+)?{REMOVED}", re.IGNORECASE
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b(?:19|20|21|22)\d\d\b")


def sections(note: str) -> dict[str, str]:
    """The sections of a note by lower-case heading; the first of each heading."""
    found: dict[str, str] = {}
    marks = list(_HEADING.finditer(note))
    ends = [*(mark.start() for mark in marks[1:]), len(note)]
    for mark, end in zip(marks, ends, strict=False):  # a note without headings ends but has no marks
        heading = (mark["known"] or mark["other"]).strip().lower()
        text = f"{mark['rest'] or ''}\n{note[mark.end() : end]}".strip()
        found.setdefault(heading, text)
    return found


def note_story(note: str, gives_away: Gives) -> tuple[str, ...]:
    """The history in a discharge note, section by section, in its own sentences; empty if none is left."""
    found = sections(note)
    story: dict[str, str] = {}
    for heading, name in _TOLD.items():
        if name not in story and heading in found:
            told = _kept(found[heading], gives_away, is_list=not name.startswith("History"))
            if told:
                story[name] = told
    if not {"Chief complaint", "History of present illness"} & story.keys():
        return ()
    return tuple(f"{name}: {text}" for name, text in story.items())


def _kept(text: str, gives_away: Gives, *, is_list: bool) -> str:
    """A section without gaps, hospital findings, and what gives the diagnosis away."""
    kept: list[str] = []
    for sentence in _parts(text, is_list=is_list):
        if not is_list and _COURSE.search(sentence):
            break
        plain = without_gaps(sentence)
        if plain and not _reports(plain) and not gives_away(plain):
            kept.append(plain)
    return ("; " if is_list else " ").join(kept)


def _reports(sentence: str) -> bool:
    """Whether a sentence says what a test showed, what was concluded or how the patient was treated."""
    test = _TEST.search(sentence)  # the first is enough: what a later one showed also comes after it
    return bool((test and _SHOWED.search(sentence, test.end())) or _CONCLUDED.search(sentence))


def _parts(text: str, *, is_list: bool) -> list[str]:
    if is_list:
        return [line.strip(" -*•;\t") for line in text.splitlines() if re.search(r"\w", line)]
    # Notes break lines anywhere; an empty line ends a paragraph.
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    # Names first: "Ms. ___ is" must not end a sentence after "Ms.", but after any other period a gap begins one.
    named = (_SOMEBODY.sub("the patient", part) for part in paragraphs)
    return [one for part in named for one in sentences(re.sub(rf"(?<=[.!?])\s+(?={REMOVED})", "\n", part))]


def without_gaps(sentence: str) -> str:
    """A sentence without its gaps if they are a name, an age, a place or a time; empty if anything else was removed."""
    plain = _SOMEBODY.sub("the patient", " ".join(sentence.split()))
    plain = _OLD.sub(lambda found: "a " if found["who"] else "an adult ", plain)
    plain = _SOMEWHERE.sub("", _SOMEONE_WITH.sub("the patient ", plain))
    if REMOVED in plain or _DATE.search(plain):
        return ""
    plain = re.sub(r"\s+([.,;])", r"\1", " ".join(plain.split()))
    return plain if re.search(r"[A-Za-z]{2}", plain) else ""


def note_drugs(note: str, gives_away: Gives) -> tuple[str, ...]:
    lines = sections(note).get(_DRUGS, "").splitlines()
    numbered = [re.sub(r"^\s*\d+\.\s*", "", line).strip() for line in lines if re.match(r"\s*\d+\.\s*\S", line)]
    return tuple(dict.fromkeys(line for line in numbered if REMOVED not in line and not gives_away(line)))


# Words in a triage line that are not complaints.
_NO_COMPLAINT = re.compile(
    r"^(?:transfer|abnormal labs?|unknown-?cc.*|no chief complaint|evaluation|xfer)$", re.IGNORECASE
)


def complaints(triage: str, gives_away: Gives) -> tuple[str, ...]:
    """The complaints in a triage line that do not name the diagnosis."""
    parts = (part.strip() for part in re.split(r"[,;]", triage))
    return tuple(
        dict.fromkeys(
            part
            for part in parts
            if len(re.findall(r"[A-Za-z]", part)) > 1
            and REMOVED not in part
            and not _NO_COMPLAINT.match(part)
            and not gives_away(part)
        )
    )


def drug_names(names: Iterable[str | None], gives_away: Gives) -> tuple[str, ...]:
    plain = (" ".join((name or "").split()) for name in names)
    return tuple(dict.fromkeys(name for name in plain if name and REMOVED not in name and not gives_away(name)))
