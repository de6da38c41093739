"""The audit of one reply."""

from __future__ import annotations

from agentclinic.audit.chart import Chart
from agentclinic.audit.laboratory import audit_measurement
from agentclinic.audit.model import Exchange, Finding
from agentclinic.audit.patient import audit_patient
from agentclinic.audit.revealed import audit_revealed


def audit_reply(exchange: Exchange, chart: Chart) -> list[Finding]:
    """Every departure of one reply from the chart, or from what was asked; each kind and words once."""
    audit = audit_patient if exchange.role == "patient" else audit_measurement
    found = [*audit(exchange, chart), *audit_revealed(exchange, chart)]
    return list({(finding.kind, finding.words, finding.path, finding.term): finding for finding in found}.values())
