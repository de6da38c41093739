"""How much of each prompt repeats the previous turn's, from its beginning: what a prompt cache can reuse.

`python benchmarks/prefix.py [--dialogue transcript]` plays the bundled demo cases with a scripted doctor, planner and
patient at a real server, reads the prompts the server received, and prints for each of them and by turn: common prefix
÷ length of the prompt, in characters.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from scripted_server import ScriptedServer

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

TARGET = 0.85
PURPOSES = ("doctor", "planner", "patient")

# What a doctor who takes its time asks: replies of all lengths, from one word to a whole panel.
LINES = [
    "What brings you here today?",
    "When did it start?",
    "Does anything make it better or worse?",
    "Have you had fever, chills or night sweats?",
    "Have you lost weight?",
    "Do you have any pain, and where?",
    "Have you had nausea, vomiting or diarrhea?",
    "Are you short of breath?",
    "What illnesses have you had before?",
    "Do you take any medication?",
    "Does any illness run in your family?",
    "Do you smoke or drink alcohol?",
    "REQUEST TEST: Vital_Signs",
    "REQUEST TEST: Physical_Examination",
    "REQUEST TEST: Complete_Blood_Count",
    "REQUEST TEST: Basic_Metabolic_Panel",
    "REQUEST TEST: Urinalysis",
    "REQUEST TEST: Chest_X-Ray",
    "REQUEST TEST: ECG",
    "DIAGNOSIS READY: Influenza",
]


def common(one: str, other: str) -> int:
    """How many characters two texts share from the beginning."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def shares(prompts: list[str]) -> Iterator[float]:
    """Share of each prompt from the second on that its predecessor began with, too."""
    for earlier, prompt in pairwise(prompts):
        yield common(earlier, prompt) / len(prompt)


async def play_all(
    server: ScriptedServer, dialogue: Literal["chat", "transcript"], *, policy: bool
) -> dict[str, list[list[float]]]:
    """Play the cases one by one; the shares by purpose and case."""
    from agentclinic.config import EndpointSettings, RunSettings, Settings
    from agentclinic.runs.build import Models
    from agentclinic.runs.plan import make_plan
    from agentclinic.runs.play import play

    settings = Settings(
        run=RunSettings(
            doctor_llm="scripted",
            doctor_endpoint="bench",
            patient_llm="scripted",
            patient_endpoint="bench",
            doctor_test_policy_enabled=policy,
            dialogue=dialogue,
        ),
        endpoints={"bench": EndpointSettings(base_url=server.base_url)},
    )
    plan = make_plan(settings)
    cases: dict[str, list[list[float]]] = {purpose: [] for purpose in PURPOSES}
    async with Models(plan.settings) as models:
        for unit in plan.units:
            before = len(server.log())
            await play(plan, unit, models)
            received = server.log()[before:]
            for purpose in PURPOSES:
                bodies = [entry["body"] for entry in received if entry["purpose"] == purpose]
                # A reply that is sent back is no new turn.
                first = [body for body in bodies if body["input"][-1]["role"] == "user" and not _sent_back(body)]
                prompts = ["\n".join(item["content"] for item in body["input"]) for body in first]
                cases[purpose].append(list(shares(prompts)))
    return cases


def _sent_back(body: dict[str, Any]) -> bool:
    return any(words in body["input"][-1]["content"] for words in ("cannot be used", "cannot say that"))


def main() -> None:
    """Measure and print."""
    from scripted_server import ScriptedServer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialogue", choices=("chat", "transcript"), default="chat")
    given = parser.parse_args()
    with ScriptedServer() as server:
        server.control(doctor=LINES, patient="I am not sure, doctor, and I have not noticed it.")
        # A planner's notes are new on every turn, so the doctor is measured without one.
        found = asyncio.run(play_all(server, given.dialogue, policy=False))
        found["planner"] = asyncio.run(play_all(server, given.dialogue, policy=True))["planner"]
    figures = {}
    for purpose, cases in found.items():
        print(f"{purpose}, {given.dialogue}\nturn   mean    min")
        for turn in range(max(map(len, cases))):
            at_turn = [case[turn] for case in cases if turn < len(case)]
            print(f"{turn + 2:4} {statistics.fmean(at_turn):6.3f} {min(at_turn):6.3f}")
        every = [share for case in cases for share in case]
        mean = statistics.fmean(every)
        print(f" all {mean:6.3f} {min(every):6.3f}   {len(cases)} cases, {len(every)} prompts from turn 2")
        print(f"  {'met   ' if mean >= TARGET else 'MISSED'} mean at least {TARGET}")
        figures[purpose] = {"mean": round(mean, 4), "minimum": round(min(every), 4), "prompts": len(every)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
