"""What a file alone may not decide: where a key goes, which program runs, which cluster gets the work."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import py_compile
import subprocess
from pathlib import Path
from typing import Any

import pytest
from generate_support import question
from helpers import nejm, write_rows
from runs_support import (
    AT_ENDPOINT,
    CLINIC,
    Process,
    asked,
    clinic,
    environment,
    only_run,
    own_cases,
    point_at,
    records,
)
from scripted_server import LONG, ScriptedServer

from agentclinic import trust
from agentclinic.api import evaluate
from agentclinic.config import Given
from agentclinic.jsonl import sealed
from agentclinic.trust import Trust, UntrustedError

KEY = {"OPENAI_API_KEY": "sk-of-the-person-0123456789"}
RUN = ("run", "--num_scenarios", "2", "--output_dir", "out", *AT_ENDPOINT)
DOCTOR = """
from pathlib import Path
Path(__file__).with_name("mark").write_text("ran")
class Mine:
    def __init__(self, scenario): pass
    def inference_doctor(self, question): return "DIAGNOSIS READY: Migraine"
"""


@pytest.fixture
def someones_run(server: ScriptedServer, tmp_path: Path) -> Path:
    """An incomplete run at the server that someone else played, whose settings folder is not ours."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    env = {"OPENAI_BASE_URL": server.base_url, "XDG_CONFIG_HOME": str(theirs / "home")}
    clinic(*RUN, cwd=theirs, env=env)
    return cut(only_run(theirs / "out"), server)


def cut(run: Path, server: ScriptedServer | None = None) -> Path:
    """Leave the run with its first record only, and let the server forget it."""
    journal = run / "scenarios.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    if server:
        server.reset()
    return run


def assert_nothing_sent(server: ScriptedServer) -> None:
    counts = server.counts()
    assert (counts["received"], counts["checks"]) == (0, [])


def refused(done: Process, key: str, address: str) -> None:
    assert f"your key {key} would go to {address}" in done.stderr
    assert f"--trust-address {address}" in done.stderr


@pytest.mark.parametrize("command", [("resume", "{run}"), ("run", "--config", "{run}/config.used.json")])
def test_a_run_folder_does_not_decide_where_a_key_goes(
    command: tuple[str, ...], someones_run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    words = [word.format(run=someones_run) for word in command]

    refused(clinic(*words, cwd=tmp_path, env=KEY, expect=2), "OPENAI_API_KEY", server.base_url)
    assert_nothing_sent(server)

    clinic(*words, "--trust-address", server.base_url, cwd=tmp_path, env=KEY)
    assert {entry["headers"]["authorization"] for entry in server.log()} == {f"Bearer {KEY['OPENAI_API_KEY']}"}


def test_a_confirmed_address_is_remembered_for_this_key_only(
    someones_run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    clinic("resume", someones_run, "--trust-address", f"{server.base_url}/", cwd=tmp_path, env=KEY)
    cut(someones_run, server)
    assert trust.store().stat().st_mode & 0o777 == 0o600

    clinic("resume", someones_run, cwd=tmp_path, env=KEY)

    assert asked(server) > 0
    server.reset()
    endpoints = {"ward": {"base_url": server.base_url, "api_key_env": "GITHUB_TOKEN"}}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps({"endpoints": endpoints}))
    command = ("run", "--doctor-llm", "scripted", "--doctor-endpoint", "ward")
    refused(
        clinic(*command, cwd=tmp_path, env={"GITHUB_TOKEN": "ghp-0123456789"}, expect=2),
        "GITHUB_TOKEN",
        server.base_url,
    )
    assert_nothing_sent(server)


def test_all_keys_that_an_address_would_get_are_named(server: ScriptedServer, tmp_path: Path) -> None:
    """The flag that the message suggests holds for all of them."""
    names = {"doctor": "OPENAI_API_KEY", "patient": "GITHUB_TOKEN"}
    endpoints = {role: {"base_url": server.base_url, "api_key_env": name} for role, name in names.items()}
    roles = {f"{role}_endpoint": role for role in names}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps({"run": roles, "endpoints": endpoints}))

    done = clinic(*RUN, cwd=tmp_path, env={**KEY, "GITHUB_TOKEN": "ghp-0123456789"}, expect=2)

    refused(done, "GITHUB_TOKEN, OPENAI_API_KEY", server.base_url)


