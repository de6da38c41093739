"""The environment: its tools and nothing else, determinism, odd input, what it serves and what it refuses."""

from __future__ import annotations

import inspect
import json
import math
import os
import signal
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from helpers import osce, write_rows
from runs_support import AT_ENDPOINT, asked, clinic, only_run, point_at, records, start, until
from scripted_server import ScriptedServer
from solvable_support import Saying, played

from agentclinic.api import load_cases
from agentclinic.config import load_settings
from agentclinic.envs import ClinicEnv, record_of
from agentclinic.envs.episode import Episode, open_clinic
from agentclinic.errors import AgentClinicError, ConfigError
from agentclinic.results.record import Record
from agentclinic.runs.plan import halves, make_plan
from agentclinic.scoring.clusters import case_clusters

WORLD = "Solvable:chest-pain"
TOOLS = ("ask_patient", "diagnose", "order_test")
CALLS = [
    ("ask_patient", "What brings you here?"),
    ("ask_patient", "Do you have a fever?\nAny chills?"),
    ("order_test", "complete blood count"),
    ("order_test", "chest X-ray"),
    ("diagnose", "Acute appendicitis"),
]


def played_by(env: ClinicEnv, calls: list[tuple[str, str]] = CALLS, **reset: Any) -> tuple[list[str], float]:
    """What the doctor is told, and the reward."""
    told = [env.reset(**reset), *(getattr(env, tool)(words) for tool, words in calls)]
    return told, env.get_reward()


def public(thing: object) -> list[str]:
    return sorted(name for name in dir(thing) if not name.startswith("_"))


# --- what a library sees ----------------------------------------------------------------------------------------------


def test_its_methods_are_these_and_nothing_else_is_public() -> None:
    env = ClinicEnv()
    env.reset(seed=1)
    assert public(ClinicEnv) == public(env) == sorted((*TOOLS, "get_reward", "reset"))
    assert repr(env).startswith("<agentclinic.envs.clinic_env.ClinicEnv object at")


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_typed_and_describes_itself_and_its_arguments(name: str) -> None:
    tool = getattr(ClinicEnv, name)
    hints = typing.get_type_hints(tool)
    assert hints.pop("return") is str
    described = inspect.getdoc(tool) or ""
    about, arguments = described.partition("Args:")[::2]
    assert about.strip().endswith(".")
    assert list(hints) == list(inspect.signature(tool).parameters)[1:]
    assert all(f"    {each}: " in arguments for each in hints)


def test_transformers_reads_the_tools() -> None:
    utils = pytest.importorskip("transformers.utils", reason="needs the extra train")
    for name in TOOLS:
        function = utils.get_json_schema(getattr(ClinicEnv(), name))["function"]
        assert function["name"] == name
        assert all(one["description"] for one in function["parameters"]["properties"].values())


def test_the_doctor_is_told_the_door_the_tools_and_how_many_calls_there_are() -> None:
    told = ClinicEnv(total_inferences=7).reset(case=0)
    case = open_clinic("OpenOSCE").unit(0, 0).case
    assert case.door.objective in told
    assert case.door.demographics in told
    assert "You have 7 calls." in told
    assert all(name in told for name in TOOLS)
    in_world = ClinicEnv(WORLD).reset(seed=1)
    assert "(order_test)" in in_world
    assert "call diagnose with the name of one disease, or with DEFER" in in_world
    assert not any(token in told + in_world for token in ("REQUEST TEST", "DIAGNOSIS READY"))


def test_the_last_call_is_announced_and_after_it_nothing_happens() -> None:
    env = ClinicEnv(total_inferences=2)
    env.reset(seed=1)
    assert env.ask_patient("What brings you here?").endswith("(One call is left. Only diagnose counts now.)")
    assert env.ask_patient("And then?") == "The consultation is over."
    assert env.diagnose("Gout") == "The consultation is over."
    assert env.get_reward() == 0
    assert record_of(env).status == "max_infs_reached"


