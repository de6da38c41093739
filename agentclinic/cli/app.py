"""The command line's table of contents: every command with its options; the work is done in the other modules.

Modules are imported when their command runs, so that `--help` is fast.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from agentclinic.cli.options import (
    AllOption,
    AllowHostOption,
    BrowserOption,
    CheckOption,
    ConfigOption,
    CorrectedOption,
    DryRunOption,
    FullOption,
    Group,
    HostOption,
    JsonOption,
    JudgeOption,
    KeyOption,
    LearnerEndpointOption,
    LearnerOption,
    LLMConfigOption,
    MaxCostOption,
    MemoryOption,
    OutputFileOption,
    OutputOption,
    PortOption,
    QuietOption,
    RecordsArgument,
    ReportOption,
    RunArgument,
    SeedOption,
    StoreArgument,
    TokenLimitOption,
    UncertaintyAwareOption,
    default_file,
    read_settings,
    with_fields_of,
    with_output,
)
from agentclinic.config import MOST_WORKERS, STUDY_DECIDES, RunSettings, described, load_settings
from agentclinic.generate.settings import CommonSettings, MedqaSettings, MimicSettings

app = typer.Typer(
    name="agentclinic",
    cls=Group,
    help="Test language-model doctors in a simulated clinic. A research benchmark, not medical advice.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: half the start-up time, and it survives narrow terminals
)
data = typer.Typer(help="List, fetch and check data sets, or start one of your own.", cls=Group, no_args_is_help=True)
app.add_typer(data, name="data")
judge = typer.Typer(
    help="Label diagnoses, compare a run's judges, or combine them by majority vote.", cls=Group, no_args_is_help=True
)
app.add_typer(judge, name="judge")
memory = typer.Typer(help="List, show, check and merge experiences.", cls=Group, no_args_is_help=True)
app.add_typer(memory, name="memory")
study = typer.Typer(help="Experiments that take several runs.", cls=Group, no_args_is_help=True)
app.add_typer(study, name="study")
generate = typer.Typer(
    help="Make cases from MIMIC-IV or MedQA, and check that they can be solved.", cls=Group, no_args_is_help=True
)
app.add_typer(generate, name="generate")
_JUDGE = ("moderator_llm", "moderator_endpoint")
_ENGINE = ("engine", "address", "processes")
PLAY_PORT = 8642
"""Always the same, so that pages that are open find the server again after a restart."""
USUAL_STORE = "experiences.jsonl"
"""Where `learn` writes and `--use-memory` reads unless another file is named."""


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


# --- runs -----------------------------------------------------------------------------------------------------------


@app.command()
@with_fields_of(RunSettings)
def run(
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    token_limit: TokenLimitOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    report: ReportOption = False,
    output_file: OutputFileOption = None,
    use_uncertainty_aware: UncertaintyAwareOption = False,
    _key: KeyOption = None,
    use_memory: MemoryOption = False,
    overrides: dict[str, Any],
) -> None:
    """Evaluate a doctor on a data set.

    Flags override the config files, which override the defaults. The flags of the original's scripts work too
    (docs/runs.md lists them), and every flag may be written with `_` instead of `-`.
    """
    from agentclinic.cli.run import run_command

    if use_uncertainty_aware:
        overrides = {"doctor": "uncertainty", **overrides}
    if use_memory:
        overrides = {"memory": USUAL_STORE, **overrides}
    settings = read_settings(config, llm_config, overrides, allow_host, token_limit=token_limit, max_cost=max_cost)
    run_command(settings, dry_run=dry_run, quiet=quiet, as_json=json, report=report, output_file=output_file)


@app.command()
@with_fields_of(RunSettings, only=("workers", *_ENGINE, "record", "check"))
def resume(
    folder: RunArgument,
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also play the scenarios that failed without a verdict again.")
    ] = False,
    max_cost: MaxCostOption = None,
    token_limit: TokenLimitOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    report: ReportOption = False,
    overrides: dict[str, Any],
) -> None:
    """Finish an incomplete run.

    Uses the run's own settings; only keys and passwords, which are never written to a run's folder, come from the
    environment and the config files. If anything that affects the results has changed, the command stops and lists it.
    """
    from agentclinic.cli.run import resume_command

    given = read_settings(config, llm_config, allow_hosts=allow_host)
    resume_command(
        folder,
        given,
        overrides,
        token_limit,
        max_cost,
        retry_failed=retry_failed,
        quiet=quiet,
        as_json=json,
        report=report,
    )


@app.command()
@with_fields_of(
    RunSettings,
    only=(
        *_JUDGE,
        "judge_relation",
        "synthesis_llm",
        "synthesis_endpoint",
        "workers",
        *_ENGINE,
        "prompts_dir",
        "check",
    ),
)
def regrade(
    folder: RunArgument,
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the new file in RUN/judgements/. [default: the name of the judge's model]"),
    ] = None,
    jury: Annotated[
        str | None,
        typer.Option(
            help="Judge with several models, separated by commas (`builtin` and `recorded` may be among them), and "
            "write their majority as a judge of its own, named jury."
        ),
    ] = None,
    resynthesize: Annotated[
        bool,
        typer.Option(
            "--resynthesize",
            help="First derive new diagnoses from the facts in the run's sessions, with --synthesis-llm and the "
            "synthesis prompt in --prompts-dir.",
        ),
    ] = False,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Ask the judge through its provider's batch endpoint: half the price, answers within a day. If it is "
            "stopped, the same command continues.",
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="With --batch: wait for the answers, or fetch them with a later call."),
    ] = True,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    token_limit: TokenLimitOption = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Judge a run again with another judge, or with several.

    No encounter is played again: the recorded diagnoses are judged, or with --resynthesize new ones derived from the
    recorded facts. Writes RUN/judgements/NAME.jsonl and does not change scenarios.jsonl. Also works on runs in the
    original's format.
    """
    from agentclinic.cli.regrade import jury_command, regrade_command

    settings = read_settings(config, llm_config, overrides, allow_host, token_limit=token_limit, max_cost=max_cost)
    if not (batch or wait):
        raise typer.BadParameter("--no-wait is for --batch; add it")
    options = {"batch": batch, "wait": wait, "dry_run": dry_run, "full": full, "quiet": quiet, "as_json": json}
    if jury is None:
        regrade_command(folder, settings, name, resynthesize=resynthesize, **options)
    elif resynthesize:
        raise typer.BadParameter("--jury judges the recorded diagnoses; leave out --resynthesize")
    else:
        jury_command(folder, settings, jury, name, **options)


