"""The builtin doctor: takes the step with the most expected information per cost, and commits when none is worth it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentclinic.builtin.beliefs import Beliefs, Floats, beliefs
from agentclinic.builtin.menu import evidence_in, known_in
from agentclinic.cases.model import Door
from agentclinic.clinic.findings import Evidence, gather
from agentclinic.clinic.payloads import DoctorPayload, can_take
from agentclinic.doctors.plain import ConfidencePayload, StatedDifferential, StatedHypothesis
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS, Differential, Exchange, Hypothesis, Source
from agentclinic.vocabulary.base import Disease, Finding, Knowledge, knowledge
from agentclinic.vocabulary.text import fold

_COMMIT_AT = 0.95
"""At 0.9, the first specific finding ended the encounter before anything could contradict it."""
_WORTH_ASKING = 0.004
"""Bits per unit of cost; a step that promises less is not worth taking."""
_COST = {"low": 1.2, "medium": 2.0, "high": 3.5}
_QUESTION_COST = 1.0
_OPENING = "What brings you in today? Please tell me about your symptoms in your own words."


def act(payload: DoctorPayload) -> Reply:
    """The next utterance, with the differential it is based on."""
    thought = think(payload.door, payload.exchanges)
    step = None
    if not payload.last and not payload.exchanges and payload.door.menu is None:
        step = _OPENING
    elif not payload.last:
        step = _advised_step(thought, payload)
        if step is None and thought.sure < _COMMIT_AT:
            step = _best_step(thought, payload)
    text = step or f"DIAGNOSIS READY: {thought.leader.name}"
    return Reply(text, usage=NO_TOKENS, differential=thought.differential)


def confidence(payload: ConfidencePayload) -> Reply:
    """How sure the doctor is of its diagnosis: the posterior."""
    given = think(payload.door, payload.exchanges).differential
    stated = StatedDifferential(
        hypotheses=[StatedHypothesis(diagnosis=h.diagnosis, probability=h.probability or 0.0) for h in given.hypotheses]
    )
    return Reply(stated.model_dump_json(), parsed=stated, usage=NO_TOKENS, differential=given)


_LISTED = 5
"""Diseases in a differential, unless nothing else is possible: then all."""


@dataclass(frozen=True, eq=False)
class Thought:
    """What the doctor makes of the evidence."""

    mind: Beliefs
    evidence: Evidence
    posterior: Floats
    """The probability of each hypothesis."""

    @cached_property
    def _order(self) -> list[int]:
        order: list[int] = np.lexsort((self.mind.by_name, -self.posterior[:-1])).tolist()
        return order

    def ranked(self, most: int | None = None) -> list[Disease]:
        """The diseases, the likeliest first; at most this many."""
        return [self.mind.known.diseases[self.mind.hypotheses[row]] for row in self._order[:most]]

    @cached_property
    def sure(self) -> float:
        """The probability of the likeliest disease."""
        return float(self.posterior[self._order[0]])

    @property
    def leader(self) -> Disease:
        """The likeliest disease."""
        return self.ranked(1)[0]

    @cached_property
    def differential(self) -> Differential:
        """The leading diseases with their probabilities, and the total probability of all others."""
        most = _LISTED if self.mind.known.other else None
        shares = self.posterior[self._order[:most]].tolist()
        return Differential(
            source=Source.POSTERIOR,
            hypotheses=tuple(
                Hypothesis(diagnosis=disease.name, probability=round(p, 6))
                for disease, p in zip(self.ranked(most), shares, strict=True)
            ),
            other=round(max(0.0, 1 - sum(shares)), 6),
        )


def think(door: Door, exchanges: tuple[Exchange, ...]) -> Thought:
    """What the doctor makes of the dialogue so far."""
    if door.menu:
        return weigh(known_in(door.menu), door.demographics, evidence_in(door.menu, exchanges))
    return weigh(knowledge(), door.demographics, gather(door, exchanges))


def weigh(known: Knowledge, demographics: str, evidence: Evidence) -> Thought:
    """What the doctor makes of a patient and the evidence."""
    return _thought(beliefs(known), demographics, tuple(evidence.items()))


@lru_cache(maxsize=2048)  # half of all replies are no evidence, and a planner thinks the same as its doctor
def _thought(mind: Beliefs, demographics: str, evidence: tuple[tuple[str, bool], ...]) -> Thought:
    return Thought(mind, dict(evidence), mind.posterior(demographics, dict(evidence)))


@lru_cache(maxsize=2048)
def _values(thought: Thought, tests: bool) -> Floats:
    """The expected information per cost of each step."""
    mind, steps = thought.mind, _steps(thought.mind.known, tests)
    gains = mind.expected_information(thought.posterior)
    gains[[mind.column[name] for name in thought.evidence]] = 0.0
    # A test shows several findings at once: their gains add up.
    return np.bincount(steps.step_of, gains / steps.cost, minlength=len(steps.texts)).astype(np.float64, copy=False)


def _best_step(thought: Thought, payload: DoctorPayload) -> str | None:
    """The best step that was not taken before; None if nothing is worth it."""
    steps = _steps(thought.mind.known, payload.tests)
    asked = {fold(exchange.content) for exchange in payload.exchanges}
    left = _values(thought, payload.tests).copy()
    while left[best := left.argmax()] >= _WORTH_ASKING:
        if steps.requests[best] not in asked and can_take(steps.texts[best], payload.may_order):
            return steps.texts[best]
        left[best] = 0.0
    return None


def _advised_step(thought: Thought, payload: DoctorPayload) -> str | None:
    """The first step suggested by memory that can still add something: not asked yet, and its answer not known."""
    if not payload.advised:
        return None
    asked = {fold(exchange.content) for exchange in payload.exchanges}
    steps = _steps(thought.mind.known, payload.tests)
    for advised in payload.advised:
        shown = steps.shown_by.get(advised, frozenset())
        place = steps.by_id.get(advised)
        new = place is not None and steps.requests[place] not in asked and not shown <= thought.evidence.keys()
        if place is not None and new and can_take(steps.texts[place], payload.may_order):
            return steps.texts[place]
    return None


class _Steps(NamedTuple):
    """Everything the doctor can do next, and the findings that each step would show."""

    texts: tuple[str, ...]
    requests: tuple[str, ...]
    """Each step as it will appear in the dialogue."""
    step_of: NDArray[np.int64]
    """The step that shows each finding."""
    cost: Floats
    """What that costs; infinite for findings that no step shows, which are put down to the first one."""
    by_id: Mapping[str, int]
    """The steps by what they find out: `finding:NAME`, or `test:NAME` for all that a test shows."""
    shown_by: Mapping[str, frozenset[str]]
    """The findings that a step shows, by the same ids."""


@lru_cache(maxsize=16)
def _steps(known: Knowledge, tests: bool) -> _Steps:
    column = beliefs(known).column
    findings = [finding for finding in known.findings.values() if tests or not finding.order]
    step = {finding.id: _step(known, finding) for finding in findings}
    requests = {text: request for text, _, request in sorted(step.values())}
    place = {text: number for number, text in enumerate(requests)}
    step_of, cost = np.zeros(len(column), dtype=np.int64), np.full(len(column), inf)
    for id_, (text, price, _) in step.items():
        step_of[column[id_]], cost[column[id_]] = place[text], price
    by_id: dict[str, int] = {}
    shown_by: dict[str, frozenset[str]] = {}
    for finding in findings:
        id_ = f"test:{finding.order}" if finding.order else f"finding:{finding.id}"
        by_id[id_] = place[step[finding.id][0]]
        shown_by[id_] = shown_by.get(id_, frozenset()) | {finding.id}
    return _Steps(
        tuple(requests),
        tuple(requests.values()),
        step_of,
        cost,
        by_id,
        shown_by,
    )


def _step(known: Knowledge, finding: Finding) -> tuple[str, float, str]:
    """How to find out, what that costs, and how it will appear in the dialogue."""
    if finding.order:
        test = known.tests[finding.order]
        return f"REQUEST TEST: {test.name}", _COST[test.cost_level] + 0.5 * test.invasiveness, fold(test.name)
    question = finding.ask or f"Do you have {finding.name}?"
    return question, _QUESTION_COST, fold(question)
