"""`test_policy.json`: the shipped file, a user's own, and errors that name file, key and fix."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from runs_support import clinic

from agentclinic.clinic.prompts import SHIPPED
from agentclinic.doctors.planner.prompting import fallback_notes, rules_line
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.errors import ConfigError

OURS = json.loads((SHIPPED / "test_policy.json").read_text(encoding="utf-8"))


def written(folder: Path, content: Any, name: str = "test_policy") -> Path:
    path = folder / f"{name}.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_the_shipped_file_has_the_documented_defaults() -> None:
    file = load_policy().file
    assert file.constraints.finish_early_if_confident == 0.7
    settings = file.differential_settings
    assert settings.min_symptoms_per_disease == 4
    assert settings.max_differentials == 5
    assert settings.confidence_close_threshold == 0.12
    assert settings.discriminators == "with_plan"
    assert settings.min_diagnoses == 3
    assert len(file.rules) == 4
    assert file.chat


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ("one_test_per_turn", "one test per turn"),
        ("low_cost_first", "costs little"),
        ("no_back_to_back_imaging", "imaging study right after another"),
        ("red_flag_override", "red flag"),
    ],
)
def test_a_rule_that_is_off_is_not_told(tmp_path: Path, switch: str, words: str) -> None:
    written(tmp_path, {"constraints": {switch: False}})
    on, off = load_policy().file, load_policy("test_policy", tmp_path).file
    assert words in rules_line(on)
    assert words not in rules_line(off)
    assert len(off.rules) == 3


def test_with_every_rule_off_nothing_is_told(tmp_path: Path) -> None:
    switches = ("one_test_per_turn", "low_cost_first", "no_back_to_back_imaging", "red_flag_override")
    written(tmp_path, {"constraints": dict.fromkeys(switches, False)})
    file = load_policy("test_policy", tmp_path).file
    assert "Rules:" not in fallback_notes(file, "a reason", ())


def test_a_users_own_list_of_rules_is_told_whatever_is_on(tmp_path: Path) -> None:
    own = ["Listen first.", "Do no harm."]
    written(tmp_path, {"planning_rules": own, "constraints": {"one_test_per_turn": False}})
    file = load_policy("test_policy", tmp_path).file
    assert file.rules == tuple(own)
    assert rules_line(file) == "Rules: Listen first. Do no harm."


@pytest.mark.parametrize(
    ("key", "chat"),
    [
        ("user_prompt_template", "chat_task"),
        ("discriminator_template", "chat_discriminators"),
    ],
)
def test_a_file_that_words_the_task_itself_is_used_as_a_transcript(tmp_path: Path, key: str, chat: str) -> None:
    written(tmp_path, {key: OURS[key]})
    assert not load_policy("test_policy", tmp_path).file.chat
    written(tmp_path, {key: OURS[key], chat: OURS[chat]})
    assert load_policy("test_policy", tmp_path).file.chat
    written(tmp_path, {"system_base": "You plan."})
    assert load_policy("test_policy", tmp_path).file.chat, "this text is used in both forms"


def test_no_text_of_ours_has_a_blank_to_copy() -> None:
    """Small models copy `<name>` as if it were an answer."""
    texts = [value for value in OURS.values() if isinstance(value, str)]
    assert not [text for text in texts if re.search(r"<[a-z ]+>", text)]


def test_a_file_with_thresholds_alone_takes_the_rest_from_ours(tmp_path: Path) -> None:
    written(
        tmp_path, {"constraints": {"finish_early_if_confident": 0.9}, "differential_settings": {"max_differentials": 3}}
    )
    policy = load_policy("test_policy", tmp_path)
    assert policy.path.parent == tmp_path
    assert policy.file.constraints.finish_early_if_confident == 0.9
    assert policy.file.constraints.one_test_per_turn is True
    assert policy.file.differential_settings.max_differentials == 3
    assert policy.file.differential_settings.min_symptoms_per_disease == 4
    assert policy.file.system_base == OURS["system_base"]
    assert policy.file.red_flags == tuple(OURS["red_flags"])
    assert policy.digest != load_policy().digest


def test_without_a_file_the_shipped_one_is_used(tmp_path: Path) -> None:
    assert load_policy("test_policy", tmp_path).digest == load_policy().digest


def test_another_name_is_another_file(tmp_path: Path) -> None:
    written(tmp_path, {"differential_settings": {"discriminators": "off"}}, "mine")
    assert load_policy("mine", tmp_path).file.differential_settings.discriminators == "off"
    assert load_policy("test_policy", tmp_path).file.differential_settings.discriminators == "with_plan"


def with_setting(**changes: Any) -> dict[str, Any]:
    return {"differential_settings": changes}


def lacking(key: str, place: str) -> dict[str, Any]:
    return {key: OURS[key].replace(place, "")}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"constraint": {}}, ["unknown key 'constraint'", "did you mean 'constraints'?"]),
        (
            {"constraints": {"finish_early": 0.9}},
            ["unknown key 'constraints.finish_early'", "did you mean 'finish_early_if_confident'?"],
        ),
        (with_setting(min_symptoms=4), ["min_symptoms", "did you mean 'min_symptoms_per_disease'?"]),
        ({"constraints": {"finish_early_if_confident": 70}}, ["constraints.finish_early_if_confident", "equal to 1"]),
        (with_setting(confidence_close_threshold=-0.1), ["confidence_close_threshold", "equal to 0"]),
        (with_setting(min_symptoms_per_disease=2), ["min_symptoms_per_disease", "equal to 3"]),
        (with_setting(max_differentials=0), ["max_differentials", "equal to 1"]),
        (with_setting(max_differentials=11), ["max_differentials", "equal to 10"]),
        (with_setting(max_differentials=2), ["differential_settings", "min_diagnoses is 3", "lower min_diagnoses"]),
        ({"planning_rules": {"one_test": "One."}}, ["planning_rules", "'one_test' is not", "'one_test_per_turn'?"]),
        (with_setting(discriminators="sometimes"), ["discriminators", "'with_plan', 'separate' or 'off'"]),
        ({"red_flags": ["hypotention"]}, ["red_flags: ", "'hypotention' is not a finding", "mean 'hypotension'?"]),
        ({"synonyms": {"film": "Chest Xray"}}, ["synonyms: ", "'Chest Xray' is not a test", "mean 'Chest X-ray'?"]),
        ({"transitions": {"imagin": []}}, ["transitions", "'imagin' is not a kind of test", "did you mean 'imaging'?"]),
        ({"categories": {"x": {"words": ["x"], "cost_level": "dear"}}}, ["categories.x.cost_level", "'low'"]),
        ({"system_base": ""}, ["system_base", "at least 1 character"]),
        *[
            (lacking("user_prompt_template", f"{{{place}}}"), ["user_prompt_template", f"lacks {{{place}}}"])
            for place in ("door", "baseline", "transcript", "reply", "min_findings")
        ],
        *[
            (lacking("discriminator_template", f"{{{place}}}"), ["discriminator_template", f"{{{place}}}"])
            for place in ("door", "baseline", "transcript", "reply", "close")
        ],
        *[
            (lacking(key, f"{{{place}}}"), [key, f"lacks {{{place}}}"])
            for key, places in {
                "chat_system": ("door", "baseline"),
                "chat_task": ("reply", "min_findings"),
                "chat_discriminators": ("reply", "close"),
                "inline_task": ("min_findings",),
            }.items()
            for place in places
        ],
        ({"inline_system": ""}, ["inline_system", "at least 1 character"]),
        ([1], ["expected a JSON object"]),
        ('{"constraints": ', ["line 1", "not valid JSON"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and isinstance(value[0], str) else "",
)  # fmt: skip
def test_a_mistake_in_the_file_is_named_with_the_fix(tmp_path: Path, content: Any, named: list[str]) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ConfigError) as error:
        load_policy("test_policy", tmp_path)
    for part in (str(path), *named):
        assert part in str(error.value)


def test_a_custom_kind_may_be_used_in_transitions(tmp_path: Path) -> None:
    own = {
        "categories": {"genetics": {"words": ["exome"], "cost_level": "high"}},
        "transitions": {"genetics": ["vital"]},
    }
    written(tmp_path, own)
    assert load_policy("test_policy", tmp_path).file.transitions == {"genetics": ("vital",)}


def test_a_missing_policy_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no mine\.json .* use test_policy, or add the file"):
        load_policy("mine", tmp_path)


@pytest.mark.slow
def test_the_command_line_shows_the_error_and_writes_nothing(tmp_path: Path) -> None:
    written(tmp_path, {"red_flags": ["hypotention"]}, "mine")
    arguments: list[str | Path] = [
        "run",
        "--doctor_test_policy_enabled",
        "--doctor_test_policy",
        "mine",
        "--prompts_dir",
        tmp_path,
    ]
    said = clinic(*arguments, "--output_dir", tmp_path / "runs", cwd=tmp_path, expect=2)
    assert "did you mean 'hypotension'?" in " ".join(said.stderr.split())
    assert not (tmp_path / "runs").exists()
