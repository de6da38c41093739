"""Credentialed runs from the command line to the files: what is refused, what is written, what is not said."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from helpers import osce
from runs_support import AT_ENDPOINT, Process, asked, clinic, environment, lines, only_run, point_at, records
from scripted_server import LONG, ScriptedServer

from agentclinic import privacy
from agentclinic.cli import main
from agentclinic.compat import agents as doors
from agentclinic.compat.scenarios import ScenarioMIMICIV
from agentclinic.config import Settings, load_settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again

pytestmark = pytest.mark.anyio

ELSEWHERE = "http://10.0.0.7:8000/v1"
"""Never contacted; even a failing test would send nothing outside, because the address is private."""
CHART = "Quagmire toe since the seventh regatta"
"""What no log, message or error may repeat."""


def rows(count: int = 3, **more: Any) -> list[dict[str, Any]]:
    patient = {"Demographics": "40-year-old woman", "History": CHART}
    return [{**osce(patient=patient, truth=f"Frobisher fever {n}"), **more} for n in range(count)]


def write_cases(folder: Path, *cases: dict[str, Any]) -> Path:
    path = folder / "agentclinic_mimiciv.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in cases or rows()), encoding="utf-8")
    return path


def configure(folder: Path, **content: Any) -> None:
    path = write_cases(folder)
    content = {"datasets": {"MIMICIV": path.name}, **content}
    (folder / "agentclinic.config.json").write_text(json.dumps(content))


RUN = ("run", "--dataset", "MIMICIV", "--output_dir", "out", "--quiet")


def modes(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in (folder, *folder.rglob("*"))}


def is_private(folder: Path) -> bool:
    return all(mode in (0o600, 0o700) for mode in modes(folder).values())


def refused(done: Process, folder: Path) -> str:
    assert "Error: " in done.stderr
    assert not (folder / "out").exists(), "nothing is written"
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure(tmp_path)
    return tmp_path


# What is refused


@pytest.mark.parametrize("role", ["doctor", "patient", "measurement", "moderator"])
def test_a_run_that_would_send_cases_elsewhere_is_refused_before_anything_is_written(role: str, folder: Path) -> None:
    (folder / "llm.config.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    done = clinic(*RUN, f"--{role}_llm", "some", "--record", "kept.jsonl", cwd=folder, expect=2)
    said = refused(done, folder)
    assert "openai.base_url: credentialed data may not go to 10.0.0.7:8000 (not a loopback address)" in said
    assert "--allow-host 10.0.0.7:8000 (docs/privacy.md)" in said
    assert not (folder / "kept.jsonl").exists()


async def test_the_default_endpoint_is_another_machine() -> None:
    settings = Settings.model_validate({"openai": {"api_key": "sk-123456789"}, "run": {"doctor_llm": "some"}})
    models = Models(settings, DataClass.CREDENTIALED, resolve=lambda _: ["203.0.113.7"])
    async with models:
        with pytest.raises(ConfigError, match=r"may not go to api\.openai\.com:443 .*resolves to 203\.0\.113\.7"):
            models.prepare()


def test_the_environments_address_is_checked_like_the_files(folder: Path) -> None:
    done = clinic(*RUN, "--doctor_llm", "some", cwd=folder, env={"OPENAI_BASE_URL": ELSEWHERE}, expect=2)
    assert "10.0.0.7:8000" in refused(done, folder)


def test_a_roles_own_endpoint_is_named(tmp_path: Path, server: ScriptedServer) -> None:
    configure(tmp_path, endpoints={"far": {"base_url": ELSEWHERE}})
    point_at(tmp_path, server)
    done = clinic(*RUN, *AT_ENDPOINT, "--moderator_endpoint", "far", cwd=tmp_path, expect=2)
    assert "endpoints.far.base_url: credentialed data may not go to" in refused(done, tmp_path)
    assert asked(server) == 0


def test_open_data_is_not_concerned(tmp_path: Path) -> None:
    """The same settings with cases that may be sent: no server answers there, and the error says so."""
    (tmp_path / "llm.config.json").write_text(
        json.dumps({"openai": {"base_url": "http://127.0.0.1:1/v1"}, "llm": {"runtime": {"tries": 1}}})
    )
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(1, data_class="synthetic")))
    clinic(
        "run",
        "--dataset",
        path,
        "--output_dir",
        "out",
        "--quiet",
        "--doctor_llm",
        "some",
        "--no-check",
        cwd=tmp_path,
        expect=1,
    )
    (record,) = records(only_run(tmp_path / "out"))
    assert (record["data_class"], record["fault"]["error"]) == ("synthetic", "connection")


@pytest.mark.parametrize("key", ["allow_host", "allow_hosts"])
@pytest.mark.parametrize("place", ["", "privacy", "run"])
def test_no_file_can_agree_for_the_command_line(key: str, place: str, tmp_path: Path) -> None:
    content: dict[str, Any] = {place: {key: ["10.0.0.7:8000"]}} if place else {key: ["10.0.0.7:8000"]}
    path = tmp_path / "agentclinic.config.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="unknown key"):
        load_settings(path)


def test_a_sweep_is_refused_before_its_first_arm(tmp_path: Path, server: ScriptedServer) -> None:
    configure(tmp_path, endpoints={"far": {"base_url": ELSEWHERE}})
    point_at(tmp_path, server)
    sweep = {
        "name": "both",
        "run": {"dataset": "MIMICIV", "output_dir": "out", "doctor_llm": "scripted"},
        "matrix": {"doctor_endpoint": [None, "far"]},
    }
    (tmp_path / "sweep.json").write_text(json.dumps(sweep))
    done = clinic("sweep", "sweep.json", cwd=tmp_path, expect=2)
    assert "endpoints.far.base_url" in refused(done, tmp_path)
    assert asked(server) == 0


@pytest.mark.slow
def test_a_sweep_keeps_everything_private(folder: Path) -> None:
    sweep = {
        "name": "turns",
        "run": {"dataset": "MIMICIV", "output_dir": "out"},
        "matrix": {"total_inferences": [3, 4]},
    }
    (folder / "sweep.json").write_text(json.dumps(sweep))
    for _ in range(2):
        clinic("sweep", "sweep.json", cwd=folder)
        assert is_private(folder / "out" / "turns"), modes(folder / "out" / "turns")
    assert (folder / "out" / "turns" / "comparison.json").is_file()


# What is written


def test_a_credentialed_run_is_its_owners_alone_and_says_what_it_is(folder: Path, server: ScriptedServer) -> None:
    point_at(folder, server)
    (folder / "kept.jsonl").write_text("")
    (folder / "kept.jsonl").chmod(0o644)
    clinic(*RUN, *AT_ENDPOINT, "--record", "kept.jsonl", cwd=folder)
    made = only_run(folder / "out")
    assert set(modes(made)) == {
        ".",
        ".lock",
        "cases.jsonl",
        "config.used.json",
        "scenarios.jsonl",
        "summary.json",
    }
    assert is_private(made), modes(made)
    assert [record["data_class"] for record in records(made)] == ["credentialed"] * 3
    assert json.loads((made / "config.used.json").read_text())["agentclinic"]["data_class"] == "credentialed"
    assert {entry["data_class"] for entry in lines(folder / "kept.jsonl")} == {"credentialed"}
    assert stat.S_IMODE((folder / "kept.jsonl").stat().st_mode) == 0o600
    assert asked(server) > 0


def test_an_open_run_is_written_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    clinic("run", "--dataset", path, "--output_dir", "out", "--record", "kept.jsonl", "--quiet", cwd=tmp_path)
    made = only_run(tmp_path / "out")
    open_to_all = 0o644 & ~_umask()
    assert modes(made)["scenarios.jsonl"] == open_to_all
    assert modes(made)["config.used.json"] == 0o666 & ~_umask()
    assert stat.S_IMODE((tmp_path / "kept.jsonl").stat().st_mode) == open_to_all
    assert not any("data_class" in entry for entry in lines(tmp_path / "kept.jsonl"))
    assert "privacy" not in json.loads((made / "config.used.json").read_text())
    assert [record["data_class"] for record in records(made)] == ["public"] * 3


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


ATTESTED = {
    "zero_retention": True,
    "no_training": True,
    "no_human_review": True,
    "attested_by": "A. Steward",
    "attested_on": "2026-01-31",
}


def attest(folder: Path, **changes: Any) -> None:
    """The machine's private address represents another host; no server answers there."""
    endpoint = {"far": {"base_url": "https://10.0.0.7:8443/v1"}}
    configure(folder, endpoints=endpoint, privacy={"hosts": {"10.0.0.7:8443": {**ATTESTED, **changes}}})


