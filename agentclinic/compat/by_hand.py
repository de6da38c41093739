"""The synthesis of a `final_diagnosis` that somebody calls by hand: the model that `agent_config.yaml` names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentclinic import sync_bridge
from agentclinic.clinic.prompts import load_prompt
from agentclinic.doctors.uncertainty.agent_config import load_agent
from agentclinic.doctors.uncertainty.synthesis import Synthesis, synthesise
from agentclinic.runs.lazy_model import Named


def synthesise_by_hand(facts: Sequence[str], fallback: str | None) -> Synthesis:
    """Name the diagnosis as the agent's own model sees it, with the prompt in `prompts/` where there is one."""
    own = Path("prompts")
    prompt = load_prompt("synthesis", own if own.is_dir() else None)
    return sync_bridge.call(synthesise, Named(load_agent().settings.model), prompt, facts, fallback)
