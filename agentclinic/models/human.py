"""A person at the terminal in the place of a model."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from agentclinic.models.base import BadRequestError, Leave, Reply, Request, Rewind, Usage
from agentclinic.models.payloads import DoctorPayload, Exchange, PatientPayload

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


class Human:
    """Shows the request to a person and reads the answer."""

    name = "human"

    def __init__(self, read: Callable[[str], str] = input, out: TextIO | None = None) -> None:
        self._read = read
        self._out = out or sys.stdout

    async def reply(self, request: Request) -> Reply:
        """Ask the person for the next words of doctor or patient."""
        match request.payload:
            case DoctorPayload() as payload:
                text = await self._doctor(payload)
            case PatientPayload() as payload:
                text = await self._patient(payload)
            case _:
                raise BadRequestError(f"a person can play doctor or patient, not {request.purpose}")
        return Reply(text, usage=Usage(input_tokens=0, output_tokens=0, cached_tokens=0, reasoning_tokens=0))

    async def _doctor(self, payload: DoctorPayload) -> str:
        if payload.turn == 1:
            self._show(
                _HELP_DOCTOR, "", f"Patient: {payload.door.demographics}", f"Objective: {payload.door.objective}"
            )
        else:
            self._show(payload.exchanges[-1].reply)
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
                    if not self._command(command, payload.exchanges, _HELP_DOCTOR):
                        return line

    async def _patient(self, payload: PatientPayload) -> str:
        if not any(exchange.kind == "question" for exchange in payload.asked):
            self._show(_HELP_PATIENT, "")
            self._script(payload)
        self._show("", f"Doctor: {payload.question}")
        while True:
            line = await self._line("patient> ")
            if line == ":script":
                self._script(payload)
            elif not self._command(line, payload.asked, _HELP_PATIENT):
                return line

    def _script(self, payload: PatientPayload) -> None:
        self._show("Your script:", *(f"  {' / '.join(fact.heads)}: {fact.text}" for fact in payload.facts))

    def _command(self, command: str, exchanges: tuple[Exchange, ...], help_text: str) -> bool:
        """Carry out a command; False when the line is not one."""
        match command:
            case ":help":
                self._show(help_text)
            case ":history":
                for exchange in exchanges:
                    self._show(f"Doctor: {exchange.content}", f"  {exchange.reply}")
                if not exchanges:
                    self._show("(nothing yet)")
            case ":undo":
                if exchanges:
                    raise Rewind
                self._show("There is nothing to take back.")
            case ":quit":
                raise Leave
            case _ if command.startswith(":"):
                self._show(f"{command} is not a command; :help lists them.")
            case _:
                return False
        return True

    def _show(self, *lines: str) -> None:
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()

    async def _line(self, prompt: str) -> str:
        """One non-empty line, read in a thread of its own that does not keep the process alive."""
        while True:
            line = (await _in_daemon_thread(self._read, prompt)).strip()
            if line:
                return line


async def _in_daemon_thread(read: Callable[[str], str], prompt: str) -> str:
    done = anyio.Event()
    token = current_token()
    lines: list[str] = []

    def work() -> None:
        with suppress(EOFError):
            lines.append(read(prompt))
        anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=work, daemon=True).start()
    await done.wait()
    if not lines:
        raise Leave
    return lines[0]
