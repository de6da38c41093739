"""Reading a step that a doctor writes: its doubts, and what it wants to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentclinic import lazy
from agentclinic.jsonl import encodable, loads
from agentclinic.models.structured import at_most
from agentclinic.results.turn import Differential, Hypothesis, Source, as_differential
from agentclinic.results.utterance import DIAGNOSIS_READY, REQUEST_IMAGES, REQUEST_TEST, parse_action
from agentclinic.vocabulary.text import tidy

ASK_PATIENT = "ASK PATIENT"
READY_MESSAGE = "I'm ready to provide a diagnosis. Let me finalize my assessment."
ALLOWED = ("ASK PATIENT: <question>", "REQUEST TEST: <test>", "REQUEST IMAGES", "DIAGNOSIS READY")
FEWEST, MOST = 2, 4
"""Hypotheses in a step: a single one is not a doubt, and the original asks for two to four. At the end, one may stand
alone."""

_NO_NEWS = lazy.regex(
    r"(?:(?:there (?:is|are|was|were) )?no (?:new |further |more )?(?:relevant )?(?:facts?|information|data)"
    r"|no (?:new|further|additional|more) (?:relevant )?findings?|nothing(?: new| further| else)?|none|n/?a)"
    r"(?: (?:is|are|was|were|has been|have been))?"
    r"(?: (?:learned|learnt|obtained|gained|given|provided|recorded|reported|yet|so far"
    r"|in (?:this|the) (?:newest |last )?(?:reply|answer|result)|since (?:the|my) last step))*"
)


def fact_in(information: str) -> str:
    """What a doctor wrote as a fact; empty if it only says that there is none."""
    said = re.sub(r"\s+", " ", information).strip(" .;:!-–()[]\"'").lower()
    return "" if _NO_NEWS.fullmatch(said) else information.strip()


def _share(value: object) -> object:
    """A probability as models write it: 0.6, 60, "60 %"; None if it is not one."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(?:about|~|≈)?\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*", value)
        if found is None:
            return None
        value = float(found[1]) / (100 if found[2] else 1)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 1 < value <= 100:
            value = value / 100
        return float(value) if 0 <= value <= 1 else None
    return None


def _as_asked_for(schema: dict[str, Any]) -> None:
    """A probability is asked for; a call without one is still read."""
    schema["required"] = ["diagnosis", "probability"]
    del schema["properties"]["probability"]["anyOf"]
    schema["properties"]["probability"]["type"] = "number"


class Uncertainty(BaseModel):
    """One diagnosis that is still possible."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, json_schema_extra=_as_asked_for)

    diagnosis: str = Field(min_length=1, json_schema_extra=at_most(80))
    """The disease, by its usual name."""
    probability: Annotated[float | None, BeforeValidator(_share)] = None
    """0 to 1, of the disease, whatever its cause or subtype."""
    reason: str = Field(default="", json_schema_extra=at_most(160))
    """What speaks for or against it."""

    @property
    def said(self) -> str:
        """As written in a session's list of strings."""
        return f"{self.diagnosis} ({self.reason})" if self.reason else self.diagnosis


@dataclass(frozen=True)
class Doubts:
    """The differential of a step, item by item: as the doctor wrote it, and as understood."""

    said: tuple[str, ...]
    items: tuple[Uncertainty, ...]


NO_DOUBTS = Doubts((), ())


def read_uncertainties(given: str | Mapping[str, Any] | Sequence[Uncertainty | Mapping[str, Any] | str]) -> Doubts:
    """Read a differential given as text (`a, b (why), c` or `a: why; b: why`), as a list, or as reasons by name."""
    if isinstance(given, str):
        said = [item for part in _split(given) if (item := _MARKER.sub("", part).strip(" ,;\t"))]
        return Doubts(tuple(said), tuple(_from_text(item) for item in said))
    entries = _by_name(given) if isinstance(given, Mapping) else given
    if not isinstance(entries, Sequence):
        return NO_DOUBTS
    items = [read for read in map(_one, entries) if read is not None]
    return Doubts(tuple(said for said, _ in items), tuple(item for _, item in items))


