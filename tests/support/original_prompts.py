"""Small prompt files and a policy in the original's dialect, written by us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DIALECT: dict[str, dict[str, Any]] = {
    "doctor": {
        "system_base": "You lead this. {} utterances at most, {} used.",
        "system_images_suffix": " REQUEST IMAGES works.",
        "system_presentation_suffix": "\n\nYour task: {}.",
        "user_prompt_template": "\nSo far: {agent_hist}\nNewest: {question}\n{planning_notes}Speak.\nDoctor: ",
        "biases": {"recency": "\nYou keep thinking of last week.\n"},
    },
    "patient": {
        "system_base": "You are ill.",
        "system_symptoms_suffix": "\n\nAbout you: {}.",
        "user_prompt_template": "\nSo far: {agent_hist}\nAsked: {question}\nPatient: ",
        "biases": {"recency": "\nA friend had this.\n"},
    },
    "measurement": {
        "system_base": "You report results.",
        "system_presentation_suffix": "\n\nThe chart: {}.",
        "user_prompt_template": "\nSo far: {agent_hist}\nOrdered: {question}",
    },
    "moderator": {
        "system_prompt": "Same disease? Yes or No.",
        "user_prompt_template": "\nTruth: {correct}\nSaid: {diag}",
    },
    "test_policy": {
        "instructions": "Think before you order.",
        "constraints": {"prefer_low_cost_first": False, "finish_early_if_confident": 0.9},
        "categories": {
            "labs_basic": {"description": "Blood.", "typical_tests": ["Zeta factor (ZF)"], "cost_level": "low"},
            "imaging_ct": {
                "description": "Slices.",
                "typical_tests": ["CT Toe (fast)"],
                "cost_level": "medium_to_high",
            },
        },
        "transitions": [{"from": "history_physical", "to": ["labs_basic"], "conditions": "If it decides."}],
        "synonyms": {"pic": "Chest X-Ray", "slices": "CT"},
    },
}


def write_files(folder: Path, **files: dict[str, Any]) -> Path:
    """Write prompt files by name; without names, all of `DIALECT`."""
    folder.mkdir(exist_ok=True)
    for name, content in (files or DIALECT).items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