@app.command()
@with_fields_of(RunSettings, only=(*_ENGINE, "check"))
def sweep(
    file: Annotated[
        Path, typer.Argument(help="Sweep file with a name, run (shared settings) and matrix (varied settings).")
    ],
    *,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    token_limit: TokenLimitOption = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Run every combination of the settings in a matrix and compare the results.

    Each combination is an arm, and every arm is compared with the baseline; --full adds the effect of each value, all
    else being equal. If the sweep stops early, the same command continues it. Limits on tokens and cost are for all
    arms together.
    """
    from agentclinic.cli.sweep import sweep_command

    settings = read_settings(config, llm_config, overrides, allow_host, token_limit=token_limit, max_cost=max_cost)
    sweep_command(file, settings, dry_run=dry_run, full=full, quiet=quiet, as_json=json)


@app.command()
def probe(
    model: Annotated[str, typer.Argument(help="Name of a model at the endpoint.")],
    *,
    endpoint: Annotated[
        str | None,
        typer.Option(help="Endpoint of the model, by its name in `endpoints`. [default: the default endpoint]"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the sample of questions and orders (about 80 requests).")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_WORKERS,
            help=f"{described(RunSettings.model_fields['workers'])} [default: run.workers, else 4]",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Find out what an endpoint can do, and whether its model should play patient and laboratory `grounded`.

    Sends four to six short requests and says whether it answers, through which API, and whether tool calls,
    structured output and images work. If structured output works, the model then plays patient and laboratory on a
    shipped sample of questions and orders, with about 80 requests, and is compared with our own matcher. The exit code
    is 1 if it does not answer at all.
    """
    from agentclinic.cli.probe import probe_command

    settings = read_settings(config, llm_config)
    probe_command(settings, model, endpoint, quick=quick, workers=workers, quiet=quiet, as_json=json)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to create; existing files in it are kept.")],
) -> None:
    """Create a folder with settings, prompts and entry points."""
    from agentclinic.compat.init import write_folder

    write_folder(folder)


