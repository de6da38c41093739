"""The uncertainty-aware doctor: one tool call per turn, its notes as its memory, its doubts on record.

A reply that cannot be used is sent back once with the reason. Then its usable parts are used: every turn adds a
step to the session, and nothing the doctor was told is lost to the synthesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import Assignment, History, Incoming, Observation, Repetition, door_text, utterance
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.doctors.uncertainty.agent_config import AgentSettings
from agentclinic.doctors.uncertainty.documented import (
    GUIDELINES,
    OURS,
    QUERY,
    documented,
    in_our_words,
    in_their_words,
)
from agentclinic.doctors.uncertainty.notes import shown_notes
from agentclinic.doctors.uncertainty.steps import (
    FEWEST,
    MOST,
    NO_DOUBTS,
    Doubts,
    Uncertainty,
    fact_in,
    loosely,
    read_action,
    read_uncertainties,
    stated_differential,
)
from agentclinic.doctors.uncertainty.store import Session, SessionStore, set_current_session, use_store
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.doctors.uncertainty.tools import (
    LONGEST_ACTION,
    LONGEST_INFORMATION,
    OPEN_QUESTION,
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
    UnknownModelError,
)
from agentclinic.models.structured import at_most
from agentclinic.results.turn import Turn, Usage
from agentclinic.results.utterance import UNCLEAR, Action, parse_action


def _from(fewest: int) -> Any:
    """The differential of a form: `fewest` to `MOST` diagnoses are asked for, other numbers are accepted."""
    return Field(max_length=10, json_schema_extra={"minItems": fewest, "maxItems": MOST})


_Uncertainties = Annotated[list[Uncertainty], BeforeValidator(loosely)]


class ToolChoice(BaseModel):
    """A tool call for models that have no tools: the same record as structured output."""

    tool: Literal["diagnosis_step", "final_diagnosis"]
    new_information: str = Field(json_schema_extra=at_most(LONGEST_INFORMATION))
    current_uncertainties: _Uncertainties = _from(1)
    next_step_action: str = Field(json_schema_extra=at_most(LONGEST_ACTION))
    reason_ready: str = Field(json_schema_extra=at_most(LONGEST_ACTION))


class DocumentedChoice(BaseModel):
    """The same in the words of the original's `uncertainty_documentation_agent`."""

    tool: Literal["document_step", "final_diagnosis_documented"]
    new_information: str = Field(json_schema_extra=at_most(LONGEST_INFORMATION))
    uncertainties: _Uncertainties = _from(1)
    reference_relevance: str = Field(json_schema_extra=at_most(LONGEST_ACTION))
    action: str = Field(json_schema_extra=at_most(LONGEST_ACTION))
    reason: str = Field(json_schema_extra=at_most(LONGEST_ACTION))


class StepChoice(ToolChoice):
    """The same while it is too early to conclude."""

    tool: Literal["diagnosis_step"]
    current_uncertainties: _Uncertainties = _from(FEWEST)


@dataclass(frozen=True)
class _Call:
    """What the doctor wants to do."""

    tool: str
    new_information: str | None = None
    """Empty: nothing new. None: it did not say."""
    doubts: Doubts = NO_DOUBTS
    action: str = ""
    reason: str = ""
    said: str | None = None
    """A diagnosis named in prose."""
    further: Mapping[str, Any] = field(default_factory=dict)
    """What else it says about the step, by its key in the session."""

    @property
    def ready(self) -> bool:
        """Whether the doctor wants to conclude."""
        following = read_action(self.action)
        return self.tool == "final_diagnosis" or (following is not None and following.kind == "ready")


class _Unusable(Exception):  # noqa: N818 - not a failure: something to tell the doctor
    """A reply that cannot be carried out as it is; `answer` names the prompt text it is sent back with."""

    def __init__(self, problem: str, answer: str = "wrong_call") -> None:
        super().__init__(problem)
        self.problem = problem
        self.answer = answer


