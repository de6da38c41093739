"""Judging a run's diagnoses again, with another judge or from a new synthesis."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio.lowlevel

from agentclinic.cases.facts import chart_text
from agentclinic.cases.formats import answer_key_of
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.prompts import Prompt, load_prompt, user_prompts
from agentclinic.config import Settings
from agentclinic.doctors.uncertainty.store import FOLDER, Session, SessionError, SessionStore, read_session
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.doctors.uncertainty.tools import top_of
from agentclinic.errors import InputError
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.jsonl import JsonLines, repair, sealed
from agentclinic.models.base import FATAL, Model, ModelError, Purpose
from agentclinic.models.batch import Batches, FromBatch, Held, hold, keys_noted
from agentclinic.models.endpoint import Endpoint, HttpAnswer
from agentclinic.models.prices import BATCH_SHARE
from agentclinic.models.recording import enter_unit
from agentclinic.models.retry import Clock
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.outcome import Fault
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import diagnosis_of, judgement_lines, unit_of
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Budget, Spent, money, refuse_unpriced
from agentclinic.runs.build import Models
from agentclinic.runs.check import check_models, gone
from agentclinic.runs.estimate import (
    CHARACTERS,
    COMMON,
    QUESTION,
    Amount,
    Estimate,
    Row,
    judging,
    rows,
    tokens_in,
    total,
)
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.outage import OUTAGE, Outage
from agentclinic.runs.play import Metered
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import class_of_run, settings_of


@dataclass(frozen=True)
class Regraded:
    """The outcome of judging a run again."""

    path: Path
    judged: int
    failed: int
    changed: tuple[tuple[int, bool | None, bool], ...]
    """Scenario, recorded verdict and new verdict, for those that differ."""
    not_tried: int = 0
    reason: str | None = None
    """Why the rest was not tried, or the judge's first failure."""
    interrupted: bool = False
    new_diagnoses: int | None = None
    """How many diagnoses differ from the recorded ones; None if those were judged."""
    without_chart: int = 0
    """Diagnoses judged by names alone: the run does not contain their cases."""
    spent: Spent = field(default_factory=Spent)
    """What all verdicts in the file used, those of earlier calls included; also about what a pending batch will."""
    batches: tuple[str, ...] = ()
    """The batches at the provider in which verdicts were asked for."""
    pending: int = 0
    """Requests in batches that are not over yet, if they were not waited for."""


