"""From a planner's findings to numbers: support, contradiction, unknown, confidence and coverage.

For a hypothesis with findings of weight w, S is the weight of those observed as expected, C of those observed
otherwise, U of those nobody knows about, and W = S + C + U:

    confidence = (1 + (S - C) / W) / 2        coverage = (S + C) / W

Confidence is 0.5 when nothing is known, 1 when everything fits, 0 when everything speaks against it. It is a score and
not a probability: the hypotheses' scores need not sum to anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentclinic.differential import Differential, Hypothesis, Source
from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import fold
from agentclinic.models.payloads import PlannedFinding, PlannedHypothesis


@dataclass(frozen=True)
class Weighed:
    """A hypothesis and its numbers."""

    diagnosis: str
    findings: tuple[PlannedFinding, ...]
    support: int
    contradiction: int
    unknown: int

    @property
    def total(self) -> int:
        """Weight of all its findings."""
        return self.support + self.contradiction + self.unknown

    @property
    def confidence(self) -> float:
        """Between 0 and 1; 0.5 when nothing is known."""
        return (1 + (self.support - self.contradiction) / self.total) / 2 if self.total else 0.5

    @property
    def coverage(self) -> float:
        """Share of the weight that is known, either way."""
        return (self.support + self.contradiction) / self.total if self.total else 0.0


def weigh(hypothesis: PlannedHypothesis) -> Weighed:
    """Add up a hypothesis's findings."""
    sums = {"support": 0, "contradiction": 0, "unknown": 0}
    for finding in hypothesis.findings:
        sums[_side(finding)] += finding.weight
    return Weighed(hypothesis.diagnosis, tuple(hypothesis.findings), **sums)


def _side(finding: PlannedFinding) -> str:
    if finding.observed == "unknown":
        return "unknown"
    return "support" if finding.observed == finding.expected else "contradiction"


def ranked(hypotheses: Sequence[Weighed]) -> tuple[Weighed, ...]:
    """The most confident first; of equals the better covered, then the one the planner named first."""
    return tuple(sorted(hypotheses, key=lambda h: (-h.confidence, -h.coverage)))


@dataclass(frozen=True)
class Sifted:
    """A planner's hypotheses without doubles, and remarks on what had to be mended."""

    hypotheses: tuple[PlannedHypothesis, ...]
    remarks: tuple[str, ...]


def sift(hypotheses: Sequence[PlannedHypothesis], most: int) -> Sifted:
    """Merge hypotheses and findings named twice, keep at most so many, and say what was done."""
    remarks: list[str] = []
    by_name: dict[str, PlannedHypothesis] = {}
    for hypothesis in hypotheses:
        known = knowledge().disease_named(hypothesis.diagnosis)
        name = known.id if known else fold(hypothesis.diagnosis)
        if name in by_name:
            remarks.append(f"{hypothesis.diagnosis}: named twice, taken as one")
            first = by_name[name]
            hypothesis = first.model_copy(update={"findings": [*first.findings, *hypothesis.findings]})
        by_name[name] = hypothesis
    if len(by_name) > most:
        remarks.append(f"{len(by_name)} hypotheses, only the first {most} are kept")
    kept = []
    for hypothesis in list(by_name.values())[:most]:
        findings, doubled = _without_doubles(hypothesis.findings)
        if doubled:
            remarks.append(f"{hypothesis.diagnosis}: {doubled} findings named twice")
        odd = [finding.remark for finding in findings if finding.remark]
        remarks += [f"{hypothesis.diagnosis}: {remark}" for remark in odd]
        kept.append(hypothesis.model_copy(update={"findings": findings}))
    return Sifted(tuple(kept), tuple(remarks))


def _without_doubles(findings: Sequence[PlannedFinding]) -> tuple[list[PlannedFinding], int]:
    """Findings by name; one that is said to be both present and absent is unknown."""
    by_name: dict[str, PlannedFinding] = {}
    for finding in findings:
        name = fold(finding.finding)
        before = by_name.get(name)
        if before is None:
            by_name[name] = finding
        elif before.observed != finding.observed:
            known = {before.observed, finding.observed} - {"unknown"}
            state = known.pop() if len(known) == 1 else "unknown"
            by_name[name] = before.model_copy(update={"observed": state})
    return list(by_name.values()), len(findings) - len(by_name)


def as_differential(hypotheses: Sequence[Weighed]) -> Differential | None:
    """The ranked hypotheses for the record, by their scores."""
    if not hypotheses:
        return None
    return Differential(
        source=Source.PLANNER_SCORE,
        hypotheses=tuple(
            Hypothesis(diagnosis=h.diagnosis, score=round(h.confidence, 4), reason=f"coverage {h.coverage:.2f}")
            for h in hypotheses
        ),
    )


def without_findings_below(hypotheses: Sequence[PlannedHypothesis], fewest: int) -> list[PlannedHypothesis]:
    """The hypotheses that list enough findings."""
    return [hypothesis for hypothesis in hypotheses if len(hypothesis.findings) >= fewest]
