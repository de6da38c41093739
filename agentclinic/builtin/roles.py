"""The builtin patient, laboratory and judge: facts that our matcher finds, and names compared by written rules."""

from __future__ import annotations

from agentclinic.clinic import answers, laboratory
from agentclinic.clinic.payloads import JudgePayload, LaboratoryPayload, PatientPayload
from agentclinic.models.base import Reply
from agentclinic.results.record import Verdict
from agentclinic.results.turn import NO_TOKENS
from agentclinic.vocabulary.compare import STRICT, compare


def answer(payload: PatientPayload) -> Reply:
    parts = answers.matched(payload)
    return Reply(answers.worded(parts), usage=NO_TOKENS, disclosures=tuple(part.disclosure for part in parts))


def report(payload: LaboratoryPayload) -> Reply:
    """Report each item ordered: from the chart, by a reviewed equivalent, or as missing."""
    text, disclosures = laboratory.results_line(laboratory.matched(payload), payload)
    return Reply(text, usage=NO_TOKENS, disclosures=disclosures)


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
