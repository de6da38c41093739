"""`scoring: weights` against `scoring: bayes` with the builtin planner: stops, accuracy, calibration, price and tokens.

    python benchmarks/planner_scoring.py                OpenOSCE's development part
    python benchmarks/planner_scoring.py --limit 20
    python benchmarks/planner_scoring.py --worlds       the solvable worlds, with exact regret

The builtin models answer, so that every arm has the same patients and asks the same questions: only when the planner
stops differs. Sizes are those of the requests and replies that an endpoint would have exchanged, schema included, at
four characters a token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from policy import CHARACTERS_PER_TOKEN

from agentclinic.config import Settings
from agentclinic.models.base import Model, Purpose, Reply, Request
from agentclinic.models.structured import format_of, with_instruction
from agentclinic.results.record import Record
from agentclinic.results.turn import Differential, Source
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.scoring.calibration import calibration
from agentclinic.scoring.differentials import score_of_truth
from agentclinic.scoring.rows import row_of
from agentclinic.worlds.model import bundled


class Sized:
    """A model whose planner requests are measured."""

    name = "builtin"

    def __init__(self, model: Model, sizes: Counter[str]) -> None:
        self._model = model
        self._sizes = sizes

    async def reply(self, request: Request) -> Reply:
        """The model's answer."""
        reply = await self._model.reply(request)
        if request.purpose is Purpose.PLANNER and request.schema:
            sent = with_instruction(request.messages, request.schema, brief=request.described)
            self._sizes["requests"] += 1
            self._sizes["in"] += sum(len(message.content) for message in sent)
            self._sizes["in"] += len(json.dumps(format_of(request.schema).schema))
            self._sizes["out"] += len(reply.text)
        return reply


class SizedModels(Models):
    """A run's models with their planner requests measured."""

    def __init__(self, settings: Settings, sizes: Counter[str]) -> None:
        super().__init__(settings)
        self._sizes = sizes

    def get(self, name: str, endpoint: str | None = None) -> Model:
        """The model of that name, measured."""
        return Sized(super().get(name, endpoint), self._sizes)


async def play_arm(run: dict[str, Any]) -> tuple[list[Record], Counter[str]]:
    """Play all units with one arm's settings."""
    sizes: Counter[str] = Counter()
    plan = make_plan(Settings.model_validate({"run": run}))
    async with SizedModels(plan.settings, sizes) as models:
        return [await play(plan, unit, models) for unit in plan.units], sizes


def arms(prompts: Path) -> dict[str, dict[str, Any]]:
    """The arms by name."""
    for how in ("weights", "bayes"):
        text = json.dumps({"differential_settings": {"scoring": how}})
        (prompts / f"{how}.json").write_text(text, encoding="utf-8")
    policy = {"doctor_test_policy_enabled": True, "prompts_dir": str(prompts)}
    return {"no planner": {}, **{how: {**policy, "doctor_test_policy": how} for how in ("weights", "bayes")}}


def summary(name: str, records: Sequence[Record], sizes: Counter[str]) -> str:
    """One row: accuracy, stops, turns, price, how good the planner's last numbers are, and tokens per request."""
    stopped = [record for record in records if _stopped(record)]
    right = sum(bool(record.correct) for record in stopped)
    price = fmean(
        float((record.test_economics_totals or {}).get("total_estimated_cost_usd") or 0.0) for record in records
    )
    asked = max(1, sizes["requests"])
    tokens = [sizes[way] / asked / CHARACTERS_PER_TOKEN for way in ("in", "out")]
    regrets = [record.regret.regret for record in records if record.regret]
    return (
        f"{name:10} {sum(bool(r.correct) for r in records):4}/{len(records):<4} {len(stopped):5} ({right} right) "
        f"{fmean(r.num_turns or 0 for r in records):6.1f} {price:8,.0f}  {_calibrated(records):34} "
        f"{tokens[0]:6,.0f} {tokens[1]:5,.0f}" + (f"  {fmean(regrets):7.1f}" if regrets else "")
    )


def _stopped(record: Record) -> bool:
    return any("early finish by the planner" in turn.notes for turn in record.transcript or ())


def _planned(record: Record) -> Differential | None:
    given = [turn.differential for turn in record.transcript or () if turn.role == "planner" and turn.differential]
    return given[-1] if given else None


def _calibrated(records: Sequence[Record]) -> str:
    """The planner's last numbers: AUROC and Brier score of its confidence in the diagnosis, and of the truth."""
    parts = {part.source: part for part in calibration([row_of(record) for record in records]).sources}
    part = parts.get(Source.PLANNER_POSTERIOR) or parts.get(Source.PLANNER_SCORE)
    if part is None:
        return "-"
    truth = [s for r in records if (given := _planned(r)) and (s := score_of_truth(given, r))]
    brier = f"{part.brier.value:.3f}" if part.brier and part.brier.value is not None else "-"
    of_truth = f"{fmean(s.brier for s in truth):.3f} {fmean(s.log for s in truth):.2f}" if truth else "- -"
    area = "-" if part.auroc.value is None else f"{part.auroc.value:.2f}"
    return f"{area} {brier} {of_truth}"


async def main() -> None:
    """Play the arms and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--limit", type=int, help="play only this many cases")
    parser.add_argument("--worlds", action="store_true", help="play the solvable worlds")
    options = parser.parse_args()
    given = [f"Solvable:{name}" for name in bundled()] if options.worlds else ["OpenOSCE"]
    with tempfile.TemporaryDirectory() as folder:
        for dataset in given:
            print(f"{dataset}\narm        right      stopped by planner  turns  price  ", end="")
            print("AUROC Brier, truth: Brier log  tokens in, out" + ("  regret" if options.worlds else ""))
            for name, run in arms(Path(folder)).items():
                records, sizes = await play_arm({"dataset": dataset, "num_scenarios": options.limit, **run})
                print(summary(name, records, sizes), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
