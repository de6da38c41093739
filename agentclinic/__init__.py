"""AgentClinic: a clinic in which language-model doctors are tested.

The names below are the seed's synchronous interface; they are loaded when first used.
"""

from __future__ import annotations

from typing import Any

from agentclinic.version import __version__

_SCENARIOS = ("MedQA", "MedQAExtended", "NEJM", "NEJMExtended", "MIMICIV")
_DOORS = {
    "main": "agentclinic.cli:seed_main",
    **{f"Scenario{name}": f"agentclinic.compat.scenarios:Scenario{name}" for name in _SCENARIOS},
    **{f"ScenarioLoader{name}": f"agentclinic.compat.scenarios:ScenarioLoader{name}" for name in _SCENARIOS},
    **{
        name: f"agentclinic.compat.agents:{name}"
        for name in (
            "DoctorAgent",
            "UncertaintyAwareDoctorAgent",
            "PatientAgent",
            "MeasurementAgent",
            "query_model",
            "compare_results",
            "set_llm_config",
            "load_llm_config",
        )
    },
}

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        from importlib import import_module

        module, _, attribute = _DOORS[name].partition(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'agentclinic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_DOORS])