def loosely(value: object) -> object:
    """A differential as models write it, made to fit the schema.

    Models write the list as JSON text, its entries as strings or as names with numbers, and percentages as numbers.
    """
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            value = loads(value, strict=False)
        except ValueError:
            return value
    if isinstance(value, Mapping):
        single = "diagnosis" in value
        value = [value] if single else _by_name(value)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return value
    return [item for _, item in filter(None, map(_one, _in_one_scale(list(value))))]


def _by_name(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A differential as an object: a probability or a reason for each name."""
    return [
        {"diagnosis": _MARKER.sub("", str(name)), "reason" if _share(value) is None else "probability": value}
        for name, value in given.items()
    ]


def _in_one_scale(entries: list[Any]) -> list[Any]:
    """If one number is over 1, all are percentages: in 70, 29, 1 the last is not a certainty."""
    numbers = [entry.get("probability") for entry in entries if isinstance(entry, Mapping)]
    if not any(isinstance(number, int | float) and 1 < number <= 100 for number in numbers):
        return entries
    return [
        {**entry, "probability": entry["probability"] / 100}
        if isinstance(entry, Mapping) and isinstance(entry.get("probability"), int | float)
        else entry
        for entry in entries
    ]


def _one(entry: object) -> tuple[str, Uncertainty] | None:
    if isinstance(entry, str):
        return (entry.strip(), _from_text(entry.strip())) if entry.strip() else None
    if not isinstance(entry, Uncertainty | Mapping):
        return None
    if not isinstance(entry, Uncertainty):
        known = {key: entry[key] for key in Uncertainty.model_fields if entry.get(key) is not None}
        for other in ("disease", "name") if "diagnosis" not in known else ():
            known |= {"diagnosis": entry[other]} if entry.get(other) else {}
        known |= {key: str(value).strip() for key, value in known.items() if key != "probability"}
        try:
            entry = Uncertainty.model_validate(known)
        except ValidationError:
            return None
    return entry.said, entry


_MARKER = lazy.regex(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")


def _split(text: str) -> list[str]:
    """The items of a list written as text; separators inside parentheses do not count."""
    lines = [_MARKER.sub("", line) for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return [item for line in lines for item in (_split(line) if _outside(line, ";") else [line.strip(" ;,")])]
    line = lines[0] if lines else ""
    if _outside(line, ";"):
        return [part.strip() for part in _cut(line, ";")]
    parts = _cut(line, ",")
    if not any(_outside(part, ":") for part in parts):
        return [part.strip() for part in parts]
    # "a: because of this, and that, b: why": a comma separates only if a new name with a colon follows.
    items: list[list[str]] = []
    for part in parts:
        if items and not _outside(part, ":"):
            items[-1].append(part)
        else:
            items.append([part])
    return [",".join(item).strip() for item in items]


def _outside(text: str, separator: str) -> bool:
    return len(_cut(text, separator)) > 1


def _cut(text: str, separator: str) -> list[str]:
    """Split at separators outside parentheses; if parentheses do not pair up, at every separator."""
    if text.count("(") != text.count(")") or text.count("[") != text.count("]"):
        return text.split(separator)
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == separator and depth <= 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


# A percentage is a probability if it is alone, first or last, or called one: not in "oxygen saturation 91 %" or
# "60 % stenosis".
_PERCENT = lazy.regex(
    r"(?:^\s*|(?:[,;–-]|\bp|\bprob(?:ability)?|\blikelihood|\bchance|\bconfidence)\s*(?:of|is|[=:~≈])?\s*)"
    r"(?:about|~|≈)?\s*(\d{1,3}(?:\.\d+)?)\s*%"
    r"(?=\s*(?:$|[,;:–-]|likely|likelihood|prob|chance|sure|certain|confiden))",
    re.IGNORECASE,
)
_NAMED_SHARE = lazy.regex(r"\bp(?:rob(?:ability)?)?\s*[=:~≈]?\s*(0?\.\d+|0|1(?:\.0+)?)(?![\d.])", re.IGNORECASE)
_BARE_SHARE = lazy.regex(r"^\s*(0?\.\d+|1\.0+)\s*$")
_IN_PARENTHESES = lazy.regex(r"^(?P<name>[^()]+?)\s*\((?P<reason>.*)\)\s*$", re.DOTALL)
_TRAILING_SHARE = lazy.regex(r"(?<=[^\s,=–-])[\s,=–-]+(?P<reason>\d{1,3}(?:\.\d+)?\s*%|0?\.\d+)\s*$")


def _from_text(item: str) -> Uncertainty:
    item = tidy(encodable(item))
    name, _, reason = item.partition(":") if _outside(item, ":") else (item, "", "")
    if not reason:
        if found := _IN_PARENTHESES.match(name):
            name, reason = found["name"], found["reason"]
        elif found := _TRAILING_SHARE.search(name):
            name, reason = name[: found.start()], found["reason"]
    for pattern in (_BARE_SHARE, _PERCENT, _NAMED_SHARE):
        number = pattern.search(reason)
        if number:
            share = _share(number[1] + ("%" if pattern is _PERCENT else ""))
            return Uncertainty(diagnosis=name.strip() or item.strip(), probability=share, reason=_rest(reason, number))
    return Uncertainty(diagnosis=name.strip() or item.strip(), reason=reason.strip())


def _rest(reason: str, number: re.Match[str]) -> str:
    left = reason[: number.start()] + reason[number.end() :]
    return re.sub(r"\s+", " ", left).strip(" ,;:–-")


def stated_differential(doubts: Doubts) -> Differential | None:
    """The differential as the doctor stated it, most likely first."""
    return as_differential(
        Source.STATED,
        (
            Hypothesis(diagnosis=item.diagnosis, probability=item.probability, reason=item.reason or None)
            for item in doubts.items
        ),
    )


@dataclass(frozen=True)
class NextStep:
    """What the doctor wants to do, and how it is said in the dialogue."""

    kind: Literal["ask", "test", "images", "ready"]
    utterance: str


_PREFIX = lazy.regex(r"^[\W_]*ASK[ _](?:THE )?PATIENT\b[\s:*_–-]*", re.IGNORECASE)
_TOKENS = (DIAGNOSIS_READY, REQUEST_TEST, REQUEST_IMAGES)


def read_action(action: str) -> NextStep | None:
    """Read a next step; None if it has no known form."""
    asked = _PREFIX.match(action)
    if asked:
        return as_question(action[asked.end() :])
    said = _in_capitals(action)
    found = parse_action(said)
    if found.kind == "diagnosis":
        return NextStep("ready", READY_MESSAGE)
    if found.kind == "test":
        return NextStep("test", f"{REQUEST_TEST}: {found.content}") if found.content else None
    if found.kind == "images":
        return NextStep("images", REQUEST_IMAGES)
    _, token, question = action.partition(f"{ASK_PATIENT}:")
    return as_question(question) if token else None


def as_question(text: str) -> NextStep | None:
    """Words to the patient, cut before a control token, which would be read as another action."""
    for token in _TOKENS:
        text = text.partition(token)[0]
    question = text.strip().strip('"“”').strip()
    return NextStep("ask", question) if question else None


def _in_capitals(action: str) -> str:
    """The action with its token in capitals, if it starts with one in another case."""
    for token in _TOKENS:
        if action.strip(" *_`\"'").upper().startswith(token):
            start = action.upper().index(token)
            return action[:start] + token + action[start + len(token) :]
    return action
