"""What planning and note-keeping cost: requests per doctor turn and prompt size per case, relative to the plain doctor.

    python benchmarks/policy.py                 the arms on OpenOSCE's development part
    python benchmarks/policy.py --malformed 0.2 --limit 100

The builtin models answer, so every arm has the same patients. Sizes are those of the prompts and replies that an
endpoint would have exchanged, at four characters a token: estimates, good enough for ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentclinic.config import Settings
from agentclinic.doctors.planner.payloads import InlinePayload, PlannerPayload
from agentclinic.doctors.uncertainty.store import SessionStore
from agentclinic.models.base import MalformedError, Model, Purpose, Reply, Request
from agentclinic.results.record import Record
from agentclinic.results.turn import Usage
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play

CHARACTERS_PER_TOKEN = 4
DOCTORS = (Purpose.DOCTOR, Purpose.PLANNER, Purpose.DISCRIMINATOR, Purpose.SYNTHESIS)


@dataclass
class Count:
    """The requests of one arm's doctor to its model."""

    requests: Counter[str] = field(default_factory=Counter)
    characters: int = 0


class Counting:
    """The builtin model with its requests counted and, if wanted, a share of its plans spoiled."""

    name = "builtin"

    def __init__(self, model: Model, count: Count, malformed: float, chance: random.Random) -> None:
        self._model = model
        self._count = count
        self._malformed = malformed
        self._chance = chance

    async def reply(self, request: Request) -> Reply:
        """The builtin model's answer."""
        reply = await self._model.reply(request)
        if request.purpose in DOCTORS:
            self._count.requests[request.purpose.value] += 1
            said = reply.text + "".join(call.arguments for call in reply.tool_calls)
            tools = json.dumps([dict(tool.parameters) for tool in request.tools]) if request.tools else ""
            self._count.characters += sum(len(m.content) for m in request.messages) + len(said) + len(tools)
        if isinstance(request.payload, PlannerPayload | InlinePayload) and self._chance.random() < self._malformed:
            error = MalformedError("spoiled by the benchmark", text=reply.text[: len(reply.text) // 2])
            error.usage = Usage(0, 0, 0, 0)
            raise error
        return reply


class CountingModels(Models):
    """A run's models with their requests counted."""

    def __init__(self, settings: Settings, count: Count, malformed: float) -> None:
        super().__init__(settings)
        self._count = count
        self._malformed = malformed
        self._chance = random.Random(0)

    def get(self, name: str, endpoint: str | None = None) -> Model:
        """The model of that name, with its requests counted."""
        return Counting(super().get(name, endpoint), self._count, self._malformed, self._chance)


async def play_arm(run: dict[str, Any], limit: int | None, malformed: float) -> tuple[list[Record], Count]:
    """Play the development part with one arm's settings."""
    count = Count()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"run": {"dataset": "OpenOSCE", "num_scenarios": limit, **run}})
        plan = make_plan(settings)
        async with CountingModels(plan.settings, count, malformed) as models:
            records = [await play(plan, unit, models, SessionStore(Path(folder))) for unit in plan.units]
    return records, count


def arms(prompts: Path) -> dict[str, dict[str, Any]]:
    """The arms by name; two of them need their own policy files."""
    for how in ("separate", "off"):
        text = json.dumps({"differential_settings": {"discriminators": how}})
        (prompts / f"discriminators_{how}.json").write_text(text, encoding="utf-8")
    policy = {"doctor_test_policy_enabled": True, "prompts_dir": str(prompts)}
    return {
        "plain": {},
        "policy": {"doctor_test_policy_enabled": True},
        "policy, inline": {"doctor_test_policy_enabled": True, "doctor_test_policy_mode": "inline"},
        "policy, separate discriminators": {**policy, "doctor_test_policy": "discriminators_separate"},
        "policy, no discriminators": {**policy, "doctor_test_policy": "discriminators_off"},
        "uncertainty": {"doctor": "uncertainty"},
    }


async def main() -> None:
    """Play the arms and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--limit", type=int, help="play only this many cases")
    parser.add_argument("--malformed", type=float, default=0.0, help="share of planner replies that are cut in half")
    options = parser.parse_args()
    print("arm                            right  turns  requests/turn  tokens/case  relative to plain")
    baseline = 0.0
    for name, run in arms(Path(tempfile.mkdtemp())).items():
        records, count = await play_arm(run, options.limit, options.malformed)
        turns = sum(record.num_turns or 0 for record in records)
        tokens = count.characters / CHARACTERS_PER_TOKEN / len(records)
        baseline = baseline or tokens
        right = sum(bool(record.correct) for record in records)
        print(
            f"{name:30} {right:3}/{len(records):<3} {turns / len(records):5.1f}  "
            f"{count.requests.total() / turns:13.2f}  {tokens:11,.0f}  x {tokens / baseline:.2f}"
        )
        said = Counter(_kind(note) for record in records for turn in record.transcript or () for note in turn.notes)
        for note, times in said.most_common():
            print(f"    {times:4} x {note}")


def _kind(note: str) -> str:
    """A note without the details of its turn."""
    if note.startswith(("early finish", "plan sent back", "planner unavailable")):
        return note.partition(":")[0]
    return note.partition("(")[0].strip()


if __name__ == "__main__":
    asyncio.run(main())
