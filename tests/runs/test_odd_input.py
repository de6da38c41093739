"""Odd replies, doctors, cases and flags: one failed turn or a clear error, and every line a run writes can be read."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import osce, write_rows
from runs_support import own_cases, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.config import read_json
from agentclinic.doctors.uncertainty.store import SessionError, read_session
from agentclinic.errors import CaseError, ConfigError, InputError
from agentclinic.models.recording import Replay
from agentclinic.results.run_data import load_run, read_judgements
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade import regrade
from agentclinic.runs.resume import plan_again, resume
from agentclinic.scoring.outcome import summarise

pytestmark = pytest.mark.anyio
DEEP = "[" * 100_000
HUGE = "1" + "0" * 400


async def check_readable(folder: Path, count: int, settings: Any) -> None:
    """Everything that reads a run reads this one, and finds each unit once."""
    summary = summarise(load_run(folder).records())
    assert summary.presented == count
    assert (await resume(plan_again(folder), folder, Progress())).missing == 0
    await regrade(folder, settings)
    assert summarise(load_run(folder, "scripted_model").records()).presented == count


@pytest.mark.slow
async def test_an_odd_tool_call_is_one_failed_turn(server: ScriptedServer, tmp_path: Path) -> None:
    doubts = '[{"diagnosis": "Gout \\ud800", "probability": %s}]'
    step = '{"new_information": "a \\ud800 b", "current_uncertainties": %s, "next_step_action": "DIAGNOSIS READY"}'
    odd = [DEEP, step % (doubts % HUGE), step % ('"' + doubts.replace('"', '\\"') % HUGE + '"'), step % (doubts % 0.5)]
    rules = [
        {"match": {"purpose": "doctor", "nth": nth}, "tool_calls": [{"name": "diagnosis_step", "arguments": arguments}]}
        for nth, arguments in enumerate(odd, start=1)
    ]
    server.control(rules=rules, synthesis="Gout \ud800")
    settings = settings_for(server, tmp_path / "out", dataset=str(own_cases(tmp_path, 3)), doctor="uncertainty")

    finished, entries = await run_here(settings)

    assert [entry["status"] for entry in entries] == ["diagnosed"] * 3
    assert "Gout \ufffd" in {entry["diagnosis_text"] for entry in entries}
    await check_readable(finished.folder, 3, settings)


async def test_an_odd_answer_is_one_failed_request(server: ScriptedServer, tmp_path: Path) -> None:
    verdict = '{"reason": "half a pair: \\ud800", "relation": "same"}'
    said = [{"type": "message", "content": [{"type": "output_text", "text": "DIAGNOSIS READY: Gout"}]}]
    odd: list[Any] = [
        {"error": {"type": []}},
        {"error": {"code": "\u00b2", "type": {}}},
        {"error": {"code": "9" * 5000}},
        {"output": said, "usage": {"input_tokens": 10**4299, "output_tokens": 1}},
        {"output": said, "usage": {"input_tokens": 10**200, "output_tokens": 1}},
    ]
    rules = [{"match": {"purpose": "doctor", "nth": nth}, "raw": raw} for nth, raw in enumerate(odd, start=1)]
    server.control(rules=[*rules, {"match": {"purpose": "moderator"}, "reply": verdict}])
    cases = own_cases(tmp_path, 3)
    settings = settings_for(
        server, tmp_path / "out", dataset=str(cases), judge="model", runtime={"tries": 6, "llm_api": "responses"}
    )

    finished, entries = await run_here(settings)

    assert [entry["status"] for entry in entries] == ["diagnosed"] * 3
    assert entries[0]["usage"]["doctor"]["input_tokens"] is None, "an impossible number is no number"
    assert entries[0]["judgement"]["reason"] == "half a pair: \ufffd"
    await check_readable(finished.folder, 3, settings)


DOCTORS = """
import asyncio
from agentclinic.results.turn import Turn

class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no words")

class Mine:
    def __init__(self, scenario):
        self.number = scenario.examiner_information().rpartition(" ")[2]

    async def act(self, incoming, exchanges, *, turn, last, notes=""):
        deep = []
        for _ in range(150):
            deep = [deep]
        match self.number:
            case "0": raise KeyboardInterrupt
            case "1": raise asyncio.CancelledError
            case "2": raise Unprintable
            case "3": raise ValueError("\\ud800")
            case "4": return await asyncio.to_thread(self.later)
            case "5": return Turn(turn=turn, role="doctor", text="DIAGNOSIS READY: a", details={"x": deep})
            case "6": return Turn(turn=turn, role="doctor", text="DIAGNOSIS READY: a", details={"x": object()})
            case "7": return Turn(turn=turn, role="doctor", text="DIAGNOSIS READY: \\ud800", details={"x": "\\ud800"})
            case "8": return "DIAGNOSIS READY: \\ud800"

    def later(self):
        raise KeyboardInterrupt

    @property
    def agent_hist(self):
        return "\\udfff"
