"""Options that several commands share, each described once, and options made from the fields of settings."""

from __future__ import annotations

import functools
import inspect
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from agentclinic.config import (
    ALL_GENERATION,
    GENERATION,
    Given,
    RunSettings,
    Settings,
    checked_address,
    choices,
    described,
    has_llm_sections,
    load_settings,
    with_limits,
)
from agentclinic.errors import ConfigError
from agentclinic.files import find_up
from agentclinic.jsonl import inert
from agentclinic.results.run_folder import find_run

_JUDGED = functools.partial(typer.Option, rich_help_panel="Judge")
limit = functools.partial(typer.Option, rich_help_panel="Limits", show_default=False)
output = functools.partial(typer.Option, rich_help_panel="Output")

run = functools.partial(typer.Argument, parser=find_run, metavar="RUN")
RunArgument = Annotated[Path, run(help="A run: its folder or file of records, its name among the runs, or latest.")]
ComparedArgument = Annotated[
    list[Path],
    run(help="Runs: folders or files of records, names, latest; the first is the baseline.", metavar="RUN..."),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="Settings and paths of data sets; a run's config.used.json repeats that run. "
        "[default: agentclinic.config.json, if it exists]"
    ),
]
LLMConfig = Annotated[
    Path | None, typer.Option(help="Endpoint, key and request settings. [default: llm.config.json, if it exists]")
]
_MODEL = "Model of doctor, patient and laboratory. The judge stays as it is; set it with --moderator-llm."
Model = Annotated[str | None, typer.Option(help=_MODEL, rich_help_panel="Roles")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the intervals.")]
Learner = Annotated[
    str,
    typer.Option(help="Model that writes experiences: builtin, replay:FILE, or the name of a model at the endpoint."),
]
LearnerEndpoint = Annotated[str | None, typer.Option(help="Endpoint of the learner, by its name in `endpoints`.")]
All = Annotated[bool, typer.Option("--all", help="Learn from every encounter, not only from failed ones.")]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on; one that other machines can reach needs AGENTCLINIC_PASSWORD in the environment.",
        metavar="ADDRESS",
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.", show_default=False)]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")]

Judge = Annotated[
    str | None, _JUDGED(help="Use the verdicts in RUN/judgements/NAME.jsonl instead of the recorded ones.")
]
Corrected = Annotated[
    bool, _JUDGED("--corrected", help="Also correct the accuracy for the judge's errors, using RUN/labels/.")
]

AllowHost = Annotated[
    list[str] | None,
    limit(help="Allow credentialed data to go to this host, attested in privacy.hosts. Repeatable.", metavar="HOST"),
]
TrustAddress = Annotated[
    list[str] | None,
    limit(help="Allow your key to go to this address, which only a file names. Remembered. Repeatable.", metavar="URL"),
]
TrustProgram = Annotated[
    list[str] | None,
    limit(help="Allow this doctor or agent, which only a file names, until it changes. Repeatable.", metavar="FILE"),
]
DryRun = Annotated[
    bool,
    limit("--dry-run", help="Estimate requests, tokens and cost by role, then stop; sends nothing and writes nothing."),
]
TokenLimit = Annotated[
    int | None,
    limit(
        min=1,
        help="Stop cleanly after this many tokens, counting those of earlier calls. [default: llm.runtime.token_limit]",
    ),
]


def _dollars(amount: float | None) -> float | None:
    if amount is not None and not 0 < amount < float("inf"):
        raise typer.BadParameter("must be more than 0 dollars")
    return amount


MaxCost = Annotated[
    float | None,
    limit(
        help="Stop cleanly after this many US dollars, counting what earlier calls cost; refused if a price is "
        "unknown. [default: llm.runtime.max_cost]",
        metavar="USD",
        callback=_dollars,
    ),
]

Output = Annotated[Path | None, output("--output", "-o", help="Write the result to this file instead of printing it.")]
Report = Annotated[bool, output("--report", help="Write report.html to the run's folder at the end.")]
Full = Annotated[bool, output("--full", help="Print every figure, not just one table and one sentence.")]
Json = Annotated[bool, output("--json", help="Print the result as JSON on standard output.")]
Quiet = Annotated[bool, output("--quiet", "-q", help="Show the result only, no progress.")]

JUDGE = ("moderator_llm", "moderator_endpoint", "judge")
JUDGE_WRITES = (*GENERATION, *(f"moderator_{name}" for name in GENERATION))
ENGINE = ("engine", "address", "processes")
USUAL_STORE = "experiences.jsonl"
"""Where `learn` writes and `--use-memory` reads unless another file is named."""

SECTION_OF = {
    name: section
    for section, names in {
        "Roles": """
            doctor_llm doctor_endpoint doctor doctor_bias elicit_confidence patient_llm patient_endpoint patient_bias
            patient_traits
            measurement_llm measurement_endpoint agent_config uncertainty_agent_type synthesis_llm synthesis_endpoint
            doctor_test_policy_enabled doctor_test_policy doctor_test_policy_mode planner_baseline policy_in_prompt
            memory memory_retrieval memory_llm memory_endpoint embedding_llm embedding_endpoint""",
        "Generation": " ".join(ALL_GENERATION),
        "Data": "dataset num_scenarios offset scenarios sample seed repeats lockbox split part",
        "Simulator": "simulator dialogue missing_test pending_results silent_symptom doctor_image_request "
        "resource_level prompts_dir",
        "Judge": " ".join(JUDGE),
        "Limits": "total_inferences test_budget order_limit setting_limits workers engine address processes check",
        "Output": "output_dir name record output",
        "The original's names": "inf_type measurement_cost_llm",
    }.items()
    for name in names.split()
}
"""The section of each setting's flag in `--help`, in the order in which they are shown; `preset` is above them all."""
Decorator = Callable[[Callable[..., None]], Callable[..., None]]
Read = Callable[..., Settings]
"""What a command with `with_settings` gets."""
_PLACE = {name: place for place, name in enumerate(SECTION_OF)}