# --- determinism ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", ["OpenOSCE", WORLD])
def test_the_same_seeds_and_calls_give_the_same_replies_and_rewards(dataset: str) -> None:
    one, other = ClinicEnv(dataset), ClinicEnv(dataset)
    assert [played_by(one, seed=seed) for seed in range(4)] == [played_by(other, seed=seed) for seed in range(4)]
    assert played_by(one) == played_by(other), "also without a seed"
    assert len({ClinicEnv(dataset, seed=5)._clinic.unit(seed).case.name for seed in range(20)}) > 10


def test_another_seed_of_the_settings_draws_other_patients() -> None:
    def truths(seed: int) -> list[str]:
        clinic = open_clinic(WORLD, seed=seed)
        return [clinic.unit(number).case.diagnosis for number in range(20)]

    assert truths(1) == truths(1) != truths(2)


@pytest.mark.parametrize("dataset", ["OpenOSCE", WORLD])
def test_many_in_one_process_and_in_threads_do_not_disturb_each_other(dataset: str) -> None:
    alone = [played_by(ClinicEnv(dataset), seed=seed) for seed in range(12)]
    every = [ClinicEnv(dataset) for _ in alone]
    told = [[env.reset(seed=seed)] for seed, env in enumerate(every)]
    for tool, words in CALLS:  # in step
        for env, heard in zip(every, told, strict=True):
            heard.append(getattr(env, tool)(words))
    assert [(heard, env.get_reward()) for env, heard in zip(every, told, strict=True)] == alone
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda seed: played_by(ClinicEnv(dataset), seed=seed), range(12))) == alone


# --- misuse and odd input ---------------------------------------------------------------------------------------------


def test_before_the_first_reset_there_is_nothing_to_ask_or_to_reward() -> None:
    env = ClinicEnv()
    for call in (lambda: env.ask_patient("?"), lambda: env.diagnose("Gout"), env.get_reward):
        with pytest.raises(AgentClinicError, match=r"call reset\(\) first"):
            call()


def test_the_reward_ends_an_encounter_and_stays_the_same() -> None:
    env = ClinicEnv(reward="frugal")
    env.reset(seed=1)
    env.ask_patient("What brings you here?")
    assert env.get_reward() == pytest.approx(-0.1) == env.get_reward()
    assert env.diagnose("Gout") == "The consultation is over."
    assert env.get_reward() == pytest.approx(-0.1)
    env.reset(seed=1)
    assert env.ask_patient("What brings you here?") != "The consultation is over."


def test_other_columns_of_a_training_set_are_ignored() -> None:
    assert ClinicEnv().reset(seed=3, prompt=[{"role": "user"}], note="x") == ClinicEnv().reset(seed=3)


@pytest.mark.parametrize("seed", [-1, True, 1.5, "1", math.nan])
@pytest.mark.parametrize("dataset", ["OpenOSCE", WORLD])
def test_a_seed_is_a_whole_number_from_0_up(dataset: str, seed: Any) -> None:
    with pytest.raises(ConfigError, match="is not a whole number from 0 up"):
        ClinicEnv(dataset).reset(seed=seed)


@pytest.mark.parametrize("case", ["OO-999", "nobody", "96", "-1", True, 10**9])
def test_a_case_that_does_not_exist_is_refused(case: Any) -> None:
    with pytest.raises(ConfigError, match="is not served here"):
        ClinicEnv().reset(case=case)


@pytest.mark.parametrize("case", ["chest-pain-5-17", "headache-0-17", "chest-pain", "17x", "-4", True, "٣"])
def test_a_case_of_another_world_or_seed_is_refused(case: Any) -> None:
    with pytest.raises(ConfigError, match=r"does not belong to this world and seed, whose ids look like chest-pain-0-"):
        ClinicEnv(WORLD).reset(case=case)


def test_a_case_of_a_world_is_named_by_its_id_or_its_number() -> None:
    for dataset in (WORLD, f"{WORLD},invented"):
        clinic = open_clinic(dataset, seed=5)
        drawn = load_cases(dataset, seed=5)[17]
        assert clinic.unit(0, 17).case.id == clinic.unit(0, drawn.name).case.id == clinic.unit(17).case.id == drawn.id


