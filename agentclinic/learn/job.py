"""Learning from one encounter, as a job for any process that can see the folder of its run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from agentclinic.cases.model import Case
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.prompts import load_prompt, user_prompts
from agentclinic.config import Settings
from agentclinic.learn.write import Learned, learn_from
from agentclinic.memory.experience import Experience, Source, source_of
from agentclinic.models.base import ModelError
from agentclinic.models.endpoint import Share
from agentclinic.models.recording import enter_unit
from agentclinic.privacy import DataClass
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.turn import Usage
from agentclinic.runs.build import Models
from agentclinic.runs.job import Work
from agentclinic.runs.metering import Metered

LEARNER = "doctor"
"""The role whose model writes experiences: in the settings of this command the doctor's model is the learner."""


class Outcome(BaseModel):
    """What came of one encounter: experiences, or an error."""

    model_config = ConfigDict(frozen=True)

    experiences: tuple[Experience, ...] = ()
    removed: Mapping[str, int] = {}
    usage: Mapping[str, Mapping[str, int | None]] = {}
    error: str | None = None
    """The kind of error, as in records."""
    message: str = ""

    @property
    def learned(self) -> Learned:
        """The experiences, before those that say nothing new are removed."""
        return Learned(list(self.experiences), Counter(self.removed))


async def learned_from(record: Record, case: Case, models: Models, settings: Settings) -> Outcome:
    """Learn from one encounter."""
    usage: dict[str, Usage] = {}
    enter_unit(f"{case.id}:{record.repeat}")
    prompts = user_prompts(settings.run.prompts_dir)
    model = Metered(models.for_role(LEARNER), "learner", usage)
    moderator = Metered(models.for_role("moderator"), "moderator", usage)
    judge = Judge(moderator, load_prompt("moderator", prompts), relation=settings.judge.relation)
    learned, failure = Learned(), None
    try:
        learned = await learn_from(record, case, model, load_prompt("learner", prompts), judge)
    except ModelError as error:
        failure = error
    return Outcome(
        experiences=tuple(learned.experiences),
        removed=dict(learned.removed),
        usage={role: asdict(counted) for role, counted in usage.items()},
        error=failure.kind if failure else None,
        message=str(failure) if failure else "",
    )


@dataclass(frozen=True)
class Encounter:
    """An encounter to learn from."""

    record: Record
    case: Case
    place: Path
    """Its run."""
    run: str
    right: bool
    data_class: DataClass
    split: str | None
    """Checksum of the split."""

    @cached_property
    def source(self) -> Source:
        """What the experiences say about where they come from."""
        said = "\n".join(f"{turn.role}: {turn.text}" for turn in self.record.transcript or ())
        mark = hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:12]
        return source_of(self.case, self.run, self.record.unit, self.split, mark)

    @property
    def name(self) -> str:
        """What identifies it."""
        return self.source.key


@dataclass(frozen=True)
class LearnJob:
    """Learn from encounters; the experiences go to this store."""

    journal: Path
    data_class: DataClass

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[tuple[Path, str], Outcome]]:
        """Read runs when they are first asked for, and learn from their encounters."""

        @cache
        def encounters(place: Path) -> dict[str, tuple[Record, Case]]:
            data = load_run(place)
            cases = {case.id: case for case in read_cases(data.path.parent)}
            return {
                record.unit: (record, cases[record.case_hash]) for record in data.records() if record.case_hash in cases
            }

        async with Models(settings, self.data_class, share=share) as models:
            models.prepare()

            async def learn(sent: tuple[Path, str]) -> Outcome:
                place, unit = sent
                return await learned_from(*encounters(place)[unit], models, settings)

            yield learn

    def key(self, item: Encounter) -> str:
        """The name of the encounter."""
        return item.name

    def sent(self, item: Encounter) -> tuple[Path, str]:
        """Its run and its unit."""
        return item.place, item.record.unit

    def is_settled(self, result: Outcome) -> bool:
        """Whether no model failed; what failed is tried again by the next call."""
        return result.error is None

    def encode(self, result: Outcome) -> str:
        """As JSON, without the ids, which follow from the texts."""
        return result.model_dump_json(exclude={"experiences": {"__all__": {"id"}}})

    def decode(self, text: str) -> Outcome:
        """From JSON."""
        return Outcome.model_validate_json(text)
