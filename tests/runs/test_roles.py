"""How language models play the roles: the settings, or what a user's own prompt files imply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.runs.build import models_in_use
from agentclinic.runs.plan import Plan, make_plan

ORIGINAL = {
    "doctor": {"system_base": "You are a doctor.", "user_prompt_template": "{history} {reply}"},
    "patient": {"system_base": "You are a patient. {patient}", "user_prompt_template": "{history} {reply}"},
    "measurement": {"system_base": "You read charts. {exam}", "user_prompt_template": "{history} {request}"},
}
"""Prompt files in our dialect with the original's texts only."""


def planned(folder: Path, *roles: str, **run: Any) -> Plan:
    for role in roles:
        (folder / f"{role}.json").write_text(json.dumps(ORIGINAL[role]), encoding="utf-8")
    run = {"prompts_dir": str(folder), "num_scenarios": 1, **run}
    return make_plan(Settings.model_validate({"run": run}))


def ways(plan: Plan) -> tuple[str, str, str, str]:
    roles = plan.roles
    return roles.patient, roles.laboratory, roles.dialogue_of("doctor"), roles.dialogue_of("patient")


def test_the_default_is_voiced_and_a_chat(tmp_path: Path) -> None:
    assert ways(planned(tmp_path)) == ("voiced", "voiced", "chat", "chat")


def test_an_original_prompt_file_implies_free_text_and_the_transcript_for_its_role(tmp_path: Path) -> None:
    assert ways(planned(tmp_path, "patient")) == ("free", "voiced", "chat", "transcript")
    assert ways(planned(tmp_path, "doctor", "measurement")) == ("free", "free", "transcript", "transcript")


def test_settings_win_and_the_shipped_texts_fill_the_gaps(tmp_path: Path) -> None:
    plan = planned(tmp_path, "doctor", "patient", "measurement", simulator="grounded", dialogue="chat")
    assert ways(plan) == ("grounded", "grounded", "chat", "chat")
    assert plan.prompts["patient"].text("grounded_system") == load_prompt("patient").text("grounded_system")
    assert plan.prompts["patient"].text("system_base") == ORIGINAL["patient"]["system_base"], "the user's own stays"
    free = planned(tmp_path, simulator="free", dialogue="transcript")
    assert ways(free) == ("free", "free", "transcript", "transcript")


def test_with_an_original_prompt_file_the_laboratory_asks_its_model(tmp_path: Path) -> None:
    plan = planned(tmp_path, "measurement", dialogue="chat")
    assert plan.roles.laboratory == "free"
    assert "measurement" in models_in_use(plan.settings)
