"""Prompt files in the original's dialect: what becomes of them, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import OSCE, Scripted, case_of
from original_prompts import DIALECT, write_files

from agentclinic.clinic.doctor import Assignment, Incoming, Observation
from agentclinic.clinic.prompts import SHIPPED, Prompts, fill, load_prompt, translated
from agentclinic.config import ROLES, read_json
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.errors import ConfigError

DOOR = case_of(OSCE).door


def loaded(folder: Path, role: str, **changes: Any) -> Any:
    return load_prompt(role, write_files(folder, **{role: {**DIALECT[role], **changes}}))


def assignment(folder: Path, model: Scripted) -> Assignment:
    return Assignment(DOOR, model, Prompts({"doctor": loaded(folder, "doctor")}), 9)


@pytest.mark.anyio
async def test_the_doctors_system_prompt_counts_and_keeps_the_originals_order(tmp_path: Path) -> None:
    model = Scripted("Where?", "When?")
    doctor = PlainDoctor(replace(assignment(tmp_path, model), bias="recency", images=True))
    for turn in (1, 2):
        await doctor.act(Observation(Incoming("Patient", "It hurts."), turn=turn))
    systems = [request.messages[0].content for request in model.requests]
    assert systems == [
        f"You lead this. 9 utterances at most, {asked} used. REQUEST IMAGES works.\nYou keep thinking of last week.\n"
        f"\n\nYour task: {DOOR.objective}."
        for asked in (0, 1)
    ]


@pytest.mark.parametrize(("notes", "shown"), [("", "\n\n"), ("Look up.", "\nLook up.\n")])
def test_planning_notes_are_empty_without_a_policy_and_have_lines_of_their_own(
    tmp_path: Path, notes: str, shown: str
) -> None:
    doctor = PlainDoctor(assignment(tmp_path, Scripted()))
    request = doctor.request(Observation(Incoming("Patient", "It hurts."), notes=notes))
    assert request.messages[1].content.endswith(f"Newest: Patient: It hurts.{shown}Speak.\nDoctor:")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ('{agent_hist} {question} as {{"say": "{{x}}"}}', '{history} {reply} as {"say": "{x}"}'),
        ('{agent_hist} {question} as {"say": {"a": {}}}', '{history} {reply} as {"say": {"a": {}}}'),
        ("{agent_hist} {question} } {", "{history} {reply} } {"),
    ],
    ids=["doubled", "plain", "unbalanced"],
)
def test_literal_braces_survive(tmp_path: Path, theirs: str, ours: str) -> None:
    prompt = loaded(tmp_path, "patient", system_base='Never write {{}} or {"a": 1}.', user_prompt_template=theirs)
    assert prompt.text("user_prompt_template") == ours
    said = fill(prompt.text("system_base"), patient="p", bias="")
    assert said == 'Never write {{}} or {"a": 1}.\n\nAbout you: p.', "the original sends this text as it is"


@pytest.mark.parametrize(
    ("role", "changes", "complaint"),
    [
        ("doctor", {"user_prompt_template": "{agent_hist}"}, r"template lacks \{reply\} \(\{question\} in the orig"),
        ("doctor", {"user_prompt_template": "{agent_hist} {reply}"}, r"mixes .*\{agent_hist\} in .* \{reply\} in user"),
        ("doctor", {"user_prompt_template": "{history} {reply}"}, r"mixes .*\{\} in system_base .* \{history\} in"),
        ("doctor", {"system_base": "{} {} {}"}, r"system_base has 3 \{\}, .* fills 2 \(\{max_infs\}, \{infs\} in our"),
        ("patient", {"system_symptoms_suffix": "."}, r"lacks \{patient\} \(\{\} of system_symptoms_suffix in the orig"),
        ("patient", {"system_base": "{patient}"}, r"mixes .* \{patient\} in system_base is ours"),
        ("measurement", {"system_presentation_suffix": ["{}"]}, r"lacks \{exam\} \(\{\} of system_presentation_suffix"),
        ("moderator", {"user_prompt_template": "{diag}"}, r"lacks \{truth\} \(\{correct\} in the original's dialect\)"),
        ("moderator", {"system_prompt": None}, "'system_base' is missing"),
    ],
)
def test_a_mixed_or_incomplete_file_is_refused_in_the_words_of_both_dialects(
    tmp_path: Path, role: str, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint) as refused:
        loaded(tmp_path, role, **changes)
    assert str(refused.value).startswith(str(tmp_path / f"{role}.json"))


def test_texts_of_ours_can_be_added_to_a_file_of_the_original(tmp_path: Path) -> None:
    assert loaded(tmp_path, "doctor", last_turn="Decide.").text("last_turn") == "Decide."


@pytest.mark.parametrize("role", ROLES)
def test_our_own_files_are_not_translated(role: str) -> None:
    path = SHIPPED / f"{role}.json"
    texts = {key: text for key, text in read_json(path).items() if isinstance(text, str)}
    assert translated(role, texts, path) == texts
