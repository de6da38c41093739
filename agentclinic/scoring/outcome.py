"""How often the doctor was right, with intervals, and with missing data counted separately."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from agentclinic.config import is_at_endpoint
from agentclinic.results.record import MISSING, Record
from agentclinic.results.turn import Turn
from agentclinic.results.utterance import SLIPS
from agentclinic.scoring.clusters import case_key, cluster_keys, joined
from agentclinic.scoring.format import as_percent, headline_text, plural, unread_text
from agentclinic.scoring.stats import Proportion, share
from agentclinic.worlds.model import DEFER

Number = TypeVar("Number", int, float)
_BY_NAME = ("outcomes", "decided_by", "faults", "utterances", "by_code", "memory", "usage", "cost_usd")


class Summary(BaseModel):
    """The outcome of a run."""

    accuracy: float | None = None
    """As in the original: correct ÷ presented."""
    presented: int = 0
    correct: int = 0
    unsupported_bias: dict[str, str] = {}
    """Biases that were asked for and ignored because the prompt files do not have them, by setting."""
    outcomes: dict[str, int] = {}
    """Encounters by how they ended; `diagnosed` is split into judged right and judged wrong."""
    faults: dict[str, int] = {}
    """Failures by role.error."""
    fault_examples: dict[str, str] = {}
    """The message of the first failure of each kind, by row."""
    accuracy_strict: Proportion | None = None
    """Right ÷ (judged + not readable + doctor's faults + no diagnosis), without missing data."""
    not_readable: int = 0
    """Answers that the judge could not read: in `accuracy_strict` they are not right."""
    accuracy_at_most: float | None = None
    """The strict accuracy if all of those were right."""
    accuracy_lenient: Proportion | None = None
    """The same, also counting what the answer key accepts in part; null if the judge gives no relation."""
    if_missing_wrong: float | None = None
    """The strict accuracy of all presented if everything missing were wrong."""
    if_missing_right: float | None = None
    """The same if everything missing, and every answer that could not be read, were right."""
    decided_by: dict[str, int] = {}
    """Verdicts by who decided: code, model or person; empty in runs from before this was kept."""
    own_judge: int = 0
    """Verdicts by the doctor's own model."""
    mean_turns: float | None = None
    utterances: dict[str, int] = {}
    """Utterances by role, in the encounters that kept a transcript."""
    slips: dict[str, dict[str, int]] = {}
    """Utterances with a slip, by role and kind (docs/simulator.md)."""
    by_code: dict[str, int] = {}
    """Replies that code gave in place of a language-model patient or laboratory, by role."""
    memory: dict[str, int] = {}
    """Turns with memory, turns on which it offered something, experiences offered and followed, and turns on which one
    of its models failed; empty without memory."""
    usage: dict[str, dict[str, int | None]] = {}
    """Tokens by role; null if an endpoint did not report them."""
    cost_usd: dict[str, float | None] = {}
    """Cost by role; null if a price is not known."""
    total_tests: int | None = None
    """As in the original: tests that were ordered; null if no record says."""
    total_estimated_cost_usd: float | None = None
    """As in the original: what they cost, as far as it is known."""
    tests_without_price: int = 0
    mean_regret: float | None = None
    """Against the best play, in points; null outside solvable worlds."""
    mean_utility: float | None = None
    deferred: int = 0
    """Encounters in a solvable world that ended with DEFER; they are among those judged wrong."""
    wasted_turns: float | None = None
    """Share of turns in a solvable world that named nothing new from its lists."""

    @property
    def missing(self) -> int:
        """Encounters without a verdict, through no fault of the doctor."""
        return sum(self.outcomes.get(name, 0) for name in MISSING)

    @property
    def unknown(self) -> str:
        """What the bounds `if_missing_wrong` and `if_missing_right` range over."""
        return " or ".join(["missing"] * bool(self.missing) + ["not readable"] * bool(self.not_readable))

    @property
    def unread_text(self) -> str:
        """`at most 56.2%: 5 of 64 not readable`; empty if all were read."""
        return unread_text(self.accuracy_at_most, self.not_readable, self.presented - self.missing)

    def headline(self, label: str = "") -> str:
        """The strict accuracy with its interval, and what a reader must know beside it."""
        shown = as_percent(self.accuracy_strict, label=label)
        return headline_text(shown, self.unread_text, own_judge=bool(self.own_judge))

    def unread_advice(self, run: str = "RUN") -> list[str]:
        """How to decide the answers that could not be read, in one line; none if all were read."""
        read = sum(self.outcomes.get(name, 0) for name in ("diagnosed_right", "diagnosed_wrong"))
        return unread_advice(self.not_readable, run, every=not read)

    @property
    def lenient_differs(self) -> bool:
        """Whether the lenient rule gives another accuracy than the strict one, so that both should be shown."""
        return self.accuracy_lenient is not None and self.accuracy_lenient != self.accuracy_strict

    @property
    def tokens(self) -> int | None:
        """Tokens in and out of all roles; None if they are not all known."""
        return _sum(used.get(key) for used in self.usage.values() for key in ("input_tokens", "output_tokens"))

    @property
    def cost(self) -> float | None:
        """What all models cost, in US dollars; None if it is not all known."""
        return _sum(self.cost_usd.values())


@dataclass(slots=True)
class _Case:
    """The outcomes of one case that are not missing."""

    keys: tuple[str, ...]
    plays: int = 0
    right: int = 0
    lenient: int = 0


class RunningSummary:
    """A summary that grows record by record, for a run's progress, its limits and its end."""

    def __init__(self, *, judge_elsewhere: bool = False) -> None:
        """`judge_elsewhere`: the judge's model was at another endpoint than the doctor's."""
        self._judge_elsewhere = judge_elsewhere
        self.own_judge = 0
        self.decided_by: Counter[str] = Counter()
        self.presented = 0
        self.correct = 0
        self._cases: dict[str, _Case] = {}
        self._lenient_known = True
        self.outcomes: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._examples: dict[str, tuple[tuple[int, int], str]] = {}
        self.unsupported_bias: dict[str, str] = {}
        self.turns = 0
        self.utterances: Counter[str] = Counter()
        self.slips: dict[str, Counter[str]] = {}
        self.by_code: Counter[str] = Counter()
        self.memory: Counter[str] = Counter()
        self.tokens = 0
        """Known tokens in and out; unknown ones do not count."""
        self.usage: dict[str, dict[str, int | None]] = {}
        self.cost_usd: dict[str, float | None] = {}
        self.tests: list[float | None] | None = None
        """What each test ordered cost, if a record says."""
        self._regrets: list[tuple[float, float]] = []
        self._kinds: Counter[str] = Counter()
        self._deferred = 0

    def add(self, record: Record) -> None:
        self.presented += 1
        self.turns += record.num_turns or 0
        self.outcomes[outcome(record)] += 1
        self.unsupported_bias |= record.unsupported_bias or {}
        if record.correct:
            self.correct += 1
        if record.judgement and record.judgement.decided_by:
            self.decided_by[record.judgement.decided_by] += 1
        self.own_judge += not self._judge_elsewhere and judged_by_itself(record)
        if record.fault:
            kind = f"{record.fault.role}.{record.fault.error}"
            self.faults[kind] += 1
            # By row, not by time: the summary must not depend on the order in which workers finish.
            example = (record.scenario_id, record.repeat), record.fault.message
            self._examples[kind] = min(self._examples.get(kind, example), example)
        lenient = record.judgement.correct_lenient if record.judgement else None
        self._lenient_known &= record.status != "diagnosed" or record.correct is None or lenient is not None
        if outcome(record) not in MISSING:
            key = case_key(record)
            case = self._cases.get(key) or self._cases.setdefault(key, _Case(cluster_keys(record)))
            case.plays += 1
            case.right += bool(record.correct)
            case.lenient += bool(lenient)
        for turn in record.transcript or ():
            self._count_turn(turn)
        for role, used in (record.usage or {}).items():
            self.usage[role] = _added(self.usage.get(role), used)
            self.tokens += (used.get("input_tokens") or 0) + (used.get("output_tokens") or 0)
        if record.test_economics_log is not None:
            costs = [entry.get("estimate_cost") for entry in record.test_economics_log if isinstance(entry, dict)]
            self.tests = self.tests or []
            self.tests += costs
        if record.regret:
            self._regrets.append((record.regret.regret, record.regret.utility))
            self._deferred += record.regret.ending == DEFER
            self._kinds.update(turn.kind for turn in record.regret.turns)
        for role, money in (record.cost_usd or {}).items():
            before = self.cost_usd.get(role, 0.0)
            self.cost_usd[role] = None if before is None or money is None else before + money

    def _count_turn(self, turn: Turn) -> None:
        self.utterances[turn.role] += 1
        if turn.slips:
            self.slips.setdefault(turn.role, Counter()).update(set(turn.slips))
        if any(note.startswith(("worded by code", "chosen by the matcher")) for note in turn.notes):
            self.by_code[turn.role] += 1
        recalled = (turn.details or {}).get("memory")
        if turn.role == "doctor" and isinstance(recalled, dict):
            offered = recalled.get("offered") or []
            self.memory.update(turns=1, with_offer=bool(offered), offered=len(offered), failed="failed" in recalled)
            self.memory.update(followed=sum(each.get("followed") is True for each in offered))

    @property
    def spent(self) -> float | None:
        """Cost so far; None if part of it is not known."""
        known = [money for money in self.cost_usd.values() if money is not None]
        return sum(known) if len(known) == len(self.cost_usd) else None

    @property
    def missing(self) -> int:
        return sum(self.outcomes[name] for name in MISSING)

    @property
    def accuracy(self) -> float | None:
        """Right so far, of those that are not missing."""
        scored = self.presented - self.missing
        return self.correct / scored if scored else None

    def summary(self) -> Summary:
        presented = self.presented
        scored = presented - self.missing
        unread = self.outcomes["not_readable"]
        cases = list(self._cases.values())
        clusters = joined(case.keys for case in cases)
        known = [cost for cost in self.tests or () if cost is not None]
        return Summary(
            accuracy=self.correct / presented if presented else None,
            presented=presented,
            correct=self.correct,
            unsupported_bias=self.unsupported_bias,
            fault_examples={kind: message for kind, (_, message) in sorted(self._examples.items())},
            accuracy_strict=share((name, case.right, case.plays) for name, case in zip(clusters, cases, strict=True)),
            accuracy_lenient=share((name, case.lenient, case.plays) for name, case in zip(clusters, cases, strict=True))
            if self._lenient_known
            else None,
            not_readable=unread,
            accuracy_at_most=(self.correct + unread) / scored if scored else None,
            if_missing_wrong=self.correct / presented if presented else None,
            if_missing_right=(self.correct + unread + self.missing) / presented if presented else None,
            own_judge=self.own_judge,
            mean_turns=self.turns / presented if presented else None,
            slips={role: dict(sorted(kinds.items())) for role, kinds in sorted(self.slips.items())},
            **{name: dict(sorted(getattr(self, name).items())) for name in _BY_NAME},
            total_tests=None if self.tests is None else len(self.tests),
            total_estimated_cost_usd=math.fsum(known) if known or self.tests == [] else None,
            tests_without_price=len(self.tests or ()) - len(known),
            mean_regret=_mean(regret for regret, _ in self._regrets),
            mean_utility=_mean(utility for _, utility in self._regrets),
            deferred=self._deferred,
            wasted_turns=self._kinds["wasted"] / self._kinds.total() if self._kinds else None,
        )


def nothing_judged(summary: Summary) -> bool:
    """Whether no encounter has a verdict, through no fault of the doctor: the run shows nothing."""
    return 0 < summary.presented == summary.missing


def outcome(record: Record) -> str:
    """The record's status, with diagnoses split by verdict; one without a verdict is the judge's failure."""
    if record.status == "diagnosed":
        if record.correct is None:
            return "judge_failed"
        return "diagnosed_right" if record.correct else "diagnosed_wrong"
    return record.status


def judged_by_itself(record: Record) -> bool:
    """Whether the doctor's own language model decided the verdict, as far as the names of the models say."""
    by = record.judgement.decided_by if record.judgement else None
    model = record.doctor_llm
    same = model is not None and is_at_endpoint(model) and model == record.moderator_llm
    return same and record.correct is not None and record.status == "diagnosed" and by in (None, "model")


def unread_advice(unread: int, run: str = "RUN", *, every: bool = False) -> list[str]:
    """What the headline does with answers that could not be read and how to decide them, in one line; none if none."""
    if not unread:
        return []
    which = "No answer could" if every else f"{plural(unread, 'answer')} could not"
    return [
        f"{which} be read. Unread answers count as not right, in the interval too. Decide them yourself: agentclinic "
        f"judge label {run} --unread, or judge them with a model: agentclinic regrade {run} --moderator-llm MODEL."
    ]


def summarise(records: Iterable[Record]) -> Summary:
    running = RunningSummary()
    for record in records:
        running.add(record)
    return running.summary()


def tokens_of(record: Record, *kinds: str) -> int | None:
    """Tokens of all roles in one encounter, `input_tokens`, `output_tokens` or both; None if not all are known."""
    return _sum(used.get(kind) for used in (record.usage or {}).values() for kind in kinds)


def cost_of(record: Record) -> float | None:
    """What the models cost in one encounter, in US dollars; None if it is not all known."""
    return _sum((record.cost_usd or {}).values())


def _sum(values: Iterable[Number | None]) -> Number | None:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known[1:], start=known[0]) if known and len(known) == len(listed) else None


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else None


