"""A person at the terminal in place of a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import TextIO

from agentclinic import sync_bridge
from agentclinic.clinic.payloads import DoctorPayload, PatientPayload, SynthesisPayload
from agentclinic.jsonl import encodable, inert
from agentclinic.models.base import BadRequestError, Image, Reply, Request, ToolCall
from agentclinic.results.turn import NO_TOKENS, Exchange

_HELP_DOCTOR = """\
You are the doctor. Write to the patient, or:
  :test NAME       request a test or an examination   (REQUEST TEST: NAME)
  :diagnose NAME   commit to a diagnosis and finish   (DIAGNOSIS READY: NAME)
  :images          ask for the case's images          (REQUEST IMAGES)
  :history         show the dialogue so far
  :undo            take back your last turn and the reply to it
  :help            show this
  :quit            stop; this scenario is not recorded"""
_HELP_PATIENT = """\
You are the patient. Answer the doctor from your script, or:
  :script          show your script again
  :history         show the dialogue so far
  :undo            take back your last answer
  :help            show this
  :quit            stop; this scenario is not recorded"""


class Rewind(Exception):  # noqa: N818 - not an error: the person's choice
    """The person takes back their last words."""


class Leave(Exception):  # noqa: N818 - not an error: the person's choice
    """The person ends the run here; the encounter in progress is not recorded."""


class Human:
    """Shows the request to a person and reads the answer."""

    name = "human"

    def __init__(self, read: Callable[[str], str] = input, out: TextIO | None = None, *, undo: bool = True) -> None:
        self._undo = undo
        self._read = read
        self._out = out or sys.stdout

    async def reply(self, request: Request) -> Reply:
        """Ask the person for the next words of doctor or patient."""
        match request.payload:
            case DoctorPayload() as payload:
                if len(request.messages) > 2:  # the entry was sent back: say why before asking again
                    self._show("", next(m.content for m in reversed(request.messages) if m.role in ("tool", "user")))
                text = await self._doctor(payload, request.messages[-1].images if request.messages else ())
                if payload.offered:
                    return await self._step(payload, text)
            case SynthesisPayload() as facts:
                self._show("The facts you recorded:", *(f"  - {fact}" for fact in facts.facts))
                text = await self._line("diagnosis> ")
                if text == ":quit":
                    raise Leave
            case PatientPayload() as payload:
                text = await self._patient(payload)
            case _:
                raise BadRequestError(f"a person can play the doctor or the patient, not the {request.purpose}")
        return Reply(text, usage=NO_TOKENS)

    async def _step(self, payload: DoctorPayload, said: str) -> Reply:
        """The person's words as a tool call, after asking what was learned and what is still possible."""
        action = said if said.startswith(("REQUEST", "DIAGNOSIS READY")) else f"ASK PATIENT: {said}"
        arguments = {
            "new_information": await self._noted(payload, "what you learned> "),
            "current_uncertainties": await self._noted(
                payload, "possible diagnoses, likeliest first, e.g. gout 60 %, septic arthritis 30 %> "
            ),
            "next_step_action": action,
        }
        call = ToolCall(f"human-{payload.turn}", "diagnosis_step", json.dumps(arguments, ensure_ascii=False))
        return Reply("", tool_calls=(call,), usage=NO_TOKENS)

    async def _noted(self, payload: DoctorPayload, prompt: str) -> str:
        while True:
            line = await self._line(prompt)
            if not self._command(line, payload.exchanges, _HELP_DOCTOR, spoken=bool(payload.exchanges)):
                return line

    async def _doctor(self, payload: DoctorPayload, images: tuple[Image, ...]) -> str:
        if payload.exchanges:
            latest = payload.exchanges[-1]
            self._show(latest.reply, *(f"  {image.url}" for image in images if latest.kind == "images"))
        else:
            patient = [f"Patient: {payload.door.demographics}"] if payload.door.demographics else []
            self._show(_HELP_DOCTOR, "", *patient, f"Objective: {payload.door.objective}")
        if payload.last:
            self._show("This is your last turn: only a diagnosis counts now.")
        while True:
            line = await self._line(f"doctor {payload.turn}/{payload.limit}> ")
            command, _, rest = line.partition(" ")
            match command:
                case ":test" if rest.strip():
                    return f"REQUEST TEST: {rest.strip()}"
                case ":diagnose" if rest.strip():
                    return f"DIAGNOSIS READY: {rest.strip()}"
                case ":test" | ":diagnose":
                    self._show(f"{command} needs a name, e.g. {command} Chest X-ray")
                case ":images":
                    return "REQUEST IMAGES"
                case _:
                    if not self._command(command, payload.exchanges, _HELP_DOCTOR, spoken=bool(payload.exchanges)):
                        return line

    async def _patient(self, payload: PatientPayload) -> str:
        spoken = any(exchange.kind == "question" for exchange in payload.asked)
        if not spoken:
            self._show(_HELP_PATIENT, "")
            self._script(payload)
        self._show("", f"Doctor: {payload.question}")
        while True:
            line = await self._line("patient> ")
            if line == ":script":
                self._script(payload)
            elif not self._command(line, payload.asked, _HELP_PATIENT, spoken=spoken):
                return line

    def _script(self, payload: PatientPayload) -> None:
        self._show("Your script:", *(f"  {' / '.join(fact.heads)}: {fact.text}" for fact in payload.facts))

    def _command(self, command: str, exchanges: tuple[Exchange, ...], help_text: str, *, spoken: bool) -> bool:
        """Carry out a command; False if the line is not one."""
        match command:
            case ":help":
                self._show(help_text)
            case ":history":
                for exchange in exchanges:
                    self._show(f"Doctor: {exchange.content}", f"  {exchange.reply}")
                if not exchanges:
                    self._show("(nothing yet)")
            case ":undo":
                if spoken and self._undo:
                    raise Rewind
                self._show("There is nothing to take back." if self._undo else "A custom doctor cannot go back.")
            case ":quit":
                raise Leave
            case _ if command.startswith(":"):
                self._show(f"{command} is not a command; :help lists them.")
            case _:
                return False
        return True

    def _show(self, *lines: str) -> None:
        """Show lines; nothing in them acts on the terminal, and what it cannot show does not end the run."""
        text, encoding = inert("\n".join(lines)) + "\n", self._out.encoding or "utf-8"
        self._out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._out.flush()

    async def _line(self, prompt: str) -> str:
        """One non-empty line; end of input means quitting."""
        while True:
            try:
                line = encodable(await sync_bridge.in_thread(partial(self._read, prompt))).strip()
            except EOFError:
                raise Leave from None
            except UnicodeDecodeError:
                self._show("That is not UTF-8 text; set the terminal to UTF-8, or type it without special letters.")
                continue
            if line:
                return line
