"""`simulator: auto`: before a run, try each role's model on the shipped sample and decide how it plays the role.

`grounded` if the model chooses facts better than our matcher by more than chance, else `voiced`. A decision is kept in
the user's cache folder, so that a sweep, a study or a batch of runs asks once; processes that start together wait for
the first of them. Neither keys nor cases of the run are involved: the sample is ours.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio

from agentclinic.clinic.answers import MOST_FACTS
from agentclinic.clinic.grounded import GroundedAnswer
from agentclinic.clinic.laboratory import MOST_ITEMS, ChosenResults
from agentclinic.clinic.prompts import Prompt
from agentclinic.config import ROLE_NAMES, Settings, SimulatorChoice, variable, without_credentials
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import lock_file, make_folder, opener, read_limited, write_whole
from agentclinic.models.base import ModelError, Purpose, Reply, Request
from agentclinic.models.endpoint import Clients, Endpoint, HttpAnswer, Send
from agentclinic.results.turn import NOTHING_ASKED, Usage
from agentclinic.runs.budget import Budget, Spent, money, spent_on
from agentclinic.runs.build import Models, Used
from agentclinic.runs.check import failures
from agentclinic.runs.plan import Plan
from agentclinic.runs.probe_sample import (
    ROLES,
    SAMPLE,
    WORKERS,
    Compared,
    EnoughError,
    Row,
    Trial,
    compared,
    enough,
    probe_prompts,
    probe_sample,
    recommend,
    try_model,
)
from agentclinic.runs.progress import Progress
from agentclinic.version import __version__

MOST_REQUESTS = 40
"""For each role. With 40 questions, a model that chooses as a reader did is told from the matcher (F1 0.80 and 0.94 on
questions and orders)."""
_LARGEST = 100_000
"""Bytes of a decision in the cache: it has about 700."""
_WAIT = 0.2
"""Seconds between looks at a decision that another process is making."""
_made: dict[str, SimulatorChoice] = {}
"""Decisions in this process: where the cache folder cannot be written, a sweep must still ask only once."""


async def decide(plan: Plan, models: Models, progress: Progress, spent: Spent | None = None) -> Plan:
    """The plan with a decision for every role that needs one, which is said once in a process.

    Models are asked only if the run may check them; a role that cannot be tried is `voiced`. `spent` is what was used
    of the budget already.
    """
    spent = spent or Spent()
    for role in plan.undecided:
        used = models.at_endpoint(role, *models.model_for(role))
        assert used is not None, "undecided roles are at endpoints"
        before = set(_made)
        if plan.settings.run.check:
            choice = await _choice(role, used, plan, models, progress, spent)
        else:
            choice = _voiced("the model was not tried, because the check is off; name a simulator to choose it")
        plan = plan.decided({role: choice})
        models.settle(plan.settings)
        if choice.key not in before:
            progress.say(f"simulator auto: {ROLE_NAMES[role]} {choice.simulator}: {choice.because}{_footing(choice)}")
    return plan


def known(plan: Plan, role: str, models: Models) -> SimulatorChoice | None:
    """The decision for a role, if it was made before; sends nothing."""
    used = models.at_endpoint(role, *models.model_for(role))
    return _kept(key_of(role, used, plan.settings, plan.prompts[role])) if used else None


def key_of(role: str, used: Used, settings: Settings, prompt: Prompt) -> str:
    """What a decision holds for, as a hash."""
    shape = (GroundedAnswer, MOST_FACTS) if role == "patient" else (ChosenResults, MOST_ITEMS)
    run = settings.run
    what = {
        "version": __version__,
        "role": role,
        "model": used.name,
        "endpoint": without_credentials(used.base_url),
        "texts": dict(prompt.completed().texts),
        "schema": [shape[0].model_json_schema(), shape[1]],
        "sample": hashlib.sha256(SAMPLE.read_bytes()).hexdigest(),
        "settings": [run.silent_symptom, run.generation_of(role), settings.llm.responses],
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:32]


def keep(choice: SimulatorChoice) -> None:
    """Keep a decision for later runs; one that no model was asked for is not kept."""
    if choice.key is None:
        return
    _made[choice.key] = choice
    with suppress(AgentClinicError):  # without a cache, it is decided again next time
        make_folder(cache_folder())
        write_whole(_file(choice.key), choice.model_dump_json(indent=2) + "\n", durable=False)


def remember(choices: Iterable[SimulatorChoice]) -> None:
    """Take over the decisions of a run that was begun, for other runs of this process."""
    _made.update({choice.key: choice for choice in choices if choice.key and choice.key not in _made})


def choice_of(found: Compared, asked: int, usage: Usage, cost: float | None, key: str) -> SimulatorChoice:
    """The decision that follows from a trial of so many questions or orders; without `key` if it decides nothing."""
    simulator, because = recommend(found, asked)
    difference = found.f1_difference
    return SimulatorChoice(
        simulator=simulator,
        because=because,
        f1_model=_rounded(found.model.f1),
        f1_matcher=_rounded(found.matcher.f1),
        f1_difference=_rounded(difference.value),
        low=_rounded(difference.low),
        high=_rounded(difference.high),
        rows=difference.n,
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=cost,
        decided_at=datetime.now(UTC).isoformat(timespec="seconds"),
        key=key if enough(found, asked) else None,
    )


def keep_trial(
    trial: Trial, rows: Sequence[Row], models: Models, settings: Settings, model: tuple[str, str | None]
) -> None:
    """Keep what a trial of both roles on these rows shows, for later runs with this model."""
    prompts = probe_prompts(settings.run)
    for role in ROLES:
        used = models.at_endpoint(role, *model)
        if used is None:
            continue
        answers = [answer for answer in trial.answers if answer.row.role == role]
        usage = sum((answer.usage for answer in answers), NOTHING_ASKED)
        key, asked = key_of(role, used, settings, prompts[role]), sum(row.role == role for row in rows)
        choice = choice_of(compared(answers), asked, usage, models.price(*model, asdict(usage)), key)
        keep(choice)


def cache_folder() -> Path:
    return Path(variable("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentclinic" / "simulators"


def sample_of(role: str) -> list[Row]:
    """The rows for one role, in an order in which any number of them is a fair sample."""
    rows = [row for row in probe_sample() if row.role == role]
    return random.Random(0).sample(rows, min(MOST_REQUESTS, len(rows)))


async def _choice(
    role: str, used: Used, plan: Plan, models: Models, progress: Progress, spent: Spent
) -> SimulatorChoice:
    key = key_of(role, used, plan.settings, plan.prompts[role])
    async with _alone(key):
        if before := _kept(key):
            return before
        try:
            choice = await _tried(role, used, plan, models, progress, spent, key)
        except _NotPlayedError as error:
            return _voiced(f"the model could not be tried ({error})")
        keep(choice)
        return choice


class _NotPlayedError(Exception):
    """Why a model cannot be tried."""


async def _tried(
    role: str, used: Used, plan: Plan, models: Models, progress: Progress, spent: Spent, key: str
) -> SimulatorChoice:
    settings, budget = plan.settings, Budget.of(plan.settings)
    one = {"input_tokens": 1, "output_tokens": 1}
    if budget.max_cost is not None and models.price(used.name, used.endpoint, one) is None:
        raise _NotPlayedError("its price is not known, and --max-cost is set")
    checked = {(one.name, one.base_url) for one in models.in_use()}  # the run asks them anyway
    if (used.name, used.base_url) not in checked and (failed := await failures([used], settings.llm, models.gate)):
        raise _NotPlayedError(str(failed[0].error))
    before = spent + spent_on(settings)

    def reached() -> str | None:
        """Why nothing more may be asked: the budget of the run."""
        now, usage = Spent(), asdict(model.usage)
        now.add(role, usage, models.price(used.name, used.endpoint, usage), answered=False)
        return budget.used_up(before + now)

    async with Clients(settings.llm, workers=WORKERS, gate=models.gate) as clients:
        counter = _Counter(_endpoint(clients, used).client.send, reached)
        model = _Meter(_endpoint(clients, used, counter.send).always(settings.run.generation_of))
        rows = sample_of(role)
        progress.say(
            f"simulator auto: trying {used.name} as the {ROLE_NAMES[role]}, with at most {MOST_REQUESTS} short requests"
        )
        workers = min(WORKERS, settings.run.workers) if "workers" in settings.run.model_fields_set else WORKERS
        trial = await try_model(
            model, rows, settings.run, prompts=dict(plan.prompts.files), workers=workers, progress=progress
        )
    if trial.interrupted:
        raise KeyboardInterrupt
    usage = replace(model.usage, requests=counter.sent)
    asked = len(trial.answers) if counter.full else trial.rows
    cost = models.price(used.name, used.endpoint, asdict(usage))
    choice = choice_of(compared(trial.answers), asked, usage, cost, key)
    ended = counter.stopped or (None if counter.full else trial.stopped)
    return _cut_short(choice, ended) if ended else choice


def _cut_short(choice: SimulatorChoice, why: str) -> SimulatorChoice:
    """A trial that a server or a limit ended: what it used counts, and it decides nothing for later runs."""
    because = f"the model could not be tried to the end ({why})"
    return choice.model_copy(update={"simulator": "voiced", "because": because, "key": None})


class _Counter:
    """Sends requests until there were `MOST_REQUESTS` of them, or a limit is reached."""

    def __init__(self, send: Send, reached: Callable[[], str | None]) -> None:
        self.sent = 0
        self.full = False
        """Whether there was more to ask than may be sent."""
        self.stopped: str | None = None
        self._send = send
        self._reached = reached

    async def send(self, path: str, content: bytes | None, purpose: Purpose) -> HttpAnswer:
        self.stopped = self.stopped or self._reached()
        self.full = self.full or self.sent >= MOST_REQUESTS
        if self.stopped or self.full:
            raise EnoughError(self.stopped or f"{MOST_REQUESTS} requests were sent")
        self.sent += 1
        return await self._send(path, content, purpose)


class _Meter:
    """Counts what a model's answers used; a request without an answer has no known tokens."""

    def __init__(self, model: Endpoint) -> None:
        self.name = model.name
        self.usage = NOTHING_ASKED
        self._model = model

    async def reply(self, request: Request) -> Reply:
        try:
            reply = await self._model.reply(request)
        except ModelError as error:
            if error.usage and error.usage.input_tokens is not None:
                self.usage += error.usage
            raise
        self.usage += reply.usage
        return reply