class _Recorded:
    """The diagnoses as they are in the records."""

    made_by: Mapping[str, Any] = {}

    def among(self, records: list[Record]) -> list[Record]:
        """Those with a diagnosis to judge."""
        return [record for record in records if diagnosis_of(record) is not None]

    async def of(self, record: Record, usage: dict[str, Usage]) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it."""
        del usage
        return diagnosis_of(record) or "", None


class _Resynthesized:
    """Diagnoses made again from the facts in the run's sessions."""

    def __init__(self, folder: Path, model: Model, prompt: Prompt) -> None:
        self._store = SessionStore(folder / FOLDER)
        self._sessions: dict[str, Session] = {}
        self._model = model
        self._prompt = prompt
        self.made_by = {"synthesis": {"model": model.name, "prompt": prompt.digest}}

    def among(self, records: list[Record]) -> list[Record]:
        """Those of encounters that came to a conclusion and kept their facts."""
        concluded = [record for record in records if record.session_id and diagnosis_of(record) is not None]
        if not concluded:
            raise InputError("this run has no sessions to make diagnoses from; they are kept by --doctor uncertainty")
        for record in concluded:  # check all before the first request costs anything
            path = self._store.path(record.session_id or "")
            try:
                self._sessions[record.session_id or ""] = read_session(path)
            except FileNotFoundError:
                raise InputError(
                    f"{path}: missing; scenario {record.scenario_id} cannot be synthesized again"
                ) from None
            except SessionError as error:
                raise InputError(f"{error}; scenario {record.scenario_id} cannot be synthesized again") from None
        return concluded

    async def of(self, record: Record, usage: dict[str, Usage]) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it; `usage` is added to."""
        session = self._sessions[record.session_id or ""]
        found = await synthesise(Metered(self._model, "synthesis", usage), self._prompt, session.facts, top_of(session))
        return found.diagnosis, found.error

    def amount(self, record: Record) -> Amount:
        """About what one synthesis uses."""
        facts = self._sessions[record.session_id or ""].facts
        texts = (self._prompt.text("system_base"), self._prompt.text("user_prompt_template"), *facts)
        return Amount(1, tokens_in(*texts), QUESTION)


async def regrade(
    folder: Path,
    settings: Settings,
    name: str | None = None,
    *,
    progress: Progress | None = None,
    resynthesize: bool = False,
    before: Spent | None = None,
    batch: bool = False,
    wait: bool = True,
    clock: Clock | None = None,
) -> Regraded:
    """Judge every diagnosis in a run with another judge; `scenarios.jsonl` is not touched.

    Writes `judgements/<name>.jsonl`, continues where an earlier call stopped, and retries what failed. With
    `resynthesize` the diagnoses are first synthesized again from the facts in the run's sessions. `before` is what
    the other judges of a jury have used of the budget. With `batch`, the judge is asked through its provider's batch
    endpoint; unless `wait`, answers that are not there yet are left for a later call.
    """
    progress = progress or Progress()
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings, batch=batch)
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        task = _open(folder, settings, name, models, every, resynthesize=resynthesize, batch=batch)
        path, records, judge, diagnoses = task.path, task.records, task.judge, task.diagnoses
        made_by, roles = task.made_by, task.roles
        charts = {case.id: chart_text(case.facts) for case in read_cases(folder)}
        refuse_unpriced(models, settings, roles)
        if settings.run.check and not task.note.exists() and len(_kept(path, records, made_by)) < len(records):
            await check_models(models, settings.llm, progress.say, roles)
        note_attestations(folder, models.gate)
        make_folder(path.parent)
        pool = Pool(settings.run.workers, progress.say, what="verdicts")
        budget = Budget.of(settings, before)
        batched: _Batched | None = None
        with ExitStack() as locks:
            if batch:  # it may wait for hours, in which other judges can judge
                locks.enter_context(Lock(path.parent, f".{path.stem}.batch.lock", what="judge's batch"))
                batched = _Batched(task, charts, progress, clock)
                await batched.ask(budget, wait=wait)
            locks.enter_context(Lock(path.parent, what="run's judgements"))
            repair(path)
            spent = _spent(path)
            verdicts = _kept(path, records, made_by)
            if path.exists():
                _write_lines(path, verdicts.values())
            failures: list[Fault] = []
            left = [record for record in records if record.unit not in verdicts]
            if batched:
                left = [record for record in left if record.unit in batched.answers]
            # The answers of a batch are there, and paid for: all of them are read.
            stopping = None if batched else _Stopping(pool, budget, models, settings, roles)

            async def judge_one(record: Record) -> None:
                bench = batched.bench(record, lambda: budget.used_up(spent)) if batched else judge
                entry = await _judge(record, bench, diagnoses, charts.get(record.case_hash or "", ""))
                sink.append(entry)
                _add(spent, entry)
                fault = None
                if entry["correct"] is None:
                    failures.append(fault := Fault("moderator", **entry["fault"]))
                else:
                    verdicts[record.unit] = entry
                progress.advance(f"{len(failures)} failed" if failures else "")
                if stopping:
                    await stopping.after(fault, spent)

            if stopping:
                stopping.if_used_up(spent)
            if left or not batched:
                with JsonLines(path, private=models.gate.closed, journal=True) as sink:
                    progress.start(len(records), len(verdicts), "diagnoses to judge")
                    try:
                        await pool.work_off(one_by_one(left), judge_one)
                    finally:
                        progress.stop()
            if batched and pool.reason is None:
                await batched.finish()
            if batched and batched.pending:
                spent.add("moderator", batched.expected.amount.tokens, batched.expected.cost_usd)
    new = sum(verdicts[r.unit]["diagnosis"] != diagnosis_of(r) for r in records if r.unit in verdicts)
    return Regraded(
        path,
        len(verdicts),
        len(failures),
        tuple(
            (r.scenario_id, r.correct, verdicts[r.unit]["correct"])
            for r in records
            if r.unit in verdicts and r.correct is not verdicts[r.unit]["correct"]
        ),
        len(records) - len(verdicts) - len(failures),
        pool.reason or (batched and batched.reason) or (failures[0].message if failures else None),
        pool.interrupted or (batched is not None and batched.interrupted),
        new if resynthesize else None,
        sum(r.case_hash not in charts for r in records),
        spent,
        batched.ids if batched else (),
        batched.pending if batched else 0,
    )


class _Stopping:
    """Ends the judging early: at a limit, at an error that every request would meet, or if the server is gone."""

    def __init__(self, pool: Pool, budget: Budget, models: Models, settings: Settings, roles: Collection[str]) -> None:
        async def gone_again(_: Collection[str]) -> str | None:
            return await gone(models.in_use(roles), settings.llm, models.gate)

        self._pool = pool
        self._budget = budget
        self._outage = Outage(settings.run.workers, gone_again if settings.run.check else None)

    def if_used_up(self, spent: Spent) -> None:
        """Stop if a limit is reached."""
        if (reason := self._budget.used_up(spent)) is not None:
            self._pool.stop(reason)

    async def after(self, fault: Fault | None, spent: Spent) -> None:
        """Stop, if need be, after a verdict or the judge's failure."""
        if fault and fault.error in FATAL:
            self._pool.stop(fault.message)
        if fault and fault.error in OUTAGE:
            reason = await self._outage.failed(fault.role, fault.message)
            if reason is not None:
                self._pool.stop(reason)
        else:
            self._outage.answered()
        self.if_used_up(spent)


