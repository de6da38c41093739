"""What a doctor's model wrote, read as the words of one speaker.

Small models write the other speakers' lines as well, put a label before their own, and misspell the tokens. In a chat
the words are cut where someone else begins to speak, and the clinic answers a misspelled token; in the original's
transcript form nothing is changed and slips are only counted.

Control tokens are matched by substring in exact case, in this order: `DIAGNOSIS READY`, `REQUEST TEST`,
`REQUEST IMAGES`; anything else addresses the patient.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from agentclinic import lazy

DIAGNOSIS_READY = "DIAGNOSIS READY"
REQUEST_TEST = "REQUEST TEST"
REQUEST_IMAGES = "REQUEST IMAGES"
RESULTS = "RESULTS:"

ActionKind = Literal["question", "test", "images", "diagnosis", "none"]
"""`none` is an utterance that the clinic answers itself: empty, or with a token that is not written exactly."""


@dataclass(frozen=True)
class Action:
    """What a doctor's utterance does, and the part of it that matters for that."""

    kind: ActionKind
    content: str
    """The question, the name of the test, or the diagnosis; a diagnosis may be empty."""


def parse_action(utterance: str) -> Action:
    """Read an utterance: a diagnosis first, then a test, then images; otherwise it addresses the patient."""
    if DIAGNOSIS_READY in utterance:
        return Action("diagnosis", _named_after(utterance, DIAGNOSIS_READY))
    if REQUEST_TEST in utterance:
        return Action("test", _named_after(utterance, REQUEST_TEST))
    if REQUEST_IMAGES in utterance:
        return Action("images", utterance.strip())
    return Action("question", utterance.strip())


_PAIRS = (("[", "]"), ("<", ">"), ("(", ")"), ("{", "}"))


def _named_after(utterance: str, token: str) -> str:
    """The first line after the token, up to another token; if nothing follows, the text before the token."""
    before, _, after = utterance.partition(token)
    if token == REQUEST_TEST:
        after = after.removeprefix("S")  # REQUEST TESTS: also counts
    for other in (DIAGNOSIS_READY, REQUEST_TEST, REQUEST_IMAGES):
        after = after.partition(other)[0]
    for line in after.split("\n"):
        name = undecorated(line)
        if name:
            return name
    return undecorated(before)


def undecorated(text: str) -> str:
    """Strip what models put around a name: Markdown, quotes, a colon or dash, the brackets of our own template."""
    name = text.strip().lstrip(":-–—").strip(' \t*_`"').lstrip(":-–—").rstrip(":").strip(' \t*_`"')
    for opening, closing in _PAIRS:
        if name.startswith(opening) and name.endswith(closing) and opening not in name[1:]:
            name = name[1:-1].strip()
    return name


# A label is a whole word before a colon or "is": "ischemic stroke" does not start with one.
_LABEL = lazy.regex(
    r"^(?:(?:the|my)\s+)?(?:(?:single\s+)?(?:most likely|likeliest|final|principal|primary|leading)(?:\s+diagnosis)?"
    r"|diagnosis(?:\s+ready)?|(?:final\s+)?answer)\W*?(?:\bis\b|[:–—-])\s*",
    re.IGNORECASE,
)


