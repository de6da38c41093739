"""The commands. Each reads settings, calls the package, and shows what came of it."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence

from agentclinic import privacy
from agentclinic.errors import AgentClinicError


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command and return, or raise `SystemExit` with the right exit code after one line about the error."""
    arguments = normalised(sys.argv[1:] if argv is None else argv)
    warnings.showwarning = _show_warning
    from agentclinic.cli.app import app

    try:
        app(arguments, prog_name="agentclinic")
    except SystemExit as done:
        if done.code:
            raise
    except AgentClinicError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except Exception as error:
        if not privacy.silent():
            raise
        # A bug of ours: show where, but not the words of the exception, which may hold a patient's chart.
        traceback.print_tb(error.__traceback__)
        sys.stderr.write(f"{type(error).__name__}: {privacy.LEFT_OUT}\n")
        raise SystemExit(1) from None


def original_main(argv: Sequence[str] | None = None) -> None:
    """What `python agentclinic.py` does: with flags only, or with nothing at all, it runs an evaluation."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    main(arguments or ["run"])


_GLOBAL = frozenset({"--help", "-h", "--version", "--install-completion", "--show-completion"})


def normalised(arguments: Sequence[str]) -> list[str]:
    """Flags with `-` for `_`, and the command `run` put in front of bare flags, as the seed writes them."""
    result = []
    for index, argument in enumerate(arguments):
        if "--" in arguments[:index]:
            result.append(argument)
        elif argument.startswith("--"):
            name, equals, value = argument.partition("=")
            result.append(name.replace("_", "-") + equals + value)
        else:
            result.append(argument)
    if result and result[0].startswith("-") and result[0] not in _GLOBAL:
        result.insert(0, "run")
    return result


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"warning: {message}\n")
