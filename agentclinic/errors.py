"""The errors AgentClinic raises, by where they come from."""

from __future__ import annotations


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
