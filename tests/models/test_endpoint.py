"""Endpoints against a server in another process, with a fake clock."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from endpoint_support import APIS, KEY, Connect, Hypothesis, Naps, ask
from pydantic import BaseModel, SecretStr
from scripted_server import FAULTS, LONG, ScriptedServer

from agentclinic.config import LLMSettings, RuntimeSettings
from agentclinic.errors import ConfigError
from agentclinic.models import base
from agentclinic.models.base import Message, Model, ModelError, Purpose, Request, Tool, ToolCall
from agentclinic.models.endpoint import Client, Clients
from agentclinic.models.gate import Gate
from agentclinic.models.retry import Limiter
from agentclinic.privacy import DataClass
from agentclinic.results.turn import Usage

pytestmark = pytest.mark.anyio


class Opinion(BaseModel):
    hypotheses: list[Hypothesis]
    sure: bool = False


def chain(error: BaseException) -> list[BaseException]:
    """An exception and all its causes, including suppressed ones."""
    found: list[BaseException] = []
    following: BaseException | None = error
    while following is not None:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


WEIGH = Tool(
    "weigh",
    "Weigh the patient.",
    {"type": "object", "properties": {"times": {"type": "integer", "minimum": 1}}, "required": ["times"]},
)


# Asking


async def test_an_endpoint_is_a_model_with_the_name_of_its_model(connect: Connect) -> None:
    endpoint = connect("org/some-model")
    assert isinstance(endpoint, Model)
    assert endpoint.name == "org/some-model"


@pytest.mark.parametrize("api", APIS)
async def test_a_question_is_answered_with_text_and_usage(api: str, connect: Connect, server: ScriptedServer) -> None:
    server.control(patient="It hurts here.")
    reply = await connect(llm_api=api).reply(ask("x" * 400, system="y" * 99))
    assert reply.text == "It hurts here."
    assert reply.notes == ()
    # The server counts a token for four characters: 99 + line break + 400, half of it cached.
    assert reply.usage == Usage(125, 3 + 7, 62, 7, requests=1, retries=0)
    assert [entry["api"] for entry in server.log()] == [api]


@pytest.mark.parametrize("api", APIS)
async def test_usage_that_an_endpoint_does_not_report_is_unknown(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    server.fault("no_usage")
    reply = await connect(llm_api=api).reply(ask())
    assert reply.usage == Usage(None, None, None, None)


@pytest.mark.parametrize("purpose", list(Purpose))
async def test_every_request_says_what_it_is_for(purpose: Purpose, connect: Connect, server: ScriptedServer) -> None:
    await connect().reply(ask(purpose=purpose))
    (request,) = server.checks() if purpose is Purpose.CHECK else server.log()
    assert request["headers"]["x-agentclinic-purpose"] == purpose.value


@pytest.mark.parametrize("api", APIS)
async def test_messages_are_sent_in_full_and_in_order_but_the_payload_never(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    messages = (
        Message("system", "Be brief."),
        Message("user", "Hello"),
        Message("assistant", "Good day."),
        Message("user", "Pain?"),
    )
    await connect(llm_api=api).reply(Request(Purpose.DOCTOR, messages, payload={"secret": "truth"}))
    body = server.bodies()[0]
    sent = body["input" if api == "responses" else "messages"]
    said = {"type": "message"} if api == "responses" else {}
    assert sent == [
        {**(said if m.role == "assistant" else {}), "role": m.role, "content": m.content} for m in messages
    ], "llama.cpp's Responses API knows what a model said by its type"
    assert "truth" not in json.dumps(body)
    cap = "max_output_tokens" if api == "responses" else "max_tokens"
    assert set(body) == {"model", "input" if api == "responses" else "messages", cap}


async def test_the_scripted_doctor_asks_then_tests_then_diagnoses(connect: Connect) -> None:
    endpoint, said = connect(), list[str]()
    for _ in range(4):
        reply = await endpoint.reply(ask("\n".join(said) or "Begin.", purpose=Purpose.DOCTOR))
        said.append(f"Doctor: {reply.text}")
    assert "REQUEST TEST:" in said[2]
    assert "DIAGNOSIS READY:" in said[3]


async def test_an_unpaired_surrogate_in_an_answer_is_replaced(connect: Connect, server: ScriptedServer) -> None:
    server.control(patient="broken \ud83d emoji")
    reply = await connect().reply(ask())
    assert reply.text == "broken \ufffd emoji"


# Which API


async def test_auto_falls_back_to_chat_once_and_remembers(connect: Connect, server: ScriptedServer) -> None:
    server.control(responses=False)
    endpoint = connect()
    replies = [await endpoint.reply(ask(f"{n}")) for n in range(3)]
    assert [entry["api"] for entry in server.log()] == ["responses", "chat", "chat", "chat"]
    assert all(reply.notes == ("answered by chat completions",) for reply in replies)
    assert [(r.usage.requests, r.usage.retries) for r in replies] == [(2, 0), (1, 0), (1, 0)]


async def test_models_at_one_address_share_what_auto_found(server: ScriptedServer) -> None:
    server.control(responses=False)
    async with Clients() as clients:
        for name in ("first", "second"):
            await clients.endpoint(name, base_url=server.base_url).reply(ask())
    assert [entry["api"] for entry in server.log()] == ["responses", "chat", "chat"]


async def test_auto_falls_back_even_with_many_requests_at_once(connect: Connect, server: ScriptedServer) -> None:
    server.control(responses=False)
    endpoint = connect(workers=20)
    replies = await asyncio.gather(*(endpoint.reply(ask(f"{n}")) for n in range(20)))
    assert len(replies) == 20
    assert sum(entry["api"] == "chat" for entry in server.log()) == 20


@pytest.mark.parametrize(
    ("api", "other", "said"), [("responses", "chat", "only chat completions"), ("chat", "responses", "only the Resp")]
)
async def test_a_set_api_rules_out_a_fallback_and_the_error_names_the_api_to_set(
    api: str, other: str, said: str, connect: Connect, server: ScriptedServer
) -> None:
    server.control(**{api: False})
    with pytest.raises(base.BadRequestError, match=f"{said}.*set llm.runtime.llm_api to {other} or auto"):
        await connect(llm_api=api).reply(ask())
    assert [entry["api"] for entry in server.log()] == [api]


async def test_an_address_without_the_set_api_or_the_other_is_reported_as_wrong(
    connect: Connect, server: ScriptedServer
) -> None:
    with pytest.raises(base.BadRequestError, match="check base_url"):
        await connect(base_url=f"{server.origin}/wrong", llm_api="responses").reply(ask())


async def test_a_server_that_does_not_answer_when_asked_for_the_other_api_keeps_the_first_error(
    connect: Connect, server: ScriptedServer
) -> None:
    server.control(responses=False, rules=[{"match": {"purpose": "check"}, "fault": "reset"}])
    with pytest.raises(base.BadRequestError, match="check base_url"):
        await connect(llm_api="responses").reply(ask())


async def test_an_address_with_neither_api_is_reported_as_wrong(connect: Connect, server: ScriptedServer) -> None:
    endpoint = connect(base_url=f"{server.origin}/wrong")
    for _ in range(2):
        with pytest.raises(base.BadRequestError, match="check base_url"):
            await endpoint.reply(ask())
    assert endpoint.client.api is None


async def test_an_unknown_model_does_not_cause_a_fallback(connect: Connect, server: ScriptedServer) -> None:
    server.fault("no_model")
    with pytest.raises(base.BadRequestError, match=r"unknown model 'scripted'.*agentclinic probe"):
        await connect().reply(ask())
    assert [entry["api"] for entry in server.log()] == ["responses"]


# Tools


@pytest.mark.parametrize("api", APIS)
async def test_a_required_tool_is_called(api: str, connect: Connect, server: ScriptedServer) -> None:
    reply = await connect(llm_api=api).reply(ask(tools=(WEIGH,), tool_choice="required"))
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [("weigh", {"times": 1})]
    assert reply.tool_calls[0].id.startswith("call_")
    assert reply.text == ""
    body = server.bodies()[0]
    described = {"name": "weigh", "description": "Weigh the patient.", "parameters": WEIGH.parameters}
    flat = {"type": "function", **described, "strict": False}
    assert body["tools"] == [flat if api == "responses" else {"type": "function", "function": described}]
    assert body["tool_choice"] == "required"


@pytest.mark.parametrize("api", APIS)
async def test_a_tool_result_is_sent_after_its_call(api: str, connect: Connect, server: ScriptedServer) -> None:
    call = ToolCall("call_7", "weigh", '{"times":1}')
    messages = (
        Message("user", "Go on."),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "81 kg", tool_call_id="call_7"),
    )
    await connect(llm_api=api).reply(Request(Purpose.DOCTOR, messages, tools=(WEIGH,)))
    body = server.bodies()[0]
    if api == "responses":
        assert body["input"][1:] == [
            {"type": "function_call", "call_id": "call_7", "name": "weigh", "arguments": '{"times":1}'},
            {"type": "function_call_output", "call_id": "call_7", "output": "81 kg"},
        ]
    else:
        function = {"name": "weigh", "arguments": '{"times":1}'}
        assert body["messages"][1:] == [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_7", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "call_7", "content": "81 kg"},
        ]
    assert "tool_choice" not in body


FENCED = """I will weigh first.
```json
{"name": "weigh", "arguments": {"times": 2}}
```


