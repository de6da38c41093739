"""A policy file with the original's keys: what the planner is told, and what orders are checked with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from original_prompts import DIALECT, write_files

from agentclinic.cases.model import Door
from agentclinic.doctors.planner.prompting import rules_line
from agentclinic.doctors.planner.rules import check_order, named_tests
from agentclinic.doctors.planner.settings import PolicyFile, load_policy
from agentclinic.errors import ConfigError
from agentclinic.results.turn import Exchange

GIVEN = DIALECT["test_policy"]


def loaded(folder: Path, content: dict[str, Any] | None = None, *, chat: bool = False) -> PolicyFile:
    return load_policy("test_policy", write_files(folder, test_policy=content or GIVEN), chat=chat).file


def test_the_planner_is_told_what_the_file_advises(tmp_path: Path) -> None:
    file, shipped = loaded(tmp_path), load_policy().file
    advice = (
        "Think before you order.\n\n"
        "Kinds of tests:\n"
        "- labs_basic (cost: low): Blood. Tests: Zeta factor (ZF).\n"
        "- imaging_ct (cost: medium to high): Slices. Tests: CT Toe (fast).\n\n"
        "Which kind may come next:\n"
        "- After history_physical: labs_basic. If it decides."
    )
    assert file.system_base == f"{shipped.system_base}\n\n{advice}"
    assert file.inline_system == f"{shipped.inline_system}\n\n{advice}"


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ("prefer_low_cost_first", "costs little"),
        ("avoid_back_to_back_imaging", "imaging study right after another"),
        ("allow_override_for_red_flags", "red flag"),
    ],
)
def test_a_constraint_of_the_original_decides_what_the_doctor_is_told(tmp_path: Path, theirs: str, words: str) -> None:
    on, off = (loaded(tmp_path, {"constraints": {theirs: value}}) for value in (True, False))
    assert words in rules_line(on)
    assert words not in rules_line(off)


def test_the_kinds_of_the_file_and_the_shipped_ones_recognize_tests(tmp_path: Path) -> None:
    file = loaded(tmp_path)
    read = {order: named_tests(file, order) for order in ("zeta factor", "CT toe", "pic", "slices of the knee", "exam")}
    assert {order: (test.name, test.kind, test.cost_level) for order, (test,) in read.items()} == {
        "zeta factor": ("zeta factor", "labs_basic", "low"),
        "CT toe": ("CT toe", "imaging_ct", "high"),
        "pic": ("Chest X-ray", "imaging", "low"),
        "slices of the knee": ("slices of the knee", "imaging", "high"),
        "exam": ("exam", "examination", "low"),
    }


def test_an_entry_that_is_only_a_remark_names_no_test(tmp_path: Path) -> None:
    kind = {"description": "Blood.", "typical_tests": ["Zeta factor", "(as needed)"], "cost_level": "low"}
    assert loaded(tmp_path, {"categories": {"labs": kind}}).categories["labs"].words == ("Zeta factor",)


def test_kinds_of_imaging_are_imaging_and_transitions_are_advice_only(tmp_path: Path) -> None:
    file, door = loaded(tmp_path), Door("Assess a sore toe.", "50-year-old man")
    film, blood = Exchange("test", "pic", "RESULTS: clear"), Exchange("test", "zeta factor", "RESULTS: 3")
    assert check_order(file, door, "CT toe", [blood, film]).broken == (
        "no back-to-back imaging (CT toe right after Chest X-ray)",
    )
    assert check_order(file, door, "zeta factor", [film]).broken == ()


def test_what_has_no_effect_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"test_policy\.json: synonyms for .* have no effect: omen \(Crystal ball\)$"):
        loaded(tmp_path, {**GIVEN, "synonyms": {"pic": "Chest X-Ray", "omen": "Crystal ball"}})


def test_the_file_implies_a_transcript_unless_a_chat_is_asked_for(tmp_path: Path) -> None:
    assert not loaded(tmp_path).chat
    assert loaded(tmp_path, chat=True).chat
    assert loaded(tmp_path, {"constraints": {"finish_early_if_confident": 0.9}}).chat, "thresholds are in both dialects"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"instructions": ["Think."]}, "instructions: must be a valid string"),
        ({"transitions": [{"to": []}]}, r"json: transitions\.0\.from: field required$"),
        (
            {"categories": {"x": {"typical_tests": [], "cost_level": "dear"}}},
            r"categories\.x: cost_level: .*'low_to_me",
        ),
        ({"constraints": {"prefer_low_cost_first": True, "low_cost_first": True}}, "are the same; keep one"),
        ({"instructions": "Think.", "constraints": {"avoid_imaging": True}}, "unknown key 'constraints.avoid_imaging'"),
        ({"instructions": "Think.", "constraints": []}, "constraints: must be a valid dictionary"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as refused:
        loaded(tmp_path, content)
    assert str(refused.value).startswith(str(tmp_path / "test_policy.json"))
