"""The builtin roles that answer with the matcher or by rule; patient and laboratory have files of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs_support import lines

from agentclinic.builtin import JUDGES, Builtin
from agentclinic.builtin.roles import judge
from agentclinic.cases.model import AnswerKey
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.config import Settings
from agentclinic.errors import ConfigError
from agentclinic.models.base import Reply
from agentclinic.results.record import Verdict
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade import regrade


def test_the_judge_says_yes_or_no_with_a_relation_and_a_reason() -> None:
    yes = judge(JudgePayload("Heart attack", "Acute myocardial infarction", AnswerKey()))
    no = judge(JudgePayload("Marsh ague", "Frobisher fever", AnswerKey(partial=("Marsh ague",))))
    assert (yes.text, no.text) == ("Yes", "No")
    assert yes.verdict is not None
    assert (yes.verdict.relation, yes.verdict.correct_lenient) == ("same", True)
    assert no.verdict is not None
    assert (no.verdict.relation, no.verdict.correct_lenient) == ("broader", True)
    assert no.usage.input_tokens == 0


@pytest.mark.anyio
async def test_a_new_judge_is_a_function_and_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def always(payload: JudgePayload) -> Reply:
        return Reply("Yes", verdict=Verdict(True, "same", f"{payload.truth} is anything"))

    monkeypatch.setitem(JUDGES, "builtin:always", always)
    played = Settings.model_validate({"run": {"num_scenarios": 2, "output_dir": str(tmp_path)}})
    done = await execute(make_plan(played), Progress())
    again = played.model_copy(update={"run": played.run.model_copy(update={"moderator_llm": "builtin:always"})})
    regraded = await regrade(done.folder, again)
    verdicts = lines(regraded.path)
    assert [verdict["correct"] for verdict in verdicts] == [True, True]
    assert all(verdict["reason"].endswith("is anything") for verdict in verdicts)


def test_an_unknown_builtin_judge_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no builtin model 'builtin:alway'"):
        Builtin("builtin:alway")
