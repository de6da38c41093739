"""From a planner's findings to numbers: support, contradiction, unknown, confidence and coverage.

For a hypothesis with findings of weight w, S is the weight of those observed as expected, C of those observed
otherwise, U of those nobody knows about, and W = S + C + U:

    confidence = (1 + (S - C) / W) / 2        coverage = (S + C) / W

Confidence is 0.5 when nothing is known, 1 when everything fits, 0 when everything speaks against it. It is a score and
not a probability: the hypotheses' scores need not sum to anything.
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
        """Weight of all its findings."""
        return self.support + self.contradiction + self.unknown

    @property
    def confidence(self) -> float:
        """Between 0 and 1; 0.5 when nothing is known."""
        # One division: a score that is exactly at a threshold is not lost to rounding.
        return (self.total + self.support - self.contradiction) / (2 * self.total) if self.total else 0.5

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
            first = by_name[name]
            remarks.append(f"{hypothesis.diagnosis}: named before as {first.diagnosis}, taken as one")
            hypothesis = first.model_copy(update={"findings": [*first.findings, *hypothesis.findings]})
        by_name[name] = hypothesis
    if len(by_name) > most:
        remarks.append(f"{len(by_name)} hypotheses, only the first {most} are kept")
    kept = []
    for hypothesis in list(by_name.values())[:most]:
        findings, doubled = _without_doubles(hypothesis.findings)
        if doubled:
            remarks.append(f"{hypothesis.diagnosis}: findings named more than once counted once ({doubled} left out)")
        odd = [finding.remark for finding in findings if finding.remark]
        remarks += [f"{hypothesis.diagnosis}: {remark}" for remark in odd]
        kept.append(hypothesis.model_copy(update={"findings": findings}))
    return Sifted(tuple(kept), tuple(remarks))


def _without_doubles(findings: Sequence[PlannedFinding]) -> tuple[list[PlannedFinding], int]:
    """Each finding once: by name, and by another word for it where both say the same.

    What is said both ways under one name is unknown. Two words the knowledge base takes for one thing, of which one is
    there and the other is not, are two things to this planner.
    """
    by_name = _grouped(findings, lambda finding: fold(finding.finding))
    by_meaning = _grouped(by_name, lambda finding: (_meaning(finding.finding), finding.expected, finding.observed))
    return by_meaning, len(findings) - len(by_meaning)


def _grouped(findings: Sequence[PlannedFinding], key: Callable[[PlannedFinding], Hashable]) -> list[PlannedFinding]:
    groups: dict[Hashable, list[PlannedFinding]] = {}
    for finding in findings:
        groups.setdefault(key(finding), []).append(finding)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[PlannedFinding]) -> PlannedFinding:
    """One finding for several of a name, whatever their order: the heaviest weight, the state they agree on."""
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


def _meaning(name: str) -> str:
    """The finding of the knowledge base that goes by this very name; the name itself where none, or several, do."""
    found = _finding_names().get(words(name), set())
    return next(iter(found)) if len(found) == 1 else fold(name)


@lru_cache(maxsize=1)
def _finding_names() -> dict[tuple[str, ...], set[str]]:
    names: dict[tuple[str, ...], set[str]] = {}
    for finding in knowledge().findings.values():
        for name in (finding.name, *finding.terms, *finding.lay):
            names.setdefault(words(name), set()).add(finding.id)
    return names
