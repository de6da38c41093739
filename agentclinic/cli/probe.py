"""`agentclinic probe`: find out what an endpoint can do, and how well its model plays patient and laboratory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from agentclinic.cli import options as opt
from agentclinic.cli.format import counted, end_incomplete, finish, print_json, progress, tokens_used
from agentclinic.config import MOST_WORKERS, ROLE_NAMES, RunSettings, Settings, described
from agentclinic.errors import InputError
from agentclinic.jsonl import loads
from agentclinic.scoring.format import number, plural

if TYPE_CHECKING:
    from agentclinic.models.base import Image, Request
    from agentclinic.models.endpoint import Endpoint
    from agentclinic.runs.probe_sample import Compared, Result, Trial


_RED_SQUARE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKElEQVR4nO3NsQ0AAAzCMP5/un0CNkuZ41wybXsHAAAA"
    "AAAAAAAAxR4yw/wuPL6QkAAAAABJRU5ErkJggg=="
)
"""A PNG of 32 by 32 red pixels."""


class _Colour(BaseModel):
    colour: str


@dataclass(frozen=True)
class Check:
    what: str
    works: bool
    detail: str


@dataclass(frozen=True)
class _Sampled:
    """What came of the sample of questions and orders."""

    trial: Trial
    result: Result
    cost_usd: float | None


def probe_command(
    model: Annotated[str, typer.Argument(help="Name of a model at the endpoint.")],
    *,
    endpoint: Annotated[
        str | None,
        typer.Option(help="Endpoint of the model, by its name in `endpoints`. [default: the default endpoint]"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the sample of questions and orders (about 80 requests).")
    ] = False,
    config: opt.Config = None,
    llm_config: opt.LLMConfig = None,
    workers: Annotated[
        int | None,
        opt.limit(
            min=1,
            max=MOST_WORKERS,
            help=f"{described(RunSettings.model_fields['workers'])} [default: run.workers, else 4]",
        ),
    ] = None,
    trust_address: opt.TrustAddress = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find out what an endpoint and its model can do.

    Sends four to six short requests and says whether it answers, through which API, and whether tool calls,
    structured output and images work. If structured output works, the model then plays patient and laboratory on a
    shipped sample of questions and orders, with about 80 requests, and is compared with our own matcher, to say for
    each role whether it should play it `grounded`; later runs with simulator auto follow this without asking again.
    The exit code is 1 if it does not answer at all.
    """
    settings = opt.read_settings(config, llm_config, trust_address=trust_address)
    checks, sampled = finish(_probe, settings, model, endpoint, quick=quick, workers=workers, quiet=quiet, as_json=json)
    if json:
        sample = {**sampled.result.model_dump(mode="json"), "cost_usd": sampled.cost_usd} if sampled else None
        print_json({"checks": [asdict(check) for check in checks], "sample": sample})
    elif checks[0].works:
        if sampled:
            _show_sample(sampled)
        elif not quick:
            print("\nRecommended for patient and laboratory: voiced; grounded needs structured output")
        print(f"\nUse it with: agentclinic run --doctor-llm {model}")
    if not checks[0].works:
        raise SystemExit(1)
    if sampled and sampled.result.not_tried:
        left, why = sampled.result.not_tried, sampled.result.stopped
        end_incomplete(
            f"{left} of {sampled.trial.rows} questions and orders were not tried ({why})",
            interrupted=sampled.trial.interrupted,
        )


async def _probe(
    settings: Settings,
    name: str,
    endpoint: str | None,
    *,
    quick: bool,
    workers: int | None,
    quiet: bool,
    as_json: bool,
) -> tuple[list[Check], _Sampled | None]:
    from agentclinic.models.endpoint import Endpoint
    from agentclinic.runs.auto import keep_trial
    from agentclinic.runs.build import Models
    from agentclinic.runs.probe_sample import WORKERS, probe_sample, result_of, try_model

    if workers is None:
        workers = settings.run.workers if "workers" in settings.run.model_fields_set else WORKERS
    # No recording: it would come between the probe and the endpoint.
    settings = settings.changed(record=None, workers=workers)
    async with Models(settings) as models:
        model = models.get(name, endpoint)
        if not isinstance(model, Endpoint):
            raise InputError(f"probe needs a model at an endpoint; {name!r} is not one")
        checks = await _checked(model)
        if not as_json:
            for check in checks:
                print(f"{'yes' if check.works else 'no ':3}  {check.what}: {check.detail}", flush=True)
        if quick or not any(check.works for check in checks if check.what == STRUCTURED):
            return checks, None
        rows = probe_sample()
        trial = await try_model(model, rows, settings.run, workers=workers, progress=progress(quiet=quiet))
        if trial.stopped is None:
            keep_trial(trial, rows, models, settings, (name, endpoint))
        return checks, _Sampled(trial, result_of(trial, rows), models.price(name, endpoint, asdict(trial.usage)))