ODD = {
    "nothing": "",
    "spaces": " \n\t ",
    "no text": None,
    "a number": 7,
    "a list": ["fever"],
    "another speaker": "Patient: I have gout.",
    "markup": "<b>fever</b> **fever** `fever`",
    "invisible characters": "fe\u200bver\u202e\x00",
    "half a surrogate": "fever \ud83d",
    "tokens": "DIAGNOSIS READY: Gout REQUEST TEST: x REQUEST IMAGES",
    "tokens within tokens": "DIAGNOSIS DIAGNOSIS READY READY: Gout",
    "tokens in other words": "Diagnosis is ready: Gout",
    "a lot": "fever and chills " * 6_000,
    "a lot without spaces": "x" * 100_000,
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("dataset", ["OpenOSCE", WORLD])
def test_a_tool_does_what_its_name_says_whatever_the_words(dataset: str, what: str) -> None:
    env, words = ClinicEnv(dataset), typing.cast(Any, ODD[what])
    env.reset(seed=1)
    assert env.ask_patient(words)
    assert env.order_test(words)
    assert env._begun().turns_left == 18, "each was one call, and it is not over"
    env.diagnose(words)
    assert math.isfinite(env.get_reward())
    said = [turn for turn in record_of(env).transcript or () if turn.role == "doctor"]
    kinds = [turn.action.kind if turn.action else "" for turn in said]
    assert kinds[0] in ("question", "none")
    assert kinds[1] in ("test", "none")
    assert kinds[2] in ("diagnosis", "none")
    json.loads(record_of(env).model_dump_json())


def test_a_name_may_come_on_several_lines() -> None:
    env = ClinicEnv()
    env.reset(seed=1)
    env.order_test("complete\nblood count")
    env.diagnose(" Acute\n\tappendicitis ")
    said = [turn.action.content for turn in record_of(env).transcript or () if turn.action]
    assert said == ["complete blood count", "Acute appendicitis"]


def test_what_is_not_understood_says_so_in_terms_of_the_tools() -> None:
    env = ClinicEnv()
    env.reset(seed=1)
    replies = [env.ask_patient(""), env.order_test(""), env.diagnose(""), env.ask_patient("Diagnosis is ready: Gout")]
    env = ClinicEnv(WORLD)
    env.reset(seed=1)
    replies.append(env.ask_patient("Aortic dissection"))
    assert all(reply.startswith("That was not understood. ask_patient takes a question") for reply in replies)


ODD_DIFFERENTIALS: list[Any] = [
    {"Gout": 1.5},
    {"Gout": -0.1},
    {"Gout": math.nan},
    {"Gout": "0.5"},
    {"Gout": None},
    {1: 0.5},
    {"": 0.5},
    {"x" * 201: 0.5},
    {f"disease {number}": 0.01 for number in range(21)},
    {},
    ["Gout"],
    "Gout: 0.5",
    0.5,
]


@pytest.mark.parametrize("given", ODD_DIFFERENTIALS, ids=lambda given: str(given)[:30])
def test_a_differential_that_cannot_be_scored_is_as_good_as_none(given: Any) -> None:
    env = ClinicEnv(reward={"proper": 1})
    env.reset(seed=1)
    env.diagnose("Gout", given)
    assert env.get_reward() == -1, "certain and wrong"
    assert record_of(env).differential is None


def test_a_differential_is_scaled_to_a_sum_of_one() -> None:
    env = ClinicEnv(reward={"proper": 1})
    env.reset(seed=1)
    env.diagnose("Gout", {"Gout": 1.0, "Cellulitis": 1})
    assert env.get_reward() == pytest.approx(1 - (1 + 0.5))


# --- the ordinary settings --------------------------------------------------------------------------------------------


def without_times(record: Record) -> dict[str, Any]:
    return record.model_dump(exclude={"timing", "doctor", "doctor_llm", "cost_usd", "usage", "llm_runtime_config"})


@pytest.mark.parametrize("dataset", ["OpenOSCE", WORLD])
def test_the_record_is_that_of_a_run_with_the_same_words(dataset: str) -> None:
    env = ClinicEnv(dataset)
    played_by(env, case=3)
    words = [turn.text for turn in record_of(env).transcript or () if turn.role == "doctor"]
    (other,) = anyio.run(lambda: played(dataset, Saying(*words), scenarios="3"))
    assert without_times(record_of(env)) == without_times(other)
    assert record_of(env).doctor_llm == "outside"


def test_a_file_of_cases_and_the_settings_files_are_read(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "mine.jsonl", osce(truth="Gout"), osce(truth="Cellulitis"))
    config = tmp_path / "my.config.json"
    config.write_text(json.dumps({"run": {"total_inferences": 3, "doctor": "uncertainty", "doctor_llm": "some-model"}}))
    env = ClinicEnv(str(cases), config=config)
    assert "You have 3 calls" in env.reset(case=1), "the doctor's own settings have no effect"
    env.diagnose("Cellulitis")
    assert env.get_reward() == 1
    assert "You have 5 calls" in ClinicEnv(str(cases), config=config, total_inferences=5).reset(case=1)


def test_a_voiced_patient_at_an_endpoint_and_its_failure(server: ScriptedServer, tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "mine.jsonl", osce(truth="Gout"))
    server.control(patient="My toe is sore.")
    env = ClinicEnv(str(cases), llm_config=point_at(tmp_path, server), patient_llm="scripted", simulator="voiced")
    env.reset(seed=1)
    assert "toe" in env.ask_patient("What brings you here?")
    env.diagnose("Gout")
    assert env.get_reward() == 1
    assert record_of(env).simulator == {"patient": "voiced", "measurement": "free"}
    assert [call["purpose"] for call in server.log()] == ["patient"]

    server.fault("500", match={"purpose": "patient"})
    env.reset(seed=1)
    assert env.ask_patient("What brings you here?") == "The consultation is over."
    with pytest.warns(RuntimeWarning, match="model_failed: the patient failed: .* 500"):
        assert math.isnan(env.get_reward()), "that says nothing of the doctor"


def test_a_model_that_is_not_there_is_refused_at_once(server: ScriptedServer, tmp_path: Path) -> None:
    llm = point_at(tmp_path, server)
    server.fault("no_model", match={"purpose": "check"})
    with pytest.raises(AgentClinicError, match="scripted"):
        ClinicEnv("OpenOSCE", llm_config=llm, patient_llm="scripted")


def test_a_file_that_has_changed_is_read_again_and_so_is_one_of_the_same_name_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, age in (("a", 41), ("b", 42)):
        (tmp_path / folder).mkdir()
        write_rows(tmp_path / folder / "mine.jsonl", osce(patient={"Demographics": f"{age}-year-old man"}))
    monkeypatch.chdir(tmp_path / "a")
    assert "41-year-old" in ClinicEnv("mine.jsonl").reset(seed=0)
    monkeypatch.chdir(tmp_path / "b")
    assert "42-year-old" in ClinicEnv("mine.jsonl").reset(seed=0)
    write_rows(tmp_path / "b" / "mine.jsonl", osce(patient={"Demographics": "43-year-old man"}))
    os.utime("mine.jsonl", ns=(1, 1))
    assert "43-year-old" in ClinicEnv(Path("mine.jsonl")).reset(seed=0)
    assert ClinicEnv("mine.jsonl")._clinic is ClinicEnv("mine.jsonl")._clinic


@pytest.mark.parametrize("options", [{"num_scenarios": 3}, {"scenarios": "5"}, {"offset": 1}, {"sample": 4}])
def test_in_a_world_a_selection_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="has no effect in an environment of a world: the seed of reset"):
        ClinicEnv(WORLD, **options)