"""


async def test_a_tool_call_written_as_text_counts_and_tools_are_not_tried_again(
    connect: Connect, server: ScriptedServer
) -> None:
    endpoint, request = connect(), ask(tools=(WEIGH,), tool_choice="required")
    server.control(rules=[{"reply": FENCED}])
    reply = await endpoint.reply(request)
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [("weigh", {"times": 2})]
    assert reply.text == ""
    assert "the tool call was written as text" in reply.notes
    sent = len(server.log())
    with pytest.raises(base.BadRequestError, match="wrote an earlier one as text"):
        await endpoint.reply(request)
    assert len(server.log()) == sent, "nothing is sent"
    assert (await endpoint.reply(ask())).text, "requests without tools go on"


async def test_a_model_that_calls_tools_may_write_one_as_text(connect: Connect, server: ScriptedServer) -> None:
    endpoint, request = connect(), ask(tools=(WEIGH,), tool_choice="required")
    server.control(rules=[{"match": {"nth": 2}, "reply": FENCED}])
    for _ in range(3):
        assert (await endpoint.reply(request)).tool_calls[0].name == "weigh"


@pytest.mark.parametrize(
    "text", ['{"name": "measure", "arguments": {}}', '{"name": "weigh"}', "weigh", '{"name": "weigh", "arguments"']
)
async def test_other_text_is_not_a_tool_call(connect: Connect, server: ScriptedServer, text: str) -> None:
    server.control(rules=[{"reply": text}])
    reply = await connect().reply(ask(tools=(WEIGH,), tool_choice="required"))
    assert (reply.tool_calls, reply.text) == ((), text)


@pytest.mark.parametrize("api", APIS)
async def test_wrong_tool_arguments_are_left_to_the_caller(api: str, connect: Connect, server: ScriptedServer) -> None:
    endpoint, request = connect(llm_api=api), ask(tools=(WEIGH,), tool_choice="required")
    server.fault("bad_tool_args")
    assert (await endpoint.reply(request)).tool_calls[0].arguments == '{"no_such_argument": [1]}'
    server.fault("broken_tool_args")
    assert (await endpoint.reply(request)).tool_calls[0].arguments == '{"half": '
    server.fault("prose_instead_of_tool")
    reply = await endpoint.reply(request)
    assert reply.tool_calls == ()
    assert reply.text == "I would call the tool now."


# Structured output


@pytest.mark.parametrize("api", APIS)
async def test_a_schema_is_sent_as_format_and_in_the_prompt_and_the_reply_is_validated(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    reply = await connect(llm_api=api).reply(ask(schema=Opinion))
    assert reply.parsed == Opinion(hypotheses=[], sure=False)
    assert reply.notes == ()
    body = server.bodies()[0]
    if api == "responses":
        form = body["text"]["format"]
        assert form.pop("type") == "json_schema"
    else:
        assert body["response_format"]["type"] == "json_schema"
        form = body["response_format"]["json_schema"]
    assert (form["name"], form["strict"]) == ("Opinion", True)
    assert form["schema"]["required"] == ["hypotheses", "sure"]
    assert form["schema"]["$defs"]["Hypothesis"]["additionalProperties"] is False
    first, *others = body["input" if api == "responses" else "messages"]
    assert first["role"] == "system"
    assert first["content"].startswith("You are a patient.\n\n")
    assert '"Hypothesis"' in first["content"]
    assert [message["role"] for message in others] == ["user"]


async def test_our_format_is_merged_into_the_users_text_settings(connect: Connect, server: ScriptedServer) -> None:
    await connect("gpt-5", responses={"text": {"verbosity": "low", "format": {"type": "text"}}}).reply(
        ask(schema=Opinion)
    )
    text = server.bodies()[0]["text"]
    assert text["verbosity"] == "low"
    assert text["format"]["name"] == "Opinion"


async def test_a_schema_with_free_keys_is_not_strict(connect: Connect, server: ScriptedServer) -> None:
    class Tally(BaseModel):
        votes: dict[str, int]

    server.control(rules=[{"reply": '{"votes": {"flu": 3}}'}])
    reply = await connect().reply(ask(schema=Tally))
    assert reply.parsed == Tally(votes={"flu": 3})
    assert server.bodies()[0]["text"]["format"]["strict"] is False


@pytest.mark.parametrize(
    "text",
    [
        '{"hypotheses": [], "sure": true}',
        '```json\n{"hypotheses": [], "sure": true}\n```',
        '<think>Is it {flu}? Or {"flu": 1}?</think>\nSure:\n{"hypotheses": [], "sure": true} - done.',
        '{"hypotheses": [], "sure": true, "comment": "two\nlines"}',
    ],
)
async def test_the_object_is_found_among_fences_and_other_text(
    text: str, connect: Connect, server: ScriptedServer
) -> None:
    server.control(rules=[{"reply": text}])
    reply = await connect().reply(ask(schema=Opinion))
    assert reply.parsed == Opinion(hypotheses=[], sure=True)
    assert len(server.log()) == 1


async def test_the_right_object_in_a_fence_needs_no_repair(connect: Connect, server: ScriptedServer) -> None:
    server.fault("fenced_json")
    reply = await connect().reply(ask(schema=Opinion))
    assert reply.parsed == Opinion(hypotheses=[])
    assert reply.notes == ()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", ["invalid_schema_json", "prose_instead_of_json"])
async def test_a_wrong_reply_is_repaired_in_one_more_turn(
    api: str, fault: str, connect: Connect, server: ScriptedServer
) -> None:
    server.fault(fault, times=1)
    reply = await connect(llm_api=api).reply(ask(schema=Opinion))
    assert reply.parsed == Opinion(hypotheses=[])
    assert reply.notes == ("answer repaired once",)
    first, second = (body["input" if api == "responses" else "messages"] for body in server.bodies())
    assert second[:2] == first
    assert [message["role"] for message in second[2:]] == ["assistant", "user"]
    wrong = "hypotheses: field required" if fault == "invalid_schema_json" else "contains no JSON object"
    assert wrong in second[3]["content"]
    assert reply.usage.requests == 2
    assert reply.usage.retries == 0
    assert reply.usage.reasoning_tokens == 14


@pytest.mark.parametrize("api", APIS)
async def test_a_form_that_the_prompt_describes_is_sent_once(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    server.control(rules=[{"reply": '{"hypotheses": []}'}])
    await connect(llm_api=api).reply(ask(schema=Opinion, described=True))
    assert json.dumps(server.bodies()[0]).count("additionalProperties") == 2, "the object and its hypotheses, once"
    assert "JSON schema" not in str(server.bodies()[0])


async def test_the_schema_is_in_the_prompt_too_once_it_was_not_obeyed(connect: Connect, server: ScriptedServer) -> None:
    server.fault("prose_instead_of_json", times=1)
    endpoint, request = connect(llm_api="chat"), ask(schema=Opinion, described=True)
    for _ in range(2):
        assert (await endpoint.reply(request)).parsed is not None
    assert ["JSON schema" in str(body) for body in server.bodies()] == [False, True, True]


async def test_the_schema_is_in_the_prompt_if_the_server_takes_no_formats(
    connect: Connect, server: ScriptedServer
) -> None:
    by_prompt = {"reply": '{"hypotheses": []}', "match": {"text_contains": "JSON schema"}}
    server.control(rules=[by_prompt, {"match": {}, "fault": "reject_format"}])
    reply = await connect(llm_api="chat").reply(ask(schema=Opinion, described=True))
    assert reply.parsed == Opinion(hypotheses=[])


IGNORED = {"match": {"api": "responses"}, "reply": "I think it is Gout."}


async def test_a_server_that_ignores_formats_in_the_responses_api_is_asked_through_chat(
    connect: Connect, server: ScriptedServer
) -> None:
    """As llama.cpp's does."""
    endpoint, request = connect(), ask(schema=Opinion)
    server.control(rules=[IGNORED])
    assert (await endpoint.reply(request)).parsed is not None
    assert (await endpoint.reply(request)).parsed is not None
    assert [entry["api"] for entry in server.log()] == ["responses", "chat", "chat"]


