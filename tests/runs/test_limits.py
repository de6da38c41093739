"""Runs with a budget, a limit on orders, or cases of limited settings: what is told, charged, recorded and refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import plan_of
from helpers import osce, write_rows
from runs_support import records, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.api import evaluate, load_cases
from agentclinic.audit.exact import exact_findings
from agentclinic.audit.run import audited_replies
from agentclinic.config import Settings
from agentclinic.doctors.reference import REFERENCES
from agentclinic.envs import ClinicEnv
from agentclinic.errors import ConfigError
from agentclinic.results.record import Record
from agentclinic.runs.limits import limits_of
from agentclinic.runs.plan import make_plan
from agentclinic.runs.resume import plan_again
from agentclinic.scoring.orders import ordered_in
from agentclinic.scoring.prices import estimate

pytestmark = pytest.mark.anyio
FRUGAL: dict[str, Any] = {"test_budget": 300, "order_limit": 3, "total_inferences": 12}


def charged(record: Record) -> float:
    return math.fsum(charge.usd for turn in record.transcript or () for charge in turn.charges)


def refused(record: Record) -> list[str]:
    return [charge.name for turn in record.transcript or () for charge in turn.charges if charge.refused]


def row(setting: str | None = None, **tests: Any) -> dict[str, Any]:
    given = {"setting": setting} if setting else {}
    return osce(tests={"Uric_Acid": "9.8 mg/dL", "Ferritin": "20 ng/mL", **tests}, truth="Gout", **given)


# --- what is charged --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [60, 300])
@pytest.mark.parametrize("doctor", ["plain", "uncertainty", *(n for n, one in REFERENCES.items() if not one.world)])
async def test_the_clinic_charges_what_scoring_computes_and_never_more_than_the_budget(
    doctor: str, budget: int, tmp_path: Path
) -> None:
    run = settings_for(None, tmp_path, doctor=doctor, test_budget=budget, order_limit=1)
    finished, _ = await run_here(run)
    for line in records(finished.folder):
        record = Record.model_validate(line)
        tests = ordered_in(record)
        assert tests
        assert charged(record) == tests.bill.usd <= budget
        assert record.test_economics_totals is not None
        assert record.test_economics_totals["total_estimated_cost_usd"] == charged(record)
        assert tests.bill.unpriced == 0, "nothing is free because its price is not known"
        assert refused(record) == [], "builtin doctors order what they can have"


async def test_a_doctor_with_a_policy_and_one_in_a_limited_setting_order_what_they_can_have(tmp_path: Path) -> None:
    whole, _ = await run_here(settings_for(None, tmp_path, num_scenarios=4, doctor_test_policy_enabled=True, **FRUGAL))
    assert [refused(Record.model_validate(line)) for line in records(whole.folder)] == [[]] * 4
    cases = [replace(case, annotations={**case.annotations, "setting": "rural clinic"}) for case in plan_of().cases[:4]]
    played = evaluate(dataset=cases, output_dir=str(tmp_path / "rural"), progress=False)
    for record in played.records:
        tests = ordered_in(record)
        assert tests
        assert charged(record) == tests.bill.usd
        assert refused(record) == []
        names = {entry["test_name"] for entry in record.test_economics_log or () if entry["estimate_cost"]}
        assert not names & {"Complete blood count", "Electrocardiogram", "Chest X-ray"}


class Ordering:
    """A doctor that says these lines."""

    lines: tuple[str, ...] = ("REQUEST TEST: uric acid, ferritin, MRI brain", "DIAGNOSIS READY: Gout")

    def __init__(self, scenario: Any) -> None:
        type(self).told = scenario.examiner_information()
        self._left = list(self.lines)

    told = ""

    def inference_doctor(self, question: str) -> str:
        return self._left.pop(0)


def test_a_users_own_prices_are_charged_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prompts").mkdir()
    known = {"name": "Uric acid", "cost_min": 100, "cost_max": 300, "duration_min": 1, "wait_min": 1}
    Path("prompts/measurement_cost.json").write_text(json.dumps({"known_costs": [known]}), encoding="utf-8")
    (record,) = evaluate(Ordering, write_rows(tmp_path / "c.jsonl", row()), test_budget=240, progress=False).records
    assert [(c.name, c.usd, c.refused) for t in record.transcript or () for c in t.charges] == [
        ("Serum uric acid", 200.0, False),
        ("ferritin", 30.0, False),
        ("MRI brain", 0.0, True),
    ]
    tests = ordered_in(record)
    assert tests
    assert tests.bill.usd == 230.0


@pytest.mark.parametrize(
    ("name", "usd"),
    [
        ("gait", 0),
        ("mini mental state examination", 0),
        ("ammonia", 14),
        ("hemoglobin", 8),
        ("urine protein", 4),
        ("MRI knee", 285),
        ("PET scan", 115),
    ],
)
def test_a_test_without_a_price_costs_as_much_as_others_of_its_kind(name: str, usd: float) -> None:
    assert estimate(name) == pytest.approx(usd, abs=1)


def test_a_panel_without_a_price_costs_as_much_as_its_parts() -> None:
    assert estimate("tumor markers") > 100


# --- what the doctor is told ------------------------------------------------------------------------------------------


async def test_a_model_is_told_the_limits_at_first_and_what_is_left_after_each_order(
    server: ScriptedServer, tmp_path: Path
) -> None:
    ordered = {"match": {"purpose": "doctor", "text_contains": "Left for tests: $295 of $300."}}
    server.control(
        rules=[
            {**ordered, "reply": "DIAGNOSIS READY: Gout"},
            {"match": {"purpose": "doctor"}, "reply": "REQUEST TEST: uric acid"},
        ]
    )
    cases = write_rows(tmp_path / "cases.jsonl", row())
    run = settings_for(server, tmp_path / "out", dataset=str(cases), preset="frugal", simulator="voiced", check=False)
    _, (record,) = await run_here(run)
    assert record["diagnosis_text"] == "Gout", "the second request said what was left"
    first, second = (entry["body"]["input"] for entry in server.log() if entry["purpose"] == "doctor")
    assert first[0] == second[0], "the beginning stays the same, so that it can be cached"
    told = first[0]["content"]
    assert "You have $300 for tests in this consultation." in told
    assert "Some prices: complete blood count $8, chest X-ray $27" in told
    assert "An order may name up to 3 tests or examinations." in told


def test_a_custom_doctor_and_an_environment_are_told_the_same(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", row("telephone"))
    line = "This is a telephone consultation: nothing can be examined or tested."
    (record,) = evaluate(Ordering, cases, output_dir=str(tmp_path / "out"), progress=False).records
    assert line in Ordering.told
    assert record.transcript
    assert record.transcript[1].text == f"RESULTS: {line}"
    assert record.door
    assert record.door.terms == "", "the record has only what is known of the patient"
    env = ClinicEnv(cases)
    assert line in env.reset(case=0)
    assert env.order_test("vital signs").startswith(f"RESULTS: {line}")
    free = ClinicEnv(cases, setting_limits=False)
    assert line not in free.reset(case=0)
    assert "telephone" not in free.order_test("vital signs")


def test_all_cases_of_a_setting_have_the_same_text(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", row("district hospital"), row("district hospital", CT_Head="Normal"))
    told = {case.door.terms for case in plan_of(dataset=str(cases)).cases}
    assert len(told) == 1
    assert "blood culture ($15, 72 h)" in told.pop()


def test_an_audit_takes_money_and_refusals_for_what_they_are(tmp_path: Path) -> None:
    class Everything(Ordering):
        lines = ("REQUEST TEST: uric acid, MRI brain, ferritin", "REQUEST TEST: CT head", "DIAGNOSIS READY: Gout")

    cases = load_cases(str(write_rows(tmp_path / "c.jsonl", row(), row("rural clinic", CT_Head="A 3 cm mass"))))
    played = evaluate(Everything, cases, test_budget=20, order_limit=2, output_dir=str(tmp_path), progress=False)
    assert {turn.role for record in played.records for turn in record.transcript or ()} == {"doctor", "measurement"}
    for record, case in zip(played.records, cases, strict=True):
        assert refused(record)
        for _, reply in audited_replies(record):
            assert exact_findings(reply, case) == []


# --- settings of a run ------------------------------------------------------------------------------------------------


def test_the_frugal_preset_sets_three_things_which_flags_override() -> None:
    run, plain = plan_of(preset="frugal").settings.run, plan_of().settings.run
    changed = {key for key in type(run).model_fields if getattr(run, key) != getattr(plain, key)}
    assert changed == {"preset", *FRUGAL}
    assert {key: getattr(run, key) for key in FRUGAL} == FRUGAL
    assert plan_of(preset="frugal", test_budget=1000).settings.run.test_budget == 1000


def test_the_original_has_no_limits(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", row("telephone"))
    plan = plan_of(dataset=str(cases), preset="original")
    assert plan.settings.run.setting_limits is False
    assert plan.cases[0].door.terms == ""
    assert limits_of(plan.settings.run, plan.cases[0], None) is None


@pytest.mark.parametrize("value", [-1, "much", float("inf")])
def test_a_budget_is_a_sum_of_money(value: object) -> None:
    with pytest.raises((ConfigError, ValueError), match="test_budget"):
        Settings.model_validate({"run": {"test_budget": value}})


@pytest.mark.parametrize("limit", [{"test_budget": 5}, {"order_limit": 2}, {"setting_limits": False}])
def test_a_solvable_world_has_its_own_prices(limit: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"has no meaning in a solvable world"):
        plan_of(dataset="Solvable:chest-pain", **limit)


def test_only_limits_that_are_set_are_in_the_digest_that_guards_resuming() -> None:
    keys = {"run.test_budget", "run.order_limit", "run.setting_limits"}
    assert not keys & plan_of().digest.keys()
    assert plan_of(test_budget=300).digest["run.test_budget"] == 300
    assert plan_of(setting_limits=False).digest["run.setting_limits"] is False


async def test_a_run_is_resumed_within_its_limits(tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path, num_scenarios=1, preset="frugal"))
    assert "You have $300" in plan_again(finished.folder).cases[0].door.terms


def test_cases_that_are_played_again_without_limits_are_told_of_none() -> None:
    cases = plan_of(preset="frugal").cases[:1]
    assert cases[0].door.terms
    assert make_plan(Settings(), cases).cases[0].door.terms == ""