@pytest.mark.parametrize("place", ["llm.config.json", ".env", "named endpoint"])
def test_a_cloned_folder_does_not_decide_where_a_key_goes(place: str, server: ScriptedServer, tmp_path: Path) -> None:
    if place == "llm.config.json":
        point_at(tmp_path, server)
    elif place == ".env":
        (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={server.base_url}\nXDG_CONFIG_HOME={tmp_path}\n")
    else:
        endpoints = {"ward": {"base_url": server.base_url, "api_key_env": "OPENAI_API_KEY"}}
        roles = {f"{role}_endpoint": "ward" for role in ("doctor", "patient", "measurement", "moderator")}
        (tmp_path / "agentclinic.config.json").write_text(json.dumps({"run": roles, "endpoints": endpoints}))

    refused(clinic(*RUN, cwd=tmp_path, env=KEY, expect=2), "OPENAI_API_KEY", server.base_url)

    assert_nothing_sent(server)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("place", ["llm.config.json", ".env"])
def test_key_and_address_in_one_file_belong_together(place: str, server: ScriptedServer, tmp_path: Path) -> None:
    """And a run that is resumed takes both from there again; someone else's file is not remembered, though."""
    if place == "llm.config.json":
        point_at(tmp_path, server, key="sk-beside")
    else:
        (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={server.base_url}\nOPENAI_API_KEY=sk-beside\n")
    clinic(*RUN, cwd=tmp_path)
    run = cut(only_run(tmp_path / "out"), server)

    clinic("resume", run, cwd=tmp_path)

    assert {entry["headers"]["authorization"] for entry in server.log()} == {"Bearer sk-beside"}
    assert not trust.store().exists()


def test_a_key_that_belongs_to_the_address_is_used_rather_than_one_that_does_not(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, key="sk-beside")

    clinic(*RUN, cwd=tmp_path, env=KEY)

    assert {entry["headers"]["authorization"] for entry in server.log()} == {"Bearer sk-beside"}


def test_an_address_from_the_environment_is_remembered_so_that_resuming_never_asks(
    server: ScriptedServer, tmp_path: Path
) -> None:
    clinic(*RUN, cwd=tmp_path, env={**KEY, "OPENAI_BASE_URL": server.base_url})
    run = cut(only_run(tmp_path / "out"), server)

    clinic("resume", run, cwd=tmp_path, env=KEY)

    assert len(records(run)) == 2
    assert asked(server) > 0


def test_a_run_at_the_providers_own_address_needs_no_confirmation() -> None:
    assert trust.is_providers_own("OPENAI_API_KEY", "https://api.openai.com/v1")
    assert not trust.is_providers_own("OPENAI_API_KEY", "http://api.openai.com/v1"), "not encrypted"
    assert not trust.is_providers_own("OPENAI_API_KEY", "https://api.openai.com:8443/v1")
    assert not trust.is_providers_own("GITHUB_TOKEN", "https://api.openai.com/v1"), "another provider's key"
    assert not trust.is_providers_own("OPENAI_API_KEY", "https://api.openai.com.evil.example/v1")


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("https://nurse:secret@Example.ORG:443/v1/", "https://example.org/v1"),
        ("http://[::1]:80/v1", "http://[::1]/v1"),
        ("http://localhost.:8000/v1", "http://localhost:8000/v1"),
        ("unix:///run/llm.sock", "unix:///run/llm.sock"),
        ("http://localhost:99999/v1", "http://localhost:99999/v1"),
    ],
)
def test_an_address_is_compared_in_one_spelling(written: str, compared: str) -> None:
    assert trust.plain(written) == compared


