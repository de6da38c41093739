"""A person at the terminal in place of a model, and how a reply is taken back.

The encounter itself knows nothing of undo. Every reply of an encounter is kept in order; to go back, the person's last
reply and everything after it are dropped, and the encounter is played again from the start with the replies that are
left. Roles and doctors are deterministic given the replies, so it arrives at the same point.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TextIO, TypeVar

from agentclinic import sync_bridge
from agentclinic.cases.model import Fact
from agentclinic.clinic.payloads import DoctorPayload, JudgePayload, PatientPayload
from agentclinic.config import is_person
from agentclinic.doctors.plain import ConfidencePayload, StatedDifferential, StatedHypothesis
from agentclinic.doctors.uncertainty.steps import read_uncertainties, stated_differential
from agentclinic.doctors.uncertainty.synthesis import SynthesisPayload
from agentclinic.jsonl import encodable, inert
from agentclinic.models import recording
from agentclinic.models.base import BadRequestError, Image, Model, ModelError, Reply, Request, ToolCall
from agentclinic.results.turn import NO_TOKENS, Differential, Exchange

Played = TypeVar("Played")


@dataclass(frozen=True)
class _Kept:
    role: str
    by_person: bool
    outcome: Reply | ModelError
    requests_before: recording.Asked


class Tape:
    """The replies of one encounter so far."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self._next = 0

    def wrap(self, model: Model, role: str) -> Model:
        """A model whose replies are kept, and repeated when the encounter is played again."""
        return _Taped(model, role, self)

    async def play(self, encounter: Callable[[], Awaitable[Played]]) -> Played:
        """Play an encounter, again from the start each time a person goes back."""
        while True:
            self._next = 0
            try:
                return await encounter()
            except Rewind:
                continue

    async def reply(self, model: Model, role: str, request: Request) -> Reply:
        """The kept reply, if there is one for this point, else a new one."""
        if self._next == len(self._kept):
            self._kept.append(await self._ask(model, role, request))
        outcome = self._kept[self._next].outcome
        self._next += 1
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def _ask(self, model: Model, role: str, request: Request) -> _Kept:
        before = recording.requests_made()
        try:
            outcome: Reply | ModelError = await model.reply(request)
        except ModelError as error:
            outcome = error
        except Rewind:
            self._forget_last(role, before)
            raise
        return _Kept(role, is_person(model.name), outcome, before)

    def _forget_last(self, role: str, before: recording.Asked) -> None:
        """Drop the person's last reply in this role and everything after it; without one, ask again."""
        spoken = [place for place, kept in enumerate(self._kept) if kept.role == role and kept.by_person]
        if spoken:
            before = self._kept[spoken[-1]].requests_before
            del self._kept[spoken[-1] :]
        recording.forget_requests_since(before)


class _Taped:
    def __init__(self, model: Model, role: str, tape: Tape) -> None:
        self.name = model.name
        self._model = model
        self._role = role
        self._tape = tape

    async def reply(self, request: Request) -> Reply:
        return await self._tape.reply(self._model, self._role, request)


_EXAMPLE = "gout 60%, septic arthritis 30%"
_SHARED = """\
  :history         show the dialogue so far
  :notes           show your notes; :notes TEXT adds one
  :undo            take back your last {turn}
  :help            show this
  :quit            stop; this case is not recorded, and `agentclinic resume` plays it again"""
_HELP = {
    "doctor": f"""\
You are the doctor. Write to the patient, or:
  :test NAME       request a test or an examination
  :images          ask for the case's images
  :diagnose NAME   commit to a diagnosis and finish
  :differential    show what you think it may be; :differential {_EXAMPLE} states it
{_SHARED.format(turn="turn and the reply to it")}""",
    "patient": f"""\
You are the patient. Answer the doctor from your script, in your own words, or:
  :script          show your script again
{_SHARED.format(turn="answer")}""",
}
_BARE = re.compile(r"(?:diagnose|test):? +.+|differential|help|history|images|notes|quit|undo", re.IGNORECASE)
"""A line that looks like a command without its colon."""
_SPEAKERS = {"question": "Patient", "test": "Laboratory", "images": "Clinic", "none": "Clinic"}
_ASKED = {"test": "(orders {})", "images": "(asks for the images)", "none": "(was not understood)"}
_LABEL = len("Laboratory: ")
"""What is said starts in this column, after the speaker."""
_WIDEST = 100
"""Columns of a line: longer ones are hard to read, however wide the terminal."""


