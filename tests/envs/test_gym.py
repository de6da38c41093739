"""The clinic as a Gymnasium environment, with the real library."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from env_support import played, same_record
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from runs_support import ROOT, own_cases, point_at
from scripted_server import LONG, ScriptedServer

import agentclinic.envs.gym  # registers the environments
from agentclinic.cases.registry import load_cases
from agentclinic.errors import AgentClinicError, ConfigError, how_to_install

OSCE = "AgentClinic/OpenOSCE-v0"
CLINIC = "AgentClinic/Clinic-v0"
WORLD = "Solvable:chest-pain,invented"
WORDS = (
    "What brings you here today?",
    "Do you have a fever — 38 °C or more? 熱はありますか",
    "Hm.",
    "REQUEST TEST: Complete_Blood_Count",
    "REQUEST TEST:",
    "Do you smoke?",
    "DIAGNOSIS READY: Pneumonia",
)
"""With letters of other scripts, an order without a name and an ending."""
FORKING = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
"""Python from 3.12 on warns when Gymnasium forks: the loop of models runs in a thread."""


def made(name: str = OSCE, **options: Any) -> gymnasium.Env[str, str]:
    return gymnasium.make(name, **options)


def spoken(env: gymnasium.Env[str, str], words: tuple[str, ...], **reset: Any) -> list[tuple[Any, ...]]:
    """What each step returns, up to the last."""
    env.reset(**reset)
    steps = []
    for said in words:
        steps.append(env.step(said))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


@pytest.mark.parametrize(
    ("name", "options"),
    [(OSCE, {"part": "train", "reward": "frugal"}), (CLINIC, {"dataset": WORLD}), (CLINIC, {"dataset": "OpenOSCE"})],
    ids=["OpenOSCE", "world", "data set"],
)
def test_gymnasium_finds_nothing_to_complain_about(name: str, options: dict[str, Any]) -> None:
    check_env(made(name, render_mode="ansi", **options).unwrapped)


def test_an_episode_begins_with_the_doctors_instructions_and_ends_with_the_diagnosis() -> None:
    env = made(render_mode="ansi")
    first, told = env.reset(seed=1)
    steps = spoken(env, WORDS, seed=1)

    assert "DIAGNOSIS READY:" in first
    assert first.endswith("commit with DIAGNOSIS READY:)")
    assert "(Message 2 of 20." in steps[0][0]
    assert [step[2:4] for step in steps] == [(False, False)] * 6 + [(True, False)]
    assert [told, *(step[4] for step in steps[:-1])] == [{}] * 7, "nothing is known before the end"
    assert steps[-1][4]["record"].diagnosis_text == "Pneumonia"
    assert steps[-1][0] == ""
    shown = env.render()
    assert isinstance(shown, str)
    assert shown.startswith(first)
    assert shown.endswith("Doctor: DIAGNOSIS READY: Pneumonia")
    assert all(text in shown for step, words in zip(steps, WORDS, strict=True) for text in (step[0], words))


def test_a_diagnosis_that_the_judge_cannot_read_ends_an_episode_too() -> None:
    (step,) = spoken(made(), ("DIAGNOSIS READY: the usual",), seed=1)

    assert step[1:4] == (0.0, True, False)
    assert step[4]["record"].status == "not_readable"


def test_an_episode_without_a_diagnosis_is_truncated() -> None:
    steps = spoken(made(total_inferences=2), WORDS, seed=1)

    assert [step[2:4] for step in steps] == [(False, False), (False, True)]
    assert steps[-1][4]["record"].status == "max_infs_reached"


def test_nothing_can_be_said_before_the_beginning_or_after_the_end() -> None:
    env = made().unwrapped
    with pytest.raises(AgentClinicError, match=r"reset\(\)"):
        env.step("Hello?")
    spoken(env, WORDS, seed=1)
    with pytest.raises(AgentClinicError, match=r"reset\(\)"):
        env.step("Hello?")


@pytest.mark.parametrize(("name", "options"), [(OSCE, {}), (CLINIC, {"dataset": WORLD})], ids=["OpenOSCE", "world"])
def test_the_seed_decides_everything(name: str, options: dict[str, Any]) -> None:
    def whole(seed: int | None, env: gymnasium.Env[str, str]) -> tuple[Any, ...]:
        (first, _), steps = env.reset(seed=seed), [env.step(words) for words in WORDS]
        return first, steps[-1][4]["record"].case_hash, [step[:4] for step in steps]

    one, other = made(name, **options), made(name, **options)

    assert [whole(seed, one) for seed in (7, None, None, 8)] == [whole(seed, other) for seed in (7, None, None, 8)]
    assert len({whole(seed, one)[1] for seed in (7, None, None, None, 8, 9)}) > 3


@pytest.mark.parametrize("reward", ["frugal", "careful", {"proper": 2.0, "turns": 0.5}])
def test_the_rewards_of_the_steps_add_up_to_the_parts_at_the_end(reward: str | dict[str, float]) -> None:
    truth = load_cases("OpenOSCE")[0].diagnosis
    env = made(reward=reward)
    spoken(env, WORDS, seed=2)  # an earlier episode has been paid for

    steps = spoken(env, (*WORDS[:-1], f"DIAGNOSIS READY: {truth}"), options={"case": 0})
    parts = steps[-1][4]["rewards"]

    assert math.fsum(step[1] for step in steps) == pytest.approx(math.fsum(parts.values()))
    assert parts.get("right", 1.0) == 1.0
    assert steps[0][1] <= 0 < steps[-1][1]


def test_the_regret_of_a_world_is_paid_turn_by_turn() -> None:
    steps = spoken(made(CLINIC, dataset=WORLD, reward="regret"), WORDS, seed=3)

    assert [step[1] for step in steps] == pytest.approx([-t.regret for t in steps[-1][4]["record"].regret.turns])
    assert math.fsum(step[1] for step in steps) < 0


@FORKING
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_environments_of_a_vector_do_what_each_would_do_alone(mode: str) -> None:
    own_memory = {"shared_memory": False} if mode == "async" else {}
    options: dict[str, Any] = {"part": "train", "reward": "frugal"}
    vector = gymnasium.make_vec(
        OSCE,
        num_envs=3,
        vectorization_mode=mode,
        vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED, **own_memory},
        **options,
    )
    alone = [made(**options) for _ in range(3)]
    try:
        assert vector.reset(seed=5)[0] == tuple(env.reset(seed=5 + n)[0] for n, env in enumerate(alone))
        for words in WORDS:
            seen, rewards, terminated, truncated, info = vector.step((words,) * 3)
            steps = [env.step(words) for env in alone]
            assert seen == tuple(step[0] for step in steps)
            assert list(rewards) == [step[1] for step in steps]
            assert [*terminated, *truncated] == [*(step[2] for step in steps), *(step[3] for step in steps)]
    finally:
        vector.close()
    assert all(same_record(one, step[4]["record"]) for one, step in zip(info["record"], steps, strict=True))
    assert list(info["rewards"]["turns"]) == [step[4]["rewards"]["turns"] for step in steps]


def test_shared_memory_is_refused_since_gymnasium_never_reads_text_from_it() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gymnasium.make_vec(OSCE, num_envs=2, vectorization_mode="async")


def test_a_vector_begins_again_by_itself() -> None:
    vector = gymnasium.make_vec(OSCE, num_envs=2)
    vector.reset(seed=1)
    done = vector.step(("DIAGNOSIS READY: Asthma", "Do you smoke?"))
    again = vector.step(("(not heard)", "Do you drink?"))

    assert list(done[2]) == [True, False]
    assert list(done[4]["_record"]) == [True, False]
    assert "(Message 1 of 20." in again[0][0]
    assert "(Message 3 of 20." in again[0][1]


@pytest.mark.parametrize(
    ("options", "dataset", "case"),
    [
        ({}, "OpenOSCE", "osce-a01"),
        ({"total_inferences": 4}, "OpenOSCE", 2),
        ({"seed": 3}, WORLD, 7),
    ],
    ids=["diagnosed", "out of turns", "world"],
)
def test_the_record_is_that_of_a_run_in_which_the_doctors_model_says_the_same(
    options: dict[str, Any], dataset: str, case: str | int, server: ScriptedServer, tmp_path: Path
) -> None:
    env = made(CLINIC, dataset=dataset, **options)
    words = WORDS
    if dataset == WORLD:
        disease = load_cases(WORLD, seed=3, count=8)[7].diagnosis
        words = (*WORDS[:-1], f"DIAGNOSIS READY: {disease}")
    steps = spoken(env, words, options={"case": case})

    in_a_run = played(server, tmp_path, words[: len(steps)], dataset, case, **options)

    assert in_a_run.num_turns == len(steps)
    assert same_record(in_a_run, steps[-1][4]["record"])


def test_the_lockbox_is_never_served(tmp_path: Path) -> None:
    own = own_cases(tmp_path, 12)
    rows = [json.loads(line) for line in own.read_text(encoding="utf-8").splitlines()]
    rows[3]["OSCE_Examination"]["lockbox"] = True
    own.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    env = made(CLINIC, dataset=str(own))

    served = {spoken(env, WORDS[-1:], seed=seed)[-1][4]["record"].scenario_id for seed in range(60)}

    assert served == set(range(12)) - {3}
    with pytest.raises(ConfigError, match="lockbox"):
        env.reset(options={"case": 3})
    locked = next(case for case in load_cases("OpenOSCE_1", lockbox=True) if case.in_lockbox)
    for name in (locked.name, locked.scenario_id):
        with pytest.raises(ConfigError, match="lockbox"):
            made(dataset="OpenOSCE_1").reset(options={"case": name})
    with pytest.raises(ConfigError, match="lockbox"):
        made(lockbox=True)


def test_training_and_test_cases_are_apart() -> None:
    train, test = ({env.reset(seed=seed)[0] for seed in range(60)} for env in (made(part="train"), made(part="test")))

    assert len(train) > 15
    assert len(test) > 15
    assert not train & test


def test_a_patient_that_fails_truncates_the_episode_and_the_reward_is_not_a_number(
    server: ScriptedServer, tmp_path: Path
) -> None:
    llm_config = point_at(tmp_path, server, tries=1)
    server.fault("500", match={"purpose": "patient"})
    env = made(patient_llm="scripted", simulator="free", llm_config=str(llm_config)).unwrapped

    with pytest.warns(RuntimeWarning, match="the patient failed"):
        (last,) = spoken(env, WORDS, seed=1)

    assert last[2:4] == (False, True)
    assert math.isnan(last[1])
    assert last[4]["record"].status == "model_failed"


WITH = """
import sys
standard = sys.path
for folders in {paths!r}:
    sys.path = [*folders, *standard]
    try:
        import agentclinic.envs.gym
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_a_library_that_is_too_old_or_missing_gives_one_line(tmp_path: Path) -> None:
    (old := tmp_path / "old" / "gymnasium-0.29.1.dist-info").mkdir(parents=True)
    (old / "METADATA").write_text("Name: gymnasium\nVersion: 0.29.1\n")
    (rest := tmp_path / "rest").mkdir()
    for entry in Path(gymnasium.__path__[0]).parent.iterdir():
        if not entry.name.startswith("gymnasium"):
            (rest / entry.name).symlink_to(entry)
    program = WITH.format(paths=[[str(ROOT), str(old.parent), str(rest)], [str(ROOT), str(rest)]])

    ended = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines() == [
        f"InputError this needs gymnasium 1.2 or newer, {problem}: {how_to_install('gymnasium')}"
        for problem in ("and 0.29.1 is installed", "which is not installed")
    ]


def test_the_module_can_be_named_instead_of_imported() -> None:
    assert isinstance(made(f"agentclinic.envs.gym:{OSCE}").unwrapped, agentclinic.envs.gym.GymClinic)


@FORKING
def test_forked_environments_ask_their_own_models(server: ScriptedServer, tmp_path: Path) -> None:
    options: dict[str, Any] = {"patient_llm": "scripted", "simulator": "free"}
    options["llm_config"] = str(point_at(tmp_path, server))
    env = made(**options)
    env.reset(seed=1)
    env.step("How are you?")  # the loop and the connections of this process are in use
    vector = gymnasium.make_vec(
        OSCE,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "fork"},
        **options,
    )
    assert isinstance(vector, AsyncVectorEnv)
    vector.reset(seed=1)
    vector.step_async(("How are you?", "What happened?"))
    try:
        seen, *_ = vector.step_wait(timeout=LONG)
    finally:
        vector.close(terminate=True)

    assert all("throbbing headache" in text for text in seen)