# Markdown around the name: the marker of a list or a heading, a line that only formats, a link, emphasis.
_MARKER = lazy.regex(r"^\s*(?:[-*+>#]+\s+)*(?:\(?\d{1,2}[.)]\s+)?")
_NO_TEXT = lazy.regex(r"^\s*(?:```\w*|~~~\w*|[-=*_]{3,})\s*$")
_LINK = lazy.regex(r"\[([^\]]+)\]\([^)]*\)")
_STRONG = lazy.regex(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = lazy.regex(r"(?<!\w)(\*{1,3}|_{1,3}|`+)(?=\S)(.+?)(?<=\S)\1(?!\w)|</?(?:b|i|em|strong)>")
_HEADING = lazy.regex(
    r"^(?:the\s+|my\s+)?(?:(?:most likely|likeliest|final|principal|primary|leading)\s+)?"
    r"(?:diagnosis|answer|conclusion)$",
    re.IGNORECASE,
)
_LONGEST_LINE = 2000
"""Characters of a line in which Markdown is looked for: a name has far fewer."""


def name_in(answer: str) -> str:
    """The diagnosis in an answer: one line, without labels, Markdown and decoration; empty if there is none."""
    text = answer.rpartition(DIAGNOSIS_READY)[2] if DIAGNOSIS_READY in answer else answer
    for line in text.splitlines():
        if _NO_TEXT.match(line):
            continue
        name = _plain(line) if len(line) <= _LONGEST_LINE else line
        name = _MARKER.sub("", name.strip("*_`#>\"' ")).lstrip(":-– ")
        if not name or name.endswith(":") or _HEADING.match(name):  # a lead-in: the name follows
            continue
        name = _LABEL.sub("", name, count=1).strip("*_`\"' ")
        if name:
            return one_line(name).removesuffix(".").strip("*_`\"' ")
    return ""


def _plain(line: str) -> str:
    """A line without Markdown; if it sets one name in bold and explains it, only that name."""
    line = _LINK.sub(r"\1", _MARKER.sub("", line))
    strong = list(_STRONG.finditer(line))
    if len(strong) == 1:
        name, before, after = strong[0][2], line[: strong[0].start()].rstrip(), line[strong[0].end() :].strip()
        alone = (not before or before.endswith((" is", ":"))) and after[:1] in ("", ".", "-", "–", "—", ":")
        if alone and not name.endswith(":") and not _HEADING.match(name):
            return name
    return _EMPHASIS.sub(lambda found: found[2] or "", line)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def as_results(text: str) -> str:
    """A laboratory reply with the required opening."""
    stripped = text.strip()
    return stripped if stripped.startswith(RESULTS) else f"{RESULTS} {stripped}"


OTHER_SPEAKER = "other_speaker"
OWN_LABEL = "own_label"
NEAR_TOKEN = "near_token"
SEVERAL_TOKENS = "several_tokens"
PLACEHOLDER = "placeholder"
TOO_LONG = "too_long"
EMPTY = "empty"
REPEATED = "repeated"
UNCLEAR = "unclear_diagnosis"
SLIPS = {
    OTHER_SPEAKER: "wrote lines for another speaker",
    OWN_LABEL: "put a speaker's label before its own words",
    NEAR_TOKEN: "wrote a token inexactly",
    SEVERAL_TOKENS: "used more than one token",
    PLACEHOLDER: "wrote a token without a name, or with a placeholder",
    TOO_LONG: "went on for longer than an utterance may be",
    EMPTY: "said nothing of its own",
    REPEATED: "repeated an earlier utterance word for word",
    UNCLEAR: "gave a diagnosis that could not be read as one disease",
}
"""Kinds of slip, with what the model did."""

LONGEST = 20_000
"""Characters of an utterance that count, about 3,000 words: longer than any consultation note, and short enough to
be processed in a fraction of a second."""
_LEFT_OUT = "\n[...]\n"
_DECORATION = r"[\s*_#>\[(`\"]{0,40}+"
_LABEL_END = r"\.?[*_\])`\"]*\s*:"
_DOCTOR = "doctor|physician|dr|assistant"
_NOT_THE_DOCTOR = "patient|measurement|laboratory|lab|nurse|moderator|clinic|system|user|caregiver|results"
_TOKENS = (DIAGNOSIS_READY, REQUEST_TEST, REQUEST_IMAGES)
_NEAR = {
    DIAGNOSIS_READY: lazy.regex(r"\bdiagnosis[\s_-]*(?:is\s+)?ready\b|\bready[\s_-]+diagnosis\s*:", re.IGNORECASE),
    REQUEST_TEST: lazy.regex(
        r"(?:^|\n)\W{0,40}+(?:request(?:ing)?|order(?:ing)?)[\s_-]{0,40}(?:an?\s+|the\s+)?(?:\w{1,40}\s+)?tests?\s*:"
        r"|\btests?[\s_-]+request(?:ed)?\s*:|\brequest_tests?\b",
        re.IGNORECASE,
    ),
    REQUEST_IMAGES: lazy.regex(r"(?:^|\n)\W{0,40}+request(?:ing)?[\s_-]*(?:the\s+)?images?\s*(?::|$)", re.IGNORECASE),
}
_NEAR_FINAL = lazy.regex(r"(?:^|\n)\W{0,40}+(?:final\s+|my\s+)?diagnosis\s*:", re.IGNORECASE)
_PLACEHOLDER = lazy.regex(
    r"^\W*(?:(?:the\s+|your\s+|a\s+|one\s+)?(?:test|diagnosis|disease|examination|name)(?:[\s_](?:name|here))?"
    r"|name of (?:the|one|a) (?:test|disease|diagnosis)|\.\.\.|…)\W*$",
    re.IGNORECASE,
)
_LONGEST_PLACEHOLDER = 100
"""Characters: twice the longest placeholder, including brackets."""


@dataclass(frozen=True)
class Utterance:
    """The doctor's words that count, and what was wrong with the raw ones."""

    text: str
    action: Action
    slips: tuple[str, ...] = ()


def read_utterance(raw: str, earlier: Iterable[str] = (), *, cut: bool = True) -> Utterance:
    """Read what a doctor's model wrote; `earlier` has the same doctor's previous utterances.

    With `cut`, only its own words count and a near-token is not an action. Otherwise slips are counted, and the whole
    text counts as in the original.
    """
    text, own_slips, read = _read(raw, cut)
    words = _spoken(text)
    if text and words in map(_spoken, earlier):
        return replace(read, slips=(*own_slips, REPEATED, *read.slips[len(own_slips) :]))
    return read


@lru_cache(maxsize=512)  # the builtin doctor has some 500 utterances
def _read(raw: str, cut: bool) -> tuple[str, tuple[str, ...], Utterance]:
    """A doctor's own words, the slips in cutting them out, and the utterance as if it were the first."""
    text, slips = own_words(raw, _DOCTOR, _NOT_THE_DOCTOR)
    own_slips = tuple(slips)
    if not text:
        slips.append(EMPTY)
    token = _near_token(text)
    if token:
        slips.append(NEAR_TOKEN)
    if sum(text.count(each) for each in _TOKENS) > 1:
        slips.append(SEVERAL_TOKENS)
    action = parse_action(text)
    blank = action.kind in ("diagnosis", "test") and _is_placeholder(action.content)
    if blank:
        slips.append(PLACEHOLDER)
    if not cut:
        whole = shortened(raw)
        return text, own_slips, Utterance(whole, parse_action(whole), tuple(slips))
    if not text or token:
        action = Action("none", _exact_form(text, token) if token else "")
    elif blank:
        action = Action("none", f"{DIAGNOSIS_READY if action.kind == 'diagnosis' else REQUEST_TEST}:")
    return text, own_slips, Utterance(text, action, tuple(slips))


def shortened(text: str) -> str:
    """A text without its middle if it is too long: what a model means to do is at the beginning or the end."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - len(_LEFT_OUT)) // 2
    return f"{text[:half]}{_LEFT_OUT}{text[-half:]}"


def own_words(raw: str, own: str, others: str) -> tuple[str, list[str]]:
    """The speaker's own words: without its label, and up to the first line of another speaker or its own second one.

    `own` and `others` are labels, as alternatives in a regular expression.
    """
    text = shortened(raw.strip())
    slips = [TOO_LONG] if len(raw) > LONGEST else []
    label = _label(own, opening=True).match(text)
    if label:
        slips.append(OWN_LABEL)
        text = text[label.end() :]
    ends = [found.start() for found in (_label(others).search(text), _label(own).search(text)) if found]
    if ends:
        slips.append(OTHER_SPEAKER)
        text = text[: min(ends)]
    return text.strip(), slips


@lru_cache(maxsize=8)
def _label(names: str, *, opening: bool = False) -> re.Pattern[str]:
    """A speaker's label at the beginning of a line or, with any decoration after it, at the beginning of the text."""
    label = rf"{_DECORATION}(?:{names})(?:\s+(?:response|reply|answer))?{_LABEL_END}"
    return re.compile(rf"^{label}{_DECORATION}" if opening else rf"(?:^|\n){label}", re.IGNORECASE)


def _near_token(text: str) -> str | None:
    """The token that was meant, if one is written inexactly and none exactly."""
    if any(token in text for token in _TOKENS):
        return None
    meant = next((token for token, near in _NEAR.items() if near.search(text)), None)
    return meant or (DIAGNOSIS_READY if _NEAR_FINAL.search(text) else None)


def _exact_form(text: str, token: str) -> str:
    """What the speaker should have written: the token, and what followed its own version of it."""
    if token == REQUEST_IMAGES:
        return token
    found = _NEAR[token].search(text) or _NEAR_FINAL.search(text)
    name = undecorated((text[found.end() :].strip().split("\n") or [""])[0]) if found else ""
    return f"{token}: {name}".rstrip()


def _is_placeholder(name: str) -> bool:
    return not name or (len(name) <= _LONGEST_PLACEHOLDER and bool(_PLACEHOLDER.match(name)))


@lru_cache(maxsize=256)
def _spoken(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
