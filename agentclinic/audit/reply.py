"""The audit of one reply."""

from __future__ import annotations

from agentclinic.audit.chart import Chart
from agentclinic.audit.laboratory import audit_laboratory
from agentclinic.audit.model import AuditedReply, Finding, Kind
from agentclinic.audit.patient import audit_patient
from agentclinic.audit.revealed import audit_revealed

_INVENTED = frozenset({Kind.INVENTED_MATERIAL, Kind.INVENTED_BENIGN})


def audit_reply(reply: AuditedReply, chart: Chart) -> list[Finding]:
    """Every departure of a reply from the chart or from what was asked, each once."""
    audit = audit_patient if reply.role == "patient" else audit_laboratory
    revealed = list(audit_revealed(reply, chart))
    # A diagnosis that is not in the chart is revealed, not also invented.
    named = {finding.words for finding in revealed}
    other = [f for f in audit(reply, chart) if f.words not in named or f.kind not in _INVENTED]
    # What is told wrongly is not also omitted.
    wrong = {finding.path for finding in other if finding.kind is Kind.CONTRADICTED}
    found = [*(f for f in other if f.kind is not Kind.OMITTED or f.path not in wrong), *revealed]
    # A statement has one finding of each kind for each place in the chart, or each term.
    return list({(f.kind, f.words, f.path or f.term): f for f in reversed(found)}.values())[::-1]
