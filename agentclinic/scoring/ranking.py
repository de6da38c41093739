"""Where the truth stands in the final differential: top-1, top-3, top-5 and mean reciprocal rank, by source."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel

from agentclinic.results.differential import Differential
from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.repeats import REPEATS_AS_INDEPENDENT
from agentclinic.scoring.sample import Cases, Sample
from agentclinic.scoring.verdicts import names_truth

DEPTHS = (1, 3, 5)


def final_differentials(record: Record) -> dict[str, Differential]:
    """The last differential of each source: one asked for afterwards does not hide the doctor's own."""
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    return {differential.source.value: differential for differential in given if differential is not None}


def rank_of_truth(differential: Differential, record: Record) -> int | None:
    """Place of the first hypothesis that names the truth, counted from 1 in the stated order; None when absent."""
    places = enumerate(differential.hypotheses, start=1)
    return next((place for place, hypothesis in places if names_truth(hypothesis.diagnosis, record)), None)


class SourceRanking(BaseModel):
    """Ranks of the truth in the final differentials of one source."""

    records: int
    cases: int
    top: dict[int, Proportion]
    """By k: differentials with the truth among the first k ÷ all; Wilson interval."""
    mean_reciprocal_rank: Estimate
    """Mean of 1 ÷ rank, 0 where the truth is absent; interval by bootstrap over cases."""
    note: str | None = None


class Ranking(BaseModel):
    """Ranks by source, never pooled, and what could not be ranked."""

    by_source: dict[str, SourceRanking] = {}
    without_differential: int = 0
    without_truth: int = 0
    """Records that do not state the truth."""
    missing: int = 0
    """Encounters cut short by a failure that was not the doctor's."""


class _Source:
    def __init__(self) -> None:
        self.ranks: Counter[int] = Counter()
        self.reciprocal = Sample(0, 1)
        self.cases: set[int] = set()

    def result(self, seed: int) -> SourceRanking:
        n = self.ranks.total()
        hits = {k: sum(count for rank, count in self.ranks.items() if 1 <= rank <= k) for k in DEPTHS}
        return SourceRanking(
            records=n,
            cases=len(self.cases),
            top={k: proportion(count, n) for k, count in hits.items()},
            mean_reciprocal_rank=self.reciprocal.estimate(seed),
            note=REPEATS_AS_INDEPENDENT if n > len(self.cases) else None,
        )


class Tally:
    """Counts ranks one record at a time.

    Hypotheses are compared with the truth by written rules, not by the run's judge: a record whose judge failed counts.
    """

    def __init__(self) -> None:
        self._cases = Cases()
        self._sources: dict[str, _Source] = {}
        self._apart: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Count one record."""
        finals = final_differentials(record)
        if record.status == "model_failed":
            self._apart["missing"] += 1
        elif not finals:
            self._apart["without_differential"] += 1
        elif not record.ground_truth:
            self._apart["without_truth"] += 1
        else:
            case = self._cases.number(record)
            for name, differential in finals.items():
                source = self._sources.setdefault(name, _Source())
                rank = rank_of_truth(differential, record)
                source.ranks[rank or 0] += 1
                source.reciprocal.add(case, 1 / rank if rank else 0.0)
                source.cases.add(case)

    def result(self, seed: int = 0) -> Ranking:
        """The measures of what was counted."""
        by_source = {name: source.result(seed) for name, source in sorted(self._sources.items())}
        return Ranking(by_source=by_source, **self._apart)
