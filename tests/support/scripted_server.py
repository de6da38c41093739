"""A scripted OpenAI-compatible server, run as a process of its own.

`python tests/support/scripted_server.py --port 0` prints one JSON line with its port and serves on 127.0.0.1:

- `POST /v1/responses`, `POST /v1/chat/completions`, `POST /v1/embeddings`, `GET /v1/models`
- `POST /v1/files`, `GET` and `DELETE /v1/files/ID`, `GET /v1/files/ID/content`, `POST` and `GET /v1/batches`: a batch
  is answered by the same rules, when it is first looked at after `batch_polls` looks. Its answers come in another order
  than its requests; HTTP faults go to the error file
- `POST /control` changes the script (keys of `Script`; unknown ones are refused), `POST /reset` forgets all
- `GET /log` lists every request received, with headers, in the order of arrival; beside it counts and CPU seconds

The embedding of a text is a hashed bag of its words: the same words give the same vector. Faults of the model's own and
`reply` say nothing to it; `raw` does.

An answer that had to wait says in `X-Scripted-Latency` how many seconds the script drew for it.

What it answers depends on the header `X-AgentClinic-Purpose` and on the request; rules come first. A rule is
`{"match": {...}, ...}` with one of `fault` (a name in `FAULTS`, or an HTTP status), `reply` (a text),
`tool_calls` (`[{"name", "arguments"}]`) or `raw` (the whole body). `match` knows:

- purpose, model, api ("responses", "chat" or "embeddings"), text_contains: what the request must be
- nth (a number or a list, from 1) and every: which of those requests, by arrival
- probability: drawn from seed, body and how often this body came, so the same whatever the order of arrival

The check before a run (purpose "check") is answered at once. It meets only rules that name this purpose, and counts and
log leave it out: `GET /log` has it under `checks`.

`times` ends a rule after so many hits. In tests use `ScriptedServer`, which starts and stops the process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import email.utils
import functools
import hashlib
import itertools
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

Json = dict[str, Any]
LONG = 600
"""Seconds that only a failing test waits: ten minutes, so that none fails because the machine is busy."""

FAULTS = {
    "429": "too many requests, no word on when to come back",
    "429_retry_after": "429 with Retry-After: `seconds`",
    "429_retry_after_ms": "429 with retry-after-ms: `seconds` * 1000",
    "429_retry_after_date": "429 with Retry-After as a date, `seconds` from now",
    "500": "server error",
    "503": "unavailable; Retry-After when `seconds` is given",
    "reset": "the connection is reset",
    "hang": "no answer at all",
    "hold": "a normal answer, but not before the script is changed or reset",
    "bomb": "HTTP 200 whose packed body unpacks to `megabytes` of spaces",
    "endless": "HTTP 200 whose body never ends",
    "drip": "headers, then a byte now and then, never an end",
    "200_error": "HTTP 200 whose body is an error",
    "200_rate_limit": "HTTP 200 whose body is a rate limit error",
    "html": "HTTP 200 with a web page",
    "truncated_json": "HTTP 200 whose JSON stops in the middle",
    "empty": "a well-formed answer without text",
    "empty_body": "HTTP 200 without a body",
    "refusal": "the model declines",
    "content_filter": "cut off by a content filter",
    "length": "cut off by max_output_tokens, with text",
    "length_empty": "cut off by max_output_tokens before any text",
    "context": "400, prompt longer than the context",
    "quota": "429, no credit left",
    "auth": "401; the message quotes the key it was given",
    "bad_request": "400; the message quotes the key it was given",
    "no_model": "404, unknown model",
    "reject_tools": "400 for a request with tools, normal otherwise",
    "reject_format": "400 for a request with a structured output format, normal otherwise",
    "bad_tool_args": "a tool call whose arguments do not fit",
    "broken_tool_args": "a tool call whose arguments are no JSON",
    "prose_instead_of_tool": "text where a tool call was demanded",
    "invalid_schema_json": "JSON that does not match the schema",
    "prose_instead_of_json": "text where JSON was demanded",
    "fenced_json": "the right JSON within a code fence, with chatter",
    "redirect": "307 to /elsewhere on this server",
    "no_usage": "a normal answer without usage numbers",
    "echo_key": "a normal answer whose text quotes the key it was given",
}


@dataclass
class Script:
    """How the server behaves; every field can be set over `POST /control`."""

    latency: float = 0.0
    """Seconds before an answer."""
    jitter: float = 0.0
    """Latency varies by up to this share of itself, e.g. 0.5 for ±50 %, the same for the same requests."""
    seed: int = 0
    responses: bool = True
    """False: /v1/responses is not there (404)."""
    chat: bool = True
    """False: /v1/chat/completions is not there (404)."""
    capacity: int | None = None
    """More requests than this at the same time are answered by 429."""
    rules: list[Json] = field(default_factory=list)
    doctor: list[str] = field(
        default_factory=lambda: [
            "What brings you to the clinic today?",
            "Since when have you had this complaint?",
            "REQUEST TEST: Complete_Blood_Count",
            "DIAGNOSIS READY: Migraine",
        ]
    )
    """The doctor's lines; it says the first one that the prompt does not yet hold, at the end the last."""
    doctor_turns: int | None = None
    """Instead of `doctor`: so many numbered lines, a test on every third, the last one the diagnosis."""
    diagnosis: str = "Migraine"
    """The diagnosis where `doctor_turns` is given."""
    steps: list[Json] | None = None
    """Arguments of the doctor's `diagnosis_step` calls; it makes the first whose `new_information` the prompt does not
    yet hold, at the end the last. `{mark}` in them stands for the word like `mark-7` that the request holds."""
    synthesis: str = "Migraine"
    """The diagnosis made of facts; `{mark}` as above."""
    patient: str = "I have had a throbbing headache for two days."
    measurement: str = "RESULTS: within normal limits."
    moderator: str = "Yes"
    batches: bool = True
    """False: /v1/files and /v1/batches are not there (404)."""
    batch_polls: int = 0
    """How many times a batch that is looked at is still in progress."""
    batch_status: str = "completed"
    """How batches end: completed, failed (in validation) or expired (only the first half is answered)."""
    batch_odd: Json | None = None
    """What batches that are still in progress say instead of their status and counts."""
    batch_content: str | None = None
    """The file of answers to a batch, instead of the true one; a surrogate stands for a byte."""
    tool: str | None = None
    """The tool to call where one is demanded; the first offered when not given."""
    keep_log: bool = True
    """False for load tests: count requests, but keep neither headers nor bodies."""

    def doctor_lines(self) -> list[str]:
        if self.doctor_turns is None:
            return self.doctor
        lines = [
            f"REQUEST TEST: Test_{n}" if n % 3 == 0 else f"Question number {n}: how is it now?"
            for n in range(1, self.doctor_turns)
        ]
        return [*lines, f"DIAGNOSIS READY: {self.diagnosis}"]