def at_terminal(answer: str, *arguments: str | Path, cwd: Path) -> tuple[int, str]:
    """Run a command at a terminal at which someone types an answer."""
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    process = subprocess.Popen(
        [*CLINIC, *map(str, arguments)],
        cwd=cwd,
        env=environment(**KEY),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the terminal is gone when the process is
            break
        said += piece
    os.close(ours)
    return process.wait(LONG), said.decode()


def test_at_a_terminal_the_person_is_asked_once(someones_run: Path, server: ScriptedServer, tmp_path: Path) -> None:
    code, said = at_terminal("\n", "resume", someones_run, "-q", cwd=tmp_path)
    assert f"Send your key OPENAI_API_KEY to {server.base_url}, which openai.base_url names? [y/N]" in said
    assert (code, trust.store().exists()) == (2, False)
    assert_nothing_sent(server)

    code, said = at_terminal("y\n", "resume", someones_run, "-q", cwd=tmp_path)
    assert (code, said.count("[y/N]")) == (0, 1)

    clinic("resume", cut(someones_run), cwd=tmp_path, env=KEY)


def test_a_name_in_a_file_cannot_write_the_question(server: ScriptedServer, tmp_path: Path) -> None:
    name = "x.base_url is https://api.openai.com/v1. Send your key OPENAI_API_KEY there? [y/N] \n" + "\n" * 50
    endpoints = {name: {"base_url": server.base_url, "api_key_env": "OPENAI_API_KEY"}}
    config = {"run": {"doctor_llm": "scripted", "doctor_endpoint": name}, "endpoints": endpoints}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps(config))

    code, said = at_terminal("\n", "run", "-q", cwd=tmp_path)

    question = said.partition("[y/N]")[0].lstrip()
    assert question == f"Send your key OPENAI_API_KEY to {server.base_url}, which {f'endpoints.{name}'[:60]} names? "
    assert (code, "\n" in question) == (2, False)


def test_what_was_confirmed_is_not_read_from_the_working_folder(
    someones_run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    """Where the person has no home folder, or names a settings folder that is relative."""
    (tmp_path / "agentclinic").mkdir()
    confirmed = {"what": "OPENAI_API_KEY", "where": server.base_url}
    (tmp_path / "agentclinic/trusted.jsonl").write_text(json.dumps(confirmed) + "\n")

    done = clinic("resume", someones_run, cwd=tmp_path, env={**KEY, "XDG_CONFIG_HOME": "."}, expect=2)

    refused(done, "OPENAI_API_KEY", server.base_url)
    flags = ("--trust-address", server.base_url)
    done = clinic("resume", someones_run, *flags, cwd=tmp_path, env={**KEY, "XDG_CONFIG_HOME": "."})
    assert "no settings folder of your own" in done.stderr


def test_a_host_in_letters_that_look_like_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://\u0430pi.openai.com/v1\n")

    assert "OPENAI_BASE_URL must be an http(s) address" in clinic(*RUN, cwd=tmp_path, env=KEY, expect=2).stderr


def test_a_file_in_the_run_does_not_decide_which_program_runs(tmp_path: Path) -> None:
    program = tmp_path / "doctor.py"
    program.write_text(DOCTOR)
    mark = tmp_path / "mark"
    flags = ("run", "--doctor", f"{program}:Mine", "--num_scenarios", "2", "--output_dir", "out")
    clinic(*flags, cwd=tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path / "theirs")})
    run = cut(only_run(tmp_path / "out"))
    mark.unlink()

    done = clinic("resume", run, cwd=tmp_path, expect=2)
    assert f"this would use {program} (SHA-256" in done.stderr
    clinic("run", "--config", run / "config.used.json", cwd=tmp_path, expect=2)
    (tmp_path / "agentclinic.config.json").write_text(json.dumps({"run": {"doctor": "doctor.py:Mine"}}))
    clinic("run", cwd=tmp_path, expect=2)
    assert not mark.exists()

    clinic("resume", run, "--trust-program", program, cwd=tmp_path)
    assert (mark.exists(), len(records(run))) == (True, 2)


def test_a_program_that_was_named_is_remembered_until_it_changes(tmp_path: Path) -> None:
    program = tmp_path / "doctor.py"
    program.write_text(DOCTOR)
    clinic("run", "--doctor", "doctor.py:Mine", "--num_scenarios", "2", "--output_dir", "out", cwd=tmp_path)
    run = cut(only_run(tmp_path / "out"))
    clinic("resume", run, cwd=tmp_path)
    cut(run)
    program.write_text(DOCTOR + "# changed\n")
    (tmp_path / "mark").unlink()

    done = clinic("resume", run, "--trust-program", program, cwd=tmp_path, expect=2)

    assert "doctor_file was" in done.stderr, "not the recorded one, even if it is confirmed"
    assert not (tmp_path / "mark").exists()


def test_an_agents_configuration_that_was_used_is_not_a_program_that_was_confirmed(tmp_path: Path) -> None:
    """The same bytes can be both; the usual configuration is used, and remembered, without a question."""
    both = '{"agents": {"uncertainty_aware_doctor": {"system_prompt": __import__("pathlib").Path("mark").touch()}}}'
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/agent_config.yaml").write_text(both)
    (tmp_path / "doctor.py").write_text(both)
    sweep = {"name": "both", "run": {"num_scenarios": 1}, "matrix": {"doctor": ["uncertainty", "doctor.py:Mine"]}}
    (tmp_path / "sweep.json").write_text(json.dumps(sweep))

    done = clinic("sweep", "sweep.json", cwd=tmp_path, expect=2)

    assert f"this would use {tmp_path / 'doctor.py'}" in done.stderr
    assert not (tmp_path / "mark").exists()


