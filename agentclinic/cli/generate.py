"""`agentclinic generate`: choosing, making and checking cases, and what came of it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agentclinic.cli.options import default_file
from agentclinic.config import Settings, load_settings
from agentclinic.generate.files import Files
from agentclinic.generate.make import Made, Work
from agentclinic.generate.run import make_cases, plan_work
from agentclinic.generate.settings import default_config, load
from agentclinic.runs.progress import progress_for


def generate_command(
    source: str,
    config: Path | None,
    clinic_config: Path | None,
    overrides: Mapping[str, Any],
    *,
    allow_hosts: Sequence[str] | None,
    retry_quarantined: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Make the cases of a source, then say what came of it."""
    common, section = load(config or default_config(), source, overrides)
    llm_config = Path(common.llm_config).expanduser() if common.llm_config else None
    settings = load_settings(
        default_file(clinic_config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        allow_hosts=allow_hosts,
    )
    progress = progress_for(quiet=quiet, stream=sys.stderr)
    work = plan_work(common, section, settings, (lambda _: None) if quiet else progress.say)
    made = anyio.run(partial(make_cases, work, common, settings, progress, retry_quarantined=retry_quarantined))
    _show(work, made, as_json=as_json)


def _show(work: Work, made: Made, *, as_json: bool) -> None:
    files = Files(work.output)
    counts = made.manifest["counts"]
    if as_json:
        print(json.dumps({**made.manifest, "output": str(work.output), "stopped": made.reason}, indent=2))
    else:
        print("\n".join(work.selection.lines))
        print(f"\n{counts['made']} of {counts['chosen']} cases made, {counts['quarantined']} in quarantine")
        _table("by source of the history", made.manifest["by_history_source"])
        _table("by chapter", made.manifest["by_chapter"])
        _table("drafts rejected and written again, by reason", made.manifest["rejected_drafts"])
        _table("in quarantine, by reason", made.manifest["quarantine_reasons"])
        print(f"data class: {work.selection.data_class}")
        print(f"written to {work.output}")
        if counts["quarantined"]:
            print(f"quarantine: {files.quarantine}")
        if counts["made"]:
            path = shlex.quote(str(work.output))
            print(f"next: agentclinic data check {path}\n      agentclinic run --dataset {path}")
    if made.missing:
        failures = ", ".join(f"{kind} {count}" for kind, count in made.manifest["failures"].items())
        why = "; ".join(part for part in (made.reason, f"the writer failed: {failures}" if failures else "") if part)
        sys.stderr.write(
            f"{made.missing} cases were not made{f' ({why})' if why else ''}; what is made is kept.\n"
            "Run the same command again to go on.\n"
        )
        raise SystemExit(130 if made.interrupted else 3)


def _table(title: str, counts: Mapping[str, int]) -> None:
    if counts:
        print(f"{title}:")
        for name, count in counts.items():
            print(f"{count:7}  {name}")


def solvability_command(settings: Settings, *, quiet: bool, as_json: bool) -> None:
    """Play the cases with the whole chart and with the door alone, and print both accuracies and the gap."""
    from agentclinic.generate.solvability import solvability

    played = anyio.run(solvability, settings, partial(progress_for, quiet=quiet, stream=sys.stderr))
    finished, gap = played.runs, played.gap
    if gap is None:
        doctor, stopped = list(finished.items())[-1]
        sys.stderr.write(f"{doctor}: {stopped.reason or 'not all cases were played'}; go on with:\n")
        sys.stderr.write(f"  agentclinic resume {stopped.folder}\n")
        raise SystemExit(130 if stopped.interrupted else 3)
    shares = {name: one.summary.accuracy_strict for name, one in finished.items()}
    if as_json:
        shown = {name: share.model_dump(mode="json") if share else None for name, share in shares.items()}
        runs = {name: str(one.folder) for name, one in finished.items()}
        print(json.dumps({**shown, "gap": gap.model_dump(mode="json"), "runs": runs}, indent=2))
        return
    for name, share in shares.items():
        known = share is not None and share.value is not None
        value = f"{share.value:.1%} ({share.count} of {share.of})" if share and known else "nothing to judge"
        print(f"{name:17} {value}  {finished[name].folder}")
    if gap.value is not None and gap.low is not None and gap.high is not None:
        print(f"{'the chart adds':17} {gap.value:+.1%} (95 % interval {gap.low:+.1%} to {gap.high:+.1%})")
    print(f"doctor {settings.run.doctor_llm}, judge {settings.run.moderator_llm}")
