"""Reviews of cases by people or models: the checklist, the forms they fill in, and what all of them say together.

A form is a CSV file for a spreadsheet, with a row for each case and item. Reviews are kept as JSON lines.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agentclinic.cases.model import Case
from agentclinic.clinic.judge import by_code
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.errors import InputError
from agentclinic.files import read_limited
from agentclinic.jsonl import inert, read_json_lines
from agentclinic.scoring.judges.agreement import fleiss_estimate
from agentclinic.scoring.stats import Estimate, Proportion, share


class Item(StrEnum):
    """A row of the form."""

    BLIND_ANSWER = "blind_answer"
    BLIND_SURE = "blind_sure"
    SINGLE_ANSWER = "single_answer"
    FAIR_KEY = "fair_key"
    NO_GIVEAWAY = "no_giveaway"
    VALUES_UNITS = "values_units"
    PHYSIOLOGY = "physiology"
    TIMELINE = "timeline"
    DANGEROUS = "dangerous"
    TIER = "tier"
    REMARKS = "remarks"


QUESTIONS: Mapping[Item, str] = {
    Item.BLIND_ANSWER: "Before you open the answer: what is the diagnosis? Write it under remark.",
    Item.BLIND_SURE: "How sure are you of it, from 0 to 100? Write the number under remark.",
    Item.SINGLE_ANSWER: "Is the diagnosis the best single answer to this chart?",
    Item.FAIR_KEY: "Is the answer key fair? It accepts what a good doctor would say and rejects only what is wrong.",
    Item.NO_GIVEAWAY: "Is it free of giveaways? Neither the opening nor the patient nor a report names the disease.",
    Item.VALUES_UNITS: "Are values, units and reference ranges right for this patient?",
    Item.PHYSIOLOGY: "Do history, findings and results fit each other, the disease and the drugs?",
    Item.TIMELINE: "Is the course possible, and could each result be back when the doctor gets it?",
    Item.DANGEROUS: "Is it free of statements that would be dangerous if someone acted on them?",
    Item.TIER: "Is the tier right: core (any doctor must know it), hard, or resource-limited?",
    Item.REMARKS: "Anything else? Write it under remark.",
}
"""The checklist, in the order in which it is worked through; ok means yes."""
WORDS_ONLY = frozenset({Item.BLIND_ANSWER, Item.BLIND_SURE, Item.REMARKS})
"""Items that are answered in words, without a verdict."""
Verdict = Literal["ok", "problem", "unsure"]
Severity = Literal["minor", "major", "critical"]
SEVERITIES: Mapping[Severity, str] = {
    "minor": "it reads badly, but decides nothing",
    "major": "it could change a doctor's answer or a score",
    "critical": "the case must not be used as it is",
}
VERDICTS: tuple[Verdict, ...] = ("ok", "problem", "unsure")
COLUMNS = ("case_id", "digest", "reviewer", "item", "question", "verdict", "severity", "remark")
_FILLED_IN = ("verdict", "severity", "remark")
_NEEDED = frozenset(COLUMNS) - {"question", "reviewer"}
_BOOKKEEPING = frozenset({"canary", "lockbox", "version"})
"""Keys of a row that say nothing a reviewer judges: sealing a case does not make its reviews outdated."""
_MOST_SHOWN = 20
"""Errors that are listed; the rest are counted."""


def digest(case: Case) -> str:
    """Changes with anything in the row that a reviewer judges, annotations included.

    It begins with a letter and a hyphen, or a spreadsheet would read some digests as numbers.
    """
    exam = case.row.get("OSCE_Examination")
    row = {**case.row, **({"OSCE_Examination": _judged(exam)} if isinstance(exam, dict) else {})}
    text = json.dumps(_judged(row), ensure_ascii=False, sort_keys=True)
    return f"v-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _judged(row: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in row.items() if key not in _BOOKKEEPING}


class Review(BaseModel):
    """What one reviewer says about one item of one version of a case: a line of a file of reviews."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case_id: str = Field(min_length=1)
    digest: str = Field(min_length=1)
    """Of the version that was reviewed (`digest`)."""
    reviewer: str = Field(min_length=1)
    item: Item
    verdict: Verdict | None = None
    """Null for items that are answered in words."""
    severity: Severity | None = None
    """Of a problem."""
    remark: str = ""
    settled: str | None = None
    """How the author dealt with a problem, if not by changing the case; it is then no longer open."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.item in WORDS_ONLY:
            if self.verdict or self.severity:
                raise ValueError(f"{self.item} has no verdict and no severity; write under remark")
            if not self.remark:
                raise ValueError(f"{self.item} is empty; write under remark, or leave it out")
            if self.item is Item.BLIND_SURE:
                percent(self.remark)
        elif self.verdict is None:
            raise ValueError(f"the verdict is missing; write {', '.join(VERDICTS)}")
        elif self.verdict != "problem" and self.severity:
            raise ValueError(f"a severity belongs to a problem, but the verdict is {self.verdict}")
        elif self.verdict == "problem" and not (self.severity and self.remark):
            raise ValueError(f"a problem needs a severity ({', '.join(SEVERITIES)}) and a remark that says what it is")
        return self

    @property
    def about(self) -> tuple[str, str, Item]:
        return self.case_id, self.digest, self.item

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.about, self.reviewer)


def percent(text: str) -> float:
    """How sure a reviewer is, from 0 to 100."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ValueError(f"{text[:20]!r} is not a number from 0 to 100")
    return value