def test_what_runs_is_what_was_read_and_not_a_cache_beside_it(tmp_path: Path) -> None:
    program, other = tmp_path / "doctor.py", tmp_path / "other.py"
    program.write_text(DOCTOR.replace("Path(__file__)", "# Path"))
    other.write_text(DOCTOR.replace("__file__", repr(str(program))))
    cached = Path(importlib.util.cache_from_source(str(program)))
    cached.parent.mkdir()
    py_compile.compile(str(other), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)

    clinic("run", "--doctor", "doctor.py:Mine", "--num_scenarios", "1", cwd=tmp_path)

    assert not (tmp_path / "mark").exists()


def test_an_agents_configuration_that_only_a_file_names_is_not_used(tmp_path: Path) -> None:
    from agentclinic.doctors.uncertainty.agent_config import SHIPPED

    (tmp_path / "agents.yaml").write_text(SHIPPED.read_text())
    settings = {"run": {"doctor": "uncertainty", "agent_config": "agents.yaml", "num_scenarios": 1}}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps(settings))

    assert "agent_config: this would use" in clinic("run", cwd=tmp_path, expect=2).stderr
    clinic("run", "--agent-config", "agents.yaml", cwd=tmp_path)
    clinic("run", cwd=tmp_path)


def test_a_file_does_not_decide_which_cluster_gets_the_keys(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "2", "--output_dir", "out", cwd=tmp_path)
    run = cut(only_run(tmp_path / "out"))
    path = run / "config.used.json"
    used = json.loads(path.read_text())
    used["run"] |= {"engine": "ray", "address": "192.0.2.7:6379"}
    del used["_checksum"]
    path.write_text(json.dumps(used))

    done = clinic("resume", run, cwd=tmp_path, env=KEY, expect=2)

    assert "your keys would go to the Ray cluster 192.0.2.7:6379" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="links need a permission there")
@pytest.mark.parametrize(
    ("link", "command"),
    [
        ("judgements/builtin.jsonl", ("regrade",)),
        ("scenarios.jsonl", ("resume",)),
        ("scenarios.jsonl.new", ("resume", "--retry-failed")),
        (".lock", ("resume", "--retry-failed")),
    ],
)
@pytest.mark.parametrize("there", [None, b"export TOKEN=mine"])
def test_a_link_in_a_run_does_not_have_another_file_written(
    link: str, command: tuple[str, ...], there: bytes | None, tmp_path: Path
) -> None:
    """Such as a login script: a clone keeps links, and what is in a record may be a command to a shell."""
    clinic("run", "--num_scenarios", "2", "--output_dir", "out", cwd=tmp_path)
    run = only_run(tmp_path / "out")
    journal = run / "scenarios.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    lines[0] |= {"status": "model_failed", "correct": None, "judgement": None}
    for line in lines:
        line["timing"].pop("checksum")
    journal.write_bytes(b"".join(sealed({k: v for k, v in line.items() if k != "checksum"}) + b"\n" for line in lines))
    victim = tmp_path / ".bashrc"
    if there:
        victim.write_bytes(there)
    (run / link).unlink(missing_ok=True)
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(victim)

    subprocess.run([*CLINIC, command[0], run, *command[1:]], cwd=tmp_path, env=environment(), check=False, timeout=LONG)

    assert (victim.read_bytes() if victim.exists() else None) == there


