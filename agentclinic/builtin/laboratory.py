"""The builtin laboratory: reports what was ordered as the chart has it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.cases.matcher import Ordered, asked_of_measurement
from agentclinic.cases.model import Fact
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS, Disclosure, Provenance


def report(payload: LaboratoryPayload) -> Reply:
    """Report each item ordered: from the chart, by a reviewed equivalent, or as missing."""
    parts, disclosures = [], []
    for ordered in asked_of_measurement(payload.request, payload.facts):
        text, provenance = _part(ordered, payload)
        parts.append(text)
        disclosures.append(Disclosure(ordered.name, provenance, tuple(fact.path for fact in ordered.facts)))
    return Reply("RESULTS: " + " ".join(parts), usage=NO_TOKENS, disclosures=tuple(disclosures))


def _part(ordered: Ordered, payload: LaboratoryPayload) -> tuple[str, Provenance]:
    if not ordered.facts:
        if payload.missing_test == "normal":
            return "NORMAL READINGS", Provenance.DEFAULT_NORMAL
        return f"{ordered.name[:1].upper()}{ordered.name[1:]} not available.", Provenance.UNAVAILABLE
    lines = _charted(ordered.facts)
    if ordered.equivalent:
        return f"{ordered.name} was not done; {ordered.equivalent}: {lines}.", Provenance.CHART_EQUIVALENT
    return f"{lines}.", Provenance.CHART


def _charted(facts: Sequence[Fact]) -> str:
    """Facts as a report: each heading once, followed by its values."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        head, label = fact.heads[0] if fact.heads else "", ", ".join(fact.heads[1:])
        value = fact.text.strip().rstrip(".")
        groups.setdefault(head, []).append(f"{label}: {value}" if label else value)
    return "; ".join(f"{head}: {'; '.join(values)}" if head else "; ".join(values) for head, values in groups.items())