class Rewind(Exception):  # noqa: N818 - not an error: the person's choice
    """The person takes back their last words."""


class Leave(Exception):  # noqa: N818 - not an error: the person's choice
    """The person ends the run here; the encounter in progress is not recorded."""


class Screen:
    """Shows text to a person: on a terminal, wrapped at its width."""

    def __init__(self, out: TextIO | None = None, widest: int | None = _WIDEST) -> None:
        self.out = out or sys.stdout
        self._widest = widest

    def show(self, *lines: str) -> None:
        """Show lines; the rest of a long line starts below its own beginning, or below its second column."""
        for line in "\n".join(lines).split("\n"):
            indent = re.match(r"\s*(?:- |\S++(?: \S++)*+ {2,}(?=\S))?", line)
            self._write(line, " " * indent.end() if indent else "")
        self.out.flush()

    def say(self, speaker: str, text: str) -> None:
        """Show what someone said: the speaker first, and the words in a column of their own."""
        for place, line in enumerate(_parts(text)):
            indent = " " * (_LABEL + 2 * line.startswith("- "))
            self._write(f"{f'{speaker}:' if place == 0 else '':{_LABEL}}{line}".rstrip(), indent)
        self.out.flush()

    def _write(self, line: str, indent: str) -> None:
        """Write a line without control characters; what the terminal cannot encode is escaped."""
        line, encoding = inert(line), self.out.encoding or "utf-8"
        if self.out.isatty():
            columns = shutil.get_terminal_size().columns
            width = min(columns, self._widest or columns) - 1
            wrapped = textwrap.wrap(
                line,
                max(width, 2 * _LABEL),
                subsequent_indent=indent,
                break_long_words=False,  # an address is there to be copied
                break_on_hyphens=False,
            )
            line = "\n".join(wrapped)
        self.out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _parts(text: str) -> list[str]:
    """The lines of a text; a report of several panels gets a line for each and loses its token."""
    return re.sub(r"(?<=\.) (?=[A-Z][^.:;]{1,40}: )", "\n", text.removeprefix("RESULTS:").strip()).split("\n")


@dataclass
class _Pad:
    """What a person wrote down during one encounter, and in which turn."""

    notes: list[tuple[int, str]] = field(default_factory=list)
    differentials: list[tuple[int, Differential]] = field(default_factory=list)

    def since(self, turn: int) -> tuple[tuple[str, ...], Differential | None]:
        """What to record with the words of this turn: only what was not recorded with an earlier one."""
        stated = [differential for when, differential in self.differentials if when >= turn]
        return tuple(f"note: {note}" for when, note in self.notes if when >= turn), stated[-1] if stated else None


@dataclass(frozen=True)
class _Moment:
    """Where the encounter is when a person is asked."""

    role: str
    turn: int
    exchanges: tuple[Exchange, ...]
    spoken: bool
    """Whether there is anything to take back."""
    script: tuple[str, ...] = ()