@dataclass
class Call:
    """A request as the script sees it."""

    api: str
    purpose: str
    body: Json
    authorization: str
    occurrence: int
    """How often exactly this body came before."""
    digest: str

    @property
    def text(self) -> str:
        """Everything said in the request, one item a line."""
        return "\n".join(_texts(self.body.get("messages" if self.api == "chat" else "input", "")))

    @property
    def schema(self) -> Json | None:
        if self.api == "responses":
            form = self.body.get("text", {}).get("format", {})
            return form.get("schema") if form.get("type") == "json_schema" else None
        form = self.body.get("response_format", {})
        return form["json_schema"].get("schema") if form.get("type") == "json_schema" else None

    @property
    def tools(self) -> list[Json]:
        tools: list[Json] = self.body.get("tools", [])
        return [tool.get("function", tool) for tool in tools]

    def draw(self, seed: int, label: str) -> float:
        """A number in [0, 1) that depends on what was asked, not on when."""
        key = f"{seed}:{label}:{self.purpose}:{self.digest}:{self.occurrence}"
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6]) / 2**48


@dataclass
class Answer:
    """What the model says."""

    text: str = ""
    tool_calls: list[Json] = field(default_factory=list)
    refusal: str | None = None
    cut: str | None = None
    """"length" or "content_filter"."""
    usage: bool = True