@pytest.mark.parametrize("typo", ["sed", "seeds", "cse"])
def test_a_typo_in_an_argument_of_reset_is_refused_and_other_columns_are_not(typo: str) -> None:
    env = ClinicEnv()
    with pytest.raises(ConfigError, match=r"reset: did you mean '(seed|case)' by"):
        env.reset(**{typo: 3})
    assert env.reset(seed=3, prompt=[], environment="x", target="y") == env.reset(seed=3)


def test_numbers_of_numpy_are_numbers() -> None:
    weights: Any = {"utility": np.float32(1)}
    five: Any = np.int64(5)
    assert ClinicEnv(WORLD, weights, seed=five).reset(seed=five - 3) == ClinicEnv(WORLD, "utility", seed=5).reset(
        seed=2
    )


def test_environments_at_an_endpoint_work_in_threads(server: ScriptedServer, tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "mine.jsonl", osce(truth="Gout"), osce(truth="Cellulitis"))
    llm = point_at(tmp_path, server)

    def play(case: int) -> float:
        env = ClinicEnv(str(cases), llm_config=llm, patient_llm="scripted", simulator="free")
        return played_by(env, [("ask_patient", "What is it?"), ("diagnose", "Gout")], case=case)[1]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, [0, 1] * 8)) == [1.0, 0.0] * 8
    assert asked(server) == 16


