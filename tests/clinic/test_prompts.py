"""Prompt files: what ships, what a user's folder changes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import OSCE, Scripted, case_of, plan_of

from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import SHIPPED, fill, joined, load_prompt, load_prompts, user_prompts
from agentclinic.config import ROLES, RunSettings
from agentclinic.errors import ConfigError

BOTH = {
    "recency",
    "frequency",
    "false_consensus",
    "gender",
    "race",
    "sexual_orientation",
    "cultural",
    "education",
    "religion",
    "socioeconomic",
}


def write(folder: Path, name: str, **changes: Any) -> Path:
    """The shipped file with changes; None removes a key."""
    data = {**json.loads((SHIPPED / f"{name}.json").read_text()), **changes}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return path


def test_twelve_doctor_and_eleven_patient_biases_ship() -> None:
    prompts = load_prompts()
    assert set(prompts["doctor"].biases) == BOTH | {"confirmation", "status_quo"}
    assert set(prompts["patient"].biases) == BOTH | {"self_diagnosis"}
    assert all(text.strip() for role in ("doctor", "patient") for text in prompts[role].biases.values())


@pytest.mark.parametrize("nothing", [None, "None", "none", "null", ""])
def test_none_null_and_empty_mean_no_bias(nothing: str | None) -> None:
    run = RunSettings(doctor_bias=nothing, patient_bias=nothing)
    assert (run.doctor_bias, run.patient_bias) == (None, None)
    assert load_prompt("doctor").bias(run.doctor_bias) == ""


@pytest.mark.parametrize("model", ["some-model", "builtin"])
def test_under_the_preset_an_unsupported_bias_is_ignored_with_a_warning_that_names_the_supported_ones(
    model: str,
) -> None:
    with pytest.warns(UserWarning, match="zodiac") as told:
        plan_of(preset="original", doctor_llm=model, doctor_bias="zodiac")
    assert all(bias in str(told[0].message) for bias in load_prompt("doctor").biases)
    with pytest.warns(UserWarning, match=r"recencyy.* did you mean 'recency'"):
        plan = plan_of(preset="original", doctor_llm=model, doctor_bias="recencyy")
    assert plan.settings.run.doctor_bias is None
    assert plan.unsupported_bias == {"doctor_bias": "recencyy"}


def test_a_misspelled_bias_is_refused_with_the_nearest_and_all_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"recencyy.*; did you mean 'recency'.* It has .*status_quo"):
        plan_of(doctor_llm="some-model", doctor_bias="recencyy")
    with pytest.raises(ConfigError, match=r"patient_bias: patient\.json has no bias 'confirmation'.* self_diagnosis"):
        plan_of(patient_llm="some-model", patient_bias="confirmation")


def test_a_bias_is_added_to_the_system_prompt_verbatim() -> None:
    prompt = load_prompt("patient")
    plain = Patient(case_of(OSCE), Scripted(), prompt).system_prompt
    biased = Patient(case_of(OSCE), Scripted(), prompt, bias="race").system_prompt
    assert biased == f"{plain}\n\n{prompt.biases['race']}"


def test_a_patient_who_cannot_speak_is_voiced_by_a_caregiver() -> None:
    prompt = load_prompt("patient")
    infant = {**OSCE, "Patient_Actor": {**OSCE["Patient_Actor"], "Demographics": "6-month-old boy"}}
    assert prompt.text("caregiver") in Patient(case_of(infant), Scripted(), prompt).system_prompt
    assert prompt.text("caregiver") not in Patient(case_of(OSCE), Scripted(), prompt).system_prompt


def test_a_users_folder_wins_file_by_file(tmp_path: Path) -> None:
    write(tmp_path, "patient", system_base="You are {patient}.", biases={"grumpy": "Be grumpy."})
    own, shipped = load_prompts(tmp_path), load_prompts()
    assert own["patient"].text("system_base") == "You are {patient}."
    assert own["patient"].bias("grumpy") == "Be grumpy."
    assert own.digests["patient"] != shipped.digests["patient"]
    for role in set(ROLES) - {"patient"}:
        assert own[role] == shipped[role]


def test_a_users_file_may_leave_out_suffixes_but_the_clinic_keeps_its_own_texts(tmp_path: Path) -> None:
    write(tmp_path, "doctor", last_turn=None, opening=None, images_off=None, images_suffix=None, confidence=None)
    own, shipped = load_prompt("doctor", tmp_path), load_prompt("doctor")
    for key in ("last_turn", "opening", "images_off", "confidence"):
        assert own.text(key) == shipped.text(key) != ""
    assert own.text("images_suffix") == ""
    write(tmp_path, "doctor", last_turn="")
    assert load_prompt("doctor", tmp_path).text("last_turn") == ""


def test_a_missing_folder_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"prompts_dir: .*gone is not a folder"):
        user_prompts(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"system_base": "x"', r"doctor\.json line 1: not valid JSON"),
        ("[]", r"doctor\.json: expected a JSON object"),
        ("{}", r"doctor\.json: 'system_base' is missing"),
        ('{"system_bas": "x"}', "did you mean 'system_bas'"),
        ('{"system_base": ["x"], "user_prompt_template": "y"}', "'system_base' is missing or not text"),
        ('{"system_base": "x"}', "'user_prompt_template' is missing"),
        ('{"system_base": "x", "user_prompt_template": "{history}"}', r"lacks \{reply\}"),
        ('{"system_base": "x", "user_prompt_template": "{history}{reply}", "biases": []}', "biases must be"),
        ('{"system_base": "x", "user_prompt_template": "{history}{reply}", "last_turn": 3}', "'last_turn' is"),
    ],
)
def test_an_unusable_file_is_refused_with_its_path_and_the_reason(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "doctor.json").write_text(text)
    with pytest.raises(ConfigError, match=complaint) as refused:
        load_prompts(tmp_path)
    assert str(tmp_path / "doctor.json") in str(refused.value)


def test_a_file_that_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "doctor.json").write_bytes(b'{"system_base": "\xe4"}')
    with pytest.raises(ConfigError, match=r"doctor\.json: not UTF-8"):
        load_prompts(tmp_path)


def test_a_folder_in_place_of_a_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "doctor.json").mkdir()
    with pytest.raises(ConfigError, match=r"doctor\.json: cannot be read"):
        load_prompts(tmp_path)


@pytest.mark.parametrize(
    ("role", "key", "placeholder"),
    [
        ("doctor", "user_prompt_template", "history"),
        ("patient", "system_base", "patient"),
        ("measurement", "system_base", "exam"),
        ("measurement", "user_prompt_template", "request"),
        ("moderator", "user_prompt_template", "truth"),
    ],
)
def test_a_prompt_without_what_its_role_must_see_is_refused(
    tmp_path: Path, role: str, key: str, placeholder: str
) -> None:
    write(tmp_path, role, **{key: load_prompt(role).text(key).replace(f"{{{placeholder}}}", "")})
    with pytest.raises(ConfigError, match=rf"{role}\.json: {key} lacks \{{{placeholder}\}}"):
        load_prompts(tmp_path)


def test_placeholders_are_filled_in_one_pass() -> None:
    assert fill("{history} | {notes}", history="he said {notes}", notes="x") == "he said {notes} | x"
    assert fill("{unknown} {Reply} {} {reply}", reply="r") == "{unknown} {Reply} {} r"
    assert fill("{reply}", reply=r"\1 \g<0>") == r"\1 \g<0>"


def test_empty_parts_leave_no_blank_lines() -> None:
    assert joined("a", "", "b") == "a\n\nb"


@pytest.mark.parametrize(
    ("name", "key", "told"),
    [
        ("doctor", "chat_sytem", r"doctor\.json: nothing reads 'chat_sytem'; did you mean 'chat_system'\?"),
        ("synthesis", "comment", r"synthesis\.json: nothing reads 'comment'$"),
    ],
)
def test_a_key_that_nothing_reads_is_named(tmp_path: Path, name: str, key: str, told: str) -> None:
    texts = json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))
    (tmp_path / f"{name}.json").write_text(json.dumps({**texts, key: "x", "_note": "a comment"}))
    with pytest.warns(UserWarning, match=told) as caught:
        load_prompt(name, tmp_path)
    assert len(caught) == 1
