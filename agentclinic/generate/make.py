"""Make cases: write, check, retry with the reasons, save; many at once, each on the disk before the next.

The files alone say what is done, so a call that was stopped in any way can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentclinic.clinic.payloads import WrittenStory
from agentclinic.clinic.prompts import Prompt
from agentclinic.files import Lock
from agentclinic.generate.case import Prepared, case_row, prepare
from agentclinic.generate.checks import Problem, check
from agentclinic.generate.files import Files
from agentclinic.generate.source import Selection, SourceCase
from agentclinic.generate.story import request
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import FATAL, OWN_FAULTS, Model, ModelError
from agentclinic.models.retry import Clock
from agentclinic.results.run_folder import write_json
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.outage import OUTAGE, Ask, Outage
from agentclinic.runs.pool import Pool
from agentclinic.runs.progress import Progress
from agentclinic.version import __version__

RETRIES = 2
"""A writer is told twice what was wrong; what it cannot fix then needs a person."""
LAYOUT = 1
"""Version of how a case is assembled: another version makes other cases from the same source."""


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
) -> Made:
    """Make every chosen case that is not made yet.

    `price` works out what tokens cost, for a `budget` in dollars; `ask` finds out whether a writer that fails again and
    again is gone.
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
            maker = _Maker(work, model, clock or Clock(), state, progress, output, quarantine, trace, account)
            progress.start(len(work.selection.keys), state.finished, "cases to make")
            try:
                await maker.work_off()
            finally:
                progress.stop()
                manifest = state.manifest(round(time.perf_counter() - began, 3))
                write_json(files.manifest, manifest, private=True)
        if not files.quarantine.stat().st_size:
            files.quarantine.unlink()
    return Made(manifest, maker.pool.reason, maker.pool.interrupted)


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


@dataclass
class _Attempts:
    """What was tried for one case."""

    rejected: list[tuple[str, list[Problem]]] = field(default_factory=list)
    """Each rejected answer with its problems."""
    usage: Usage | None = None

    def add(self, usage: Usage | None) -> None:
        """Count what a request used."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @property
    def account(self) -> dict[str, Any]:
        """Why drafts were rejected (each kind once per draft), and the tokens of all requests."""
        used = self.usage or Usage(0, 0)  # no request was made: none, not unknown
        return {
            "rejected": [kind for _, problems in self.rejected for kind in dict.fromkeys(p.kind for p in problems)],
            "tokens": {"input": used.input_tokens, "output": used.output_tokens},
        }


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


_has_asked: ContextVar[bool] = ContextVar("has_asked", default=False)
"""Whether this worker has sent a request: each worker is a task with its own context."""


@dataclass
class _Maker:
    """Makes cases from one source until there are no more or the pool is stopped."""

    work: Work
    model: Model
    clock: Clock
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

    async def work_off(self) -> None:
        """Make what is missing, `workers` at a time."""
        if self.pool.reason is None and not set(self.work.selection.keys) <= self.state.keys:
            self._source = iter(self.work.selection.read(frozenset(self.state.keys)))
            await self.pool.work_off(self._take, self._make)

    async def _take(self) -> SourceCase | None:
        # In a thread: a first pass over large tables takes minutes, and Ctrl-C must work meanwhile.
        async with self._reading:
            return await anyio.to_thread.run_sync(next, self._source, None, abandon_on_cancel=True)

    async def _make(self, source: SourceCase) -> None:
        if source.key in self.state.keys:
            return  # the source gave this case twice
        self.state.keys.add(source.key)
        tried = _Attempts()
        failed = await self._made(source, tried)
        self.account.add(tried.usage, answered=failed is None)
        if failed is None:
            self.account.outage.answered()
        elif failed.kind in OUTAGE:
            reason = await self.account.outage.failed("writer", str(failed))
            if reason is not None:
                self.pool.stop(reason)
        self._stop_if_used_up()

    def _stop_if_used_up(self) -> None:
        if (reason := self.account.used_up()) is not None:
            self.pool.stop(reason)

    async def _made(self, source: SourceCase, tried: _Attempts) -> ModelError | None:
        """Make one case, or set it aside; returns the error if the writer could not be asked."""
        prepared = prepare(source)
        row: dict[str, Any] | None = None
        problems: list[Problem] = []
        for _ in range(1 + RETRIES):
            try:
                story, answer = await self._write(prepared, tried)
            except ModelError as error:
                if error.kind not in OWN_FAULTS:
                    self.state.failed[error.kind] += 1
                    if error.kind in FATAL:
                        self.pool.stop(f"the writer's endpoint: {_PLAIN[error.kind]}")
                    return error
                # Only the kind: the error's text may quote the prompt.
                problems = [Problem(f"writer_{error.kind}", "", f"the writer's answer was {error.kind}")]
                tried.rejected.append(("", problems))
                continue
            row = case_row(prepared, story, self._generation(tried))
            problems = check(row, prepared)
            if not problems:
                self._save(row, prepared)
                return None
            tried.rejected.append((answer, problems))
            if story is None or not any(problem.fixable for problem in problems):
                break  # nothing that a writer could fix
        self._set_aside(prepared, row, problems, tried)
        return None

    async def _write(self, prepared: Prepared, tried: _Attempts) -> tuple[WrittenStory | None, str]:
        """The story and the answer it is from; None if there is nothing to tell a story from."""
        if prepared.labs_only:
            return None, ""
        if _has_asked.get() and self.work.sleep_seconds:
            await self.clock.sleep(self.work.sleep_seconds)
        _has_asked.set(True)
        reasons = [(answer, [p.for_writer for p in found if p.fixable]) for answer, found in tried.rejected if answer]
        try:
            reply = await self.model.reply(request(prepared.brief.payload, self.work.prompt, reasons))
        except ModelError as error:
            tried.add(error.usage)
            raise
        tried.add(reply.usage)
        assert isinstance(reply.parsed, WrittenStory)
        return reply.parsed, reply.text

    def _generation(self, tried: _Attempts) -> dict[str, Any]:
        return {
            "digest": self.work.digest,
            "model": self.work.model,
            "prompt": self.work.prompt.digest,
            "attempts": len(tried.rejected) + 1,
            **tried.account,
            "version": __version__,
        }

    def _save(self, row: dict[str, Any], prepared: Prepared) -> None:
        # The trace first: a case without one could not be checked.
        self.trace.append({"key": prepared.source.key, "rows": prepared.chart.trace})
        self.output.append(row)
        self.state.made.append({name: value for name, value in row.items() if name != "OSCE_Examination"})
        self.progress.advance(self.state.line())

    def _set_aside(
        self, prepared: Prepared, row: dict[str, Any] | None, problems: list[Problem], tried: _Attempts
    ) -> None:
        entry = {
            "key": prepared.source.key,
            "digest": self.work.digest,
            "data_class": str(prepared.source.data_class),
            "history_source": prepared.brief.payload.history_source,
            "attempts": len(tried.rejected),
            **tried.account,
            "reasons": [problem.as_dict() for problem in problems],
        }
        self.quarantine.append({**entry, "draft": row})
        self.state.quarantined.append(entry)
        self.progress.advance(self.state.line())


_PLAIN = {
    "auth": "it does not accept the key",
    "quota": "the account has no credit left",
    "unknown_model": "it has no model of that name",
    "privacy": "the source's data may not go there",
}
