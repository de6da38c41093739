"""The builtin doctor in its other roles: it plans, discriminates, synthesizes and calls tools."""

from __future__ import annotations

import json
import math

import numpy as np

from agentclinic.builtin.beliefs import Beliefs
from agentclinic.builtin.doctor import Thought, act, think, weigh
from agentclinic.builtin.menu import facts_in, known_in
from agentclinic.builtin.tabulate import additions
from agentclinic.cases.model import age_in_years
from agentclinic.clinic.findings import Evidence, evidence_in, gather_facts
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.doctors.planner.payloads import DiscriminatorPayload, InlinePayload, PlannerPayload
from agentclinic.doctors.planner.schema import (
    Discriminator,
    Discriminators,
    FindingState,
    PlannedFinding,
    PlannedHypothesis,
    PlannerReply,
    PlanThenSpeak,
    TableReply,
    TableThenSpeak,
)
from agentclinic.doctors.uncertainty.synthesis import SynthesisPayload
from agentclinic.models.base import Reply, ToolCall
from agentclinic.results.turn import NO_TOKENS, Exchange
from agentclinic.vocabulary.base import Disease, knowledge
from agentclinic.vocabulary.text import fold

_LEADERS = 3
"""How many leading hypotheses the discriminators of a plan separate."""
_KNOWN_LISTED = 6
"""At most this many known findings are listed for a hypothesis, the most telling first."""
_OPEN_LISTED = 2
"""At least this many open findings are listed after them."""
_DISCRIMINATORS = 3


def plan(payload: PlannerPayload) -> Reply:
    """A weighted differential, each hypothesis with its most telling findings; or what is new in the table."""
    reply = _plan(payload)
    given = think(payload.door, (*payload.baseline, *payload.exchanges)).differential
    return Reply(reply.model_dump_json(), parsed=reply, usage=NO_TOKENS, differential=given)


def plan_and_speak(payload: InlinePayload) -> Reply:
    planned = _plan(payload.planner)
    said = act(payload.doctor)
    shape = TableThenSpeak if isinstance(planned, TableReply) else PlanThenSpeak
    reply = shape.model_validate({**planned.model_dump(), "utterance": said.text})
    return Reply(reply.model_dump_json(), parsed=reply, usage=NO_TOKENS, differential=said.differential)


def _plan(payload: PlannerPayload) -> PlannerReply | TableReply:
    if payload.table is not None:
        return additions(payload, payload.table)
    thought = think(payload.door, (*payload.baseline, *payload.exchanges))
    mind, evidence, leaders = thought.mind, thought.evidence, thought.ranked(payload.max_hypotheses)
    return PlannerReply(
        hypotheses=[
            PlannedHypothesis(diagnosis=disease.name, findings=_findings(mind, disease, evidence, payload.min_findings))
            for disease in leaders
        ],
        discriminators=_discriminators(thought, leaders[:_LEADERS], payload.exchanges),
    )


def discriminate(payload: DiscriminatorPayload) -> Reply:
    """The questions and tests that best separate the named hypotheses."""
    thought = think(payload.door, payload.exchanges)
    named = [thought.mind.known.disease_named(name) for name in payload.hypotheses]
    among = [disease for disease in named if disease]
    reply = Discriminators(discriminators=_discriminators(thought, among, payload.exchanges))
    return Reply(reply.model_dump_json(), parsed=reply, usage=NO_TOKENS)


def synthesize(payload: SynthesisPayload) -> Reply:
    """The most probable diagnosis given the facts alone."""
    if payload.menu:
        thought = weigh(known_in(payload.menu), "", facts_in(payload.menu, payload.facts))
    else:
        person = payload.facts[0] if payload.facts else ""  # age and sex are in the first fact, if anywhere
        thought = weigh(knowledge(), person, gather_facts(payload.facts, age_in_years(person)))
    return Reply(thought.leader.name, usage=NO_TOKENS, differential=thought.differential)


