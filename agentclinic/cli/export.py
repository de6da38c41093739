"""`agentclinic export`: a run in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from agentclinic.cli import options as opt
from agentclinic.config import suggestion
from agentclinic.errors import InputError

FORMATS = ("inspect",)


def export_command(
    run: opt.RunArgument,
    format: Annotated[str, opt.output(help="inspect: a log that `inspect view` opens.")] = "inspect",  # noqa: A002
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="File to write. [default: inspect.eval in the run's folder]"),
    ] = None,
    judge: opt.Judge = None,
) -> None:
    """Write a run as a log of Inspect AI.

    The log has the dialogue, verdict, tokens and errors of each encounter, and the figures of `score`. Needs the extra
    inspect.
    """
    from agentclinic.results.run_data import load_run

    if format not in FORMATS:
        raise InputError(f"--format: {format!r} is not a format{suggestion(format, FORMATS)}")
    data = load_run(run, judge)
    target = output or data.path.with_name("inspect.eval")
    if target.suffix != ".eval":
        raise InputError(f"{target}: the name of an Inspect log ends in .eval; name another file with -o")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}; create it first")
    if output and target.exists():
        raise InputError(f"{target}: already exists; name another file with -o, or delete it")
    from agentclinic.envs.inspect_log import write_log

    log = write_log(data, target)
    if log.status != "success" and log.results:
        print(f"The run is not finished: {len(log.samples or ())} of its {log.results.total_samples} encounters.")
    print(f"Written to {target}")
