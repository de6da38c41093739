"""`agentclinic generate`: choose, make and check cases, and show the result."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agentclinic.cli.format import counted, end_incomplete, print_json
from agentclinic.cli.options import default_file
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import RunSettings, Settings, load_settings, without_credentials
from agentclinic.errors import ConfigError
from agentclinic.generate.files import Files
from agentclinic.generate.make import Made, Work, make
from agentclinic.generate.settings import (
    CommonSettings,
    MedqaSettings,
    MimicSettings,
    SourceSettings,
    default_config,
    load,
)
from agentclinic.generate.source import SourceCase
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models
from agentclinic.runs.progress import Progress, progress_for


@dataclass(frozen=True)
class Opened:
    """A source whose cases have been chosen."""

    data_class: DataClass
    keys: tuple[str, ...]
    read: Callable[[Collection[str]], Iterator[SourceCase]]
    """Reads the chosen cases except those with these keys."""
    report: Mapping[str, Any]
    lines: list[str]
    """The report for people."""
    settings: Mapping[str, Any]
    """The settings that affect the cases made from this source."""


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
    """Make the cases of a source, then print the result."""
    common, section = load(config or default_config(), source, overrides)
    settings = _settings(common, clinic_config, allow_hosts)
    output = Path(section.output).expanduser().absolute()
    progress = progress_for(quiet=quiet, stream=sys.stderr)
    opened = _OPEN[source](section, output, (lambda _: None) if quiet else progress.say)
    work = Work(
        source=source,
        data_class=opened.data_class,
        output=output,
        keys=opened.keys,
        open_source=opened.read,
        model=common.model,
        prompt=load_prompt("writer", _prompts(common)),
        settings={**opened.settings, **_model_settings(common, settings)},
        workers=common.workers,
        sleep_seconds=common.sleep_seconds,
        chosen=opened.report,
    )
    made = anyio.run(partial(_write, work, common, settings, progress, retry_quarantined=retry_quarantined))
    _show(work, made, opened, as_json=as_json)


async def _write(
    work: Work, common: CommonSettings, settings: Settings, progress: Progress, *, retry_quarantined: bool
) -> Made:
    async with Models(settings, work.data_class) as models:
        model = models.get(common.model, common.endpoint)  # refuses an endpoint that may not see the source's text
        return await make(work, model, progress, retry_quarantined=retry_quarantined)


def _settings(common: CommonSettings, clinic_config: Path | None, allow_hosts: Sequence[str] | None) -> Settings:
    if common.model == "human":
        raise ConfigError("model: a person (human) cannot write cases; use builtin or a model at an endpoint")
    llm_config = Path(common.llm_config).expanduser() if common.llm_config else default_file(None, "llm.config.json")
    clinic = default_file(clinic_config, "agentclinic.config.json")
    settings = load_settings(clinic, llm_config, allow_hosts=allow_hosts)
    return settings.model_copy(update={"run": RunSettings(workers=common.workers)})


def _prompts(common: CommonSettings) -> Path | None:
    if common.prompts_dir:
        folder = Path(common.prompts_dir).expanduser()
        if not folder.is_dir():
            raise ConfigError(f"prompts_dir: {folder} is not a folder")
        return folder
    return Path("prompts") if Path("prompts").is_dir() else None


def _model_settings(common: CommonSettings, settings: Settings) -> dict[str, Any]:
    """What affects a model's answers besides its name."""
    if common.model == "builtin":
        return {}
    endpoint = settings.endpoints.get(common.endpoint or "")
    address = endpoint.base_url if endpoint else settings.openai.base_url
    return {"address": without_credentials(address), "responses": settings.llm.responses}


def _open_mimic(section: SourceSettings, output: Path, tell: Callable[[str], None]) -> Opened:
    assert isinstance(section, MimicSettings)
    base = _base(section, "mimic")
    from agentclinic.generate.mimic import MimicOptions, choose, data_class, load_salt, source_cases

    files = Files(output)
    files.make_folder()
    salt = load_salt(files.salt)
    options = MimicOptions(
        base_dir=base,
        limit=section.limit,
        mode=section.mode,
        targets=tuple(part.strip() for part in (section.targets or "").split(",") if part.strip()),
        hours=section.hours,
        hours_before=section.hours_before,
        seed=section.seed,
        cache_dir=Path(section.cache_dir).expanduser() if section.cache_dir else None,
        include_elective=section.include_elective,
        include_symptoms=section.include_symptoms,
        include_unspecified=section.include_unspecified,
        include_recurrent=section.include_recurrent,
        memory_limit=section.memory_limit,
        threads=section.threads,
        salt=salt,
    )
    chosen = choose(options, tell=tell)
    return Opened(
        data_class=data_class(base),
        keys=tuple(admission.key for admission in chosen.admissions),
        read=lambda done: source_cases(options, chosen.without(done), tell=tell),
        report=chosen.coverage.as_dict(),
        lines=chosen.coverage.lines(),
        settings={
            "hours": section.hours,
            "hours_before": section.hours_before,
            "salt": hashlib.sha256(f"salt:{salt}".encode()).hexdigest()[:8],
        },
    )


