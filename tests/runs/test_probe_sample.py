"""The shipped sample of questions and orders, and what is recommended after a model has answered it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentclinic.cases.model import Fact
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.payloads import LaboratoryPayload, PatientPayload
from agentclinic.models.base import (
    AuthError,
    BadRequestError,
    ConnectError,
    MalformedError,
    ModelError,
    Purpose,
    Reply,
    Request,
)
from agentclinic.results.turn import Usage
from agentclinic.runs.probe_sample import (
    DATASET,
    SAMPLE,
    Compared,
    Figures,
    Result,
    Row,
    Trial,
    chosen_by_matcher,
    figures,
    probe_sample,
    recommend,
    result_of,
    try_model,
)
from agentclinic.scoring.choices import count
from agentclinic.scoring.stats import Estimate

ROWS = probe_sample()
CASES = {case.scenario_id: case for case in load_cases(DATASET)}
BETTER = {"patient": "grounded", "measurement": "grounded"}
NO_BETTER = {"patient": "voiced", "measurement": "voiced"}
ENTRIES = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]


class Choosing:
    """A model that chooses as told, row by row, and finds harmless words."""

    name = "choosing"

    def __init__(self, choose: Callable[[Row, Request], list[str]]) -> None:
        self._choose = choose
        self._rows: dict[tuple[tuple[Fact, ...], str], Row] = {
            (row.case.patient_facts if row.role == "patient" else row.case.exam_facts, row.said): row for row in ROWS
        }

    async def reply(self, request: Request) -> Reply:
        payload = request.payload
        assert isinstance(payload, PatientPayload | LaboratoryPayload)
        said = payload.question if isinstance(payload, PatientPayload) else payload.request
        names = self._choose(self._rows[payload.facts, said], request)
        if request.purpose is Purpose.PATIENT:
            words = "Well, not that I know."
            kind = "answer" if names else "unknown"
            # One part for each fact: what counts is what the parts choose together.
            chosen = [[name] for name in names[:6]] or [[]]
            parts = [{"asked": "it", "facts": facts, "kind": kind} for facts in chosen]
            given = {"parts": parts, "reply": words}
        else:
            given = {"items": names, "not_in_chart": []}
        assert request.schema is not None
        return Reply(json.dumps(given), parsed=request.schema.model_validate(given), usage=Usage(100, 10))


def as_marked(row: Row, request: Request) -> list[str]:
    """The ids of exactly the marked facts."""
    del request
    letter, facts = ("f", row.case.patient_facts) if row.role == "patient" else ("r", row.case.exam_facts)
    wanted = row.marked.paths | row.marked.equivalent
    return [f"{letter}{place}" for place, fact in enumerate(facts, start=1) if fact.path in wanted]


def as_suggested(row: Row, request: Request) -> list[str]:
    """The ids that the newest message suggests."""
    del row
    newest = request.messages[-1].content
    suggested = re.search(r"(?:seem to|may) fit: (.+)", newest)
    return re.findall(r"\b[fr]\d+\b", suggested[1]) if suggested else []


def tried(choose: Callable[[Row, Request], list[str]]) -> tuple[Trial, Result]:
    trial = anyio.run(try_model, Choosing(choose), ROWS)
    return trial, result_of(trial, ROWS)


def test_the_sample_has_questions_and_orders_about_many_cases() -> None:
    questions = [row for row in ROWS if row.role == "patient"]

    assert len(questions) >= 40
    assert len(ROWS) - len(questions) >= 30
    assert len({row.case.id for row in ROWS}) >= 25
    assert len({(row.case.id, row.said) for row in ROWS}) == len(ROWS)
    assert sum(not row.marked.paths for row in ROWS) >= 5, "the chart is silent now and then"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['scenario_id']}: {entry['said'][:30]}")
def test_every_row_is_about_an_open_case_that_has_not_changed_and_its_facts_exist(entry: dict[str, str]) -> None:
    case = CASES[int(entry["scenario_id"])]

    assert case.id == entry["case"]
    assert not case.in_lockbox
    facts = case.patient_facts if entry["role"] == "patient" else case.exam_facts
    assert {fact.path for fact in facts} >= {*entry["paths"], *entry.get("equivalent", ())}


@pytest.mark.slow
def test_a_model_that_answers_as_marked_is_recommended_as_grounded() -> None:
    trial, result = tried(as_marked)

    assert result.recommended == BETTER
    assert result.questions.model.precision == 1
    assert result.questions.model.recall is not None
    assert result.questions.model.recall > 0.99, "an answer has at most six facts; one row is marked with seven"
    assert result.orders.model == Figures(precision=1, recall=1, f1=1)
    assert result.together.matcher.f1 is not None
    assert result.together.matcher.f1 < 0.95
    assert (result.together.by_code, result.together.failed, result.not_tried) == (0, {}, 0)
    assert (result.requests, result.input_tokens, result.output_tokens) == (83, 8300, 830)
    assert trial.stopped is None


@pytest.mark.slow
def test_a_model_that_repeats_the_suggestions_does_as_well_as_the_matcher_and_wins_nothing() -> None:
    _, result = tried(as_suggested)

    assert result.recommended == NO_BETTER
    assert all("by more than chance" in why for why in result.because.values())
    # The matcher may tell more than six facts to a question with several parts; a model may not.
    assert result.orders.model == result.orders.matcher
    assert result.questions.model.f1 == pytest.approx(result.questions.matcher.f1, abs=0.01)


@pytest.mark.slow
def test_a_model_that_chooses_everything_is_worse() -> None:
    def everything(row: Row, request: Request) -> list[str]:
        del request
        letter, facts = ("f", row.case.patient_facts) if row.role == "patient" else ("r", row.case.exam_facts)
        return [f"{letter}{place}" for place in range(1, len(facts) + 1)][:40]

    _, result = tried(everything)

    assert result.recommended == NO_BETTER
    assert (result.questions.verdict, result.orders.verdict) == ("worse", "worse")
    assert all(why.startswith("the matcher chooses facts better") for why in result.because.values())


def failing(error: ModelError) -> Callable[[Row, Request], list[str]]:
    def choose(row: Row, request: Request) -> list[str]:
        raise error

    return choose


def test_malformed_replies_are_counted_and_the_matcher_chooses() -> None:
    _, result = tried(failing(MalformedError("no JSON")))

    assert result.together.by_code == len(ROWS)
    assert result.together.failed == {}
    assert result.together.model == result.together.matcher
    assert result.recommended == NO_BETTER


def test_single_failures_are_counted_and_left_out_on_both_sides() -> None:
    def choose(row: Row, request: Request) -> list[str]:
        if row is ROWS[0] or row is ROWS[-1]:
            raise ConnectError("broken")
        return as_marked(row, request)

    trial, result = tried(choose)

    assert len(trial.answers) == len(ROWS)
    assert result.questions.failed == result.orders.failed == {"connection": 1}
    assert result.together.f1_difference.n == len(ROWS) - 2
    assert result.recommended == BETTER


def test_with_many_failures_nothing_is_recommended_on_the_rest() -> None:
    def choose(row: Row, request: Request) -> list[str]:
        if ROWS.index(row) % 5 == 0:
            raise BadRequestError("not now")
        return as_marked(row, request)

    _, result = tried(choose)

    assert result.together.f1_difference.low is not None
    assert result.together.f1_difference.low > 0
    assert result.recommended == NO_BETTER
    assert result.because["patient"].startswith("22% of the 46 requests in the sample have no answer")


@pytest.mark.parametrize("error", [AuthError("key rejected"), ConnectError("no server")])
def test_a_key_or_a_server_that_is_gone_stops_the_sample(error: ModelError) -> None:
    trial, result = tried(failing(error))

    assert trial.stopped == str(error)
    assert result.not_tried >= len(ROWS) - 8
    assert result.recommended == NO_BETTER


@pytest.mark.parametrize(
    ("low", "high", "recommended"), [(0.01, 0.3, "grounded"), (-0.01, 0.3, "voiced"), (-0.2, -0.1, "voiced")]
)
def test_the_whole_interval_must_lie_above_zero(low: float, high: float, recommended: str) -> None:
    same = Figures(precision=0.5, recall=0.5, f1=0.5)
    difference = Estimate(value=(low + high) / 2, low=low, high=high, n=40)
    found = Compared(rows=40, failed={}, by_code=0, model=same, matcher=same, f1_difference=difference)

    assert recommend(found, 40)[0] == recommended
    assert recommend(found, 44)[0] == recommended
    assert recommend(found, 45)[0] == "voiced", "too many rows have no answer"


def test_the_figures_of_the_matcher_in_the_documentation_are_current() -> None:
    page = (Path(__file__).parents[2] / "docs" / "endpoints.md").read_text(encoding="utf-8")
    parts = {"questions": ("patient",), "orders": ("measurement",), "together": ("patient", "measurement")}

    for name, roles in parts.items():
        found = figures([count(chosen_by_matcher(row), row.marked) for row in ROWS if row.role in roles])
        assert f"| {name} | {found.precision:.2f} | {found.recall:.2f} | {found.f1:.2f} |" in page


@pytest.mark.slow
def test_the_matcher_is_the_one_that_runs_use() -> None:
    """The suggestions of a grounded patient and laboratory are what the matcher's figures are computed from."""
    seen: dict[int, set[str]] = {}

    def choose(row: Row, request: Request) -> list[str]:
        facts = row.case.patient_facts if row.role == "patient" else row.case.exam_facts
        names = as_suggested(row, request)
        seen[ROWS.index(row)] = {facts[int(name[1:]) - 1].path for name in names}
        return names

    tried(choose)

    assert seen == {place: set(chosen_by_matcher(row)) for place, row in enumerate(ROWS)}
