"""Make cases: write, check, retry with the reasons, save; many at once, each on the disk before the next.

The files alone say what is done, so a call that was stopped in any way can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentclinic.clinic.prompts import Prompt
from agentclinic.files import Lock
from agentclinic.generate.case_job import CaseJob, Outcome, Recipe, made_from
from agentclinic.generate.files import Files
from agentclinic.generate.source import Selection, SourceCase
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import FATAL, Model
from agentclinic.models.retry import Clock
from agentclinic.results.run_folder import write_json
from agentclinic.results.turn import Usage
from agentclinic.runs import shards
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.job import EngineError
from agentclinic.runs.job import Work as Doing
from agentclinic.runs.outage import OUTAGE, Ask, Outage
from agentclinic.runs.pool import Pool
from agentclinic.runs.progress import Progress
from agentclinic.version import __version__

LAYOUT = 1
"""Version of how a case is assembled: another version makes other cases from the same source."""


OpenEngine = Callable[..., AbstractAsyncContextManager[Doing[SourceCase, Outcome]]]
"""Opens what makes the cases of a job: the arguments are the job, what would do it here, and `idle`."""
Price = Callable[[int | None, int | None], float | None]
"""The cost of input and output tokens in dollars; None if unknown."""


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
    workers: int = 1
    sleep_seconds: float = 0.0
    endpoint: str | None = None

    @property
    def recipe(self) -> Recipe:
        """How its cases are written."""
        return Recipe(self.digest, self.model, self.prompt, self.sleep_seconds)

    @property
    def made_with(self) -> dict[str, Any]:
        """Everything that decides what a case made from a given source is like."""
        return {
            "source": self.source,
            "model": self.model,
            "prompt": self.prompt.digest,
            "version": __version__,
            "layout": LAYOUT,
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
    model: Model,
    progress: Progress,
    clock: Clock | None = None,
    *,
    retry_quarantined: bool = False,
    budget: Budget | None = None,
    price: Price | None = None,
    ask: Ask | None = None,
    on: OpenEngine | None = None,
) -> Made:
    """Make every chosen case that is not made yet.

    `price` works out what tokens cost, for a `budget` in dollars; `ask` finds out whether a writer that fails again and
    again is gone; `on` opens another engine than this process.
    """
    began = time.perf_counter()
    files = Files(work.output)
    files.make_folder()
    with Lock(work.output.parent, f".{work.output.name}.lock", what="data set"):
        for path in (files.output, files.quarantine, files.trace):
            if repair(path):
                progress.say(f"{path}: removed an incomplete last line; its case is made again")
        state = _State(work, files.made(work.digest, work.made_with), files.quarantined(work.digest))
        account = _Account(budget or Budget(), price or (lambda *_: None), ask, work.workers)
        account.add_earlier(state)
        if retry_quarantined:
            files.empty_quarantine(work.digest)
            state = _State(work, [*state.others, *state.made], [])
        write_json(files.manifest, state.manifest(None), private=True)
        with (
            JsonLines(files.output, private=True) as output,
            JsonLines(files.quarantine, private=True) as quarantine,
            JsonLines(files.trace, private=True) as trace,
        ):
            maker = _Maker(work, state, progress, output, quarantine, trace, account)
            job = CaseJob(files.output, work.recipe, work.endpoint, work.selection.data_class)
            maker.take_over(job)
            here = partial(_made_here, work.recipe, model, clock or Clock())
            try:
                async with (on or _locally)(job, here, idle=maker.is_done) as do:
                    progress.start(len(work.selection.keys), state.finished, "cases to make")
                    try:
                        await maker.work_off(do)
                    finally:
                        progress.stop()
                maker.take_over(job)
            finally:
                manifest = state.manifest(round(time.perf_counter() - began, 3))
                write_json(files.manifest, manifest, private=True)
        if not files.quarantine.stat().st_size:
            files.quarantine.unlink()
    return Made(manifest, maker.pool.reason, maker.pool.interrupted)


async def _made_here(recipe: Recipe, model: Model, clock: Clock, source: SourceCase) -> Outcome:
    return await made_from(source, recipe, model, clock)


@asynccontextmanager
async def _locally(
    _: CaseJob, here: Doing[SourceCase, Outcome], *, idle: bool
) -> AsyncIterator[Doing[SourceCase, Outcome]]:
    del idle
    yield here


class _State:
    """What is done, in this call and before."""

    def __init__(self, work: Work, made: list[dict[str, Any]], quarantined: list[dict[str, Any]]) -> None:
        self._work = work
        chosen = set(work.selection.keys)
        self.others = [row for row in made if row["generation"]["key"] not in chosen]
        """Made by an earlier call with another choice; they stay."""
        self.made = [row for row in made if row["generation"]["key"] in chosen]
        self.quarantined = [row for row in quarantined if row["key"] in chosen]
        self.failed: Counter[str] = Counter()
        self.keys = {row["generation"]["key"] for row in made} | {row["key"] for row in quarantined}
        """Cases that are done or in progress."""

    @property
    def finished_keys(self) -> set[str]:
        """Chosen cases that are made or set aside."""
        return {row["generation"]["key"] for row in self.made} | {row["key"] for row in self.quarantined}

    @property
    def finished(self) -> int:
        """Chosen cases that need no more work."""
        return len(self.made) + len(self.quarantined)

    def line(self) -> str:
        """The progress so far, in a few words."""
        failed = f", {self.failed.total()} failed" if self.failed else ""
        return f"{len(self.made)} made, {len(self.quarantined)} in quarantine{failed}"

    def manifest(self, seconds: float | None) -> dict[str, Any]:
        """The account of the whole data set."""
        rows = [*self.others, *self.made]
        notes = [*(row["generation"] for row in rows), *self.quarantined]
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
    """The sum; unknown, not 0, if an endpoint did not say."""
    return None if None in numbers else sum(filter(None, numbers))


def _counted(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, the most frequent first."""
    return dict(Counter(names).most_common())


