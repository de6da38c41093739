"""The command line's table of contents."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from agentclinic.cli.options import AllowHostOption, ConfigOption, LLMConfigOption, default_file, with_fields_of
from agentclinic.config import RunSettings, load_settings
from agentclinic.generate.settings import CommonSettings, MedqaSettings, MimicSettings

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
judge = typer.Typer(help="Compare a run's judges, or take their majority.", no_args_is_help=True)
app.add_typer(judge, name="judge")
generate = typer.Typer(
    help="Make cases from MIMIC-IV or MedQA, and see whether they can be solved.", no_args_is_help=True
)
app.add_typer(generate, name="generate")


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
ReportOption = Annotated[bool, typer.Option("--report", help="When done, write report.html into the run's folder.")]


@app.command()
@with_fields_of(RunSettings)
def run(
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    report: ReportOption = False,
    overrides: dict[str, Any],
) -> None:
    """Evaluate a doctor on a data set.

    Flags win over the files, the files over the defaults; `_` and `-` in flags are the same.
    """
    from agentclinic.cli.run import run_command

    settings = load_settings(
        default_file(config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        overrides,
        allow_host,
    )
    run_command(settings, quiet=quiet, as_json=json, report=report)


RunArgument = Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/MedQA_20260101_120000.", metavar="RUN")]


@app.command()
@with_fields_of(RunSettings, only=frozenset({"workers", "record"}))
def resume(
    folder: RunArgument,
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also play again what failed without a verdict.")
    ] = False,
    token_limit: Annotated[
        int | None, typer.Option(min=1, help="A new limit of tokens for the whole run, what is used up included.")
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    report: ReportOption = False,
    overrides: dict[str, Any],
) -> None:
    """Play what is missing in a run.

    The settings are the run's own; only keys and passwords, which are never written down, are taken from the
    environment and the config files. Refused, naming the keys, when something that decides results has changed.
    """
    from agentclinic.cli.run import resume_command
    from agentclinic.runs.resume import plan_again

    given = load_settings(
        default_file(config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        allow_hosts=allow_host,
    )
    plan = plan_again(folder, overrides, given, token_limit)
    resume_command(plan, folder, retry_failed=retry_failed, quiet=quiet, as_json=json, report=report)


@app.command()
@with_fields_of(
    RunSettings,
    only=frozenset(
        {
            "moderator_llm",
            "moderator_endpoint",
            "judge_relation",
            "synthesis_llm",
            "synthesis_endpoint",
            "workers",
            "prompts_dir",
        }
    ),
)
def regrade(
    folder: RunArgument,
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the file under RUN/judgements/. [default: the moderator's]")
    ] = None,
    resynthesize: Annotated[
        bool,
        typer.Option(
            "--resynthesize",
            help="Make the diagnoses anew from the facts in the run's sessions, with the synthesis prompt of "
            "--prompts_dir and with --synthesis_llm, and judge those.",
        ),
    ] = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Judge a run again with another moderator.

    Nothing is simulated: the recorded diagnoses, or with --resynthesize new ones from the recorded facts, are judged.
    Writes RUN/judgements/NAME.jsonl and leaves scenarios.jsonl as it is. Also for runs in the seed's format.
    """
    from agentclinic.cli.run import regrade_command

    settings = load_settings(
        default_file(config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        overrides,
        allow_host,
    )
    regrade_command(folder, settings, name, resynthesize=resynthesize, as_json=json)


@judge.command("compare")
def judge_compare(
    folder: RunArgument,
    judges: Annotated[
        str | None,
        typer.Option(help="Names under RUN/judgements/ and `recorded`, separated by commas. [default: all there are]"),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help='JSON lines {"scenario_id": 3, "correct": true}, with case_hash and repeat where needed.'),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
    json: JsonOption = False,
) -> None:
    """Show how far a run's judges agree, and on what they do not.

    With labels, a person's verdicts on a random sample of the diagnoses, also each judge's sensitivity and
    specificity, and the run's accuracy corrected for them. `recorded` is the judge in scenarios.jsonl.
    """
    from agentclinic.cli.judge import compare_command

    compare_command(folder, judges, labels, seed, as_json=json)


@judge.command("majority")
def judge_majority(
    folder: RunArgument,
    judges: Annotated[str, typer.Option(help="Two or more names, separated by commas; `recorded` is one.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the file under RUN/judgements/. [default: majority_A_B_C]")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the majority of several judges as a judge of its own.

    More than half of all must agree; a tie, or too many without a verdict, leaves a diagnosis unjudged.
    """
    from agentclinic.cli.judge import majority_command

    majority_command(folder, judges, name, as_json=json)


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
    from agentclinic.cli.probe import probe_command

    settings = load_settings(
        default_file(config, "agentclinic.config.json"), default_file(llm_config, "llm.config.json")
    )
    if not probe_command(settings, model, endpoint, as_json=json):
        raise typer.Exit(1)


@app.command()
def score(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or a file of records.", metavar="RUN")],
    judge: Annotated[
        str | None, typer.Option(help="Use the verdicts of RUN/judgements/NAME.jsonl instead of the recorded ones.")
    ] = None,
    full_information: Annotated[
        Path | None, typer.Option(help="A run of the same cases with --doctor full_information, for the gap to it.")
    ] = None,
    recalibrate_on: Annotated[
        Path | None, typer.Option(help="Another run, to make probabilities of planner scores.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    json: JsonOption = False,
) -> None:
    """Score a run: outcome, calibration, information, tests.

    Every number has an interval; what the records cannot tell is left out or said to be unknown.
    """
    from agentclinic.cli.score import score_command

    score_command(run, judge, full_information, recalibrate_on, seed, as_json=json)


@app.command()
def audit(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or a file of records.", metavar="RUN")],
    *,
    cases: Annotated[
        Path | None, typer.Option(help="Case file in place of the data set the run names; matched by content.")
    ] = None,
    list_findings: Annotated[
        bool, typer.Option("--list", help="Also list each finding with its words and the chart's.")
    ] = False,
    role: Annotated[str | None, typer.Option(help="Only this role: patient or measurement.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind, e.g. invented_material.")] = None,
    format_: Annotated[str, typer.Option("--format", help="text, md, csv or json.")] = "text",
    json: JsonOption = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the intervals.")] = 0,
) -> None:
    """Hold what patient and laboratory said against the chart.

    Finds replies that contradict the chart, invent, leave out what was asked, tell what was not, or name the diagnosis;
    with rates corrected for the auditor's own measured errors. For any patient model; nothing is simulated or asked.
    """
    from agentclinic.cli.audit import audit_command, chosen

    audit_command(
        run, cases, chosen(role, kind, "json" if json else format_, list_findings=list_findings), output, seed
    )


@app.command()
def card(
    run: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")],
    *,
    judge: Annotated[
        str | None, typer.Option(help="Use the verdicts of RUN/judgements/NAME.jsonl instead of the recorded ones.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Write a model-and-setting card in Markdown, for a paper's appendix.

    All that is needed to repeat the run, its results with intervals, its limits, and the items of reporting checklists
    that can be filled in from the run; the rest is listed as the authors' to fill.
    """
    from agentclinic.cli.audit import deliver
    from agentclinic.report.card import card as make_card

    deliver(make_card(run, judge), output)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs; the first is the baseline.", metavar="RUN...")],
    judge: Annotated[
        str | None, typer.Option(help="Use the verdicts of RUN/judgements/NAME.jsonl instead of the recorded ones.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    json: JsonOption = False,
) -> None:
    """Say whether runs really differ.

    Cases are paired by content; intervals and p-values are clustered by case and adjusted for several comparisons.
    Says what flipped, what could have been found, and what makes the runs incomparable.
    """
    from agentclinic.cli.compare import compare_command

    compare_command(runs, judge, seed, as_json=json)


@app.command()
def sessions(
    run: Annotated[
        Path, typer.Argument(help="Folder of a run with --doctor uncertainty, or of session files.", metavar="RUN")
    ],
    session: Annotated[
        str | None, typer.Argument(help="Show this one: its name, the beginning of it, or the scenario's number.")
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="All together, with the metrics of `score`.")] = False,
    judge: Annotated[
        str | None, typer.Option(help="Use the verdicts of RUN/judgements/NAME.jsonl instead of the recorded ones.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    json: JsonOption = False,
) -> None:
    """Look at the notes of uncertainty-aware doctors.

    Lists the sessions of a run, shows one with its facts, doubts and actions step by step, or summarises them all.
    """
    from agentclinic.cli.sessions import sessions_command

    sessions_command(run, session, judge, seed, summary=summary, as_json=json)


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs, or files of records; the first is the baseline.", metavar="RUN..."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, - to print. [default: report.html in the run's folder; for several runs, in this one]",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the name of the flag
        str | None, typer.Option(help="html, md, json or csv. [default: as the output's name ends, else html]")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="Use the verdicts of RUN/judgements/NAME.jsonl instead of the recorded ones.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
) -> None:
    """Write a report on one run, or on several side by side.

    html: one page that needs no network, with charts and every transcript. md: a summary. json: all numbers.
    csv: one line per encounter.
    """
    from agentclinic.cli.report import report_command

    report_command(runs, output, format, judge, seed)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep file: name, run (shared settings), matrix (varied settings).")],
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the arms and stop.")] = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Play a matrix of runs and compare them.

    Every combination of the matrix is an arm; each value is compared with the first of its list, all else equal.
    The same command goes on where an earlier one stopped.
    """
    from agentclinic.cli.sweep import sweep_command

    settings = load_settings(
        default_file(config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        allow_hosts=allow_host,
    )
    sweep_command(file, settings, dry_run=dry_run, quiet=quiet, as_json=json)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to make; files already there are kept.")],
) -> None:
    """Make a folder with settings, prompts, entry points."""
    from agentclinic.compat.init import write_folder

    write_folder(folder)


@data.command("list")
def data_list(config: ConfigOption = None, json: JsonOption = False) -> None:
    """Show the known data sets and whether their files are there."""
    from agentclinic.cli.data import list_datasets

    settings = load_settings(default_file(config, "agentclinic.config.json"))
    rows = list_datasets(settings.datasets)
    if json:
        print(jsonlib.dumps([row._asdict() for row in rows], indent=2))
        return
    from agentclinic.cli.data import show_datasets

    show_datasets(rows)


@data.command("check")
def data_check(
    files: Annotated[list[str], typer.Argument(help="Case files, or names of data sets.")],
    config: ConfigOption = None,
    leaks: Annotated[bool, typer.Option("--leaks", help="List every leak, not only their number.")] = False,
    quality: Annotated[
        bool, typer.Option("--quality", help="Also check units, physiology, person, timeline, annotations and twins.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check case files: schema, copies within and between files, cases that name their own diagnosis.

    Exit code 2 when a row cannot be read as a case, 1 when --quality finds an error.
    """
    from agentclinic.cli.data import check_datasets

    settings = load_settings(default_file(config, "agentclinic.config.json"))
    code = check_datasets(files, settings.datasets, show_leaks=leaks, quality=quality, as_json=json)
    if code:
        raise typer.Exit(code)


GenConfigOption = Annotated[
    Path | None,
    typer.Option(help="Settings of case generation. [default: generate_cases/gen.config.json or gen.config.json]"),
]
ClinicConfigOption = Annotated[
    Path | None,
    typer.Option(help="Where `endpoints` are named. [default: agentclinic.config.json, if there]"),
]
RetryQuarantinedOption = Annotated[
    bool, typer.Option("--retry-quarantined", help="Also try again what is in quarantine.")
]


@generate.command("mimic")
@with_fields_of(CommonSettings, MimicSettings)
def generate_mimic(
    *,
    config: GenConfigOption = None,
    clinic_config: ClinicConfigOption = None,
    allow_host: AllowHostOption = None,
    retry_quarantined: RetryQuarantinedOption = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Make cases from MIMIC-IV's tables.

    A model writes the patient's story without being told the diagnosis; results and label are set by code, and every
    case is checked. The same command goes on where an earlier one stopped. Exit code 3 when cases are missing.
    """
    from agentclinic.cli.generate import generate_command

    generate_command(
        "mimic",
        config,
        clinic_config,
        overrides,
        allow_hosts=allow_host,
        retry_quarantined=retry_quarantined,
        quiet=quiet,
        as_json=json,
    )


@generate.command("medqa")
@with_fields_of(CommonSettings, MedqaSettings)
def generate_medqa(
    *,
    config: GenConfigOption = None,
    clinic_config: ClinicConfigOption = None,
    allow_host: AllowHostOption = None,
    retry_quarantined: RetryQuarantinedOption = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Make cases from MedQA questions that ask for a diagnosis.

    The same command goes on where an earlier one stopped. Exit code 3 when cases are missing.
    """
    from agentclinic.cli.generate import generate_command

    generate_command(
        "medqa",
        config,
        clinic_config,
        overrides,
        allow_hosts=allow_host,
        retry_quarantined=retry_quarantined,
        quiet=quiet,
        as_json=json,
    )


@generate.command("solvability")
@with_fields_of(
    RunSettings,
    only=frozenset(
        {
            "doctor_llm",
            "doctor_endpoint",
            "moderator_llm",
            "moderator_endpoint",
            "workers",
            "num_scenarios",
            "output_dir",
        }
    ),
)
def generate_solvability(
    file: Annotated[str, typer.Argument(help="Case file, or name of a data set.")],
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """See whether cases can be solved: the whole chart against the door alone.

    Plays every case twice, with --doctor full_information and --doctor door_only. Cases that are solved at the door
    give something away; cases that nobody solves with the whole chart lack what the diagnosis needs.
    """
    from agentclinic.cli.generate import solvability_command

    settings = load_settings(
        default_file(config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        {**overrides, "dataset": file},
        allow_host,
    )
    solvability_command(settings, quiet=quiet, as_json=json)
