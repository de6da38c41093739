"""Names for runs, taken from the settings in which they differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentclinic.config import PROFILES
from agentclinic.results.run_data import RunData
from agentclinic.results.run_folder import ARMS


class Setting(NamedTuple):
    """A setting that affects how a run is played."""

    name: str
    """In tables."""
    said: str = "{}"
    """In the label of a run that has it."""
    unset: str = ""
    """In the label of a run without it."""


SETTINGS = {
    "dataset": Setting("data set"),
    "doctor": Setting("doctor"),
    "doctor_llm": Setting("doctor's model"),
    "generation": Setting("generation settings", "{}", "default generation"),
    "test_policy": Setting("test policy", "policy {}", "no policy"),
    "planner_baseline": Setting("planner starts from", "planner knows {}"),
    "policy_in_prompt": Setting("policy in the doctor's prompt", "policy in prompt {}"),
    "memory": Setting("memory", "memory {}", "no memory"),
    "doctor_bias": Setting("doctor's bias", "doctor bias {}", "no doctor bias"),
    "patient_bias": Setting("patient's bias", "patient bias {}", "no patient bias"),
    "patient_traits": Setting("patient's traits", "patient {}", "no traits"),
    "simulator": Setting("simulator", "simulator {}"),
    "dialogue": Setting("dialogue", "dialogue {}"),
    "patient_llm": Setting("patient's model", "patient {}"),
    "measurement_llm": Setting("laboratory's model", "laboratory {}"),
    "moderator_llm": Setting("judge's model", "judge {}"),
    "max_infs": Setting("turn limit", "{} turns"),
    "missing_test": Setting("tests not in the chart", "missing tests {}"),
    "pending_results": Setting("results can be late", "pending results {}"),
    "silent_symptom": Setting("symptoms not in the chart", "silent symptoms {}"),
    "image_request_enabled": Setting("images", "images {}"),
    "resource_level": Setting("resource level", "resources {}"),
    "price_table": Setting("prices of tests", "prices {}", "our prices"),
    "test_budget": Setting("budget for tests, USD", "tests up to ${}", "no budget for tests"),
    "order_limit": Setting("items in an order, at most", "{} items an order"),
}
"""Fields of a record that say how a run was played; those that matter most come first in a label."""
OF_RUN = ("test_budget", "order_limit")
"""Those that are in the run's settings instead."""
BEFORE_0_3: Mapping[str, Any] = {"simulator": {"patient": "free", "measurement": "free"}, "dialogue": "transcript"}
"""How runs were played before records said so."""
_STAMPED = re.compile(r".*_\d{8}_\d{6}(_.*)?")
"""The folder of a run as the program names it: data set and time."""


def setting_text(value: Any) -> str:
    """A setting as text: a simulator's two parts in one word if they are the same, several traits as their profile."""
    if isinstance(value, dict):
        if len(value) > 1 and (profile := next((name for name, each in PROFILES.items() if each == value), None)):
            return profile
        kinds = list(dict.fromkeys(value.values())) if "patient" in value else []
        return str(kinds[0]) if len(kinds) == 1 else ", ".join(f"{part} {kind}" for part, kind in value.items())
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def letters(count: int) -> list[str]:
    """Short names of runs in tables and charts: A, B, C, ..."""
    return [chr(ord("A") + run) if run < 26 else str(run + 1) for run in range(count)]


def run_labels(runs: Sequence[RunData], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """What to call each of several runs: the user's own name for it, and the settings in which they differ.

    `settings` are by the keys of `SETTINGS`. Runs that differ in nothing are called by doctor and folder.
    """
    said = [{key: _said(key, value) for key, value in one.items()} for one in settings]
    prompts = [_prompts(run) for run in runs]
    keys = [key for key in SETTINGS if len({one.get(key) for one in said}) > 1]
    files = [key for key in prompts[0] if all(key in one for one in prompts) and len({one[key] for one in prompts}) > 1]
    labels = []
    for run, one, prompt in zip(runs, said, prompts, strict=True):
        parts = [*(one.get(key, SETTINGS[key].unset) for key in keys), *(prompt[key] for key in files)]
        name, differs = _own_name(run), ", ".join(filter(None, parts))
        labels.append(f"{name} ({differs})" if name and differs and name != differs else name or differs)
    unique = [bool(label) and labels.count(label) == 1 for label in labels]
    return [
        label if alone else f"{doctor_label(one)} ({one.get('doctor_llm', 'unknown')}), {run.name}"
        for alone, label, run, one in zip(unique, labels, runs, settings, strict=True)
    ]


def shortened(text: str, names: Mapping[str, str]) -> str:
    """A sentence about runs, with their letters (by name) instead of their names."""
    for name in sorted(names, key=len, reverse=True):  # one name may start with the other
        text = text.replace(name, names[name])
    return text


def doctor_label(settings: Mapping[str, str]) -> str:
    """The doctor in a few words, without its model: `plain + policy + memory bm25`."""
    extras = ("test_policy", "memory", "doctor_bias", "patient_bias", "patient_traits")
    return " + ".join(
        [settings.get("doctor") or "plain", *(_said(key, settings[key]) for key in extras if settings.get(key))]
    )


def is_program(doctor: str | None) -> bool:
    """Whether a doctor is a program of the user's: `FILE.py:Class`."""
    return ".py:" in (doctor or "")


def played_by(doctor: str | None, model: str | None) -> str:
    """Who played the doctor: a model, or a doctor of another kind with the model that it used."""
    if doctor in (None, "", "plain"):
        return model or "unknown"
    return str(doctor) if model == "builtin" and is_program(doctor) else f"{doctor} ({model or 'unknown model'})"


def _own_name(run: RunData) -> str:
    """The name that a user gave to a run, or to its folder; empty if it has only the one the program gave it."""
    if run.path.parent.parent.name == ARMS:
        return ""
    given = (run.config.get("run") or {}).get("name")
    return str(given) if given else "" if _STAMPED.fullmatch(run.name) else run.name


def _prompts(run: RunData) -> dict[str, str]:
    digests = (run.config.get("agentclinic") or {}).get("digest") or {}
    named = {key: str(value) for key, value in digests.items() if key.startswith("prompts.")}
    return {key: f"{key.removeprefix('prompts.')} prompt {value[:6]}" for key, value in named.items()}


def _said(key: str, value: str) -> str:
    if key == "test_policy" and value == "test_policy":
        return "policy"
    if key == "memory":  # how it searches, and the start of the hash of its file
        value = " ".join(part[:6] for part in value.split())
    if key == "max_infs" and value == "1":
        return "1 turn"
    return SETTINGS[key].said.format(value)
