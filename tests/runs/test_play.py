"""One unit from start to record: who plays, who judges, and what is written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import OSCE, Meeting, Scripted, case_of
from helpers import osce, write_rows

from agentclinic import Utterance
from agentclinic.builtin import Builtin
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.prompts import load_prompts
from agentclinic.config import RunSettings, Settings
from agentclinic.models import base
from agentclinic.models.base import ModelError
from agentclinic.results.record import Record, Status
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.play import UnitSeat, judged, open_unit, play

pytestmark = pytest.mark.anyio

SAID = ("Where does it hurt?", "REQUEST TEST: Complete blood count", "Any fever?", "DIAGNOSIS READY: Gout")
SURE = {"Gout": 0.6, "Sepsis": 0.2}


class Lines:
    """A doctor that says the same in every encounter."""

    def __init__(self, scenario: object) -> None: ...

    def act(self, incoming: object, exchanges: tuple[object, ...], *, turn: int, **_: Any) -> Utterance:
        return Utterance(SAID[turn - 1], SURE)


async def record_of(plan: Plan) -> Record:
    async with Models(plan.settings) as models:
        return await play(plan, plan.units[0], models)


async def test_a_program_in_the_seat_gets_the_record_that_the_loop_gives() -> None:
    plan = make_plan(Settings(run=RunSettings(scenarios="0")), doctor=Lines)
    looped = await record_of(plan)
    async with Models(plan.settings) as models:
        seat = UnitSeat(plan, plan.units[0], open_unit(plan.units[0], models))
        while not seat.done:
            await seat.act(Utterance(SAID[seat.observe().turn - 1], SURE))
        record = await seat.record()
    assert (record.status, record.num_turns, record.correct) == ("diagnosed", 4, False)
    assert record.model_copy(update={"timing": None}) == looped.model_copy(update={"timing": None})


@pytest.mark.parametrize("source", ["note", "codes", "none"])
async def test_a_patient_without_symptoms_on_record_denies_nothing(source: str, tmp_path: Path) -> None:
    """A record of codes says nothing about what the patient noticed: a denial would be invented."""
    path = write_rows(tmp_path / "cases.jsonl", osce(history_source=source))
    plan = make_plan(Settings(run=RunSettings(dataset=str(path))), doctor=Lines)
    record = await record_of(plan)
    denies = source == "note"
    assert record.silent_symptom == ("deny" if denies else "unknown")
    said = [turn.text for turn in record.transcript or () if turn.role == "patient"]
    assert said[1] == ("No, I haven't noticed that." if denies else "I'm not sure.")


# The judge.


async def test_the_builtin_judge_sees_the_chart_and_a_language_model_does_not() -> None:
    case = case_of(osce(patient={"History": "Fever and cough for three days."}, truth="Pneumonia"))
    transcript = await Meeting(Scripted("DIAGNOSIS READY: Legionella pneumonia"), case=case).hold()
    prompt = load_prompts()["moderator"]
    verdict = await judged(transcript, case, Judge(Builtin(), prompt, "builtin"))
    assert verdict is not None
    assert (verdict.correct, verdict.reason) == (None, "the chart does not show legionella")
    assert transcript.status is Status.NOT_READABLE
    transcript.status = Status.DIAGNOSED
    model = Scripted("Yes")
    assert await judged(transcript, case, Judge(model, prompt, "model")) is not None
    assert "three days" not in model.prompts[0]


@pytest.mark.parametrize("answer", [base.ServerError("down"), base.RefusedError("no"), "Perhaps", ""])
async def test_a_judge_that_fails_leaves_the_case_unjudged(answer: str | ModelError) -> None:
    case = case_of(OSCE)
    transcript = await Meeting(Scripted("DIAGNOSIS READY: Migraine"), case=case).hold()
    verdict = await judged(transcript, case, Judge(Scripted(answer), load_prompts()["moderator"], "model"))
    assert verdict is None
    assert transcript.status is Status.JUDGE_FAILED
    assert transcript.fault is not None
    assert transcript.fault.role == "moderator"
    assert transcript.fault.error == (answer.kind if isinstance(answer, ModelError) else "malformed")
    assert transcript.diagnosis == "Migraine"


async def test_the_judge_sees_diagnosis_and_truth_and_is_asked_only_about_a_diagnosis() -> None:
    case = case_of(OSCE)
    judge = Scripted("Yes")
    moderator = Judge(judge, load_prompts()["moderator"], "model")
    transcript = await Meeting(Scripted("DIAGNOSIS READY: Sick headache"), case=case).hold()
    verdict = await judged(transcript, case, moderator)
    assert verdict is not None
    assert verdict.correct
    assert "Sick headache" in judge.prompts[0]
    assert "Migraine" in judge.prompts[0]
    undecided = await Meeting(Scripted("Hm?"), case=case, limit=1).hold()
    assert await judged(undecided, case, moderator) is None
    assert len(judge.requests) == 1
