"""The rank of the truth in the final differential: top-1, top-3, top-5 and mean reciprocal rank, by source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.results.differential import Differential
from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, Proportion, mean, proportion
from agentclinic.scoring.repeats import REPEATS_AS_INDEPENDENT
from agentclinic.scoring.verdicts import case_key, names_truth

DEPTHS = (1, 3, 5)


def final_differentials(record: Record) -> dict[str, Differential]:
    """The last differential of each source: one asked for afterwards does not hide the doctor's own."""
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    return {differential.source.value: differential for differential in given if differential is not None}


def rank_of_truth(differential: Differential, record: Record) -> int | None:
    """Rank of the first hypothesis that names the truth, counted from 1 in the stated order; None if absent."""
    ranked = enumerate(differential.hypotheses, start=1)
    return next((rank for rank, hypothesis in ranked if names_truth(hypothesis.diagnosis, record)), None)


class SourceRanking(BaseModel):
    """Ranks of the truth in the final differentials of one source."""

    records: int
    cases: int
    top: dict[int, Proportion]
    """By k: differentials with the truth among the first k ÷ all; Wilson interval."""
    mean_reciprocal_rank: Estimate
    """Mean of 1 ÷ rank, 0 if the truth is absent; interval by bootstrap over cases."""
    note: str | None = None


class Ranking(BaseModel):
    """Ranks by source, never pooled, and what could not be ranked."""

    by_source: dict[str, SourceRanking] = {}
    without_differential: int = 0
    without_truth: int = 0
    """Records that do not state the truth."""
    missing: int = 0
    """Encounters cut short by a failure that was not the doctor's."""


class Observation(NamedTuple):
    """The ranks in one record."""

    case: str
    ranks: tuple[tuple[str, int | None], ...] = ()
    """By source."""
    not_ranked: Literal["missing", "without_differential", "without_truth"] | None = None


def observe(record: Record) -> Observation:
    """Find the truth in a record's final differentials.

    Hypotheses are compared with the truth by written rules, not by the run's judge: a record whose judge failed counts.
    """
    case, finals = case_key(record), final_differentials(record)
    if record.status == "model_failed":
        return Observation(case, not_ranked="missing")
    if not finals:
        return Observation(case, not_ranked="without_differential")
    if not record.ground_truth:
        return Observation(case, not_ranked="without_truth")
    return Observation(case, tuple((source, rank_of_truth(given, record)) for source, given in finals.items()))


def summarise(observations: Iterable[Observation], seed: int = 0) -> Ranking:
    """Top-k shares and mean reciprocal rank, by source."""
    ranks: dict[str, list[tuple[str, int | None]]] = {}
    not_ranked: Counter[str] = Counter()
    for seen in observations:
        if seen.not_ranked:
            not_ranked[seen.not_ranked] += 1
        for source, rank in seen.ranks:
            ranks.setdefault(source, []).append((seen.case, rank))
    return Ranking(by_source={source: _of_source(given, seed) for source, given in sorted(ranks.items())}, **not_ranked)


def _of_source(ranks: list[tuple[str, int | None]], seed: int) -> SourceRanking:
    n, cases = len(ranks), len({case for case, _ in ranks})
    return SourceRanking(
        records=n,
        cases=cases,
        top={k: proportion(sum(rank is not None and rank <= k for _, rank in ranks), n) for k in DEPTHS},
        mean_reciprocal_rank=mean(((case, 1 / rank if rank else 0.0) for case, rank in ranks), seed, low=0, high=1),
        note=REPEATS_AS_INDEPENDENT if n > cases else None,
    )
