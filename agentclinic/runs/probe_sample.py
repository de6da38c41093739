"""Trying a model as grounded patient and laboratory, on a shipped sample of marked questions and orders.

The sample is for development: the marks are one reader's, and our matcher was developed with other questions about the
same charts. This favors the matcher, so that `grounded` is recommended too rarely rather than too often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic import answers, laboratory
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.prompts import Prompt, load_prompt, user_prompts
from agentclinic.config import RunSettings
from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.models.base import FATAL, Model, ModelError
from agentclinic.results.turn import NOTHING_ASKED, Turn, Usage
from agentclinic.results.utterance import REQUEST_TEST
from agentclinic.runs.campaign import Outage
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.shards import OUTAGE
from agentclinic.scoring.choices import Counts, Marked, added, count, f1_difference
from agentclinic.scoring.format import number
from agentclinic.scoring.stats import Estimate

SAMPLE = Path(__file__).parent.parent / "cases" / "bundled" / "probe.jsonl"
DATASET = "OpenOSCE_1"
WORKERS = 4
"""Requests at once unless the user sets `workers`: a hosted endpoint allows more, and a small local server queues."""
MOST_UNANSWERED = 0.1
"""With a larger share of rows without an answer, those that remain may be the easy ones."""

Role = Literal["patient", "measurement"]


ROLES: tuple[Role, ...] = ("patient", "measurement")


class EnoughError(ModelError):
    """No further request may be sent; the row in progress is left out."""

    kind = "enough"


@dataclass(frozen=True)
class Row:
    """A question or an order about a case, and the facts that answer it."""

    role: Role
    case: Case
    said: str
    marked: Marked


@dataclass(frozen=True)
class Answer:
    """What a model told for one row."""

    row: Row
    told: frozenset[str] | None
    """Paths of the facts; None if the request failed."""
    by_code: bool = False
    """Code had to find the words (patient) or the matcher had to choose (laboratory)."""
    failed: str | None = None
    """The kind of error."""
    usage: Usage = NOTHING_ASKED


@dataclass(frozen=True)
class Trial:
    answers: tuple[Answer, ...]
    rows: int
    stopped: str | None = None
    """Why the rest was not tried."""
    interrupted: bool = False

    @property
    def usage(self) -> Usage:
        return reduce(lambda total, answer: total + answer.usage, self.answers, NOTHING_ASKED)


class Figures(BaseModel):
    """How well one chooser did; null if it cannot be computed."""

    precision: float | None
    recall: float | None
    f1: float | None


class Compared(BaseModel):
    """The model beside the matcher, on the rows that the model answered."""

    rows: int
    failed: dict[str, int]
    """Rows without an answer, by kind of error."""
    by_code: int
    model: Figures
    matcher: Figures
    f1_difference: Estimate
    """F1 of the model minus the matcher's."""

    @property
    def verdict(self) -> Literal["better", "worse", "about the same", "unknown"]:
        """Whether the 95% interval of the difference is above or below 0."""
        low, high = self.f1_difference.low, self.f1_difference.high
        if low is None or high is None:
            return "unknown"
        return "better" if low > 0 else "worse" if high < 0 else "about the same"


class Result(BaseModel):
    """What the sample shows about a model."""

    questions: Compared
    orders: Compared
    together: Compared
    not_tried: int
    stopped: str | None
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    recommended: dict[Role, Literal["grounded", "voiced"]]
    """How each role should be played."""
    because: dict[Role, str]


def probe_sample() -> list[Row]:
    cases = {case.id: case for case in load_cases(DATASET)}
    rows = []
    for line, entry in read_json_lines(SAMPLE):
        case = cases.get(entry["case"])
        if case is None:
            raise InputError(f"{SAMPLE.name}, line {line}: scenario {entry['scenario_id']} of {DATASET} has changed")
        marked = Marked(frozenset(entry["paths"]), frozenset(entry.get("equivalent", ())))
        rows.append(Row(entry["role"], case, entry["said"], marked))
    return rows


def chosen_by_matcher(row: Row) -> frozenset[str]:
    if row.role == "patient":
        asked = answers.payload_of(row.case, row.said)
        return frozenset(path for part in answers.matched(asked) for path in part.disclosure.paths)
    ordered = LaboratoryPayload(row.case.exam_facts, row.said, "unavailable")
    return frozenset(fact.path for item in laboratory.matched(ordered) for fact in item.facts)


