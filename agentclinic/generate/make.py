"""Making cases: write, check, retry with the reasons, append; many at once, each written down before the next.

What is done is known from the files alone, so that a call that was stopped in any way goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping
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
from agentclinic.generate.files import Files, counted, drop_lines
from agentclinic.generate.source import Selection, SourceCase
from agentclinic.generate.story import request
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import FATAL, OWN_FAULTS, Model, ModelError
from agentclinic.models.retry import Clock
from agentclinic.results.run_folder import write_json
from agentclinic.results.turn import Usage
from agentclinic.runs.pool import Pool
from agentclinic.runs.progress import Progress
from agentclinic.version import __version__

RETRIES = 2
"""A writer hears twice what was wrong; what it cannot mend then, a person has to look at."""
LAYOUT = 1
"""Version of how a case is put together: another one makes other cases of the same source."""


@dataclass(frozen=True)
class Work:
    """What is to be made, and how."""

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
        """Everything that decides how a case of a given source comes out."""
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
        """Of what decides a case; beside its key it says whether a case is done."""
        text = json.dumps(self.made_with, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Made:
    """What came of the work."""

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
    work: Work, model: Model, progress: Progress, clock: Clock | None = None, *, retry_quarantined: bool = False
) -> Made:
    """Make every chosen case that is not made yet."""
    began = time.perf_counter()
    files = Files(work.output)
    files.make_folder()
    with Lock(work.output.parent, f".{work.output.name}.lock", what="data set"):
        for path in (files.output, files.quarantine, files.trace):
            if repair(path):
                progress.say(f"{path}: removed an incomplete last line; its case is made again")
        made = files.made(work.digest, work.made_with)
        if retry_quarantined:
            drop_lines(files.quarantine, lambda row: row.get("digest") == work.digest)
        book = _Book(work, made, files.quarantined(work.digest))
        write_json(files.manifest, book.manifest(None), private=True)
        with (
            JsonLines(files.output, private=True) as output,
            JsonLines(files.quarantine, private=True) as quarantine,
            JsonLines(files.trace, private=True) as trace,
        ):
            workshop = _Workshop(work, model, book, _Papers(output, quarantine, trace), progress, clock or Clock())
            progress.start(len(work.selection.keys), book.finished, "cases to make")
            try:
                await workshop.work_off()
            finally:
                progress.stop()
                seconds = round(time.perf_counter() - began, 3)
                write_json(files.manifest, book.manifest(seconds), private=True)
        if not files.quarantine.stat().st_size:
            files.quarantine.unlink()
    return Made(book.manifest(seconds), workshop.pool.reason, workshop.pool.interrupted)


@dataclass(frozen=True)
class _Papers:
    output: JsonLines
    quarantine: JsonLines
    trace: JsonLines


class _Book:
    """What is done, in this call and before."""

    def __init__(self, work: Work, made: list[dict[str, Any]], quarantined: list[dict[str, Any]]) -> None:
        self._work = work
        chosen = set(work.selection.keys)
        self._others = [row for row in made if row["generation"]["key"] not in chosen]
        """Made by an earlier call with another choice; they stay."""
        self.made = [row for row in made if row["generation"]["key"] in chosen]
        self.quarantined = [row for row in quarantined if row["key"] in chosen]
        self.failed: Counter[str] = Counter()
        self.keys = {row["generation"]["key"] for row in made} | {row["key"] for row in quarantined}

    @property
    def finished(self) -> int:
        """Cases of this choice that need no further work."""
        return len(self.made) + len(self.quarantined)

    def line(self) -> str:
        """How it goes, in a few words."""
        parts = [f"{len(self.made)} made", f"{len(self.quarantined)} in quarantine"]
        return ", ".join([*parts, *([f"{self.failed.total()} failed"] if self.failed else [])])

    def manifest(self, seconds: float | None) -> dict[str, Any]:
        """The account of the whole data set, recomputed from its files."""
        rows = [*self._others, *self.made]
        rejected = Counter(kind for row in rows for kind in row["generation"].get("rejected", ()))
        rejected += Counter(kind for row in self.quarantined for kind in row.get("rejected", ()))
        reasons = Counter(kind for row in self.quarantined for kind in {reason["kind"] for reason in row["reasons"]})
        return {
            "source": self._work.source,
            "data_class": str(self._work.selection.data_class),
            "counts": {
                "chosen": len(self._work.selection.keys),
                "made": len(self.made),
                "quarantined": len(self.quarantined),
                "failed": self.failed.total(),
                "made_before_by_another_choice": len(self._others),
                "labs_only": sum(bool(row["labs_only"]) for row in rows),
            },
            "by_history_source": counted(rows, lambda row: str(row["history_source"])),
            "by_chapter": counted(rows, lambda row: str(row["truth"]["chapter"] or "unknown")),
            "quarantine_reasons": dict(reasons.most_common()),
            "rejected_drafts": dict(rejected.most_common()),
            "failures": dict(self.failed.most_common()),
            "withheld": {part: sum(int(row["withheld"][part]) for row in rows) for part in ("story", "results")},
            "tokens": _tokens(rows + self.quarantined),
            "chosen": dict(self._work.selection.report),
            "made_with": self._work.made_with,
            "digest": self._work.digest,
            "timing": {"seconds": seconds},
        }


def _tokens(rows: list[dict[str, Any]]) -> dict[str, int | None]:
    """Tokens used; unknown, not 0, where an endpoint did not say."""
    used = [row.get("generation", row).get("tokens") or {} for row in rows]
    return {
        kind: None if any(one.get(kind) is None for one in used) else sum(one[kind] for one in used)
        for kind in ("input", "output")
    }


@dataclass
class _Attempts:
    """What was tried on one case."""

    rejected: list[tuple[str, list[Problem]]] = field(default_factory=list)
    usage: Usage | None = None

    def add(self, usage: Usage | None) -> None:
        """Count what a request cost."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @property
    def kinds(self) -> list[str]:
        """Why drafts were rejected, each kind once a draft."""
        return [kind for _, problems in self.rejected for kind in dict.fromkeys(p.kind for p in problems)]

    @property
    def tokens(self) -> dict[str, int | None]:
        """Tokens of all requests; nothing was asked of a model: none, not unknown."""
        if self.usage is None:
            return {"input": 0, "output": 0}
        return {"input": self.usage.input_tokens, "output": self.usage.output_tokens}


