"""Models by name: which one plays a role, where it is, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import plan_of

from agentclinic.config import Settings
from agentclinic.errors import ConfigError
from agentclinic.runs.build import Models, models_in_use

pytestmark = pytest.mark.anyio
MILLION = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}


def settings(**run: Any) -> Settings:
    return Settings.model_validate({"run": run, "endpoints": {"lab": {"base_url": "http://127.0.0.1:9/v1"}}})


async def test_planner_and_synthesis_use_the_doctors_model_unless_another_is_named() -> None:
    named = {"doctor_llm": "one", "doctor_endpoint": "lab"}
    models = Models(settings(**named))
    assert {models.model_for(role) for role in ("doctor", "planner", "synthesis")} == {("one", "lab")}
    other = Models(settings(**named, synthesis_llm="two"))
    assert [other.model_for(role) for role in ("planner", "synthesis")] == [("one", "lab"), ("two", None)]


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        ({"doctor_llm": "builtin", "doctor_endpoint": "lab"}, "builtin needs no endpoint; leave out 'lab'"),
        ({"doctor_llm": "x", "doctor_endpoint": "lba"}, "unknown endpoint 'lba'.*lab"),
        ({"doctor_llm": "humna"}, "did you mean 'human'"),
        ({"doctor_llm": "gpt-4o"}, "'gpt-4o' needs a key or a server: set OPENAI_API_KEY"),
    ],
)
async def test_a_model_that_cannot_be_used_is_refused_before_the_run(
    run: dict[str, str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with Models(settings(**run)) as models:
        with pytest.raises(ConfigError, match=complaint):
            models.admit()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("builtin", 0.0), ("human", 0.0), ("replay:recording.jsonl", None), ("gpt-4o-mini", pytest.approx(0.75))],
)
def test_the_cost_of_a_role_depends_on_its_model(name: str, expected: float | None) -> None:
    settings = Settings.model_validate({"run": {"doctor_llm": name}})

    assert Models(settings).cost_usd("doctor", MILLION) == expected


def test_a_local_server_has_no_price() -> None:
    settings = Settings.model_validate(
        {"run": {"doctor_llm": "gpt-4o-mini"}, "openai": {"base_url": "http://[::1]/v1"}}
    )

    assert Models(settings).cost_usd("doctor", MILLION) is None


async def test_a_person_may_be_named_and_is_no_model_at_an_endpoint() -> None:
    plan = plan_of(doctor_llm="human:anna", inf_type="human_doctor")
    assert plan.people
    assert plan.settings.run.doctor_llm == "human:anna"
    async with Models(plan.settings) as models:
        assert models.for_role("doctor").name == "human:anna"
        assert not models.simulates("doctor")
        assert models.cost_usd("doctor", {}) == 0
        assert models.in_use() == ()


@pytest.mark.parametrize(("simulator", "asked"), [(None, False), ("voiced", False), ("grounded", True), ("free", True)])
def test_a_voiced_laboratory_needs_no_model(simulator: Any, asked: bool) -> None:
    plan = plan_of(simulator=simulator, measurement_llm="m")
    assert ("measurement" in models_in_use(plan.settings)) is asked
