"""The commands: each reads settings, calls the package and prints the result."""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; a failure is one line on standard error and `SystemExit` with the right exit code."""
    from agentclinic.cli.format import guarded

    with guarded():
        _run(argv)


def _run(argv: Sequence[str] | None) -> None:
    # Loading modules and tables makes many objects that stay: at the default of 700, scanning them takes a third of it.
    gc.set_threshold(10_000, 20, 50)
    arguments = list(sys.argv[1:] if argv is None else argv)
    warnings.showwarning = _show_warning
    from agentclinic.cli.app import app

    try:
        arguments = normalized(arguments)
        _check_working_folder()
        try:
            app(arguments, prog_name="agentclinic")
        except SystemExit as done:
            if done.code:
                raise
        sys.stdout.flush()
    except AgentClinicError as error:
        sys.stderr.write(f"Error: {_as_typed(str(error), arguments)}\n")
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        if error.filename is None:
            if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
                raise  # not about standard output
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again when it exits
        sys.stderr.write(
            f"Error: {str(error.filename or 'standard output')[:200]}: cannot be used ({error.strerror})\n"
        )
        raise SystemExit(InputError.exit_code) from None
    except UnicodeEncodeError as error:
        if error.encoding != sys.getfilesystemencoding():
            raise
        sys.stderr.write(
            f"Error: a file name cannot be written in this system's encoding, {error.encoding}; set LC_ALL=C.UTF-8\n"
        )
        raise SystemExit(InputError.exit_code) from None
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    except Exception as error:
        if not privacy.silent():
            raise
        sys.stderr.write(privacy.crash(error))  # a bug in AgentClinic
        raise SystemExit(1) from None


def _as_typed(message: str, arguments: Sequence[str]) -> str:
    """The message, in which a setting that was given as a flag is called by that."""
    from agentclinic.cli.options import ALIASES

    typed = {argument.partition("=")[0] for argument in arguments}

    def named(key: re.Match[str]) -> str:
        names = ALIASES.get(key[0], (f"--{key[0].replace('_', '-')}",))
        return next((name for name in names if name in typed), key[0])

    return re.sub(r"(?:^|(?<=; ))[a-z_]+(?=[: ])", named, message)


def _check_working_folder() -> None:
    try:
        Path.cwd()
    except OSError:
        raise InputError("the working folder no longer exists; change to another one") from None


def original_main(config: str | Path | None = None, llm: str | Path | None = None, workers: int | None = None) -> None:
    """`python agentclinic.py`: without a command, it runs an evaluation.

    In Python, the arguments are the paths of the two config files and the number of workers.
    """
    if isinstance(config, Mapping) or isinstance(llm, Mapping):  # its key must not end up in an error message
        raise InputError("main takes the paths of agentclinic.config.json and llm.config.json, not their contents")
    given = {"--config": config, "--llm-config": llm, "--workers": workers}
    flags = [part for flag, value in given.items() if value is not None for part in (flag, str(value))]
    main(["run", *flags] if flags else sys.argv[1:] or ["run"])


_GLOBAL = frozenset({"--help", "-h", "--version", "--install-completion", "--show-completion"})


_RENAMED = {"--agent-dataset": "--dataset", "--scenario-offset": "--offset"}
"""Flags of the original that have another name here."""
_WITH_VALUE = frozenset(
    {"--doctor-image-request", "--doctor-test-policy-enabled", "--use-memory", "--use-uncertainty-aware"}
)
"""On/off flags of the original that its users also write with a value, True or False."""
_SAID = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def normalized(arguments: Sequence[str]) -> list[str]:
    """Write flags with `-` instead of `_` and with the names they have here, and put `run` before bare flags.

    This lets the original's command lines work: `--doctor_image_request True`, `--agent_dataset MedQA`.
    """
    result: list[str] = []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        if argument == "--":
            result += [argument, *left]
            break
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            name = name.replace("_", "-")
            name = _RENAMED.get(name, name)
            given = (value if equals else left[0] if left else "").lower()
            if name in _WITH_VALUE and given and (equals or not given.startswith("-")):
                if given not in _SAID:
                    raise InputError(f"{name} {given}: write true or false, or nothing for true")
                left = left if equals else left[1:]
                name, equals, value = name if _SAID[given] else f"--no-{name[2:]}", "", ""
            if name == "--knowledge" and not equals and (not left or left[0].startswith("-")):
                left.insert(0, "")  # some versions have it as a switch
            argument = name + equals + value
        result.append(argument)
    if result and result[0].startswith("-") and result[0] not in _GLOBAL:
        result.insert(0, "run")
    if result and result[0] == "check_folder":
        result[0] = "check-folder"
    return result


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    sys.stderr.write(f"Warning: {message}\n")
