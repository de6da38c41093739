"""Reference doctors: less, or more, information than a consultation gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentclinic.builtin import Builtin
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.prompts import load_prompts
from agentclinic.config import RunSettings, Settings
from agentclinic.doctors.reference import REFERENCES, Reference, every_step, without_tests
from agentclinic.errors import ConfigError
from agentclinic.models.base import Model, Reply, Request
from agentclinic.results.record import Record
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play

pytestmark = pytest.mark.anyio


class Listening:
    """The builtin model; keeps the doctor's requests."""

    name = "builtin"

    def __init__(self) -> None:
        self.doctor: list[Request] = []
        self._model = Builtin()

    async def reply(self, request: Request) -> Reply:
        if request.purpose == "doctor":
            self.doctor.append(request)
        return await self._model.reply(request)


async def met(doctor: str, monkeypatch: pytest.MonkeyPatch, row: int = 2, **run: object) -> tuple[Record, Listening]:
    model = Listening()
    choose: Callable[..., Model] = lambda *_: model  # noqa: E731
    monkeypatch.setattr(Models, "_choose", choose)
    settings = Settings(run=RunSettings.model_validate({"doctor": doctor, "scenarios": str(row), **run}))
    plan = make_plan(settings)
    async with Models(plan.settings) as models:
        return await play(plan, plan.units[0], models), model


def text_of(request: Request) -> str:
    return "\n".join(message.content for message in request.messages)


async def test_prior_only_is_told_nothing_about_the_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    record, model = await met("prior_only", monkeypatch)
    assert record.num_turns == 1
    assert "41-year-old" not in text_of(model.doctor[0])
    assert "chest pain" not in text_of(model.doctor[0])
    assert record.status == "diagnosed"


async def test_door_only_commits_on_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    record, model = await met("door_only", monkeypatch)
    assert (record.num_turns, record.status) == (1, "diagnosed")
    assert "41-year-old woman" in text_of(model.doctor[0])
    assert "contraceptive" not in text_of(model.doctor[0]), "the chart is closed"


@pytest.mark.parametrize("doctor", ["prior_only", "door_only", "full_information"])
async def test_a_doctor_that_asks_instead_of_committing_at_once_is_told_nothing(
    doctor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def orders(_: Listening, request: Request) -> Reply:
        return Reply("REQUEST TEST: CT angiography" if request.purpose == "doctor" else "a result")

    monkeypatch.setattr(Listening, "reply", orders)
    record, _ = await met(doctor, monkeypatch)
    assert (record.status, record.num_turns) == ("max_infs_reached", 1)
    assert [turn.role for turn in record.transcript or ()] == ["doctor"]


async def test_full_information_sees_the_whole_chart_and_never_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    record, model = await met("full_information", monkeypatch)
    seen = text_of(model.doctor[0])
    assert "filling defects" in seen
    assert "contraceptive" in seen
    assert "embol" not in seen.lower(), "neither label nor answer key nor differential"
    assert (record.num_turns, record.correct) == (1, True)


async def test_history_only_never_orders_tests_and_would_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    record, model = await met("history_only", monkeypatch)
    actions = {turn.action.kind for turn in record.transcript or () if turn.action}
    assert actions == {"question", "diagnosis"}
    assert "no tests, images or examinations" in text_of(model.doctor[0])
    case = without_tests(load_cases("OpenOSCE_Demo")[2])
    assert case.exam_facts == ()


async def test_random_questions_are_drawn_by_the_seed_and_end_in_a_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for seed in (1, 1, 2):
        record, model = await met("random_questions", monkeypatch, seed=seed, total_inferences=6)
        assert len(model.doctor) == 1, "the model speaks once, at the end"
        assert record.status == "diagnosed"
        said.append([turn.text for turn in record.transcript or () if turn.role == "doctor"][:-1])
    assert said[0] == said[1] != said[2]
    assert set(said[0]) <= set(every_step())


def test_every_reference_doctor_can_be_chosen_and_others_are_refused() -> None:
    for name, reference in REFERENCES.items():
        dataset = "Solvable:chest-pain" if reference.world else "OpenOSCE_Demo"
        plan = make_plan(Settings(run=RunSettings(doctor=name, dataset=dataset, num_scenarios=1)))
        assert plan.settings.run.doctor == name
    with pytest.raises(ConfigError, match="is not a doctor"):
        make_plan(Settings(run=RunSettings(doctor="door_onli")))


async def test_a_reference_doctor_is_added_by_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    door_only = REFERENCES["door_only"].make
    monkeypatch.setitem(REFERENCES, "planted", Reference(lambda case, given, seed: door_only(case, given, seed)))
    record, model = await met("planted", monkeypatch)
    assert (record.doctor, record.status, len(model.doctor)) == ("planted", "diagnosed", 1)


def test_the_doctors_prompt_file_has_a_text_for_a_consultation_without_tests() -> None:
    assert "not available" in load_prompts()["doctor"].text("no_tests")