class UncertaintyDoctor:
    """Leads an encounter through `diagnosis_step` and `final_diagnosis`."""

    def __init__(
        self, assignment: Assignment, agent: AgentSettings, synthesis_model: Model, store: SessionStore, session_id: str
    ) -> None:
        self.model = assignment.model
        self.door = assignment.door
        self.limit = assignment.limit
        self.agent = agent
        self.prompt: Prompt = assignment.prompts["uncertainty"]
        self.session_id = session_id
        self.images: tuple[Image, ...] = ()
        self.last_action: Action | None = None
        self.structured = False
        self.may_request_images = assignment.images
        self._dialogue = assignment.dialogue
        self._clarify = assignment.clarify
        self._synthesis_model = synthesis_model
        self._synthesis_prompt: Prompt = assignment.prompts["synthesis"]
        self._store = store
        self._history = History()
        self._repetition = Repetition()
        self.begun = False
        # Nothing in here changes during the encounter: a provider's prompt cache can reuse all of it.
        self.system_prompt = joined(
            agent.system_prompt.strip(),
            fill(self.text("system_base"), max_infs=self.limit, door=door_text(self.door)),
            self.text("documented") if agent.documented else "",
            self.text("images_suffix") if assignment.images else "",
            assignment.bias_text,
            assignment.policy,
        )

    def text(self, key: str) -> str:
        """A text of the prompt file, with the names that this agent's tools have."""
        text = self.prompt.text(key)
        return in_their_words(text) if self.agent.documented else text

    @property
    def history(self) -> str:
        return self._history.text

    def hear(self, entry: str) -> None:
        self._history.add("", entry)

    def session(self) -> Session:
        """The session so far; the first call starts it."""
        if not self.begun:
            self._store.begin(self.session_id)
            self.begun = True
        return self._store.load(self.session_id)

    def moment(self, seen: Observation) -> str:
        """The prompt file's text for this point of the encounter; empty if it has none."""
        if seen.last:
            return "last_turn"
        if not seen.incoming.speaker:
            return "first_turn"
        # In the transcript form slips are only counted, as in the original.
        return self._repetition.state if self._dialogue == "chat" else ""

    async def act(self, seen: Observation) -> tuple[Turn]:
        """Make one tool call and carry it out; on the last turn, or when the doctor is ready, conclude."""
        use_store(self._store)
        set_current_session(self.session_id)
        self.images = tuple(dict.fromkeys((*self.images, *seen.incoming.images)))
        attempt = _Attempt(self, seen)
        said = await self._carry_out(await attempt.ask(), attempt)
        self._history.add_turn(seen.incoming, said.text)
        self.last_action = said.action
        return (said,)

    def say(self, incoming: Incoming, text: str) -> None:
        """Add words said in the doctor's name to history and session; a diagnosis ends the session."""
        self._history.add_turn(incoming, text)
        session = self.session()
        fact = as_fact(self.door, incoming, self.last_action)
        session.add(fact, session.current_uncertainties, text, recorded_by="planner")
        self.last_action = parse_action(text)
        if self.last_action.kind == "diagnosis":
            session.final_diagnosis = self.last_action.content  # type: ignore[attr-defined]
        self._store.save(session)

    async def _carry_out(self, call: _Call, attempt: _Attempt) -> Turn:
        """Record the step, then say what it asks for, or conclude."""
        text, step_remarks = self._record(call, attempt)
        remarks, usage = [*attempt.remarks, *step_remarks], attempt.usage
        session = self.session()
        details: dict[str, Any] = {"tool": call.tool, "step": len(session.steps)}
        unclear: dict[str, Any] = {}
        if call.ready or attempt.seen.last:
            fallback = top_of(session) or call.said
            found = await synthesise(
                self._synthesis_model,
                self._synthesis_prompt,
                session.facts,
                fallback,
                clarify=self._clarify,
                menu=self.door.menu,
            )
            if found.error:
                remarks.append(f"synthesis failed, the top of the differential was taken ({found.error})")
            if not call.ready:
                remarks.append("last turn: concluded for the doctor")
            if found.second:
                unclear = {"raw": found.answer, "slips": (UNCLEAR,)}
                remarks.extend(found.second.notes)
            details["synthesis"] = {"model": found.model, "failed": found.error}
            text, usage = conclude(self._store, self.session_id, call.reason, found), usage + found.usage
        reply = Reply(text, usage=usage, differential=stated_differential(session.doubts), notes=tuple(remarks))
        earlier = self._history.said_by("Doctor")
        said = utterance(reply, turn=attempt.seen.turn, earlier=earlier, dialogue=self._dialogue)
        self._repetition.note(said)
        return said.model_copy(update={"details": details, **unclear})

    def _record(self, call: _Call, attempt: _Attempt) -> tuple[str, list[str]]:
        """Write the step. If the doctor did not say what is new, it holds the newest reply or, at first, the door."""
        ours: dict[str, Any] = {"turn": attempt.seen.turn, **call.further}
        information = call.new_information
        if information is None or not (fact_in(information) or attempt.seen.incoming.speaker):
            information, ours["recorded_by"] = attempt.fact, "clinic"
        doubts = call.doubts if call.doubts.items else self.session().doubts  # the earlier ones still apply
        action = call.action or ("DIAGNOSIS READY" if call.ready else "")
        following, remarks = take_step(self._store, self.session_id, information, doubts, action, **ours)
        return following.utterance, remarks


