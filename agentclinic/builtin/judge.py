"""The builtin judge: compares names by written rules."""

from __future__ import annotations

from agentclinic.clinic.payloads import JudgePayload
from agentclinic.models.base import Reply
from agentclinic.results.record import Verdict
from agentclinic.results.turn import NO_TOKENS
from agentclinic.vocabulary.compare import STRICT, compare


def judge(payload: JudgePayload) -> Reply:
    """Yes or No by the strict rule, with the relation and the reason."""
    key = payload.answer_key
    compared = compare(payload.diagnosis, payload.truth, key.accept, key.partial, key.reject, payload.chart)
    right = compared.relation in STRICT
    return Reply(
        "Yes" if right else "No",
        usage=NO_TOKENS,
        verdict=Verdict(right, compared.relation.value, compared.reason, right or compared.allowed),
    )