def _endpoint(clients: Clients, used: Used, send: Send | None = None) -> Endpoint:
    return clients.endpoint(used.name, base_url=used.base_url, api_key=used.key, send=send)


@asynccontextmanager
async def _alone(key: str) -> AsyncIterator[None]:
    """Wait until no other process is making this decision; without a cache folder, each decides for itself."""
    with ExitStack() as stack:
        with suppress(InputError, OSError):
            make_folder(cache_folder())
            path = _file(key).with_suffix(".lock")
            file = await anyio.to_thread.run_sync(lambda: stack.enter_context(open(path, "a+b", opener=opener)))
            while not lock_file(file.fileno()):  # noqa: ASYNC110 - held by another process
                await anyio.sleep(_WAIT)
        yield


def _kept(key: str) -> SimulatorChoice | None:
    """A decision made before; None if there is none, or if the file is not one."""
    if key in _made:
        return _made[key].model_copy(update={"cached": True})
    try:
        choice = SimulatorChoice.model_validate_json(read_limited(_file(key), _LARGEST))
    except (OSError, ValueError):
        return None
    if choice.key != key:
        return None
    remember([choice])
    return choice.model_copy(update={"cached": True})


def _file(key: str) -> Path:
    return cache_folder() / f"{key}.json"


def _voiced(because: str) -> SimulatorChoice:
    return SimulatorChoice(simulator="voiced", because=because)


def _footing(choice: SimulatorChoice) -> str:
    """What a decision cost, or when it was made."""
    if not choice.requests:
        return ""
    if choice.cached:
        return f"; decided on {(choice.decided_at or '')[:10]}"
    cost = "" if choice.cost_usd is None else f", {money(choice.cost_usd)}"
    tokens = [count for count in (choice.input_tokens, choice.output_tokens) if count is not None]
    return f"; {choice.requests} requests, {sum(tokens):,} tokens{cost}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