@pytest.mark.slow
def test_an_attestation_is_written_down_and_has_to_stand_when_a_run_is_resumed(
    tmp_path: Path, server: ScriptedServer
) -> None:
    point_at(tmp_path, server, tries=1)
    attest(tmp_path)
    # The doctor meets an unknown model here and the run stops: nothing is sent to the attested host yet.
    server.fault("no_model", match={"purpose": "doctor"})
    flags = ("--doctor_llm", "scripted", "--moderator_llm", "some", "--moderator_endpoint", "far", "--no-check")
    assert "allow it with --allow-host 10.0.0.7:8443" in refused(clinic(*RUN, *flags, cwd=tmp_path, expect=2), tmp_path)
    clinic(*RUN, *flags, "--allow-host", "10.0.0.7:8443", cwd=tmp_path, expect=3)
    made = only_run(tmp_path / "out")

    def written() -> list[dict[str, Any]]:
        used: dict[str, Any] = json.loads((made / "config.used.json").read_text())
        return list(used["agentclinic"]["attestations"])

    assert written() == [{"host": "10.0.0.7:8443", **ATTESTED}]
    assert "allow-host" in clinic("resume", made, cwd=tmp_path, expect=2).stderr

    attest(tmp_path, no_training=False)
    done = clinic("resume", made, "--allow-host", "10.0.0.7:8443", cwd=tmp_path, expect=2)
    assert "privacy.hosts.10.0.0.7:8443: no_training must be true" in done.stderr

    attest(tmp_path, attested_by="B. Warden")
    for _ in range(2):
        clinic("resume", made, "--allow_host", "10.0.0.7:8443", cwd=tmp_path, expect=3)
    assert [entry["attested_by"] for entry in written()] == ["A. Steward", "B. Warden"]
    assert is_private(made)