@app.command("check-folder")
@with_output
def check_folder(
    folder: Annotated[Path, typer.Argument(help="Folder with files of the original, e.g. a clone of its repository.")],
    json: JsonOption = False,
) -> None:
    """Say how each of the original's files in a folder is used here.

    Reads configs, prompts, agents, sessions, runs and cases as a run would, and says of each whether it works as it is,
    is translated, needs something from you (to do), has no counterpart, or cannot be used. Writes nothing. The exit
    code is 2 if a file cannot be used.
    """
    from agentclinic.cli.folder import check_folder_command

    check_folder_command(folder, as_json=json)


# --- results --------------------------------------------------------------------------------------------------------


@app.command("runs")
@with_output
def runs_(
    folder: Annotated[Path, typer.Argument(help="Folder with runs; folders below it are searched, too.")] = Path(
        "runs"
    ),
    dataset: Annotated[str | None, typer.Option(help="Only runs whose data set contains this.")] = None,
    doctor: Annotated[str | None, typer.Option(help="Only runs whose doctor contains this, e.g. memory.")] = None,
    model: Annotated[str | None, typer.Option(help="Only runs whose doctor's model contains this.")] = None,
    state: Annotated[str | None, typer.Option(help="Only complete, incomplete, running or unreadable ones.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="List at most this many runs, those written to last.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List runs: what was played, how often the doctor was right, what it cost, and whether the run is complete."""
    from agentclinic.cli.runs import runs_command

    runs_command(folder, dataset=dataset, doctor=doctor, model=model, state=state, limit=limit, as_json=json)


@app.command()
@with_output
def score(
    run: RecordsArgument,
    judge: JudgeOption = None,
    full_information: Annotated[
        Path | None, typer.Option(help="Run of the same cases with --doctor full_information, to show the gap to it.")
    ] = None,
    corrected: CorrectedOption = False,
    seed: SeedOption = 0,
    full: FullOption = False,
    json: JsonOption = False,
) -> None:
    """Score a run: outcome, calibration, information, tests.

    Numbers come with intervals; a number that the records cannot give is left out or called unknown.
    """
    from agentclinic.cli.score import score_command

    score_command(run, judge, full_information, seed, corrected=corrected, full=full, as_json=json)


@app.command()
@with_output
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs, or files of records; the first is the baseline.", metavar="RUN..."),
    ],
    judge: JudgeOption = None,
    corrected: CorrectedOption = False,
    seed: SeedOption = 0,
    full: FullOption = False,
    json: JsonOption = False,
) -> None:
    """Test whether runs really differ.

    Prints one table, what it shows in one sentence, and anything else that differs between the runs; --full adds
    p-values, the cases that flipped and other measures. Cases are paired by content. Intervals and p-values are
    clustered by case and adjusted for multiple comparisons. The folder of a sweep stands for its arms.
    """
    from agentclinic.cli.compare import compare_command

    compare_command(runs, judge, seed, corrected=corrected, full=full, as_json=json)


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
            help="File to write, or - to print. [default: report.html in the run's folder, or in the current folder "
            "for several runs]",
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the name of the flag
        str | None, typer.Option(help="html, md, json or csv. [default: by the output's extension, else html]")
    ] = None,
    json: JsonOption = False,
    judge: JudgeOption = None,
    seed: SeedOption = 0,
) -> None:
    """Write a report on one run, or on several side by side.

    html: a self-contained page with charts and every transcript. md: a summary. json: all numbers. csv: one line per
    encounter.
    """
    from agentclinic.cli.report import report_command

    if json:
        output, format = output or Path("-"), "json"  # noqa: A001 - the name of the flag
    report_command(runs, output, format, judge, seed)


@app.command()
def view(
    folder: Annotated[
        Path, typer.Argument(help="Folder of runs, or of a single run; subfolders are searched, too.")
    ] = Path("runs"),
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write the viewer to this folder instead, as files that open without a server.", metavar="DIR"
        ),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    browser: BrowserOption = True,
) -> None:
    """Look at runs in the browser: list, compare, filter and search them, and read every encounter.

    Serves this machine only, until Ctrl-C, and follows runs in progress.
    """
    if export is not None:
        from agentclinic.runs.progress import progress_for
        from agentclinic.viewer.export import export as write

        page = write(folder, export, progress_for(quiet=False, stream=sys.stderr))
        print(f"Viewer written to {page}")
        return
    from agentclinic.cli.view import view_command

    view_command(folder, host=host, port=port, browser=browser)


@app.command()
def card(run: RunArgument, *, judge: JudgeOption = None, output: OutputOption = None) -> None:
    """Write a model and settings card for a paper's appendix, in Markdown.

    Holds what is needed to repeat the run, its results with intervals, its limits, and the items of reporting
    checklists that the run can answer; the other items are listed for the authors.
    """
    from agentclinic.cli.report import card_command

    card_command(run, judge, output)


@app.command()
@with_fields_of(RunSettings, only=("workers", "prompts_dir"))
def audit(
    run: RecordsArgument,
    *,
    reviewer: Annotated[
        str | None,
        typer.Option(help="Language model that also judges free-text replies. Its reviews are kept in RUN/reviews/."),
    ] = None,
    reviewer_endpoint: Annotated[
        str | None, typer.Option(help="Endpoint of the reviewer, by its name in `endpoints`.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Measure the reviewer's errors on 330 planted replies and correct its rates."),
    ] = False,
    all_replies: Annotated[
        bool, typer.Option("--all-replies", help="Have the reviewer also judge replies whose facts are recorded.")
    ] = False,
    cases: Annotated[
        Path | None, typer.Option(help="Case file to use instead of the run's own cases; matched by content.")
    ] = None,
    full: FullOption = False,
    list_findings: Annotated[
        bool, typer.Option("--list", help="Also list each finding with the reply and the chart's words.")
    ] = False,
    role: Annotated[str | None, typer.Option(help="Only this role: patient or measurement.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind, e.g. invented_number.")] = None,
    format: Annotated[str, typer.Option(help="text, md, csv or json.")] = "text",  # noqa: A002 - the flag's name
    json: JsonOption = False,
    output: OutputOption = None,
    seed: SeedOption = 0,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    quiet: QuietOption = False,
    overrides: dict[str, Any],
) -> None:
    """Check the replies of patient and laboratory against the chart.

    Code finds invented numbers, diseases named without reason, the diagnosis, parts of the chart that were not asked
    for, and contradictions between replies; without --reviewer no model is called. A reviewer also finds what is
    invented, contradicted or left out in free text. Nothing is played again.
    """
    from agentclinic.cli.audit import Shown, audit_command, reviewed
    from agentclinic.errors import ConfigError

    shown = Shown(role, kind, "json" if json else format, output, list_findings=list_findings, full=full)
    if reviewer is None:
        if calibrate or all_replies or reviewer_endpoint:
            raise ConfigError("--calibrate, --all-replies and --reviewer-endpoint need a --reviewer MODEL")
        audit_command(run, cases, seed, shown)
    else:
        settings = read_settings(config, llm_config, overrides, allow_host)
        options = {"cases": cases, "seed": seed, "every_reply": all_replies, "calibrate": calibrate}
        reviewed(run, settings, (reviewer, reviewer_endpoint), shown, quiet=quiet, **options)


@app.command()
@with_output
def sessions(
    run: Annotated[
        Path,
        typer.Argument(help="Folder of a run with --doctor uncertainty, or a folder of session files.", metavar="RUN"),
    ],
    session: Annotated[
        str | None, typer.Argument(help="Show only this session: its name, the start of it, or the scenario's number.")
    ] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Summarize all sessions and print the metrics of `score`.")
    ] = False,
    judge: JudgeOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Show the notes of uncertainty-aware doctors.

    Lists a run's sessions, shows one step by step with its facts, doubts and actions, or summarizes them all.
    """
    from agentclinic.cli.sessions import sessions_command

    sessions_command(run, session, judge, seed, summary=summary, as_json=json)


@judge.command("compare")
@with_output
def judge_compare(
    folder: RunArgument,
    judges: Annotated[
        str | None,
        typer.Option(help="Names in RUN/judgements/, or `recorded`, separated by commas. [default: all of them]"),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help='JSON lines {"scenario_id": 3, "correct": true}, with case_hash and repeat if needed. '
            "[default: those in RUN/labels/]"
        ),
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Show how far a run's judges agree, and where they disagree.

    With labels (a person's verdicts on a random sample of the diagnoses, from `judge label`), also shows each judge's
    errors, and the run's accuracy corrected for them. `recorded` is the judge in scenarios.jsonl.
    """
    from agentclinic.cli.judge import compare_command

    compare_command(folder, judges, labels, seed, as_json=json)


@judge.command("label")
def judge_label(
    folder: RunArgument,
    *,
    judge: JudgeOption = None,
    labeler: Annotated[
        str | None, typer.Option(help="Your name; the labels go to RUN/labels/NAME.jsonl. [default: your login name]")
    ] = None,
    number: Annotated[int, typer.Option(min=1, help="Total number of labels to reach, earlier ones included.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the sample.")] = 0,
) -> None:
    """Label a sample of a run's diagnoses at the terminal, to measure its judge.

    Shows truth and diagnosis, and the chart on request, but neither the doctor's name nor any verdict. The sample is
    drawn at random, by the judge's verdict, and more often where several judges disagree. Every label is saved at once;
    the same command continues. At the end it shows how each judge agrees with the labels. `score --corrected` and
    `compare --corrected` then correct the accuracy.
    """
    from agentclinic.cli.label import label_command

    label_command(folder, judge, labeler, number, seed)


@judge.command("majority")
def judge_majority(
    folder: RunArgument,
    judges: Annotated[str, typer.Option(help="Two or more names, separated by commas; `recorded` may be one.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the new file in RUN/judgements/. [default: majority_A_B_C]")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Combine several judges into one by majority vote.

    More than half of them must agree; after a tie, or with too many verdicts missing, a diagnosis stays unjudged.
    """
    from agentclinic.cli.judge import majority_command

    majority_command(folder, judges, name, as_json=json)


# --- learning -------------------------------------------------------------------------------------------------------


@app.command()
@with_fields_of(RunSettings, only=(*_JUDGE, "judge_relation", "workers", *_ENGINE, "prompts_dir", "check"))
def learn(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or files of records in such folders.", metavar="RUN...")
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of experiences; new ones are added to it.")
    ] = Path(USUAL_STORE),
    learner_llm: LearnerOption = "builtin",
    learner_endpoint: LearnerEndpointOption = None,
    all_: AllOption = False,
    split: Annotated[
        Path | None, typer.Option(help="Split of the cases; nothing is learned from its test part.", metavar="FILE")
    ] = None,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    dry_run: DryRunOption = False,
    max_cost: MaxCostOption = None,
    token_limit: TokenLimitOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Turn failed encounters into experiences for --memory.

    A model is shown the dialogue, the truth and what the chart held that was not asked for, and writes up to five
    experiences: a pattern, and what to ask or order when it is seen again. Whatever names the diagnosis is removed. If
    it stops early, the same command continues. The exit code is 3 if encounters are left.
    """
    from agentclinic.cli.learn import learn_command

    settings = read_settings(config, llm_config, overrides, allow_host, token_limit=token_limit, max_cost=max_cost)
    learner = (learner_llm, learner_endpoint)
    learn_command(runs, output, settings, learner, split, every=all_, dry_run=dry_run, quiet=quiet, as_json=json)


@memory.command("list")
@with_output
def memory_list(store: StoreArgument, json: JsonOption = False) -> None:
    """List the experiences in a file."""
    from agentclinic.cli.memory import list_command

    list_command(store, as_json=json)


@memory.command("show")
@with_output
def memory_show(
    store: StoreArgument,
    experience: Annotated[str, typer.Argument(help="Id of an experience, or the start of it.", metavar="ID")],
    json: JsonOption = False,
) -> None:
    """Show one experience, and where it comes from."""
    from agentclinic.cli.memory import show_command

    show_command(store, experience, as_json=json)


@memory.command("check")
@with_output
def memory_check(
    store: StoreArgument,
    *,
    split: Annotated[
        Path | None, typer.Option(help="Split that the experiences should respect.", metavar="FILE")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set on which they will be tested: says what may be shown on its cases.")
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Check a file of experiences: its form, repetitions, its split, and what may be shown on a data set.

    The exit code is 2 if the file cannot be used.
    """
    from agentclinic.cli.memory import check_command as check

    check(store, split, dataset, _dataset_paths(config), as_json=json)


@memory.command("merge")
def memory_merge(
    stores: Annotated[list[Path], typer.Argument(help="Files of experiences.", metavar="FILE...")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; it must not exist yet.")],
    json: JsonOption = False,
) -> None:
    """Merge files of experiences into one, without those that say the same."""
    from agentclinic.cli.memory import merge_command

    merge_command(stores, output, as_json=json)


@study.command("learn")
@with_fields_of(RunSettings, only=tuple(name for name in RunSettings.model_fields if name not in STUDY_DECIDES))
def study_learn(
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the study. [default: studies/learn_DATASET_DOCTOR_SEED]"),
    ] = None,
    learner_llm: LearnerOption = "builtin",
    learner_endpoint: LearnerEndpointOption = None,
    all_: AllOption = False,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    max_cost: MaxCostOption = None,
    token_limit: TokenLimitOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
    overrides: dict[str, Any],
) -> None:
    """Find out whether a doctor learns: with memory, without it, and with shuffled memory as a control.

    Splits the cases, plays the training half, learns from its failed encounters, and plays the test half three times.
    Prints paired differences with intervals, by similarity to the nearest training case, and what memory broke. If the
    study stops early, the same command continues it; limits on tokens and cost are for all of it together.
    """
    from agentclinic.cli.study import study_command

    settings = read_settings(config, llm_config, overrides, allow_host, token_limit=token_limit, max_cost=max_cost)
    study_command(output, settings, (learner_llm, learner_endpoint), every=all_, quiet=quiet, as_json=json)


# --- people ---------------------------------------------------------------------------------------------------------


@app.command()
@with_fields_of(
    RunSettings,
    only=(
        *("dataset", "scenarios", "offset", "sample", "num_scenarios", "lockbox", "seed", "total_inferences"),
        *("patient_llm", "patient_endpoint", "doctor_llm", "doctor_endpoint", "doctor", "measurement_llm"),
        *("measurement_endpoint", *_JUDGE, "judge_relation", "simulator", "doctor_image_request", "missing_test"),
        *("silent_symptom", "resource_level", "prompts_dir", "output_dir", "check"),
    ),
)
def play(
    *,
    panel: Annotated[
        bool,
        typer.Option(
            "--panel",
            help="Every player meets every case once, in an order of their own, and is asked about their experience; "
            "everyone is a doctor.",
        ),
    ] = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = PLAY_PORT,
    browser: BrowserOption = True,
    config: ConfigOption = None,
    llm_config: LLMConfigOption = None,
    allow_host: AllowHostOption = None,
    overrides: dict[str, Any],
) -> None:
    """Play cases in the browser, as the doctor or as the patient of a model.

    Serves this machine only, on port 8642 unless you choose another, until Ctrl-C. Games are saved as runs with the
    model name human:PLAYER, which `agentclinic compare` can compare with those of models.
    """
    from agentclinic.cli.play import play_command

    settings = read_settings(config, llm_config, overrides, allow_host)
    play_command(settings, panel=panel, host=host, port=port, browser=browser)


# --- cases ----------------------------------------------------------------------------------------------------------


def _dataset_paths(config: Path | None) -> dict[str, str]:
    return load_settings(default_file(config, "agentclinic.config.json")).datasets


@data.command("list")
@with_output
def data_list(config: ConfigOption = None, json: JsonOption = False) -> None:
    """List the known data sets and whether their files exist."""
    from agentclinic.cli.data import list_command

    list_command(_dataset_paths(config), as_json=json)


@data.command("fetch")
def data_fetch(
    names: Annotated[list[str], typer.Argument(help="MedQA, MedQA_Ext, NEJM or NEJM_Ext.", metavar="NAME...")],
    config: ConfigOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write to. [default: where --dataset NAME looks for the file]"),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            help="Address of a folder with copies of the files, to use instead of their repository.",
            envvar="AGENTCLINIC_MIRROR",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that differs from the published one.")] = False,
    json: JsonOption = False,
) -> None:
    """Download public data sets.

    Size and checksum are checked before anything is written; source, checksum and license are shown.
    """
    from agentclinic.cli.data import fetch_command

    paths = _dataset_paths(config)
    fetch_command(names, paths, folder=output, mirror=mirror, force=force, as_json=json)


@data.command("new")
def data_new(
    format_: Annotated[str, typer.Argument(help="OSCE or NEJM (docs/datasets.md).", metavar="FORMAT")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; must not exist. [default: print]")
    ] = None,
) -> None:
    """Write a complete example row, with annotations, as a start for your own data set."""
    from agentclinic.cli.data import new_command

    new_command(format_, output)


@data.command("check")
@with_output
def data_check(
    files: Annotated[list[str], typer.Argument(help="Case files, or names of data sets.")],
    config: ConfigOption = None,
    leaks: Annotated[bool, typer.Option("--leaks", help="List every leak, not only how many there are.")] = False,
    quality: Annotated[
        bool,
        typer.Option("--quality", help="Also check units, physiology, the person, timeline, annotations and twins."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check case files: schema, duplicates within and between files, cases that name their own diagnosis.

    The exit code is 2 if a row cannot be read as a case, and 1 if --quality finds an error.
    """
    from agentclinic.cli.data import check_command

    check_command(files, _dataset_paths(config), show_leaks=leaks, quality=quality, as_json=json)


def _add_generate(source: str, section: type[BaseModel], about: str) -> None:
    """Add `generate SOURCE`, with the fields of its section as flags."""

    @with_fields_of(CommonSettings, section)
    def command(
        *,
        config: Annotated[
            Path | None,
            typer.Option(
                "--config",
                "--gen-config",
                help="Settings for generating cases. [default: generate_cases/gen.config.json or gen.config.json]",
            ),
        ] = None,
        clinic_config: Annotated[
            Path | None,
            typer.Option(help="File that names `endpoints`. [default: agentclinic.config.json, if it exists]"),
        ] = None,
        allow_host: AllowHostOption = None,
        retry_quarantined: Annotated[
            bool, typer.Option("--retry-quarantined", help="Also try the cases in quarantine again.")
        ] = False,
        dry_run: DryRunOption = False,
        max_cost: MaxCostOption = None,
        token_limit: TokenLimitOption = None,
        check: CheckOption = None,
        quiet: QuietOption = False,
        json: JsonOption = False,
        overrides: dict[str, Any],
    ) -> None:
        from agentclinic.cli.generate import generate_command

        generate_command(
            source,
            config,
            clinic_config,
            overrides,
            allow_hosts=allow_host,
            retry_quarantined=retry_quarantined,
            dry_run=dry_run,
            max_cost=max_cost,
            token_limit=token_limit,
            check=check,
            quiet=quiet,
            as_json=json,
        )

    resumed = "If it stops early, the same command continues. The exit code is 3 if cases are missing."
    generate.command(source, help=f"{about}{resumed}")(command)


_add_generate(
    "mimic",
    MimicSettings,
    "Make cases from MIMIC-IV's tables.\n\nA model writes the patient's story without being told the diagnosis; the "
    "program fills in results and label and checks every case. ",
)
_add_generate("medqa", MedqaSettings, "Make cases from MedQA questions that ask for a diagnosis.\n\n")


@generate.command("solvability")
@with_fields_of(
    RunSettings,
    only=("doctor_llm", "doctor_endpoint", *_JUDGE, "workers", *_ENGINE, "num_scenarios", "output_dir", "check"),
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
    """Check that cases can be solved: compare the whole chart with the door information alone.

    Plays every case twice, with --doctor full_information and --doctor door_only. A case solved at the door gives
    something away; a case not solved with the whole chart lacks what the diagnosis needs.
    """
    from agentclinic.cli.generate import solvability_command

    settings = read_settings(config, llm_config, {**overrides, "dataset": file}, allow_host)
    solvability_command(settings, quiet=quiet, as_json=json)