async def test_replies_still_on_their_way_do_not_bring_the_responses_api_back(
    connect: Connect, server: ScriptedServer
) -> None:
    """The requests of several workers are answered after the first of them has changed the API."""
    endpoint, request = connect(), ask(schema=Opinion)
    server.control(rules=[IGNORED])
    replies = await asyncio.gather(*(endpoint.reply(request) for _ in range(8)))
    assert all(reply.parsed is not None for reply in replies)
    assert endpoint.client.api == "chat"


async def test_good_replies_do_not_prove_that_formats_are_obeyed(connect: Connect, server: ScriptedServer) -> None:
    """The prompt asks for the same form, and a model often keeps to it without being made to."""
    endpoint, request = connect(), ask(schema=Opinion)
    server.control(rules=[{"match": {"nth": 2}, "reply": "I think it is Gout."}])
    for _ in range(2):
        assert (await endpoint.reply(request)).parsed is not None
    assert [entry["api"] for entry in server.log()] == ["responses", "responses", "chat"]


async def test_without_chat_completions_the_responses_api_is_used_on(connect: Connect, server: ScriptedServer) -> None:
    endpoint, request = connect(), ask(schema=Opinion)
    server.control(chat=False, rules=[{"match": {"nth": 1}, "reply": "I think it is Gout."}])
    assert (await endpoint.reply(request)).parsed is not None
    assert endpoint.client.api == "responses"


