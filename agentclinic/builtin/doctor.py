"""The builtin doctor: asks what it expects to learn most from per cost, and commits when that is not worth it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from agentclinic.builtin.beliefs import Beliefs, Floats, beliefs
from agentclinic.clinic.findings import Evidence, gather
from agentclinic.clinic.payloads import ConfidencePayload, DoctorPayload
from agentclinic.doctors.confidence import StatedDifferential, StatedHypothesis
from agentclinic.models.base import Reply
from agentclinic.results.differential import Differential, Hypothesis, Source
from agentclinic.results.turn import NO_TOKENS
from agentclinic.vocabulary.base import Disease, Finding, knowledge
from agentclinic.vocabulary.text import fold

# 0.95: at 0.9 the first specific finding ended the encounter before anything could contradict it.
_COMMIT_AT = 0.95
# Below this, in bits per unit of cost, another request is not worth its price.
_WORTH_ASKING = 0.004
_COST = {"low": 1.2, "medium": 2.0, "high": 3.5}
_QUESTION_COST = 1.0
_OPENING = "What brings you in today? Please tell me about your symptoms in your own words."


def act(payload: DoctorPayload) -> Reply:
    """The next utterance, with the differential it rests on."""
    evidence = gather(payload.door, payload.exchanges)
    mind = beliefs(knowledge())
    posterior = mind.posterior(payload.door, evidence)
    text = _OPENING
    if payload.last:
        text = _commitment(mind, posterior)
    elif payload.exchanges:
        step = _best_step(mind, posterior, evidence, payload)
        sure = posterior[:-1].max() >= _COMMIT_AT
        text = _commitment(mind, posterior) if step is None or sure else step
    return Reply(text, usage=NO_TOKENS, differential=differential(mind, posterior))


def confidence(payload: ConfidencePayload) -> Reply:
    """How sure the doctor is after the diagnosis: the posterior it rests on."""
    mind = beliefs(knowledge())
    posterior = mind.posterior(payload.door, gather(payload.door, payload.exchanges))
    given = differential(mind, posterior)
    stated = StatedDifferential(
        hypotheses=[StatedHypothesis(diagnosis=h.diagnosis, probability=h.probability or 0.0) for h in given.hypotheses]
    )
    return Reply(stated.model_dump_json(), parsed=stated, usage=NO_TOKENS, differential=given)


def ranked(mind: Beliefs, posterior: Floats) -> list[tuple[Disease, float]]:
    """The diseases by falling probability."""
    order = np.lexsort((mind.by_name, -posterior[:-1]))
    return [(mind.known.diseases[mind.hypotheses[row]], float(posterior[row])) for row in order]


def _commitment(mind: Beliefs, posterior: Floats) -> str:
    return f"DIAGNOSIS READY: {ranked(mind, posterior)[0][0].name}"


def differential(mind: Beliefs, posterior: Floats, size: int = 5) -> Differential:
    """The leading diseases with their probabilities, and the mass of everything else."""
    top = ranked(mind, posterior)[:size]
    return Differential(
        source=Source.POSTERIOR,
        hypotheses=tuple(Hypothesis(diagnosis=disease.name, probability=round(p, 6)) for disease, p in top),
        other=round(max(0.0, 1 - sum(p for _, p in top)), 6),
    )


def _best_step(mind: Beliefs, posterior: Floats, evidence: Evidence, payload: DoctorPayload) -> str | None:
    """The question or test with the most expected information per cost; None when nothing is worth it."""
    steps = _steps(payload.tests)
    asked = {fold(exchange.content) for exchange in payload.exchanges}
    gains = mind.expected_information(posterior)
    gains[[mind.column[name] for name in evidence]] = 0.0
    # A test shows several findings at once: their gains add up.
    values = np.bincount(steps.step_of, weights=gains[steps.columns] / steps.cost, minlength=len(steps.texts))
    for place in np.argsort(-values, kind="stable"):
        if values[place] < _WORTH_ASKING:
            return None
        if steps.requests[place] not in asked:
            return str(steps.texts[place])
    return None


class _Steps:
    """Everything the doctor can do next, as tables over the findings that would tell."""

    def __init__(self, tests: bool) -> None:
        mind = beliefs(knowledge())
        places: dict[str, int] = {}
        columns, step_of, cost, requests = [], [], [], []
        for finding in sorted(knowledge().findings.values(), key=lambda f: _step(f)[0]):
            text, price, request = _step(finding)
            if finding.order and not tests:
                continue
            if text not in places:
                places[text] = len(places)
                requests.append(request)
            columns.append(mind.column[finding.id])
            step_of.append(places[text])
            cost.append(price)
        self.texts = tuple(places)
        self.requests = tuple(requests)
        self.columns = np.array(columns)
        self.step_of = np.array(step_of)
        self.cost = np.array(cost)


@lru_cache(maxsize=2)
def _steps(tests: bool) -> _Steps:
    return _Steps(tests)


@lru_cache(maxsize=1024)
def _step(finding: Finding) -> tuple[str, float, str]:
    """How to find out, what that costs, and how it will stand in the dialogue."""
    if finding.order:
        test = knowledge().tests[finding.order]
        return f"REQUEST TEST: {test.name}", _COST[test.cost_level] + 0.5 * test.invasiveness, fold(test.name)
    question = finding.ask or f"Do you have {finding.name}?"
    return question, _QUESTION_COST, fold(question)