class Human:
    """Shows the request to a person and reads the answer."""

    def __init__(
        self, read: Callable[[str], str] = input, out: TextIO | None = None, *, undo: bool = True, name: str = "human"
    ) -> None:
        self.name = name
        self._undo = undo
        self._read = read
        self._screen = Screen(out)
        self._pads = {"doctor": _Pad(), "patient": _Pad()}
        self._helped: set[str] = set()
        self._rewound = False
        if read is input and sys.stdin.isatty():
            _edit_lines()

    async def reply(self, request: Request) -> Reply:
        match request.payload:
            case DoctorPayload() as payload:
                return await self._doctor(payload, request)
            case PatientPayload() as payload:
                return await self._patient(payload)
            case SynthesisPayload() as facts:
                self._screen.show("", "The facts you recorded:", *(f"  - {fact}" for fact in facts.facts))
                text = await self._line("diagnosis> ")
                if text == ":quit":
                    raise Leave
                return Reply(text, usage=NO_TOKENS)
            case ConfidencePayload():
                return await self._confidence()
            case JudgePayload() as asked:
                return await self._judge(asked)
        raise BadRequestError(f"a person can play the doctor, the patient or the judge, not the {request.purpose}")

    # As the judge

    async def _judge(self, asked: JudgePayload) -> Reply:
        self._screen.show("")
        self._screen.say("Doctor", asked.utterance or asked.diagnosis)
        self._screen.say("Truth", "; ".join((asked.truth, *asked.answer_key.accept)))
        while (said := (await self._line("the same disease? yes or no> ")).lower()) not in ("y", "yes", "n", "no"):
            if said == ":quit":
                raise Leave
        return Reply("Yes" if said.startswith("y") else "No", usage=NO_TOKENS)

    # As the doctor

    async def _doctor(self, payload: DoctorPayload, request: Request) -> Reply:
        moment = _Moment("doctor", payload.turn, payload.exchanges, bool(payload.exchanges))
        if payload.offered and len(request.messages) > 2:  # the entry was sent back: say why before asking again
            self._screen.show("", next(m.content for m in reversed(request.messages) if m.role in ("tool", "user")))
        else:
            self._arrive(moment)
            self._show_news(payload, request.messages[-1].images if request.messages else ())
        text = await self._words(payload, moment)
        if payload.offered:
            return await self._step(payload, moment, text)
        notes, differential = self._pads["doctor"].since(payload.turn)
        return Reply(text, usage=NO_TOKENS, notes=notes, differential=differential)

    def _show_news(self, payload: DoctorPayload, images: tuple[Image, ...]) -> None:
        if payload.exchanges:
            latest = payload.exchanges[-1]
            self._screen.show("")
            self._screen.say(_SPEAKERS[latest.kind], latest.reply)
            self._screen.show(*(f"  {image.url}" for image in images if latest.kind == "images"), "")
        else:
            self._screen.show(self._help("doctor"), "")
            if payload.door.demographics:
                self._screen.say("Patient", payload.door.demographics)
            self._screen.say("Objective", payload.door.told)
            self._screen.show("")
        if payload.last:
            self._screen.show("This is your last turn: only a diagnosis counts now.")

    async def _words(self, payload: DoctorPayload, moment: _Moment) -> str:
        before = line = ""
        while True:
            before, line = line, await self._line(f"doctor {payload.turn}/{payload.limit}> ")
            command, _, rest = line.partition(" ")
            match command:
                case ":test" if rest.strip():
                    return f"REQUEST TEST: {rest.strip()}"
                case ":diagnose" if rest.strip():
                    return f"DIAGNOSIS READY: {rest.strip()}"
                case ":test" | ":diagnose":
                    example = "Chest X-ray" if command == ":test" else "Gout"
                    self._screen.show(f"{command} needs a name, e.g. {command} {example}")
                case ":images":
                    return "REQUEST IMAGES"
                case _ if _BARE.fullmatch(line) and line != before:
                    meant = f":{command.lower().rstrip(':')} {rest.strip()}".rstrip()
                    self._screen.show(
                        f"Commands start with a colon: {meant}", "To say it to the patient, enter the same line again."
                    )
                case _:
                    if not self._command(line, moment):
                        return line

    async def _step(self, payload: DoctorPayload, moment: _Moment, said: str) -> Reply:
        """The person's words as a tool call, after asking what was learned and what is still possible."""
        action = said if said.startswith(("REQUEST", "DIAGNOSIS READY")) else f"ASK PATIENT: {said}"
        arguments = {
            "new_information": await self._answer("what you learned> ", moment),
            "current_uncertainties": await self._answer(
                f"possible diagnoses, likeliest first, e.g. {_EXAMPLE}> ", moment
            ),
            "next_step_action": action,
        }
        call = ToolCall(f"human-{payload.turn}", "diagnosis_step", json.dumps(arguments, ensure_ascii=False))
        return Reply("", tool_calls=(call,), usage=NO_TOKENS, notes=self._pads["doctor"].since(payload.turn)[0])

    async def _confidence(self) -> Reply:
        """How sure the person is, after the diagnosis; without numbers, nothing is recorded."""
        text = await self._line(f"how sure are you? e.g. {_EXAMPLE}> ")
        given = read_uncertainties(text).items
        sure = [StatedHypothesis(diagnosis=h.diagnosis, probability=h.probability) for h in given if h.probability]
        return Reply(text, parsed=StatedDifferential(hypotheses=sure[:10]) if sure else None, usage=NO_TOKENS)

    # As the patient

    async def _patient(self, payload: PatientPayload) -> Reply:
        spoken = any(exchange.kind == "question" for exchange in payload.asked)
        script = ("Your script:", *chart_lines(payload.facts))
        moment = _Moment("patient", len(payload.asked), payload.asked, spoken, script)
        self._arrive(moment)
        if not spoken:
            self._screen.show(self._help("patient"), "", *script)
        self._screen.show("")
        for exchange in _since_asked(payload.asked):
            self._screen.show(f"(The doctor orders: {exchange.content})")
        self._screen.say("Doctor", payload.question)
        text = await self._answer("patient> ", moment)
        notes, _ = self._pads["patient"].since(moment.turn)
        return Reply(text, usage=NO_TOKENS, notes=notes)

    # As either

    def _arrive(self, moment: _Moment) -> None:
        """A new encounter starts with an empty pad; going back to the start of one does not."""
        if not moment.spoken and not self._rewound:
            self._pads[moment.role] = _Pad()
        self._rewound = False

    def _help(self, role: str) -> str:
        """The commands before the first case; before later ones, only a reminder."""
        first = role not in self._helped
        self._helped.add(role)
        return _HELP[role] if first else f"You are the {role}; :help lists the commands."

    async def _answer(self, prompt: str, moment: _Moment) -> str:
        while True:
            line = await self._line(prompt)
            if not self._command(line, moment):
                return line

    def _command(self, line: str, moment: _Moment) -> bool:
        """Carry out a command; False if the line is not one."""
        command, _, rest = line.partition(" ")
        rest, pad = rest.strip(), self._pads[moment.role]
        match command:
            case ":help":
                self._screen.show(_HELP[moment.role])
            case ":script" if moment.script:
                self._screen.show(*moment.script)
            case ":history":
                for exchange in moment.exchanges:
                    self._screen.say("Doctor", _ASKED.get(exchange.kind, "{}").format(exchange.content))
                    self._screen.say(_SPEAKERS[exchange.kind], exchange.reply)
                if not moment.exchanges:
                    self._screen.show("(nothing yet)")
            case ":notes" | ":note":
                if rest:
                    pad.notes.append((moment.turn, rest))
                self._screen.show(*(f"  - {note}" for _, note in pad.notes) if pad.notes else ("(no notes yet)",))
            case ":differential" if moment.role == "doctor":
                stated = stated_differential(read_uncertainties(rest)) if rest else None
                if stated:
                    pad.differentials.append((moment.turn, stated))
                self._screen.show(*_ranked(pad.differentials[-1][1] if pad.differentials else None))
            case ":undo":
                if moment.spoken and self._undo:
                    self._screen.show("(taken back)")
                    self._rewound = True
                    raise Rewind
                self._screen.show("There is nothing to take back." if self._undo else "A custom doctor cannot go back.")
            case ":quit":
                raise Leave
            case _ if command.startswith(":"):
                self._screen.show(f"{command} is not a command; :help lists them.")
            case _:
                return False
        return True

    async def _line(self, prompt: str) -> str:
        """One non-empty line; end of input means quitting."""
        while True:
            try:
                with _terminal_kept(self._read):
                    line = encodable(await sync_bridge.in_thread(partial(self._read, prompt))).strip()
            except EOFError:
                self._screen.show("")  # whatever comes next does not belong on the line of the prompt
                raise Leave from None
            except asyncio.CancelledError:
                self._screen.show("")
                raise
            except UnicodeDecodeError:
                self._screen.show(
                    "That is not UTF-8 text; set the terminal to UTF-8, or type it without special letters."
                )
                continue
            if line:
                return line