@dataclass(frozen=True)
class _Task:
    """What is to be judged, by whom, and where the verdicts go."""

    path: Path
    records: list[Record]
    judge: _Bench
    diagnoses: _Recorded | _Resynthesized
    roles: tuple[str, ...]
    """The roles whose models are asked."""

    @property
    def note(self) -> Path:
        """Where the batches of the judge's requests are noted."""
        return self.path.with_suffix(".batch.json")

    @property
    def made_by(self) -> dict[str, Any]:
        """What a verdict depends on."""
        return {"moderator_llm": self.judge.model.name, **self.diagnoses.made_by}


def _open(
    folder: Path,
    settings: Settings,
    name: str | None,
    models: Models,
    every: list[Record],
    *,
    resynthesize: bool,
    batch: bool,
) -> _Task:
    """Read what is to be judged and choose the models; writes nothing."""
    prompts = user_prompts(settings.run.prompts_dir)
    diagnoses: _Recorded | _Resynthesized = _Recorded()
    usual = settings.run.moderator_llm
    if resynthesize:
        prompt = load_prompt("synthesis", prompts)
        diagnoses = _Resynthesized(folder, models.for_role("synthesis"), prompt)
        usual = f"resynthesized_{diagnoses.made_by['synthesis']['model']}_{prompt.digest[:8]}"
    path = _judgements(folder, name, usual)
    records = diagnoses.among([record for record in every if record.ground_truth is not None])
    moderator = models.for_role("moderator")
    judge = _Bench(models, moderator, load_prompt("moderator", prompts), settings.run.judge_relation)
    task = _Task(path, records, judge, diagnoses, ("moderator", "synthesis") if resynthesize else ("moderator",))
    if batch:
        _refuse_batch(task)
    elif task.note.exists():
        raise InputError(
            f"{task.note}: a batch was submitted to this judge; fetch its verdicts with --batch, or delete this file "
            "to forget it"
        )
    return task


def _refuse_batch(task: _Task) -> None:
    """Refuse judges that have no batch endpoint, and hosts that may not keep the data."""
    models, name = task.judge.models, task.judge.model.name
    if not isinstance(task.judge.model, Endpoint):
        raise InputError(f"--batch needs a judge at an endpoint, and {name} is none; name one, or leave out --batch")
    (used,) = models.in_use(task.roles)
    models.gate.refuse_storing(used.base_url, used.setting)