# --- forms and files ----------------------------------------------------------------------------------------------


def form_rows(cases: Iterable[Case], reviewer: str = "") -> Iterator[tuple[str, ...]]:
    """The rows of a form to fill in, in the order of `COLUMNS`."""
    for case in cases:
        version = digest(case)
        for item, question in QUESTIONS.items():
            yield case.name, version, reviewer, item.value, question, "", "", ""


def review_files(places: Iterable[Path]) -> list[Path]:
    """The files given, and the forms and files of reviews in the folders given."""
    found: list[Path] = []
    for place in places:
        inside = sorted(path for path in place.glob("*") if path.suffix in (".csv", ".jsonl")) if place.is_dir() else []
        if not inside and not place.is_file():
            raise InputError(f"{place}: {'has no .csv or .jsonl file' if place.is_dir() else 'there is no such file'}")
        found += inside or [place]
    return found


def read_reviews(
    files: Iterable[Path], cases: Mapping[str, Case], reviewer: str | None = None, *, outdated: bool = False
) -> list[Review]:
    """What is filled in; an error lists every line that cannot be used, with what to do.

    In a form, the version of the case must be the present one unless `outdated`; a file of reviews is also a history.
    """
    errors: list[str] = []
    versions = {name: digest(case) for name, case in cases.items()}
    first: dict[tuple[str, ...], tuple[Review, str]] = {}
    for file in files:
        form = file.suffix != ".jsonl"
        for place, entry in _form_entries(file, reviewer) if form else _line_entries(file):
            try:
                review = Review.model_validate(entry)
                _refuse_unknown(review, versions, outdated=outdated or not form)
                before, where = first.setdefault(review.key, (review, place))
                if before != review:
                    raise ValueError(f"{review.reviewer} says something else in {where}; keep one of the two")
            except ValidationError as error:
                errors.append(f"{place}: {_said(error)}")
            except ValueError as error:
                errors.append(f"{place}: {error}")
    if errors:
        more = [f"and {len(errors) - _MOST_SHOWN} more"] if len(errors) > _MOST_SHOWN else []
        raise InputError("\n".join(["nothing was imported:", *errors[:_MOST_SHOWN], *more]))
    return [review for review, _ in first.values()]


