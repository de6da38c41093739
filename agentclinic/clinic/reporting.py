"""What the laboratory reports: the charted results an order asks for, written out as the chart has them."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.cases.matcher import Ordered, asked_of_measurement
from agentclinic.cases.model import Fact
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.results.actions import RESULTS
from agentclinic.results.turn import Disclosure, Provenance


def matched(payload: LaboratoryPayload) -> list[Ordered]:
    """Each item of the order with the charted results that our matcher finds for it."""
    return asked_of_measurement(payload.request, payload.facts)


def results_line(ordered: Sequence[Ordered], payload: LaboratoryPayload) -> tuple[str, tuple[Disclosure, ...]]:
    """The `RESULTS:` line, verbatim from the chart, and where each part of it comes from."""
    parts, disclosures = [], []
    for item in ordered:
        text, provenance = _part(item, payload)
        parts.append(text)
        disclosures.append(Disclosure(item.name, provenance, tuple(fact.path for fact in item.facts)))
    return f"{RESULTS} {' '.join(parts)}", tuple(disclosures)


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