@pytest.mark.parametrize("api", APIS)
async def test_a_reply_that_is_wrong_twice_is_malformed_and_its_tokens_count(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    server.fault("invalid_schema_json")
    with pytest.raises(base.MalformedError, match="no usable structured reply") as caught:
        await connect(llm_api=api).reply(ask(schema=Opinion))
    assert len(server.log()) == 2
    assert caught.value.retries == 0
    assert caught.value.usage is not None
    assert (caught.value.usage.requests, caught.value.usage.reasoning_tokens) == (2, 14)


@pytest.mark.parametrize("text", ['{"hypotheses": [{"diagnosis": "flu", "probability": 0.5}', '{"hypotheses": "fl'])
async def test_an_incomplete_object_is_not_replaced_by_one_nested_in_it(
    text: str, connect: Connect, server: ScriptedServer
) -> None:
    class Lenient(BaseModel):
        hypotheses: list[Hypothesis] = []

    server.control(rules=[{"reply": text}])
    with pytest.raises(base.MalformedError, match="broken or incomplete"):
        await connect().reply(ask(schema=Lenient))


@pytest.mark.parametrize("api", APIS)
async def test_a_server_that_refuses_formats_gets_the_schema_only_in_the_prompt_from_then_on(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    server.control(
        rules=[
            {"fault": "reject_format", "match": {"nth": 1}},
            {"reply": '{"hypotheses": []}', "match": {"text_contains": "JSON schema"}},
        ]
    )
    endpoint = connect(llm_api=api)
    for _ in range(2):
        reply = await endpoint.reply(ask(schema=Opinion))
        assert reply.parsed == Opinion(hypotheses=[])
        assert reply.notes == ("structured output asked for in the prompt only",)
    key = "text" if api == "responses" else "response_format"
    assert [key in body for body in server.bodies()] == [True, False, False]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_server_that_refuses_tools_is_an_error_only_with_tools(
    connect: Connect, server: ScriptedServer, api: str
) -> None:
    server.fault("reject_tools")
    endpoint = connect(llm_api=api)
    with pytest.raises(base.BadRequestError, match="does not support tools"):
        await endpoint.reply(ask(tools=(WEIGH,), tool_choice="required"))
    assert len(server.log()) == 1, "asking again would not help"
    assert (await endpoint.reply(ask())).text


async def test_a_server_error_about_the_format_counts_as_a_refusal(connect: Connect, server: ScriptedServer) -> None:
    complaint = {
        "error": {"message": "body.response_format.type: input should be 'text' or 'json_object'", "code": 500}
    }
    server.control(
        rules=[
            {"raw": complaint, "status": 500, "match": {"nth": 1}},
            {"reply": '{"hypotheses": []}', "match": {"text_contains": "JSON schema"}},
        ]
    )
    reply = await connect(llm_api="chat").reply(ask(schema=Opinion))
    assert reply.parsed == Opinion(hypotheses=[])
    assert "structured output asked for in the prompt only" in reply.notes


async def test_a_tool_call_is_an_answer_even_if_a_schema_is_given(connect: Connect, server: ScriptedServer) -> None:
    server.control(rules=[{"tool_calls": [{"name": "weigh", "arguments": {"times": 2}}]}])
    reply = await connect().reply(ask(schema=Opinion, tools=(WEIGH,)))
    assert reply.parsed is None
    assert reply.tool_calls[0].arguments == '{"times": 2}'


# Faults


PASSING: dict[str, type[ModelError]] = {
    "429": base.RateLimitError,
    "500": base.ServerError,
    "502": base.ServerError,
    "503": base.ServerError,
    "408": base.RequestTimeout,
    "504": base.RequestTimeout,
    "reset": base.ConnectError,
    "200_error": base.ServerError,
    "200_rate_limit": base.RateLimitError,
    "html": base.ServerError,
    "truncated_json": base.ServerError,
    "empty_body": base.ServerError,
    "empty": base.MalformedError,
}
LASTING: dict[str, type[ModelError]] = {
    "refusal": base.RefusedError,
    "content_filter": base.RefusedError,
    "context": base.ContextTooLongError,
    "quota": base.QuotaError,
    "402": base.QuotaError,
    "auth": base.AuthError,
    "403": base.AuthError,
    "bad_request": base.BadRequestError,
    "422": base.BadRequestError,
    "no_model": base.UnknownModelError,
    "redirect": base.BadRequestError,
    "length_empty": base.MalformedError,
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", PASSING)
async def test_a_temporary_fault_is_overcome_and_the_retries_are_counted(
    fault: str, api: str, connect: Connect, server: ScriptedServer, naps: Naps
) -> None:
    server.fault(fault, times=2)
    reply = await connect(llm_api=api).reply(ask())
    assert reply.text == "I have had a throbbing headache for two days."
    assert (reply.usage.requests, reply.usage.retries) == (3, 2)
    assert len(naps.slept) == 2


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", PASSING)
async def test_a_fault_that_persists_raises_its_error_after_all_tries(
    fault: str, api: str, connect: Connect, server: ScriptedServer
) -> None:
    server.fault(fault)
    with pytest.raises(PASSING[fault]) as caught:
        await connect(llm_api=api, tries=3).reply(ask())
    assert type(caught.value) is PASSING[fault]
    assert f"127.0.0.1:{server.port}" in str(caught.value)
    assert caught.value.retries == 2
    assert caught.value.usage is not None
    assert caught.value.usage.requests == len(server.log()) == 3


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", LASTING)
async def test_a_permanent_fault_is_not_retried(
    fault: str, api: str, connect: Connect, server: ScriptedServer, naps: Naps
) -> None:
    server.fault(fault)
    with pytest.raises(LASTING[fault]) as caught:
        await connect(llm_api=api).reply(ask())
    assert caught.value.retries == 0
    assert naps.slept == []
    # A model that uses up our own cap without an answer may be thinking aloud: it is asked once more without the cap.
    assert len(server.log()) == (2 if fault == "length_empty" else 1)


async def test_a_model_that_thinks_aloud_is_asked_without_a_cap_from_then_on(
    connect: Connect, server: ScriptedServer
) -> None:
    server.control(rules=[{"match": {"nth": 1}, "fault": "length_empty"}])
    endpoint = connect()
    reply = await endpoint.reply(ask(purpose=Purpose.PATIENT))
    assert "asked again without a cap on the output" in reply.notes
    await endpoint.reply(ask(purpose=Purpose.PATIENT))
    assert ["max_output_tokens" in body for body in server.bodies()] == [True, False, False]


async def test_an_answer_that_comes_late_is_an_answer(connect: Connect, server: ScriptedServer) -> None:
    server.fault("hold")
    waiting = asyncio.create_task(connect(tries=1).reply(ask()))
    while not server.counts()["received"]:  # noqa: ASYNC110 - the server is another process
        await asyncio.sleep(0)
    assert not waiting.done()
    server.control(rules=[])
    assert (await waiting).text


@pytest.mark.parametrize("fault", ["hang", "drip"])
async def test_a_server_that_never_ends_its_answer_is_a_timeout(
    fault: str, connect: Connect, server: ScriptedServer
) -> None:
    server.fault(fault)
    with pytest.raises(base.RequestTimeout, match=r"did not answer within 0\.3 s") as caught:
        await connect(request_timeout=0.3, tries=2).reply(ask())
    assert caught.value.retries == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/v1", "http://no-such-host.invalid/v1"])
async def test_a_missing_server_is_a_connection_error(address: str, connect: Connect) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(base.ConnectError) as caught:
        await connect(base_url=address.format(port=port), tries=2).reply(ask())
    assert caught.value.retries == 1


def test_every_fault_of_the_scripted_server_is_tested_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in FAULTS if f'"{name}"' not in source] == []


@pytest.mark.parametrize("api", APIS)
async def test_text_cut_off_by_the_token_limit_is_used_and_noted(
    api: str, connect: Connect, server: ScriptedServer
) -> None:
    server.fault("length")
    reply = await connect(llm_api=api).reply(ask())
    assert reply.text == "This sentence stops in the"
    assert reply.notes == ("truncated: out of output tokens",)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, {"detail": "Not Found"}, base.BadRequestError),
        (
            404,
            {"object": "error", "message": "The model `x` does not exist.", "code": 404},
            base.BadRequestError,
        ),
        (400, {"message": "This model's maximum context length is 4096 tokens."}, base.ContextTooLongError),
        (
            400,
            {"error": {"message": "exceeds the available context size", "code": 400}},
            base.ContextTooLongError,
        ),
        (400, {"error": {"message": "flagged", "code": "content_filter"}}, base.RefusedError),
        (400, {"error": "just a string"}, base.BadRequestError),
        (500, "<html>Internal error</html>", base.ServerError),
    ],
)
async def test_errors_of_other_servers_are_recognized(
    status: int, body: Any, kind: type[ModelError], connect: Connect, server: ScriptedServer
) -> None:
    server.control(rules=[{"raw": body, "status": status}])
    with pytest.raises(kind) as caught:
        await connect(llm_api="chat", tries=1).reply(ask())
    assert "<html>" not in str(caught.value)