class _Batched:
    """The judge asked through its provider's batch endpoint."""

    def __init__(self, task: _Task, charts: Mapping[str, str], progress: Progress, clock: Clock | None) -> None:
        assert isinstance(task.judge.model, Endpoint)
        self.answers: dict[str, HttpAnswer] = {}
        """By unit, once they are there."""
        self.reason: str | None = None
        """Why there are no answers, or fewer than requests."""
        self.pending = 0
        """Requests in batches that were not waited for."""
        self.interrupted = False
        self.ids: tuple[str, ...] = ()
        verdicts = _kept(task.path, task.records, task.made_by)
        self._left = [record for record in task.records if record.unit not in verdicts]
        self.expected = total(_expected(task, self._left, BATCH_SHARE))
        """About what the requests will use."""
        self._task = task
        self._charts = charts
        self._progress = progress
        self._endpoint = task.judge.model
        self._batches = Batches(task.note, task.judge.model, Purpose.MODERATOR, clock)
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
        self._through = self._task.judge.models.through("moderator", api := await batches.api())
        requests = {record.unit: await self._request(record) for record in self._left}
        if batches.note is None:
            _afford(budget, _spent(self._task.path), self.expected)
        batches.plan(api, requests)
        await batches.submit(requests, progress.say)
        del requests  # they may be 200 MB, and the answers come
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
        else:
            self.pending = len(batches.keys)

    async def _request(self, record: Record) -> bytes:
        """What the judge would be asked about a record: the request that a plain call sends first."""
        await anyio.lowlevel.checkpoint()
        bench = replace(self._task.judge, model=self._through(hold))
        try:
            await _judge(record, bench, self._task.diagnoses, self._charts.get(record.case_hash or "", ""))
        except Held as held:
            return held.content
        raise AssertionError("a judge at an endpoint sends a request for every diagnosis")

    def bench(self, record: Record, stop: Callable[[], str | None]) -> _Bench:
        """The judge of a record that was answered; follow-ups are sent directly unless `stop` says why not."""
        answered = FromBatch(self.answers[record.unit], self._endpoint, stop)
        return replace(self._task.judge, model=self._through(answered.send), batched=answered)

    async def finish(self) -> None:
        """Once the verdicts are on the disk: delete the files at the provider, and the note."""
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


async def estimate_regrade(
    folder: Path, settings: Settings, name: str | None = None, *, resynthesize: bool = False, batch: bool = False
) -> Estimate:
    """What judging the run again would use; nothing is sent or written."""
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings, batch=batch)
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        task = _open(folder, settings, name, models, every, resynthesize=resynthesize, batch=batch)
        done = {*_kept(task.path, task.records, task.made_by), *keys_noted(task.note)}
        left = [record for record in task.records if record.unit not in done]
        found = _expected(task, left, BATCH_SHARE if batch else 1.0)
    basis = [f"input: the prompts and the recorded diagnoses, {CHARACTERS} characters per token", *COMMON]
    if batch:
        basis.append("a batch costs half the price; follow-ups to replies that cannot be read are not counted")
    return Estimate(len(left), "diagnoses to judge", found, found, tuple(basis))


def _expected(task: _Task, records: Iterable[Record], share: float) -> tuple[Row, ...]:
    """About what judging these records uses, at a share of the price."""
    amounts = {role: Amount() for role in task.roles}
    for record in records:
        diagnosis, truth = diagnosis_of(record) or "", record.ground_truth or ""
        amounts["moderator"] += judging(task.judge.prompt, diagnosis, truth, relation=task.judge.relation)
        if isinstance(task.diagnoses, _Resynthesized):
            amounts["synthesis"] += task.diagnoses.amount(record)
    found = rows(task.judge.models, amounts, task.roles)
    return tuple(replace(row, cost_usd=None if row.cost_usd is None else row.cost_usd * share) for row in found)


def _with_the_runs_synthesis(folder: Path, settings: Settings, *, batch: bool) -> Settings:
    """Use the run's own synthesis model unless another is named."""
    if batch:
        raise InputError("--batch judges the recorded diagnoses; leave it out with --resynthesize")
    if settings.run.synthesis_llm:
        return settings
    used, _ = settings_of(folder)
    before = used.run
    named = (before.synthesis_llm or before.doctor_llm, before.synthesis_endpoint or before.doctor_endpoint)
    changes = dict(zip(("synthesis_llm", "synthesis_endpoint"), named, strict=True))
    return settings.model_copy(
        update={
            "run": settings.run.model_copy(update=changes),
            "endpoints": {**used.endpoints, **settings.endpoints},
        }
    )


