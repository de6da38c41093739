"""Regret against the best play: kinds, amounts, beliefs, and where the numbers are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import pytest
from fakes import plan_of
from scripted_server import ScriptedServer
from solvable_support import CHEST_PAIN, Saying, case_with, played, said_to

from agentclinic.cases.model import Case
from agentclinic.clinic.doctor import Incoming, Utterance
from agentclinic.results.record import Record
from agentclinic.results.regret import KINDS, Regret, RegretTurn
from agentclinic.results.turn import Differential, Exchange, Hypothesis, Source
from agentclinic.runs.build import Models
from agentclinic.runs.play import play
from agentclinic.scoring.differentials import FLOOR
from agentclinic.scoring.information import premature_closure
from agentclinic.scoring.metrics import ranking, regret_section
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.regret import changes, divergence, regret_of, regrets
from agentclinic.scoring.rows import row_of
from agentclinic.worlds.menu import read_answer
from agentclinic.worlds.model import World
from agentclinic.worlds.solve import Solution, solution

pytestmark = pytest.mark.anyio

CASE = case_with("Gastroesophageal reflux disease", {"Heartburn": True, "D-dimer": True})
INFARCTION = {"Troponin": True, "Electrocardiogram": True, "Chest pressure": True, "Sweating": True}
"""Findings after which nothing is worth asking."""


def world_of(case: Case = CASE) -> World:
    assert case.drawn is not None
    return case.drawn.world


def solved(case: Case = CASE) -> Solution:
    return solution(world_of(case))


def ready(name: str) -> str:
    return f"DIAGNOSIS READY: {name}"


def regret_in(record: Record) -> Regret:
    assert record.regret is not None
    return record.regret


def value_of(known: Mapping[str, bool], action: str | None = None) -> float:
    """Worked out step by step: of an ending, from the posterior; of a question, from the values of both answers."""
    given, state = world_of(), solved().state(known)
    if action is None:
        return solved().value(state)
    posterior = dict(zip(given.diseases, solved().posterior(state).tolist(), strict=True))
    if action in given.endings:
        return math.fsum(p * given.utility(truth, action) for truth, p in posterior.items())
    p = math.fsum(posterior[d] * q for d, q in (given.findings[action].probability or {}).items())
    yes, no = (value_of({**known, action: held}) for held in (True, False))
    return p * yes + (1 - p) * no - given.cost(action)


# --- kinds ------------------------------------------------------------------------------------------------------------


async def test_the_best_actions_have_no_regret() -> None:
    first = solved().best(solved().start)
    record = await said_to(CASE, f"REQUEST TEST: {first}", ready("DEFER"))
    turn = regret_in(record).turns[0]
    assert (turn.kind, turn.regret, turn.action, turn.best) == ("best", 0.0, first, first)
    assert turn.value == pytest.approx(value_of({}))
    assert turn.posterior == {name: pytest.approx(one.prior, abs=1e-9) for name, one in world_of().diseases.items()}


async def test_asking_the_wrong_thing_costs_what_the_best_action_would_have_been_worth_more() -> None:
    turn = regret_in(await said_to(CASE, "REQUEST TEST: CTA", ready("GERD"))).turns[0]
    assert (turn.kind, turn.action) == ("wrong_question", "CT angiography of the aorta")
    assert turn.regret == pytest.approx(value_of({}) - value_of({}, "CT angiography of the aorta"), abs=1e-9)
    assert turn.regret > 1
    after = value_of({"CT angiography of the aorta": False}) - world_of().cost("CT angiography of the aorta")
    assert turn.luck == pytest.approx(value_of({}, "CT angiography of the aorta") - after, abs=1e-9)


async def test_an_answer_where_asking_is_better_stops_early() -> None:
    likely = max(world_of().endings, key=lambda name: value_of({}, name))
    (turn,) = regret_in(await said_to(CASE, ready(likely))).turns
    assert (turn.kind, turn.action) == ("stopped_early", likely)
    assert turn.regret == pytest.approx(value_of({}) - value_of({}, likely), abs=1e-9)
    assert turn.regret > 1
    assert turn.luck == pytest.approx(value_of({}, likely) - world_of().utility(CASE.diagnosis, likely), abs=1e-9)


async def test_asking_where_an_answer_is_best_goes_on_too_long() -> None:
    case = case_with("Acute myocardial infarction", INFARCTION)
    record = await said_to(case, *(f"REQUEST TEST: {name}" for name in INFARCTION), "Heartburn?", ready("MI"))
    assert solved().best(solved().state(INFARCTION)) == "Acute myocardial infarction"
    turn = regret_in(record).turns[-2]
    assert (turn.kind, turn.best) == ("too_long", "Acute myocardial infarction")
    assert turn.regret == pytest.approx(value_of(INFARCTION) - value_of(INFARCTION, "Heartburn"), abs=1e-9)
    assert 0 < turn.regret <= world_of().cost("Heartburn") + 1e-9


async def test_another_answer_than_the_best_is_a_wrong_commitment() -> None:
    case = case_with("Acute myocardial infarction", INFARCTION)
    record = await said_to(case, *(f"REQUEST TEST: {name}" for name in INFARCTION), ready("Panic disorder"))
    turn = regret_in(record).turns[-1]
    assert turn.kind == "wrong_commitment"
    assert turn.regret == pytest.approx(
        value_of(INFARCTION, "Acute myocardial infarction") - value_of(INFARCTION, "Panic disorder"), abs=1e-9
    )


async def test_an_answer_that_is_both_early_and_not_the_best_has_the_kind_of_the_larger_part() -> None:
    now = max(value_of({}, name) for name in world_of().endings)
    early = value_of({}) - now
    seen = set()
    for name in world_of().endings:
        (turn,) = regret_in(await said_to(CASE, ready(name))).turns
        worse = now - value_of({}, name)
        assert turn.kind == ("wrong_commitment" if worse > early else "stopped_early")
        assert turn.regret == pytest.approx(early + worse, abs=1e-9)
        seen.add((turn.kind, worse > 1e-9))
    assert ("wrong_commitment", True) in seen
    assert ("stopped_early", False) in seen


async def test_an_early_answer_that_is_a_little_worse_than_the_best_one_still_stops_early() -> None:
    values = sorted(((value_of({}, name), name) for name in world_of().endings), reverse=True)
    (best, _), (next_best, second) = values[:2]
    worse, early = best - next_best, value_of({}) - best
    assert 1e-9 < worse < early, "this world has such a state at the start"
    (turn,) = regret_in(await said_to(CASE, ready(second))).turns
    assert turn.kind == "stopped_early"
    assert turn.regret == pytest.approx(worse + early, abs=1e-9)


@pytest.mark.parametrize(
    ("said", "cost", "action"),
    [
        ("How are you?", "turn", None),
        ("REQUEST IMAGES", "turn", None),
        ("Request test: ECG", "turn", None),
        ("REQUEST TEST: D-dimer", "D-dimer", "D-dimer"),
    ],
)
async def test_wasted_turns_cost_what_they_cost(said: str, cost: str, action: str | None) -> None:
    record = await said_to(CASE, "REQUEST TEST: D-dimer", said, ready("GERD"))
    turn = regret_in(record).turns[1]
    expected = world_of().costs.turn if cost == "turn" else world_of().cost(cost)
    assert (turn.kind, turn.action, turn.luck) == ("wasted", action, 0)
    assert turn.regret == pytest.approx(expected, abs=1e-9)


async def test_no_answer_loses_the_whole_value_of_the_state() -> None:
    record = await said_to(CASE, "Heartburn?", ready("a broken leg"))
    turn = regret_in(record).turns[-1]
    assert (turn.kind, turn.action, turn.luck) == ("no_answer", None, 0)
    assert turn.regret == pytest.approx(value_of({"Heartburn": True}) - world_of().utilities.no_answer, abs=1e-9)


async def test_a_doctor_that_fails_has_no_answer_as_its_last_entry() -> None:
    record = await said_to(CASE, "Heartburn?", RuntimeError("a bug"))
    found = regret_in(record)
    assert (record.status, len(found.turns), found.ending) == ("doctor_failed", 2, None)
    assert (found.turns[-1].kind, found.turns[-1].turn) == ("no_answer", 2)
    assert found.turns[-1].regret == pytest.approx(value_of({"Heartburn": True}) + 40, abs=1e-9)
    assert found.utility == pytest.approx(-40 - world_of().cost("Heartburn"))
    assert found.best_value - found.utility == pytest.approx(found.regret + found.luck, abs=1e-9)
    record = await said_to(CASE, RuntimeError("a bug at once"))
    assert [turn.kind for turn in regret_in(record).turns] == ["no_answer"]
    assert regret_in(record).utility == -40


async def test_an_encounter_whose_model_failed_has_no_regret_and_does_not_count(server: ScriptedServer) -> None:
    server.control(doctor=["Heartburn?", ready("GERD")], rules=[{"match": {"nth": [3, 4]}, "fault": "500"}])
    records = await played(doctor_llm="scripted", base_url=server.base_url, num_scenarios=3)
    assert sorted(record.status for record in records) == ["diagnosed", "diagnosed", "model_failed"]
    assert [record.regret is None for record in records] == [record.status == "model_failed" for record in records]
    assert regret_section([row_of(record) for record in records]).encounters == 2


async def test_every_kind_has_words() -> None:
    assert set(KINDS) == {"wrong_question", "stopped_early", "too_long", "wrong_commitment", "wasted", "no_answer"}


async def test_the_account_adds_up_for_any_transcript() -> None:
    lines = ["REQUEST TEST: CTA", "Hm.", "Heartburn?", "Heartburn?", "REQUEST IMAGES", "REQUEST TEST: ECG"]
    for ending in (ready("GERD"), ready("MI"), ready("DEFER"), ready("nothing"), RuntimeError("a bug")):
        found = regret_in(await said_to(CASE, *lines, ending))
        assert found.best_value - found.utility == pytest.approx(found.regret + found.luck, abs=1e-9)
        assert found.regret == pytest.approx(math.fsum(turn.regret for turn in found.turns))
        assert min(turn.regret for turn in found.turns) >= 0
        assert (found.price, found.minutes) == (290 + 15, 60 + 1 + 1 + 10)
        assert found.world == "chest-pain"


async def test_a_record_of_an_ordinary_run_has_no_regret() -> None:
    plan = plan_of(num_scenarios=1)
    async with Models(plan.settings) as models:
        record = await play(plan, plan.units[0], models)
    assert record.regret is None
    assert row_of(record).regret is None
    assert regret_section([row_of(record)]).encounters == 0
    assert regret_section([row_of(record)]).regret.value is None


async def test_regret_can_be_computed_again_from_the_record() -> None:
    record = await said_to(CASE, "Heartburn?", ready("GERD"))
    assert CASE.drawn is not None
    assert regret_of(CASE.drawn, record) == record.regret
    read = Record.model_validate_json(record.model_dump_json())
    assert read.regret == record.regret
    assert regret_of(CASE.drawn, record.model_copy(update={"transcript": None})) is None


# --- beliefs ----------------------------------------------------------------------------------------------------------


def test_the_divergence_is_worked_out_by_hand_with_the_floor() -> None:
    exact = {"a": 0.5, "b": 0.3, "c": 0.2}
    assert divergence(exact, {"a": 0.25, "b": 0.25, "c": 0.5}) == pytest.approx(
        0.5 * math.log(2) + 0.3 * math.log(1.2) + 0.2 * math.log(0.4)
    )
    assert divergence(exact, {"a": 0.5, "b": 0.5, "c": 0.0}) == pytest.approx(
        0.3 * math.log(0.6) + 0.2 * math.log(0.2 / FLOOR)
    )
    assert divergence(exact, exact) == 0
    assert divergence({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 0.0}) == 0


async def stated(differential: object, case: Case = CASE) -> RegretTurn:
    said = Utterance(ready("GERD"), differential)  # type: ignore[arg-type]
    (turn,) = regret_in(await said_to(case, said)).turns
    return turn


async def test_what_is_given_to_other_is_spread_over_the_diseases_that_are_not_listed() -> None:
    turn = await stated({"GERD": 0.4, "heart attack": 0.3, "MI": 0.06})
    assert turn.stated is not None
    assert turn.stated["Gastroesophageal reflux disease"] == 0.4
    assert turn.stated["Acute myocardial infarction"] == pytest.approx(0.36), "two names of one disease add up"
    assert turn.stated["Panic disorder"] == pytest.approx(0.24 / 6)
    assert turn.kl == pytest.approx(
        math.fsum(p * math.log(p / turn.stated[name]) for name, p in turn.posterior.items()), abs=1e-8
    )


async def test_what_is_given_to_names_off_the_menu_is_lost() -> None:
    turn = await stated({"GERD": 0.5, "Gout": 0.3, "GERD or Panic disorder": 0.2})
    assert turn.stated is not None
    assert math.fsum(turn.stated.values()) == pytest.approx(0.5)
    assert turn.stated["Panic disorder"] == 0
    assert turn.kl == pytest.approx(
        math.fsum(p * math.log(p / max(turn.stated[n], FLOOR)) for n, p in turn.posterior.items()), abs=1e-8
    )


@pytest.mark.parametrize("given", [["GERD", "MI"], ()])
async def test_names_without_probabilities_are_no_belief(given: object) -> None:
    turn = await stated(given)
    assert (turn.stated, turn.kl) == (None, None)


async def test_the_confidence_in_a_diagnosis_is_a_belief() -> None:
    (turn,) = regret_in(await said_to(CASE, Utterance(ready("GERD"), confidence=0.65))).turns
    assert turn.stated is not None
    assert turn.stated["Gastroesophageal reflux disease"] == 0.65
    assert turn.stated["Panic disorder"] == pytest.approx(0.35 / 7)


async def test_planner_scores_are_no_belief() -> None:
    record = await said_to(CASE, "Heartburn?", ready("GERD"))
    hypotheses = (Hypothesis(diagnosis="GERD", probability=0.7), Hypothesis(diagnosis="MI", probability=0.3))
    scores, own = (
        Differential(source=source, hypotheses=hypotheses) for source in (Source.PLANNER_SCORE, Source.STATED)
    )
    assert CASE.drawn is not None
    for given, count in ((scores, 0), (own, 1)):
        assert record.transcript
        first, *others = record.transcript
        changed = record.model_copy(update={"transcript": [first.model_copy(update={"differential": given}), *others]})
        again = regret_of(CASE.drawn, changed)
        assert again is not None
        assert sum(turn.stated is not None for turn in again.turns) == count


class Stating(Saying):
    """Asks four things and states the prior with its log-odds moved by a share of what each answer says."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> Utterance:
        answers = [found for one in exchanges if (found := read_answer(world_of(), one.reply))]
        prior, now = (solved().posterior(solved().state(dict(known))) for known in ([], answers))
        odds = {
            name: math.log(p / (1 - p)) + self._share * (math.log(q / (1 - q)) - math.log(p / (1 - p)))
            for name, p, q in zip(world_of().diseases, prior.tolist(), now.tolist(), strict=True)
        }
        belief = {name: 1 / (1 + math.exp(-one)) for name, one in odds.items()}
        total = max(1.0, math.fsum(belief.values()))
        asked = ["Heartburn?", "Palpitations?", "Sweating?", "Pleuritic pain?", ready("GERD")]
        return Utterance(asked[turn - 1], {name: p / total for name, p in belief.items()})