def _open_medqa(section: SourceSettings, output: Path, tell: Callable[[str], None]) -> Opened:
    del output, tell
    assert isinstance(section, MedqaSettings)
    from agentclinic.generate.medqa import read_questions

    questions = read_questions(_base(section, "medqa"), section.limit)
    return Opened(
        data_class=DataClass.SYNTHETIC,
        keys=tuple(case.key for case in questions.cases),
        read=questions.without,
        report=questions.as_dict(),
        lines=questions.lines(),
        settings={},
    )


_OPEN: Mapping[str, Callable[[SourceSettings, Path, Callable[[str], None]], Opened]] = {
    "mimic": _open_mimic,
    "medqa": _open_medqa,
}
"""The sources by name. A new source needs an entry here and a section in `generate/settings.py` (docs/generate.md)."""


def _base(section: SourceSettings, source: str) -> Path:
    if not section.base_dataset_dir:
        raise ConfigError(
            f"{source}.base_dataset_dir is not set; name the source's folder with --base-dir or in gen.config.json"
        )
    return Path(section.base_dataset_dir).expanduser()


def _show(work: Work, made: Made, opened: Opened, *, as_json: bool) -> None:
    manifest = made.manifest
    counts = manifest["counts"]
    if as_json:
        print_json({**manifest, "output": str(work.output), "stopped": made.reason})
    else:
        print("\n".join(opened.lines))
        print(f"\n{counts['made']} of {counts['chosen']} cases made, {counts['quarantined']} in quarantine")
        for title, key in _TABLES.items():
            if manifest[key]:
                print(f"{title}:")
                for name, count in manifest[key].items():
                    print(f"{count:7}  {name}")
        print(f"data class: {work.data_class}")
        print(f"Written to {work.output}")
        if counts["quarantined"]:
            print(f"quarantine: {Files(work.output).quarantine}")
        if counts["made"]:
            path = shlex.quote(str(work.output))
            print(f"next: agentclinic data check {path}\n      agentclinic run --dataset {path}")
    if made.missing:
        failures = counted(manifest["failures"])
        why = "; ".join(part for part in (made.reason, f"the writer failed: {failures}" if failures else "") if part)
        end_incomplete(
            f"{made.missing} cases were not made{f' ({why})' if why else ''}; the others are kept.\n"
            "Run the same command again to continue.",
            interrupted=made.interrupted,
        )


_TABLES = {
    "by source of the history": "by_history_source",
    "by chapter": "by_chapter",
    "drafts rejected and written again, by reason": "rejected_drafts",
    "in quarantine, by reason": "quarantine_reasons",
}
"""The counts in the manifest that are shown, by their titles."""


def solvability_command(settings: Settings, *, quiet: bool, as_json: bool) -> None:
    """Play the cases with the whole chart and with the door alone, and print both accuracies and the gap."""
    from agentclinic.results.journal import read_records
    from agentclinic.results.run_folder import RECORDS
    from agentclinic.runs.execute import Finished, execute
    from agentclinic.runs.plan import make_plan
    from agentclinic.scoring.format import as_percent, as_points
    from agentclinic.scoring.information import gap_to_full_information

    finished: dict[str, Finished] = {}
    for doctor in ("full_information", "door_only"):
        run = settings.model_copy(update={"run": settings.run.model_copy(update={"doctor": doctor})})
        done = anyio.run(execute, make_plan(run), progress_for(quiet=quiet, stream=sys.stderr))
        if done.missing:
            end_incomplete(
                f"{doctor}: {done.reason or 'not all cases were played'}; continue with:\n"
                f"  agentclinic resume {done.folder}",
                interrupted=done.interrupted,
            )
        finished[doctor] = done
    full, door = finished.values()
    gap = gap_to_full_information(read_records(door.folder / RECORDS), read_records(full.folder / RECORDS))
    shares = {name: done.summary.accuracy_strict for name, done in finished.items()}
    if as_json:
        shown = {name: share.model_dump(mode="json") if share else None for name, share in shares.items()}
        runs = {name: str(done.folder) for name, done in finished.items()}
        print_json({**shown, "gap": gap.model_dump(mode="json"), "runs": runs})
        return
    for name, share in shares.items():
        print(f"{name:17} {as_percent(share)}  {finished[name].folder}")
    print(f"{'the chart adds':17} {as_points(gap, label='95% interval')}")
    print(f"doctor {settings.run.doctor_llm}, judge {settings.run.moderator_llm}")
