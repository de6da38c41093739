"""One call of `agentclinic generate`: open the source, build the writer, make the cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentclinic.cases.model import WrittenStory
from agentclinic.clinic.prompts import load_prompt, user_prompts
from agentclinic.config import RunSettings, Settings, is_at_endpoint, is_person, without_credentials
from agentclinic.errors import ConfigError
from agentclinic.files import expanded
from agentclinic.generate.case import prepare
from agentclinic.generate.case_job import RETRIES
from agentclinic.generate.files import Files
from agentclinic.generate.make import Work, price
from agentclinic.generate.settings import CommonSettings, MimicSettings, SourceSettings
from agentclinic.generate.source import Selection, StorySetting
from agentclinic.generate.story import request
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models
from agentclinic.runs.campaign import check_first
from agentclinic.runs.estimate import CHARACTERS, COMMON, Amount, Estimate, Row, tokens_in
from agentclinic.runs.plan import refuse_on_cluster

Tell = Callable[[str], None]
"""Called with a line before anything that can take minutes."""


async def check_writer(
    common: CommonSettings, section: SourceSettings, settings: Settings, say: Callable[[str], None]
) -> None:
    """Before the source is read, refuse a writer that may not see its text, has no price or cannot be used."""
    ours = _for_writer(common, settings)
    refuse_on_cluster(ours)
    async with Models(ours, _CLASS[section.source](section)) as models:
        used = models.at_endpoint("writer", common.model, common.endpoint)
        if used:
            models.get(common.model, common.endpoint)
        await check_first(ours, models, [used] if used else [], say, left=True)


def plan_work(
    common: CommonSettings, section: SourceSettings, settings: Settings, tell: Tell, *, dry_run: bool = False
) -> Work:
    """Open the source that `section` describes and plan its cases; `settings` have the writer's endpoint.

    With `dry_run` nothing is written, not even a salt or a cache.
    """
    if is_person(common.model):
        raise ConfigError("model human: a person cannot write cases here; use builtin or a model at an endpoint")
    story: StorySetting = section.story if isinstance(section, MimicSettings) else "facts"
    if story == "model" and common.model == "builtin":
        raise ConfigError("story model: builtin makes nothing up; name a language model with --model")
    prompt = load_prompt("writer", user_prompts(common.prompts_dir))
    output = expanded(section.output).absolute()
    return Work(
        source=section.source,
        output=output,
        selection=_OPEN[section.source](section, output, tell, dry_run),
        model=common.model,
        prompt=prompt,
        model_settings=_model_settings(common, settings),
        sleep_seconds=common.sleep_seconds,
        story=story,
        endpoint=common.endpoint,
        settings=_for_writer(common, settings),
    )


def estimate_work(work: Work) -> Estimate:
    """What making the missing cases would use; reads the source, sends nothing and writes nothing."""
    files = Files(work.output)
    done = {row["generation"]["key"] for row in files.made(work.digest, work.made_with)}
    done |= {row["key"] for row in files.quarantined(work.digest)}
    typical, most = Amount(), Amount()
    left = [source for source in work.selection.read(frozenset(done)) if source.key not in done]
    for source in left:
        prepared = prepare(source, work.story)
        if prepared.labs_only:
            continue
        asked = request(prepared.brief.payload, work.prompt, ())
        shape = json.dumps(WrittenStory.model_json_schema())
        sent = tokens_in(shape, *(message.content for message in asked.messages))
        typical += Amount(1, sent, STORY)
        for earlier in range(1 + RETRIES):
            most += Amount(1, sent + earlier * STORY, STORY)
    models = Models(work.settings, work.selection.data_class)

    def row(amount: Amount) -> tuple[Row, ...]:
        if not is_at_endpoint(work.model) or not amount.requests:
            return ()
        cost = price(models, work.model, work.endpoint, amount.tokens)
        return (Row("writer", work.model, models.host(work.endpoint), amount, cost),)

    basis = (
        f"one draft for each case in a typical call, {1 + RETRIES} at most",
        f"input: the prompt and the records of this source, {CHARACTERS} characters per token",
        f"output: {STORY} tokens for a story, without a model's hidden reasoning",
        *COMMON,
    )
    return Estimate(len(left), "cases to make", row(typical), row(most), basis)


STORY = 400
"""Tokens of a story: a paragraph of history and eight short fields, as JSON."""


def _for_writer(common: CommonSettings, settings: Settings) -> Settings:
    """The settings without those of a run, which do not apply to generating."""
    run = common.model_dump(include={"workers", "engine", "address", "processes"})
    return settings.model_copy(update={"run": RunSettings(**run, check=settings.run.check)})


def _model_settings(common: CommonSettings, settings: Settings) -> dict[str, Any]:
    """What decides a model's answers besides its name; nothing does for builtin."""
    if common.model == "builtin":
        return {}
    endpoint = settings.endpoints.get(common.endpoint or "")
    address = endpoint.base_url if endpoint else settings.openai.base_url
    return {"address": without_credentials(address), "responses": settings.llm.responses}


def _open_mimic(section: SourceSettings, output: Path, tell: Tell, dry_run: bool) -> Selection:
    from agentclinic.generate.mimic import choose, data_class, load_salt, source_cases

    assert isinstance(section, MimicSettings)
    base = section.base
    files = Files(output)
    if dry_run:
        section = section.model_copy(update={"cache_dir": None})
    else:
        files.make_folder()
    # If there is no salt yet, a dry run only counts cases: any salt will do.
    salt = "dry run" if dry_run and not files.salt.exists() else load_salt(files.salt)
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


def _open_medqa(section: SourceSettings, output: Path, tell: Tell, dry_run: bool) -> Selection:
    from agentclinic.generate.medqa import select_questions

    del output, tell, dry_run
    return select_questions(section.base, section.limit)


def _class_of_mimic(section: SourceSettings) -> DataClass:
    from agentclinic.generate.mimic import data_class

    return data_class(section.base)


_OPEN: Mapping[str, Callable[[SourceSettings, Path, Tell, bool], Selection]] = {
    "mimic": _open_mimic,
    "medqa": _open_medqa,
}
"""The sources by name. To add one, add an entry here and a section in `settings.py` (docs/generate.md)."""
_CLASS: Mapping[str, Callable[[SourceSettings], DataClass]] = {
    "mimic": _class_of_mimic,
    "medqa": lambda _: DataClass.SYNTHETIC,
}
"""The class of each source's data, known before the source is read."""
