"""The builtin doctor in the other parts it plays: planner, discriminator, synthesis, and speaking through tools."""

from __future__ import annotations

import json
import math

import numpy as np

from agentclinic.builtin.beliefs import Beliefs, Floats, beliefs
from agentclinic.builtin.doctor import act, differential, ranked
from agentclinic.cases.demographics import age_in_years
from agentclinic.cases.model import Door
from agentclinic.clinic.findings import Evidence, gather, gather_facts, told_by
from agentclinic.clinic.payloads import DiscriminatorPayload, DoctorPayload, PlannerPayload, SynthesisPayload
from agentclinic.doctors.planner.schema import (
    Discriminator,
    Discriminators,
    FindingState,
    PlannedFinding,
    PlannedHypothesis,
    PlannerReply,
)
from agentclinic.models.base import Reply, Tool, ToolCall
from agentclinic.results.turn import NO_TOKENS, Exchange
from agentclinic.vocabulary.base import Disease, Finding
from agentclinic.vocabulary.base import knowledge as the_knowledge
from agentclinic.vocabulary.text import fold

_CLOSE = 3
"""How many leading hypotheses are told apart."""


def plan(payload: PlannerPayload) -> Reply:
    """A weighted differential: each hypothesis with its most telling findings and what is known of them."""
    mind, evidence, posterior = _think(payload.door, (*payload.baseline, *payload.exchanges))
    leaders = [disease for disease, _ in ranked(mind, posterior)[: payload.max_hypotheses]]
    reply = PlannerReply(
        hypotheses=[
            PlannedHypothesis(diagnosis=disease.name, findings=_findings(disease, evidence, payload.min_findings))
            for disease in leaders
        ],
        discriminators=_discriminators(mind, posterior, evidence, leaders[:_CLOSE], payload.exchanges),
    )
    return Reply(reply.model_dump_json(), parsed=reply, usage=NO_TOKENS, differential=differential(mind, posterior))


def discriminate(payload: DiscriminatorPayload) -> Reply:
    """The questions and tests that best tell the named hypotheses apart."""
    mind, evidence, posterior = _think(payload.door, payload.exchanges)
    named = [mind.known.disease_named(name) for name in payload.hypotheses]
    among = [disease for disease in named if disease]
    reply = Discriminators(discriminators=_discriminators(mind, posterior, evidence, among, payload.exchanges))
    return Reply(reply.model_dump_json(), parsed=reply, usage=NO_TOKENS)


def synthesise(payload: SynthesisPayload) -> Reply:
    """The diagnosis the facts alone point to."""
    mind = beliefs(the_knowledge())
    door = Door("", payload.facts[0] if payload.facts else "")  # age and sex stand in the first fact, if anywhere
    posterior = mind.posterior(door, gather_facts(payload.facts, age_in_years(door.demographics)))
    return Reply(ranked(mind, posterior)[0][0].name, usage=NO_TOKENS, differential=differential(mind, posterior))


def step(payload: DoctorPayload, tools: tuple[Tool, ...]) -> Reply:
    """The next utterance as a call of the tools on offer."""
    said = act(payload)
    names = {tool.name for tool in tools}
    arguments: dict[str, object]
    if "diagnosis_step" not in names:
        arguments = {"reason_ready": "Further questions are not expected to change the leading diagnosis."}
        return _called(said, "final_diagnosis", arguments)
    given = said.differential.hypotheses[:4] if said.differential else ()
    arguments = {
        "new_information": _learned(payload),
        "current_uncertainties": [
            {"diagnosis": h.diagnosis, "probability": h.probability, "reason": ""} for h in given
        ],
        "next_step_action": _as_action(said.text),
    }
    return _called(said, "diagnosis_step", arguments)


def _learned(payload: DoctorPayload) -> str:
    """The newest reply as findings; at the first step what stands on the door."""
    if not payload.exchanges:
        return f"{payload.door.demographics}. {payload.door.objective}"
    exchange = payload.exchanges[-1]
    told = told_by(exchange, age_in_years(payload.door.demographics))
    findings = the_knowledge().findings
    present = [findings[finding].name for finding, state in told.items() if state]
    absent = [f"no {findings[finding].name}" for finding, state in told.items() if not state]
    return "; ".join([*present, *absent]) or "nothing that tells diagnoses apart"


def _as_action(text: str) -> str:
    if text.startswith("DIAGNOSIS READY"):
        return "DIAGNOSIS READY"
    return text if text.startswith("REQUEST TEST") else f"ASK PATIENT: {text}"


def _called(said: Reply, tool: str, arguments: dict[str, object]) -> Reply:
    call = ToolCall("builtin-1", tool, json.dumps(arguments, ensure_ascii=False))
    return Reply("", tool_calls=(call,), usage=NO_TOKENS, differential=said.differential)


def _think(door: Door, exchanges: tuple[Exchange, ...]) -> tuple[Beliefs, Evidence, Floats]:
    mind = beliefs(the_knowledge())
    evidence = gather(door, exchanges)
    return mind, evidence, mind.posterior(door, evidence)


_KNOWN_LISTED = 6
"""Known findings a hypothesis lists at most, the most telling ones."""
_OPEN_LISTED = 2
"""Open ones beside them: the two that would tell most."""


def _findings(disease: Disease, evidence: Evidence, count: int) -> list[PlannedFinding]:
    """What is known that bears on the disease, and what would tell most: at least `count` of them."""
    findings = the_knowledge().findings
    telling = sorted(disease.links, key=lambda link: -abs(_weight_of_evidence(link.p, findings[link.finding].leak)))
    known = [link for link in telling if link.finding in evidence][:_KNOWN_LISTED]
    unknown = [link for link in telling if link.finding not in evidence]
    chosen = [*known, *unknown[: max(_OPEN_LISTED, count - len(known))]]
    return [
        PlannedFinding(
            finding=findings[link.finding].name,
            weight=_weight(link.p, findings[link.finding].leak),
            expected="present" if link.p >= findings[link.finding].leak else "absent",
            observed=_state(findings[link.finding], evidence),
        )
        for link in chosen
    ]


def _weight_of_evidence(p: float, leak: float) -> float:
    """Bits for the disease when the finding is as expected."""
    return math.log2(p / leak) if p >= leak else math.log2((1 - p) / (1 - leak))


def _weight(p: float, leak: float) -> int:
    return int(min(5, max(1, round(_weight_of_evidence(p, leak)))))


def _state(finding: Finding, evidence: Evidence) -> FindingState:
    if finding.id not in evidence:
        return "unknown"
    return "present" if evidence[finding.id] else "absent"


def _discriminators(
    mind: Beliefs,
    posterior: Floats,
    evidence: Evidence,
    among: list[Disease],
    exchanges: tuple[Exchange, ...],
    most: int = 3,
) -> list[Discriminator]:
    """What is expected to tell most between these hypotheses alone, and has not been asked or ordered."""
    if len(among) < 2:
        return []
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
        if finding.id not in evidence and fold(test or str(finding.ask)) not in done:
            chosen[f"REQUEST TEST: {test}" if test else str(finding.ask)] = None
        if len(chosen) == most:
            break
    names = [disease.name for disease in among]
    return [Discriminator(request=request, tells_apart=names) for request in chosen]
