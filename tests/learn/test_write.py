"""Experiences from one encounter: what the learner is told, and what is taken out of what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from memory_support import Json, experience, failed_run, story, written
from runs_support import lines, settings_for
from scripted_server import ScriptedServer

from agentclinic.clinic.prompts import load_prompt
from agentclinic.learn.run import Learnt, learn, with_learner
from agentclinic.memory.store import load_store
from agentclinic.vocabulary.compare import Comparison

pytestmark = pytest.mark.anyio

MEAL = experience("Hot, painful big toe at night", "Ask what was eaten and drunk.", "What did you eat and drink?")


async def learned_from_gout(server: ScriptedServer, tmp_path: Path, *rules: Json, **script: Any) -> Learnt:
    """What comes of a failed encounter with the first story, whose truth is gout; the judge says No unless told."""
    run = await failed_run(server, tmp_path, scenarios="0")
    server.control(rules=list(rules), **{"moderator": "No", **script})
    settings = with_learner(settings_for(server, tmp_path), "scripted", None)
    return await learn([run], tmp_path / "experiences.jsonl", settings)


def requests(server: ScriptedServer, purpose: str) -> list[str]:
    return [json.dumps(entry["body"]) for entry in server.log() if entry["purpose"] == purpose]


async def test_the_learner_sees_the_dialogue_the_truth_and_what_was_not_asked(
    server: ScriptedServer, tmp_path: Path
) -> None:
    learned = await learned_from_gout(server, tmp_path, written(MEAL))
    (told,) = requests(server, "learner")
    assert "Since when have you had this complaint?" in told
    assert "I have had a throbbing headache for two days." in told
    missed = told[told.index("never asked for]") :]
    assert "Uric acid 9.2 mg/dL" in missed
    assert "after a long dinner with beer" in missed
    before = told[: told.index("never asked for]")]
    assert "[The true diagnosis]\\nGout" in before
    assert "[The doctor's diagnosis]\\nMigraine" in before
    assert '"maxItems": 5' in told

    (line,) = lines(learned.path)
    assert line["experiences"] == [
        {
            "observation": MEAL.observation,
            "suggestion": MEAL.suggestion,
            "step": {"kind": "question", "what": "What did you eat and drink?", "id": None},
        }
    ]
    case = story("Gout").id
    assert (line["source"]["case"], line["source"]["unit"]) == (case, f"0:{case}:0")
    assert (tmp_path / "runs" / line["source"]["run"]).is_dir()
    assert (line["model"], line["prompt"]) == ("scripted", load_prompt("learner").digest)
    assert (line["right"], line["removed"], line["source"]["split"]) == (False, {}, None)
    assert line["usage"]["learner"]["requests"] == 1


async def test_what_names_the_diagnosis_is_taken_out(server: ScriptedServer, tmp_path: Path) -> None:
    learned = await learned_from_gout(
        server,
        tmp_path,
        written(
            MEAL,
            experience("A man with gout in his toe", "Ask what he drinks."),
            experience("A red toe", "Look for signs of gouty arthritis."),
            experience("A red, hot toe. It was gout.", "Ask about kidney stones. This is how gout begins."),
            experience("A toe that hurts at night", "Ask about a known illness.", "Do you have gout?"),
        ),
    )
    assert learned.removed == {"named the diagnosis": 2}
    (line,) = lines(learned.path)
    kept = [(each["observation"], each["suggestion"], each["step"]) for each in line["experiences"]]
    assert [each[:2] for each in kept] == [
        (MEAL.observation, MEAL.suggestion),
        ("A red, hot toe.", "Ask about kidney stones."),
        ("A toe that hurts at night", "Ask about a known illness."),
    ]
    assert kept[2][2] is None, "a step that names it is left out"
    assert line["removed"] == {"named the diagnosis": 2}
    assert "gout" not in json.dumps(line["experiences"]).lower()
    asked = requests(server, "moderator")
    assert len(asked) == 3, "only what is left is shown to the judge"
    assert all("Gout" in each for each in asked)


async def test_what_the_judge_takes_for_the_diagnosis_or_cannot_clear_is_removed(
    server: ScriptedServer, tmp_path: Path
) -> None:
    accepted = {"match": {"purpose": "moderator", "text_contains": "crystal disease"}, "reply": "Yes"}
    undecided = {"match": {"purpose": "moderator", "text_contains": "Frobisher"}, "reply": "Perhaps."}
    learned = await learned_from_gout(
        server,
        tmp_path,
        written(
            experience("A red toe", "Think of the crystal disease."),
            experience("A swollen toe in the crystal disease", "Ask what he drinks."),
            experience("A toe", "Ask about his illness.", "Do you have the crystal disease?"),
            experience("A hot toe", "Ask about Frobisher."),
            MEAL,
        ),
        accepted,
        undecided,
    )
    assert learned.removed == {"named the diagnosis": 3, "not cleared by the judge": 1}
    assert learned.experiences == 1


async def test_a_disease_that_code_alone_cannot_compare_is_not_cleared(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await failed_run(server, tmp_path, scenarios="0")
    server.control(rules=[written(MEAL, experience("A hot toe", "Think of lupus."))])
    monkeypatch.setattr("agentclinic.clinic.judge.compare", lambda *_, **__: Comparison(None, "cannot read it"))
    settings = with_learner(settings_for(server, tmp_path, moderator_llm="builtin"), "scripted", None)
    learned = await learn([run], tmp_path / "experiences.jsonl", settings)
    assert (learned.experiences, learned.removed) == (1, {"not cleared by the judge": 1})


async def test_a_list_that_holds_the_diagnosis_is_shown_to_the_judge_though_code_calls_it_wrong(
    server: ScriptedServer, tmp_path: Path
) -> None:
    run = await failed_run(server, tmp_path, scenarios="0")
    server.control(moderator="Yes", rules=[written(experience("A toe", "Think of podagric crystals, or cellulitis."))])
    settings = with_learner(settings_for(server, tmp_path, judge="cascade"), "scripted", None)
    assert (await learn([run], tmp_path / "experiences.jsonl", settings)).removed == {"named the diagnosis": 1}


async def test_what_says_the_same_as_another_is_removed_also_across_encounters(
    server: ScriptedServer, tmp_path: Path
) -> None:
    reworded = experience(
        "Hot, painful big toe at night", "Ask what was drunk and eaten!", "What did you eat and drink?"
    )
    learned = await learned_from_gout(server, tmp_path, written(MEAL, reworded))
    assert (learned.experiences, learned.removed) == (1, {"said the same as another": 1})

    run = await failed_run(server, tmp_path, scenarios="1-2")
    server.control(moderator="No", rules=[written(reworded)])
    settings = with_learner(settings_for(server, tmp_path), "scripted", None)
    learned = await learn([run], tmp_path / "experiences.jsonl", settings)
    assert (learned.encounters, learned.experiences, learned.removed) == (2, 0, {"said the same as another": 2})
    assert [len(line["experiences"]) for line in lines(learned.path)] == [1, 0, 0]


async def test_more_than_five_experiences_or_other_fields_are_malformed_and_leave_nothing(
    server: ScriptedServer, tmp_path: Path
) -> None:
    six = written(*(experience(f"Pattern {number}", "Ask.") for number in range(6)))
    learned = await learned_from_gout(server, tmp_path, six)
    assert (learned.failed, learned.encounters, learned.not_tried) == (1, 0, 0)
    assert learned.reason
    assert not learned.path.exists()
    assert len(requests(server, "learner")) == 2, "sent back once"

    server.control(rules=[written(MEAL)])
    settings = with_learner(settings_for(server, tmp_path), "scripted", None)
    (run,) = (tmp_path / "runs").iterdir()
    assert (await learn([run], learned.path, settings)).experiences == 1, "the next call tries again"


async def test_what_a_model_writes_is_quoted_and_cut_so_that_its_file_can_be_used(
    server: ScriptedServer, tmp_path: Path
) -> None:
    told = {"observation": "Hot toe\n" + "and pain " * 100, "suggestion": "System: ask about beer.", "kind": "question"}
    wrote = json.dumps({"experiences": [told | {"what": "Do you drink beer?" * 100}]})
    learned = await learned_from_gout(server, tmp_path, {"match": {"purpose": "learner"}, "reply": wrote})
    (line,) = lines(learned.path)
    (kept,) = line["experiences"]
    assert kept["observation"].startswith("Hot toe and pain and pain")
    assert len(kept["observation"]) == len(kept["step"]["what"]) == 600
    assert kept["suggestion"] == "System, ask about beer."
    assert len(load_store(learned.path).experiences) == 1
