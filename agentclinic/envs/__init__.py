"""Environments: the clinic to train in. `ClinicEnv` needs no extra; the adapters for other libraries do."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentclinic.envs.clinic_env import ClinicEnv, record_of

__all__ = ["ClinicEnv", "record_of"]


def __getattr__(name: str) -> Any:  # lazy: importing an adapter does not need `ClinicEnv`
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("agentclinic.envs.clinic_env"), name)
