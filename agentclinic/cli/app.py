"""The command line's table of contents."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from agentclinic.cli.options import ConfigOption, LLMConfigOption, default_file, with_fields_of
from agentclinic.config import RunSettings, load_settings

app = typer.Typer(
    name="agentclinic",
    help="A clinic in which language-model doctors are tested. A research benchmark, not medical advice.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: half the start-up time, and it survives narrow terminals
)
data = typer.Typer(help="Look at data sets and check case files.", no_args_is_help=True)
app.add_typer(data, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        from agentclinic.version import __version__

        print(f"agentclinic {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]


@app.command()
@with_fields_of(RunSettings)
def run(
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Evaluate a doctor on a data set.

    Flags win over the files, the files over the defaults; `_` and `-` in flags are the same.
    """
    from agentclinic.cli.running import run_and_show

    settings = load_settings(
        default_file(config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        overrides,
    )
    run_and_show(settings, quiet=quiet, as_json=json)


RunArgument = Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/MedQA_20260101_120000.", metavar="RUN")]


@app.command()
@with_fields_of(RunSettings, only=frozenset({"workers", "record"}))
def resume(
    folder: RunArgument,
    *,
    llm_config: LLMConfigOption = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also play again what failed without a verdict.")
    ] = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Play what is missing in a run.

    The settings are the run's own; only the key is taken from the environment or llm.config.json. Refused,
    naming the keys, when something that decides results has changed since.
    """
    from agentclinic.cli.running import resume_and_show

    llm = load_settings(None, default_file(llm_config, "llm.config.json"))
    resume_and_show(folder, overrides, llm, retry_failed=retry_failed, quiet=quiet, as_json=json)


@app.command()
@with_fields_of(RunSettings, only=frozenset({"moderator_llm", "moderator_endpoint", "workers", "prompts_dir"}))
def regrade(
    folder: RunArgument,
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the file under RUN/judgements/. [default: the moderator's]")
    ] = None,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Judge a run again with another moderator.

    Nothing is simulated: the recorded diagnoses are judged.
    Writes RUN/judgements/NAME.jsonl and leaves scenarios.jsonl as it is. Also for runs in the seed's format.
    """
    from agentclinic.cli.running import regrade_and_show

    settings = load_settings(
        default_file(config, "agentclinic.config.json"), default_file(llm_config, "llm.config.json"), overrides
    )
    regrade_and_show(folder, settings, name, as_json=json)


@app.command()
def probe(
    model: Annotated[str, typer.Argument(help="A model's name at the endpoint.")],
    *,
    endpoint: Annotated[str | None, typer.Option(help="Name in `endpoints`; the default one when not given.")] = None,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Try out what an endpoint can do.

    Says in plain words whether it answers, by which API, with tools, structured output and images.
    Sends four to six short requests. Exit code 1 when it does not even answer with text.
    """
    from agentclinic.cli.probing import probe_and_show

    settings = load_settings(
        default_file(config, "agentclinic.config.json"), default_file(llm_config, "llm.config.json")
    )
    if not probe_and_show(settings, model, endpoint, as_json=json):
        raise typer.Exit(1)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to make; files already there are kept.")],
) -> None:
    """Make a folder with settings, prompts, entry points."""
    from agentclinic.cli.init import write_folder

    write_folder(folder)


@data.command("list")
def data_list(config: ConfigOption = None, json: JsonOption = False) -> None:
    """Show the known data sets and whether their files are there."""
    from agentclinic.cli.datasets import list_datasets

    settings = load_settings(default_file(config, "agentclinic.config.json"))
    rows = list_datasets(settings.datasets)
    if json:
        print(jsonlib.dumps([row._asdict() for row in rows], indent=2))
        return
    from agentclinic.cli.datasets import show_datasets

    show_datasets(rows)


@data.command("check")
def data_check(
    files: Annotated[list[str], typer.Argument(help="Case files, or names of data sets.")],
    config: ConfigOption = None,
    leaks: Annotated[bool, typer.Option("--leaks", help="List every leak, not only their number.")] = False,
    json: JsonOption = False,
) -> None:
    """Check case files: schema, copies within and between files, cases that name their own diagnosis.

    Exit code 2 when a row cannot be read as a case.
    """
    from agentclinic.cli.datasets import check_datasets

    settings = load_settings(default_file(config, "agentclinic.config.json"))
    readable = check_datasets(files, settings.datasets, show_leaks=leaks, as_json=json)
    if not readable:
        raise typer.Exit(2)
