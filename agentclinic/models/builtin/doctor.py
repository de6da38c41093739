"""The builtin doctor: naive Bayes over the knowledge base, asking what it expects to learn most from.

Posterior: prior x age x sex x product of P(finding | disease), with the findings of one correlated group
discounted. A finding that a disease does not list has its leak probability. An "other" hypothesis holds
the mass of everything the knowledge base does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agentclinic.cases.demographics import age_in_years, sex
from agentclinic.cases.model import Door
from agentclinic.differential import Differential, Hypothesis, Source
from agentclinic.knowledge.base import Disease, Finding, knowledge
from agentclinic.knowledge.text import fold
from agentclinic.models.base import Reply
from agentclinic.models.builtin import NO_TOKENS
from agentclinic.models.builtin.evidence import Evidence, gather
from agentclinic.models.payloads import DoctorPayload

OTHER = "other"
# A fifth of the patients have something outside the knowledge base: with 48 diseases that is generous to
# the knowledge base, but a larger share makes "other" win on the first unlisted finding.
_OTHER_PRIOR = 0.2
# Under "other" a finding is more common than its leak: these patients have some disease, too.
_OTHER_BOOST = 3.0
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
    posterior = update(payload.door, evidence)
    text = _OPENING
    if payload.last:
        text = _commitment(posterior)
    elif payload.exchanges:
        step = _best_step(posterior, evidence, payload)
        sure = _leader(posterior).probability >= _COMMIT_AT
        text = _commitment(posterior) if step is None or sure else step
    return Reply(text, usage=NO_TOKENS, differential=_differential(posterior))


def update(door: Door, evidence: Evidence) -> dict[str, float]:
    """The probability of each disease and of "other", given what is known."""
    logs = {d.id: _log_prior(d, door) + _log_likelihood(d, evidence) for d in knowledge().diseases.values()}
    logs[OTHER] = math.log(_OTHER_PRIOR) + sum(
        _log(present, _other_probability(knowledge().findings[f])) for f, present in evidence.items()
    )
    top = max(logs.values())
    weights = {name: math.exp(value - top) for name, value in logs.items()}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


@lru_cache(maxsize=1)
def _prior_total() -> float:
    return sum(disease.prior for disease in knowledge().diseases.values())


def _log_prior(disease: Disease, door: Door) -> float:
    weight = disease.prior / _prior_total() * (1 - _OTHER_PRIOR)
    age = age_in_years(door.demographics)
    for band in disease.age:
        if age is not None and band.min <= age < band.max:
            weight *= band.factor
    weight *= disease.sex.get(sex(door.demographics) or "", 1.0)
    return math.log(weight) if weight > 0 else -1e9


def _log_likelihood(disease: Disease, evidence: Evidence) -> float:
    total = 0.0
    groups: dict[str, list[float]] = {}
    for finding_id, present in evidence.items():
        link = disease.by_finding.get(finding_id)
        value = _log(present, link.p if link else knowledge().findings[finding_id].leak)
        if link and link.group:
            groups.setdefault(link.group, []).append(value - _log(present, knowledge().findings[finding_id].leak))
            total += _log(present, knowledge().findings[finding_id].leak)
        else:
            total += value
    # k correlated findings count as the square root of k independent ones.
    return total + sum(sum(values) / math.sqrt(len(values)) for values in groups.values())


def _log(present: bool, probability: float) -> float:
    return math.log(probability if present else 1 - probability)


def _other_probability(finding: Finding) -> float:
    return min(0.5, finding.leak * _OTHER_BOOST)


@dataclass(frozen=True)
class _Ranked:
    disease: Disease
    probability: float


def _ranked(posterior: Mapping[str, float]) -> list[_Ranked]:
    named = [_Ranked(d, posterior[d.id]) for d in knowledge().diseases.values()]
    return sorted(named, key=lambda entry: (-entry.probability, entry.disease.id))


def _leader(posterior: Mapping[str, float]) -> _Ranked:
    return _ranked(posterior)[0]


def _commitment(posterior: Mapping[str, float]) -> str:
    return f"DIAGNOSIS READY: {_leader(posterior).disease.name}"


def _differential(posterior: Mapping[str, float], size: int = 5) -> Differential:
    top = _ranked(posterior)[:size]
    listed = sum(entry.probability for entry in top)
    return Differential(
        source=Source.POSTERIOR,
        hypotheses=tuple(
            Hypothesis(diagnosis=entry.disease.name, probability=round(entry.probability, 6)) for entry in top
        ),
        other=round(max(0.0, 1 - listed), 6),
    )


def _best_step(posterior: Mapping[str, float], evidence: Evidence, payload: DoctorPayload) -> str | None:
    """The question or test with the most expected information per cost; None when nothing is worth it."""
    asked = {fold(exchange.content) for exchange in payload.exchanges}
    gains = expected_information(posterior)
    values: dict[str, float] = {}
    for finding in knowledge().findings.values():
        step, cost, request = _step(finding)
        if finding.id not in evidence and request not in asked:
            # A test shows several findings at once: their gains add up.
            values[step] = values.get(step, 0.0) + gains[finding.id] / cost
    if not values:
        return None
    best = max(sorted(values), key=lambda step: values[step])
    return best if values[best] >= _WORTH_ASKING else None


@lru_cache(maxsize=1024)
def _step(finding: Finding) -> tuple[str, float, str]:
    """How to find out, what that costs, and how it will stand in the dialogue."""
    if finding.order:
        test = knowledge().tests[finding.order]
        return f"REQUEST TEST: {test.name}", _COST[test.cost_level] + 0.5 * test.invasiveness, fold(test.name)
    question = finding.ask or f"Do you have {finding.name}?"
    return question, _QUESTION_COST, fold(question)


def expected_information(posterior: Mapping[str, float]) -> dict[str, float]:
    """Mutual information between disease and each finding, in bits: how much asking is expected to tell."""
    likelihoods, entropies = _tables()
    weights = np.array([posterior[name] for name in (*knowledge().diseases, OTHER)])
    gains = np.maximum(0.0, _entropy(weights @ likelihoods) - weights @ entropies)
    return dict(zip(knowledge().findings, gains.tolist(), strict=True))


@lru_cache(maxsize=1)
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """P(finding | hypothesis) and its entropy: hypotheses down, findings across."""
    known = knowledge()
    rows = [[_probability(name, finding) for finding in known.findings.values()] for name in (*known.diseases, OTHER)]
    likelihoods = np.array(rows)
    return likelihoods, _entropy(likelihoods)


def _probability(hypothesis: str, finding: Finding) -> float:
    if hypothesis == OTHER:
        return _other_probability(finding)
    link = knowledge().diseases[hypothesis].by_finding.get(finding.id)
    return link.p if link else finding.leak


def _entropy(p: np.ndarray) -> np.ndarray:
    safe = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray(-(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe)))