async def slope(share: float) -> float:
    records = await played(CHEST_PAIN, Stating(share), num_scenarios=20)
    value = regret_section([row_of(record) for record in records]).value("belief_updating").value  # type: ignore[union-attr]
    assert value is not None
    return value


async def test_the_slope_of_stated_on_exact_changes_is_one_for_exact_statements_and_less_for_cautious_ones() -> None:
    assert await slope(1.0) == pytest.approx(1, abs=0.02)
    assert await slope(0.5) < 0.75
    exact = await played(CHEST_PAIN, "greedy", num_scenarios=20)
    value = regret_section([row_of(record) for record in exact]).value("belief_updating").value  # type: ignore[union-attr]
    assert value == pytest.approx(1, abs=1e-4)


def belief(turn: int, exact: float, said: float | None) -> RegretTurn:
    return RegretTurn(
        turn=turn,
        action=None,
        kind="best",
        regret=0,
        luck=0,
        best="a",
        value=0,
        posterior={"a": exact, "b": 1 - exact},
        stated=None if said is None else {"a": said, "b": 1 - said},
    )


def test_changes_of_log_odds_are_worked_out_by_hand_and_half_of_them_is_a_slope_of_one_half() -> None:
    def odds(p: float) -> float:
        return math.log(p / (1 - p))

    half = 1 / (1 + math.exp(-odds(0.8) / 2))
    turns = [belief(1, 0.5, 0.5), belief(2, 0.8, half), belief(3, 0.8, 0.9), belief(4, 0.9, None), belief(5, 0.5, 0.5)]
    moved = changes(turns)
    assert len(moved) == 2, "only where an answer changed the posterior, and a belief is stated before and after"
    assert moved[0] == pytest.approx((odds(0.8), odds(0.8) / 2))
    assert moved[1] == pytest.approx((odds(0.2), odds(0.2) / 2))
    numbers = dict.fromkeys(("best_value", "utility", "regret", "luck", "price", "minutes"), 0.0)
    given = Regret.model_validate({"world": "w", "ending": "a", "turns": turns, **numbers})
    found = regrets(Record(scenario_id=0, status="diagnosed", regret=given))
    assert found is not None
    assert found.moved[0] / found.moved[1] == pytest.approx(0.5)


