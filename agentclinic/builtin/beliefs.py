"""What the builtin doctor believes: a posterior over the diseases of the knowledge base and "other".

log posterior = log(prior x age x sex) + log likelihood / T. A finding that a disease does not list has its leak
probability; k findings of one correlated group count as the square root of k independent ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.model import age_in_years, sex
from agentclinic.clinic.findings import Evidence
from agentclinic.vocabulary.base import Knowledge

Floats = NDArray[np.float64]

OTHER = "other"
OTHER_BOOST = 3.0
"""How much more common than its leak probability a finding is under "other": these patients are ill too."""
TEMPERATURE = 1.0
"""Divides the log likelihood. Fitted on the development part of OpenOSCE_1 (`benchmarks/clinic.py --fit`): the log
score of the true diagnosis at the end of encounters is 2.51 at 0.7, 2.28 at 0.9, 2.23 at 1.0, 2.24 at 1.1, 2.35 at
1.5."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The knowledge base as tables: a row for each disease, then one for "other"; a column for each finding."""

    known: Knowledge
    hypotheses: tuple[str, ...]
    column: Mapping[str, int]
    likelihood: Floats
    entropy: Floats
    listed: Sequence[Sequence[tuple[int, float]]]
    """The diseases that list a finding, each with log P(finding | disease) - log leak. All absent findings, then all
    present ones."""
    leak: Floats
    """Here and below, a row for absent findings, then one for present ones."""
    other: Floats
    group: tuple[str | None, ...]
    """The correlated group of each finding."""
    by_name: NDArray[np.int64]
    """Alphabetical rank of each disease's id, to break ties."""

    def posterior(self, demographics: str, evidence: Evidence) -> Floats:
        prior = _log_prior(self.known, age_in_years(demographics), sex(demographics))
        total = self._log_likelihood(evidence) / TEMPERATURE + prior
        weights = np.exp(total - total.max())
        result: Floats = weights / weights.sum()
        return result

    def _log_likelihood(self, evidence: Evidence) -> Floats:
        if not evidence:
            return np.zeros(len(self.hypotheses))
        columns = [self.column[name] for name in evidence]
        seen = np.array(list(evidence.values()), dtype=np.intp), np.array(columns)
        groups: dict[str | int, list[int]] = {}
        for column, present in zip(columns, evidence.values(), strict=True):
            groups.setdefault(self.group[column] or column, []).append(present * len(self.group) + column)
        # A finding is in a few diseases out of a hundred: the others have its leak probability.
        total = [float(self.leak[seen].sum())] * (len(self.hypotheses) - 1)
        for findings in groups.values():
            if len(findings) == 1:
                for disease, ratio in self.listed[findings[0]]:
                    total[disease] += ratio
                continue
            for disease, ratios in _together(self, tuple(findings)):
                total[disease] += ratios
        return np.array([*total, self.other[seen].sum()])

    def expected_information(self, posterior: Floats) -> Floats:
        """Mutual information between the hypotheses and each finding, in bits: what asking is expected to tell."""
        gains: Floats = np.maximum(0.0, _entropy(posterior @ self.likelihood) - posterior @ self.entropy)
        return gains


@lru_cache(maxsize=4096)  # a dialogue is weighed again after each reply
def _together(mind: Beliefs, findings: tuple[int, ...]) -> Sequence[tuple[int, float]]:
    """The diseases that list findings of one correlated group, each with what these add to its log likelihood."""
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    for disease, ratio in (pair for finding in findings for pair in mind.listed[finding]):
        sums[disease] = sums.get(disease, 0.0) + ratio
        counts[disease] = counts.get(disease, 0) + 1
    return [(disease, ratios / sqrt(counts[disease])) for disease, ratios in sums.items()]


@lru_cache(maxsize=16)
def beliefs(known: Knowledge) -> Beliefs:
    """The tables of a knowledge base, made once."""
    findings = list(known.findings.values())
    column = {finding.id: place for place, finding in enumerate(findings)}
    leak = np.array([finding.leak for finding in findings])
    other = np.minimum(0.5, leak * OTHER_BOOST)
    rows = np.tile(leak, (len(known.diseases), 1))
    linked = np.zeros_like(rows, dtype=bool)
    group: list[str | None] = [None] * len(findings)
    for row, disease in enumerate(known.diseases.values()):
        for link in disease.links:
            place = column[link.finding]
            rows[row, place], linked[row, place] = link.p, True
            group[place] = group[place] or link.group
    likelihood = np.vstack([rows, other])
    ratios = np.hstack([np.log1p(-rows) - np.log1p(-leak), np.log(rows) - np.log(leak)]).T
    diseases = [np.flatnonzero(column).tolist() for column in linked.T] * 2
    return Beliefs(
        known=known,
        hypotheses=(*known.diseases, OTHER),
        column=column,
        likelihood=likelihood,
        entropy=_entropy(likelihood),
        listed=[
            list(zip(those, row[those].tolist(), strict=True)) for those, row in zip(diseases, ratios, strict=True)
        ],
        leak=np.stack([np.log1p(-leak), np.log(leak)]),
        other=np.stack([np.log1p(-other), np.log(other)]),
        group=tuple(group),
        by_name=np.argsort(np.argsort(np.array(list(known.diseases)))),
    )


@lru_cache(maxsize=1024)
def _log_prior(known: Knowledge, age: float | None, gender: str | None) -> Floats:
    total = sum(disease.prior for disease in known.diseases.values())
    weights = []
    for disease in known.diseases.values():
        weight = disease.prior / total * (1 - known.other) * disease.sex.get(gender or "", 1.0)
        for band in disease.age:
            if age is not None and band.min <= age < band.max:
                weight *= band.factor
        weights.append(max(weight, 1e-12))
    logs: Floats = np.log(np.array([*weights, max(known.other, 1e-12)]))
    return logs


def _entropy(p: Floats) -> Floats:
    safe = np.minimum(np.maximum(p, 1e-12), 1 - 1e-12)
    return np.asarray(-(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe)))
