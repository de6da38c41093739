"""`agentclinic learn`: experiences from runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import counted, end_if_left, finish, print_json, progress, show_estimate
from agentclinic.config import is_person
from agentclinic.errors import ConfigError, InputError
from agentclinic.report.tables import plural

if TYPE_CHECKING:
    from agentclinic.learn.run import Learnt


@opt.with_settings(*opt.JUDGE, "workers", *opt.ENGINE, "prompts_dir", "check")
def learn_command(
    runs: Annotated[
        list[Path], opt.run(help="Runs: folders, names, latest, or files of records in such folders.", metavar="RUN...")
    ],
    *,
    read: opt.Read,
    learner_llm: opt.Learner = "builtin",
    learner_endpoint: opt.LearnerEndpoint = None,
    all_: opt.All = False,
    split: Annotated[
        Path | None, typer.Option(help="Split of the cases; nothing is learned from its test part.", metavar="FILE")
    ] = None,
    dry_run: opt.DryRun = False,
    output: Annotated[
        Path,
        opt.output("--output", "-o", help="File of experiences; new ones are added to it."),
    ] = Path(opt.USUAL_STORE),
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Turn failed encounters into experiences for --memory.

    A model is shown the dialogue, the truth and what the chart held that was not asked for, and writes up to five
    experiences: a pattern, and what to ask or order when it is seen again. Whatever names the diagnosis is removed. If
    it stops early, the same command continues. The exit code is 3 if encounters are left.
    """
    from agentclinic.learn.run import estimate_learning, learn, with_learner
    from agentclinic.memory.split import read_split

    settings = read()
    if is_person(learner_llm):
        raise ConfigError("learner_llm: a person cannot write experiences here; name a model, or builtin")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}; create it, or name another file")
    settings = with_learner(settings, learner_llm, learner_endpoint)
    parts = read_split(split) if split else None
    if dry_run:
        show_estimate(estimate_learning(runs, output, settings, every=all_, split=parts), as_json=json)
        return
    learned = finish(learn, runs, output, settings, every=all_, split=parts, progress=progress(quiet=quiet))
    if json:
        print_json(
            {
                "path": learned.path,
                "encounters": learned.encounters,
                "experiences": learned.experiences,
                "removed": learned.removed,
                "left_out": {"right": learned.right, "test_part": learned.in_test_part},
                "failed": learned.failed,
                "not_tried": learned.not_tried,
            }
        )
    else:
        _show(learned)
    again = "Run the same command again for the rest."
    end_if_left(learned.failed, learned.not_tried, learned.reason, again, interrupted=learned.interrupted)


def _show(learned: Learnt) -> None:
    source = plural(learned.encounters, "encounter")
    kept = f"{plural(learned.experiences, 'experience')} from {source}, in {learned.path}"
    print(kept if learned.experiences else f"Nothing was learned from {source}.")
    if learned.removed:
        print(f"not kept: {counted(learned.removed)}")
    if learned.right:
        print(f"left out: {plural(learned.right, 'right encounter')} (--all learns from right ones too)")
    if learned.in_test_part:
        print(f"left out: {plural(learned.in_test_part, 'encounter')} of the test part")
    if learned.experiences:
        print(f"Use them with: agentclinic run --memory {shlex.quote(str(learned.path))}")