def _added(left: dict[str, Any] | None, right: dict[str, Any]) -> dict[str, int | None]:
    if left is None:
        return dict(right)
    keys = [*left, *(key for key in right if key not in left)]
    return {k: None if left.get(k) is None or right.get(k) is None else left[k] + right[k] for k in keys}


# --- slips of language models, as rates -------------------------------------------------------------------------------

_PATIENT = {
    "number": "named a number that is in no chosen fact",
    "disease": "named a disease that is in no chosen fact",
    "polarity": "said yes where the answer is no or not known, or the reverse",
    "added": "told more than was asked",
    "withheld": "told or denied what this patient keeps back",
    "result": "gave the result of a test that no chosen fact mentions",
    "role": "spoke as the doctor",
    "untold": "told nothing of the chosen facts",
    "malformed": "gave no usable reply",
    "refused": "declined to answer",
}
_NAMES = {"doctor": "doctor", "patient": "patient", "measurement": "laboratory"}


def slip_name(kind: str) -> str:
    """What the model did; empty for a kind that is not known."""
    return SLIPS.get(kind) or _PATIENT.get(kind, "")


def slip_rows(outcome: Summary) -> list[tuple[str, str, str, int, float]]:
    """Role, kind, what the model did, utterances with it, and how many that is per 100 utterances of the role."""
    return [
        (_NAMES[role], kind, slip_name(kind), count, 100 * count / outcome.utterances[role])
        for role in _NAMES
        for kind, count in sorted(outcome.slips.get(role, {}).items(), key=lambda entry: (-entry[1], entry[0]))
    ]


def slip_lines(outcome: Summary) -> list[str]:
    """One line for each role that slipped, and one for each role whose replies code had to give."""
    lines = []
    for role, name in _NAMES.items():
        kinds = outcome.slips.get(role)
        if kinds:
            told = ", ".join(f"{kind} {100 * count / outcome.utterances[role]:.1f}" for kind, count in kinds.items())
            lines.append(f"{name}'s slips per 100 utterances: {told}")
        if outcome.by_code.get(role):
            share = outcome.by_code[role] / outcome.utterances[role]
            lines.append(f"{name}'s replies given by code: {outcome.by_code[role]} ({share:.1%})")
    return lines