def as_fact(door: Door, incoming: Incoming, asked: Action | None) -> str:
    """A reply as a fact that can be understood on its own; before the first reply, what is known at the door."""
    if not incoming.speaker:
        return door_text(replace(door, menu=None, terms="")).replace("\n", "; ")
    # Cut: a weak model's question may be a page long, and a fact is about the answer.
    about = f"{asked.content[:150]} " if asked and asked.kind in ("question", "test") else ""
    return f"{about}{incoming.line}"


class _Attempt:
    """One turn of the doctor: ask the model for a call, at most twice."""

    def __init__(self, doctor: UncertaintyDoctor, seen: Observation) -> None:
        self.seen = seen
        self.remarks: list[str] = []
        self.fact = as_fact(doctor.door, seen.incoming, doctor.last_action)
        """The newest reply as a fact."""
        self._doctor = doctor
        self._usages: list[Usage] = []
        self._lookups = doctor.agent.lookups

    @property
    def usage(self) -> Usage:
        return reduce(add, self._usages) if self._usages else Usage(requests=0)

    async def ask(self) -> _Call:
        """The doctor's call; an unusable reply is sent back once, then its usable parts are used."""
        messages = self._messages()
        reply = Reply("")
        for outcome in ("sent back once", "used as far as possible"):
            try:
                reply, messages = await self._after_lookups(messages)
                return self._call(reply)
            except _Unusable as unusable:
                self.remarks.append(f"{outcome}: {unusable.problem}")
                messages = (*messages, *self._sent_back(reply, unusable))
            except MalformedError as error:  # structured output was already sent back once, or there was no text at all
                self.remarks.append(f"used as far as possible: {error}")
                if error.usage:
                    self._usages.append(error.usage)
                reply = Reply(error.text) if error.text else reply
                break
        return self._salvaged(reply)

    async def _after_lookups(self, messages: tuple[Message, ...]) -> tuple[Reply, tuple[Message, ...]]:
        """Ask the model; if it only looks for experiences, give it those that fit and ask again."""
        while True:
            reply = await self._request(messages)
            acting = tuple(call for call in reply.tool_calls if call.name != QUERY)
            if acting or not reply.tool_calls or not self._lookups:
                return replace(reply, tool_calls=acting or reply.tool_calls), messages
            self._lookups -= 1
            found = self.seen.advice or self._doctor.text("no_guidelines")
            answers = (Message("tool", found, tool_call_id=call.id) for call in reply.tool_calls)
            messages = (*messages, Message("assistant", reply.text, tool_calls=reply.tool_calls), *answers)

    def _messages(self) -> tuple[Message, ...]:
        doctor, seen = self._doctor, self.seen
        advice = "" if doctor.agent.lookups and not doctor.structured else seen.advice
        user = fill(
            doctor.text("user_prompt_template"),
            record=shown_notes(doctor.session()) or doctor.text("no_notes"),
            asked=_shown(doctor.last_action) if doctor.last_action else doctor.text("no_action"),
            reply=seen.incoming.line if seen.incoming.speaker else doctor.text("no_action"),
            turn=seen.turn,
            max_infs=doctor.limit,
            notes=joined(advice, seen.notes, doctor.text(doctor.moment(seen))),
        )
        return Message("system", doctor.system_prompt), Message("user", user, images=doctor.images)

    async def _request(self, messages: tuple[Message, ...]) -> Reply:
        if not self._doctor.structured:
            try:
                return await self._send(messages)
            except UnknownModelError:
                raise
            except BadRequestError as error:
                # The endpoint does not support tools, at least for this model: use structured output from now on.
                self._doctor.structured = True
                self.remarks.append(f"tool calls were refused, structured output is used instead ({error})")
                messages = self._messages()  # built again: the old ones may hold a tool call that was sent back
        return await self._send(messages)

    async def _send(self, messages: tuple[Message, ...]) -> Reply:
        doctor, agent, structured, seen = self._doctor, self._doctor.agent, self._doctor.structured, self.seen
        if structured:
            system = replace(messages[0], content=joined(messages[0].content, doctor.text("structured")))
            messages = (system, *messages[1:])
        every = (OURS.get(name, name) for name in agent.tools if name != QUERY)
        names = tuple(name for name in every if name != "final_diagnosis" or not self._too_early)
        offered = tools(names, images=doctor.may_request_images)
        offered = tuple(map(documented, offered)) if agent.documented else offered
        schema = DocumentedChoice if agent.documented else StepChoice if self._too_early else ToolChoice
        reply = await doctor.model.reply(
            Request(
                Purpose.DOCTOR,
                messages,
                tools=() if structured else (*((GUIDELINES,) if self._lookups else ()), *offered),
                tool_choice="auto" if structured else "required",
                schema=schema if structured else None,
                payload=DoctorPayload(
                    doctor.door,
                    seen.exchanges,
                    seen.turn,
                    doctor.limit,
                    seen.last,
                    offered=names,
                    advised=seen.suggested,
                    may_order=seen.may_order,
                ),
                temperature=agent.temperature,
            )
        )
        self._usages.append(reply.usage)
        self.remarks.extend(note for note in reply.notes if note not in self.remarks)
        return replace(reply, parsed=_as_ours(reply.parsed)) if isinstance(reply.parsed, DocumentedChoice) else reply

    @property
    def _too_early(self) -> bool:
        """Whether there is nothing yet to base a diagnosis on: no answer, no result, no image."""
        asked = any(exchange.kind != "images" for exchange in self.seen.exchanges)
        return not (self.seen.last or asked or self._doctor.images)

    def _call(self, reply: Reply) -> _Call:
        if len(reply.tool_calls) > 1:
            self.remarks.append(f"{len(reply.tool_calls)} tool calls at once: only the first counts")
        call = _read_call(reply)
        if call.tool not in [OURS.get(name, name) for name in self._doctor.agent.tools]:
            raise _Unusable(f"the tool {call.tool} is not available here")
        if call.ready and self._too_early:
            raise _Unusable("concluding before anything was learned", "not_yet")
        if call.tool == "diagnosis_step" and not self.seen.last:
            problem = check_step(call.doubts, call.action, images=self._doctor.may_request_images)
            if problem:
                raise _Unusable(problem)
        return call

    def _sent_back(self, reply: Reply, unusable: _Unusable) -> tuple[Message, ...]:
        """The doctor's reply, and what is wrong with it, as further messages."""
        doctor = self._doctor
        problem = in_their_words(unusable.problem) if doctor.agent.documented else unusable.problem
        answer = fill(doctor.text(unusable.answer), problem=problem)
        if not reply.tool_calls:
            return Message("assistant", reply.text), Message("user", answer)
        answers = [
            Message("tool", answer if place == 0 else doctor.text("one_call"), tool_call_id=call.id)
            for place, call in enumerate(reply.tool_calls)
        ]
        return (Message("assistant", reply.text, tool_calls=reply.tool_calls), *answers)

    def _salvaged(self, reply: Reply) -> _Call:
        """What can still be used of a reply that is unusable even after it was sent back."""
        given: Mapping[str, Any] = {}
        prose = reply.text
        if reply.tool_calls:
            given = salvage(in_our_words(reply.tool_calls[0])[0].arguments)
        elif isinstance(reply.parsed, ToolChoice):
            given, prose = dict(reply.parsed), ""
        elif reply.text.lstrip().startswith(("{", "```")):  # a badly filled-in form: nothing to say to a patient
            given, prose = salvage(reply.text), ""
        elif not self._doctor.structured:
            # Prose twice: the model or the server does not make tool calls. Structured output may work better.
            self._doctor.structured = True
            self.remarks.append("structured output is used from the next turn on")
        words = str(given.get("next_step_action") or prose).strip()
        action = parse_action(words)
        said = action.content if action.kind == "diagnosis" else None
        if action.kind == "diagnosis" or (not words and self.seen.last):
            words = f"ASK PATIENT: {OPEN_QUESTION}" if self._too_early else "DIAGNOSIS READY"
        elif action.kind == "question" and not read_action(words):
            words = f"ASK PATIENT: {words or OPEN_QUESTION}"
        doubts = read_uncertainties(given.get("current_uncertainties") or ())
        return _Call("diagnosis_step", given.get("new_information") or None, doubts, words, said=said or None)


