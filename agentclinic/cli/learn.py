"""`agentclinic learn`: experiences from runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from agentclinic.cli.estimate import show_estimate
from agentclinic.cli.format import counted, end_incomplete, print_json
from agentclinic.config import Settings, is_person
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.run import Learnt, estimate_learning, learn, with_learner
from agentclinic.memory.split import read_split
from agentclinic.report.text import plural
from agentclinic.runs.progress import progress_for


def learn_command(
    runs: Sequence[Path],
    output: Path,
    settings: Settings,
    learner: tuple[str, str | None],
    split: Path | None,
    *,
    every: bool,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Learn from runs, with progress, and say what came of it. A dry run only estimates."""
    if is_person(learner[0]):
        raise ConfigError("learner_llm: a person cannot write experiences here; name a model, or builtin")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}; create it, or name another file")
    settings = with_learner(settings, *learner)
    parts = read_split(split) if split else None
    if dry_run:
        show_estimate(estimate_learning(runs, output, settings, every=every, split=parts), as_json=as_json)
        return
    progress = progress_for(quiet=quiet, stream=sys.stderr)
    learned = anyio.run(partial(learn, runs, output, settings, every=every, split=parts, progress=progress))
    if as_json:
        print_json(
            {
                "path": str(learned.path),
                "encounters": learned.encounters,
                "experiences": learned.experiences,
                "removed": dict(learned.removed),
                "left_out": {"right": learned.right, "test_part": learned.in_test_part},
                "failed": learned.failed,
                "not_tried": learned.not_tried,
            }
        )
    else:
        _show(learned)
    left = {"failed": learned.failed, "not tried": learned.not_tried}
    if any(left.values()):
        why = f": {learned.reason}" if learned.reason else ""
        said = ", ".join(f"{count} {what}" for what, count in left.items() if count)
        end_incomplete(f"{said}{why}\nRun the same command again for the rest.", interrupted=learned.interrupted)


def _show(learned: Learnt) -> None:
    source = plural(learned.encounters, "encounter")
    print(f"{plural(learned.experiences, 'experience')} from {source}, in {learned.path}")
    if learned.removed:
        print(f"not kept: {counted(learned.removed)}")
    if learned.right:
        print(f"left out: {plural(learned.right, 'right encounter')} (--all learns from right ones too)")
    if learned.in_test_part:
        print(f"left out: {plural(learned.in_test_part, 'encounter')} of the test part")
    print(f"Use them with: agentclinic run --memory {shlex.quote(str(learned.path))}")