def test_a_file_does_not_have_cases_written_to_a_login_script(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(json.dumps(question()) + "\n")
    settings = {"output": "~/.bash_login", "base_dataset_dir": "questions.jsonl"}
    (tmp_path / "gen.config.json").write_text(json.dumps({"medqa": settings}))

    done = clinic("generate", "medqa", cwd=tmp_path, env={"HOME": str(tmp_path)}, expect=2)

    assert "a file may name only one that ends in .jsonl" in done.stderr
    assert not (tmp_path / ".bash_login").exists()
    clinic("generate", "medqa", "--output", "named", cwd=tmp_path)
    assert (tmp_path / "named").is_file()


def test_a_file_does_not_have_files_made_that_other_programs_run(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "2", "--output_dir", "out", "--record", ".profile", cwd=tmp_path)
    run = cut(only_run(tmp_path / "out"))
    (tmp_path / ".profile").unlink()

    done = clinic("resume", run, cwd=tmp_path, expect=2)
    assert "use --record" in done.stderr
    assert not (tmp_path / ".profile").exists()

    clinic("resume", run, "--record", ".profile", cwd=tmp_path)
    assert (tmp_path / ".profile").exists()


def test_a_case_file_does_not_decide_which_of_your_pictures_are_sent(server: ScriptedServer, tmp_path: Path) -> None:
    """Neither by its full path nor by a link; beside the case file they are sent, also when the run is resumed."""
    mine, clone = tmp_path / "Pictures", tmp_path / "clone"
    for folder in (mine, clone):
        folder.mkdir()
        (folder / "me.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (clone / "link.png").symlink_to(mine / "me.png")
    point_at(clone, server)
    command = ("run", *AT_ENDPOINT, "--dataset", "cases.jsonl", "--doctor_image_request", "--output_dir", "out")
    for named in (str(mine / "me.png"), "../Pictures/me.png", "link.png", (mine / "me.png").as_uri()):
        write_rows(clone / "cases.jsonl", nejm(image_url=named))
        done = clinic(*command, cwd=clone, expect=2)
        assert f"images from {mine} would be sent" in done.stderr
    assert_nothing_sent(server)

    write_rows(clone / "cases.jsonl", nejm(image_url="me.png"), nejm(image_url="me.png", type="Other"))
    clinic(*command, cwd=clone)
    clinic("resume", cut(only_run(clone / "out")), cwd=tmp_path)


def test_python_code_refuses_in_the_same_way(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
    given: dict[str, Any] = {"llm_config": point_at(tmp_path, server), "doctor_llm": "scripted", "num_scenarios": 1}

    with pytest.raises(UntrustedError, match="your key OPENAI_API_KEY would go to"):
        evaluate(progress=False, **given)
    assert_nothing_sent(server)

    assert evaluate(progress=False, trust_addresses=[server.base_url], **given).records


def test_a_damaged_line_confirms_nothing_and_hides_no_other() -> None:
    good = Trust("OPENAI_API_KEY", "https://example.org/v1")
    trust.is_trusted(good, Given(), named=True)
    trust._allowed.clear()
    path = trust.store()
    path.write_text('{"what": "OPENAI_API\n[]\n\n{"what": 1}\n' + path.read_text())

    assert trust.is_trusted(good, Given())
    assert not trust.is_trusted(Trust("OPENAI_API_KEY", "https://evil.example/v1"), Given())


def test_a_settings_folder_that_cannot_be_written_is_no_reason_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))

    with pytest.warns(UserWarning, match="you may be asked again"):
        assert trust.is_trusted(Trust("OPENAI_API_KEY", "https://example.org/v1"), Given(), named=True)


READING = [
    ("score", "{run}"),
    ("report", "{run}"),
    ("compare", "{run}", "{run}"),
    ("runs", "{runs}"),
    ("view", "{runs}", "--export", "pages"),
]


@pytest.mark.parametrize("command", READING)
def test_looking_at_a_run_executes_and_sends_nothing(command: tuple[str, ...], tmp_path: Path) -> None:
    """An audit hook ends the process if it connects anywhere, starts a program, or runs a file of the run."""
    program = tmp_path / "doctor.py"
    program.write_text(DOCTOR)
    cases = ("--dataset", str(own_cases(tmp_path, 1)))
    clinic("run", *cases, "--doctor", "doctor.py:Mine", "--output_dir", "out", cwd=tmp_path)
    run = only_run(tmp_path / "out")
    (tmp_path / "mark").unlink()
    watched = (
        "import os, sys\n"
        "def hook(event, arguments):\n"
        "    if event in ('socket.connect', 'subprocess.Popen', 'os.exec', 'os.posix_spawn', 'os.system'):\n"
        "        os.write(2, f'{event} {arguments}'.encode()); os._exit(77)\n"
        "from agentclinic.cli import main\n"
        "sys.addaudithook(hook)\n"
        "main(sys.argv[1:])"
    )
    words = [word.format(run=run, runs=run.parent) for word in command]
    done = subprocess.run(
        [CLINIC[0], "-c", watched, *words],
        cwd=tmp_path,
        env=environment(**KEY),
        capture_output=True,
        text=True,
        timeout=LONG,
    )

    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "mark").exists()
