"""The builtin roles that answer with the matcher or by rule; patient and laboratory have files of their own."""

from __future__ import annotations

from agentclinic.builtin.roles import judge
from agentclinic.cases.model import AnswerKey
from agentclinic.clinic.payloads import JudgePayload


def test_the_judge_says_yes_or_no_with_a_relation_and_a_reason() -> None:
    yes = judge(JudgePayload("Heart attack", "Acute myocardial infarction", AnswerKey()))
    no = judge(JudgePayload("Marsh ague", "Frobisher fever", AnswerKey(partial=("Marsh ague",))))
    assert (yes.text, no.text) == ("Yes", "No")
    assert yes.verdict is not None
    assert (yes.verdict.relation, yes.verdict.correct_lenient) == ("same", True)
    assert no.verdict is not None
    assert (no.verdict.relation, no.verdict.correct_lenient) == ("broader", True)
    assert no.usage.input_tokens == 0
