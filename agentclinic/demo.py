"""A model to try things with: a server that speaks OpenAI's chat API and plays every role by a few fixed rules.

It is no language model. As the doctor it says the lines of a script and then names the disease that its words point
to (naive Bayes over the findings it can read); as the patient it repeats its notes; as the judge it compares names. It
tells requests apart by the header `X-AgentClinic-Purpose`.
"""

from __future__ import annotations

import json
import math
import re
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.compare import STRICT, Relation, compare

Json = dict[str, Any]
SCRIPTS = {
    "demo": (
        "What brings you in today?",
        "When did it start, and has it changed since?",
        "Have you noticed anything else, such as fever, weight loss or trouble breathing?",
        "Which illnesses have you had, and which medicines do you take?",
        "REQUEST TEST: Vital signs",
        "REQUEST TEST: Physical examination",
        "REQUEST TEST: Complete blood count",
        "REQUEST TEST: Basic metabolic panel",
    ),
    "demo-hasty": ("What brings you in today?",),
}
"""What the doctor says before its diagnosis, by the name of the model."""
_DIMENSIONS = 64
"""Of an embedding, which is a bag of hashed words: few are enough to tell short texts apart."""


class Asked(NamedTuple):
    """A request, as far as the rules look at it."""

    purpose: str
    model: str
    messages: tuple[str, ...]
    """Their texts; the first one has the instructions."""
    turns: int
    """What the model itself has said so far."""
    schema: Json | None

    @property
    def dialogue(self) -> str:
        """What is known of the patient: the objective in the instructions, and what was said since."""
        objective = re.search(r"Objective: .*", self.messages[0])
        return "\n".join((objective[0] if objective else "", *self.messages[1:]))

    @property
    def newest(self) -> str:
        return self.messages[-1]


def demo_app() -> Starlette:
    """The server's application."""
    return Starlette(
        routes=[
            Route("/v1/models", _models),
            Route("/v1/chat/completions", _chat, methods=["POST"]),
            Route("/v1/embeddings", _embeddings, methods=["POST"]),
        ]
    )


async def _models(_: Request) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in SCRIPTS]})


async def _chat(request: Request) -> JSONResponse:
    body: Json = await request.json()
    model = str(body.get("model"))
    if model not in SCRIPTS:
        unknown = f"unknown model {model!r}; choose one of: {', '.join(SCRIPTS)}"
        return JSONResponse({"error": {"message": unknown, "code": "model_not_found"}}, status_code=404)
    messages: list[Json] = body["messages"]
    tools = [tool["function"] for tool in body.get("tools", ())]
    demanded = body.get("response_format", {}).get("json_schema", {}).get("schema")
    asked = Asked(
        request.headers.get("X-AgentClinic-Purpose", ""),
        model,
        tuple("\n".join(_texts(message.get("content"))) for message in messages) or ("",),
        sum(message["role"] == "assistant" for message in messages),
        tools[0]["parameters"] if tools else demanded,
    )
    said = _ANSWERS.get(asked.purpose, _by_form)(asked)
    text = said if isinstance(said, str) else json.dumps(said)
    message: Json = {"role": "assistant", "content": text}
    if tools:
        call = {"name": tools[0]["name"], "arguments": text}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    sent, received = sum(len(one.split()) for one in asked.messages), len(text.split())
    return JSONResponse(
        {
            "id": "demo",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "finish_reason": "tool_calls" if tools else "stop", "message": message}],
            "usage": {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received},
        }
    )


async def _embeddings(request: Request) -> JSONResponse:
    body: Json = await request.json()
    texts: list[str] = body["input"] if isinstance(body["input"], list) else [body["input"]]
    rows = [{"object": "embedding", "index": number, "embedding": _embedded(text)} for number, text in enumerate(texts)]
    sent = sum(len(text.split()) for text in texts)
    return JSONResponse({"object": "list", "data": rows, "usage": {"prompt_tokens": sent, "total_tokens": sent}})


def _embedded(text: str) -> list[float]:
    vector = [0.0] * _DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % _DIMENSIONS] += 1.0
    return vector


