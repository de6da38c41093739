"""The uncertainty-aware doctor: one tool call a turn, its notes as its memory, its doubts on record.

What comes back from the model is understood if it can be, sent back once with what is wrong if it cannot, and then
handled: no turn ends without a step in the session, and nothing the doctor heard is lost to the synthesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import History, Incoming, door_text, utterance
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.clinic.prompts import Prompt, Prompts, fill, joined
from agentclinic.doctors.uncertainty.agent_config import AgentSettings
from agentclinic.doctors.uncertainty.steps import (
    NO_DOUBTS,
    Doubts,
    Uncertainty,
    loosely,
    read_action,
    read_uncertainties,
    stated_differential,
)
from agentclinic.doctors.uncertainty.store import Session, SessionStore, set_current_session, use_store
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.doctors.uncertainty.tools import (
    OPEN_QUESTION,
    Taken,
    ToolError,
    check_step,
    conclude,
    read_arguments,
    salvage,
    take_step,
    tools,
    top_of,
)
from agentclinic.models.base import (
    BadRequestError,
    Image,
    MalformedError,
    Message,
    Model,
    Purpose,
    Reply,
    Request,
    ToolCall,
    UnknownModelError,
)
from agentclinic.results.actions import Action, parse_action
from agentclinic.results.differential import Differential
from agentclinic.results.turn import Exchange, Turn, Usage

ToolName = Literal["diagnosis_step", "final_diagnosis"]


class ToolChoice(BaseModel):
    """A tool call for models that have no tools: the same record as structured output."""

    tool: ToolName
    new_information: str
    current_uncertainties: Annotated[list[Uncertainty], BeforeValidator(loosely)] = Field(max_length=10)
    next_step_action: str
    reason_ready: str


@dataclass(frozen=True)
class _Call:
    """What the doctor wants, understood."""

    tool: ToolName
    new_information: str = ""
    doubts: Doubts = NO_DOUBTS
    action: str = ""
    reason: str = ""
    said: str | None = None
    """A diagnosis named in prose."""

    @property
    def ready(self) -> bool:
        """Whether the doctor wants to conclude."""
        following = read_action(self.action)
        return self.tool == "final_diagnosis" or (following is not None and following.kind == "ready")


class _Wrong(Exception):  # noqa: N818 - not a failure: something to tell the doctor
    """A reply that cannot be carried out as it is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UncertaintyDoctor:
    """Leads an encounter through `diagnosis_step` and `final_diagnosis`."""

    def __init__(
        self,
        door: Door,
        model: Model,
        synthesis_model: Model,
        agent: AgentSettings,
        prompts: Prompts,
        *,
        limit: int,
        store: SessionStore,
        session_id: str,
        bias: str | None = None,
        images: bool = False,
    ) -> None:
        self.model = model
        self.session_id = session_id
        self._synthesis_model = synthesis_model
        self.agent = agent
        self.prompt: Prompt = prompts["uncertainty"]
        self._synthesis_prompt: Prompt = prompts["synthesis"]
        self.door = door
        self.limit = limit
        self._store = store
        self._history = History()
        self.images: tuple[Image, ...] = ()
        self.last_action: Action | None = None
        self.structured = False
        self._begun = False
        # Nothing in here changes during the encounter: a provider's prompt cache can reuse all of it.
        self.system_prompt = joined(
            agent.system_prompt.strip(),
            fill(self.prompt.text("system_base"), max_infs=limit, door=door_text(door)),
            self.prompt.text("images_suffix") if images else "",
            prompts["doctor"].bias(bias),
        )

    @property
    def history(self) -> str:
        """The dialogue as the doctor heard it."""
        return self._history.text

    def hear(self, entry: str) -> None:
        """Take something into the history outside the turns."""
        self._history.add(entry)

    def session(self) -> Session:
        """The session so far; at the first look a new one begins."""
        if not self._begun:
            self._store.begin(self.session_id)
            self._begun = True
        return self._store.load(self.session_id)

    async def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...] = (), *, turn: int, last: bool, notes: str = ""
    ) -> tuple[Turn]:
        """One tool call, carried out; on the last turn, and when the doctor is ready, the diagnosis."""
        use_store(self._store)
        set_current_session(self.session_id)
        self.images = tuple(dict.fromkeys((*self.images, *incoming.images)))
        now = _Attempt(self, incoming, exchanges, turn, last, notes)
        call = await now.ask()
        said = await self._carry_out(call, now)
        self._history.add_turn(incoming, said.text)
        self.last_action = said.action
        return (said,)

    def say(self, incoming: Incoming, text: str) -> None:
        """Take words said in the doctor's name into history and session; a diagnosis among them ends it."""
        self._history.add_turn(incoming, text)
        session = self.session()
        fact = learned(self.door, incoming, self.last_action)
        session.add(fact, session.current_uncertainties, text, recorded_by="planner")
        self.last_action = parse_action(text)
        if self.last_action.kind == "diagnosis":
            session.final_diagnosis = self.last_action.content  # type: ignore[attr-defined]
        self._store.save(session)

    async def _carry_out(self, call: _Call, now: _Attempt) -> Turn:
        taken = self._record(call, now)
        remarks = [*now.remarks, *taken.remarks]
        session = self.session()
        details: dict[str, Any] = {"tool": call.tool, "step": len(session.steps)}
        differential = _differential(session)
        if not (call.ready or now.last):
            return self._said(taken.next.utterance, now, now.usage, differential, remarks, details)
        found = await synthesise(
            self._synthesis_model, self._synthesis_prompt, session.facts, top_of(session) or call.said
        )
        if found.error:
            remarks.append(f"synthesis failed, the top of the differential was taken ({found.error})")
        if not call.ready:
            remarks.append("last turn: concluded for the doctor")
        details["synthesis"] = {"model": found.model, "failed": found.error}
        text = conclude(self._store, self.session_id, call.reason, found)
        return self._said(text, now, now.usage + found.usage, differential, remarks, details)

    @staticmethod
    def _said(
        text: str,
        now: _Attempt,
        usage: Usage,
        differential: Differential | None,
        remarks: Sequence[str],
        details: Mapping[str, Any],
    ) -> Turn:
        reply = Reply(text, usage=usage, differential=differential, notes=tuple(remarks))
        return utterance(reply, turn=now.turn).model_copy(update={"details": details})

    def _record(self, call: _Call, now: _Attempt) -> Taken:
        """Write the step; with `final_diagnosis` the newest reply, which no step holds yet."""
        doubts, information = call.doubts, call.new_information.strip()
        ours: dict[str, Any] = {"turn": now.turn}
        if call.tool == "final_diagnosis" or not information:
            information, ours["recorded_by"] = now.learned, "clinic"
        if not doubts.items:  # the doubts of the step before still stand
            steps = self.session().steps
            doubts = read_uncertainties(getattr(steps[-1], "differential", [])) if steps else doubts
        action = call.action or ("DIAGNOSIS READY" if call.ready else "")
        return take_step(self._store, self.session_id, information, doubts, action, **ours)


