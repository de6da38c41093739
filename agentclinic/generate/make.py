"""Make cases: write, check, retry with the reasons, save; many at once, each on the disk before the next.

Progress is kept in the files alone, so a call can be resumed however it was stopped.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentclinic.cases.model import WITHOUT_SYMPTOMS
from agentclinic.clinic.prompts import Prompt
from agentclinic.config import REPLAY, Settings
from agentclinic.files import Lock
from agentclinic.generate.case_job import CaseJob, Outcome, Recipe, made_from
from agentclinic.generate.files import Files
from agentclinic.generate.source import Selection, SourceCase, StorySetting
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import Model
from agentclinic.models.retry import Clock
from agentclinic.results.run_folder import write_json
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Budget, Spent, Tokens
from agentclinic.runs.build import Models
from agentclinic.runs.campaign import Campaign
from agentclinic.runs.pool import Take
from agentclinic.runs.progress import Progress
from agentclinic.version import __version__

LAYOUT = 1
"""Version of the code that assembles cases: a different version makes different cases from the same source."""


@dataclass(frozen=True)
class Work:
    """What to make, and how."""

    source: str
    """mimic or medqa."""
    output: Path
    selection: Selection
    model: str
    prompt: Prompt
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    """What decides the model's answers besides its name."""
    sleep_seconds: float = 0.0
    story: StorySetting = "facts"
    endpoint: str | None = None
    settings: Settings = field(default_factory=Settings)
    """How many workers there are and where, the limits, and the writer's endpoint."""

    @property
    def recipe(self) -> Recipe:
        return Recipe(self.digest, self.model, self.prompt, self.sleep_seconds, self.story)

    @property
    def made_with(self) -> dict[str, Any]:
        """Everything that decides what a case made from a given source is like."""
        return {
            "source": self.source,
            "model": self.model,
            "prompt": self.prompt.digest,
            "version": __version__,
            "layout": LAYOUT,
            **({} if self.story == "facts" else {"story": self.story}),  # so that files of earlier versions can grow
            **self.selection.settings,
            **self.model_settings,
        }

    @property
    def digest(self) -> str:
        """Hash of `made_with`; together with a case's key it says whether the case is done."""
        text = json.dumps(self.made_with, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Made:
    """The result of a call."""

    manifest: dict[str, Any]
    reason: str | None = None
    """Why it stopped early."""
    interrupted: bool = False

    @property
    def missing(self) -> int:
        """Cases that are neither made nor in quarantine."""
        counts: dict[str, int] = self.manifest["counts"]
        return counts["chosen"] - counts["made"] - counts["quarantined"]


async def make(
    work: Work,
    progress: Progress,
    *,
    model: Model | None = None,
    clock: Clock | None = None,
    retry_quarantined: bool = False,
) -> Made:
    """Make every chosen case that is not made yet, with the model that `work` names unless another is given.

    Refused if the source's text may not go to the model's endpoint.
    """
    began = time.perf_counter()
    files, spent = Files(work.output), Spent()
    recipe, asking = work.recipe, clock or Clock()
    async with Models(work.settings, work.selection.data_class) as models:
        writer = model or models.get(work.model, work.endpoint)
        used = models.at_endpoint("writer", work.model, work.endpoint)
        files.make_folder()

        async def make_here(source: SourceCase) -> Outcome:
            return await made_from(source, recipe, writer, asking)

        def count(outcome: Outcome) -> None:
            usage = outcome.usage or Usage(0, 0)  # no request was made: none, not unknown
            tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            cost = price(models, work.model, work.endpoint, tokens)
            spent.add("writer", tokens, cost, answered=outcome.error is None)

        def write(_: str, outcome: Outcome) -> None:
            if outcome.row is not None:
                # The trace first: a case without one could not be checked.
                trace.append(outcome.trace)
                output.append(outcome.row)
            elif outcome.quarantined is not None:
                quarantine.append(outcome.quarantined)
            state.add(outcome)

        with Lock(work.output.parent, f".{work.output.name}.lock", what="data set"):
            for path in (files.output, files.quarantine, files.trace):
                if repair(path):
                    progress.say(f"{path}: removed an incomplete last line; its case is made again")
            state = _State(work, files.made(work.digest, work.made_with), files.quarantined(work.digest))
            for note in state.notes:  # what earlier calls used for the existing cases
                tokens = note.get("tokens") or {}
                count(Outcome(usage=Usage(tokens.get("input"), tokens.get("output"))))
            if retry_quarantined:
                files.empty_quarantine(work.digest)
                state = _State(work, [*state.others, *state.made], [])
            write_json(files.manifest, state.manifest(None), private=True)
            with (
                JsonLines(files.output, private=True) as output,
                JsonLines(files.quarantine, private=True) as quarantine,
                JsonLines(files.trace, private=True) as trace,
            ):
                campaign = Campaign(
                    settings=work.settings,
                    models=models,
                    progress=progress,
                    what="cases",
                    title="cases to make",
                    job=CaseJob(files.output, recipe, work.endpoint, work.selection.data_class),
                    here=make_here,
                    record=write,
                    count=count,
                    line=state.line,
                    asked=[used] if used else [],
                    budget=Budget.of(work.settings),
                    spent=spent,
                    done=state.keys,
                )
                try:
                    await campaign.run_from(_reading(work.selection, campaign.done), work.selection.keys)
                finally:
                    manifest = state.manifest(round(time.perf_counter() - began, 3))
                    write_json(files.manifest, manifest, private=True)
            if not files.quarantine.stat().st_size:
                files.quarantine.unlink()
    return Made(manifest, campaign.pool.reason, campaign.pool.interrupted)


def _reading(selection: Selection, done: Collection[str]) -> Take[SourceCase]:
    """Reads the source on first use, without the cases that are done by then."""
    lock = anyio.Lock()
    source: Iterator[SourceCase] | None = None

    async def take() -> SourceCase | None:
        nonlocal source
        # In a thread: a first pass over large tables takes minutes, and Ctrl-C must work meanwhile.
        async with lock:
            source = source or iter(selection.read(frozenset(done)))
            return await anyio.to_thread.run_sync(next, source, None, abandon_on_cancel=True)

    return take


def price(models: Models, name: str, endpoint: str | None, tokens: Tokens) -> float | None:
    """What a writer's tokens cost; nothing is paid for a recording."""
    return 0.0 if name.startswith(REPLAY) else models.price(name, endpoint, tokens)


class _State:
    """What is done, in this call and before."""

    def __init__(self, work: Work, made: list[dict[str, Any]], quarantined: list[dict[str, Any]]) -> None:
        self._work = work
        chosen = set(work.selection.keys)
        self.others = [row for row in made if row["generation"]["key"] not in chosen]
        """Made by an earlier call from another selection; they stay."""
        self.made = [row for row in made if row["generation"]["key"] in chosen]
        self.quarantined = [row for row in quarantined if row["key"] in chosen]
        self.failed: Counter[str] = Counter()
        self.keys = {row["generation"]["key"] for row in made} | {row["key"] for row in quarantined}
        """Cases that are done."""

    @property
    def notes(self) -> list[dict[str, Any]]:
        """How each case was made."""
        return [*(row["generation"] for row in (*self.others, *self.made)), *self.quarantined]

    def add(self, outcome: Outcome) -> None:
        if outcome.row is not None:
            self.made.append({name: value for name, value in outcome.row.items() if name != "OSCE_Examination"})
        elif outcome.quarantined is not None:
            self.quarantined.append({name: value for name, value in outcome.quarantined.items() if name != "draft"})
        elif outcome.error is not None:
            self.failed[outcome.error] += 1

    def line(self) -> str:
        """The progress so far, in a few words."""
        failed = f", {self.failed.total()} failed" if self.failed else ""
        return f"{len(self.made)} made, {len(self.quarantined)} in quarantine{failed}"

    def manifest(self, seconds: float | None) -> dict[str, Any]:
        rows, notes = [*self.others, *self.made], self.notes
        return {
            "source": self._work.source,
            "data_class": str(self._work.selection.data_class),
            "counts": {
                "chosen": len(self._work.selection.keys),
                "made": len(self.made),
                "quarantined": len(self.quarantined),
                "failed": self.failed.total(),
                "made_before_by_another_choice": len(self.others),
                "labs_only": sum(bool(row["labs_only"]) for row in rows),
                "without_symptoms": sum(
                    row["history_source"] in WITHOUT_SYMPTOMS for row in (*rows, *self.quarantined)
                ),
            },
            "by_history_source": _counted(str(row["history_source"]) for row in rows),
            "by_chapter": _counted(str(row["truth"]["chapter"] or "unknown") for row in rows),
            "quarantine_reasons": _counted(
                kind for row in self.quarantined for kind in {reason["kind"] for reason in row["reasons"]}
            ),
            "rejected_drafts": _counted(kind for note in notes for kind in note.get("rejected", ())),
            "failures": _counted(self.failed.elements()),
            "withheld": {part: sum(int(row["withheld"][part]) for row in rows) for part in ("story", "results")},
            "tokens": {kind: _total([(note.get("tokens") or {}).get(kind) for note in notes]) for kind in _TOKENS},
            "chosen": dict(self._work.selection.report),
            "made_with": self._work.made_with,
            "digest": self._work.digest,
            "timing": {"seconds": seconds},
        }


_TOKENS = ("input", "output")


def _total(numbers: list[int | None]) -> int | None:
    """The sum; unknown, not 0, if an endpoint did not report a number."""
    return None if None in numbers else sum(filter(None, numbers))


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())
