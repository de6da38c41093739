"""Labels of runs: by what differs between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentclinic.config import PROFILES
from agentclinic.results.run_data import RunData
from agentclinic.scoring.labels import letters, run_labels, setting_text


def run(folder: str, config: dict[str, Any] | None = None) -> RunData:
    return RunData(Path("runs") / folder / "scenarios.jsonl", folder, config or {})


def test_runs_are_called_by_the_settings_in_which_they_differ() -> None:
    plain = {"dataset": "MedQA", "doctor": "plain", "doctor_llm": "m", "max_infs": "20"}
    others = [
        {"doctor_llm": "n"},
        {"test_policy": "test_policy"},
        {"memory": "bm25 0123456789abcdef"},
        {"doctor_bias": "recency", "max_infs": "10"},
    ]
    stamped = [run(f"MedQA_2026010{number}_000000") for number in (1, 2)]
    assert [run_labels(stamped, [plain, plain | other]) for other in others] == [
        ["m", "n"],
        ["no policy", "policy"],
        ["no memory", "memory bm25 012345"],
        ["no doctor bias, 20 turns", "doctor bias recency, 10 turns"],
    ]


def test_a_users_own_name_comes_first_and_equal_runs_are_told_apart_by_their_folders() -> None:
    same = {"doctor": "plain", "doctor_llm": "m"}
    named = run("MedQA_20260101_000000_try-2", {"run": {"name": "try-2"}})
    moved = run("best of May")
    stamps = [run("MedQA_20260101_000000"), run("MedQA_20260101_000000_2")]
    arms = [run("x/arms/turns-10"), run("x/arms/turns-20")]

    assert run_labels([named, moved], [same, same | {"doctor_llm": "n"}]) == ["try-2 (m)", "best of May (n)"]
    assert run_labels(stamps, [same, same]) == [
        "plain (m), MedQA_20260101_000000",
        "plain (m), MedQA_20260101_000000_2",
    ]
    assert run_labels(arms, [same | {"max_infs": "10"}, same | {"max_infs": "20"}]) == ["10 turns", "20 turns"]


def test_prompts_that_differ_are_named() -> None:
    configs = [{"agentclinic": {"digest": {"prompts.doctor": f"{d}bcdef012", "prompts.patient": "s"}}} for d in "ac"]
    runs = [run(f"MedQA_2026010{number}_000000", config) for number, config in enumerate(configs)]
    assert run_labels(runs, [{}, {}]) == ["doctor prompt abcdef", "doctor prompt cbcdef"]


def test_letters_go_on_after_z() -> None:
    assert letters(27)[25:] == ["Z", "27"]


def test_traits_are_named_with_their_levels_and_several_by_their_profile() -> None:
    assert setting_text({"recall": 2}) == "recall 2", "next to recall 1, not forgetful"
    assert setting_text({"recall": 2, "literacy": 1}) == "recall 2, literacy 1"
    assert setting_text(dict(PROFILES["difficult"])) == "difficult"
