"""The control tokens, and the one function that reads a doctor's utterance.

Tokens are matched by substring in exact case, in this order: `DIAGNOSIS READY`, `REQUEST TEST`,
`REQUEST IMAGES`; anything else addresses the patient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


def as_results(text: str) -> str:
    """A laboratory reply with the required opening."""
    stripped = text.strip()
    return stripped if stripped.startswith(RESULTS) else f"{RESULTS} {stripped}"
