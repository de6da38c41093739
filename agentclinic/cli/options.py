"""Options that several commands share, and options made from the fields of settings so that each is described once."""

from __future__ import annotations

import inspect
import io
import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

from agentclinic.config import (
    RunSettings,
    Settings,
    choices,
    described,
    has_llm_sections,
    load_settings,
    nearest,
    with_limits,
)

RunArgument = Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/MedQA_20260101_120000.", metavar="RUN")]
RecordsArgument = Annotated[Path, typer.Argument(help="Folder of a run, or a file of records.", metavar="RUN")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        help="Settings and paths of data sets; a run's config.used.json repeats that run. "
        "[default: agentclinic.config.json, if it exists]"
    ),
]
LLMConfigOption = Annotated[
    Path | None, typer.Option(help="Endpoint, key and request settings. [default: llm.config.json, if it exists]")
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Allow credentialed data to be sent to this host, which privacy.hosts must attest. Repeatable.",
        metavar="HOST",
        show_default=False,
    ),
]
JudgeOption = Annotated[
    str | None, typer.Option(help="Use the verdicts in RUN/judgements/NAME.jsonl instead of the recorded ones.")
]
CorrectedOption = Annotated[
    bool,
    typer.Option("--corrected", help="Also correct the accuracy for the judge's errors, using RUN/labels/."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed of the intervals.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the result to this file instead of printing it.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show the result only, no progress.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
ReportOption = Annotated[bool, typer.Option("--report", help="Write report.html to the run's folder at the end.")]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Estimate requests, tokens and cost by role, then stop; sends nothing and writes nothing."
    ),
]
TokenLimitOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Stop cleanly after this many tokens, counting those of earlier calls. [default: llm.runtime.token_limit]",
        show_default=False,
    ),
]


def _dollars(amount: float | None) -> float | None:
    if amount is not None and not 0 < amount < float("inf"):
        raise typer.BadParameter("must be more than 0 dollars")
    return amount


MaxCostOption = Annotated[
    float | None,
    typer.Option(
        help="Stop cleanly after this many US dollars, counting what earlier calls cost; refused if a price is "
        "unknown. [default: llm.runtime.max_cost]",
        metavar="USD",
        callback=_dollars,
        show_default=False,
    ),
]
LearnerOption = Annotated[
    str,
    typer.Option(
        help="Model that writes experiences: builtin, replay:FILE, or the name of a model at the endpoint.",
    ),
]
LearnerEndpointOption = Annotated[str | None, typer.Option(help="Endpoint of the learner, by its name in `endpoints`.")]
AllOption = Annotated[bool, typer.Option("--all", help="Learn from every encounter, not only from failed ones.")]
StoreArgument = Annotated[Path, typer.Argument(help="File of experiences, made by `agentclinic learn`.")]
CheckOption = Annotated[
    bool | None,
    typer.Option(
        "--check/--no-check",
        help=f"{described(RunSettings.model_fields['check'])} [default: true]",
        show_default=False,
    ),
]

HostOption = Annotated[
    str,
    typer.Option(
        help="Address to listen on; one that other machines can reach needs AGENTCLINIC_PASSWORD in the environment.",
        metavar="ADDRESS",
    ),
]
PortOption = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.", show_default=False)
]
BrowserOption = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")]


def _use_key(key: str | None) -> str | None:
    if key:
        warnings.warn(
            "--openai-api-key: the key is now in the shell's history and visible in the list of processes; set "
            "OPENAI_API_KEY in the environment or in .env instead",
            stacklevel=2,
        )
        # Not a setting, so that it cannot be written anywhere; like any flag, it wins over .env and the files.
        os.environ["OPENAI_API_KEY"] = key
    return None


# Flags of the original's scripts. They are listed in docs/runs.md, not in --help.
KeyOption = Annotated[str | None, typer.Option("--openai-api-key", hidden=True, callback=_use_key)]
OutputFileOption = Annotated[Path | None, typer.Option("--output-file", hidden=True)]
UncertaintyAwareOption = Annotated[
    bool, typer.Option("--use-uncertainty-aware/--no-use-uncertainty-aware", hidden=True)
]
MemoryOption = Annotated[bool, typer.Option("--use-memory/--no-use-memory", hidden=True)]