"""


async def test_an_own_doctor_can_only_fail_its_own_encounter(tmp_path: Path) -> None:
    (tmp_path / "doctor.py").write_text(DOCTORS)
    cases = write_rows(tmp_path / "cases.jsonl", *(osce(objective=f"Find out {row}") for row in range(9)))
    settings = settings_for(None, tmp_path / "out", dataset=str(cases), doctor=f"{tmp_path / 'doctor.py'}:Mine")

    finished, entries = await run_here(settings)

    faults = [entry["fault"]["message"].partition(":Mine: ")[2] for entry in entries if entry["fault"]]
    assert [re.sub(r"^doctor\.py line \d+: ", "", fault) for fault in faults[:5]] == [
        "KeyboardInterrupt: ",
        "CancelledError: ",
        "Unprintable: (it cannot be printed)",
        "ValueError: \ufffd",
        "KeyboardInterrupt: ",
    ]
    assert "nested too deeply" in faults[5]
    assert "Unable to serialize" in faults[6]
    assert [entry["status"] for entry in entries] == ["doctor_failed"] * 7 + ["not_readable"] * 2
    assert [entry["diagnosis_text"] for entry in entries[7:]] == ["\ufffd", "\ufffd"]
    assert entries[8]["doctor_hist"] == "\ufffd"
    assert len(list(load_run(finished.folder).records())) == 9


async def test_an_odd_case_is_cleaned_or_refused(tmp_path: Path) -> None:
    row = json.dumps(osce(note="half \ud800")) + "\n"
    path = tmp_path / "c\udce9ases.jsonl"
    path.write_text(row)
    finished, (entry,) = await run_here(settings_for(None, tmp_path / "out", dataset=str(path)))
    assert (entry["dataset"], entry["annotations"]) == ("c\ufffdases", {"note": "half \ufffd"})
    assert (await resume(plan_again(finished.folder), finished.folder, Progress())).missing == 0

    for value in ("[" * 200 + "]" * 200, HUGE):
        path.write_text(row.replace('"half \\ud800"', value))
        with pytest.raises(CaseError, match="line 1: not valid JSON"):
            make_plan(settings_for(None, tmp_path / "out", dataset=str(path)))


@pytest.mark.parametrize("value", ["[" * 200 + "]" * 200, DEEP, "1" + "0" * 5000])
def test_deep_nesting_and_long_numbers_in_files_are_clear_errors(value: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"session_id": "x", "unit": "", "key": "", "n": 0, "odd": {value}}}\n')
    with pytest.raises(ConfigError, match=r"x\.json"):
        read_json(path)
    with pytest.raises(SessionError, match=r"x\.json: not a session"):
        read_session(path)
    with pytest.raises(InputError, match=r"x\.json line 1: not an entry of a recording"):
        Replay(path)
    with pytest.raises(InputError, match=r"x\.json line 1: not a judgement"):
        read_judgements(path)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    return capsys.readouterr().err


def test_odd_flags_and_places_are_clear_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "unknown data set 'xxx" in refused(["run", "--dataset", "x" * 3000], capsys)
    assert "no home folder of that name" in refused(["run", "--dataset", "~nosuchuser/x"], capsys)
    assert "cannot be written; name a file" in refused(["run", "--record", str(tmp_path)], capsys)
    assert list(tmp_path.iterdir()) == []
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert "standard output: cannot be used (No space left on device)" in refused(["data", "list"], capsys)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "the working folder no longer exists" in refused(["run"], capsys)


@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("run --config /dev/zero", "/dev/zero: cannot be read (it has more than 256 MB; is this the right file?)"),
        ("run --dataset /dev/zero", "/dev/zero line 1: more than 1 MB long; is this the right file?"),
        ("data check /dev/zero", "/dev/zero line 1: more than 1 MB long"),
        ("run --doctor_llm replay:/dev/zero", "/dev/zero line 1: more than 1 MB long"),
        ("run --memory /dev/zero", "memory: /dev/zero is not a file"),
        ("run --doctor uncertainty --agent-config /dev/zero", "/dev/zero: cannot be read (it has more than 1 MB"),
    ],
)
def test_a_file_without_an_end_is_not_read_to_its_end(
    arguments: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until all memory was used up, without a word; so was any large file given by mistake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("agentclinic.jsonl.LONGEST_LINE", 2**20)
    assert complaint in " ".join(refused(arguments.split(), capsys).split())


def test_text_that_a_terminal_cannot_show_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "Ménière \udce9"
    folder.mkdir()
    (folder / "scenarios.jsonl").write_text('{"scenario_id": 0, "status": "diagnosed", "correct": true}\n')
    for flags in ([], ["--json"]):
        shown = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))

        main(["score", str(folder), *flags])

        if flags:
            assert json.loads(shown.getvalue())["run"] == folder.name
        else:
            assert rb"M\xe9ni\xe8re \u27e8U+DCE9\u27e9" in shown.getvalue()
