"""What can go wrong, named by the boundary at which it goes wrong."""

from __future__ import annotations


class AgentClinicError(Exception):
    """Something AgentClinic can explain; the command line prints the message and no traceback."""

    exit_code = 1


class InputError(AgentClinicError):
    """What the user gave (a file, a key, a flag) cannot be used; the message says where and the mend."""

    exit_code = 2


class ConfigError(InputError):
    """A setting is unknown, impossible or of the wrong type."""


class CaseError(InputError):
    """A case file or one of its rows cannot be read as a case."""