def _judgements(folder: Path, name: str | None, usual: str) -> Path:
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "_", usual)
    if name == "recorded":
        raise InputError("name: 'recorded' means the verdicts in scenarios.jsonl; choose another name")
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"name: {name!r} cannot name a file in {folder / 'judgements'}; leave out slashes and dots")
    if not (folder / folders.RECORDS).is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.RECORDS}")
    return folder / "judgements" / f"{name}.jsonl"


def _unrecorded(settings: Settings) -> Settings:
    """A recording belongs to a run; judging again is not recorded."""
    return settings.model_copy(update={"run": settings.run.model_copy(update={"record": None})})


def _kept(path: Path, records: list[Record], made_by: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The verdicts of an earlier call that still hold."""
    diagnoses = {record.unit: diagnosis_of(record) for record in records}
    resynthesized = "synthesis" in made_by
    kept: dict[str, dict[str, Any]] = {}
    for entry in judgement_lines(path):
        for key in ("moderator_llm", "synthesis"):
            if entry.get(key) != made_by.get(key):
                raise InputError(
                    f"{path} holds the verdicts of {entry.get(key)!r}, not of {made_by.get(key)!r}; "
                    "choose another file with --name"
                )
        unit = unit_of(entry)
        same = resynthesized or entry.get("diagnosis") == diagnoses.get(unit)
        if entry.get("correct") is not None and unit in diagnoses and same:
            kept[unit] = entry
    return kept


def _write_lines(path: Path, entries: Iterable[dict[str, Any]]) -> None:
    write_whole(path, "".join(f"{sealed(entry).decode()}\n" for entry in entries))


def _spent(path: Path) -> Spent:
    """What the lines of a judgements file cost, those of failed tries included."""
    spent = Spent()
    for entry in judgement_lines(path):
        _add(spent, entry)
    return spent


def _add(spent: Spent, entry: Mapping[str, Any]) -> None:
    costs = entry.get("cost_usd") or {}
    for role, used in (entry.get("usage") or {}).items():
        spent.add(role, used, costs.get(role), answered=entry.get("correct") is not None)


@dataclass(frozen=True)
class _Bench:
    """The judge, and what each verdict costs."""

    models: Models
    model: Model
    prompt: Prompt
    relation: bool
    batched: FromBatch | None = None
    """Set where the first request was answered in a batch, for half the price."""

    def judge(self, usage: dict[str, Usage]) -> Judge:
        """The judge of one diagnosis; what it uses is added to `usage`."""
        return Judge(Metered(self.model, "moderator", usage), self.prompt, relation=self.relation)

    def account(self, usage: Mapping[str, Usage]) -> dict[str, Any]:
        """Tokens and cost by role, as in a record."""
        used = {role: asdict(counted) for role, counted in usage.items()}
        costs = {role: self.models.cost_usd(role, tokens) for role, tokens in used.items()}
        whole = costs.get("moderator")
        if self.batched and whole is not None:
            full = self.models.cost_usd("moderator", asdict(self.batched.usage)) or 0.0
            costs["moderator"] = whole - (1 - BATCH_SHARE) * full
        return {"usage": used, "cost_usd": costs}


async def _judge(record: Record, judge: _Bench, diagnoses: _Recorded | _Resynthesized, chart: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "scenario_id": record.scenario_id,
        "case_hash": record.case_hash,
        "repeat": record.repeat,
        "moderator_llm": judge.model.name,
        **diagnoses.made_by,
    }
    enter_unit(f"{record.case_hash}:{record.repeat}")
    key = answer_key_of((record.annotations or {}).get("Answer_Key"))
    usage: dict[str, Usage] = {}
    try:
        diagnosis, problem = await diagnoses.of(record, usage)
        entry |= {"diagnosis": diagnosis} | ({"synthesis_failed": problem} if problem else {})
        verdict = await judge.judge(usage).judge(diagnosis, record.ground_truth or "", key, chart)
    except ModelError as error:
        fault = {"error": error.kind, "message": str(error)}
        return {**entry, "correct": None, "fault": fault, **judge.account(usage)}
    return {
        **entry,
        "correct": verdict.correct,
        "correct_lenient": verdict.correct_lenient,
        "relation": verdict.relation,
        "reason": verdict.reason,
        **judge.account(usage),
    }
