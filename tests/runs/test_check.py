"""The check before a run: what cannot work is reported at once, before anything is written."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from generate_support import question, write_questions
from runs_support import AT_ENDPOINT, asked, clinic, only_run, point_at, records
from scripted_server import ScriptedServer

from agentclinic.runs import check

RUN = ("run", "--output_dir", "out", "--num_scenarios", "2", "--quiet")


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nothing listens, and that no one else can take."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def names_address(folder: Path, base_url: str) -> None:
    (folder / "llm.config.json").write_text(json.dumps({"openai": {"base_url": base_url}}))


def failing(kind: str) -> list[dict[str, object]]:
    return [{"match": {"purpose": "check"}, "fault": kind}]


@pytest.mark.slow
def test_a_run_asks_each_model_once_and_with_few_tokens_and_does_not_record_it(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    (tmp_path / "agentclinic.config.json").write_text(
        json.dumps({"endpoints": {"ward": {"base_url": server.base_url}, "judges": {"base_url": server.base_url}}})
    )
    roles = (
        "--doctor_llm",
        "big",
        "--patient_llm",
        "small",
        "--patient_endpoint",
        "ward",
        "--measurement_llm",
        "small",
    )
    judge = ("--moderator_llm", "small", "--moderator_endpoint", "judges", "--record", "calls.jsonl")

    clinic(*RUN, *roles, *judge, cwd=tmp_path)

    checks = server.checks()
    assert sorted(entry["body"]["model"] for entry in checks) == ["big", "small"], "three endpoints, one server"
    assert {entry["body"]["max_output_tokens"] for entry in checks} == {check.FEW_TOKENS}
    assert "checks the connection" not in (tmp_path / "calls.jsonl").read_text()
    used = [record["usage"]["doctor"]["requests"] for record in records(only_run(tmp_path / "out"))]
    assert sum(used) == asked(server, "doctor")


def test_a_server_that_is_down_is_reported_with_role_model_host_and_what_to_do(
    tmp_path: Path, closed_port: int
) -> None:
    names_address(tmp_path, f"http://127.0.0.1:{closed_port}/v1")

    done = clinic(*RUN, "--doctor_llm", "big", "--patient_llm", "big", "--record", "r.jsonl", cwd=tmp_path, expect=2)

    assert f"doctor, patient: model 'big': 127.0.0.1:{closed_port} could not be reached" in done.stderr
    assert "is this its address (OPENAI_BASE_URL, or openai.base_url)?" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["llm.config.json"], "neither a run nor a recording"


def test_a_host_that_drops_every_connection_attempt_counts_as_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agentclinic.cli import main

    monkeypatch.setattr(check, "CONNECT_SECONDS", 0.5)
    monkeypatch.chdir(tmp_path)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]  # fill its queue: the system drops all further attempts
        for other in waiting:
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        names_address(tmp_path, f"http://127.0.0.1:{full.getsockname()[1]}/v1")
        with pytest.raises(SystemExit) as stopped:
            main([*RUN, "--doctor_llm", "big"])
        for other in waiting:
            other.close()
    assert stopped.value.code == 2
    assert "could not be reached (no connection in time)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("auth", "401 (key not accepted)"),
        ("no_model", "404 (unknown model 'scripted')"),
        ("quota", "429 (no credit left)"),
        ("bad_request", "400 (request not accepted)"),
        ("redirect", "307 (redirect, not followed)"),
        ("reset", "the connection broke"),
    ],
)
def test_what_every_request_would_meet_ends_the_run_before_it_begins(
    fault: str, problem: str, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, key="sk-planted-0123456789")
    server.control(rules=failing(fault))

    done = clinic(*RUN, *AT_ENDPOINT, cwd=tmp_path, expect=2)

    assert "doctor, patient, measurement, moderator: model 'scripted'" in done.stderr
    assert problem in done.stderr
    assert "sk-planted" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert asked(server) == 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["503", "429", "hang"])
def test_what_may_pass_is_a_warning_and_the_run_goes_on(fault: str, server: ScriptedServer, tmp_path: Path) -> None:
    """A server that is still loading its model answers 503, or nothing for a while."""
    point_at(tmp_path, server, request_timeout=2.0 if fault == "hang" else 60.0)
    server.control(rules=failing(fault))

    done = clinic(*RUN, "--doctor_llm", "scripted", cwd=tmp_path)

    assert "Warning: doctor: model 'scripted': " in done.stderr
    assert done.stderr.rstrip().splitlines()[0].endswith("; going on")
    assert len(records(only_run(tmp_path / "out"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["empty", "refusal", "length_empty"])
def test_any_answer_passes(fault: str, server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=failing(fault))

    assert clinic(*RUN, "--doctor_llm", "scripted", cwd=tmp_path).stderr == ""


@pytest.mark.slow
def test_a_server_that_rejects_only_our_limit_on_the_answer_passes(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "check", "nth": 1}, "fault": "bad_request"}])

    assert clinic(*RUN, "--doctor_llm", "scripted", cwd=tmp_path).stderr == ""
    assert ["max_output_tokens" in entry["body"] for entry in server.checks()] == [True, False]


@pytest.mark.slow
def test_a_server_with_chat_completions_only_passes(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(responses=False)
    clinic(*RUN, "--doctor_llm", "scripted", cwd=tmp_path)
    assert [entry["api"] for entry in server.checks()] == ["responses", "chat"]


@pytest.mark.slow
def test_it_can_be_left_out_and_builtin_roles_need_none(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    clinic(*RUN, cwd=tmp_path)
    clinic(*RUN, "--doctor_llm", "scripted", "--no-check", cwd=tmp_path)
    assert server.checks() == []


def test_a_custom_doctor_may_not_need_the_model_named_for_it(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=failing("no_model"))
    (tmp_path / "own.py").write_text(
        "class Own:\n    def inference_doctor(self, question, image_requested=False):\n"
        "        return 'DIAGNOSIS READY: Migraine'\n"
    )

    done = clinic(*RUN, "--doctor", "own.py:Own", "--doctor_llm", "mine", cwd=tmp_path)

    assert "Warning: doctor: model 'mine'" in done.stderr
    assert "did you mean 'scripted'?" in done.stderr, "the only model that the server has"


@pytest.mark.slow
def test_resume_changes_nothing_if_the_check_fails_and_asks_no_one_if_nothing_is_missing(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    server.fault("auth", match={"purpose": "patient", "nth": 3})
    clinic(*RUN, *AT_ENDPOINT, cwd=tmp_path, expect=3)
    folder = only_run(tmp_path / "out")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    server.control(rules=failing("auth"))
    done = clinic("resume", folder, cwd=tmp_path, expect=2)
    assert "key not accepted" in done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before

    server.reset()
    clinic("resume", folder, cwd=tmp_path)
    server.control(rules=failing("auth"))
    clinic("resume", folder, cwd=tmp_path)


@pytest.mark.slow
def test_regrade_checks_the_judge_only_and_writes_nothing_if_it_fails(server: ScriptedServer, tmp_path: Path) -> None:
    clinic(*RUN, cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    point_at(tmp_path, server)
    server.control(rules=failing("no_model"))

    done = clinic("regrade", folder, "--moderator_llm", "scripted", cwd=tmp_path, expect=2)

    assert "moderator: model 'scripted'" in done.stderr
    assert not (folder / "judgements").exists()
    clinic("regrade", folder, "--moderator_llm", "scripted", "--no-check", cwd=tmp_path)


@pytest.mark.slow
def test_a_sweep_checks_all_its_models_once_before_the_first_arm(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    matrix = {"doctor_llm": ["builtin", "one", "two"], "total_inferences": [3, 2]}
    sweep = {"name": "s", "run": {"num_scenarios": 1, "output_dir": "out"}, "matrix": matrix}
    (tmp_path / "s.json").write_text(json.dumps(sweep))

    server.control(rules=[{"match": {"purpose": "check", "model": "two"}, "fault": "no_model"}])
    done = clinic("sweep", "s.json", "--quiet", cwd=tmp_path, expect=2)
    assert "doctor: model 'two'" in done.stderr
    assert not (tmp_path / "out").exists(), "not even the arms without that model"

    server.reset()
    clinic("sweep", "s.json", "--quiet", cwd=tmp_path)
    assert sorted(entry["body"]["model"] for entry in server.checks()) == ["one", "two"]


def test_generate_checks_its_writer_before_it_reads_the_source(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=failing("auth"))
    questions = write_questions(tmp_path / "q.jsonl", [question()])

    done = clinic(
        "generate", "medqa", "--base-dir", questions, "--model", "scripted", "--output", "made/c.jsonl",
        cwd=tmp_path, expect=2,
    )  # fmt: skip

    assert "writer: model 'scripted'" in done.stderr
    assert not (tmp_path / "made").exists()