def chart_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Facts as a list, below their headings."""
    heading = ""
    for fact in facts:
        if (head := " / ".join(fact.heads)) != heading and head:
            yield f"  {head}"
        heading = head
        yield f"    - {fact.text}"


def _since_asked(asked: tuple[Exchange, ...]) -> list[Exchange]:
    """What the doctor ordered since the last question."""
    last = max((place for place, exchange in enumerate(asked) if exchange.kind == "question"), default=-1)
    return [exchange for exchange in asked[last + 1 :] if exchange.kind == "test"]


def _ranked(differential: Differential | None) -> list[str]:
    if differential is None:
        return [f"(no differential yet; state one with :differential {_EXAMPLE})"]
    return [
        f"  - {h.diagnosis}" + ("" if h.probability is None else f" {h.probability:.0%}")
        for h in differential.hypotheses
    ]


def _edit_lines() -> None:
    """Arrow keys and earlier lines at the prompt, where Python supports them."""
    try:
        import readline
    except ImportError:  # Windows
        return
    readline.parse_and_bind("set enable-bracketed-paste off")  # an interrupted prompt would leave it on


@contextmanager
def _terminal_kept(read: Callable[[str], str]) -> Iterator[None]:
    """Leave the terminal as it was, even if Ctrl-C abandons a prompt that has changed it for editing."""
    if read is not input or sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
