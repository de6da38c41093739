"""A provider's file of answers to a batch holds what it should not: `regrade --batch` must record no wrong verdict.

Each try judges a run of four diagnoses through the real client and a scripted server, whose file of answers is made
of right lines and of hostile ones: copies, contradictions, answers to other questions, broken JSON, wrong ids and
statuses, huge lines, keys that stand twice, echoed keys. A verdict may be recorded only if all that the file says about
its question is one and the same answer; everything else has to be counted as failed or not tried, in words.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from runs_support import settings_for
from scripted_server import ScriptedServer

from agentclinic.config import Settings
from agentclinic.errors import AgentClinicError
from agentclinic.models.retry import Clock
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade import Regraded, regrade

TRIES = 200
KEY = "sk-planted-0123456789abcdefghij"
COUNT = 4
YES, NO = (json.dumps({"relation": relation, "reason": "by name"}) for relation in ("same", "different"))
"""A judge's answers in the form that it is asked for."""
Json = dict[str, Any]


class Said(Progress):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


def entry(custom_id: Any, said: str, **response: Any) -> Json:
    """What the judge answered to a request."""
    words = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}]
    body = {"id": "r", "object": "response", "status": "completed", "model": "judge", "output": words}
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body, **response}, "error": None}


def lines_about(draw: random.Random, custom_id: str) -> tuple[list[str], str | None]:
    """Lines about one request, and the only answer that may be taken from them; None if none may be."""
    said, opposite = draw.choice(((YES, NO), (NO, YES)))
    right, wrong = entry(custom_id, said), entry(custom_id, opposite)
    line, other = json.dumps(right), json.dumps(wrong)
    odd_status = draw.choice([0, 1, True, -200, 199, 600, 10**12, "200", None, 2e2, [200], 10**299])
    late = {**right, "response": None, "error": {"code": "batch_expired", "message": f"Too late, {KEY}"}}
    odd_body: Any = draw.choice((None, [], "Yes", {"output": [[]]}, {}, KEY, 1e999))
    other_id = draw.choice((custom_id.upper(), f"{custom_id} ", [custom_id], custom_id[:-1], None))
    status, echo = draw.choice((301, 401, 404, 500)), {"error": {"message": KEY}}
    refused = entry(custom_id, said, status_code=status, body=echo)
    kinds: list[tuple[list[str], str | None]] = [
        ([line], said),
        ([line] * draw.randint(2, 5), said),
        ([line, other], None),
        ([line, line, other, line], None),
        ([line, json.dumps(late)], None),
        ([json.dumps(late)], None),
        ([], None),
        ([json.dumps(entry(custom_id, said, status_code=odd_status))], None),
        ([line, json.dumps(entry(custom_id, said, status_code=draw.choice((429, 500, 400, 0))))], None),
        ([json.dumps({**right, "error": {"message": "failed"}})], None),
        ([line[:-1] + f', "response": {json.dumps(wrong["response"])}}}'], None),
        ([line.replace('"text": ', f'"text": {json.dumps(opposite)}, "text": ')], None),
        ([line[: draw.randrange(len(line))]], None),
        ([json.dumps(entry(other_id, said))], None),
        ([json.dumps(entry(custom_id, said, body=odd_body))], None),
        ([json.dumps(entry(custom_id, f"Yes and no and yes, {KEY}"))], None),
        ([json.dumps({**right, "padding": "x" * draw.randint(10**5, 3 * 10**6)})], said),
        (["[" * 10**5, "\udcff\udcfe" + line, line], said),
        ([json.dumps([right]), json.dumps(f"{right}"), "1" * 5000, line], said),
        ([json.dumps(refused)], None),
    ]  # fmt: skip
    return draw.choice(kinds)


def settings(server: ScriptedServer) -> Settings:
    made = settings_for(server, Path("out"), moderator_llm="judge", check=False).model_dump(mode="json")
    made["openai"] = {"base_url": server.base_url, "api_key": KEY}
    return Settings.model_validate(made)


async def judged(folder: Path, server: ScriptedServer, shown: Said, *, wait: bool) -> Regraded:
    """Judge through the batch endpoint, with a clock on which waiting takes no time."""

    async def sleep(_: float) -> None:
        return

    clock = Clock(sleep=sleep)
    return await regrade(folder, settings(server), batch=True, progress=shown, clock=clock, wait=wait)


def attack(tries: int, seed: int, folder: Path) -> Iterator[str | None]:
    """One item for each file of answers: None, or what fell."""
    draw = random.Random(seed)
    with ScriptedServer() as server:
        for number in range(tries):
            run = folder / str(number)
            run.mkdir()
            row = {"dataset": "MedQA", "status": "diagnosed", "correct": True, "ground_truth": "Gout"}
            rows = [{**row, "scenario_id": place, "diagnosis_text": f"Disease {place}"} for place in range(COUNT)]
            (run / "scenarios.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
            outcome = _outcome(draw, run, server)
            yield f"try {number}: {outcome}" if outcome else None


def _outcome(draw: random.Random, run: Path, server: ScriptedServer) -> str | None:
    server.reset()
    server.control(batch_polls=1)
    shown = Said()
    try:
        asyncio.run(judged(run, server, shown, wait=False))
        (asked,) = [
            each["body"]["lines"] for each in server.log() if each["api"] == "files" and "lines" in each["body"]
        ]
        made = [lines_about(draw, line["custom_id"]) for line in asked]
        lines = [line for about, _ in made for line in about]
        draw.shuffle(lines)
        lines += [json.dumps(entry(f"{draw.getrandbits(128):032x}", YES)) for _ in range(draw.randrange(3))]
        # A follow-up, which an answer in the wrong form may lead to, is answered by nothing that could be a verdict.
        refusal = {"match": {"api": "responses"}, "reply": "Perhaps."}
        server.control(batch_polls=0, batch_content="\n".join(lines), rules=[refusal])
        done = asyncio.run(judged(run, server, shown, wait=True))
    except AgentClinicError as error:
        return f"the command stops: {error}"
    except Exception:  # noqa: BLE001 - whatever it is, a person would see a traceback
        return traceback.format_exc().strip().splitlines()[-1]
    written = done.path.read_text() if done.path.exists() else ""
    verdicts = {each["scenario_id"]: each["correct"] for each in map(json.loads, written.splitlines())}
    told = "\n".join([*shown.messages, str(done.reason), written])
    expected = {place: said == YES for place, (_, said) in enumerate(made) if said}
    got = {place: correct for place, correct in verdicts.items() if correct is not None}
    if got != expected:
        return f"verdicts {got}, and the answers allow {expected}"
    if done.judged + done.failed + done.not_tried != COUNT or (len(got) < COUNT and not done.reason):
        return "a diagnosis without a verdict is passed over in silence"
    return "the key is shown or written" if KEY in told else None