_SIMPLE = (bool, int, float)
ALIASES = {
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


def with_fields(fields: Mapping[str, FieldInfo]) -> Decorator:
    """Give a command one option per field; the values given arrive as the dict `overrides`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapper(**given: Any) -> None:
            overrides = {name: given.pop(name) for name in fields}
            command(**given, overrides={name: value for name, value in overrides.items() if value is not None})

        own = _parameters(command, without="overrides")
        arguments = [p for p in own if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        flags = [_flag(name, fields[name]) for name in sorted(fields, key=lambda name: _PLACE.get(name, -1))]
        return _called_like(command, wrapper, [*arguments, *flags, *own[len(arguments) :]])

    return decorate


def with_settings(*names: str, limits: bool = True) -> Decorator:
    """Give a command the flags of these settings of a run, and those that name the config files and the limits.

    The command gets `read`, which reads all of them; its arguments are settings that flags override.
    """
    shared: dict[str, Any] = {"config": Config, "llm_config": LLMConfig, "allow_host": AllowHost}
    shared |= {"trust_address": TrustAddress, "trust_program": TrustProgram}
    if limits:
        shared |= {"max_cost": MaxCost, "token_limit": TokenLimit}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapper(*, overrides: Mapping[str, Any], **given: Any) -> None:
            said = {name: given.pop(name) for name in shared}

            def read(**settings: Any) -> Settings:
                return read_settings(overrides={**settings, **overrides}, **said)

            command(**given, read=read)

        added = [_keyword(name, kind) for name, kind in shared.items()]
        own = _parameters(command, without="read")
        fields = {name: RunSettings.model_fields[name] for name in names}
        return with_fields(fields)(_called_like(command, wrapper, [*own, *added]))

    return decorate


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that prints its result `--output`, which writes it to a file instead."""
    from agentclinic.cli.format import Stream, deliver

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

    return _called_like(command, wrapper, [*_parameters(command), _keyword("output", Output)])


def _parameters(command: Callable[..., None], without: str = "") -> list[inspect.Parameter]:
    return [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != without]


def _keyword(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _called_like(
    command: Callable[..., None], wrapper: Any, parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The wrapper with the command's name and docstring and these parameters."""
    functools.update_wrapper(wrapper, command)
    wrapper.__signature__ = inspect.Signature(parameters)
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return cast("Callable[..., None]", wrapper)


_DEFAULT = re.compile(r" \(default: (.+?)\)")
"""How a field's docstring names a default that depends on something else."""


def _flag(name: str, field: FieldInfo) -> inspect.Parameter:
    mapping = get_origin(field.annotation) is dict  # written as NAME=VALUE, ...
    kinds = (field.annotation, *(() if mapping else get_args(field.annotation)))
    kind: type = next((simple for simple in _SIMPLE if simple in kinds), str)
    text = described(field)
    named = _DEFAULT.search(text)
    default = named[1] if named else str(field.default).lower() if kind is bool else field.default
    shown = "" if default in (None, {}) else f" [default: {default}]"
    one_of = f" One of: {', '.join(choices(field))}." if choices(field) else ""
    option = typer.Option(
        *ALIASES.get(name, ()),
        help=f"{_DEFAULT.sub('', text)}{one_of}{shown}",
        metavar="<path>" if name in _PATHS else None,
        show_default=False,
        hidden=not text,  # the generation settings of one role
        rich_help_panel=SECTION_OF.get(name),
    )
    return _keyword(name, Annotated[kind | None, option])


def default_file(given: Path | None, name: str) -> Path | None:
    """The given path, or the user's file of that name (`find_up`)."""
    return given or find_up(name)


def read_settings(
    config: Path | None,
    llm_config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    allow_host: Sequence[str] | None = None,
    trust_address: Sequence[str] | None = None,
    trust_program: Sequence[str] | None = None,
    token_limit: int | None = None,
    max_cost: float | None = None,
) -> Settings:
    """The settings in the given files, or in the usual ones; if the config has `openai` or `llm`, only that one."""
    config = default_file(config, "agentclinic.config.json")
    if config is None or not has_llm_sections(config):
        llm_config = default_file(llm_config, "llm.config.json")
    at_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    given = Given(
        addresses=tuple(map(_address, trust_address or ())),
        programs=tuple(trust_program or ()),
        ask=_confirmed if at_terminal else None,
    )
    return with_limits(load_settings(config, llm_config, overrides, allow_host, given), token_limit, max_cost)


def _confirmed(question: str) -> bool:
    """Ask the person at the terminal; only a clear yes counts."""
    sys.stderr.write(f"{inert(' '.join(question.split()))} [y/N] ")  # on one line: names in it may come from a file
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _address(given: str) -> str:
    try:
        return str(checked_address(given))
    except ValueError as error:
        raise ConfigError(f"--trust-address: {error}") from None


def dataset_paths(config: Path | None) -> dict[str, str]:
    return load_settings(default_file(config, "agentclinic.config.json")).datasets