@pytest.mark.parametrize(("says", "reward"), [("Yes", 1.0), ("No", 0.0)])
def test_a_judge_at_an_endpoint(server: ScriptedServer, tmp_path: Path, says: str, reward: float) -> None:
    cases = write_rows(tmp_path / "mine.jsonl", osce(truth="Gout"))
    server.control(moderator=says)
    llm = point_at(tmp_path, server)
    env = ClinicEnv(str(cases), llm_config=llm, moderator_llm="scripted", judge="model")
    env.reset(seed=1)
    env.diagnose("Toe trouble")
    assert env.get_reward() == reward


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"doctor": "uncertainty"}, "doctor has no effect in an environment"),
        ({"doctor_llm": "some-model"}, "doctor_llm has no effect"),
        ({"doctor_bias": "recency"}, "doctor_bias has no effect"),
        ({"repeats": 2}, "repeats has no effect"),
        ({"elicit_confidence": True}, "elicit_confidence has no effect"),
        ({"preset": "original"}, "leave out preset"),
        ({"dialogue": "transcript"}, "leave out preset, dialogue"),
        ({"inf_type": "human_patient"}, "without people"),
        ({"lockbox": True}, "environments never serve the lockbox"),
        ({"dance": 1}, "dance"),
        ({"dataset": "OpenOSCF"}, "did you mean 'OpenOSCE'"),
        ({"dataset": WORLD, "part": "test"}, "part has no meaning in a solvable world"),
        ({"dataset": WORLD, "patient_llm": "some-model"}, "only the doctor is a model"),
        ({"dataset": WORLD, "total_inferences": 5}, "this world sets the turn limit"),
    ],
)
def test_settings_without_a_meaning_here_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentClinicError, match=said):
        ClinicEnv(**options)


# --- what is served ---------------------------------------------------------------------------------------------------


def test_the_lockbox_is_never_served(tmp_path: Path) -> None:
    locked = [case for case in load_cases("OpenOSCE_1", lockbox=True) if case.in_lockbox]
    assert len(locked) == 32
    env = ClinicEnv("OpenOSCE_1")
    for case in locked:
        for name in (case.name, case.scenario_id, str(case.scenario_id), case.id):
            with pytest.raises(ConfigError, match="is not served here"):
                env.reset(case=name)
    served = {env._clinic.unit(seed).case.id for seed in range(3_000)}
    assert served == {case.id for case in load_cases("OpenOSCE_1")}, "each of the others is"
    with pytest.raises(ConfigError, match="is in the lockbox"):
        ClinicEnv("OpenOSCE_1", scenarios=str(locked[0].scenario_id))


def test_a_lockbox_case_planted_in_a_file_is_not_served(tmp_path: Path) -> None:
    planted = write_rows(tmp_path / "mine.jsonl", osce(truth="Gout"), osce(truth="Cellulitis", lockbox=True))
    env = ClinicEnv(str(planted))
    assert {env._clinic.unit(seed).case.diagnosis for seed in range(50)} == {"Gout"}
    with pytest.raises(ConfigError, match="is not served here"):
        env.reset(case=1)
    config = tmp_path / "my.config.json"
    config.write_text(json.dumps({"run": {"lockbox": True}}))
    with pytest.raises(ConfigError, match="environments never serve the lockbox"):
        ClinicEnv(str(planted), config=config)