class _Workshop:
    """Makes cases from one source until it is empty or the pool is stopped."""

    def __init__(
        self, work: Work, model: Model, book: _Book, papers: _Papers, progress: Progress, clock: Clock
    ) -> None:
        self.pool = Pool(work.workers, progress.say, what="cases")
        self._work = work
        self._book = book
        self._papers = papers
        self._progress = progress
        self._writer = _Writer(model, work, clock)
        self._reading = anyio.Lock()

    async def work_off(self) -> None:
        """Make what is missing, `workers` at a time."""
        if all(key in self._book.keys for key in self._work.selection.keys):
            return
        self._source = iter(self._work.selection.read(frozenset(self._book.keys)))
        await self.pool.work_off(self._take, self._make)

    async def _take(self) -> SourceCase | None:
        # In a thread: a first pass over large tables takes minutes, and Ctrl-C has to be heard meanwhile.
        async with self._reading:
            return await anyio.to_thread.run_sync(next, self._source, None, abandon_on_cancel=True)

    async def _make(self, source: SourceCase) -> None:
        if source.key in self._book.keys:
            return  # a source that gives a case twice gets it once
        self._book.keys.add(source.key)
        prepared = prepare(source)
        tried = _Attempts()
        row: dict[str, Any] | None = None
        problems: list[Problem] = []
        for _ in range(1 + RETRIES):
            try:
                story, answer = await self._writer.write(prepared, tried)
            except ModelError as error:
                if error.kind not in OWN_FAULTS:
                    self._failed(error)
                    return
                # Its text may quote the prompt: the kind says enough.
                problems = [Problem(f"writer_{error.kind}", "", f"the writer's answer was {error.kind}")]
                tried.rejected.append(("", problems))
                continue
            row = case_row(prepared, story, self._generation(tried))
            problems = check(row, prepared)
            if not problems:
                self._append(row, prepared)
                return
            tried.rejected.append((answer, problems))
            if story is None or not any(problem.mendable for problem in problems):
                break  # nothing that a writer could mend
        self._set_aside(prepared, row, problems, tried)

    def _generation(self, tried: _Attempts) -> dict[str, Any]:
        return {
            "digest": self._work.digest,
            "model": self._work.model,
            "prompt": self._work.prompt.digest,
            "attempts": len(tried.rejected) + 1,
            "rejected": tried.kinds,
            "tokens": tried.tokens,
            "version": __version__,
        }

    def _append(self, row: dict[str, Any], prepared: Prepared) -> None:
        """The trace goes first: a case without one would be a case nobody can check."""
        self._papers.trace.append({"key": prepared.source.key, "rows": prepared.chart.trace})
        self._papers.output.append(row)
        self._book.made.append({name: value for name, value in row.items() if name != "OSCE_Examination"})
        self._progress.advance(self._book.line())

    def _set_aside(
        self, prepared: Prepared, row: dict[str, Any] | None, problems: list[Problem], tried: _Attempts
    ) -> None:
        entry = {
            "key": prepared.source.key,
            "digest": self._work.digest,
            "data_class": str(prepared.source.data_class),
            "history_source": prepared.told.payload.history_source,
            "attempts": len(tried.rejected),
            "rejected": tried.kinds,
            "tokens": tried.tokens,
            "reasons": [problem.as_dict() for problem in problems],
        }
        self._papers.quarantine.append({**entry, "draft": row})
        self._book.quarantined.append(entry)
        self._progress.advance(self._book.line())

    def _failed(self, error: ModelError) -> None:
        self._book.failed[error.kind] += 1
        if error.kind in FATAL:
            self.pool.stop(f"the writer's endpoint: {_PLAIN[error.kind]}")


_PLAIN = {
    "auth": "it does not accept the key",
    "quota": "the account has no credit left",
    "unknown_model": "it has no model of that name",
    "privacy": "the source's data may not go there",
}


class _Writer:
    """One worker's way to the model: it waits between its requests as long as it was told to."""

    def __init__(self, model: Model, work: Work, clock: Clock) -> None:
        self._model = model
        self._work = work
        self._clock = clock
        self._asked = False

    async def write(self, prepared: Prepared, tried: _Attempts) -> tuple[WrittenStory | None, str]:
        """The story and the answer it stands in; None where there is nothing to tell a story from."""
        if prepared.labs_only:
            return None, ""
        if self._asked and self._work.sleep_seconds:
            await self._clock.sleep(self._work.sleep_seconds)
        self._asked = True
        heard = [(answer, [p.told for p in problems if p.mendable]) for answer, problems in tried.rejected if answer]
        try:
            reply = await self._model.reply(request(prepared.told.payload, self._work.prompt, heard))
        except ModelError as error:
            tried.add(error.usage)
            raise
        tried.add(reply.usage)
        assert isinstance(reply.parsed, WrittenStory)
        return reply.parsed, reply.text
