"""The clinic as OpenEnv's own client meets it: a server process, real connections, many sessions."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from docs_runner import blocks
from env_support import played, same_record
from runs_support import ROOT, Process, own_rows, point_at, start, until
from scripted_server import LONG, ScriptedServer
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from viewer_support import serving

from agentclinic.envs.episode import Episode, open_clinic
from agentclinic.viewer.connections import Limits

pytest.importorskip("openenv", reason="needs the extra openenv")
pytestmark = pytest.mark.slow

WORDS = ["What brings you in today?", "Do you have a fever?", "REQUEST TEST: Complete blood count"]
READY = "DIAGNOSIS READY: Influenza"


@contextmanager
def served(*flags: str, cwd: Path, **env: str) -> Iterator[tuple[str, Process]]:
    process = start("serve-env", "--port", "0", "--dataset", "OpenOSCE", *flags, cwd=cwd, env=env)
    until(lambda: "Ctrl-C" in process.stdout, "the address", process)
    address = re.search(r"http://[\d.]+:\d+", process.stdout)
    assert address
    try:
        yield address[0], process
    finally:
        process.signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served("--reward", "frugal", cwd=tmp_path_factory.mktemp("served")) as (address, _):
        yield address


def client(address: str, **options: Any) -> Any:
    from openenv.core.generic_client import GenericEnvClient

    return GenericEnvClient(base_url=address, **options).sync()


def test_a_session_tells_what_the_plain_doctor_is_told_and_its_rewards_add_up(address: str) -> None:
    episode = Episode(clinic := open_clinic("OpenOSCE", "frugal"), clinic.unit(5))
    rewards = []
    with client(address) as env:
        begun = env.reset(seed=5, episode_id="mine")
        assert begun.observation["text"] == f"{episode.instructions}\n\n{episode.told}"
        assert (begun.reward, begun.done) == (None, False)
        for turn, words in enumerate([*WORDS, READY], start=1):
            result = env.step({"utterance": words})
            episode.say(words)
            rewards.append(result.reward)
            assert (result.observation["text"], result.done) == (episode.told, episode.done)
            left = {"turns_left": episode.turns_left, "done": episode.done}
            assert env.state() == {"episode_id": "mine", "step_count": turn, **left}
            assert bool(result.metadata) == result.done, "nothing but the text before the end"
        with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
            env.step({"utterance": "And then?"})
    assert math.fsum(rewards) == pytest.approx(math.fsum(episode.rewards().values()))
    assert result.metadata["rewards"] == pytest.approx(episode.rewards())
    assert min(rewards[:-1]) < 0, "turns and tests cost something at once"


def test_a_record_is_that_of_a_run_for_the_same_words(address: str, server: ScriptedServer, tmp_path: Path) -> None:
    with client(address) as env:
        env.reset(case=7)
        for words in [*WORDS, READY]:
            result = env.step({"utterance": words})

    assert same_record(result.metadata["record"], played(server, tmp_path, [*WORDS, READY], "OpenOSCE", 7))


def test_many_sessions_at_once_do_not_disturb_each_other(address: str) -> None:
    from openenv.core.generic_client import GenericEnvClient

    clinic = open_clinic("OpenOSCE", "frugal")

    async def talk(seed: int) -> None:
        async with GenericEnvClient(base_url=address) as env:
            for number in (seed, seed + 100):
                episode = Episode(clinic, clinic.unit(number))
                await env.reset(seed=number)
                for words in [*WORDS[seed % 3 :], READY]:
                    result = await env.step({"utterance": words})
                    episode.say(words)
                    assert result.observation["text"] == episode.told
                assert same_record(result.metadata["record"], episode.record())

    async def everyone() -> None:
        await asyncio.gather(*map(talk, range(40)))

    asyncio.run(everyone())


def test_a_session_too_many_is_told_so_and_one_that_ends_makes_room(tmp_path: Path) -> None:
    with served("--max-sessions", "2", cwd=tmp_path) as (address, _):
        with client(address) as first, client(address) as second:
            first.reset(seed=1)
            second.reset(seed=1)
            with pytest.raises(RuntimeError, match="CAPACITY_REACHED"), client(address) as third:
                third.reset(seed=1)
        with client(address) as fourth:
            assert not fourth.reset(seed=1).done


def test_what_is_asked_wrongly_is_explained_and_the_session_goes_on(address: str) -> None:
    with client(address) as env:
        for wrong, said in (({"case": "nowhere"}, "is not served here"), ({"seed": -1}, "VALIDATION_ERROR")):
            with pytest.raises(RuntimeError, match=said):
                env.reset(**wrong)
        env.reset(seed=1)
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            env.step({"words": "Hello"})
        assert not env.step({"utterance": "Hello"}).done
    connection = HTTPConnection(urlsplit(address).netloc)
    for path, body, status in (
        ("/reset", {"seed": 1}, 200),
        ("/reset", {"case": "nowhere"}, 400),
        ("/step", {"action": {"utterance": "Hello"}}, 400),
        ("/step", {"action": {"utterance": "x" * 2**21}}, 413),
    ):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (status, True)
    connection.close()


def test_the_lockbox_is_not_served(tmp_path: Path) -> None:
    rows = [json.loads(row) for row in own_rows(4)]
    rows[2]["OSCE_Examination"]["lockbox"] = True
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with served("--dataset", "cases.jsonl", cwd=tmp_path) as (address, _), client(address) as env:
        with pytest.raises(RuntimeError, match="is not served here; it does not exist, is in the lockbox"):
            env.reset(case=2)
        met = set()
        for seed in range(30):
            env.reset(seed=seed)
            met.add(env.step({"utterance": READY}).metadata["record"]["scenario_id"])
    assert met == {0, 1, 3}


def upgraded(address: str, **headers: str) -> int:
    """The status of the answer to a request for a WebSocket."""
    connection = HTTPConnection(urlsplit(address).netloc)
    key = base64.b64encode(b"0123456789abcdef").decode()
    asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    connection.request("GET", "/ws", headers={**asked, **{name.replace("_", "-"): v for name, v in headers.items()}})
    status = connection.getresponse().status
    connection.close()
    return status


def test_websockets_of_other_sites_and_for_other_names_are_refused(address: str) -> None:
    own = urlsplit(address).netloc
    assert upgraded(address) == 101
    assert upgraded(address, Origin=f"http://{own}") == 101
    assert upgraded(address, Host="attack.example") == 421
    assert upgraded(address, Origin="http://attack.example") == 403
    assert upgraded(address, Origin="null") == 403
    assert upgraded(address, Sec_Fetch_Site="cross-site") == 403


def test_other_machines_need_the_password(tmp_path: Path) -> None:
    password = {"AGENTCLINIC_PASSWORD": "a good password"}
    with served("--host", "0.0.0.0", cwd=tmp_path, **password) as (address, process):
        assert "the traffic is not encrypted" in process.stdout
        assert upgraded(address, Host="clinic.example") == 401
        given = f"Basic {base64.b64encode(b'me:a good password').decode()}"
        with client(address, headers={"Authorization": given}) as env:
            assert not env.reset(seed=1).done


def test_patients_at_an_endpoint_answer_and_one_that_fails_has_no_reward(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(patient="It hurts here.")
    with (
        served("--patient-llm", "scripted", "--simulator", "free", cwd=tmp_path) as (address, _),
        client(address) as env,
    ):
        env.reset(seed=1)
        assert env.step({"utterance": "Where does it hurt?"}).observation["text"].startswith("It hurts here.")
        server.control(rules=[{"fault": 400}])
        failed = env.step({"utterance": "Since when?"})
        assert (failed.done, failed.reward, failed.metadata["rewards"]) == (True, None, {})
        assert failed.metadata["record"]["status"] == "model_failed"


@pytest.mark.parametrize("waits", [False, True])
def test_ctrl_c_stops_the_server_and_its_sessions(waits: bool, server: ScriptedServer, tmp_path: Path) -> None:
    """Even one that waits for an endpoint that does not answer."""
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "patient"}, "fault": "hang"}])
    flags = ("--patient-llm", "scripted", "--simulator", "free") if waits else ()
    with served(*flags, cwd=tmp_path) as (address, process):
        env = client(address)
        env.reset(seed=1)

        def ask() -> None:
            with suppress(Exception):  # the connection is closed
                env.step({"utterance": "Hello?"})

        if waits:
            threading.Thread(target=ask).start()
            until(lambda: any(entry["purpose"] == "patient" for entry in server.log()), "the question", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.stderr
        assert process.stdout.endswith("stopped\n")
        assert "Traceback" not in process.stderr
        env.close()


def test_openenvs_own_validator_finds_nothing_wrong(address: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "openenv.cli", "validate", "--url", address],
        capture_output=True,
        text=True,
        timeout=LONG,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict: PASS" in done.stdout


def test_a_websocket_may_be_silent_for_longer_than_a_request() -> None:
    from websockets.sync.client import connect

    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        while True:
            await websocket.send_text(await websocket.receive_text())

    app = Starlette(routes=[WebSocketRoute("/", echo)])
    with serving(app, Limits(seconds=0.2), websockets=True) as address:
        place = urlsplit(address)
        with (
            connect(f"ws://{place.netloc}/") as talking,
            socket.create_connection((place.hostname, place.port)) as silent,
        ):
            assert silent.recv(1) == b"", "came later, and was closed"
            talking.send("Hello")
            assert talking.recv() == "Hello"


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    (example,) = (block for block in blocks(ROOT / "docs" / "openenv.md") if block.language == "python")
    with served(cwd=tmp_path) as (address, _):
        done = subprocess.run(
            [sys.executable, "-c", example.text.replace("http://127.0.0.1:8809", address)],
            capture_output=True,
            text=True,
            timeout=LONG,
        )

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("True\n{'right': 0.0}\n")