def step(payload: DoctorPayload) -> Reply:
    """The next utterance, as a call to one of the tools on offer."""
    said = act(payload)
    tool, arguments = "diagnosis_step", dict[str, object]()
    if tool not in payload.offered:
        tool = "final_diagnosis"
        arguments["reason_ready"] = "Further questions are not expected to change the leading diagnosis."
    else:
        given = said.differential.hypotheses[:4] if said.differential else ()
        arguments["new_information"] = _learned(payload)
        arguments["current_uncertainties"] = [
            {"diagnosis": h.diagnosis, "probability": h.probability, "reason": ""} for h in given
        ]
        arguments["next_step_action"] = _as_action(said.text)
    call = ToolCall("builtin-1", tool, json.dumps(arguments, ensure_ascii=False))
    return Reply("", tool_calls=(call,), usage=NO_TOKENS, differential=said.differential)


def _learned(payload: DoctorPayload) -> str:
    """The findings in the newest reply, if any; at the first step, what the doctor knows at the door."""
    if not payload.exchanges:
        return f"{payload.door.demographics}. {payload.door.objective}"
    if payload.door.menu:
        return payload.exchanges[-1].reply
    told = evidence_in(payload.exchanges[-1], age_in_years(payload.door.demographics))
    findings = knowledge().findings
    present = [findings[finding].name for finding, state in told.items() if state]
    absent = [f"no {findings[finding].name}" for finding, state in told.items() if not state]
    return "; ".join([*present, *absent])


def _as_action(text: str) -> str:
    if text.startswith("DIAGNOSIS READY"):
        return "DIAGNOSIS READY"
    return text if text.startswith("REQUEST TEST") else f"ASK PATIENT: {text}"


def _findings(mind: Beliefs, disease: Disease, evidence: Evidence, count: int) -> list[PlannedFinding]:
    """At least `count` findings that bear on the disease: those already known, then the most telling open ones."""
    findings = mind.known.findings

    def weight(p: float, leak: float) -> float:
        """Bits of evidence for the disease if the finding is as expected."""
        return math.log2(p / leak) if p >= leak else math.log2((1 - p) / (1 - leak))

    telling = sorted(disease.links, key=lambda link: -abs(weight(link.p, findings[link.finding].leak)))
    known = [link for link in telling if link.finding in evidence][:_KNOWN_LISTED]
    unknown = [link for link in telling if link.finding not in evidence]
    planned = []
    for link in [*known, *unknown[: max(_OPEN_LISTED, count - len(known))]]:
        finding = findings[link.finding]
        planned.append(
            PlannedFinding(
                finding=finding.name,
                weight=min(5, max(1, round(weight(link.p, finding.leak)))),
                expected="present" if link.p >= finding.leak else "absent",
                observed=_STATES[evidence.get(finding.id)],
            )
        )
    return planned


_STATES: dict[bool | None, FindingState] = {None: "unknown", True: "present", False: "absent"}


def _discriminators(thought: Thought, among: list[Disease], exchanges: tuple[Exchange, ...]) -> list[Discriminator]:
    """The questions and tests that should separate these hypotheses best, if not yet asked or ordered."""
    if len(among) < 2:
        return []
    mind, posterior = thought.mind, thought.posterior
    rows = [mind.hypotheses.index(disease.id) for disease in among]
    narrowed = np.zeros_like(posterior)
    narrowed[rows] = np.maximum(posterior[rows], 1e-6)
    gains = mind.expected_information(narrowed / narrowed.sum())
    findings = list(mind.known.findings.values())
    done = {fold(exchange.content) for exchange in exchanges}
    chosen: dict[str, None] = {}
    for place in np.argsort(-gains, kind="stable"):
        finding = findings[place]
        test = mind.known.tests[finding.order].name if finding.order else None
        if finding.id not in thought.evidence and fold(test or str(finding.ask)) not in done:
            chosen[f"REQUEST TEST: {test}" if test else str(finding.ask)] = None
        if len(chosen) == _DISCRIMINATORS:
            break
    names = [disease.name for disease in among]
    return [Discriminator(request=request, tells_apart=names) for request in chosen]