def _refuse_unknown(review: Review, versions: Mapping[str, str], *, outdated: bool) -> None:
    if review.case_id not in versions:
        raise ValueError(
            f"no case {review.case_id[:60]!r} to review here; name its data set with --dataset, or open the lockbox "
            "with --lockbox if it is there"
        )
    if not outdated and review.digest != versions[review.case_id]:
        raise ValueError(
            f"{review.case_id} has changed since this form was exported ({review.digest[:20]}, now "
            f"{versions[review.case_id]}); export it again and check it, or keep the verdict as one about the earlier "
            "version with --outdated"
        )


def _said(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    given = f"{str(first['input'])[:40]!r}: " if where and isinstance(first["input"], str) else ""
    return f"{where + ': ' if where else ''}{given}{said}"


def _line_entries(file: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    for number, entry in read_json_lines(file, "a review"):
        yield f"{file} line {number}", entry


def _form_entries(file: Path, reviewer: str | None) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The rows of a form in which something is filled in."""
    try:
        text = read_limited(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file}: not UTF-8 text; save it as CSV UTF-8 in the spreadsheet") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None
    # Spreadsheets write a semicolon where the comma is the decimal point.
    separator = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        head = [name.strip().lower() for name in next(rows, [])]
        if missing := [name for name in COLUMNS if name in _NEEDED and name not in head]:
            raise InputError(f"{file} line 1: no column {', '.join(missing)}; keep the first line of the exported form")
        for row in rows:
            cells = dict(zip(head, (inert(cell.strip().removeprefix("'")) for cell in row), strict=False))
            if not any(cells.get(name) for name in _FILLED_IN):
                continue
            place = f"{file} line {rows.line_num}"
            who = cells.get("reviewer") or reviewer
            if not who:
                raise InputError(f"{place}: no reviewer; fill in that column, or give --reviewer NAME")
            verdict, severity = (cells.get(name, "").lower() or None for name in ("verdict", "severity"))
            known = {name: cells.get(name, "") for name in ("case_id", "digest", "remark")}
            item = cells.get("item", "").lower()
            yield place, {**known, "reviewer": who, "item": item, "verdict": verdict, "severity": severity}
    except csv.Error as error:
        raise InputError(f"{file} line {rows.line_num}: not CSV ({error})") from None


class Merged(NamedTuple):
    reviews: list[Review]
    new: int
    replaced: int


def merge(kept: Iterable[Review], read: Iterable[Review]) -> Merged:
    """The reviews kept so far with new ones; what a reviewer says about the same version again replaces it."""
    merged = {review.key: review for review in kept}
    before = len(merged)
    replaced = 0
    for review in read:
        old = merged.get(review.key)
        if old is None or old.model_copy(update={"settled": None}) != review:
            replaced += old is not None and old != review
            merged[review.key] = review
    ordered = sorted(merged.values(), key=lambda one: (one.case_id, one.reviewer, list(Item).index(one.item)))
    return Merged(ordered, len(merged) - before, replaced)


# --- what they say together ---------------------------------------------------------------------------------------


class ItemCounts(BaseModel):
    """The verdicts on one item of the checklist."""

    item: Item
    ok: int
    problem: int
    unsure: int
    by_severity: dict[str, int]
    changed_since: int
    """Problems of cases that have changed since."""
    settled: int
    open: int
    """Problems of the present version that are not settled."""


class BlindAnswer(BaseModel):
    """A diagnosis that a reviewer gave before opening the answer."""

    case_id: str
    reviewer: str
    answer: str
    sure: float | None
    accepted: bool | None
    """By the rules of the builtin judge; null if they cannot read it."""
    why: str


class Summary(BaseModel):
    """What all reviews of a data set say together."""

    reviewers: list[str]
    cases: int
    """Cases with at least one review of the present version."""
    of_cases: int
    outdated_cases: int
    """Cases all of whose reviews are about earlier versions."""
    verdicts: int
    items: list[ItemCounts]
    agreement: Proportion
    """Of two reviewers' verdicts on the same item and version, how often both say ok or both say problem."""
    kappa: Estimate
    """Fleiss' kappa of these pairs."""
    blind: list[BlindAnswer]
    """To the present versions."""
    blind_accepted: Proportion
    """Of the blind answers that rules can read."""
    open_problems: list[Review]
    remarks: list[Review]


def summarize(reviews: Sequence[Review], cases: Mapping[str, Case]) -> Summary:
    """Count what was found and what is open, compare the reviewers, and judge their blind answers."""
    versions = {name: digest(case) for name, case in cases.items()}
    verdicts = [review for review in reviews if review.verdict]
    present = {review.case_id for review in reviews if _is_present(review, versions)}
    pairs = list(_pairs(verdicts))
    clusters = [case for case, _ in pairs]
    answers = [review for review in _of(Item.BLIND_ANSWER, reviews) if _is_present(review, versions)]
    blind = [_judged_blind(review, cases[review.case_id], reviews) for review in answers]
    return Summary(
        reviewers=sorted({review.reviewer for review in reviews}),
        cases=len(present),
        of_cases=len(cases),
        outdated_cases=len({review.case_id for review in reviews} - present),
        verdicts=len(verdicts),
        items=[_counts(item, [*_of(item, verdicts)], versions) for item in QUESTIONS if item not in WORDS_ONLY],
        agreement=share((case, yes != 1, 1) for case, yes in pairs),
        kappa=fleiss_estimate([yes for _, yes in pairs], 2, clusters),
        blind=blind,
        blind_accepted=share((one.case_id, bool(one.accepted), one.accepted is not None) for one in blind),
        open_problems=[review for review in verdicts if _is_open(review, versions)],
        remarks=[review for review in _of(Item.REMARKS, reviews) if _is_present(review, versions)],
    )


def _of(item: Item, reviews: Iterable[Review]) -> Iterator[Review]:
    return (review for review in reviews if review.item is item)


def _is_present(review: Review, versions: Mapping[str, str]) -> bool:
    return versions.get(review.case_id) == review.digest


def _is_open(review: Review, versions: Mapping[str, str]) -> bool:
    return review.verdict == "problem" and not review.settled and _is_present(review, versions)


def _counts(item: Item, verdicts: Sequence[Review], versions: Mapping[str, str]) -> ItemCounts:
    said = Counter(review.verdict for review in verdicts)
    problems = [review for review in verdicts if review.verdict == "problem"]
    severe = Counter(review.severity for review in problems)
    open_ = sum(_is_open(review, versions) for review in problems)
    changed = sum(not _is_present(review, versions) for review in problems)
    return ItemCounts(
        item=item,
        ok=said["ok"],
        problem=said["problem"],
        unsure=said["unsure"],
        by_severity={severity: severe[severity] for severity in SEVERITIES},
        changed_since=changed,
        settled=len(problems) - open_ - changed,
        open=open_,
    )


def _pairs(verdicts: Iterable[Review]) -> Iterator[tuple[str, int]]:
    """For each two reviewers of the same version and item, the case and how many of them see a problem.

    Someone who is unsure has not said either.
    """
    seen: dict[tuple[str, str, Item], list[bool]] = {}
    for review in verdicts:
        if review.verdict != "unsure":
            seen.setdefault(review.about, []).append(review.verdict == "problem")
    for (case, *_), said in seen.items():
        yield from ((case, sum(pair)) for pair in combinations(said, 2))


def _judged_blind(answer: Review, case: Case, reviews: Iterable[Review]) -> BlindAnswer:
    same = (answer.case_id, answer.digest, answer.reviewer)
    sure = next((r for r in _of(Item.BLIND_SURE, reviews) if (r.case_id, r.digest, r.reviewer) == same), None)
    verdict = by_code(JudgePayload(answer.remark, case.diagnosis, case.answer_key))
    return BlindAnswer(
        case_id=answer.case_id,
        reviewer=answer.reviewer,
        answer=answer.remark,
        sure=percent(sure.remark) if sure else None,
        accepted=verdict.correct,
        why=verdict.reason or "",
    )
