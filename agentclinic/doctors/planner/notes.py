"""`[Planning Notes]`: the plan in numbers, for the doctor and for readers of the record."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.doctors.planner.schema import Discriminator, PlannedFinding
from agentclinic.doctors.planner.settings import PolicyFile
from agentclinic.doctors.planner.weighing import Weighed

HEADER = "[Planning Notes]"
_BASIS = {
    "door": "what a doctor knows at the door, and the dialogue",
    "full": "the patient's whole script (planner_baseline full), and the dialogue",
}
_SHOWN = 4
"""Findings shown on each side; the record has all."""
_NOTED = 8
"""Remarks shown, those on the whole plan first: a planner that words every state oddly would fill the page."""


def plan_notes(
    policy: PolicyFile,
    baseline: str,
    hypotheses: Sequence[Weighed],
    close: Sequence[Weighed],
    discriminators: Sequence[Discriminator],
    remarks: Sequence[str],
    broken: Sequence[str] = (),
) -> str:
    """The notes for a turn with a plan; `broken` are the rules that the last order broke."""
    lines = [
        HEADER,
        f"Rests on {_BASIS[baseline]}. Scores from 0 to 1 are not probabilities; 0.5 means nothing is known.",
    ]
    for place, hypothesis in enumerate(hypotheses, start=1):
        lines += [f"{place}. {_numbers(hypothesis)}", *_findings(hypothesis.findings)]
    if len(close) > 1:
        names = ", ".join(hypothesis.diagnosis for hypothesis in close)
        gap = policy.differential_settings.confidence_close_threshold
        lines.append(f"Too close to call (within {gap:g}): {names}.")
        lines += [f"   tells apart: {found.request}" for found in discriminators]
    return _finished(policy, lines, remarks, broken)


def fallback_notes(policy: PolicyFile, problem: str, remarks: Sequence[str], broken: Sequence[str] = ()) -> str:
    return _finished(policy, [HEADER, f"{policy.fallback_advice} (Reason: {problem}.)"], remarks, broken)


def broken_rules(broken: Sequence[str]) -> list[str]:
    """What the doctor is told about the rules its last order broke."""
    return [f"Your last order broke a rule: {rule}." for rule in broken]


def rules_line(policy: PolicyFile) -> str:
    """The planning rules as the doctor is told them; empty if there are none."""
    return "Rules: " + " ".join(policy.rules) if policy.rules else ""


def _finished(policy: PolicyFile, lines: list[str], remarks: Sequence[str], broken: Sequence[str]) -> str:
    lines += [f"Note: {remark}." for remark in remarks[:_NOTED]]
    if len(remarks) > _NOTED:
        lines.append(f"Note: {len(remarks) - _NOTED} more remarks are in the record.")
    lines += broken_rules(broken)
    return "\n".join(filter(None, (*lines, rules_line(policy), policy.advice)))


def _numbers(hypothesis: Weighed) -> str:
    return (
        f"{hypothesis.diagnosis}: confidence {hypothesis.confidence:.2f}, coverage {hypothesis.coverage:.2f} "
        f"(for {hypothesis.support}, against {hypothesis.contradiction}, unknown {hypothesis.unknown})"
    )


def _findings(findings: Sequence[PlannedFinding]) -> list[str]:
    known = [f for f in findings if f.observed != "unknown"]
    sides = {
        "for": [f for f in known if f.observed == f.expected],
        "against": [f for f in known if f.observed != f.expected],
        "not known": [f for f in findings if f.observed == "unknown"],
    }
    lines = []
    for side, those in sides.items():
        if those:
            heaviest = sorted(those, key=lambda f: -f.weight)[:_SHOWN]
            lines.append(f"   {side}: " + ", ".join(f"{_named(f)} ({f.weight})" for f in heaviest))
    return lines


def _named(finding: PlannedFinding) -> str:
    return finding.finding if finding.observed != "absent" else f"no {finding.finding}"