class Server:
    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.reset()

    def reset(self) -> None:
        self.release()
        self.script = Script()
        self.log: list[Json] = []
        self.checks: list[Json] = []
        self.received = 0
        self.in_flight = 0
        self.peak = 0
        self.refused: list[int] = []
        self.files: dict[str, Json] = {}
        self.batches: dict[str, Json] = {}
        self.polls: Counter[str] = Counter()
        self.bodies: Counter[str] = Counter()
        self.matched: Counter[int] = Counter()
        self.hits: Counter[int] = Counter()

    def release(self) -> None:
        """Let the answers go that are held."""
        self.changed.set()
        self.changed = asyncio.Event()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/responses", self.responses)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_post("/v1/embeddings", self.embeddings)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/files", self.upload)
        app.router.add_get("/v1/files", self.list_files)
        app.router.add_get("/v1/files/{id}/content", self.content)
        app.router.add_delete("/v1/files/{id}", self.delete)
        app.router.add_post("/v1/batches", self.create_batch)
        app.router.add_get("/v1/batches", self.list_batches)
        app.router.add_get("/v1/batches/{id}", self.batch)
        app.router.add_post("/control", self.control)
        app.router.add_post("/reset", self.forget)
        app.router.add_get("/log", self.show_log)
        app.router.add_route("*", "/elsewhere", self.elsewhere)
        return app

    async def control(self, request: web.Request) -> web.Response:
        changes: Json = await request.json()
        unknown = set(changes) - {f.name for f in fields(Script)}
        faults = [rule["fault"] for rule in changes.get("rules", []) if "fault" in rule]
        unknown |= {name for name in faults if name not in FAULTS and not str(name).isdigit()}
        if unknown:
            return web.json_response({"error": f"unknown: {', '.join(sorted(unknown))}"}, status=400)
        for name, value in changes.items():
            setattr(self.script, name, value)
        if "rules" in changes:
            self.matched.clear()
            self.hits.clear()
        self.release()
        return web.json_response(asdict(self.script))

    async def forget(self, request: web.Request) -> web.Response:
        self.reset()
        return web.json_response({})

    async def show_log(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "received": self.received,
                "peak": self.peak,
                "refused": self.refused,
                "cpu": time.process_time(),
                "requests": self.log,
                "checks": self.checks,
            }
        )

    async def elsewhere(self, request: web.Request) -> web.Response:
        self.note(request, "elsewhere", {})
        return web.json_response({"output_text": "You should not have come here."})

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def responses(self, request: web.Request) -> web.StreamResponse:
        return await self.serve(request, "responses", self.script.responses)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return await self.serve(request, "chat", self.script.chat)

    async def embeddings(self, request: web.Request) -> web.StreamResponse:
        return await self.serve(request, "embeddings", present=True)

    async def upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if not self.script.batches:
            return _no_route(request)
        file: Any = form["file"]
        text = file.file.read().decode()
        self.note(
            request, "files", {"purpose": form["purpose"], "lines": [json.loads(line) for line in text.splitlines()]}
        )
        return await self.made(request, "files", self.keep(text, file.filename))

    def keep(self, text: str, name: str) -> Json:
        """A new file at the server."""
        file_id = f"file-{next(_numbers)}"
        self.files[file_id] = {"id": file_id, "object": "file", "filename": name, "text": text}
        return self.files[file_id]

    async def made(self, request: web.Request, api: str, entry: Json) -> web.StreamResponse:
        """What was made; a rule for `api` may keep the answer from arriving."""
        call = Call(api, "", {}, request.headers.get("Authorization", ""), 0, "")
        rule = self.rule_for(call) or {}
        failed = await self.fail(request, call, str(rule["fault"]), rule) if "fault" in rule else None
        return failed or web.json_response({key: value for key, value in entry.items() if key != "text"})

    async def list_files(self, request: web.Request) -> web.StreamResponse:
        return _listed(request, self.files)

    async def content(self, request: web.Request) -> web.StreamResponse:
        self.note(request, "files", {})
        file = self.files.get(request.match_info["id"])
        return web.Response(body=file["text"].encode("utf-8", "surrogateescape")) if file else _no_route(request)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        self.note(request, "files", {"delete": request.match_info["id"]})
        file = self.files.get(request.match_info["id"])
        if file is None:
            return _no_route(request)
        answer = await self.made(request, "delete", {"id": file["id"], "deleted": True})
        if answer.status == 200:
            del self.files[file["id"]]
        return answer

    async def create_batch(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        if not self.script.batches:
            return _no_route(request)
        self.note(request, "batches", body)
        batch_id = f"batch_{next(_numbers)}"
        counts = {"total": len(self.files[body["input_file_id"]]["text"].splitlines()), "completed": 0, "failed": 0}
        status = {"status": "in_progress", "request_counts": counts}
        self.batches[batch_id] = {"id": batch_id, "object": "batch", **body, **status}
        return await self.made(request, "batches", self.batches[batch_id])

    async def list_batches(self, request: web.Request) -> web.StreamResponse:
        return _listed(request, self.batches)

    async def batch(self, request: web.Request) -> web.StreamResponse:
        batch_id = request.match_info["id"]
        self.note(request, "batches", {"id": batch_id})
        if batch_id not in self.batches:
            return _no_route(request)
        batch = self.batches[batch_id]
        self.polls[batch_id] += 1
        if batch["status"] == "in_progress" and self.polls[batch_id] > self.script.batch_polls:
            await self.answer_batch(request, batch)
        elif self.script.batch_odd is not None:
            batch = batch | self.script.batch_odd
        return await self.made(request, "poll", batch)

    async def answer_batch(self, request: web.Request, batch: Json) -> None:
        batch["status"] = self.script.batch_status
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]]["text"].splitlines()]
        if batch["status"] == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "token_limit_exceeded", "message": "Queue is full"}]}
            return
        answered = lines if batch["status"] == "completed" else lines[: len(lines) // 2]
        good: list[Json] = []
        bad: list[Json] = [
            {
                "custom_id": line["custom_id"],
                "response": None,
                "error": {"code": "batch_expired", "message": "Too late"},
            }
            for line in lines[len(answered) :]
        ]
        for line in answered:
            api = line["url"].removeprefix("/v1/").partition("/")[0]
            digest = hashlib.sha256(json.dumps(line["body"]).encode()).hexdigest()
            purpose = request.headers.get("X-AgentClinic-Purpose", "")
            call = Call(api, purpose, line["body"], request.headers.get("Authorization", ""), 0, digest)
            rule = self.rule_for(call) or {}
            fault = str(rule.get("fault", ""))
            failed: Any = await self.fail(request, call, fault, rule) if fault else None
            if failed is not None:
                response = {"status_code": failed.status, "body": json.loads(failed.text)}
            else:
                said = self.say(call, rule, fault)
                body = _responses_body(call, said) if api == "responses" else _chat_body(call, said)
                response = {"status_code": 200, "request_id": "r", "body": body}
            (bad if failed else good).append({"custom_id": line["custom_id"], "response": response, "error": None})
        for name, entries in (("output_file_id", good), ("error_file_id", bad)):
            text = "".join(json.dumps(entry) + "\n" for entry in entries[::-1])
            if name == "output_file_id" and self.script.batch_content is not None:
                text = self.script.batch_content
            if text:
                batch[name] = self.keep(text, f"{name}.jsonl")["id"]
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}

    def note(self, request: web.Request, api: str, body: Json) -> None:
        self.received += 1
        if self.script.keep_log:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.log.append(
                {
                    "path": request.path,
                    "api": api,
                    "purpose": headers.get("x-agentclinic-purpose", ""),
                    "headers": headers,
                    "body": body,
                }
            )

    async def serve(self, request: web.Request, api: str, present: bool) -> web.StreamResponse:
        data = await request.read()
        body: Json = json.loads(data)
        if request.headers.get("X-AgentClinic-Purpose") == "check":
            return await self.check(request, api, body, present)
        self.note(request, api, body)
        if not present:
            return _no_route(request)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            return await self.answer(request, api, body, hashlib.sha256(data).hexdigest())
        finally:
            self.in_flight -= 1

    async def check(self, request: web.Request, api: str, body: Json, present: bool) -> web.StreamResponse:
        """The short request before a run: nothing that tests script or count is touched by it."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.checks.append({"path": request.path, "api": api, "headers": headers, "body": body})
        if not present:
            return _no_route(request)
        call = Call(api, "check", body, request.headers.get("Authorization", ""), 0, "")
        rule = self.rule_for(call) or {}
        if "fault" in rule:
            failed = await self.fail(request, call, str(rule["fault"]), rule)
            if failed is not None:
                return failed
        said = self.say(call, rule, str(rule.get("fault", "")))
        return web.json_response(_responses_body(call, said) if api == "responses" else _chat_body(call, said))

    async def answer(self, request: web.Request, api: str, body: Json, digest: str) -> web.StreamResponse:
        call = Call(
            api,
            request.headers.get("X-AgentClinic-Purpose", ""),
            body,
            request.headers.get("Authorization", ""),
            self.bodies[digest],
            digest,
        )
        self.bodies[digest] += 1
        full = self.script.capacity is not None and self.in_flight > self.script.capacity
        rule = self.rule_for(call) or {}
        latency = self.script.latency
        if latency:
            spread = 2 * call.draw(self.script.seed, "latency") - 1
            latency *= 1 + self.script.jitter * spread
            await asyncio.sleep(latency)
        if full:
            self.refused.append(self.received)
            return _error(429, "Too many requests at once", "requests", "rate_limit_exceeded")
        fault = rule.get("fault")
        if fault is not None:
            failed = await self.fail(request, call, str(fault), rule)
            if failed is not None:
                return failed
        if "raw" in rule:
            return web.json_response(rule["raw"], status=rule.get("status", 200))
        if api == "embeddings":
            return web.json_response(_embeddings_body(call))
        said = self.say(call, rule, str(fault or ""))
        return web.json_response(
            _responses_body(call, said) if api == "responses" else _chat_body(call, said),
            headers={"X-Scripted-Latency": repr(latency)} if latency else None,
        )

    def rule_for(self, call: Call) -> Json | None:
        """The first rule that fits; every rule whose conditions hold counts the request."""
        chosen: Json | None = None
        for index, rule in enumerate(self.script.rules):
            match: Json = rule.get("match", {})
            if not _fits(match, call):
                continue
            self.matched[index] += 1
            nth = match.get("nth")
            if chosen is not None or self.hits[index] >= rule.get("times", float("inf")):
                continue
            if nth is not None and self.matched[index] not in (nth if isinstance(nth, list) else [nth]):
                continue
            if self.matched[index] % match.get("every", 1):
                continue
            if call.draw(self.script.seed, f"rule {index}") >= match.get("probability", 1.0):
                continue
            self.hits[index] += 1
            chosen = rule
        return chosen

    async def fail(self, request: web.Request, call: Call, fault: str, rule: Json) -> web.StreamResponse | None:
        """The fault as an HTTP answer; None for the faults that are the model's own."""
        seconds: Any = rule.get("seconds")
        key = call.authorization.removeprefix("Bearer ")
        match fault:
            case "429" | "429_retry_after" | "429_retry_after_ms" | "429_retry_after_date":
                headers: dict[str, str] = {}
                if fault == "429_retry_after":
                    headers["Retry-After"] = str(seconds)
                elif fault == "429_retry_after_ms":
                    headers["retry-after-ms"] = str(int(seconds * 1000))
                elif fault == "429_retry_after_date":
                    headers["Retry-After"] = email.utils.formatdate(time.time() + seconds, usegmt=True)
                return _error(429, "Rate limit reached", "requests", "rate_limit_exceeded", headers)
            case "503":
                waits = {} if seconds is None else {"Retry-After": str(seconds)}
                return _error(503, "The server is overloaded", "server_error", None, waits)
            case "reset":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "hang":
                await asyncio.sleep(3600)
            case "hold":
                await self.changed.wait()
            case "bomb":
                headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
                return web.Response(body=_packed(rule["megabytes"]), headers=headers)
            case "endless":
                return await _drip(request, b" " * 2**16, pause=0)
            case "drip":
                return await _drip(request)
            case "200_error":
                return web.json_response({"error": {"message": "The engine stumbled", "code": "server_error"}})
            case "200_rate_limit":
                return web.json_response({"error": {"message": "Slow down", "code": 429}})
            case "html":
                page = "<!doctype html><html><body><h1>Welcome to nginx</h1></body></html>"
                return web.Response(text=page, content_type="text/html")
            case "truncated_json":
                whole = json.dumps(_responses_body(call, Answer(text="This will be cut")))
                return web.Response(text=whole[: len(whole) // 2], content_type="application/json")
            case "empty_body":
                return web.Response(text="", content_type="application/json")
            case "context":
                return _error(
                    400,
                    "This model's maximum context length is 8192 tokens, your messages have 9999",
                    "invalid_request_error",
                    "context_length_exceeded",
                )
            case "quota":
                return _error(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota")
            case "auth":
                return _error(401, f"Incorrect API key provided: {key}", "invalid_request_error", "invalid_api_key")
            case "bad_request":
                return _error(400, f"Unknown parameter; you sent {key} and sk-other-0123456789", "invalid", None)
            case "no_model":
                message = f"The model `{call.body.get('model')}` does not exist"
                return _error(404, message, "invalid_request_error", "model_not_found")
            case "reject_format":
                if call.schema is not None:
                    name = "text.format" if call.api == "responses" else "response_format"
                    return _error(400, f"Unsupported parameter: '{name}'", "invalid_request_error", None)
            case "reject_tools":
                if call.tools:
                    return _error(400, "This model does not support tools", "invalid_request_error", None)
            case "redirect":
                return web.Response(status=307, headers={"Location": "/elsewhere"})
            case _ if fault.isdigit():
                return _error(int(fault), rule.get("message", "It broke"), "server_error", rule.get("code"))
        return None

    def say(self, call: Call, rule: Json, fault: str) -> Answer:
        """What the model says, the model's own faults included."""
        if "reply" in rule or "tool_calls" in rule:
            return Answer(verdict(call, rule.get("reply", "")), rule.get("tool_calls", []))
        name = (self.script.tool or call.tools[0]["name"]) if call.tools else ""
        match fault:
            case "empty":
                return Answer()
            case "refusal":
                return Answer(refusal="I'm sorry, I can't help with that.")
            case "content_filter":
                return Answer("Well, ", cut="content_filter")
            case "length":
                return Answer("This sentence stops in the", cut="length")
            case "length_empty":
                return Answer(cut="length")
            case "bad_tool_args":
                return Answer(tool_calls=[{"name": name, "arguments": {"no_such_argument": [1]}}])
            case "broken_tool_args":
                return Answer(tool_calls=[{"name": name, "arguments": '{"half": '}])
            case "prose_instead_of_tool":
                return Answer("I would call the tool now.")
            case "invalid_schema_json":
                return Answer('{"no_such_field": true}')
            case "prose_instead_of_json":
                return Answer("Certainly! The answer is as you would expect.")
            case "echo_key":
                return Answer(f"You sent me {call.authorization}.")
        said = self.default(call)
        if fault == "fenced_json":
            said.text = f"Here is the object:\n```json\n{said.text}\n```\nAnything else?"
        said.usage = fault != "no_usage"
        return said

    def stepping(self, call: Call, steps: list[Json]) -> Answer:
        """The next step as a tool call, or as a form where no tools are offered."""
        text = call.text
        marked: list[Json] = json.loads(json.dumps(steps).replace("{mark}", mark_in(text)))
        step = next((step for step in marked if step["new_information"] not in text), marked[-1])
        if call.schema is not None:
            return Answer(json.dumps({"tool": "diagnosis_step", "reason_ready": "", **step}))
        return Answer(tool_calls=[{"name": "diagnosis_step", "arguments": step}])

    def default(self, call: Call) -> Answer:
        if self.script.steps is not None and call.purpose == "doctor" and (call.tools or call.schema):
            return self.stepping(call, self.script.steps)
        if call.purpose == "moderator":
            return Answer(verdict(call, self.script.moderator))
        if call.schema is not None:
            return Answer(json.dumps(minimal(call.schema, call.schema)))
        if call.tools and call.body.get("tool_choice") == "required":
            tool = next(t for t in call.tools if self.script.tool in (None, t["name"]))
            arguments = minimal(tool["parameters"], tool["parameters"])
            return Answer(tool_calls=[{"name": tool["name"], "arguments": arguments}])
        match call.purpose:
            case "doctor":
                text, lines = call.text, self.script.doctor_lines()
                return Answer(next((line for line in lines if line not in text), lines[-1]))
            case "patient":
                return Answer(self.script.patient)
            case "measurement":
                return Answer(self.script.measurement)
            case "synthesis":
                return Answer(self.script.synthesis.replace("{mark}", mark_in(call.text)))
        return Answer(f"This is the scripted server's answer to a {call.purpose or 'nameless'} request.")


def verdict(call: Call, said: str) -> str:
    """A judge's Yes or No as the relation, if that is what it is asked for."""
    relation = {"Yes": "same", "No": "different"}.get(said)
    if call.purpose != "moderator" or "RelationVerdict" not in call.text or relation is None:
        return said
    return json.dumps({"relation": relation, "reason": "as the script says"})


def mark_in(text: str) -> str:
    """The first word like `mark-7` in a text."""
    found = re.search(r"mark-\w+", text)
    return found[0] if found else "somebody"


def minimal(schema: Json, root: Json) -> Any:
    """The smallest value a JSON schema accepts (of the schemas pydantic writes)."""
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return minimal(target, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return minimal(schema[union][0], root)
    kind = schema.get("type", "object")
    match kind[0] if isinstance(kind, list) else kind:
        case "string":
            return "text".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", 2**20)]
        case "integer":
            return int(schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1))
        case "number":
            return float(schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1))
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            return [minimal(schema["items"], root) for _ in range(schema.get("minItems", 0))]
        case _:
            properties: Json = schema.get("properties", {})
            return {name: minimal(properties[name], root) for name in schema.get("required", [])}


def _texts(item: Any) -> Iterator[str]:
    """All text in messages, items and parts of either API; images and ids are not text."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, list):
        for part in item:
            yield from _texts(part)
    elif isinstance(item, dict):
        for name in ("content", "text", "output", "arguments"):
            if item.get(name):
                yield from _texts(item[name])


def _fits(match: Json, call: Call) -> bool:
    return (
        match.get("purpose", "" if call.purpose == "check" else call.purpose) == call.purpose
        and match.get("model", call.body.get("model")) == call.body.get("model")
        and match.get("api", call.api) == call.api
        and ("text_contains" not in match or match["text_contains"] in call.text)
    )


def _listed(request: web.Request, entries: dict[str, Json]) -> web.Response:
    """A page of a list, newest first; pages are small, so that there are several."""
    after, size = request.query.get("after"), 2
    newest = [{key: value for key, value in entry.items() if key != "text"} for entry in reversed(entries.values())]
    start = next((n + 1 for n, entry in enumerate(newest) if entry["id"] == after), 0)
    return web.json_response({"data": newest[start : start + size], "has_more": len(newest) > start + size})


def _no_route(request: web.Request) -> web.Response:
    return _error(404, f"Invalid URL (POST {request.path})", "not_found_error", None)


def _error(
    status: int, message: str, kind: str, code: str | None, headers: dict[str, str] | None = None
) -> web.Response:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return web.json_response(body, status=status, headers=headers)


@functools.cache
def _packed(megabytes: int) -> bytes:
    """So many megabytes of spaces, as gzip."""
    packer = zlib.compressobj(1, wbits=31)
    return b"".join(packer.compress(b" " * 2**20) for _ in range(megabytes)) + packer.flush()


async def _drip(request: web.Request, piece: bytes = b" ", pause: float = 0.05) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(piece)
            await asyncio.sleep(pause)
    return response


_numbers = itertools.count(1)


def _arguments(call: Json) -> str:
    arguments = call["arguments"]
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _tokens(call: Call, said: Answer) -> tuple[int, int, int, int]:
    """Input, cached, output and reasoning tokens: numbers a test can work out by hand."""
    given = max(1, len(call.text) // 4)
    spoken = max(1, len(said.text) // 4)
    return given, given // 2, spoken + 7, 7


def _responses_body(call: Call, said: Answer) -> Json:
    number = next(_numbers)
    output: list[Json] = [{"type": "reasoning", "id": f"rs_{number}", "summary": []}]
    parts: list[Json] = []
    if said.text or not said.tool_calls:
        parts.append({"type": "output_text", "text": said.text, "annotations": []})
    if said.refusal:
        parts = [{"type": "refusal", "refusal": said.refusal}]
    if parts and not (said.cut == "length" and not said.text):
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": parts,
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{number}_{n}",
            "call_id": f"call_{number}_{n}",
            "name": tool_call["name"],
            "arguments": _arguments(tool_call),
            "status": "completed",
        }
        for n, tool_call in enumerate(said.tool_calls)
    ]
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(said.cut or "")
    body: Json = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": call.body.get("model"),
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if said.usage:
        given, cached, spoken, reasoned = _tokens(call, said)
        body["usage"] = {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": spoken,
            "output_tokens_details": {"reasoning_tokens": reasoned},
            "total_tokens": given + spoken,
        }
    return body


def _chat_body(call: Call, said: Answer) -> Json:
    number = next(_numbers)
    message: Json = {"role": "assistant", "content": said.text, "refusal": said.refusal}
    if said.tool_calls:
        message["content"] = said.text or None
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{n}",
                "type": "function",
                "function": {"name": tool_call["name"], "arguments": _arguments(tool_call)},
            }
            for n, tool_call in enumerate(said.tool_calls)
        ]
    reason = said.cut or ("tool_calls" if said.tool_calls else "stop")
    body: Json = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    if said.usage:
        given, cached, spoken, reasoned = _tokens(call, said)
        body["usage"] = {
            "prompt_tokens": given,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens": spoken,
            "completion_tokens_details": {"reasoning_tokens": reasoned},
            "total_tokens": given + spoken,
        }
    return body


DIMENSIONS = 64
"""Of an embedding: enough that few words share one."""


def _embeddings_body(call: Call) -> Json:
    """The vectors last text first, as a server may send them: `index` says which text each belongs to."""
    rows = [
        {"object": "embedding", "index": index, "embedding": bag_of_words(text)}
        for index, text in enumerate(call.body["input"])
    ]
    tokens = max(1, len(call.text) // 4)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": call.body.get("model"), "data": rows[::-1], "usage": usage}


def bag_of_words(text: str) -> list[float]:
    """How often words occur in a text, each counted in the dimension that its hash names."""
    counts = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        counts[int(hashlib.sha256(word.encode()).hexdigest(), 16) % DIMENSIONS] += 1
    return counts


class ScriptedServer:
    """The server as a child process, for tests: `with ScriptedServer() as server: ...`."""

    program = Path(__file__).resolve()
    """What the process runs; it takes the same options as this file."""

    def __init__(self, port: int = 0) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.port = port
        """0 for any free one, until it has started."""

    def __enter__(self) -> ScriptedServer:
        # Its standard input is our end of a pipe: however this process dies, the server ends with it.
        self._process = subprocess.Popen(
            [sys.executable, str(self.program), "--port", str(self.port), "--until-stdin-closes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = json.loads(self._process.stdout.readline())["port"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """The server dies, in the middle of whatever it is doing."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What goes into a config as `base_url`."""
        return f"{self.origin}/v1"

    def control(self, **changes: Any) -> None:
        """Change the script, e.g. `control(latency=0.1, rules=[{"fault": "429", "times": 1}])`."""
        self._post("/control", changes)

    def fault(self, name: str, *, times: int | None = None, **rule: Any) -> None:
        """Make the fault the only rule; further keys go into the rule."""
        self.control(rules=[{"fault": name, **({} if times is None else {"times": times}), **rule}])

    def reset(self) -> None:
        self._post("/reset", {})

    def log(self) -> list[Json]:
        """Every request received since the last reset."""
        entries: list[Json] = self.counts()["requests"]
        return entries

    def checks(self) -> list[Json]:
        """The checks before runs, which are not in the log."""
        entries: list[Json] = self.counts()["checks"]
        return entries

    def bodies(self) -> list[Json]:
        return [entry["body"] for entry in self.log()]

    def counts(self) -> Json:
        """`received`, `peak` (most at the same time), `cpu` (seconds the process used), `requests` and `refused`.

        `refused` has an entry for each 429 above the capacity: how many requests had been received by then.
        """
        with _direct.open(f"{self.origin}/log", timeout=LONG) as answer:
            counts: Json = json.load(answer)
        return counts

    def _post(self, path: str, body: Json) -> None:
        request = urllib.request.Request(
            self.origin + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with _direct.open(request, timeout=LONG):
                pass
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(error.read().decode()) from None


# Proxies of the machine are none of the tests' business.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


async def _main(server: Server, port: int, until_stdin_closes: bool) -> None:
    # handler_cancellation: a client that gives up on a hanging request frees its handler.
    runner = web.AppRunner(server.application(), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=4096)
    await site.start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    if until_stdin_closes:
        await asyncio.to_thread(sys.stdin.read)
    else:
        await asyncio.Event().wait()


def main(server: Server) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(server, options.port, options.until_stdin_closes))


if __name__ == "__main__":
    main(Server())