class _Account:
    """What the writer has cost, and whether it still answers."""

    def __init__(self, budget: Budget, price: Price, ask: Ask | None, workers: int) -> None:
        self._budget = budget
        self._price = price
        self._spent = Spent()
        self.outage = Outage(workers, ask)

    def add_earlier(self, state: _State) -> None:
        """Count what earlier calls used for the cases that are there."""
        for note in [*(row["generation"] for row in (*state.others, *state.made)), *state.quarantined]:
            tokens = note.get("tokens") or {}
            self.add(Usage(tokens.get("input"), tokens.get("output")))

    def add(self, usage: Usage | None, *, answered: bool = True) -> None:
        """Count what a case used; without a request it used nothing."""
        used = usage or Usage(0, 0)
        tokens = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        self._spent.add("writer", tokens, self._price(used.input_tokens, used.output_tokens), answered=answered)

    def used_up(self) -> str | None:
        """Why no further case may begin."""
        return self._budget.used_up(self._spent)


@dataclass
class _Maker:
    """Makes cases from one source until there are no more or the pool is stopped."""

    work: Work
    state: _State
    progress: Progress
    output: JsonLines
    quarantine: JsonLines
    trace: JsonLines
    account: _Account

    def __post_init__(self) -> None:
        self.pool = Pool(self.work.workers, self.progress.say, what="cases")
        self._stop_if_used_up()
        self._reading = anyio.Lock()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to make."""
        return self.pool.reason is not None or set(self.work.selection.keys) <= self.state.keys

    async def work_off(self, do: Doing[SourceCase, Outcome]) -> None:
        """Make what is missing, `workers` at a time."""
        if not self.is_done:
            self._source = iter(self.work.selection.read(frozenset(self.state.keys)))
            await self.pool.work_off(self._take, partial(self._make, do))

    def take_over(self, job: CaseJob) -> None:
        """Save what workers of a cluster had finished when they, or the main process, were stopped."""
        missing = set(self.work.selection.keys).difference(self.state.finished_keys)
        for key, outcome in shards.left_over(job, missing):
            self.state.keys.add(key)
            self.account.add(outcome.usage)
            self._save(outcome)
        shards.remove(job.journal)

    async def _take(self) -> SourceCase | None:
        # In a thread: a first pass over large tables takes minutes, and Ctrl-C must work meanwhile.
        async with self._reading:
            return await anyio.to_thread.run_sync(next, self._source, None, abandon_on_cancel=True)

    async def _make(self, do: Doing[SourceCase, Outcome], source: SourceCase) -> None:
        if source.key in self.state.keys:
            return  # the source gave this case twice
        self.state.keys.add(source.key)
        try:
            outcome = await do(source)
        except EngineError as error:
            self.pool.stop(str(error))
            return
        self.account.add(outcome.usage, answered=outcome.error is None)
        if outcome.error is None:
            self._save(outcome)
            self.progress.advance(self.state.line())
            self.account.outage.answered()
        else:
            await self._fail(outcome.error, outcome.message)
        self._stop_if_used_up()

    async def _fail(self, error: str, message: str) -> None:
        self.state.failed[error] += 1
        if error in FATAL:
            self.pool.stop(f"the writer's endpoint: {_PLAIN[error]}")
        if error in OUTAGE:
            reason = await self.account.outage.failed("writer", message)
            if reason is not None:
                self.pool.stop(reason)

    def _stop_if_used_up(self) -> None:
        if (reason := self.account.used_up()) is not None:
            self.pool.stop(reason)

    def _save(self, outcome: Outcome) -> None:
        if outcome.row is not None:
            # The trace first: a case without one could not be checked.
            self.trace.append(outcome.trace)
            self.output.append(outcome.row)
            row = {name: value for name, value in outcome.row.items() if name != "OSCE_Examination"}
            self.state.made.append(row)
        elif outcome.quarantined is not None:
            self.quarantine.append(outcome.quarantined)
            self.state.quarantined.append({k: v for k, v in outcome.quarantined.items() if k != "draft"})


_PLAIN = {
    "auth": "it does not accept the key",
    "quota": "the account has no credit left",
    "unknown_model": "it has no model of that name",
    "privacy": "the source's data may not go there",
}
