"""What the planner is asked for: diagnoses with weighted findings, or additions to a table of probabilities.

With `scoring: weights`, each plan is a whole weighted differential. With `scoring: bayes`, it is what is new in the
table that `table.py` keeps.

The docstrings of these classes are part of the JSON schema that the planner gets. Every string and list has a bound in
that schema, so that a small model on a server that enforces it cannot run on forever. Longer replies are not refused:
names are cut, and lists and utterances are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from agentclinic.vocabulary.denial import says_absent

MOST_HYPOTHESES = 10
MOST_FINDINGS = 10
"""The most a policy file may ask for, so that a reply holds at most a hundred findings."""
MOST_DISCRIMINATORS = 3
"""As many as the planner is asked for; the doctor would not read a longer list."""
_NAME = 80
_REQUEST = 160
_TOLD_APART = 4
_UTTERANCE = 600
"""Characters: three long sentences. llama.cpp turns a bound into as many grammar rules, and refuses more than 2000."""


FindingState = Literal["present", "absent", "unknown"]
_STATES: dict[str, FindingState] = {
    **dict.fromkeys(("present", "yes", "positive", "true", "confirmed", "found"), "present"),
    **dict.fromkeys(("absent", "no", "negative", "false", "denied", "denies", "none", "ruled out"), "absent"),
    **dict.fromkeys(("", "unknown", "unclear", "untested", "pending", "n/a", "na", "?", "null"), "unknown"),
}


def read_state(said: object) -> FindingState:
    """Whether a finding is present, absent or unknown; only a plain statement counts as known."""
    if isinstance(said, bool):
        return "present" if said else "absent"
    word = " ".join(str(said if said is not None else "").split()).strip(" .").lower()
    # "present (39 °C)", "no; denied twice": the state, then an explanation.
    for candidate in (word, re.split(r"[,;:(]| [-–—] ", word, maxsplit=1)[0].strip()):
        if candidate in _STATES:
            return _STATES[candidate]
    return "absent" if says_absent(word) else "unknown"


def read_share(said: object) -> float | None:
    """A probability, also as a percentage; None if it cannot be read."""
    try:
        text = str(said).strip()
        value = float(text.rstrip("% "))
    except ValueError:
        return None
    value = value / 100 if value > 1 or text.endswith("%") else value
    return value if 0 <= value <= 1 else None


def _cut(length: int) -> BeforeValidator:
    return BeforeValidator(lambda given: given.strip()[:length] if isinstance(given, str) else given)


Name = Annotated[str, _cut(_NAME), Field(min_length=1, max_length=_NAME)]


class _Planned(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)


class PlannedFinding(_Planned):
    """A finding that speaks for a hypothesis, and what is known of it."""

    finding: Name
    weight: int = Field(ge=1, le=5)
    """How much it tells, from 1 to 5."""
    expected: Literal["present", "absent"] = "present"
    """How it would be found if the hypothesis were true."""
    observed: FindingState = "unknown"
    """How it was found in this dialogue; unknown if it was not."""
    remark: SkipJsonSchema[str | None] = None
    """What was corrected in it; ours, not the planner's."""

    @model_validator(mode="before")
    @classmethod
    def _corrected(cls, given: object) -> object:
        """Move weights into the range 1 to 5, and read states in other words as one of the three."""
        if not isinstance(given, Mapping):
            return given
        data = dict(given)
        if "finding" not in data and isinstance(data.get("name"), str):
            data["finding"] = data.pop("name")
        observed = read_state(data.get("observed"))
        expected = "absent" if read_state(data.get("expected", "present")) == "absent" else "present"
        corrected = {"weight": _fitting(data.get("weight")), "expected": expected, "observed": observed}
        remarks = [
            f"{key} {_short(data[key])} taken as {value}" if key in data else f"no {key}, taken as {value}"
            for key, value in corrected.items()
            if _changed(data.get(key), value) and (key == "weight" or data.get(key) is not None)
        ]
        name = str(data.get("finding", "")).strip()[:60]
        return {**data, **corrected, "remark": f"{name}: {', '.join(remarks)}" if remarks else None}


def _fitting(weight: object) -> int:
    """The nearest weight from 1 to 5; 1 if it is not a number."""
    try:
        return round(min(5.0, max(1.0, float(weight))))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 1


def _changed(said: object, taken: object) -> bool:
    return said != taken and str(said).strip().lower() != str(taken)


def _short(value: object) -> str:
    return repr(value)[:40]


class PlannedHypothesis(_Planned):
    """A diagnosis with the findings that would speak for it."""

    diagnosis: Name
    findings: list[PlannedFinding] = Field(json_schema_extra={"maxItems": MOST_FINDINGS})


