"""AgentClinic tests language-model doctors on simulated patients.

The names in `__all__` are the public interface (docs/python.md). The names of the original AgentClinic, such as
`DoctorAgent` and `query_model`, are also here. Everything is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentclinic.version import __version__

if TYPE_CHECKING:
    from agentclinic.api import Comparison, Reliability, Run, compare, evaluate, load_cases, load_run, reliability
    from agentclinic.cases.model import Case
    from agentclinic.clinic.doctor import Utterance
    from agentclinic.doctors.custom import Doctor
    from agentclinic.results.record import Record
    from agentclinic.results.utterance import Action

_PUBLIC = {
    **dict.fromkeys(
        ("Comparison", "Reliability", "Run", "compare", "evaluate", "load_cases", "load_run", "reliability"),
        "agentclinic.api",
    ),
    "Action": "agentclinic.results.utterance",
    "Case": "agentclinic.cases.model",
    "Doctor": "agentclinic.doctors.custom",
    "Record": "agentclinic.results.record",
    "Utterance": "agentclinic.clinic.doctor",
}
_DATASETS = ("MedQA", "MedQAExtended", "NEJM", "NEJMExtended", "MIMICIV", "OSCE")
_ORIGINAL = {
    "main": "agentclinic.cli",
    **{
        f"{kind}{name}": "agentclinic.compat.scenarios" for kind in ("Scenario", "ScenarioLoader") for name in _DATASETS
    },
    "ScenarioMIMICIVQA": "agentclinic.compat.scenarios",
    "DifferentialDiagnosisEngine": "agentclinic.compat.policy_engine",
    **dict.fromkeys(
        (
            "DoctorAgent",
            "UncertaintyAwareDoctorAgent",
            "PatientAgent",
            "MeasurementAgent",
            "CostEstimatorAgent",
            "query_model",
            "compare_results",
            "set_llm_config",
            "load_llm_config",
            "init_openai_client",
            "get_openai_client",
            "load_prompts_json",
        ),
        "agentclinic.compat.agents",
    ),
}

__all__ = [
    "Action",
    "Case",
    "Comparison",
    "Doctor",
    "Record",
    "Reliability",
    "Run",
    "Utterance",
    "__version__",
    "compare",
    "evaluate",
    "load_cases",
    "load_run",
    "reliability",
]


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name) or _ORIGINAL.get(name)
    if module is None:
        raise AttributeError(f"module 'agentclinic' has no attribute {name!r}")
    return getattr(import_module(module), "original_main" if name == "main" else name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ORIGINAL})
