"""How often the doctor was right, with intervals and with what is not known kept apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from agentclinic.results.outcome import MISSING
from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Proportion, proportion


class Summary(BaseModel):
    """The outcome of a run."""

    accuracy: float | None = None
    """The seed's: correct ÷ presented."""
    presented: int = 0
    correct: int = 0
    outcomes: dict[str, int] = {}
    """Count of each way to end; `diagnosed` is split into judged right and judged wrong."""
    faults: dict[str, int] = {}
    """Failures as role.error."""
    fault_examples: dict[str, str] = {}
    """What was said at the first of each kind of failure, by row."""
    accuracy_strict: Proportion | None = None
    """Right ÷ (judged + doctor's faults + no diagnosis); missing data left out."""
    accuracy_lenient: Proportion | None = None
    """The same, with what the case's answer key accepts in part; null when the judge gives no relation."""
    if_missing_wrong: float | None = None
    if_missing_right: float | None = None
    mean_turns: float | None = None
    usage: dict[str, dict[str, int | None]] = {}
    """Tokens by role; null where an endpoint told nothing."""
    cost_usd: dict[str, float | None] = {}
    """Money by role; null where a price is not known."""


class Tally:
    """Counts records one at a time, so that a summary needs no run in memory."""

    def __init__(self) -> None:
        self.presented = 0
        self.correct = 0
        self.lenient: int | None = 0
        self.outcomes: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._examples: dict[str, tuple[tuple[int, int], str]] = {}
        self.turns = 0
        self.tokens = 0
        """Tokens in and out that are known of; unknown ones count nothing here."""
        self.usage: dict[str, dict[str, int | None]] = {}
        self.cost: dict[str, float | None] = {}

    def add(self, record: Record) -> None:
        """Count one record."""
        self.presented += 1
        self.turns += record.num_turns or 0
        self.outcomes[outcome(record)] += 1
        if record.correct:
            self.correct += 1
        if record.fault:
            kind = f"{record.fault.role}.{record.fault.error}"
            self.faults[kind] += 1
            # By row, not by time: whatever order the workers finish in, the summary is the same.
            example = (record.scenario_id, record.repeat), record.fault.message
            self._examples[kind] = min(self._examples.get(kind, example), example)
        lenient = record.judgement.correct_lenient if record.judgement else None
        if record.status == "diagnosed" and record.correct is not None and lenient is None:
            self.lenient = None
        elif self.lenient is not None and lenient:
            self.lenient += 1
        for role, used in (record.usage or {}).items():
            self.usage[role] = _added(self.usage.get(role), used)
            self.tokens += (used.get("input_tokens") or 0) + (used.get("output_tokens") or 0)
        for role, money in (record.cost_usd or {}).items():
            before = self.cost.get(role, 0.0)
            self.cost[role] = None if before is None or money is None else before + money

    @property
    def spent(self) -> float | None:
        """Money spent so far; None when a part of it is not known."""
        known = [money for money in self.cost.values() if money is not None]
        return sum(known) if len(known) == len(self.cost) else None

    @property
    def missing(self) -> int:
        """Units nobody could judge."""
        return sum(self.outcomes[name] for name in MISSING)

    @property
    def running(self) -> Proportion:
        """Strict accuracy so far."""
        return proportion(self.correct, self.presented - self.missing)

    def summary(self) -> Summary:
        """The summary of what was counted."""
        presented = self.presented
        scored = presented - self.missing
        return Summary(
            accuracy=self.correct / presented if presented else None,
            presented=presented,
            correct=self.correct,
            outcomes=dict(sorted(self.outcomes.items())),
            faults=dict(sorted(self.faults.items())),
            fault_examples={kind: message for kind, (_, message) in sorted(self._examples.items())},
            accuracy_strict=self.running,
            accuracy_lenient=None if self.lenient is None else proportion(self.lenient, scored),
            if_missing_wrong=self.correct / presented if presented else None,
            if_missing_right=(self.correct + self.missing) / presented if presented else None,
            mean_turns=self.turns / presented if presented else None,
            usage=dict(sorted(self.usage.items())),
            cost_usd=dict(sorted(self.cost.items())),
        )


def outcome(record: Record) -> str:
    """The record's outcome, with judged diagnoses told apart; one that nobody judged is the judge's failure."""
    if record.status == "diagnosed":
        if record.correct is None:
            return "judge_failed"
        return "diagnosed_right" if record.correct else "diagnosed_wrong"
    return record.status


def summarise(records: Iterable[Record]) -> Summary:
    """The summary of records."""
    tally = Tally()
    for record in records:
        tally.add(record)
    return tally.summary()


def _added(left: dict[str, Any] | None, right: dict[str, Any]) -> dict[str, int | None]:
    if left is None:
        return dict(right)
    keys = [*left, *(key for key in right if key not in left)]
    return {k: None if left.get(k) is None or right.get(k) is None else left[k] + right[k] for k in keys}