def test_the_halves_divide_the_open_cases_and_keep_twins_and_clusters_together() -> None:
    train, test = (open_clinic("OpenOSCE", part=part).plan.cases for part in ("train", "test"))
    every = load_cases("OpenOSCE")
    assert sorted(case.id for case in (*train, *test)) == sorted(case.id for case in every)
    split, ids = halves(load_cases("OpenOSCE", lockbox=True)), {case.id for case in every}
    assert split.train | split.test == ids, "the lockbox is in neither"
    clusters = case_clusters(every)
    assert not {clusters[case.id] for case in train} & {clusters[case.id] for case in test}
    side = {case.name: "train" for case in train} | {case.name: "test" for case in test}
    pairs = [(case.name, str(case.annotations["twin_of"])) for case in every if case.annotations.get("twin_of")]
    together = [(one, other) for one, other in pairs if other in side]
    assert together
    assert all(side[one] == side[other] for one, other in together)
    assert min(len(train), len(test)) >= 25


def test_a_case_of_the_other_half_is_refused_and_a_selection_chooses_within_the_half() -> None:
    train = ClinicEnv(part="train")
    other = open_clinic("OpenOSCE", part="test").plan.cases[0]
    with pytest.raises(ConfigError, match="in the other half of the data set"):
        train.reset(case=other.name)
    few = open_clinic("OpenOSCE", part="train", num_scenarios=30).plan.cases
    assert len(few) == 30
    assert {case.id for case in few} < {case.id for case in train._clinic.plan.cases}, "the halves do not depend on it"


def test_a_half_has_no_lockbox_and_a_named_case_must_be_in_it() -> None:
    train, test = (open_clinic("OpenOSCE", part=part).plan.cases[0] for part in ("train", "test"))
    assert [case.id for case in open_clinic("OpenOSCE", part="train", scenarios=train.name).plan.cases] == [train.id]
    with pytest.raises(ConfigError, match=f"scenarios: {test.name} is not in the train half"):
        open_clinic("OpenOSCE", part="train", scenarios=f"{train.name},{test.name}")
    with pytest.raises(ConfigError, match="the lockbox is in neither half"):
        make_plan(load_settings(overrides={"dataset": "OpenOSCE", "part": "train", "lockbox": True}))


def test_a_run_of_a_half_plays_the_cases_that_training_did_not_also_after_a_crash(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"nth": list(range(12, 999))}, "fault": "hang"}], keep_log=False)
    point_at(tmp_path, server)
    command = ["run", "--dataset", "OpenOSCE", "--part", "test", "--num-scenarios", "12", "--workers", "1"]
    process = start(*command, *AT_ENDPOINT, "--output-dir", "out", "--quiet", cwd=tmp_path)
    until(lambda: asked(server) >= 12, "a request that hangs", process)
    process.signal(signal.SIGKILL)
    process.wait()
    server.control(rules=[])
    folder = only_run(tmp_path / "out")
    before = len(records(folder))
    clinic("resume", folder, "--quiet", cwd=tmp_path)
    rows = {case.scenario_id for case in open_clinic("OpenOSCE", part="test", num_scenarios=12).plan.cases}
    assert 0 < before < len(rows)
    assert {record["scenario_id"] for record in records(folder)} == rows


def test_an_episode_shows_what_the_plain_doctors_model_would_be_sent() -> None:
    clinic = open_clinic("OpenOSCE")
    episode = Episode(clinic, clinic.unit(1))
    episode.say("What brings you here?")
    system, *dialogue = episode.messages()
    assert system.content == episode.instructions
    assert dialogue[-1].content == episode.told
    assert episode.heard in episode.told
    assert repr(clinic).startswith("<"), "the cases are not in it"
