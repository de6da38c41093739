"""One call of `agentclinic generate`: open the source, build the writer, make the cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from agentclinic.cases.story import WrittenStory
from agentclinic.clinic.prompts import load_prompt, user_prompts
from agentclinic.config import RunSettings, Settings, is_person, without_credentials
from agentclinic.errors import ConfigError
from agentclinic.files import expanded
from agentclinic.generate.case import prepare
from agentclinic.generate.case_job import RETRIES
from agentclinic.generate.files import Files
from agentclinic.generate.make import Made, Work, make
from agentclinic.generate.settings import CommonSettings, MimicSettings, SourceSettings
from agentclinic.generate.source import Selection
from agentclinic.generate.story import request
from agentclinic.privacy import DataClass
from agentclinic.runs.budget import Budget, refuse_without_price
from agentclinic.runs.build import REPLAY, Models
from agentclinic.runs.check import failures, gone, report
from agentclinic.runs.engine import check_engine, engine
from agentclinic.runs.estimate import CHARACTERS, COMMON, Amount, Estimate, Row, tokens_in
from agentclinic.runs.plan import refuse_on_cluster
from agentclinic.runs.progress import Progress

Tell = Callable[[str], None]
"""Called with a line before anything that can take minutes."""


async def check_writer(
    common: CommonSettings, section: SourceSettings, settings: Settings, say: Callable[[str], None]
) -> None:
    """Before the source is read: refuse a writer that may not get its text, has no price or cannot be used."""
    ours = _for_writer(common, settings)
    refuse_on_cluster(ours)
    async with Models(ours, _CLASS[section.source](section)) as models:
        check_engine(ours, models.gate)
        used = models.at_endpoint("writer", common.model, common.endpoint)
        if used is None:
            return
        models.get(common.model, common.endpoint)
        if settings.llm.runtime.max_cost is not None and _price(models, common, 1, 1) is None:
            refuse_without_price([used])
        if settings.run.check:
            report(await failures([used], settings.llm, models.gate), say)


def plan_work(
    common: CommonSettings, section: SourceSettings, settings: Settings, tell: Tell, *, dry_run: bool = False
) -> Work:
    """Open the source that `section` describes and plan its cases; `settings` have the writer's endpoint.

    With `dry_run` nothing is written, not even a salt or a cache.
    """
    if is_person(common.model):
        raise ConfigError("model human: a person cannot write cases here; use builtin or a model at an endpoint")
    prompt = load_prompt("writer", user_prompts(common.prompts_dir))
    output = expanded(section.output).absolute()
    return Work(
        source=section.source,
        output=output,
        selection=_OPEN[section.source](section, output, tell, dry_run),
        model=common.model,
        prompt=prompt,
        model_settings=_model_settings(common, settings),
        workers=common.workers,
        sleep_seconds=common.sleep_seconds,
        endpoint=common.endpoint,
    )


async def make_cases(
    work: Work, common: CommonSettings, settings: Settings, progress: Progress, *, retry_quarantined: bool = False
) -> Made:
    """Make the cases with the model that `common` names; refused if the source's text may not go to its endpoint."""
    check = settings.run.check
    settings = _for_writer(common, settings)
    async with Models(settings, work.selection.data_class) as models:
        model = models.get(common.model, common.endpoint)
        used = models.at_endpoint("writer", common.model, common.endpoint)

        async def ask(_: Collection[str]) -> str | None:
            return await gone([used] if used else [], settings.llm, models.gate)

        return await make(
            work,
            model,
            progress,
            retry_quarantined=retry_quarantined,
            budget=Budget.of(settings),
            price=partial(_price, models, common),
            ask=ask if check else None,
            on=partial(engine, settings, models.gate, say=progress.say),
        )


def estimate_work(work: Work, common: CommonSettings, settings: Settings) -> Estimate:
    """What making the missing cases would use; reads the source, sends nothing and writes nothing."""
    files = Files(work.output)
    done = {row["generation"]["key"] for row in files.made(work.digest, work.made_with)}
    done |= {row["key"] for row in files.quarantined(work.digest)}
    typical, most = Amount(), Amount()
    left = [source for source in work.selection.read(frozenset(done)) if source.key not in done]
    for source in left:
        prepared = prepare(source)
        if prepared.labs_only:
            continue
        asked = request(prepared.brief.payload, work.prompt, ())
        shape = json.dumps(WrittenStory.model_json_schema())
        sent = tokens_in(shape, *(message.content for message in asked.messages))
        typical += Amount(1, sent, STORY)
        for earlier in range(1 + RETRIES):
            most += Amount(1, sent + earlier * STORY, STORY)
    models = Models(_for_writer(common, settings), work.selection.data_class)
    used = models.at_endpoint("writer", common.model, common.endpoint)

    def row(amount: Amount) -> tuple[Row, ...]:
        if used is None or not amount.requests:
            return ()
        cost = _price(models, common, round(amount.input_tokens), round(amount.output_tokens))
        return (Row("writer", common.model, used.host, amount, cost),)

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
    """The settings without those of a run, which say nothing about generating."""
    run = common.model_dump(include={"workers", "engine", "address", "processes"})
    return settings.model_copy(update={"run": RunSettings(**run)})


def _price(models: Models, common: CommonSettings, sent: int | None, received: int | None) -> float | None:
    usage = {"input_tokens": sent, "output_tokens": received}
    return 0.0 if common.model.startswith(REPLAY) else models.price(common.model, common.endpoint, usage)


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
    # Without a salt yet, a dry run only counts: any will do.
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
"""The sources by name. A new one is one entry here and its section in `settings.py` (docs/generate.md)."""
_CLASS: Mapping[str, Callable[[SourceSettings], DataClass]] = {
    "mimic": _class_of_mimic,
    "medqa": lambda _: DataClass.SYNTHETIC,
}
"""The class of each source's data, known before the source is read."""
