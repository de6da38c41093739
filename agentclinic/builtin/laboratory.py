"""The builtin laboratory: the results our matcher finds, as the chart has them."""

from __future__ import annotations

from agentclinic.clinic.laboratory import matched, results_line
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS


def report(payload: LaboratoryPayload) -> Reply:
    """Report each item ordered: from the chart, by a reviewed equivalent, or as missing."""
    text, disclosures = results_line(matched(payload), payload)
    return Reply(text, usage=NO_TOKENS, disclosures=disclosures)
