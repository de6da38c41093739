"""A key put anywhere a key may be put appears nowhere we write."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs_support import AT_ENDPOINT, CLINIC, Process, asked, clinic, environment, only_run, point_at, start, until
from scripted_server import LONG, ScriptedServer

KEY = "sk-planted-0123456789abcdefghij"
PASSWORD = "planted-password-97531"
QUERY = "planted-query-86420"
SOMEBODY_ELSES = "sk-other-0123456789"
"""The scripted server quotes this one, too: a key we cannot know, but that looks like one."""
SECRETS = (KEY, PASSWORD, QUERY, base64.b64encode(f"nurse:{PASSWORD}".encode()).decode(), SOMEBODY_ELSES)
RUN = ["run", "--num_scenarios", "2", "--output_dir", "out", "--record", "recording.jsonl", *AT_ENDPOINT]


def plant(place: str, server: ScriptedServer, folder: Path) -> dict[str, str]:
    """Put a secret in one of the places for secrets; returns what goes into the environment."""
    point_at(folder, server, tries=1)
    if place == "environment":
        return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base_url}
    if place == "env file":
        (folder / ".env").write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={server.base_url}\n")
    elif place == "config":
        point_at(folder, server, key=KEY, tries=1)
    elif place == "address":
        config = point_at(folder, server, tries=1)
        config.write_text(config.read_text().replace("http://", f"http://nurse:{PASSWORD}@"))
    elif place == "endpoint":
        settings: dict[str, Any] = {
            "run": {f"{role}_endpoint": "ward" for role in ("doctor", "patient", "measurement", "moderator")},
            "endpoints": {"ward": {"base_url": server.base_url, "api_key_env": "WARD_KEY"}},
        }
        (folder / "agentclinic.config.json").write_text(json.dumps(settings))
        return {"WARD_KEY": KEY, "OPENAI_BASE_URL": server.base_url}
    return {}


PLACES = ["environment", "env file", "config", "address", "endpoint"]


def assert_clean(process: Process | subprocess.CompletedProcess[str], folder: Path) -> None:
    """No secret in what was said or written; the user's own files are the user's."""
    for secret in SECRETS:
        assert secret not in process.stdout
        assert secret not in process.stderr
        for path in folder.rglob("*"):
            if path.is_file() and path.name not in (".env", "llm.config.json", "agentclinic.config.json"):
                assert secret.encode() not in path.read_bytes(), f"{secret} in {path}"


def assert_sent(server: ScriptedServer, place: str) -> None:
    """The secret did reach the server: the test would show nothing otherwise."""
    sent = {entry["headers"].get("authorization") for entry in server.log()}
    assert sent == {f"Basic {SECRETS[3]}" if place == "address" else f"Bearer {KEY}"}


@pytest.mark.parametrize("place", PLACES)
def test_a_good_run_keeps_the_secret(place: str, server: ScriptedServer, tmp_path: Path) -> None:
    env = plant(place, server, tmp_path)
    # The doctor's own words quote the key: so they come to transcript, histories and recording.
    server.control(rules=[{"match": {"purpose": "patient"}, "fault": "echo_key"}])

    done = clinic(*RUN, cwd=tmp_path, env=env)

    assert_sent(server, place)
    assert (tmp_path / "recording.jsonl").stat().st_size > 0
    assert_clean(done, tmp_path)


def test_a_query_in_an_address_is_refused_and_not_repeated(server: ScriptedServer, tmp_path: Path) -> None:
    """The path of the request would be put after it; and it holds a key more often than not."""
    address = f"{server.base_url}?token={QUERY}"
    for where in ({"openai": {"base_url": address}}, {}):
        (tmp_path / "llm.config.json").write_text(json.dumps(where))
        env = {} if where else {"OPENAI_BASE_URL": address}
        done = clinic(*RUN, cwd=tmp_path, env=env, expect=2)
        assert "must not have a query" in done.stderr
        assert_clean(done, tmp_path)
    assert server.counts()["checks"] == []


@pytest.mark.parametrize("where", ["config", "environment"])
def test_a_key_in_the_path_of_an_address_is_refused_and_not_repeated(where: str, tmp_path: Path) -> None:
    """A path is recorded, unlike a password. A run that sends nothing there does not record it either."""
    address = f"https://gateway.invalid/{KEY}/v1"
    if where == "config":
        (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": address}}))
    env = {"OPENAI_BASE_URL": address} if where == "environment" else {}
    done = clinic(*RUN, cwd=tmp_path, env=env, expect=2)
    name = "OPENAI_BASE_URL" if env else "openai.base_url:"
    assert (
        f"{name} must not have a key in its path, which is recorded; put the key into openai.api_key or the "
        in done.stderr
    )
    assert_clean(done, tmp_path)
    assert_clean(
        clinic("run", "--num_scenarios", "1", "--output_dir", "out", cwd=tmp_path, env=env, expect=None), tmp_path
    )


@pytest.mark.parametrize("flag", ["--no-check", "--dry-run"])
def test_an_impossible_port_in_the_environment_is_named(flag: str, tmp_path: Path) -> None:
    done = clinic(*RUN, flag, cwd=tmp_path, env={"OPENAI_BASE_URL": "http://127.0.0.1:99999/v1"}, expect=2)
    assert "Error: OPENAI_BASE_URL must be an http(s) address with a port from 1 to 65535" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("place", ["environment", "config", "address"])
@pytest.mark.parametrize("fault", ["auth", "bad_request"])
def test_a_server_that_quotes_the_key_in_its_error_is_not_quoted(
    fault: str, place: str, server: ScriptedServer, tmp_path: Path
) -> None:
    env = plant(place, server, tmp_path)
    server.control(rules=[{"match": {"purpose": "doctor", "nth": [5, 6]}, "fault": fault}])

    done = clinic(*RUN, cwd=tmp_path, env=env, expect=3 if fault == "auth" else 0)

    assert_sent(server, place)
    assert "[key]" in done.stderr + (tmp_path / "recording.jsonl").read_text(), "the server did quote it"
    assert_clean(done, tmp_path)


@pytest.mark.slow
def test_a_run_that_crashes_keeps_the_secret(server: ScriptedServer, tmp_path: Path) -> None:
    """A bug of ours, made by breaking a part of the program: then a traceback is shown, without the key."""
    env = plant("config", server, tmp_path)
    program = (
        "import sys; from agentclinic.models import wire\n"
        "def broken(*_): raise ZeroDivisionError('a bug')\n"
        "wire.read_answer = broken\n"
        "from agentclinic.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *RUN, "--no-check"],
        cwd=tmp_path,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=LONG,
    )

    assert done.returncode == 1
    assert "ZeroDivisionError: a bug" in done.stderr
    assert_sent(server, "config")
    assert_clean(done, tmp_path)


def test_an_interrupted_run_keeps_the_secret(server: ScriptedServer, tmp_path: Path) -> None:
    env = plant("environment", server, tmp_path)
    server.fault("hang")
    process = start(*RUN, cwd=tmp_path, env=env)
    try:
        until(lambda: asked(server) > 0, "the first request", process)
        for _ in range(2):
            seen = len(process.stderr)
            process.signal(signal.SIGINT)
            until(lambda seen=seen: len(process.stderr) > seen or process.poll() is not None, "a word")  # type: ignore[misc]
        process.wait()
    finally:
        process.signal(signal.SIGKILL)

    assert_clean(process, tmp_path)


@pytest.mark.slow
def test_refusing_to_resume_or_to_start_keeps_the_secret(server: ScriptedServer, tmp_path: Path) -> None:
    env = plant("address", server, tmp_path)
    clinic(*RUN, cwd=tmp_path, env=env)
    folder = only_run(tmp_path / "out")
    used = folder / "config.used.json"
    used.write_text(used.read_text().replace('"seed": 0', '"seed": 1'))

    assert_clean(clinic("resume", folder, cwd=tmp_path, env=env, expect=2), tmp_path)

    config = tmp_path / "llm.config.json"
    config.write_text(json.dumps({"openai": {"apikey": KEY, "base_url": 5}}))
    assert_clean(clinic(*RUN, cwd=tmp_path, expect=2), tmp_path)


@pytest.mark.parametrize("address", [f"nurse:{PASSWORD}@host/v1", f"ftp://nurse:{PASSWORD}@host/v1"])
def test_an_address_that_cannot_be_used_is_refused_without_its_password(address: str, tmp_path: Path) -> None:
    (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": address}}))

    assert_clean(clinic(*RUN, cwd=tmp_path, expect=2), tmp_path)
    assert_clean(clinic("run", "--num_scenarios", "1", "--output_dir", "out", cwd=tmp_path, expect=None), tmp_path)


def test_a_probe_keeps_the_secret(server: ScriptedServer, tmp_path: Path) -> None:
    env = plant("environment", server, tmp_path)
    server.fault("auth")

    done = clinic("probe", "scripted", cwd=tmp_path, env=env, expect=1)

    assert_sent(server, "environment")
    assert_clean(done, tmp_path)


@pytest.mark.slow
def test_the_process_itself_shows_no_key_when_it_starts(server: ScriptedServer, tmp_path: Path) -> None:
    """With Python's own warnings and development mode on, which show more than usual."""
    env = plant("config", server, tmp_path)
    done = subprocess.run(
        [CLINIC[0], "-X", "dev", *CLINIC[1:], *RUN],
        cwd=tmp_path,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=LONG,
    )

    assert done.returncode == 0
    assert_clean(done, tmp_path)