def _texts(content: Any) -> Iterator[str]:
    """The text of a message, which may come in parts; images are no text."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        yield part.get("text", "")


def _findings(text: str) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for mention in knowledge().finding_terms.find(text):
        found[mention.key] = found.get(mention.key, False) or not mention.negated
    return found


def _guesses(text: str) -> list[tuple[str, float]]:
    """The five likeliest diseases by id, with their probabilities."""
    known, found = knowledge(), _findings(text)
    scores: dict[str, float] = {}
    for disease in known.diseases.values():
        scores[disease.id] = math.log(disease.prior)
        shown = {link.finding: link.p for link in disease.links}
        for name, present in found.items():
            leak = known.findings[name].leak
            p = shown.get(name, leak)
            scores[disease.id] += math.log(p / leak if present else (1 - p) / (1 - leak))
    most = max(scores.values())
    weights = {name: math.exp(score - most) for name, score in scores.items()}
    top = sorted(weights, key=lambda name: (-weights[name], name))[:5]
    return [(name, round(weights[name] / sum(weights.values()), 3)) for name in top]


def _named(text: str) -> list[tuple[str, float]]:
    return [(knowledge().diseases[name].name, probability) for name, probability in _guesses(text)]


def _line(asked: Asked) -> str | None:
    """The next line of the script; None after the last, and where the doctor must commit."""
    numbered = re.findall(r"(?:\[Turn\]\n|\(Message |Turn )(\d+) of (\d+)", asked.newest)
    turn, most = (int(number) for number in numbered[-1]) if numbered else (asked.turns + 1, math.inf)
    script = SCRIPTS[asked.model]
    return script[turn - 1] if turn <= len(script) and turn < most else None


def _doctor(asked: Asked) -> str | Json:
    line, guesses = _line(asked), _named(asked.dialogue)
    if asked.schema is None:
        return line or f"DIAGNOSIS READY: {guesses[0][0]}"
    newest = re.search(r"\[Newest reply\]\n(.*?)\n\n\[", asked.newest, re.DOTALL)
    action = "DIAGNOSIS READY" if line is None else line if line.startswith("REQUEST") else f"ASK PATIENT: {line}"
    return {
        **_minimal(asked.schema, asked.schema),
        "new_information": (newest[1] if newest else "Nothing new.")[:600],
        "current_uncertainties": [
            {"diagnosis": name[:80], "probability": probability, "reason": "fits the findings so far"}
            for name, probability in guesses[:3]
        ],
        "next_step_action": action,
    }


def _planner(asked: Asked) -> Json:
    known, found = knowledge(), _findings(asked.dialogue)
    state = {True: "present", False: "absent", None: "unknown"}
    hypotheses: list[Json] = []
    for name, _ in _guesses(asked.dialogue)[:4]:
        links = sorted(known.diseases[name].links, key=lambda link: -link.p)[:6]
        findings = [
            {
                "finding": known.findings[link.finding].name[:80],
                "weight": max(1, round(5 * link.p)),
                "expected": "present",
                "observed": state[found.get(link.finding)],
            }
            for link in links
        ]
        hypotheses.append({"diagnosis": known.diseases[name].name[:80], "findings": findings})
    return {"hypotheses": hypotheses, "discriminators": []}


def _patient(asked: Asked) -> str | Json:
    if asked.schema is not None:
        chosen = _suggested(asked)
        lines = [re.search(rf'^{fact}: ([^"\n]*)(?:"(.+)")?', asked.messages[0], re.MULTILINE) for fact in chosen]
        reply = " ".join(line[2] or line[1] for line in lines if line)
        part = {"asked": asked.newest[:80], "facts": chosen, "kind": "answer" if chosen else "unknown"}
        return {"parts": [part], "reply": (reply or "I do not know.")[:600]}
    noted = next((text for text in reversed(asked.messages) if "Your notes:" in text), "")
    return " ".join(re.findall(r"^- (.+)", noted, re.MULTILINE)) or "I am not sure."


def _measurement(asked: Asked) -> str | Json:
    if asked.schema is not None:
        return {"items": _suggested(asked), "not_in_chart": []}
    return "RESULTS: not available."


def _suggested(asked: Asked) -> list[str]:
    """The facts or results that the request itself suggests."""
    listed = re.search(r"seem to fit: ([^.]+)\.", asked.newest)
    return listed[1].split(", ")[:6] if listed else []


def _moderator(asked: Asked) -> str | Json:
    said = re.search(r"<diagnosis>(.*?)</diagnosis>", asked.newest, re.DOTALL)
    truth, accept = (re.search(rf"\[{title}\]\n(.+)", asked.newest) for title in ("Correct diagnosis", "Also accepted"))
    found = compare(said[1] if said else "", truth[1] if truth else "", (accept[1],) if accept else ())
    if asked.schema is not None:
        return {"relation": str(found.relation or Relation.DIFFERENT), "reason": found.reason[:300]}
    return "Yes" if found.relation in STRICT else "No"


def _synthesis(asked: Asked) -> str:
    return _named(asked.newest)[0][0]


def _query(asked: Asked) -> str:
    """What a custom doctor asks: the likeliest disease, and how likely it is."""
    name, probability = _named(asked.newest)[0]
    return f"{name}, {round(100 * probability)} %"


def _confidence(asked: Asked) -> Json:
    return {"hypotheses": [{"diagnosis": name[:80], "probability": p} for name, p in _named(asked.newest)]}


def _by_form(asked: Asked) -> str | Json:
    """Anything else: the smallest answer that has the form asked for."""
    if asked.schema is not None:
        return dict(_minimal(asked.schema, asked.schema))
    return "This is a demonstration model. It can only play the roles of the clinic."


_ANSWERS: dict[str, Callable[[Asked], str | Json]] = {
    "doctor": _doctor,
    "planner": _planner,
    "patient": _patient,
    "measurement": _measurement,
    "moderator": _moderator,
    "synthesis": _synthesis,
    "confidence": _confidence,
    "query": _query,
}


def _minimal(schema: Json, root: Json) -> Any:
    """The smallest value that a JSON schema accepts, as far as pydantic writes schemas."""
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _minimal(target, root)
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return _minimal(schema[union][0], root)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "string":
            return "none".ljust(schema.get("minLength", 0), ".")
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            return [_minimal(schema["items"], root) for _ in range(schema.get("minItems", 0))]
        case _:
            return {name: _minimal(schema["properties"][name], root) for name in schema.get("required", ())}
