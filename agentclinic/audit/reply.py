"""The audit of one reply."""

from __future__ import annotations

from agentclinic.audit.chart import Chart
from agentclinic.audit.laboratory import audit_measurement
from agentclinic.audit.model import Exchange, Finding, Kind
from agentclinic.audit.patient import audit_patient
from agentclinic.audit.revealed import audit_revealed

_INVENTED = frozenset({Kind.INVENTED_MATERIAL, Kind.INVENTED_BENIGN})


def audit_reply(exchange: Exchange, chart: Chart) -> list[Finding]:
    """Every departure of one reply from the chart, or from what was asked; each kind and words once."""
    audit = audit_patient if exchange.role == "patient" else audit_measurement
    revealed = list(audit_revealed(exchange, chart))
    # Whoever names the diagnosis says something the chart does not; that is one fault, not two.
    named = {finding.words for finding in revealed}
    other = [f for f in audit(exchange, chart) if f.words not in named or f.kind not in _INVENTED]
    # What is told wrongly is not also left out.
    wrong = {finding.path for finding in other if finding.kind is Kind.CONTRADICTED}
    found = [*(f for f in other if f.kind is not Kind.OMITTED or f.path not in wrong), *revealed]
    # Of one statement, one finding of a kind for each place, or for each thing, it rests on.
    return list({(f.kind, f.words, f.path or f.term): f for f in reversed(found)}.values())[::-1]