async def test_the_exact_posterior_moves_as_bayes_says() -> None:
    turns = regret_in(await said_to(CASE, "Heartburn?", "Hm.", "REQUEST TEST: D-dimer", ready("GERD"))).turns
    for (before, after), item in zip(pairwise(turns), ("Heartburn", None, "D-dimer"), strict=True):
        p = (world_of().findings[item].probability or {}) if item else dict.fromkeys(before.posterior, 1.0)
        weights = {name: q * p[name] for name, q in before.posterior.items()}
        total = math.fsum(weights.values())
        assert after.posterior == {name: pytest.approx(w / total, abs=1e-8) for name, w in weights.items()}


async def test_a_test_counts_as_a_test_even_if_the_patient_was_asked() -> None:
    asked = await said_to(CASE, "Troponin?", "DIAGNOSIS READY: DEFER")
    ordered = await said_to(CASE, "REQUEST TEST: Troponin", "DIAGNOSIS READY: DEFER")
    logs = [record.test_economics_log for record in (asked, ordered)]
    assert logs[0] == logs[1]
    assert [entry["test_name"] for entry in logs[0] or ()] == ["Troponin"]


async def test_a_deferral_is_no_premature_closure_and_is_counted() -> None:
    deferred = await said_to(CASE, "DIAGNOSIS READY: DEFER")
    assert premature_closure(deferred) is False
    found = regret_section([row_of(deferred)])
    assert (found.value("deferred").value, found.value("without_answer").value) == (1, 0)  # type: ignore[union-attr]
    assert summarise([deferred]).deferred == 1


async def test_prior_and_even_scores_are_those_of_the_world() -> None:
    records = await played(CHEST_PAIN, "greedy", num_scenarios=5)
    truth = ranking([row_of(record) for record in records]).by_source["posterior"].truth
    assert truth is not None
    assert truth.even_log_score == pytest.approx(math.log(8))
    priors = world_of().diseases
    expected = [-math.log(priors[str(record.ground_truth)].prior or 0.0) for record in records]
    assert truth.prior_log_score == pytest.approx(sum(expected) / len(expected), abs=1e-6)
