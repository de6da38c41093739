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
from agentclinic.generate.settings import CommonSettings, MimicSettings, SourceSettings
from agentclinic.generate.source import Selection
from agentclinic.runs.build import Models
from agentclinic.runs.progress import Progress

Tell = Callable[[str], None]
"""Called with a line before anything that can take minutes."""


def plan_work(common: CommonSettings, section: SourceSettings, settings: Settings, tell: Tell) -> Work:
    """Open the source that `section` describes and plan its cases; `settings` have the writer's endpoint."""
    if common.model == "human":
        raise ConfigError("model human: a person cannot write cases here; use builtin or a model at an endpoint")
    prompt = load_prompt("writer", user_prompts(common.prompts_dir))
    output = Path(section.output).expanduser().absolute()
    return Work(
        source=section.source,
        output=output,
        selection=_OPEN[section.source](section, output, tell),
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
    from agentclinic.generate.mimic import choose, data_class, load_salt, source_cases

    assert isinstance(section, MimicSettings)
    base = section.base
    files = Files(output)
    files.make_folder()
    salt = load_salt(files.salt)
    chosen = choose(section, salt, tell=tell)
    return Selection(
        data_class=data_class(base),
        keys=tuple(admission.key for admission in chosen.admissions),
        read=lambda done: source_cases(section, chosen.without(done), tell=tell),
        report=chosen.coverage.as_dict(),
        lines=chosen.coverage.lines(),
        settings={
            "hours": section.hours,
            "hours_before": section.hours_before,
            "salt": hashlib.sha256(f"salt:{salt}".encode()).hexdigest()[:8],
        },
    )


def _open_medqa(section: SourceSettings, output: Path, tell: Tell) -> Selection:
    from agentclinic.generate.medqa import select_questions

    del output, tell
    return select_questions(section.base, section.limit)


_OPEN: Mapping[str, Callable[[SourceSettings, Path, Tell], Selection]] = {"mimic": _open_mimic, "medqa": _open_medqa}
"""The sources by name. A new one is one entry here and its section in `settings.py` (docs/generate.md)."""
