"""What the builtin doctor believes: a posterior over the diseases of the knowledge base and "other".

log posterior = log(prior x age x sex) + log likelihood / T. A finding that a disease does not list has its leak
probability; k findings of one correlated group count as the square root of k independent ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.model import age_in_years, sex
from agentclinic.clinic.findings import Evidence
from agentclinic.vocabulary.base import AgeBand, Knowledge

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
    ratios: Floats
    """A row for each absent finding, then one for each present one: log P(finding | disease) - log leak if the disease
    lists the finding, else 0."""
    bases: Floats
    """In the same order, log leak in one row and log P(finding | other) in the next."""
    lists: NDArray[np.bool_]
    """For each finding, which hypotheses list it."""
    expects: Expects
    group: tuple[str | None, ...]
    """The correlated group of each finding."""
    by_name: NDArray[np.int64]
    """Alphabetical rank of each disease's id, to break ties."""

    def posterior(self, demographics: str, evidence: Evidence) -> Floats:
        total = _log_prior(self.known, age_in_years(demographics), sex(demographics))
        if evidence:
            total = self._log_likelihood(evidence) / TEMPERATURE + total
        weights = np.exp(total - total[total.argmax()])
        result: Floats = weights / np.add.reduce(weights)
        return result

    def _log_likelihood(self, evidence: Evidence) -> Floats:
        places = [present * len(self.group) + self.column[name] for name, present in evidence.items()]
        groups: dict[str | int, list[int]] = {}
        for place in places:
            groups.setdefault(self.group[place % len(self.group)] or place, []).append(place)
        # A finding is in a few diseases out of a hundred: the others have its leak probability.
        terms = self.ratios[[0, *(findings[0] for findings in groups.values())]]
        terms[0], terms[0, -1] = np.add.reduce(self.bases.take(places, axis=1), axis=1)
        for row, findings in enumerate(groups.values(), start=1):
            if len(findings) > 1:
                terms[row] = _together(self, tuple(findings))
        total: Floats = np.add.reduce(terms)
        return total

    def expected_information(self, posterior: Floats) -> Floats:
        """Mutual information between the hypotheses and each finding, in bits: what asking is expected to tell."""
        expects, other = self.expects, posterior[-1]
        by_default = (1 - other) * expects.by_default + other * expects.by_other
        listed = np.bincount(expects.place, posterior[expects.disease] * expects.more, minlength=len(by_default))
        p, entropy = (by_default + listed).reshape(2, -1)
        gains: Floats = np.maximum(0.0, _entropy(p) - entropy)
        return gains


class Expects(NamedTuple):
    """How probable each hypothesis makes each finding: first all probabilities, then all entropies.

    A disease lists few findings out of hundreds, and expects the others as the leak does.
    """

    by_default: Floats
    by_other: Floats
    place: NDArray[np.intp]
    """Here and below, for each pair of a disease and a finding that it lists: where the finding is in the tables above,
    the disease, and how much more it makes it than the leak."""
    disease: NDArray[np.intp]
    more: Floats


@lru_cache(maxsize=4096)  # a dialogue is weighed again after each reply
def _together(mind: Beliefs, findings: tuple[int, ...]) -> Floats:
    """What findings of one correlated group add to the log likelihood of each hypothesis."""
    count = mind.lists[[finding % len(mind.group) for finding in findings]].sum(axis=0)
    together: Floats = mind.ratios[list(findings)].sum(axis=0) / np.sqrt(np.maximum(1, count))
    return together


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
    lists = np.vstack([linked, np.zeros_like(leak, dtype=bool)])
    ratios = np.hstack([np.log1p(-likelihood) - np.log1p(-leak), np.log(likelihood) - np.log(leak)])
    ratios[~np.hstack([lists, lists])] = 0.0
    return Beliefs(
        known=known,
        hypotheses=(*known.diseases, OTHER),
        column=column,
        likelihood=likelihood,
        ratios=np.ascontiguousarray(ratios.T),
        bases=np.stack([np.append(np.log1p(-p), np.log(p)) for p in (leak, other)]),
        lists=np.ascontiguousarray(lists.T),
        expects=_expects(rows, linked, leak, other),
        group=tuple(group),
        by_name=np.argsort(np.argsort(np.array(list(known.diseases)))),
    )


def _expects(rows: Floats, linked: NDArray[np.bool_], leak: Floats, other: Floats) -> Expects:
    disease, finding = np.nonzero(linked)
    p = rows[disease, finding]
    return Expects(
        by_default=np.concatenate([leak, _entropy(leak)]),
        by_other=np.concatenate([other, _entropy(other)]),
        place=np.concatenate([finding, len(leak) + finding]),
        disease=np.concatenate([disease, disease]),
        more=np.concatenate([p - leak[finding], _entropy(p) - _entropy(leak)[finding]]),
    )


class _Prior(NamedTuple):
    """The prior as tables."""

    diseases: Floats
    """Here and below, by disease."""
    sex: Mapping[str, Floats]
    """Factors by sex."""
    bands: Sequence[tuple[Floats, Floats, Floats]]
    """From which age, up to which, and by which factor: the first band of each disease, then the second, and so on."""


@lru_cache(maxsize=1024)
def _log_prior(known: Knowledge, age: float | None, gender: str | None) -> Floats:
    """The logarithm of the prior of each hypothesis for a patient of this age and sex."""
    prior = _prior(known)
    weights = prior.diseases * prior.sex.get(gender or "", 1.0)
    if age is not None:
        for start, end, factor in prior.bands:
            weights = np.where((start <= age) & (age < end), weights * factor, weights)
    logs: Floats = np.log(np.maximum(1e-12, np.append(weights, known.other)))
    return logs


@lru_cache(maxsize=16)
def _prior(known: Knowledge) -> _Prior:
    diseases = known.diseases.values()
    total = sum(disease.prior for disease in diseases)
    bands = zip_longest(*(disease.age for disease in diseases), fillvalue=AgeBand(inf, inf, 1.0))
    return _Prior(
        diseases=np.array([disease.prior / total * (1 - known.other) for disease in diseases]),
        sex={gender: np.array([disease.sex.get(gender, 1.0) for disease in diseases]) for gender in ("female", "male")},
        bands=[
            (
                np.array([band.min for band in level]),
                np.array([band.max for band in level]),
                np.array([band.factor for band in level]),
            )
            for level in bands
        ],
    )


def _entropy(p: Floats) -> Floats:
    safe = np.minimum(np.maximum(p, 1e-12), 1 - 1e-12)
    return np.asarray(-(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe)))