@pytest.mark.slow
def test_a_run_that_was_credentialed_stays_so(folder: Path, server: ScriptedServer) -> None:
    """Rows that lost their mark since do not open the gate for what is missing of the run."""
    point_at(folder, server, tries=1)
    server.fault("no_model", match={"purpose": "doctor", "nth": 4})
    clinic(*RUN, "--doctor_llm", "scripted", cwd=folder, expect=3)
    made = only_run(folder / "out")
    write_cases(folder, *rows(data_class="synthetic"))
    made.chmod(0o755)
    server.reset()
    clinic("resume", made, cwd=folder)
    assert {record["data_class"] for record in records(made)} == {"credentialed"}
    assert is_private(made)


# Judging again


@pytest.mark.slow
def test_regrading_is_guarded_and_private(folder: Path, server: ScriptedServer) -> None:
    point_at(folder, server)
    clinic(*RUN, *AT_ENDPOINT, cwd=folder)
    made = only_run(folder / "out")
    received = asked(server)
    (folder / "far.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    done = clinic("regrade", made, "--moderator_llm", "judge", "--llm_config", "far.json", cwd=folder, expect=2)
    assert "credentialed data may not go to 10.0.0.7:8000" in done.stderr
    assert not (made / "judgements").exists()
    clinic("regrade", made, "--moderator_llm", "judge", cwd=folder)
    assert asked(server) == received + 3
    clinic("regrade", made, "--moderator_llm", "judge2", cwd=folder)
    clinic("judge", "majority", made, "--judges", "judge,judge2,recorded", "--name", "most", cwd=folder)
    assert (made / "judgements" / "most.jsonl").is_file()
    assert is_private(made), modes(made)


@pytest.mark.parametrize("keep", ["dataset", "data_class", "annotations", "config"])
@pytest.mark.slow
def test_one_trace_of_credentialed_data_is_enough_to_guard_regrading(keep: str, folder: Path) -> None:
    """Records of the original or of older versions, which do not state their data class."""
    clinic(*RUN, cwd=folder)
    made = only_run(folder / "out")
    kept = []
    for record in records(made):
        del record["data_class"], record["checksum"]
        record["annotations"].pop("data_class", None)
        record["dataset"] = "Mine"
        if keep == "dataset":
            record["dataset"] = "MIMICIV"
        elif keep == "data_class":
            record["data_class"] = "credentialed"
        elif keep == "annotations":
            record["annotations"]["data_class"] = "credentialed"
        kept.append(json.dumps(record) + "\n")
    (made / "scenarios.jsonl").write_text("".join(kept))
    if keep != "config":
        (made / "config.used.json").unlink()
    (folder / "llm.config.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    done = clinic("regrade", made, "--moderator_llm", "judge", cwd=folder, expect=2)
    assert "credentialed data may not go to" in done.stderr


# Recordings


@pytest.mark.slow
def test_a_recording_of_credentialed_data_is_not_replayed_into_an_open_run(folder: Path) -> None:
    clinic(*RUN, "--record", "kept.jsonl", cwd=folder)
    clinic(*RUN, "--patient_llm", "replay:kept.jsonl", cwd=folder)
    write_cases(folder, *rows(data_class="synthetic"))
    done = clinic(*RUN, "--patient_llm", "replay:kept.jsonl", "--output_dir", "new", cwd=folder, expect=2)
    assert "is a recording of credentialed data, but the cases of this run are synthetic" in done.stderr
    assert not (folder / "new").exists()


# What is not said


def quiet_about_the_chart(done: Process, made: Path) -> list[dict[str, Any]]:
    assert CHART not in done.stdout + done.stderr
    found = records(made)
    assert all(CHART not in json.dumps(record["fault"]) for record in found)
    assert CHART not in (made / "summary.json").read_text()
    return [record["fault"] for record in found]


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "an error": ({"match": {"purpose": "doctor"}, "fault": "400", "message": f"Bad: {CHART}"}, "bad_request"),
    "a server error": ({"match": {"purpose": "doctor"}, "fault": "500", "message": CHART}, "server"),
    "a refusal": (
        {
            "match": {"purpose": "doctor"},
            "raw": {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": CHART}]}]},
        },
        "refused",
    ),
    "a judge's chatter": ({"match": {"purpose": "moderator"}, "reply": f"Perhaps. {CHART}"}, "malformed"),
}


@pytest.mark.parametrize(("rule", "kind"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("data_class", ["credentialed", "synthetic"])
def test_errors_of_credentialed_runs_repeat_nothing_that_was_said(
    rule: dict[str, Any], kind: str, data_class: str, folder: Path, server: ScriptedServer
) -> None:
    write_cases(folder, *rows(data_class=data_class))
    point_at(folder, server)
    server.control(rules=[rule])
    flags = (*AT_ENDPOINT, "--judge", "original")  # whose reply is quoted
    done = clinic(*RUN, *flags, cwd=folder, expect=0 if kind == "refused" else 1)  # a refusal is a result
    made = only_run(folder / "out")
    if data_class == "synthetic":
        assert all(CHART in record["fault"]["message"] for record in records(made)), "else this test shows nothing"
        return
    faults = quiet_about_the_chart(done, made)
    assert {fault["error"] for fault in faults} == {kind}
    assert all(privacy.LEFT_OUT in fault["message"] for fault in faults)


DOCTOR = f"""
import threading
import agentclinic


class Breaks:
    def __init__(self, scenario): pass

    def inference_doctor(self, question):
        raise KeyError({CHART!r})


class Asks:
    def __init__(self, scenario): pass

    def inference_doctor(self, question):
        return agentclinic.query_model("some", "prompt", "system")
"""


def test_a_users_doctor_that_breaks_is_named_without_its_words(folder: Path) -> None:
    (folder / "mine.py").write_text(DOCTOR)
    done = clinic(*RUN, "--doctor", "mine.py:Breaks", cwd=folder)
    faults = quiet_about_the_chart(done, only_run(folder / "out"))
    assert all(f["message"] == f"mine.py:Breaks: mine.py line 10: KeyError: {privacy.LEFT_OUT}" for f in faults)
    assert all('mine.py", line 10, in inference_doctor\nKeyError' in f["traceback"] for f in faults)
    assert "its own network calls are not checked" in done.stderr


def test_a_users_doctor_that_asks_a_model_elsewhere_stops_the_run(folder: Path) -> None:
    (folder / "mine.py").write_text(DOCTOR)
    (folder / "llm.config.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    done = clinic(*RUN, "--doctor", "mine.py:Asks", cwd=folder, expect=3)
    assert "credentialed data may not go to 10.0.0.7:8000" in done.stderr
    assert records(only_run(folder / "out")) == []


def test_a_users_doctor_may_ask_a_model_here(folder: Path, server: ScriptedServer) -> None:
    (folder / "mine.py").write_text(DOCTOR)
    point_at(folder, server)
    clinic(*RUN, "--doctor", "mine.py:Asks", "--total_inferences", "2", cwd=folder)
    assert asked(server, "query") == 6


@pytest.mark.slow
def test_a_crash_shows_where_but_not_what(folder: Path) -> None:
    """A bug of ours, made by breaking a part of the program."""
    program = (
        "import sys; from agentclinic.runs import play\n"
        f"def broken(*_): raise ZeroDivisionError({CHART!r})\n"
        "play.judged = broken\n"
        "from agentclinic.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, *RUN]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 1
    assert CHART not in done.stdout + done.stderr
    assert f"ZeroDivisionError: {privacy.LEFT_OUT}" in done.stderr
    assert "execute.py" in done.stderr


# The original's synchronous interface


@pytest.fixture
def _far() -> Iterator[None]:
    doors.set_llm_config({"openai": {"base_url": ELSEWHERE}, "llm": {"runtime": {"tries": 1}}})
    yield
    doors.set_llm_config({})


@pytest.mark.usefixtures("_far")
def test_the_originals_agents_are_guarded_by_their_scenario() -> None:
    scenario = ScenarioMIMICIV(rows(1)[0])
    says: list[Callable[[], str]] = [
        lambda: doors.PatientAgent(scenario, "some").inference_patient("Hello?"),
        lambda: doors.MeasurementAgent(scenario, "some").inference_measurement("REQUEST TEST: ECG"),
        lambda: doors.DoctorAgent(scenario, "some").inference_doctor("Hello."),
        lambda: doors.query_model("some", "prompt", "system"),
        lambda: doors.compare_results("one", "other", "some"),
    ]
    for say in says:
        with pytest.raises(ConfigError, match="credentialed data may not go to 10"):
            say()


@pytest.mark.usefixtures("_far")
def test_a_thread_that_knows_no_context_is_guarded_too() -> None:
    ScenarioMIMICIV(rows(1)[0])
    failures: list[Exception] = []

    def work() -> None:
        try:
            doors.query_model("some", "prompt", "system")
        except InputError as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [type(failure).__name__ for failure in failures] == ["GateClosedError"]


def test_models_made_without_a_class_take_the_strictest_seen() -> None:
    assert not Models(Settings()).gate.closed
    privacy.raise_data_class(DataClass.CREDENTIALED)
    assert Models(Settings()).gate.closed
    assert not Models(Settings(), DataClass.PUBLIC).gate.closed


# Images


def test_images_that_others_would_fetch_are_refused_at_the_start(tmp_path: Path) -> None:
    row = {
        "patient_info": "A 50-year-old man coughs.",
        "image_url": "https://example.org/x.png",
        "answers": [{"text": "Croup", "correct": True}],
        "data_class": "credentialed",
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n")
    flags = ("run", "--dataset", "cases.jsonl", "--output_dir", "out", "--quiet")
    done = clinic(*flags, "--doctor_image_request", cwd=tmp_path, expect=2)
    assert "the image of cases/0 is a web address" in refused(done, tmp_path)
    clinic(*flags, cwd=tmp_path)


# What is written about a run


def test_what_is_written_about_a_credentialed_run_is_the_owners_wherever_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    main([*RUN, "--output_file", str(folder / "results.jsonl"), "--record", str(folder / "recording.jsonl")])
    run, shared = only_run(folder / "out"), folder / "shared"
    shared.mkdir(mode=0o755)
    (run / "cases.jsonl").unlink()  # the records alone say what they are
    run.chmod(0o755)
    for command in (
        ["report", str(run), "-o", str(shared / "report.html")],
        ["report", str(run), "-o", str(shared / "encounters.csv")],
        ["report", str(run / "scenarios.jsonl"), "-o", str(shared / "report.json")],
        ["card", str(run), "-o", str(shared / "card.md")],
        ["audit", str(run), "--cases", str(folder / "agentclinic_mimiciv.jsonl"), "-o", str(shared / "audit.txt")],
    ):
        privacy.reset()  # as in a process of its own
        main(command)
    assert {mode for name, mode in modes(shared).items() if name != "."} == {0o600}
    assert len(modes(shared)) == 6
    assert {modes(folder)[name] for name in ("results.jsonl", "recording.jsonl")} == {0o600}


def test_resume_goes_by_the_records_own_class(tmp_path: Path) -> None:
    """The settings of a run and its cases can be edited; the journal says what was sent."""
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(2)))
    settings = Settings.model_validate({"run": {"dataset": str(tmp_path / "plain.jsonl"), "output_dir": str(tmp_path)}})
    plan = make_plan(settings)
    finished = anyio.run(execute, plan, Progress())
    journal = finished.folder / "scenarios.jsonl"
    kept = journal.read_text().splitlines()[0]
    record = json.loads(kept)
    del record["checksum"]
    journal.write_text(json.dumps({**record, "data_class": "credentialed"}) + "\n")

    assert plan_again(finished.folder).data_class is DataClass.CREDENTIALED
