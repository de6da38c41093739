"""The builtin judge: compares names by written rules."""

from __future__ import annotations

from agentclinic.builtin import NO_TOKENS
from agentclinic.clinic.payloads import ModeratorPayload
from agentclinic.models.base import Reply, Verdict
from agentclinic.vocabulary.compare import STRICT, compare


def judge(payload: ModeratorPayload) -> Reply:
    """Yes or No by the strict rule, with the relation and its reason."""
    key = payload.answer_key
    compared = compare(payload.diagnosis, payload.truth, key.accept, key.partial, key.reject, payload.chart)
    right = compared.relation in STRICT
    return Reply(
        "Yes" if right else "No",
        usage=NO_TOKENS,
        verdict=Verdict(compared.relation.value, compared.reason, lenient=right or compared.allowed),
    )