class Discriminator(_Planned):
    """A question or test that tells hypotheses apart."""

    request: Annotated[str, _cut(_REQUEST), Field(min_length=1, max_length=_REQUEST)]
    """A question to the patient, or a test as REQUEST TEST: and its name."""
    tells_apart: list[Name] = Field(default_factory=list, json_schema_extra={"maxItems": _TOLD_APART})
    """The diagnoses it separates."""


_Optional = BeforeValidator(lambda given: given.strip()[:_NAME] if isinstance(given, str) else "")
Danger = Annotated[
    str,
    _Optional,
    Field(
        description="The diagnosis that would be most dangerous to miss and is not excluded yet; empty if there is "
        "none.",
        json_schema_extra={"maxLength": _NAME},
    ),
]


class WeightedDifferential(BaseModel):
    """What a planner is asked for: diagnoses with weighted findings."""

    hypotheses: list[PlannedHypothesis] = Field(json_schema_extra={"maxItems": MOST_HYPOTHESES})
    danger: Danger = ""


class PlannerReply(WeightedDifferential):
    """A weighted differential, and what would tell its leaders apart."""

    discriminators: list[Discriminator] = Field(
        default_factory=list, json_schema_extra={"maxItems": MOST_DISCRIMINATORS}
    )
    """What would best tell the leading diagnoses apart."""


class Discriminators(BaseModel):
    """What tells close hypotheses apart, asked for on its own."""

    discriminators: list[Discriminator] = Field(json_schema_extra={"maxItems": MOST_DISCRIMINATORS})


Words = Annotated[
    str,
    Field(
        description="What you say as the doctor: one question to the patient, REQUEST TEST: and the name of a test, or "
        "DIAGNOSIS READY: and the disease.",
        json_schema_extra={"maxLength": _UTTERANCE},
    ),
]


class PlanThenSpeak(PlannerReply):
    """A plan, and then what the doctor says."""

    utterance: Words


class WeighThenSpeak(WeightedDifferential):
    """A weighted differential, and then what the doctor says."""

    utterance: Words


Plan = TypeVar("Plan", bound=WeightedDifferential)
Sized = TypeVar("Sized", bound=BaseModel)
FINDINGS_TO_SPARE = 2
"""How many findings more than required a diagnosis may list: a small model fills whatever room it is given."""


@lru_cache(maxsize=64)
def sized(shape: type[Plan], diagnoses: tuple[int, int], findings: int) -> type[Plan]:
    """The shape with the policy's own numbers as bounds: fewest and most diagnoses, and findings for each.

    The bounds are in the schema only. A reply of another size is still read, and judged by the engine.
    """
    most = min(findings + FINDINGS_TO_SPARE, MOST_FINDINGS)
    hypothesis = _with_list(PlannedHypothesis, "findings", PlannedFinding, (findings, most))
    return _with_list(shape, "hypotheses", hypothesis, diagnoses)


def _with_list(shape: type[Sized], name: str, item: type[BaseModel], bounds: tuple[int, int]) -> type[Sized]:
    items: Any = list[item]  # type: ignore[valid-type]
    fewest, most = bounds
    extra = Field(json_schema_extra={"minItems": fewest, "maxItems": most} if fewest else {"maxItems": most})
    fields: Any = {name: (items, extra)}
    return cast("type[Sized]", create_model(shape.__name__, __base__=shape, __doc__=shape.__doc__, **fields))


# --- scoring: bayes ---------------------------------------------------------------------------------------------------

_GROUP = 30
MOST_NEW = 10
"""Findings that one plan may add."""
Word = Literal["almost never", "rarely", "sometimes", "often", "usually", "almost always"]
TableState = Literal["present", "absent", "unknown", "unavailable"]
_NOT_TO_BE_HAD = re.compile(r"\b(?:unavailable|not available|pending|not (?:possible|done|back)|cannot be)\b", re.I)


def read_table_state(said: object) -> TableState:
    """A state of the table; a result that is pending or cannot be had is unavailable."""
    return "unavailable" if isinstance(said, str) and _NOT_TO_BE_HAD.search(said) else read_state(said)


State = Annotated[TableState, BeforeValidator(read_table_state)]
_Said = BeforeValidator(lambda given: given.strip() if isinstance(given, str) else str(given))
Rated = Annotated[str, _Said, Field(json_schema_extra={"enum": list(get_args(Word))})]
"""One of the words; another one is read as far as possible, by `table.py`."""
Of = Annotated[str, _Said, Field(json_schema_extra={"maxLength": _NAME})]


