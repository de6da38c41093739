"""From a planner's findings to numbers: support, contradiction, unknown, confidence and coverage.

For a hypothesis, S is the weight of its findings observed as expected, C of those observed otherwise, U of those not
known, and W = S + C + U:

    confidence = (1 + (S - C) / W) / 2        coverage = (S + C) / W

Confidence is 0.5 if nothing is known, 1 if everything fits, 0 if everything speaks against it. It is a score, not a
probability: the scores of several hypotheses do not sum to anything in particular.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.doctors.planner.schema import PlannedFinding, PlannedHypothesis
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import fold, words


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
        return self.support + self.contradiction + self.unknown

    @property
    def confidence(self) -> float:
        """Between 0 and 1; 0.5 if nothing is known."""
        # A single division, so that a score exactly at a threshold is not lost to rounding.
        return (self.total + self.support - self.contradiction) / (2 * self.total) if self.total else 0.5

    @property
    def coverage(self) -> float:
        """Share of the weight that is known, for or against."""
        return (self.support + self.contradiction) / self.total if self.total else 0.0

    @property
    def unknowns(self) -> tuple[str, ...]:
        """What would speak for it and is not known, the heaviest first."""
        open_ = sorted((f for f in self.findings if f.observed == "unknown"), key=lambda f: -f.weight)
        return tuple(f.finding if f.expected == "present" else f"absence of {f.finding}" for f in open_)


def weigh(hypothesis: PlannedHypothesis) -> Weighed:
    sums = {"support": 0, "contradiction": 0, "unknown": 0}
    for finding in hypothesis.findings:
        sums[_side(finding)] += finding.weight
    return Weighed(hypothesis.diagnosis, tuple(hypothesis.findings), **sums)


def _side(finding: PlannedFinding) -> str:
    if finding.observed == "unknown":
        return "unknown"
    return "support" if finding.observed == finding.expected else "contradiction"


def ranked(hypotheses: Sequence[Weighed]) -> tuple[Weighed, ...]:
    """Most confident first; ties go to the better covered, then to the one named first."""
    return tuple(sorted(hypotheses, key=lambda h: (-h.confidence, -h.coverage)))


def ahead(leader: float, other: float) -> float:
    """How far one confidence is ahead of another."""
    # 0.62 - 0.5 is slightly more than 0.12 in binary; a margin exactly at the threshold must count as equal to it.
    return round(leader - other, 9)


def sift(hypotheses: Sequence[PlannedHypothesis], most: int) -> tuple[list[PlannedHypothesis], list[str]]:
    """Merge hypotheses and findings named twice and keep at most `most`; also returns remarks on what was corrected."""
    remarks: list[str] = []
    by_name: dict[str, PlannedHypothesis] = {}
    for hypothesis in hypotheses:
        known = knowledge().disease_named(hypothesis.diagnosis)
        name = known.id if known else fold(hypothesis.diagnosis)
        if name in by_name:
            first = by_name[name]
            remarks.append(f"{hypothesis.diagnosis}: named before as {first.diagnosis}, taken as one")
            hypothesis = first.model_copy(update={"findings": [*first.findings, *hypothesis.findings]})
        by_name[name] = hypothesis
    if len(by_name) > most:
        remarks.append(f"{len(by_name)} hypotheses, only the first {most} are kept")
    kept = []
    for hypothesis in list(by_name.values())[:most]:
        findings = _without_duplicates(hypothesis.findings)
        dropped = len(hypothesis.findings) - len(findings)
        if dropped:
            remarks.append(f"{hypothesis.diagnosis}: findings named more than once counted once ({dropped} left out)")
        remarks += [f"{hypothesis.diagnosis}: {finding.remark}" for finding in findings if finding.remark]
        kept.append(hypothesis.model_copy(update={"findings": findings}))
    return kept, remarks


def _without_duplicates(findings: Sequence[PlannedFinding]) -> list[PlannedFinding]:
    """Each finding once, by name and by synonym.

    A finding reported both ways under one name is unknown. Two synonyms, one reported present and the other absent, are
    evidently two different findings to this planner.
    """
    by_name = _grouped(findings, lambda finding: fold(finding.finding))
    return _grouped(by_name, lambda finding: (meaning(finding.finding), finding.expected, finding.observed))


def _grouped(findings: Sequence[PlannedFinding], key: Callable[[PlannedFinding], Hashable]) -> list[PlannedFinding]:
    groups: dict[Hashable, list[PlannedFinding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[PlannedFinding]) -> PlannedFinding:
    """One finding in place of several with the same name: the highest weight, and the state they agree on."""
    if len(group) == 1:
        return group[0]
    states = {finding.observed for finding in group} - {"unknown"}
    expected = {finding.expected for finding in group}
    agreed = len(states) == 1 and len(expected) == 1
    return group[0].model_copy(
        update={
            "weight": max(finding.weight for finding in group),
            "expected": min(expected),
            "observed": states.pop() if agreed else "unknown",
        }
    )


def meaning(name: str) -> str:
    """What counts as the same finding: that of the knowledge base with exactly this name, or the name itself."""
    found = _finding_names().get(words(name), set())
    return next(iter(found)) if len(found) == 1 else fold(name)


@lru_cache(maxsize=1)
def _finding_names() -> dict[tuple[str, ...], set[str]]:
    names: dict[tuple[str, ...], set[str]] = {}
    for finding in knowledge().findings.values():
        for name in (finding.name, *finding.terms, *finding.lay):
            names.setdefault(words(name), set()).add(finding.id)
    return names
