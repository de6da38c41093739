"""Checks that the library of an adapter is installed, in a version that the adapter works with."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from agentclinic.errors import InputError, how_to_install


def needs(module: str, extra: str, at_least: str) -> None:
    """Refuse, in one line that says what to install, if a library is missing or older than `at_least`."""
    try:
        installed = version(module)
    except PackageNotFoundError:
        problem = "which is not installed"
    else:
        if _numbers(installed) >= _numbers(at_least):
            return
        problem = f"and {installed} is installed"
    raise InputError(f"this needs {module} {at_least} or newer, {problem}: {how_to_install(extra)}")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