async def try_model(
    model: Model,
    rows: Sequence[Row],
    run: RunSettings | None = None,
    *,
    prompts: Mapping[str, Prompt] | None = None,
    workers: int = WORKERS,
    progress: Progress | None = None,
) -> Trial:
    """Ask a model every row as a run with `simulator: grounded` would; failures are counted, not raised."""
    run, progress = run or RunSettings(), progress or Progress()
    texts = prompts or probe_prompts(run)
    pool = Pool(workers, progress.say, what="requests")
    outage = Outage(workers, None)
    answers: dict[int, Answer] = {}

    async def work(place: int) -> None:
        row = rows[place]
        try:
            answers[place] = _answer(row, await _ask(model, row, run, texts))
            outage.answered()
        except EnoughError as error:
            pool.stop(str(error))
            return
        except ModelError as error:
            answers[place] = Answer(row, None, failed=error.kind, usage=error.usage or Usage())
            gone = error.kind in OUTAGE and await outage.failed(row.role, str(error)) is not None
            if gone or error.kind in FATAL:
                pool.stop(str(error))
        failed = sum(answer.failed is not None for answer in answers.values())
        progress.advance(f"{failed} failed" if failed else "")

    names = {"patient": "questions", "measurement": "orders"}
    progress.start(len(rows), 0, " and ".join(names[role] for role in ROLES if any(row.role == role for row in rows)))
    try:
        await pool.work_off(one_by_one(range(len(rows))), work)
    finally:
        progress.stop()
    in_order = tuple(answers[place] for place in sorted(answers))
    return Trial(in_order, len(rows), pool.reason if len(in_order) < len(rows) else None, pool.interrupted)


def probe_prompts(run: RunSettings) -> dict[str, Prompt]:
    """The prompt files that patient and laboratory are tried with."""
    folder = user_prompts(run.prompts_dir)
    return {role: load_prompt(role, folder).completed() for role in ROLES}


async def _ask(model: Model, row: Row, run: RunSettings, prompts: Mapping[str, Prompt]) -> Turn:
    prompt = prompts[row.role]
    if row.role == "patient":
        patient = Patient(row.case, model, prompt, silent_symptom=run.silent_symptom, simulator="grounded")
        return await patient.answer(row.said)
    laboratory = Laboratory(row.case, model, prompt, missing_test="unavailable", simulator="grounded")
    return await laboratory.report(row.said, f"{REQUEST_TEST}: {row.said}")


def _answer(row: Row, turn: Turn) -> Answer:
    details = turn.details or {}
    told = frozenset(path for part in turn.disclosures for path in part.paths)
    by_code = "code" in (details.get("worded_by"), details.get("chosen_by"))
    return Answer(row, told, by_code, usage=turn.usage or NOTHING_ASKED)


def result_of(trial: Trial, rows: Sequence[Row]) -> Result:
    """What a trial on these rows shows."""
    by_role = {role: [answer for answer in trial.answers if answer.row.role == role] for role in ROLES}
    questions, orders = (compared(by_role[role]) for role in ROLES)
    found = {"patient": questions, "measurement": orders}
    advice = {role: recommend(found[role], sum(row.role == role for row in rows)) for role in ROLES}
    return Result(
        questions=questions,
        orders=orders,
        together=compared(trial.answers),
        not_tried=trial.rows - len(trial.answers),
        stopped=trial.stopped,
        requests=trial.usage.requests,
        input_tokens=trial.usage.input_tokens,
        output_tokens=trial.usage.output_tokens,
        recommended={role: simulator for role, (simulator, _) in advice.items()},
        because={role: why for role, (_, why) in advice.items()},
    )


def compared(answers: Sequence[Answer]) -> Compared:
    """The answers beside what the matcher chose for the same rows."""
    told = [(answer, answer.told) for answer in answers if answer.told is not None]
    model = [count(paths, answer.row.marked) for answer, paths in told]
    matcher = [count(chosen_by_matcher(answer.row), answer.row.marked) for answer, _ in told]
    return Compared(
        rows=len(answers),
        failed=dict(Counter(answer.failed for answer in answers if answer.failed is not None)),
        by_code=sum(answer.by_code for answer in answers),
        model=figures(model),
        matcher=figures(matcher),
        f1_difference=f1_difference(model, matcher),
    )


def figures(counts: Sequence[Counts]) -> Figures:
    whole = added(counts)
    return Figures(precision=whole.precision, recall=whole.recall, f1=whole.f1)


def enough(found: Compared, asked: int) -> bool:
    """Whether so many rows of the sample were answered that they can be judged by."""
    return found.f1_difference.n > 0 and found.f1_difference.n >= asked * (1 - MOST_UNANSWERED)


def recommend(found: Compared, asked: int) -> tuple[Literal["grounded", "voiced"], str]:
    """`grounded` if the 95% interval of the F1 difference to the matcher lies above 0; `asked`: rows in the sample."""
    if not enough(found, asked):
        share = 1 - found.f1_difference.n / asked if asked else 1.0
        return "voiced", f"{share:.0%} of the {asked} requests in the sample have no answer, too many to judge by"
    f1 = found.f1_difference
    value, low, high = (number(limit, signed=True) for limit in (f1.value, f1.low, f1.high))
    figures = f"F1 {number(found.model.f1)} to {number(found.matcher.f1)}: {value}, 95% interval {low} to {high}"
    match found.verdict:
        case "better":
            return "grounded", f"the model chooses facts better than the matcher ({figures})"
        case "worse":
            return "voiced", f"the matcher chooses facts better than the model ({figures})"
    return "voiced", f"the model does not choose facts better than the matcher by more than chance ({figures})"
