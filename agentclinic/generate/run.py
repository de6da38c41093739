"""One call of `agentclinic generate`: open the source, build the writer, make the cases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentclinic.clinic.prompts import load_prompt, user_prompts
from agentclinic.config import RunSettings, Settings, without_credentials
from agentclinic.errors import ConfigError
from agentclinic.generate.files import Files
from agentclinic.generate.make import Made, Work, make
from agentclinic.generate.settings import CommonSettings, MedqaSettings, MimicSettings, SourceSettings
from agentclinic.generate.source import Selection
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models
from agentclinic.runs.progress import Progress

Tell = Callable[[str], None]
"""Is given a line before anything that can take minutes."""


def plan_work(source: str, common: CommonSettings, section: SourceSettings, settings: Settings, tell: Tell) -> Work:
    """Open the source and say what has to be made; `settings` name the endpoint the writer is at."""
    if common.model == "human":
        raise ConfigError("model human: a person cannot write cases here; use builtin or a model at an endpoint")
    prompt = load_prompt("writer", user_prompts(common.prompts_dir))
    output = Path(section.output).expanduser().absolute()
    return Work(
        source=source,
        output=output,
        selection=_OPEN[source](section, output, tell),
        model=common.model,
        prompt=prompt,
        model_settings=_model_settings(common, settings),
        workers=common.workers,
        sleep_seconds=common.sleep_seconds,
    )


async def make_cases(
    work: Work, common: CommonSettings, settings: Settings, progress: Progress, *, retry_quarantined: bool = False
) -> Made:
    """Make the cases with the model that `common` names; refused if the source's text may not go to its endpoint."""
    settings = settings.model_copy(update={"run": RunSettings(workers=common.workers)})
    async with Models(settings, work.selection.data_class) as models:
        model = models.get(common.model, common.endpoint)
        return await make(work, model, progress, retry_quarantined=retry_quarantined)


def _model_settings(common: CommonSettings, settings: Settings) -> dict[str, Any]:
    """What decides a model's answers besides its name; nothing does for builtin."""
    if common.model == "builtin":
        return {}
    endpoint = settings.endpoints.get(common.endpoint or "")
    address = endpoint.base_url if endpoint else settings.openai.base_url
    return {"address": without_credentials(address), "responses": settings.llm.responses}


def _open_mimic(section: SourceSettings, output: Path, tell: Tell) -> Selection:
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
    return Selection(
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


def _open_medqa(section: SourceSettings, output: Path, tell: Tell) -> Selection:
    del output, tell
    assert isinstance(section, MedqaSettings)
    from agentclinic.generate.medqa import read_questions

    questions = read_questions(_base(section, "medqa"), section.limit)
    return Selection(
        data_class=DataClass.SYNTHETIC,
        keys=tuple(case.key for case in questions.cases),
        read=questions.without,
        report=questions.as_dict(),
        lines=questions.lines(),
    )


_OPEN: Mapping[str, Callable[[SourceSettings, Path, Tell], Selection]] = {"mimic": _open_mimic, "medqa": _open_medqa}
"""The sources by name. A new one is one entry here and its section in `settings.py` (docs/generate.md)."""


def _base(section: SourceSettings, source: str) -> Path:
    if not section.base_dataset_dir:
        raise ConfigError(
            f"{source}.base_dataset_dir is not set: name the source's folder with --base-dir, or in gen.config.json"
        )
    return Path(section.base_dataset_dir).expanduser()