def _differential(session: Session) -> Differential | None:
    """The differential of the last step."""
    given = getattr(session.steps[-1], "differential", None) if session.steps else None
    return stated_differential(read_uncertainties(given)) if given else None


def learned(door: Door, incoming: Incoming, asked: Action | None) -> str:
    """A reply as a fact that can be understood on its own; before any, what stands on the door."""
    if not incoming.speaker:
        return door_text(door).replace("\n", "; ")
    # Cut: a weak model's question may be a page long, and a fact is about the answer.
    about = f"{asked.content[:150]} " if asked and asked.kind in ("question", "test") else ""
    return f"{about}{incoming.line}"


class _Attempt:
    """One turn of the doctor: asking the model until it makes sense, at most twice."""

    def __init__(
        self,
        doctor: UncertaintyDoctor,
        incoming: Incoming,
        exchanges: tuple[Exchange, ...],
        turn: int,
        last: bool,
        notes: str,
    ) -> None:
        self.turn = turn
        self.last = last
        self.remarks: list[str] = []
        self._doctor = doctor
        self._incoming = incoming
        self._exchanges = exchanges
        self._notes = notes
        self._usages: list[Usage] = []
        self._prompt = doctor.prompt
        self._nothing_heard = not incoming.speaker

    @property
    def usage(self) -> Usage:
        """What the requests of this turn cost."""
        return reduce(add, self._usages) if self._usages else Usage(requests=0)

    @property
    def learned(self) -> str:
        """The newest reply as a fact that can be understood on its own."""
        return learned(self._doctor.door, self._incoming, self._doctor.last_action)

    async def ask(self) -> _Call:
        """The doctor's call; a reply that cannot be used is sent back once, then made the best of."""
        messages = self._messages()
        reply = Reply("")
        for attempt in ("sent back once", "made the best of"):
            try:
                reply = await self._request(messages)
                return self._understood(reply)
            except _Wrong as wrong:
                self.remarks.append(f"{attempt}: {wrong.message}")
                messages = (*messages, *self._sent_back(reply, wrong.message))
            except MalformedError as error:  # structured output was sent back once already, or there was no text at all
                self.remarks.append(f"made the best of: {error}")
                if error.usage:
                    self._usages.append(error.usage)
                reply = Reply(error.text) if error.text else reply
                break
        return self._handled(reply)

    def _messages(self) -> tuple[Message, ...]:
        doctor, session = self._doctor, self._doctor.session()
        prompt = self._prompt
        last = doctor.last_action
        moment = prompt.text("last_turn") if self.last else prompt.text("first_turn") if self._nothing_heard else ""
        user = fill(
            prompt.text("user_prompt_template"),
            record=session.accumulated_notes or prompt.text("no_notes"),
            asked=_shown(last) if last else prompt.text("no_action"),
            reply=self._incoming.line,
            turn=self.turn,
            max_infs=doctor.limit,
            notes=joined(self._notes, moment),
        )
        return Message("system", doctor.system_prompt), Message("user", user, images=doctor.images)

    async def _request(self, messages: tuple[Message, ...]) -> Reply:
        if not self._doctor.structured:
            try:
                return await self._send(messages, structured=False)
            except UnknownModelError:
                raise
            except BadRequestError as error:
                # The endpoint knows no tools, or not for this model: the same as structured output, from now on.
                self._doctor.structured = True
                self.remarks.append(f"tool calls were refused, structured output is used instead ({error})")
        return await self._send(messages, structured=True)

    async def _send(self, messages: tuple[Message, ...], *, structured: bool) -> Reply:
        doctor, agent = self._doctor, self._doctor.agent
        if structured:
            system = replace(messages[0], content=joined(messages[0].content, self._prompt.text("structured")))
            messages = (system, *messages[1:])
        names = [name for name in agent.tools if name not in agent.terminal_tools or not self._too_early]
        request = Request(
            Purpose.DOCTOR,
            messages,
            tools=() if structured else tools(names),
            tool_choice="auto" if structured else "required",
            schema=ToolChoice if structured else None,
            payload=DoctorPayload(
                doctor.door, self._exchanges, self.turn, doctor.limit, self.last, offered=tuple(names)
            ),
            temperature=agent.temperature,
        )
        reply = await doctor.model.reply(request)
        self._usages.append(reply.usage)
        self.remarks.extend(note for note in reply.notes if note not in self.remarks)
        return reply

    @property
    def _too_early(self) -> bool:
        """Whether there is nothing yet that a diagnosis could rest on: no answer, no result, no image."""
        asked = any(exchange.kind != "images" for exchange in self._exchanges)
        return not (self.last or asked or self._doctor.images)

    def _understood(self, reply: Reply) -> _Call:
        if len(reply.tool_calls) > 1:
            self.remarks.append(f"{len(reply.tool_calls)} tool calls at once: only the first counts")
        if reply.tool_calls:
            call = _called(reply.tool_calls[0])
        elif isinstance(reply.parsed, ToolChoice):
            call = _chosen(reply.parsed)
        else:
            raise _Wrong("prose instead of a tool call")
        if call.tool not in self._doctor.agent.tools:
            raise _Wrong(f"the tool {call.tool} is not open here")
        if call.ready and self._too_early:
            raise _Wrong("concluding before anything was learned")
        if call.tool == "diagnosis_step" and not self.last:
            problem = check_step(call.doubts, call.action)
            if problem:
                raise _Wrong(problem)
        return call

    def _sent_back(self, reply: Reply, problem: str) -> tuple[Message, ...]:
        """The conversation goes on: what the doctor did, and what is wrong with it."""
        prose = not reply.tool_calls and reply.parsed is None
        early = problem.startswith("concluding before")
        told = (
            self._prompt.text("reminder")
            if prose
            else self._prompt.text("not_yet")
            if early
            else fill(self._prompt.text("wrong_call"), problem=problem)
        )
        if not reply.tool_calls:
            return Message("assistant", reply.text), Message("user", told)
        answers = [
            Message("tool", told if place == 0 else self._prompt.text("one_call"), tool_call_id=call.id)
            for place, call in enumerate(reply.tool_calls)
        ]
        return (Message("assistant", reply.text, tool_calls=reply.tool_calls), *answers)

    def _handled(self, reply: Reply) -> _Call:
        """The best that can be made of a reply that stayed unusable."""
        given: Mapping[str, Any] = {}
        prose = reply.text
        if reply.tool_calls:
            given = salvage("diagnosis_step", reply.tool_calls[0].arguments)
        elif isinstance(reply.parsed, ToolChoice):
            given, prose = reply.parsed.model_dump(), ""
        elif reply.text.lstrip().startswith(("{", "```")):  # a form, filled in wrongly: nothing to say to a patient
            given, prose = salvage("diagnosis_step", reply.text), ""
        elif not self._doctor.structured:
            # Twice prose: a model, or a server, that does not do tool calls. A form may suit it better next time.
            self._doctor.structured = True
            self.remarks.append("structured output is used from the next turn on")
        doubts = read_uncertainties(given.get("current_uncertainties") or ())
        information = str(given.get("new_information") or "")
        words = str(given.get("next_step_action") or prose).strip()
        action = parse_action(words)
        if action.kind == "diagnosis" or (not words and self.last):
            said = action.content if action.kind == "diagnosis" else None
            if self._too_early:
                return self._clinics(OPEN_QUESTION, information, doubts)
            return _Call("diagnosis_step", information, doubts, "DIAGNOSIS READY", said=said or None)
        if action.kind in ("test", "images") or read_action(words):
            return _Call("diagnosis_step", information, doubts, words)
        return self._clinics(words or OPEN_QUESTION, information, doubts)

    def _clinics(self, question: str, information: str, doubts: Doubts) -> _Call:
        return _Call("diagnosis_step", information, doubts, f"ASK PATIENT: {question}")


def _shown(action: Action) -> str:
    return {"test": f"REQUEST TEST: {action.content}", "images": "REQUEST IMAGES"}.get(
        action.kind, f"ASK PATIENT: {action.content}"
    )


def _called(call: ToolCall) -> _Call:
    try:
        given = read_arguments(call.name, call.arguments)
    except ToolError as error:
        raise _Wrong(str(error)) from None
    if call.name == "final_diagnosis":
        return _Call("final_diagnosis", reason=given["reason_ready"])
    return _Call(
        "diagnosis_step",
        given["new_information"],
        read_uncertainties(given["current_uncertainties"]),
        given["next_step_action"],
    )


def _chosen(choice: ToolChoice) -> _Call:
    doubts = read_uncertainties(choice.current_uncertainties)
    if choice.tool == "final_diagnosis":
        return _Call("final_diagnosis", doubts=doubts, reason=choice.reason_ready)
    return _Call("diagnosis_step", choice.new_information, doubts, choice.next_step_action, choice.reason_ready)