@pytest.mark.parametrize("gate", [Gate(), Gate(DataClass.CREDENTIALED)], ids=["plain", "gated"])
async def test_no_more_of_an_answer_is_read_than_any_model_writes(gate: Gate, server: ScriptedServer) -> None:
    """Whichever transport is used, and whether the body is packed, never ends, or comes with an error status."""
    async with Clients(LLMSettings(runtime=RuntimeSettings(tries=1, request_timeout=LONG)), gate=gate) as clients:
        endpoint = clients.endpoint("scripted", base_url=server.base_url)
        huge = [{"fault": "bomb", "megabytes": 32}, {"fault": "endless"}, {"reply": "x" * 10**7}]
        huge.append({"raw": {"error": {"message": "x" * 10**7}}, "status": 500})
        for rule in huge:
            server.control(rules=[rule])
            with pytest.raises(base.ServerError, match="sent more than 8 MB instead of an answer"):
                await endpoint.reply(ask())
        server.control(rules=[{"reply": "x" * 10**6}])
        assert len((await endpoint.reply(ask())).text) == 10**6


@pytest.mark.parametrize("key", [KEY, 'pass"word/with\\all'])
async def test_our_key_is_removed_however_a_server_escapes_it(
    key: str, connect: Connect, server: ScriptedServer
) -> None:
    """In JSON, and in the JSON of a tool call within it."""
    numbered = "".join(f"\\u{ord(char):04X}" for char in key)
    arguments = f'{{"times": 1, "note": "{numbered} {json.dumps(key)[1:-1]}"}}'
    for text in (f"You sent {key}.", arguments):
        server.control(rules=[{"reply": text, "tool_calls": [{"name": "weigh", "arguments": arguments}]}])
        reply = await connect(key=key, llm_api="chat").reply(ask(tools=(WEIGH,)))
        said = reply.text + reply.text.encode().decode("unicode_escape") + reply.tool_calls[0].arguments
        assert key not in said
        assert key not in str(json.loads(reply.tool_calls[0].arguments))
        assert "[key]" in reply.text


