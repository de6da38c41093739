"""The errors AgentClinic raises, by where they come from."""

from __future__ import annotations

import sys
from pathlib import Path


class AgentClinicError(Exception):
    """An error that AgentClinic can explain; the command line prints its message without a traceback."""

    exit_code = 1


class InputError(AgentClinicError):
    """A file, key or flag from the user is unusable; the message says which one and what to do."""

    exit_code = 2


class ConfigError(InputError):
    """A setting is unknown, impossible or of the wrong type."""


class CaseError(InputError):
    """A case file, or one of its rows, cannot be read."""


def how_to_install(extra: str) -> str:
    """The command that installs an extra of this package where it is: in a clone, or as an installed package."""
    clone = Path(__file__).parents[1]
    if (clone / "pyproject.toml").is_file():
        wanted = [f"-e '{clone}[{extra}]'"]
    else:
        from importlib.metadata import requires

        named = (one.partition(";") for one in requires("agentclinic") or ())
        wanted = [f"'{name.strip()}'" for name, _, when in named if f"extra == '{extra}'" in when.replace('"', "'")]
    return f"{sys.executable} -m pip install {' '.join(wanted)}"
