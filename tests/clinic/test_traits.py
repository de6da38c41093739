"""Difficult patients: what is kept back, told vaguely, not understood or added, and that all stays true."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmark_support import load_benchmark
from fakes import Scripted, plan_of
from helpers import EVERY, bundled_cases, case_of, osce

from agentclinic.builtin import Builtin
from agentclinic.cases.model import Case
from agentclinic.clinic.answers import Part, matched, payload_of, worded
from agentclinic.clinic.patient import Patient, Simulator
from agentclinic.clinic.payloads import NO_TRAITS, PatientTraits
from agentclinic.clinic.prompts import load_prompt
from agentclinic.errors import ConfigError
from agentclinic.results.turn import Effect, Exchange, Provenance

BENCHMARK = load_benchmark("traits")
PAIN, TABLETS, WINE, JOB, HEADACHES = (
    *("Patient_Actor/Symptoms/Primary_Symptom", "Patient_Actor/Medications[0]"),
    *("Patient_Actor/Social_History[0]", "Patient_Actor/Social_History[1]", "Patient_Actor/History[0]"),
)


def difficult() -> Case:
    row = osce(
        patient={
            "Demographics": "50-year-old woman",
            "History": ["Headaches in the evening"],
            "Symptoms": {"Primary_Symptom": "Belly pain for three days"},
            "Past_Medical_History": ["High blood pressure for ten years"],
            "Medications": ["Lisinopril 10 mg once daily"],
            "Social_History": ["Half a bottle of wine every evening", "Drives a school bus"],
        }
    )
    row["OSCE_Examination"] |= {
        "Patient_Facts": {
            PAIN: {"says": "My belly has hurt for three days.", "vague": "My belly has hurt for a while.",
                   "told": "volunteered", "asked": ["How long has your belly hurt?"]},
            TABLETS: {"says": "I take lisinopril, 10 milligrams once a day.",
                      "vague": "I take lisinopril, I couldn't say how much.", "asked": ["What tablets do you take?"]},
            WINE: {"says": "I drink half a bottle of wine every evening.", "vague": "I like a glass of wine.",
                   "sensitive": True, "asked": ["Do you drink alcohol?"]},
            JOB: {"says": "I drive a school bus.", "asked": ["What is your job?"]},
            HEADACHES: {"says": "I get headaches in the evening.", "asked": ["Do you get headaches?"]},
            "Patient_Actor/Past_Medical_History[0]": {
                "says": "I've had high blood pressure for ten years.", "vague": "My blood pressure has been high.",
                "asked": ["Do you have high blood pressure?"]},
        },
        "Manner": {"manner": "Tired", "worry": "I can't be off work.", "hope": "I want it gone.", "feel": "I'm tired."},
        "speaker": "patient",
    }  # fmt: skip
    return case_of(row)


CASE = difficult()


class Dialogue:
    """Questions to the builtin patient, one after the other."""

    def __init__(self, **traits: int) -> None:
        self._traits = PatientTraits(**{"seed": 1, **traits})
        self._asked: tuple[Exchange, ...] = ()
        self.parts: tuple[Part, ...] = ()

    def ask(self, question: str) -> str:
        self.parts = matched(payload_of(CASE, question, self._asked, of_patient=self._traits))
        reply = worded(self.parts)
        told = tuple(part.disclosure for part in self.parts)
        self._asked = (*self._asked, Exchange("question", question, reply, told))
        return reply

    @property
    def effects(self) -> dict[str, list[Effect]]:
        told = [part.disclosure for part in self.parts]
        return {
            name: [effect for one in told for effect in getattr(one, name)] for name in ("withheld", "vague", "added")
        }


# Recall


def test_a_forgetful_patient_is_vague_at_first_and_exact_when_asked_again() -> None:
    patient = Dialogue(recall=3)
    assert patient.ask("How long has your belly hurt?") == "My belly has hurt for a while."
    assert patient.effects["vague"] == [Effect(PAIN, "recall: not exact")]
    assert not patient.parts[0].disclosure.paths, "what is vague has not been told yet"
    assert patient.ask("How long has your belly hurt?") == "My belly has hurt for three days."
    assert patient.parts[0].disclosure.paths == (PAIN,)


def test_below_the_highest_level_a_question_for_precision_gets_the_exact_answer_at_once() -> None:
    asked = "Do you remember exactly how long your belly has hurt?"
    assert "three days" in Dialogue(recall=2).ask(asked)
    assert "a while" in Dialogue(recall=3).ask(asked)


@pytest.mark.parametrize("every", EVERY)
def test_what_a_level_touches_every_higher_level_touches_too(every: int) -> None:
    for case in bundled_cases("OpenOSCE_Demo")[::every]:
        touched = []
        for level in (1, 2, 3):
            traits = PatientTraits(recall=level, seed=3)
            payloads = (payload_of(case, fact.asked[0], of_patient=traits) for fact in case.patient_facts if fact.asked)
            told = (part.disclosure for payload in payloads for part in matched(payload))
            touched.append({effect.path for one in told for effect in one.vague})
        assert touched[0] <= touched[1] <= touched[2], case.name
        assert touched[2], case.name


def test_another_seed_touches_other_facts() -> None:
    case = bundled_cases("OpenOSCE")[0]

    def vague(seed: int) -> set[str]:
        traits = PatientTraits(recall=1, seed=seed)
        parts = [p for f in case.patient_facts for p in matched(payload_of(case, f.asked[0], of_patient=traits))]
        return {effect.path for part in parts for effect in part.disclosure.vague}

    assert vague(1) == vague(1)
    assert vague(1) != vague(2)


def test_details_of_a_broad_question_come_when_they_are_named_or_asked_for_again() -> None:
    case, traits = bundled_cases("OpenOSCE")[0], PatientTraits(recall=3, seed=2)
    broad = "Tell me about your family."
    parts = matched(payload_of(case, broad, of_patient=traits))
    held = [effect for part in parts for effect in part.disclosure.withheld]
    assert held
    assert {effect.reason for effect in held} == {"recall: not recalled"}
    told = tuple(part.disclosure for part in parts)
    again = matched(payload_of(case, broad, (Exchange("question", broad, worded(parts), told),), of_patient=traits))
    assert {held[0].path} <= {path for part in again for path in part.disclosure.paths}


# Disclosure


def test_what_is_embarrassing_is_told_only_when_asked_for_directly() -> None:
    assert "wine" not in Dialogue(disclosure=1).ask("Tell me about your habits and your daily life.")
    assert Dialogue(disclosure=1).ask("Do you drink alcohol?") == "I drink half a bottle of wine every evening."


def test_it_is_played_down_first_and_corrected_on_follow_up() -> None:
    patient = Dialogue(disclosure=2)
    assert patient.ask("Do you drink alcohol?") == "I like a glass of wine."
    assert patient.effects["vague"] == [Effect(WINE, "disclosure: played down")]
    assert patient.ask("How much alcohol do you drink?") == "I drink half a bottle of wine every evening."


def test_at_the_highest_level_it_is_refused_first_unless_the_doctor_promises_discretion() -> None:
    patient = Dialogue(disclosure=3)
    assert patient.ask("Do you drink alcohol?") == "I'd rather not go into that right now."
    assert patient.effects["withheld"] == [Effect(WINE, "disclosure: reluctant")]
    assert patient.ask("Do you drink alcohol?") == "I like a glass of wine."
    assert patient.ask("Do you drink alcohol?") == "I drink half a bottle of wine every evening."
    private = Dialogue(disclosure=3)
    assert private.ask("This stays between us. Do you drink alcohol?") == "I like a glass of wine."
    assert private.ask("Do you drink alcohol?") == "I drink half a bottle of wine every evening."


# Literacy


def test_words_of_the_trade_are_asked_back_and_nothing_is_denied() -> None:
    patient = Dialogue(literacy=1)
    assert patient.ask("Have you had any hematuria?") == "I'm not sure what you mean by “hematuria”."
    assert patient.parts[0].disclosure.provenance is Provenance.NOT_UNDERSTOOD
    assert patient.effects["withheld"] == [Effect("Word/hematuria", "literacy: word not known")]
    assert "No" in Dialogue().ask("Have you had any hematuria?"), "without the trait it is denied"


@pytest.mark.parametrize("every", EVERY)
def test_what_is_left_of_a_question_tells_no_more_than_the_whole(every: int) -> None:
    for case in bundled_cases("OpenOSCE_Demo")[::every]:
        for fact in case.patient_facts:
            said = f"I'm glad that you came, and {fact.text.lower()} is abdominal pathology with dyspnea."
            plain, heard = (
                {path for part in matched(payload_of(case, said, of_patient=traits)) for path in part.disclosure.paths}
                for traits in (NO_TRAITS, PatientTraits(literacy=1))
            )
            assert heard <= plain, said


def test_of_a_list_the_known_things_are_answered() -> None:
    reply = Dialogue(literacy=1).ask("Do you get headaches, syncope or photophobia?")
    assert "“syncope”" in reply
    assert "“photophobia”" in reply
    assert "I get headaches in the evening." in reply


def test_an_explanation_helps_then_and_later() -> None:
    patient = Dialogue(literacy=2)
    assert "nervous tension" in patient.ask("Do you have hypertension?")
    assert patient.effects["withheld"] == [Effect("Patient_Actor/Past_Medical_History[0]", "literacy: misunderstood")]
    explained = patient.ask("Do you have hypertension? By hypertension I mean high blood pressure.")
    assert explained == "I've had high blood pressure for ten years."
    assert "nervous tension" not in patient.ask("Who treats your hypertension?")


def test_a_word_can_be_taken_for_something_else_of_which_only_facts_are_told() -> None:
    case = bundled_cases("OpenOSCE")[0]
    parts = matched(payload_of(case, "Do you have hypertension?", of_patient=PatientTraits(literacy=2)))
    assert worded(parts) == "You mean nervous tension? Only the ordinary worries of keeping a shop going."
    assert not any(part.disclosure.provenance is Provenance.DEFAULT_NEGATIVE for part in parts)


# Verbosity


def test_a_talkative_patient_adds_what_was_not_asked_for_each_thing_once() -> None:
    patient = Dialogue(verbosity=3)
    reply = patient.ask("Do you get headaches?")
    assert reply.startswith("I get headaches in the evening.")
    assert len(patient.effects["added"]) == 2
    said = list(patient.effects["added"])
    for _ in range(6):
        patient.ask("Do you get headaches?")
        said += patient.effects["added"]
    assert len(said) == len(set(said)) == 4, "a job and three feelings, never the wine"
    assert WINE not in {effect.path for effect in said}


# Every patient


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARK.DATA_SETS)
def test_a_persistent_interviewer_gets_every_fact_at_every_level_in_at_most_twice_the_turns(name: str) -> None:
    """Of the charts of version 1, two facts ("It is November.") answer no question, with traits or without."""
    problems = [problem for problem in BENCHMARK.obtained(bundled_cases(name, lockbox=True)) if "It is " not in problem]
    assert problems == []


@pytest.mark.parametrize("name", BENCHMARK.DATA_SETS)
def test_it_gets_every_fact_at_the_highest_level(name: str) -> None:
    """A share of the test above: every sixth case, each at the highest level of another trait than the one before."""
    highest = [dose for dose in BENCHMARK.DOSES if 3 in dose.levels.values()]
    for place, case in enumerate(bundled_cases(name, lockbox=True)[::6]):
        problems = BENCHMARK.obtained([case], [highest[place % len(highest)]])
        assert [problem for problem in problems if "It is " not in problem] == []


def test_nothing_that_is_said_is_false_at_any_level() -> None:
    """A share of benchmarks/traits.py, which asks the bundled patients 200 questions."""
    cases = [bundled_cases(name)[place] for name in BENCHMARK.DATA_SETS for place in (0, 9)]
    others = [question for fact in cases[0].patient_facts for question in fact.asked]
    for case in cases:
        questions = BENCHMARK.script(case, others, 24)
        for traits in (NO_TRAITS, *BENCHMARK.DOSES, BENCHMARK.TOGETHER):
            assert BENCHMARK.told_truly(case, traits, questions).false == []


def test_the_check_finds_a_false_sentence_and_a_new_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = matched(payload_of(CASE, "How long has your belly hurt?"))
    assert list(BENCHMARK.untrue(CASE, worded(parts), parts)) == []
    assert list(BENCHMARK.untrue(CASE, "My belly has hurt for two weeks.", parts))
    found = iter([{"fever"}, set[str]()])
    monkeypatch.setattr(BENCHMARK, "_denied", lambda _: next(found))
    assert "denies fever" in BENCHMARK.told_truly(CASE, NO_TRAITS, ["Any fever?"]).false[0]


def test_a_run_at_level_0_has_the_records_of_a_run_without_traits() -> None:
    plain, zero = plan_of(), plan_of(patient_traits={"recall": 0, "verbosity": 0})
    assert plain.digest == zero.digest
    assert plain.settings.run == zero.settings.run


# Language models


def role(model: Any, simulator: Simulator, **traits: int) -> Patient:
    given = PatientTraits(**{"seed": 1, **traits})
    return Patient(CASE, model, load_prompt("patient"), simulator=simulator, dialogue="chat", traits=given)


@pytest.mark.anyio
async def test_a_voiced_patient_is_given_the_vague_words_and_may_not_be_exact() -> None:
    model = Scripted("For three days now.", "It's been hurting for a good while.")
    reply = await role(model, "voiced", recall=3).answer("How long has your belly hurt?")
    assert "three days" not in model.prompts[0]
    assert reply.text == "It's been hurting for a good while."
    assert "number" in reply.slips
    assert reply.disclosures[0].vague == (Effect(PAIN, "recall: not exact"),)


@pytest.mark.anyio
async def test_a_grounded_patient_chooses_among_what_code_allows() -> None:
    def chosen(fact: str, reply: str) -> str:
        return json.dumps({"parts": [{"asked": "alcohol", "facts": [fact], "kind": "answer"}], "reply": reply})

    model = Scripted("", "")
    patient = role(model, "grounded", disclosure=3)
    (wine,) = (name for name, fact in patient._by_id.items() if fact.path == WINE)
    told = chosen(wine, "Half a bottle of wine every evening.")
    patient.model = model = Scripted(told, told)
    reply = await patient.answer("Do you drink alcohol?")
    assert f"keep back for now: {wine}" in model.prompts[0]
    assert reply.text == "I'd rather not go into that right now."
    assert reply.disclosures[0].withheld == (Effect(WINE, "disclosure: reluctant"),)


@pytest.mark.anyio
async def test_a_grounded_patient_is_told_what_it_says_vaguely_asks_back_and_adds() -> None:
    for traits, note in (
        ({"recall": 3}, 'say no more than this: "My belly has hurt for a while."'),
        ({"literacy": 2}, 'Say: "You mean nervous tension?"'),
        ({"verbosity": 3}, "Also say, unasked: "),
    ):
        model = Scripted("{}", "{}", "{}")
        question = "Do you have hypertension?" if "literacy" in traits else "How long has your belly hurt?"
        await role(model, "grounded", **traits).answer(question)
        assert note in model.prompts[0]


@pytest.mark.anyio
async def test_in_free_text_the_traits_are_only_in_the_prompt() -> None:
    patient = role(Scripted("Well."), "free", recall=2, verbosity=1)
    assert not patient.controls_traits
    assert "You are forgetful." in patient.system_prompt
    assert "You are talkative" in patient.system_prompt
    assert "This patient" not in role(Scripted("Well."), "free").system_prompt
    assert role(Builtin(), "free", recall=2).controls_traits
    assert role(Scripted("Well."), "voiced", recall=2).controls_traits


# Settings


@pytest.mark.parametrize(
    ("given", "traits"),
    [
        ("recall=2, literacy=1", {"recall": 2, "literacy": 1}),
        ("forgetful", {"recall": 2}),
        ({"verbosity": 3, "recall": 0}, {"verbosity": 3}),
        ("difficult", {"recall": 2, "disclosure": 2, "literacy": 2, "verbosity": 2}),
        (None, {}),
    ],
)
def test_traits_are_given_by_level_or_as_a_profile(given: Any, traits: dict[str, int]) -> None:
    assert plan_of(patient_traits=given).settings.run.patient_traits == traits


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recal": 2}, "did you mean 'recall'"),
        ({"recall": 4}, "from 0 to 3"),
        ({"recall": "two"}, "from 0 to 3"),
        ("grumpy", "neither a profile"),
        (["recall"], "must name traits"),
    ],
)
def test_other_traits_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_of(patient_traits=given)


def test_a_person_as_the_patient_has_no_traits() -> None:
    with pytest.raises(ConfigError, match="patient_traits has no effect"):
        plan_of(patient_llm="human", patient_traits={"recall": 1})
