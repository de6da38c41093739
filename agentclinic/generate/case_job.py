"""Make one case: write, check, try again with the reasons; also as a job for any process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from agentclinic.cases.model import WrittenStory
from agentclinic.clinic.prompts import Prompt
from agentclinic.config import Settings
from agentclinic.generate.case import Prepared, case_row, prepare
from agentclinic.generate.checks import Problem, check
from agentclinic.generate.source import SourceCase, StorySetting
from agentclinic.generate.story import request
from agentclinic.jsonl import loads
from agentclinic.models.base import OWN_FAULTS, Model, ModelError
from agentclinic.models.endpoint import Share
from agentclinic.models.retry import Clock
from agentclinic.privacy import DataClass
from agentclinic.results.record import Fault
from agentclinic.results.turn import Usage
from agentclinic.runs.build import Models
from agentclinic.runs.shards import Work
from agentclinic.version import __version__

RETRIES = 2
"""A writer is told twice what was wrong; what it has not fixed by then needs a person."""


@dataclass(frozen=True)
class Recipe:
    """How cases are written."""

    digest: str
    """Hash of everything that decides what a case is like."""
    model: str
    prompt: Prompt
    sleep_seconds: float = 0.0
    story: StorySetting = "facts"


@dataclass(frozen=True)
class Outcome:
    """The result for a source: a case, an entry for the quarantine, or an error from the writer's endpoint."""

    row: dict[str, Any] | None = None
    trace: dict[str, Any] | None = None
    quarantined: dict[str, Any] | None = None
    """Why, with the draft."""
    error: str | None = None
    """The kind of error, as in records."""
    message: str = ""
    usage: Usage | None = None


@dataclass
class _Attempts:
    """What was tried for one case."""

    rejected: list[tuple[str, list[Problem]]] = field(default_factory=list)
    """Each rejected answer with its problems."""
    usage: Usage | None = None

    def add(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @property
    def account(self) -> dict[str, Any]:
        """Why drafts were rejected (each reason once per draft), and the tokens of all requests."""
        used = self.usage or Usage(0, 0)  # no request was made: none, not unknown
        return {
            "rejected": [kind for _, problems in self.rejected for kind in dict.fromkeys(p.kind for p in problems)],
            "tokens": {"input": used.input_tokens, "output": used.output_tokens},
        }


has_asked: ContextVar[bool] = ContextVar("has_asked", default=False)
"""Whether this worker has sent a request; each worker is a task with its own context."""


async def made_from(source: SourceCase, recipe: Recipe, model: Model, clock: Clock) -> Outcome:
    """Make one case, or say why it is set aside or could not be made."""
    prepared, tried = prepare(source, recipe.story), _Attempts()
    row: dict[str, Any] | None = None
    problems: list[Problem] = []
    for _ in range(1 + RETRIES):
        try:
            story, answer = await _write(prepared, tried, recipe, model, clock)
        except ModelError as error:
            if error.kind not in OWN_FAULTS:
                return Outcome(error=error.kind, message=str(error), usage=tried.usage)
            # Only the kind: the error's text may quote the prompt.
            problems = [Problem(f"writer_{error.kind}", "", f"the writer's answer was {error.kind}")]
            tried.rejected.append(("", problems))
            continue
        row = case_row(prepared, story, _generation(tried, recipe))
        problems = check(row, prepared)
        if not problems:
            return Outcome(row, {"key": source.key, "rows": prepared.chart.trace}, usage=tried.usage)
        tried.rejected.append((answer, problems))
        if story is None or not any(problem.fixable for problem in problems):
            break  # the writer cannot fix this
    entry = {
        "key": source.key,
        "digest": recipe.digest,
        "data_class": str(source.data_class),
        "history_source": prepared.brief.payload.history_source,
        "attempts": len(tried.rejected),
        **tried.account,
        "reasons": [problem.as_dict() for problem in problems],
        "draft": row,
    }
    return Outcome(quarantined=entry, usage=tried.usage)


async def _write(
    prepared: Prepared, tried: _Attempts, recipe: Recipe, model: Model, clock: Clock
) -> tuple[WrittenStory | None, str]:
    """The story and the answer it came from; no story if the patient's history is unknown."""
    if prepared.labs_only:
        return None, ""
    if has_asked.get() and recipe.sleep_seconds:
        await clock.sleep(recipe.sleep_seconds)
    has_asked.set(True)
    reasons = [(answer, [p.for_writer for p in found if p.fixable]) for answer, found in tried.rejected if answer]
    try:
        reply = await model.reply(request(prepared.brief.payload, recipe.prompt, reasons))
    except ModelError as error:
        tried.add(error.usage)
        raise
    tried.add(reply.usage)
    assert isinstance(reply.parsed, WrittenStory)
    return reply.parsed, reply.text


def _generation(tried: _Attempts, recipe: Recipe) -> dict[str, Any]:
    return {
        "digest": recipe.digest,
        "model": recipe.model,
        "prompt": recipe.prompt.digest,
        "attempts": len(tried.rejected) + 1,
        **tried.account,
        "version": __version__,
    }


_PLAIN = {
    "auth": "it does not accept the key",
    "quota": "the account has no credit left",
    "unknown_model": "it has no model of that name",
    "privacy": "the source's data may not go there",
}


@dataclass(frozen=True)
class CaseJob:
    """Make cases; they go to this file."""

    journal: Path
    recipe: Recipe
    endpoint: str | None
    """The writer's endpoint, by its name in the settings."""
    data_class: DataClass
    final: ClassVar[bool] = False

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[SourceCase, Outcome]]:
        clock = Clock()
        async with Models(settings, self.data_class, share=share) as models:
            model = models.get(self.recipe.model, self.endpoint)

            async def make(source: SourceCase) -> Outcome:
                has_asked.set(True)  # here every item is its own task
                return await made_from(source, self.recipe, model, clock)

            yield make

    def key(self, item: SourceCase) -> str:
        return item.key

    def sent(self, item: SourceCase) -> SourceCase:
        """The source itself: a worker could find it only by reading the tables again."""
        return item

    def fault(self, result: Outcome) -> Fault | None:
        """Why no case was made; without the endpoint's own words where it refused the writer."""
        if result.error is None:
            return None
        plain = _PLAIN.get(result.error)
        return Fault("writer", result.error, f"the writer's endpoint: {plain}" if plain else result.message)

    def encode(self, result: Outcome) -> str:
        return json.dumps(asdict(result), ensure_ascii=False)

    def decode(self, text: str) -> Outcome:
        entry = loads(text)
        usage = entry.pop("usage")
        return Outcome(**entry, usage=Usage(**usage) if usage else None)
