"""How language models play the roles of a run: as the settings say, or as a user's own prompt files imply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentclinic.clinic.doctor import Dialogue
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.prompts import Prompt, Prompts
from agentclinic.config import RunSettings

_SIMULATED = {"patient": ("voiced_system", "grounded_system"), "measurement": ("grounded_system",)}
"""Texts without which a role's prompt file is for free text, as the original's files are."""


@dataclass(frozen=True)
class Roles:
    """How each role is played."""

    patient: Simulator = "voiced"
    laboratory: Simulator = "voiced"
    dialogue: Mapping[str, Dialogue] = field(default_factory=dict)
    """By role; a chat for any other."""

    def dialogue_of(self, role: str) -> Dialogue:
        return self.dialogue.get(role, "chat")


def simulator_of(run: RunSettings, role: str, prompt: Prompt) -> Simulator:
    """How the patient or the laboratory (`measurement`) is played with this prompt file."""
    return run.simulator or ("voiced" if prompt.has(*_SIMULATED[role]) else "free")


def roles_of(run: RunSettings, prompts: Prompts) -> tuple[Prompts, Roles]:
    """How the roles are played; where a setting says so, the shipped texts complete a user's own prompt file."""
    files = dict(prompts.files)
    if run.dialogue == "chat":
        files["doctor"] = files["doctor"].completed()
    if run.simulator in ("voiced", "grounded"):
        files |= {role: files[role].completed() for role in _SIMULATED}
    chats = {"doctor": ("chat_system",), **_SIMULATED}
    dialogue: dict[str, Dialogue] = {
        role: run.dialogue or ("chat" if files[role].has(*texts) else "transcript") for role, texts in chats.items()
    }
    patient, laboratory = (simulator_of(run, role, files[role]) for role in ("patient", "measurement"))
    return Prompts(files), Roles(patient, laboratory, dialogue)
