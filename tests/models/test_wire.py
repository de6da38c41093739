"""The bodies that are sent through both APIs, and the answers that are read: against a server in another process."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from endpoint_support import APIS, Connect, Hypothesis, ask
from scripted_server import ScriptedServer

from agentclinic.errors import InputError
from agentclinic.models import base, wire
from agentclinic.models.base import Image, Message, Purpose, Request, ToolCall
from agentclinic.models.wire import CAPS, image_url
from agentclinic.results.turn import Usage

pytestmark = pytest.mark.anyio

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


# Settings


async def test_the_users_settings_are_sent_but_never_model_or_input(connect: Connect, server: ScriptedServer) -> None:
    settings = {"max_output_tokens": 99, "store": False, "top_p": 0.5, "model": "other", "input": "other"}
    await connect(responses={**settings, "messages": [], "stream": True}, llm_api="responses").reply(ask())
    body = server.bodies()[0]
    assert body["model"] == "scripted"
    assert body["input"][0]["content"] == "You are a patient."
    assert body | {"max_output_tokens": 99, "store": False, "top_p": 0.5} == body
    assert "stream" not in body
    assert "messages" not in body


GPT_5 = {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}, "temperature": 0.3}


@pytest.mark.parametrize("name", ["gpt-5", "gpt-5-mini", "openai/gpt-5.1", "gpt5"])
async def test_gpt_5_gets_reasoning_and_text_and_no_temperature(
    name: str, connect: Connect, server: ScriptedServer
) -> None:
    await connect(name, responses=GPT_5, llm_api="responses").reply(ask(temperature=0.0))
    await connect(name, responses=GPT_5, llm_api="chat").reply(ask(temperature=0.0))
    responses, chat = server.bodies()
    assert (responses["reasoning"], responses["text"]) == ({"effort": "low"}, {"verbosity": "low"})
    assert (chat["reasoning_effort"], chat["verbosity"]) == ("low", "low")
    assert "temperature" not in responses
    assert "temperature" not in chat


@pytest.mark.parametrize("name", ["gpt-4.1", "llama", "my-gpt-5"])
async def test_other_models_get_temperature_and_neither_reasoning_nor_text(
    name: str, connect: Connect, server: ScriptedServer
) -> None:
    for api in APIS:
        await connect(name, responses=GPT_5, llm_api=api).reply(ask())
        await connect(name, responses=GPT_5, llm_api=api).reply(ask(temperature=0.0))
    bodies = server.bodies()
    assert [body["temperature"] for body in bodies] == [0.3, 0.0, 0.3, 0.0]
    assert not any({"reasoning", "text", "reasoning_effort", "verbosity"} & set(body) for body in bodies)


async def test_chat_gets_the_settings_under_its_own_names(connect: Connect, server: ScriptedServer) -> None:
    settings = {"max_output_tokens": 99, "seed": 1, "truncation": "auto", "instructions": "Be kind."}
    await connect(responses=settings, llm_api="chat").reply(ask())
    body = server.bodies()[0]
    assert (body["max_tokens"], body["seed"]) == (99, 1)
    assert body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert not {"max_output_tokens", "truncation", "instructions", "max_completion_tokens"} & set(body)


@pytest.mark.parametrize("name", ["gpt-5-mini", "llama"])
async def test_explicit_settings_are_sent_whatever_the_models_name_and_win(
    name: str, connect: Connect, server: ScriptedServer
) -> None:
    explicit = {"temperature": 0.1, "top_p": 0.9, "max_output_tokens": 7000, "reasoning_effort": "high"}
    for api in APIS:
        endpoint = connect(name, responses={**GPT_5, "max_tokens": 20}, llm_api=api)
        endpoint.always({"patient": explicit, "doctor": {}}.__getitem__)
        await endpoint.reply(ask(purpose=Purpose.PATIENT, temperature=0.0))
        await endpoint.reply(ask(purpose=Purpose.DOCTOR, temperature=0.0))
    responses, unasked, chat, _ = server.bodies()
    assert [responses[key] for key in ("temperature", "top_p", "max_output_tokens")] == [0.1, 0.9, 7000]
    assert [chat[key] for key in ("temperature", "top_p", "max_tokens")] == [0.1, 0.9, 7000]
    assert responses["reasoning"] == {"effort": "high"}
    assert chat["reasoning_effort"] == "high"
    assert "max_tokens" not in responses
    await connect("llama", llm_api="chat").always(lambda _: {"reasoning_effort": "low"}).reply(ask())
    assert "max_tokens" not in server.bodies()[-1], "a model that reasons gets no cap of ours"
    assert unasked.get("temperature") == (None if name == "gpt-5-mini" else 0.0), "another purpose has its own"


# Caps


@pytest.mark.parametrize("api", APIS)
async def test_each_purpose_has_an_output_cap_below_the_users(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    def caps() -> list[int | None]:
        name = "max_output_tokens" if api == "responses" else "max_tokens"
        return [body.get(name) for body in server.bodies()]

    endpoint = connect(llm_api=api)
    await endpoint.reply(ask(purpose=Purpose.PATIENT))
    await endpoint.reply(ask(purpose=Purpose.QUERY))
    await connect(llm_api=api, responses={"max_output_tokens": 100}).reply(ask(purpose=Purpose.PATIENT))
    await connect(llm_api=api, responses={"max_output_tokens": 9000}).reply(ask(purpose=Purpose.PATIENT))
    assert caps() == [CAPS[Purpose.PATIENT], None, 100, CAPS[Purpose.PATIENT]]


async def test_a_doctors_structured_reply_may_be_as_long_as_a_plan(connect: Connect, server: ScriptedServer) -> None:
    server.control(rules=[{"match": {}, "reply": '{"diagnosis": "Gout", "probability": 0.5}'}])
    await connect().reply(ask(purpose=Purpose.DOCTOR, schema=Hypothesis))
    assert server.bodies()[0]["max_output_tokens"] == CAPS[Purpose.PLANNER]


# Images


@pytest.mark.parametrize("api", APIS)
async def test_an_image_is_sent_by_its_address_or_as_a_data_url(
    api: str, connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    file = tmp_path / "skin.dat"
    file.write_bytes(PIXEL)
    images = (Image("https://example.org/a.jpg"), Image(str(file)), Image(file.as_uri()))
    await connect(llm_api=api).reply(Request(Purpose.DOCTOR, (Message("user", "Look.", images=images),)))
    data = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    urls = ["https://example.org/a.jpg", data, data]
    body = server.bodies()[0]
    if api == "responses":
        text, *shown = body["input"][0]["content"]
        assert text == {"type": "input_text", "text": "Look."}
        assert shown == [{"type": "input_image", "image_url": url} for url in urls]
    else:
        text, *shown = body["messages"][0]["content"]
        assert text == {"type": "text", "text": "Look."}
        assert shown == [{"type": "image_url", "image_url": {"url": url}} for url in urls]


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"GIF89a", "gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
    ],
)
async def test_the_type_of_an_image_is_read_from_its_content(
    start: bytes, kind: str, connect: Connect, server: ScriptedServer, tmp_path: Path
) -> None:
    file = tmp_path / "image.png"
    file.write_bytes(start)
    message = Message("user", "", images=(Image(str(file)),))
    await connect().reply(Request(Purpose.DOCTOR, (message,)))
    assert server.bodies()[0]["input"][0]["content"][0]["image_url"].startswith(f"data:image/{kind};base64,")


async def test_an_image_that_cannot_be_sent_is_named(connect: Connect, tmp_path: Path) -> None:
    text, large = tmp_path / "text.png", tmp_path / "large.png"
    text.write_text("not an image")
    with large.open("wb") as file:
        file.truncate(21 * 2**20)
    endpoint = connect()
    cases = {
        text: "text.png: not a PNG",
        tmp_path / "absent.png": "absent.png: image cannot be read",
        large: "large.png: image has 21 MB",
        tmp_path: "not an image file",
    }
    for path, message in cases.items():
        request = Request(Purpose.DOCTOR, (Message("user", "Look.", images=(Image(str(path)),)),))
        with pytest.raises(InputError, match=message):
            await endpoint.reply(request)


@pytest.mark.parametrize("address", ["a\0b.png", "file:///a%00b", "file://[x", "~nosuchuser/a.png", "a" * 3000, "/"])
def test_an_address_without_an_image_is_an_error_that_names_it(address: str) -> None:
    with pytest.raises(InputError, match=r"image|home folder"):
        image_url(address)


# Clipping


async def test_a_prompt_that_is_too_long_loses_its_oldest_part_with_a_note(
    connect: Connect, server: ScriptedServer
) -> None:
    lines = [f"Turn {n}: " + "x" * 30 for n in range(50)]
    reply = await connect(clip_prompt=True, max_prompt_len=500).reply(ask("\n".join(lines), system="S" * 200))
    system, user = (message["content"] for message in server.bodies()[0]["input"])
    assert system == "S" * 200
    assert len(system) + len(user) <= 500
    marker, *kept = user.split("\n")
    assert marker == "[earlier dialogue left out]"
    assert kept == lines[-len(kept) :]
    left_out = len("\n".join(lines)) - len("\n".join(kept))
    assert reply.notes == (f"prompt clipped: {left_out} characters left out",)


async def test_a_prompt_that_fits_or_need_not_fit_is_unchanged(connect: Connect, server: ScriptedServer) -> None:
    fits = await connect(clip_prompt=True, max_prompt_len=10_000).reply(ask("x" * 9000))
    free = await connect(clip_prompt=False, max_prompt_len=256).reply(ask("x" * 9000))
    assert (fits.notes, free.notes) == ((), ())
    assert all(body["input"][1]["content"] == "x" * 9000 for body in server.bodies())


async def test_older_messages_are_clipped_first_and_none_is_dropped(connect: Connect, server: ScriptedServer) -> None:
    messages = (
        Message("system", "S"),
        Message("user", "a" * 300),
        Message("assistant", "b" * 300),
        Message("user", "c" * 200),
    )
    await connect(clip_prompt=True, max_prompt_len=400).reply(Request(Purpose.DOCTOR, messages))
    contents = [message["content"] for message in server.bodies()[0]["input"]]
    assert contents[0] == "S"
    assert contents[1] == "[earlier dialogue left out]\n"
    assert contents[2].endswith("b")
    assert contents[3] == "c" * 200
    assert sum(map(len, contents)) == 400


async def test_instructions_longer_than_the_limit_are_cut_at_the_end(connect: Connect, server: ScriptedServer) -> None:
    request = ask("u" * 100, system="".join(f"{n:04}" for n in range(500)))
    await connect(clip_prompt=True, max_prompt_len=300).reply(request)
    system = server.bodies()[0]["input"][0]["content"]
    assert system.startswith("000000010002")
    assert sum(len(message["content"]) for message in server.bodies()[0]["input"]) == 300


# Answers


@pytest.mark.parametrize("api", APIS)
async def test_thinking_is_not_part_of_the_answer(api: str, connect: Connect, server: ScriptedServer) -> None:
    server.control(rules=[{"reply": "<think>Is it DIAGNOSIS READY: gout? Not yet.</think>\n\nSince when?"}])
    assert (await connect(llm_api=api).reply(ask())).text == "Since when?"


async def test_thinking_alone_is_not_an_answer(connect: Connect, server: ScriptedServer) -> None:
    server.control(rules=[{"reply": "<think>Let me see. The patient"}])
    with pytest.raises(base.MalformedError):
        await connect(tries=1).reply(ask())


async def test_answers_of_unknown_form_are_server_errors(connect: Connect, server: ScriptedServer) -> None:
    raws: list[Any] = [{}, [], "text", None, 7, {"output": 3}, {"choices": []}, {"choices": [{"message": 1}]}]
    for api in APIS:
        for raw in raws:
            server.control(rules=[{"raw": raw}])
            with pytest.raises(base.ServerError):
                await connect(llm_api=api, tries=1).reply(ask())


async def test_an_error_inside_a_choice_is_found(connect: Connect, server: ScriptedServer) -> None:
    error = {"code": 429, "message": "The provider is busy"}
    server.control(rules=[{"raw": {"choices": [{"error": error, "message": {"content": ""}}]}}])
    with pytest.raises(base.RateLimitError, match="The provider is busy"):
        await connect(llm_api="chat", tries=1).reply(ask())


@pytest.mark.parametrize(
    "odd",
    [{"content": None}, {"tool_calls": "x"}, {"tool_calls": [7]}, {"content": ["x", {"text": 7}]}, {"refusal": 7}],
)
def test_a_chat_message_of_odd_form_has_no_text_and_no_calls(odd: dict[str, Any]) -> None:
    with pytest.raises(base.MalformedError, match="without any text"):
        wire.read_answer("chat", {"choices": [{"message": {"role": "assistant", **odd}}]}, "host")


def test_the_text_of_a_response_may_be_given_without_parts() -> None:
    plain = {"type": "message", "content": "Since Monday."}
    parts = {"type": "message", "content": [{"type": "output_text", "text": "It "}, {"text": "hurts."}, 7]}
    answer = wire.read_answer("responses", {"output": [plain, parts, "odd"], "model": "m" * 999}, "host")
    assert answer == wire.Answer("Since Monday.\nIt hurts.", (), False, "m" * wire.LONGEST_NAME)


def test_arguments_of_a_tool_call_may_be_an_object_or_absent() -> None:
    calls = [{"id": "a", "function": {"name": "weigh", "arguments": {"times": 2}}}, {"function": {"name": "rest"}}]
    answer = wire.read_answer("chat", {"choices": [{"message": {"tool_calls": calls}}]}, "host")
    assert answer.tool_calls == (ToolCall("a", "weigh", '{"times": 2}'), ToolCall("call_1", "rest", "{}"))


def test_a_content_filter_is_a_refusal_in_either_api() -> None:
    chat: wire.Json = {"choices": [{"finish_reason": "content_filter", "message": {"content": "I"}}]}
    responses: wire.Json = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}
    for api, body in zip(APIS, (responses, chat), strict=True):
        with pytest.raises(base.RefusedError, match="content filter"):
            wire.read_answer(api, body, "host")


def test_embeddings_are_put_in_the_order_of_the_texts() -> None:
    rows = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    assert json.loads(wire.read_embeddings({"data": rows}, "host").text) == [[1.0], [2.0]]
    for data in (None, [], "text", [7]):
        with pytest.raises(base.ServerError, match="without embeddings"):
            wire.read_embeddings({"data": data}, "host")


@pytest.mark.parametrize("odd", [True, -1, 1.5, "7", 10**12])
def test_a_count_of_tokens_that_cannot_be_one_is_unknown(odd: object) -> None:
    assert wire.read_usage({"usage": {"input_tokens": odd, "completion_tokens": 3}}) == Usage(None, 3)