FullOption = Annotated[bool, typer.Option("--full", help="Print every figure, not just one table and one sentence.")]

_SIMPLE = (bool, int, float)
_ALIASES = {
    "base_dataset_dir": ("--base-dir", "--base-dataset-dir"),
    "num_scenarios": ("--limit", "--num-scenarios"),
    "output": ("--output", "-o"),
}
"""Flags with a name that other commands use for the same thing, besides the config's key."""
_PATHS = frozenset(
    {"agent_config", "base_dataset_dir", "cache_dir", "llm_config", "memory", "output", "output_dir", "prompts_dir"}
    | {"record", "split"}
)
"""Fields that are called paths in the help."""


def with_fields_of(
    *models: type[BaseModel], only: Collection[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option per field of the models; the values given arrive as the dict `overrides`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        fields = {
            name: field
            for model in models
            for name, field in model.model_fields.items()
            if only is None or name in only
        }
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "overrides"]

        def wrapper(**given: Any) -> None:
            overrides = {name: given.pop(name) for name in fields}
            command(**given, overrides={name: value for name, value in overrides.items() if value is not None})

        parameters = [*own, *(_parameter(name, field) for name, field in fields.items())]
        return _called_like(command, wrapper, parameters)

    return decorate


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that prints its result `--output`, which writes it to a file instead."""
    from agentclinic.cli.format import deliver
    from agentclinic.cli.terminal import Stream

    def wrapper(*, output: Path | None, **given: Any) -> None:
        if output is None:
            command(**given)
            return
        written = io.StringIO()
        ended: SystemExit | None = None
        with redirect_stdout(cast("Any", Stream(written))):
            try:
                command(**given)
            except SystemExit as error:  # an exit code that says what was found: the result is complete
                ended = error
        deliver(written.getvalue(), output)
        if ended:
            raise ended

    parameters = list(inspect.signature(command, eval_str=True).parameters.values())
    keyword = inspect.Parameter.KEYWORD_ONLY
    return _called_like(
        command, wrapper, [*parameters, inspect.Parameter("output", keyword, default=None, annotation=OutputOption)]
    )


def _called_like(
    command: Callable[..., None], wrapper: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The wrapper with the command's name and docstring and these parameters."""
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    wrapper.__name__ = command.__name__
    wrapper.__doc__ = command.__doc__
    return wrapper


class Group(TyperGroup):
    """Commands whose errors name the one command or flag that was probably meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            near = nearest(args[0], self.commands) if args else None
            if near:
                cast("Any", error).message = f"No such command {args[0]!r}; did you mean {near!r}?"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if possible := getattr(error, "possibilities", None):
                unknown = cast("Any", error)
                near = nearest(unknown.option_name, possible)
                unknown.message += f"; did you mean {near}?" if near else ""
                unknown.possibilities = None
            raise


_DEFAULT = re.compile(r" \(default: (.+?)\)")
"""How a field's docstring names a default that depends on something else."""


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kinds = (field.annotation, *get_args(field.annotation))
    kind: type = next((simple for simple in _SIMPLE if simple in kinds), str)
    text = described(field)
    named = _DEFAULT.search(text)
    default = named[1] if named else str(field.default).lower() if kind is bool else field.default
    shown = "" if default is None else f" [default: {default}]"
    one_of = f" One of: {', '.join(choices(field))}." if choices(field) else ""
    option = typer.Option(
        *_ALIASES.get(name, ()),
        help=f"{_DEFAULT.sub('', text)}{one_of}{shown}",
        metavar="<path>" if name in _PATHS else None,
        show_default=False,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def default_file(given: Path | None, name: str) -> Path | None:
    """The given path, or the usual file if it exists."""
    if given is not None:
        return given
    usual = Path(name)
    return usual if usual.is_file() else None


def read_settings(
    config: Path | None,
    llm_config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    allow_hosts: Sequence[str] | None = None,
    *,
    token_limit: int | None = None,
    max_cost: float | None = None,
) -> Settings:
    """The settings in the given files, or in the usual ones; if the config has `openai` or `llm`, only that one."""
    config = default_file(config, "agentclinic.config.json")
    if config is None or not has_llm_sections(config):
        llm_config = default_file(llm_config, "llm.config.json")
    return with_limits(load_settings(config, llm_config, overrides, allow_hosts), token_limit, max_cost)