async def test_headers_from_the_environment_go_to_openai_only(
    connect: Connect, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Ward-Secret: planted\nContent-Type: text/planted")
    await connect().reply(ask())
    assert "planted" not in str(server.log()[0]["headers"]).replace(KEY, "")


# Waiting


@pytest.mark.parametrize("fault", ["429_retry_after", "429_retry_after_ms", "503"])
async def test_the_wait_that_a_server_asks_for_is_kept(
    fault: str, connect: Connect, server: ScriptedServer, naps: Naps
) -> None:
    server.fault(fault, times=1, seconds=40)
    reply = await connect(timeout=5).reply(ask())
    assert len(naps.slept) == 1
    assert 40 <= naps.slept[0] <= 50
    assert reply.usage.retries == 1


async def test_a_wait_given_as_a_date_is_kept(connect: Connect, server: ScriptedServer, naps: Naps) -> None:
    server.fault("429_retry_after_date", times=1, seconds=40)
    await connect().reply(ask())
    assert len(naps.slept) == 1
    assert 37 <= naps.slept[0] <= 50


async def test_a_request_to_wait_for_hours_is_an_error_at_once(
    connect: Connect, server: ScriptedServer, naps: Naps
) -> None:
    endpoint = connect()
    for fault in ("429_retry_after", "503"):
        server.fault(fault, times=1, seconds=7200)
        with pytest.raises(base.ClosedForLongError, match=r"it asks to wait 2\.0 hours"):
            await endpoint.reply(ask())
    await endpoint.reply(ask())
    assert naps.slept == [], "nor does the next request wait"


async def test_a_429_halves_the_limit_and_successes_restore_it(connect: Connect, server: ScriptedServer) -> None:
    endpoint = connect(workers=16, tries=10)
    limiter = endpoint.client.limiter
    assert isinstance(limiter, Limiter)
    server.fault("429", times=1)
    await endpoint.reply(ask())
    assert limiter.limit == 8
    for _ in range(500):
        await endpoint.reply(ask())
        if limiter.limit == 16:
            break
    assert limiter.limit == 16


async def test_a_server_of_small_capacity_answers_every_request_in_the_end(
    connect: Connect, server: ScriptedServer
) -> None:
    server.control(capacity=4, latency=0.02)
    endpoint = connect(workers=32, tries=50)
    replies = await asyncio.gather(*(endpoint.reply(ask(f"{n}")) for n in range(64)))
    assert len(replies) == 64
    assert sum(reply.usage.retries for reply in replies) > 0
    assert server.counts()["peak"] <= 32


async def test_a_429_halves_the_requests_sent_at_once_until_the_server_answers_again(
    connect: Connect, server: ScriptedServer
) -> None:
    server.fault("429", times=1)
    endpoint = connect(workers=8)
    limiter = endpoint.client.limiter
    assert isinstance(limiter, Limiter)
    await endpoint.reply(ask())
    assert limiter.limit == 4
    for number in range(100):
        await endpoint.reply(ask(f"{number}"))
    assert limiter.limit == 8


async def test_no_more_requests_are_in_flight_than_there_are_workers(connect: Connect, server: ScriptedServer) -> None:
    server.fault("hold")
    endpoint = connect(workers=3)
    waiting = asyncio.gather(*(endpoint.reply(ask(f"{n}")) for n in range(12)))
    while server.counts()["received"] < 3:  # noqa: ASYNC110 - the server is another process
        await asyncio.sleep(0)
    server.control(rules=[])
    await waiting
    assert server.counts()["peak"] == 3


async def test_with_a_fifth_failing_every_request_is_answered_and_failures_are_reproducible(
    connect: Connect, server: ScriptedServer
) -> None:
    async def failures() -> list[int]:
        server.reset()
        rules = [{"fault": fault, "match": {"probability": 0.07}} for fault in ("500", "reset", "html")]
        server.control(rules=rules, seed=7)
        endpoint = connect(workers=32, tries=10, llm_api="responses")
        replies = await asyncio.gather(*(endpoint.reply(ask(f"{n}")) for n in range(100)))
        return [reply.usage.retries for reply in replies]

    first, second = await failures(), await failures()
    assert first == second
    assert 10 <= sum(first) <= 50


# Secrets, redirects and proxies


@pytest.mark.parametrize("fault", ["auth", "bad_request", "500", "reset", "redirect", "html"])
async def test_the_key_appears_nowhere_in_an_error(fault: str, connect: Connect, server: ScriptedServer) -> None:
    server.fault(fault)
    with pytest.raises(ModelError) as caught:
        await connect(tries=1).reply(ask())
    assert server.log()[0]["headers"]["authorization"] == f"Bearer {KEY}"
    for error in chain(caught.value):
        assert isinstance(error, ModelError)
        shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
        assert "sk-" not in shown
    assert len(str(caught.value)) < 400


async def test_the_key_is_removed_from_an_answer_that_quotes_it(connect: Connect, server: ScriptedServer) -> None:
    server.fault("echo_key")
    assert (await connect().reply(ask())).text == "You sent me Bearer [key]."


async def test_the_key_appears_in_no_repr_and_no_log(
    connect: Connect, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint = connect()
    await endpoint.reply(ask())
    assert KEY not in repr(endpoint) + repr(endpoint.client) + repr(endpoint.client.host) + caplog.text
    assert repr(endpoint) == f"Endpoint('scripted' at '127.0.0.1:{server.port}')"


@pytest.mark.parametrize("key", [None, KEY])
async def test_credentials_in_an_address_are_used_without_a_key_and_appear_in_no_error(
    key: str | None, connect: Connect, server: ScriptedServer
) -> None:
    server.fault("bad_request")
    address = server.base_url.replace("://", "://someone:hidden-password@")
    with pytest.raises(ModelError) as caught:
        await connect(base_url=address, key=key).reply(ask())
    basic = base64.b64encode(b"someone:hidden-password").decode()
    sent = server.log()[0]["headers"]["authorization"]
    assert sent == (f"Bearer {key}" if key else f"Basic {basic}")
    assert not any(secret in str(caught.value) for secret in ("hidden-password", basic, KEY))


async def test_without_a_key_none_is_taken_from_the_environment(
    connect: Connect, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-strangers")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-not-for-strangers")
    monkeypatch.setenv("OPENAI_ORG_ID", "sk-not-for-strangers")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "sk-not-for-strangers")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: sk-not-for-strangers")
    await connect(key=None).reply(ask())
    assert "authorization" not in server.log()[0]["headers"]
    assert "sk-not-for-strangers" not in json.dumps(server.log())


async def test_openai_gets_the_headers_that_its_users_set_but_no_other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-ward")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-ward: 7\nauthorization: Bearer sk-other\nno header")
    headers = Client(None, SecretStr(KEY))._headers
    assert headers["Openai-Organization"] == "org-ward"
    assert headers["X-Ward"] == "7"
    assert [value for name, value in headers.items() if name.lower() == "authorization"] == [f"Bearer {KEY}"]


