"""The table of contents of the command line: where each command lives, and its line in `--help`.

A command's signature, help and work are in its module, which is imported when the command is chosen. To add a command,
write its function and add a line here.
"""

from __future__ import annotations

from typing import Annotated

import typer

from agentclinic.cli.group import Entry, Group


class Clinic(Group):
    table = (
        Entry("", "run", "run", "Evaluate a doctor on a data set."),
        Entry("", "resume", "run", "Finish an incomplete run."),
        Entry("", "regrade", "regrade", "Judge a run again with another judge, or with several."),
        Entry("", "sweep", "sweep", "Run and compare all combinations of some settings."),
        Entry("", "probe", "probe", "Find out what an endpoint and its model can do."),
        Entry("", "demo-server", "demo", "Serve a demonstration model: no key, no network."),
        Entry("", "init", "folder", "Create a folder with settings, a doctor and cases to edit."),
        Entry("", "check-folder", "folder", "Show how each file in a folder is used."),
        Entry("", "runs", "runs", "List runs with their results, cost and state."),
        Entry("", "score", "score", "Score a run: outcome, calibration, information, tests."),
        Entry("", "compare", "compare", "Test whether runs really differ."),
        Entry("", "plan", "plan", "Say how many cases and repeats a comparison needs."),
        Entry("", "report", "runs", "Write a report on one run, or on several side by side."),
        Entry("", "view", "runs", "Look at runs and their encounters in the browser."),
        Entry("", "card", "runs", "Write a model and settings card for a paper's appendix."),
        Entry("", "export", "export", "Write a run as a log of Inspect AI."),
        Entry("", "audit", "audit", "Check the replies of patient and laboratory."),
        Entry("", "sessions", "sessions", "Show the notes of uncertainty-aware doctors."),
        Entry("", "learn", "learn", "Turn failed encounters into experiences for --memory."),
        Entry("", "play", "play", "Play cases in the browser, as the doctor or the patient."),
        Entry("", "serve-env", "serve_env", "Serve the clinic as an OpenEnv environment to train in."),
        Entry("", "data", "", "List, fetch, check and review data sets, or start your own."),
        Entry("data", "list", "data", "List the known data sets and whether their files exist."),
        Entry("data", "fetch", "data", "Download public data sets."),
        Entry("data", "new", "data", "Write an example row to start your own data set from."),
        Entry("data", "check", "data", "Check case files for errors, duplicates and leaks."),
        Entry("data", "review", "", "Have cases reviewed by clinicians, and import their verdicts."),
        Entry("data review", "export", "review", "Write sheets and a form for clinicians who review cases."),
        Entry("data review", "import", "review", "Check and merge reviewers' verdicts, and say what they found."),
        Entry("", "world", "", "Start, check and solve worlds whose best play is known."),
        Entry("world", "new", "world", "Write a small world with comments, to start your own from."),
        Entry("world", "check", "world", "Check a world, solve it, and list what plays no part in it."),
        Entry("world", "solve", "world", "Show the value of each action and how likely each disease is."),
        Entry("", "judge", "", "Label diagnoses; compare or combine a run's judges."),
        Entry("judge", "compare", "judge", "Show how far a run's judges agree, and where they disagree."),
        Entry("judge", "label", "label", "Label a sample of a run's diagnoses, to measure its judge."),
        Entry("judge", "majority", "judge", "Combine several judges into one by majority vote."),
        Entry("", "memory", "", "List, show, check, merge and import experiences."),
        Entry("memory", "list", "memory", "List the experiences in a file."),
        Entry("memory", "show", "memory", "Show one experience, and where it comes from."),
        Entry("memory", "check", "memory", "Check a file of experiences."),
        Entry("memory", "merge", "memory", "Merge files of experiences, without repetitions."),
        Entry("memory", "import", "memory", "Import experiences that other programs wrote."),
        Entry("", "study", "", "Experiments that take several runs."),
        Entry("study", "learn", "study", "Find out whether a doctor learns from experience."),
        Entry("study", "reliability", "reliability", "Find out how many cases and repeats a ranking of doctors takes."),
        Entry("study", "contamination", "contamination", "Look for signs that a model has seen the cases before."),
        Entry("study", "stress", "stress", "Find out what difficult patients cost a doctor."),
        Entry("study", "swap", "swap", "Find out whether a doctor treats groups of patients alike."),
        Entry("", "generate", "", "Make cases from MIMIC-IV or MedQA, and check them."),
        Entry("generate", "mimic", "generate", "Make cases from MIMIC-IV's tables."),
        Entry("generate", "medqa", "generate", "Make cases from MedQA questions that ask for a diagnosis."),
        Entry("generate", "solvability", "generate", "Check that cases can be solved."),
    )


app = typer.Typer(
    name="agentclinic",
    cls=Clinic,
    help="Test language-model doctors on simulated patients. A research benchmark, not medical advice.",
    no_args_is_help=True,
    suggest_commands=False,  # the group has its own suggestions
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: half the start-up time, and it survives narrow terminals
)


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
