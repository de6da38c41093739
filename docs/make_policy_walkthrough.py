"""Writes docs/policy-walkthrough.md from a real encounter: `python docs/make_policy_walkthrough.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import anyio

from agentclinic.config import Settings
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play

PAGE = Path(__file__).parent / "policy-walkthrough.md"
SCENARIO = 2
"""An encounter of OpenOSCE's development part with close calls that the planner ends early."""


async def encounter() -> Record:
    """The encounter, played by the builtin clinic."""
    run = {"dataset": "OpenOSCE", "scenarios": str(SCENARIO), "doctor_test_policy_enabled": True}
    plan = make_plan(Settings.model_validate({"run": run}))
    async with Models(plan.settings) as models:
        return await play(plan, plan.units[0], models)


def page(record: Record) -> str:
    """The page about an encounter."""
    return "\n".join(_lines(record))


def _lines(record: Record) -> Iterator[str]:
    door = record.door
    assert door is not None
    yield "# One encounter with the test policy, turn by turn"
    yield ""
    yield (
        f"Made by `python docs/make_policy_walkthrough.py` from a real encounter: scenario {record.scenario_id} of "
        f"{record.dataset}, all roles builtin. How the numbers come about is in [test-policy.md](test-policy.md). "
        "A research benchmark, not medical advice."
    )
    yield ""
    yield f"At the door: {door.demographics}. {door.objective}"
    for turn in record.transcript or ():
        yield from _TURNS[turn.role](turn)
    yield ""
    verdict = "right" if record.correct else "wrong"
    yield f"The truth is {record.ground_truth}: judged {verdict} after {record.num_turns} turns."
    yield ""


def _planner(turn: Turn) -> Iterator[str]:
    details = turn.details or {}
    yield from ("", f"## Turn {turn.turn}", "")
    yield "| hypothesis | confidence | coverage | for | against | unknown |"
    yield "|---|---|---|---|---|---|"
    for found in details["hypotheses"]:
        yield (
            f"| {found['diagnosis']} | {found['confidence']:.2f} | {found['coverage']:.2f} | {found['support']} "
            f"| {found['contradiction']} | {found['unknown']} |"
        )
    yield ""
    yield f"Margin {details['margin']:.2f}, decision: **{details['decision']}**."
    if details["close"]:
        yield f"Too close to call: {', '.join(details['close'])}."
    for found in details["discriminators"]:
        yield f"- would tell apart: {found['request']}"
    for remark in turn.notes:
        yield f"- {remark}"


def _said(who: str) -> Callable[[Turn], Iterator[str]]:
    def lines(turn: Turn) -> Iterator[str]:
        yield ""
        yield f"**{who}:** {' '.join(turn.text.split())}"
        for note in turn.notes:
            yield f"({note})"

    return lines


_TURNS = {
    "planner": _planner,
    "doctor": _said("Doctor"),
    "patient": _said("Patient"),
    "measurement": _said("Measurement"),
    "clinic": _said("Clinic"),
}


if __name__ == "__main__":
    PAGE.write_text(page(anyio.run(encounter)), encoding="utf-8")