async def test_a_redirect_is_not_followed(connect: Connect, server: ScriptedServer) -> None:
    server.fault("redirect")
    with pytest.raises(base.BadRequestError, match="redirect, not followed"):
        await connect().reply(ask())
    assert [entry["path"] for entry in server.log()] == ["/v1/responses"]


async def test_loopback_never_goes_through_a_proxy(
    connect: Connect, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert (await connect(tries=1).reply(ask())).text


async def test_a_proxy_is_used_for_other_machines(
    server: ScriptedServer, naps: Naps, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The scripted server plays the proxy; the machine behind it does not exist.
    monkeypatch.setenv("http_proxy", server.origin)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    llm = LLMSettings(runtime=RuntimeSettings(tries=1))
    async with Clients(llm, clock=naps.clock) as clients:
        assert (await clients.endpoint("scripted", base_url="http://no-such-host.invalid/v1").reply(ask())).text
    assert len(server.log()) == 1


@pytest.mark.parametrize("key", ["sk-half\nsk-other-half", "sk-schlüssel"])
async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Client("http://127.0.0.1:1/v1", SecretStr(key))
    assert "sk-" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("address", ["127.0.0.1:8000/v1", "ftp://x/v1", "http:///v1"])
async def test_anything_but_an_http_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"must be an http\(s\) address"):
        Client(address)


# Cost


async def test_each_address_and_key_has_one_client(
    server: ScriptedServer,
) -> None:
    async with Clients() as clients:
        first, second = (clients.endpoint(name, base_url=server.base_url) for name in ("a", "b"))
        third = clients.endpoint("a", base_url=server.base_url, api_key=SecretStr("other"))
    assert first.client is second.client
    assert third.client is not first.client


async def test_aiohttp_is_not_imported_before_it_is_needed() -> None:
    heavy = "{'aiohttp', 'httpx2'}"
    code = f"import agentclinic.models.endpoint, sys; print(*({heavy} & set(sys.modules)))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.strip() == b""