def _shown(action: Action) -> str:
    return {"test": f"REQUEST TEST: {action.content}", "images": "REQUEST IMAGES"}.get(
        action.kind, f"ASK PATIENT: {action.content}"
    )


def _read_call(reply: Reply) -> _Call:
    """A reply's tool call, or the same as structured output."""
    further: Mapping[str, Any] = {}
    if reply.tool_calls:
        call, further = in_our_words(reply.tool_calls[0])
        tool = call.name
        try:
            given = read_arguments(tool, call.arguments)
        except ToolError as error:
            raise _Unusable(str(error)) from None
    elif isinstance(reply.parsed, ToolChoice):
        tool, given = reply.parsed.tool, dict(reply.parsed)
    else:
        raise _Unusable("prose instead of a tool call", "reminder")
    doubts = read_uncertainties(given.get("current_uncertainties", ()))
    said, reason = given.get("new_information"), given.get("reason_ready", "")
    if tool == "final_diagnosis":
        # A form has every field, so an empty one may only mean that the model took it for the other tool's.
        return _Call(tool, said or None if reply.parsed else said, doubts, reason=reason)
    return _Call(tool, said, doubts, given["next_step_action"], reason, further=further)


def _as_ours(given: DocumentedChoice) -> ToolChoice:
    return ToolChoice.model_validate(
        {OURS.get(name, name): value for name, value in given} | {"tool": OURS[given.tool]}
    )