async def _checked(model: Endpoint) -> list[Check]:
    from agentclinic.models.base import ModelError, UnknownModelError

    checks: list[Check] = []
    for what, check in _CHECKS.items():
        try:
            checks.append(Check(what, *await check(model)))
        except ModelError as error:
            fix = _FIXES.get(error.kind)
            meant = await model.named_like() if isinstance(error, UnknownModelError) else ""
            checks.append(Check(what, False, (f"{error} ({fix})" if fix else str(error)) + meant))
        if not checks[0].works:
            break
    return checks


def _show_sample(sampled: _Sampled) -> None:
    from agentclinic.runs.budget import money

    result = sampled.result
    print(f"\n{'':18}{'precision':>10}{'recall':>8}{'F1':>8}{'by code':>9}{'failed':>8}")
    for what in ("questions", "orders", "together"):
        compared: Compared = getattr(result, what)
        for who, figures in (("model", compared.model), ("matcher", compared.matcher)):
            line = f"{what if who == 'model' else '':10}{who:8}"
            line += f"{number(figures.precision):>10}{number(figures.recall):>8}{number(figures.f1):>8}"
            if who == "model":
                line += f"{compared.by_code:>9}{sum(compared.failed.values()):>8}"
            print(line)
    failed = counted(result.together.failed)
    tokens = tokens_used(result.input_tokens, result.output_tokens, "no token counts")
    cost = "cost unknown" if sampled.cost_usd is None else money(sampled.cost_usd)
    print(f"{plural(result.requests, 'request')}, {tokens}, {cost}" + (f"; failed: {failed}" if failed else ""))
    print()
    for role, simulator in result.recommended.items():
        print(f"Recommended for the {ROLE_NAMES[role]}: {simulator}; {result.because[role]}")
    print("Runs with this model and simulator auto, the default, follow it.")


_FIXES = {
    "auth": "the key was rejected: check OPENAI_API_KEY, .env or llm.config.json",
    "quota": "the account has no credit left",
    "connection": "no server answers: check base_url and whether the server is running",
    "timeout": "it did not answer in time: raise llm.runtime.request_timeout",
}


def _ask(text: str, *images: Image, **options: Any) -> Request:
    from agentclinic.models.base import Message, Purpose, Request

    system = Message("system", "You are being tried out. Answer as briefly as you can.")
    return Request(Purpose.PROBE, (system, Message("user", text, images=images)), **options)


async def _text(model: Endpoint) -> tuple[bool, str]:
    from agentclinic.models.wire import API_NAMES

    reply = await model.reply(_ask("Write the word ready."))
    api = API_NAMES[model.client.api] if model.client.api else "an unknown API"
    tokens = tokens_used(reply.usage.input_tokens, reply.usage.output_tokens, "no token counts")
    return True, f"by {api}, with {tokens}; said {_short(reply.text)!r}"


async def _tools(model: Endpoint) -> tuple[bool, str]:
    from agentclinic.models.base import Tool

    colour = {"type": "object", "properties": {"colour": {"type": "string"}}}
    tool = Tool(
        "note_colour", "Write down a colour.", {**colour, "required": ["colour"], "additionalProperties": False}
    )
    request = _ask("Write down the colour of the sky with the tool.", tools=(tool,), tool_choice="required")
    reply = await model.reply(request)
    if not reply.tool_calls:
        return False, f"wrote text instead: {_short(reply.text)!r}"
    call = reply.tool_calls[0]
    try:
        arguments = loads(call.arguments)
    except ValueError:
        return False, f"called {call.name} with arguments that are not JSON"
    as_asked = call.name == tool.name and isinstance(arguments, dict) and "colour" in arguments
    return as_asked, f"called {call.name}({_short(call.arguments)}){'' if as_asked else ', not as asked'}"


async def _structured(model: Endpoint) -> tuple[bool, str]:
    reply = await model.reply(_ask("Name the colour of the sky.", schema=_Colour))
    notes = f" ({'; '.join(reply.notes)})" if reply.notes else ""
    return True, f"{_short(reply.text)}{notes}"


async def _image(model: Endpoint) -> tuple[bool, str]:
    from agentclinic.models.base import Image

    reply = await model.reply(_ask("Which colour fills this picture? One word.", Image(_RED_SQUARE)))
    if "red" in reply.text.lower():
        return True, "recognized the red test picture"
    return False, f"accepted a picture but did not recognize that it is red: {_short(reply.text)!r}"


STRUCTURED = "structured output"
_CHECKS: dict[str, Callable[[Endpoint], Awaitable[tuple[bool, str]]]] = {
    "answers": _text,
    "tool calls": _tools,
    STRUCTURED: _structured,
    "images": _image,
}
"""What is tried, in this order; if the first fails, the rest is not tried."""


def _short(text: str) -> str:
    return text.strip()[:60]
