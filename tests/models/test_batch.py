"""Requests through a provider's batch endpoint, played by the scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from endpoint_support import Connect, ask
from scripted_server import ScriptedServer

from agentclinic.errors import InputError
from agentclinic.models import batch
from agentclinic.models.base import Purpose
from agentclinic.models.batch import Batches, Captured, FromBatch, NotAnsweredError, capture, keys_noted
from agentclinic.models.endpoint import Endpoint, HttpAnswer

pytestmark = pytest.mark.anyio

KEYS = ("a", "b", "c", "d")


async def requests_of(endpoint: Endpoint) -> dict[str, bytes]:
    """What the endpoint would send for each key."""
    made = {}
    for key in KEYS:
        with pytest.raises(Captured) as caught:
            await Endpoint(endpoint.name, endpoint.client, send=capture).reply(question(key))
        made[key] = caught.value.content
    return made


def question(key: str) -> Any:
    return ask(f"Is {key} the same as {key}?", purpose=Purpose.MODERATOR)


async def submitted(path: Path, endpoint: Endpoint, said: list[str]) -> Batches:
    batches = Batches(path, endpoint, Purpose.MODERATOR)
    requests = await requests_of(endpoint)
    batches.plan(await batches.api(), requests)
    await batches.submit(requests, said.append)
    return batches


def calls(server: ScriptedServer, api: str, key: str) -> list[Any]:
    """What the requests to one part of the server have under a key: uploads, batches, deletions."""
    return [entry["body"][key] for entry in server.log() if entry["api"] == api and key in entry["body"]]


async def test_the_answers_of_a_batch_are_those_of_single_requests(
    connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    endpoint, said, shown = connect("judge"), list[str](), list[int]()
    plain = [await endpoint.reply(question(key)) for key in KEYS]
    sent = server.bodies()
    server.control(batch_polls=2)

    batches = await submitted(tmp_path / "note.json", endpoint, said)
    assert keys_noted(batches.path) == batches.keys == set(KEYS)
    assert await batches.wait(shown.append, said.append)
    answers = await batches.answers()
    through = [FromBatch(answers[key], endpoint, lambda: "no") for key in KEYS]
    replies = [
        await Endpoint("judge", endpoint.client, send=one.send).reply(question(key))
        for key, one in zip(KEYS, through, strict=True)
    ]
    await batches.finish(said.append)

    assert [line["body"] for line in calls(server, "files", "lines")[0]] == sent
    assert [reply.text for reply in replies] == [reply.text for reply in plain]
    assert [one.usage.input_tokens for one in through] == [reply.usage.input_tokens for reply in plain]
    assert shown[-1] == len(KEYS)
    assert len(calls(server, "files", "delete")) == 2
    assert not batches.path.exists()


async def test_more_requests_than_fit_go_in_several_batches(
    connect: Connect, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(batch, "MOST_REQUESTS", 3)
    batches = await submitted(tmp_path / "requests.json", connect("judge"), said)
    assert [len(upload) for upload in calls(server, "files", "lines")] == [3, 1]
    assert len(batches.ids) == 2
    await batches.wait(lambda _: None, said.append)
    assert set(await batches.answers()) == set(KEYS)
    await batches.finish(said.append)
    assert len(calls(server, "files", "delete")) == 4

    monkeypatch.setattr(batch, "MOST_BYTES", 1000)
    await submitted(tmp_path / "bytes.json", connect("other"), said)
    sizes = [sum(len(json.dumps(line)) + 1 for line in upload) for upload in calls(server, "files", "lines")[2:]]
    assert len(sizes) > 1
    assert max(sizes) <= 1000


async def test_a_batch_whose_creation_was_not_answered_is_found_again(
    connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(
        rules=[{"match": {"api": api}, "fault": "500", "times": 1} for api in ("files", "batches")]
        + [{"match": {"api": "poll"}, "fault": "503", "times": 2}]
    )
    said: list[str] = []
    batches = await submitted(tmp_path / "note.json", connect("judge", tries=2), said)
    assert await batches.wait(lambda _: None, said.append)
    assert (len(calls(server, "files", "lines")), len(calls(server, "batches", "endpoint"))) == (1, 1)
    assert any("checking the batch again" in message for message in said), "an outage is waited for"


async def test_another_process_continues_with_what_was_submitted(
    connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    note, said = tmp_path / "note.json", list[str]()
    first = await submitted(note, connect("judge"), said)
    second = await submitted(note, connect("judge"), said)
    assert second.ids == first.ids
    assert len(calls(server, "files", "lines")) == 1
    with pytest.raises(InputError, match="is about a batch for 'judge'"):
        Batches(note, connect("other"), Purpose.MODERATOR)
    changed = {key: content + b" " for key, content in (await requests_of(connect("judge"))).items()}
    with pytest.raises(InputError, match="other prompts or settings"):
        second.plan("responses", changed)


@pytest.mark.parametrize("content", ["{", "[]", '{"model": "judge"}', '{"extra": 1}'])
async def test_a_damaged_note_is_an_error_that_says_what_to_do(content: str, tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    note.write_text(content)
    with pytest.raises(InputError, match=r"note\.json"):
        keys_noted(note)


@pytest.mark.parametrize("odd", ["..", "../models/mine", "a/b", "a?b", ""])
async def test_a_note_leads_to_no_other_address_at_the_provider(odd: str, tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    about = {"model": "judge", "host": "api.openai.com", "api": "chat", "parts": []}
    note.write_text(json.dumps({**about, "to_delete": ["file-1"]}))
    assert keys_noted(note) == set()

    note.write_text(json.dumps({**about, "to_delete": ["file-1", odd]}))
    with pytest.raises(InputError, match=r"to_delete\.1"):
        keys_noted(note)


@pytest.mark.parametrize(
    "odd",
    [
        {"status": ["completed"], "request_counts": {"completed": 10**12, "failed": 10**400}},
        {"status": {"state": "expired"}, "request_counts": {"completed": -5}},
        {"status": None, "request_counts": [4], "errors": "x"},
    ],
)
async def test_odd_reports_about_a_batch_are_waited_out(
    odd: Any, connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    """A count that was taken at its word kept the progress bar counting for hours."""
    server.control(batch_polls=2, batch_odd=odd)
    said, shown = list[str](), list[int]()
    batches = await submitted(tmp_path / "note.json", connect("judge"), said)
    assert await batches.wait(shown.append, said.append)
    assert all(0 <= done <= len(KEYS) for done in shown)
    assert set(await batches.answers()) == set(KEYS)


@pytest.mark.parametrize("status", [0, 1, True, 199, -200, 600, 10**12, "200", None, 2e2])
async def test_an_answer_with_an_impossible_status_is_no_answer(
    status: Any, connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    said: list[str] = []
    batches = await submitted(tmp_path / "note.json", connect("judge"), said)
    ((first, *_),) = calls(server, "files", "lines")
    entry = {"custom_id": first["custom_id"], "response": {"status_code": status, "body": {"output": []}}}
    server.control(batch_content=json.dumps(entry))
    assert await batches.wait(lambda _: None, said.append)
    assert await batches.answers() == {}
    assert "4 of 4 requests were not answered" in (batches.reason or "")


async def test_a_failure_in_the_batch_is_left_for_the_next_one_and_a_follow_up_needs_leave(
    connect: Connect, server: ScriptedServer
) -> None:
    endpoint = connect("judge")
    busy = FromBatch(HttpAnswer(429, {}, b"{}"), endpoint, lambda: None)
    with pytest.raises(NotAnsweredError, match=r"in the batch: .* answered 429"):
        await busy.send("/responses", b"{}", Purpose.MODERATOR)
    used = FromBatch(HttpAnswer(200, {}, b'{"output": []}'), endpoint, lambda: "the budget is used up")
    assert (await used.send("/responses", b"{}", Purpose.MODERATOR)).status == 200
    with pytest.raises(NotAnsweredError, match="not asked again: the budget is used up"):
        await used.send("/responses", b"{}", Purpose.MODERATOR)
    assert server.log() == []