class Prior(_Planned):
    """A hypothesis, and how probable it is from what is known at the door alone."""

    diagnosis: Name
    prior: Annotated[float | None, BeforeValidator(read_share)] = Field(
        default=None, json_schema_extra={"minimum": 0, "maximum": 1}
    )
    like: Annotated[str, _Optional, Field(json_schema_extra={"maxLength": _NAME})] = ""
    """The letter of the hypothesis whose ratings it takes where it has none."""


class Rating(_Planned):
    """How expected a finding is under one hypothesis."""

    of: Of
    """The letter of the hypothesis, other, or rest for all that are not named."""
    how: Rated
    """How often the finding is present if it is the right one."""


class NewFinding(_Planned):
    """A finding that tells the hypotheses apart."""

    finding: Name
    request: Annotated[str, _cut(_REQUEST), Field(json_schema_extra={"maxLength": _REQUEST})] = ""
    """The question that finds it out, or REQUEST TEST: and the name of the test."""
    group: Annotated[str, _cut(_GROUP), Field(json_schema_extra={"maxLength": _GROUP})] = ""
    """A label shared by findings that go together; empty if it stands alone."""
    ratings: list[Rating] = Field(default_factory=list, json_schema_extra={"maxItems": MOST_HYPOTHESES + 1})
    """For every hypothesis and for other."""
    observed: State = "unknown"

    @field_validator("ratings", mode="before")
    @classmethod
    def _as_list(cls, given: object) -> object:
        """Ratings by hypothesis, in place of a list, and without those that cannot be read."""
        if isinstance(given, Mapping):
            given = [{"of": of, "how": how} for of, how in given.items()]
        return _readable(Rating, given)[0]


class OldRating(Rating):
    """A rating that a finding of the table lacks, or that is corrected."""

    finding: Of
    """The number of the finding."""


class Seen(_Planned):
    """What has become known of a finding of the table."""

    finding: Of
    """The number of the finding."""
    observed: State


class TableReply(BaseModel):
    """What is new in the table."""

    hypotheses: list[Prior] = Field(default_factory=list, json_schema_extra={"maxItems": MOST_HYPOTHESES})
    """New ones only."""
    findings: list[NewFinding] = Field(default_factory=list, json_schema_extra={"maxItems": MOST_NEW})
    """New ones only."""
    ratings: list[OldRating] = Field(default_factory=list, json_schema_extra={"maxItems": 4 * MOST_NEW})
    """For cells marked ?, for the findings of the table under new hypotheses, and corrections."""
    observed: list[Seen] = Field(default_factory=list, json_schema_extra={"maxItems": MOST_NEW})
    """What has become known of findings of the table."""
    withdraw: list[Of] = Field(default_factory=list, json_schema_extra={"maxItems": MOST_NEW})
    """Numbers of findings that should not count."""
    danger: Danger = ""
    unread: SkipJsonSchema[int] = 0
    """Entries that could not be read; ours, not the planner's."""

    @model_validator(mode="before")
    @classmethod
    def _what_can_be_read(cls, given: object) -> object:
        """The entries that can be read. Each list may be left out, but an object with none of them is not a plan."""
        if not isinstance(given, Mapping):
            return given
        if {*_LISTS, "withdraw"}.isdisjoint(given):
            raise ValueError("hypotheses, findings, ratings and observed are missing")
        kept, lost = dict(given), 0
        for name, item in _LISTS.items():
            kept[name], left_out = _readable(item, given.get(name) or [])
            lost += left_out
        return {**kept, "unread": lost}

    @field_validator("withdraw", mode="before")
    @classmethod
    def _numbers(cls, given: object) -> object:
        """A single number, or none, in place of a list."""
        return given if isinstance(given, list) else [] if given is None else [given]


_LISTS: dict[str, type[BaseModel]] = {
    "hypotheses": Prior,
    "findings": NewFinding,
    "ratings": OldRating,
    "observed": Seen,
}


def _readable(item: type[BaseModel], given: object) -> tuple[list[BaseModel], int]:
    """The entries of a list that have the right shape, and how many have not."""
    read, lost = list[BaseModel](), 0
    for entry in given if isinstance(given, list) else [given]:
        try:
            read.append(item.model_validate(entry))
        except ValidationError:
            lost += 1
    return read, lost


class TableThenSpeak(TableReply):
    """What is new in the table, and then what the doctor says."""

    utterance: Words


Added = TypeVar("Added", bound=TableReply)


@lru_cache(maxsize=64)
def sized_table(shape: type[Added], hypotheses: int) -> type[Added]:
    """The shape with the policy's own bound on new hypotheses, in the schema only."""
    return _with_list(shape, "hypotheses", Prior, (0, hypotheses))


class Spoken(BaseModel):
    """The utterance alone, for a reply whose plan cannot be read."""

    utterance: str
