"""Planning with `scoring: bayes`: when it finishes, what it shows, and planners that break the rules of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from policy_support import ASKED, Planning, table_plan
from runs_support import run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.clinic.doctor import Dialogue
from agentclinic.config import Settings
from agentclinic.doctors.planner.engine import Decision
from agentclinic.doctors.planner.payloads import PlannerPayload
from agentclinic.doctors.planner.schema import TableReply, TableThenSpeak
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.errors import ConfigError
from agentclinic.models.base import MalformedError, RefusedError
from agentclinic.models.structured import format_of
from agentclinic.results.record import Record
from agentclinic.results.turn import Exchange, Source
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.scoring.calibration import calibration
from agentclinic.scoring.rows import row_of

pytestmark = pytest.mark.anyio

PRIORS = {"A": 0.4, "B": 0.2, "C": 0.1}
FEVER = "almost_always almost_never almost_never almost_never"
MILD = "often sometimes sometimes sometimes"
FIRST = table_plan(PRIORS, fever=FEVER, cough=MILD, rash=MILD, pallor=MILD)
"""Four questions; with fever, A has the odds of 0.4 x 0.97 to 0.6 x 0.02."""
NOTHING = table_plan()
FEVERISH = table_plan(observed="1+")


def planning(*answers: Any, **settings: Any) -> Planning:
    return Planning(*answers, **{"scoring": "bayes", **settings})


async def turns(given: Planning, count: int, exchanges: tuple[Exchange, ...] = (ASKED,)) -> list[Decision]:
    return [await given.turn(number, exchanges if number > 1 else ()) for number in range(1, count + 1)]


# When it finishes.


async def test_it_finishes_when_the_same_leader_is_probable_enough_in_two_plans() -> None:
    first, second = await turns(planning(FIRST, FEVERISH), 2)
    assert (first.kind, second.kind) == ("plan", "finish")
    assert second.diagnosis == "A"
    assert second.notes == "early finish: A with probability 0.97"
    assert second.hypotheses[0].confidence == pytest.approx(0.388 / 0.4)


async def test_a_leader_that_is_new_is_not_taken_at_once() -> None:
    for_second = "almost_never almost_always almost_never almost_never"
    other_first = table_plan({"B": 0.4, "A": 0.2, "C": 0.1}, fever=for_second, cough=MILD, rash=MILD, pallor=MILD)
    _, second, third = await turns(planning(other_first, FEVERISH, NOTHING), 3)
    assert second.kind == "plan"
    assert "Note: no early finish: the leader is new." in second.notes
    assert (third.kind, third.diagnosis) == ("finish", "A")


@pytest.mark.parametrize("threshold", [0.96, 0.98])
async def test_it_has_a_threshold_of_its_own(threshold: float) -> None:
    given = planning(FIRST, FEVERISH, probability_to_finish=threshold, finish_early_if_confident=1.0)
    assert (await turns(given, 2))[-1].kind == ("finish" if threshold < 0.97 else "plan")


async def test_it_does_not_finish_before_anything_was_said() -> None:
    given = planning(FIRST, FEVERISH)
    await given.turn(1, ())
    assert (await given.turn(2, ())).kind == "plan"


async def test_it_does_not_finish_with_too_few_hypotheses() -> None:
    two = table_plan({"A": 0.4, "B": 0.2}, fever="almost_always almost_never almost_never", cough="often often often",
                     rash="often often often", pallor="often often often")  # fmt: skip
    _, second = await turns(planning(two, FEVERISH), 2)
    assert "no early finish: the plan has 2 of at least 3 diagnoses" in second.remarks


CT = "almost_always rarely rarely rarely"
WITH_TESTS = table_plan(
    PRIORS,
    fever="almost_always rarely almost_never almost_never",
    cough=MILD,
    test_CT_chest=CT,
    test_Ferritin="often often sometimes sometimes",
)
"""With fever, A has 0.388 of 0.416, and B 0.02 of it: enough for a test to be needed."""
ORDERED = Exchange("test", "Chest CT", "RESULTS: no such entry in the chart.")


async def test_without_the_deciding_test_it_advises_and_the_doctor_decides() -> None:
    _, second = await turns(planning(WITH_TESTS, FEVERISH), 2)
    assert second.kind == "plan"
    assert "Note: no early finish: the deciding test has not been done (REQUEST TEST: CT chest)." in second.notes
    assert "Best next step: REQUEST TEST: CT chest\n" in second.notes


@pytest.mark.parametrize("state", ["x", "+"])
async def test_the_deciding_test_may_be_done_or_unavailable(state: str) -> None:
    _, second = await turns(planning(WITH_TESTS, table_plan(observed=f"1+ 3{state}")), 2)
    assert second.kind == "finish", "the other test could not take the lead away"


async def test_a_deciding_test_that_was_ordered_counts_as_done_whatever_the_planner_reads() -> None:
    given = planning(WITH_TESTS, FEVERISH, NOTHING)
    await turns(given, 2)
    assert (await given.turn(3, (ASKED, ORDERED))).kind == "finish"


@pytest.mark.parametrize(
    ("priors", "fever", "kind"),
    [
        ({"A": 0.75, "B": 0.1, "C": 0.1}, FEVER, "finish"),
        (PRIORS, "almost_always rarely almost_never almost_never", "plan"),
        (PRIORS, "almost_always almost_never almost_never rarely", "plan"),
    ],
    ids=["none", "a rival", "something else"],
)
async def test_the_deciding_test_is_needed_only_against_what_is_probable_enough(
    priors: dict[str, float], fever: str, kind: str
) -> None:
    given = planning(table_plan(priors, fever=fever, cough=MILD, rash=MILD, test_CT_chest=CT), FEVERISH)
    _, second = await turns(given, 2)
    assert second.hypotheses[0].confidence > 0.9
    assert second.kind == kind


# What to do next.


async def test_of_steps_that_tell_nearly_as_much_the_cheapest_comes_first() -> None:
    tests = {f"test_{name}": CT for name in ("CT_chest", "Complete_blood_count", "Skin_examination", "frobnication")}
    (first,) = await turns(planning(table_plan(PRIORS, cough=MILD, **tests)), 1)
    assert [found.request for found in first.discriminators] == [
        "REQUEST TEST: Skin examination",
        "REQUEST TEST: Complete blood count",
        "REQUEST TEST: CT chest",
    ]
    assert "Best next step: REQUEST TEST: Skin examination\n" in first.notes
    weaker = "usually rarely rarely rarely"  # tells 70.4% as much
    (first,) = await turns(planning(table_plan(PRIORS, cough=MILD, fever=weaker, **tests)), 1)
    assert first.step == "Do you have fever?"
    too_weak = "almost_always often rarely rarely"  # 65%
    (first,) = await turns(planning(table_plan(PRIORS, cough=MILD, fever=too_weak, **tests)), 1)
    assert first.step == "REQUEST TEST: Skin examination"


async def test_what_has_just_been_asked_in_other_words_is_not_proposed_again() -> None:
    given = planning(FIRST, NOTHING, NOTHING)
    assert (await given.turn(1, ())).step == "Do you have fever?"
    again = Exchange("question", "When did it begin, and have you had any fever since?", "On Monday.")
    assert (await given.turn(2, (again,))).step == "Do you have cough?"
    assert (await given.turn(3, (again, ASKED))).step == "Do you have fever?", "the patient did not say"


async def test_nothing_that_has_just_been_asked_is_to_be_found_out_either() -> None:
    three = table_plan(PRIORS, fever=FEVER, cough=MILD, rash=MILD)
    given = planning(three, table_plan(observed="2+ 3+"), min_symptoms_per_disease=3, probability_to_finish=1.0)
    await given.turn(1, ())
    asked = Exchange("question", "Do you have fever?", "I could not say.")
    assert "Best next step" not in (await given.turn(2, (asked,))).notes


# What is shown.


async def test_the_notes_are_probabilities_and_the_best_step() -> None:
    (first,) = await turns(planning(FIRST), 1)
    assert first.notes.splitlines() == [
        "[Planning Notes]",
        "Probabilities, computed from the planner's table; something else: 0.30.",
        "1. A: 0.40. Not known: fever; cough.",
        "2. B: 0.20. Not known: absence of fever; absence of cough.",
        "3. C: 0.10. Not known: absence of fever; absence of cough.",
        "Best next step: Do you have fever?",
        "Use these notes as you see fit, and do not quote them.",
    ]


async def test_a_danger_is_shown_until_its_probability_is_next_to_nothing() -> None:
    def dangerous(plan: str) -> str:
        return json.dumps({**json.loads(plan), "danger": "b"})

    first, second = await turns(planning(dangerous(FIRST), dangerous(FEVERISH), probability_to_finish=1.0), 2)
    assert "Dangerous and not yet excluded: b (0.20)." in first.notes
    assert second.hypotheses[1].confidence == pytest.approx(0.01)
    assert "Dangerous and not yet excluded: b (0.01)." in second.notes
    rare = table_plan(PRIORS | {"B": 0.1, "D": 0.02}, fever=f"{FEVER} almost_never", cough=f"{MILD} often",
                      rash=f"{MILD} often", pallor=f"{MILD} often")  # fmt: skip
    assert "Dangerous" not in (await turns(planning(dangerous(rare), dangerous(FEVERISH), min_diagnoses=5), 2))[1].notes


@pytest.mark.parametrize(
    ("danger", "line"),
    [("A", "A (0.40)."), ("Sepsis", "Sepsis (part of something else, 0.30).")],
    ids=["the leader", "not in the table"],
)
async def test_any_danger_is_shown_with_its_probability(danger: str, line: str) -> None:
    (first,) = await turns(planning(json.dumps({**json.loads(FIRST), "danger": danger})), 1)
    assert f"Dangerous and not yet excluded: {line}" in first.notes


@pytest.mark.parametrize(("second", "close"), [(0.218, True), (0.214, False)])
async def test_probabilities_have_two_decimals_and_agree_with_who_is_close(second: float, close: bool) -> None:
    plan = table_plan({"A": 0.342, "B": second, "C": 0.1}, fever=FEVER, cough=MILD, rash=MILD, pallor=MILD)
    (first,) = await turns(planning(plan), 1)
    assert "1. A: 0.34. " in first.notes
    assert f"2. B: {second:.2f}. " in first.notes
    assert ("Too close to call (within 0.12): A, B." in first.notes) is close


async def test_the_record_has_the_table_and_a_differential_of_its_own_source() -> None:
    _, second = await turns(planning(FIRST, FEVERISH), 2)
    given = second.differential
    assert given is not None
    assert given.source is Source.PLANNER_POSTERIOR
    assert [(h.diagnosis, h.probability) for h in given.hypotheses] == [("A", 0.97), ("B", 0.01), ("C", 0.005)]
    assert given.other == 0.015
    assert second.details["hypotheses"][0] == {"diagnosis": "A", "prior": 0.4, "posterior": 0.97}
    assert second.details["table"]["findings"][0]["observed"] == "present"
    assert json.loads(json.dumps(second.details)) == second.details


@pytest.mark.parametrize("dialogue", ["chat", "transcript"])
async def test_the_planner_is_shown_its_table_and_adds_to_it(dialogue: Dialogue) -> None:
    given = planning(FIRST, FEVERISH, dialogue=dialogue)
    await turns(given, 2)
    first, second = given.model.requests
    assert "[Table]\n(empty)\n" in first.messages[-1].content
    shown = second.messages[-1].content
    assert "A: A, prior 0.40\nB: B, prior 0.20\nC: C, prior 0.10\nother: something else, prior 0.30\n" in shown
    assert "1. fever: almost always A; almost never rest | unknown\n" in shown
    assert first.schema is second.schema
    assert first.schema is not None
    assert issubclass(first.schema, TableReply)
    assert format_of(first.schema).schema["properties"]["hypotheses"]["maxItems"] == 5
    assert isinstance(second.payload, PlannerPayload)
    assert second.payload.table is not None
    assert "REQUEST TEST:" in first.messages[0].content, "the instructions are those of the table"


def test_the_schema_can_be_enforced() -> None:
    for shape in (TableReply, TableThenSpeak):
        form = format_of(shape)
        assert form.strict
        in_order = ["hypotheses", "findings", "ratings", "observed", "withdraw", "danger"]
        assert list(form.schema["properties"])[:6] == in_order
    assert list(format_of(TableThenSpeak).schema["properties"])[-1] == "utterance"


# Planners that break the rules.


async def test_a_short_table_is_sent_back_and_then_the_requirement_is_relaxed() -> None:
    short = table_plan(PRIORS, fever=FEVER, cough=MILD, rash=MILD)
    given = planning(short, short)
    (first,) = await turns(given, 1)
    assert first.kind == "plan"
    assert "the table has 3 of at least 4 findings" in given.model.requests[1].messages[-1].content
    assert "Note: requirement relaxed from 4 to 3 findings in the table" in first.notes


@pytest.mark.parametrize(
    "bad",
    [table_plan(PRIORS), table_plan(fever=FEVER), '{"hypotheses": null, "findings": {"a": [1, {}]}}'],
    ids=["no findings", "no hypotheses", "nonsense"],
)
async def test_without_a_table_the_turn_falls_back_and_the_next_one_tries_again(bad: str) -> None:
    first, second = await turns(planning(bad, bad, FIRST), 2)
    assert (first.kind, second.kind) == ("fallback", "plan")
    assert "temporarily unavailable" in first.notes


async def test_a_plan_that_fails_leaves_the_table_as_it_was() -> None:
    prose = MalformedError("no", text="Well...")
    _, second, third, fourth = await turns(planning(FIRST, prose, prose, RefusedError("no"), FEVERISH), 4)
    assert (second.kind, third.kind, fourth.kind) == ("fallback", "fallback", "finish")
    assert fourth.hypotheses[0].confidence == pytest.approx(0.97)


async def test_a_plan_that_withdraws_too_much_is_sent_back_and_leaves_the_table_as_it_was() -> None:
    nearly_all = json.dumps({**json.loads(NOTHING), "withdraw": ["1", "2"]})
    given = planning(FIRST, nearly_all, nearly_all, FEVERISH)
    _, second, third = await turns(given, 3)
    assert second.kind == "fallback"
    assert "the table has 2 of at least 4 findings" in given.model.requests[2].messages[-1].content
    assert third.hypotheses[0].confidence == pytest.approx(0.97)


async def test_hypotheses_beyond_the_maximum_are_cut_with_a_remark() -> None:
    (first,) = await turns(planning(FIRST, max_differentials=3, min_diagnoses=1), 1)
    assert first.remarks == ()
    (first,) = await turns(planning(FIRST, max_differentials=2, min_diagnoses=1), 1)
    assert len(first.hypotheses) == 2
    assert "3 new hypotheses, only the first 2 are kept" in first.remarks


@pytest.mark.parametrize("dialogue", ["chat", "transcript"])
async def test_what_was_left_out_is_said_in_the_next_request_and_once(dialogue: Dialogue) -> None:
    given = planning(FIRST, NOTHING, NOTHING, max_differentials=2, min_diagnoses=1, dialogue=dialogue)
    await turns(given, 3)
    said = "\nYour last plan named too many diagnoses. Left out: C."
    assert [said in request.messages[-1].content for request in given.model.requests] == [False, True, False]


# In a run.


def settings_with(folder: Path, policy: dict[str, Any] | None = None, **run: Any) -> dict[str, Any]:
    given = policy or {"differential_settings": {"scoring": "bayes"}}
    (folder / "bayes.json").write_text(json.dumps(given), encoding="utf-8")
    return {
        "doctor_test_policy_enabled": True,
        "doctor_test_policy": "bayes",
        "prompts_dir": str(folder),
        "dataset": "OpenOSCE_Demo",
        "scenarios": "0",
        **run,
    }


async def played(folder: Path, **run: Any) -> Record:
    plan = make_plan(Settings.model_validate({"run": settings_with(folder, **run)}))
    async with Models(plan.settings) as models:
        return await play(plan, plan.units[0], models)


@pytest.mark.parametrize(
    "run",
    [{}, {"doctor_test_policy_mode": "inline"}, {"planner_baseline": "full"}, {"doctor": "uncertainty"}],
    ids=["separate", "inline", "full", "uncertainty"],
)
async def test_the_builtin_planner_keeps_a_table_and_every_turn_has_its_probabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)  # the uncertainty doctor keeps its sessions there
    record = await played(tmp_path, **run)
    planned = [turn for turn in record.transcript or () if turn.role == "planner"]
    assert planned
    before: set[str] = set()
    for turn in planned:
        assert turn.differential is not None
        assert turn.differential.source is Source.PLANNER_POSTERIOR
        numbers = [h.probability or 0.0 for h in turn.differential.hypotheses]
        assert sum(numbers) + (turn.differential.other or 0.0) == pytest.approx(1, abs=1e-4)
        assert turn.details is not None
        findings = {row["finding"] for row in turn.details["table"]["findings"]}
        assert before <= findings
        before = findings
    assert record.correct is True


async def test_its_probabilities_are_calibrated_on_their_own(tmp_path: Path) -> None:
    record = await played(tmp_path)
    found = {row.source: row for row in calibration([row_of(record)]).sources}
    assert found.keys() == {"planner_posterior", "posterior"}
    assert found[Source.PLANNER_POSTERIOR].scale == "probability"


@pytest.mark.parametrize("mode", ["separate", "inline"])
async def test_a_model_that_cannot_keep_a_table_never_ends_the_encounter(
    server: ScriptedServer, tmp_path: Path, mode: str
) -> None:
    bad = {"hypotheses": [{"diagnosis": "Gout", "prior": "?"}], "findings": [{"ratings": 3}], "utterance": "Why?"}
    purpose = "planner" if mode == "separate" else "doctor"
    server.control(rules=[{"match": {"purpose": purpose}, "reply": json.dumps(bad)}])
    run = settings_with(tmp_path, doctor_test_policy_mode=mode, total_inferences=3)
    _, (record,) = await run_here(settings_for(server, tmp_path / "out", **run))
    assert record["status"] in ("diagnosed", "max_infs_reached")
    planned = [turn for turn in record["transcript"] if turn["role"] == "planner"]
    assert {turn["details"]["decision"] for turn in planned} == {"fallback"}


# The file.


def test_texts_for_the_table_are_completed_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "test_policy.json"
    path.write_text(json.dumps({"bayes": {"system_base": "Plan."}, "differential_settings": {"scoring": "bayes"}}))
    file = load_policy("test_policy", tmp_path).file
    assert file.texts.system_base == "Plan."
    assert file.texts.retry == load_policy().file.bayes.retry
    assert file.chat
    path.write_text(json.dumps({"bayes": {"user_prompt_template": "Plan."}}))
    with pytest.raises(ConfigError, match=r"bayes.user_prompt_template.*lacks \{door\}"):
        load_policy("test_policy", tmp_path)
    path.write_text(json.dumps({"differential_settings": {"scoring": "bayesian"}}))
    with pytest.raises(ConfigError, match="scoring"):
        load_policy("test_policy", tmp_path)


def test_a_template_without_its_chat_form_means_a_transcript(tmp_path: Path) -> None:
    shipped = load_policy().file
    own = {"user_prompt_template": shipped.bayes.user_prompt_template}
    (tmp_path / "own.json").write_text(json.dumps({"bayes": own, "differential_settings": {"scoring": "bayes"}}))
    assert not load_policy("own", tmp_path).file.chat


def test_the_originals_guidance_is_told_with_the_table_too(tmp_path: Path) -> None:
    given = {"instructions": "Be frugal.", "differential_settings": {"scoring": "bayes"}}
    (tmp_path / "original.json").write_text(json.dumps(given))
    file = load_policy("original", tmp_path).file
    assert file.texts.system_base.endswith("Be frugal.")
    assert file.texts.inline_system.endswith("Be frugal.")
    assert not file.chat
