"""The uncertainty-aware doctor as a drop-in replacement for `DoctorAgent`, even in a checkout of the original.

Copy this file next to the script and replace the import:

    from uncertainty_aware_doctor import UncertaintyAwareDoctorAgent

A script named `agentclinic.py` hides the installed package of that name; this module looks past it.
"""

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentclinic.compat.agents import UncertaintyAwareDoctorAgent


def _hides_the_package(entry: str) -> bool:
    folder = Path(entry or ".")
    return (folder / "agentclinic.py").is_file() and not (folder / "agentclinic" / "__init__.py").is_file()


def __getattr__(name: str) -> object:
    if name != "UncertaintyAwareDoctorAgent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    path = sys.path[:]
    if not hasattr(sys.modules.get("agentclinic"), "__path__"):
        sys.modules.pop("agentclinic", None)
        sys.path[:] = [entry for entry in path if not _hides_the_package(entry)]
    try:
        return importlib.import_module("agentclinic.compat.agents").UncertaintyAwareDoctorAgent
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error.name} is not installed; run `pip install DIR`, where DIR is the repository"
        ) from None
    finally:
        sys.path[:] = path


__all__ = ["UncertaintyAwareDoctorAgent"]
