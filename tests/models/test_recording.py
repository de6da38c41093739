"""Recording requests and replies, and replaying them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes import Meeting, Scripted, plan_of
from pydantic import BaseModel

from agentclinic.errors import InputError
from agentclinic.jsonl import JsonLines
from agentclinic.models import base
from agentclinic.models.base import (
    Image,
    MalformedError,
    Message,
    ModelError,
    NotRecordedError,
    Purpose,
    Reply,
    Request,
    Tool,
    ToolCall,
)
from agentclinic.models.recording import Recorder, Replay, enter_unit
from agentclinic.results.record import Record
from agentclinic.results.turn import Usage
from agentclinic.runs.build import Models
from agentclinic.runs.human import Human, Tape
from agentclinic.runs.play import play

pytestmark = pytest.mark.anyio


class Opinion(BaseModel):
    diagnosis: str
    sure: bool


ASK = Request(Purpose.QUERY, (Message("system", "s"), Message("user", "u")))


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[JsonLines]:
    with JsonLines(tmp_path / "kept.jsonl") as lines:
        yield lines


async def record_of(**run: Any) -> Record:
    # A recording takes the place of a model that writes freely, for which charts are not completed.
    plan = plan_of(missing_test="unavailable", pending_results=False, **run)
    async with Models(plan.settings) as models:
        return await play(plan, plan.units[0], models)


async def test_a_recorded_encounter_replays_identically(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    roles = ("doctor", "patient", "measurement", "moderator")
    first = await record_of(scenarios="3", record=str(kept))
    replayed = {f"{role}_llm": f"replay:{kept}" for role in roles}
    # The builtin judge was asked about every diagnosis, so its recording is, too.
    again = await record_of(scenarios="3", judge="model", **replayed)
    names = {*replayed, "timing", "cost_usd"}
    assert first.status == "diagnosed"
    assert again.model_dump(exclude=names) == first.model_dump(exclude=names)
    cascade = await record_of(scenarios="3", **replayed)
    assert (cascade.usage or {}).keys() == {"doctor", "patient", "measurement"}, "code decides without its recording"
    names |= {"usage"}
    assert cascade.model_dump(exclude=names) == first.model_dump(exclude=names)


async def test_a_replay_can_itself_be_recorded(tmp_path: Path) -> None:
    kept, copy = tmp_path / "kept.jsonl", tmp_path / "copy.jsonl"
    await record_of(scenarios="3", record=str(kept))
    await record_of(scenarios="3", doctor_llm=f"replay:{kept}", record=str(copy))
    again = await record_of(scenarios="3", doctor_llm=f"replay:{copy}")
    assert again.status == "diagnosed", again.fault
    keys = [[json.loads(line)["key"] for line in path.read_text().splitlines()] for path in (kept, copy)]
    assert keys[0] == keys[1]


async def test_a_request_that_was_not_recorded_is_refused_with_the_likely_cause(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    await record_of(scenarios="3", record=str(kept))
    record = await record_of(scenarios="3", doctor_llm=f"replay:{kept}", total_inferences=19)
    assert record.status == "model_failed"
    assert record.fault is not None
    assert (record.fault.role, record.fault.error) == ("doctor", "not_recorded")
    assert f"{kept} has no doctor request like this one" in record.fault.message
    assert "have changed since the recording" in record.fault.message


async def test_the_same_request_in_another_unit_is_another_entry(sink: JsonLines) -> None:
    enter_unit("a")
    await Recorder(Scripted("one"), sink).reply(ASK)
    enter_unit("b")
    with pytest.raises(NotRecordedError, match="in unit b"):
        await Replay(sink.path).reply(ASK)


async def test_a_repeated_request_gets_its_answers_in_order(sink: JsonLines) -> None:
    enter_unit("a")
    recorder = Recorder(Scripted("one", "two"), sink)
    assert [(await recorder.reply(ASK)).text for _ in range(2)] == ["one", "two"]
    replay = Replay(sink.path)
    for _ in range(2):
        enter_unit("a")
        assert [(await replay.reply(ASK)).text for _ in range(2)] == ["one", "two"]
        with pytest.raises(NotRecordedError):
            await replay.reply(ASK)


async def test_occurrences_count_across_models_because_the_name_is_not_part_of_the_key(sink: JsonLines) -> None:
    enter_unit("a")
    await Recorder(Scripted("one"), sink).reply(ASK)
    await Recorder(Scripted("two"), sink).reply(ASK)
    enter_unit("a")
    replay = Replay(sink.path)
    assert [(await replay.reply(ASK)).text for _ in range(2)] == ["one", "two"]


DIFFERENT = {
    "purpose": replace(ASK, purpose=Purpose.DOCTOR),
    "text": replace(ASK, messages=(Message("system", "s"), Message("user", "v"))),
    "role": replace(ASK, messages=(Message("system", "s"), Message("assistant", "u"))),
    "image": replace(ASK, messages=(Message("system", "s"), Message("user", "u", images=(Image("i"),)))),
    "call": replace(ASK, messages=(*ASK.messages, Message("assistant", "", tool_calls=(ToolCall("1", "t", "{}"),)))),
    "tools": replace(ASK, tools=(Tool("t", "d", {}),)),
    "choice": replace(ASK, tools=(Tool("t", "d", {}),), tool_choice="required"),
    "schema": replace(ASK, schema=Opinion),
    "temperature": replace(ASK, temperature=0.5),
}


@pytest.mark.parametrize("different", DIFFERENT.values(), ids=DIFFERENT)
async def test_everything_in_a_request_is_part_of_its_key(sink: JsonLines, different: Request) -> None:
    enter_unit("a")
    await Recorder(Scripted("one"), sink).reply(ASK)
    enter_unit("a")
    with pytest.raises(NotRecordedError):
        await Replay(sink.path).reply(different)


async def test_the_payload_is_not_part_of_the_key_and_is_not_recorded(sink: JsonLines) -> None:
    enter_unit("a")
    await Recorder(Scripted("one"), sink).reply(replace(ASK, payload={"secret": "of the role"}))
    enter_unit("a")
    assert (await Replay(sink.path).reply(ASK)).text == "one"
    assert "of the role" not in sink.path.read_text()


@pytest.mark.parametrize(
    "error",
    [e for e in vars(base).values() if isinstance(e, type) and issubclass(e, ModelError) and e is not ModelError],
    ids=lambda error: error.kind,
)
async def test_a_recorded_error_is_raised_again_as_the_same_kind(sink: JsonLines, error: type[ModelError]) -> None:
    enter_unit("a")
    with pytest.raises(error):
        await Recorder(Scripted(error("went wrong")), sink).reply(ASK)
    enter_unit("a")
    with pytest.raises(error, match="went wrong") as again:
        await Replay(sink.path).reply(ASK)
    assert type(again.value) is error


async def test_usage_tool_calls_and_notes_come_back(sink: JsonLines) -> None:
    said = Reply("", tool_calls=(ToolCall("1", "t", '{"a": 1}'),), usage=Usage(1, 2, None, 0, 3, 2), notes=("clipped",))
    enter_unit("a")
    await Recorder(Scripted(said), sink).reply(ASK)
    enter_unit("a")
    assert await Replay(sink.path).reply(ASK) == said


@pytest.mark.parametrize(
    "text", ['{"diagnosis": "Flu", "sure": true}', 'Here:\n```json\n{"diagnosis":"Flu","sure":true}\n```']
)
async def test_structured_replies_are_validated_again(sink: JsonLines, text: str) -> None:
    request = replace(ASK, schema=Opinion)
    enter_unit("a")
    await Recorder(Scripted(Reply(text, parsed=Opinion(diagnosis="Flu", sure=True))), sink).reply(request)
    enter_unit("a")
    assert (await Replay(sink.path).reply(request)).parsed == Opinion(diagnosis="Flu", sure=True)


async def test_a_structured_reply_that_no_longer_fits_is_malformed(sink: JsonLines) -> None:
    request = replace(ASK, schema=Opinion)
    enter_unit("a")
    await Recorder(Scripted('{"diagnosis": "Flu"}'), sink).reply(request)
    enter_unit("a")
    with pytest.raises(MalformedError, match="sure: field required"):
        await Replay(sink.path).reply(request)


async def test_an_incomplete_last_line_is_skipped(sink: JsonLines) -> None:
    enter_unit("a")
    recorder = Recorder(Scripted("one", "two"), sink)
    await recorder.reply(ASK)
    await recorder.reply(ASK)
    sink.path.write_bytes(sink.path.read_bytes()[:-20])
    enter_unit("a")
    replay = Replay(sink.path)
    assert (await replay.reply(ASK)).text == "one"
    with pytest.raises(NotRecordedError):
        await replay.reply(ASK)


PLACE = '"unit": "a", "key": "k", "n": 0'


@pytest.mark.parametrize(
    "line",
    [
        *("not json", "[]", "3", '{"unit": "a"}', f"{{{PLACE}}}", f'{{{PLACE}, "reply": 3}}'),
        *(f'{{{PLACE}, "error": {{"kind": "auth"}}}}', f'{{{PLACE}, "error": {{"kind": {{}}, "message": ""}}}}'),
        f'{{{PLACE}, "reply": {{"text": ""}}, "request": true}}',
        '{"unit": [], "key": "k", "n": 0, "reply": {"text": ""}}',
        '{"unit": "a", "key": "k", "n": Infinity, "reply": {"text": ""}}',
    ],
)
async def test_a_line_that_is_not_an_entry_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "kept.jsonl").write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"kept\.jsonl line 1: not an entry of a recording"):
        Replay(tmp_path / "kept.jsonl")


async def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.jsonl: cannot be read"):
        Replay(tmp_path / "gone.jsonl")


async def test_an_encounter_with_an_undo_replays_as_it_ended(sink: JsonLines) -> None:
    lines = ["Wrong?", ":undo", "Right?", ":diagnose Migraine"]
    patient = Scripted("no", "yes")
    enter_unit("a")
    first = Meeting(Recorder(Human(lambda prompt: lines.pop(0), io.StringIO()), sink), Recorder(patient, sink))
    before = await first.hold(Tape())
    enter_unit("a")
    replay = Replay(sink.path)
    after = await Meeting(replay, replay).hold()
    assert [t.text for t in after.turns] == ["Right?", "yes", "DIAGNOSIS READY: Migraine"]
    assert after.turns == before.turns
