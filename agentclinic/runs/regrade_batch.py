"""Judging a run again through the batch endpoint of the judge's provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio.lowlevel

from agentclinic.errors import InputError
from agentclinic.models.base import BATCH_SHARE, ModelError, Purpose
from agentclinic.models.batch import Batches, Captured, FromBatch, capture
from agentclinic.models.endpoint import Endpoint, HttpAnswer
from agentclinic.models.retry import Clock
from agentclinic.results.record import Record
from agentclinic.runs.budget import Budget, Spent, money
from agentclinic.runs.estimate import Row, total
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.verdicts import Task, expected_rows, spent_on


def refuse_batch(task: Task) -> None:
    """Refuse judges that have no batch endpoint, and hosts that may not keep the data."""
    models, name = task.models, task.model.name
    if not isinstance(task.model, Endpoint):
        raise InputError(f"--batch needs a judge at an endpoint, and {name} is none; name one, or leave out --batch")
    (used,) = models.in_use(task.roles)
    models.gate.refuse_storing(used.base_url, used.setting)


class Batched:
    """The judge asked through its provider's batch endpoint."""

    def __init__(self, task: Task, progress: Progress, clock: Clock | None) -> None:
        assert isinstance(task.model, Endpoint)
        self.answers: dict[str, HttpAnswer | None] = {}
        """By unit, once they have been fetched; None where the batch contradicts itself."""
        self.reason: str | None = None
        """Why there are no answers, or fewer than requests."""
        self.pending = 0
        """Requests in batches that were not waited for."""
        self.interrupted = False
        self.ids: tuple[str, ...] = ()
        kept = task.kept()
        left = [record for record in task.records if record.unit not in kept]
        self.decided = {record.unit for record in left if task.decided(record)}
        """Units that code decides on, without a request."""
        self._left = [record for record in left if record.unit not in self.decided]
        self.expected = total(expected_rows(task, self._left, BATCH_SHARE))
        """Estimate of what the requests will use."""
        self._task = task
        self._progress = progress
        self._endpoint = task.model
        self._batches = Batches(task.note, task.model, Purpose.MODERATOR, clock)
        self._over = False

    async def ask(self, budget: Budget, *, wait: bool) -> None:
        """Submit the requests, unless an earlier call has, and fetch the answers."""
        # Ctrl-C stops at once: what was submitted is noted.
        watch = Pool(1, self._progress.say, at_once=True)
        try:
            await watch.work_off(one_by_one([budget]), lambda budget: self._ask(budget, wait=wait))
        except ModelError as error:
            self.reason = str(error)
        finally:
            self.ids = self._batches.ids
        if watch.interrupted:
            self.interrupted = True
            self.reason = "interrupted" + ("; what was submitted goes on without this process" if self.ids else "")

    async def _ask(self, budget: Budget, *, wait: bool) -> None:
        batches, progress = self._batches, self._progress
        if batches.note is not None and batches.note.to_delete is not None:
            await batches.finish(progress.say)
        if batches.note is None and not self._left:
            return
        self._through = self._task.models.through("moderator", api := await batches.api())
        requests = {record.unit: await self._request(record) for record in self._left}
        if batches.note is None:
            _afford(budget, spent_on(self._task.path), self.expected)
        batches.plan(api, requests)
        await batches.submit(requests, progress.say)
        del requests  # they may take 200 MB, and the answers are still to come
        shown = 0

        def show(done: int) -> None:
            nonlocal shown
            for _ in range(shown, done):
                progress.advance("answered")
            shown = max(shown, done)

        progress.start(len(batches.keys), 0, "requests in the batch")
        try:
            self._over = await batches.wait(show, progress.say, once=not wait)
        finally:
            progress.stop()
        if self._over:
            self.answers = await batches.answers()
            self.reason = batches.reason
            odd = "; ".join(r.unit_name for r in self._left if self.answers.get(r.unit, "") is None)
            if odd:
                progress.say(f"Warning: the batch contradicts itself; no answer is used for {odd}")
        else:
            self.pending = len(batches.keys)

    async def _request(self, record: Record) -> bytes:
        """What the judge would be asked about a record: the request that a plain call sends first."""
        await anyio.lowlevel.checkpoint()
        try:
            await replace(self._task, model=self._through(capture)).judgement(record)
        except Captured as captured:
            return captured.content
        raise AssertionError("a judge at an endpoint sends a request for what code does not decide")

    def answered(self, record: Record, stop: Callable[[], str | None]) -> Task:
        """The task for a record that was answered; follow-ups are sent directly unless `stop` says why not."""
        answer = self.answers[record.unit]
        answered = FromBatch(answer, self._endpoint, stop if answer else lambda: "its answers contradict each other")
        return replace(self._task, model=self._through(answered.send), batched=answered)

    async def finish(self) -> None:
        """Delete the files at the provider, and the note; called once the verdicts are on disk."""
        if self._over:
            await self._batches.finish(self._progress.say)


def _afford(budget: Budget, spent: Spent, expected: Row) -> None:
    """Refuse a batch that would probably exceed a limit: once submitted, all of it is paid for."""
    used, tokens, cost = budget.before + spent, sum(expected.amount.tokens.values()), expected.cost_usd
    advice = "leave out --batch to judge until it is reached"
    limit, most = budget.token_limit, budget.max_cost
    if limit is not None and used.tokens + tokens > limit:
        raise InputError(
            f"the batch needs about {tokens:,} tokens, and {max(0, limit - used.tokens):,} of the limit of {limit:,} "
            f"are left; raise it with --token-limit N, or {advice}"
        )
    if most is not None and cost is not None and used.dollars + cost > most:
        raise InputError(
            f"the batch costs about {money(cost)}, and {money(max(0.0, most - used.dollars))} of the budget of "
            f"{money(most)} is left; raise it with --max-cost USD, or {advice}"
        )
