"""The uncertainty-aware doctor with models that do not follow instructions: defined outcomes, no step lost."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes import Meeting, Scripted, assigned
from helpers import osce, write_rows
from runs_support import clinic, environment, only_run, records, run_here, settings_for
from scripted_server import LONG, ScriptedServer

from agentclinic.clinic.encounter import Seat, encounter
from agentclinic.clinic.prompts import load_prompts
from agentclinic.doctors.uncertainty.agent_config import SHIPPED, load_agent
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import SessionError, SessionStore
from agentclinic.doctors.uncertainty.tools import OPEN_QUESTION
from agentclinic.models.base import Reply, Request, ToolCall
from agentclinic.runs.execute import Finished
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume

pytestmark = pytest.mark.anyio

TWO = [{"diagnosis": "Gout", "probability": 0.7}, {"diagnosis": "Flu", "probability": 0.2}]


def step(information: str, action: str, doubts: Any = TWO) -> dict[str, Any]:
    return {"new_information": information, "current_uncertainties": doubts, "next_step_action": action}


STEPS = [
    step("a sore toe", "ASK PATIENT: Since when?"),
    step("pain since Monday", "REQUEST TEST: Uric acid"),
    step("uric acid high", "DIAGNOSIS READY"),
]


@dataclass
class Played:
    """One encounter and everything it wrote."""

    finished: Finished
    record: dict[str, Any]
    session: dict[str, Any]
    server: ScriptedServer

    @property
    def said(self) -> list[str]:
        return [turn["text"] for turn in self.record["transcript"] if turn["role"] == "doctor"]

    @property
    def notes(self) -> str:
        return " | ".join(note for turn in self.record["transcript"] for note in turn["notes"])

    @property
    def facts(self) -> list[str]:
        return [step["new_information"] for step in self.session["steps"]]

    def asked(self, purpose: str = "doctor") -> list[str]:
        return [json.dumps(e["body"], ensure_ascii=False) for e in self.server.log() if e["purpose"] == purpose]


async def play(server: ScriptedServer, folder: Path, *rules: dict[str, Any], **run: Any) -> Played:
    """One case with a doctor that makes `STEPS`, unless a rule says otherwise."""
    server.control(steps=run.pop("steps", STEPS), synthesis=run.pop("synthesis", "Gout"), rules=list(rules))
    path = write_rows(folder / "cases.jsonl", osce())
    settings = settings_for(server, folder / "out", dataset=str(path), **{"doctor": "uncertainty", **run})
    finished, (record,) = await run_here(settings)
    session = json.loads((finished.folder / "diagnosis_sessions" / f"{record['session_id']}.json").read_text())
    return Played(finished, record, session, server)


def doctor(nth: int | list[int] | None = None, **what: Any) -> dict[str, Any]:
    """A rule about the doctor's requests."""
    return {"match": {"purpose": "doctor", **({"nth": nth} if nth else {})}, **what}


def calls(*arguments: dict[str, Any], name: str = "diagnosis_step") -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": given} for given in arguments]}


AS_USUAL = ["Since when?", "REQUEST TEST: Uric acid", "DIAGNOSIS READY: Gout"]
FACTS = ["a sore toe", "pain since Monday", "uric acid high"]


async def test_a_model_that_follows_instructions(server: ScriptedServer, tmp_path: Path) -> None:
    played = await play(server, tmp_path)
    assert played.said == AS_USUAL
    assert played.facts == FACTS
    assert (played.record["status"], played.record["correct"], played.notes) == ("diagnosed", True, "")
    assert played.record["transcript"][0]["details"] == {"tool": "diagnosis_step", "step": 1}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"fault": "prose_instead_of_tool"}, "only a tool call counts"),
        (calls({}, name="differential"), "there is no tool 'differential'"),
        ({"fault": "bad_tool_args"}, "new_information: field required"),
        ({"fault": "broken_tool_args"}, "not valid JSON"),
        (calls(step("x", "Palpate it")), "next_step_action has no known form"),
        (calls(step("x", "ASK PATIENT: Pain?", "gout")), "names 1 diagnosis"),
    ],
    ids=["prose", "unknown tool", "malformed arguments", "broken arguments", "unknown action", "one diagnosis"],
)
async def test_an_unusable_reply_is_sent_back_once_and_then_right(
    server: ScriptedServer, tmp_path: Path, fault: dict[str, Any], told: str
) -> None:
    played = await play(server, tmp_path, doctor(2, **fault))
    assert (played.said, played.facts) == (AS_USUAL, FACTS)
    assert "sent back once" in played.notes
    requests = played.asked()
    assert len(requests) == 4
    assert told in requests[2]
    assert told not in requests[3], "it is not part of the notes"
    assert played.record["usage"]["doctor"]["requests"] == 4


async def test_prose_twice_is_parsed_and_the_reply_is_recorded_by_the_clinic(
    server: ScriptedServer, tmp_path: Path
) -> None:
    prose = doctor([2, 3], reply="Let me see. REQUEST TEST: Uric acid")
    played = await play(server, tmp_path, prose, patient_llm="builtin")
    assert played.said[1] == "REQUEST TEST: Uric acid"
    written = played.session["steps"][1]
    assert written["recorded_by"] == "clinic"
    assert written["new_information"].startswith("Since when? Patient: ")
    assert [item["diagnosis"] for item in written["differential"]] == ["Gout", "Flu"], "the doubts still stand"
    assert "structured output is used from the next turn on" in played.notes
    assert '"tools"' not in played.asked()[3]
    assert played.record["diagnosis_text"] == "Gout"


async def test_prose_without_an_action_is_said_to_the_patient(server: ScriptedServer, tmp_path: Path) -> None:
    played = await play(server, tmp_path, doctor([1, 2], reply="Does the toe hurt at night?"))
    assert played.said[0] == "Does the toe hurt at night?"
    assert (
        played.session["steps"][0]["new_information"]
        == "Patient: 40-year-old woman; Objective: Find out what is wrong."
    )


async def test_a_reply_malformed_twice_is_used_as_far_as_possible(server: ScriptedServer, tmp_path: Path) -> None:
    half = {"new_information": "the toe is hot", "next_step_action": "ASK PATIENT: Fever?"}
    played = await play(server, tmp_path, doctor([2, 3], **calls(half)))
    assert played.said[1] == "Fever?"
    assert played.facts[1] == "the toe is hot"
    (tmp_path / "b").mkdir()
    broken = await play(server, tmp_path / "b", doctor([2, 3], fault="broken_tool_args"))
    assert broken.said[1] == OPEN_QUESTION
    assert "Patient: " in broken.facts[1], "the newest reply is not lost"


async def test_an_unknown_action_repeated_is_said_to_the_patient(server: ScriptedServer, tmp_path: Path) -> None:
    played = await play(server, tmp_path, doctor([2, 3], **calls(step("hot", "Does it throb?"))))
    assert (played.said[1], played.facts[1]) == ("Does it throb?", "hot")


async def test_of_two_calls_at_once_the_first_counts(server: ScriptedServer, tmp_path: Path) -> None:
    both = calls(step("hot", "ASK PATIENT: Fever?"), step("cold", "ASK PATIENT: Chills?"))
    played = await play(server, tmp_path, doctor(1, **both))
    assert (played.said[0], played.facts[0]) == ("Fever?", "hot")
    assert "cold" not in json.dumps(played.session)
    assert "2 tool calls at once: only the first counts" in played.notes
    wrong = calls(step("hot", "Percuss"), step("cold", "ASK PATIENT: Chills?"))
    (tmp_path / "b").mkdir()
    server.reset()
    played = await play(server, tmp_path / "b", doctor(1, **wrong))
    assert played.said == AS_USUAL
    outputs = [i for i in json.loads(played.asked()[1])["input"] if i.get("type") == "function_call_output"]
    assert ["no known form" in outputs[0]["output"], "Ignored" in outputs[1]["output"]] == [True, True]


COMMIT = {
    "final_diagnosis": calls({"reason_ready": "I am sure."}, name="final_diagnosis"),
    "ready": calls(step("a sore toe", "DIAGNOSIS READY", TWO[:1])),
    "prose": {"reply": "DIAGNOSIS READY: Cancer"},
    "form": {"reply": json.dumps({"tool": "final_diagnosis", "reason_ready": "Sure.", **step("", "", [])})},
}
"""How a weak model commits at once."""


@pytest.mark.parametrize("how", COMMIT)
async def test_a_model_that_always_commits_at_once_must_learn_something_first(
    server: ScriptedServer, tmp_path: Path, how: str
) -> None:
    rules = [doctor(**COMMIT[how])]
    if how == "form":
        rules.insert(0, {"match": {"purpose": "doctor", "nth": 1}, "fault": "reject_tools"})
    played = await play(server, tmp_path, *rules)
    assert played.said == [OPEN_QUESTION, "DIAGNOSIS READY: Gout"]
    assert any("too early to conclude" in body for body in played.asked()[1:3])
    assert "I have had a throbbing headache" in played.facts[1] or how == "ready"
    assert played.record["num_turns"] == 2
    assert len(played.asked("synthesis")) == 1
    assert "Cancer" not in "".join(played.asked("synthesis"))


@pytest.mark.parametrize("how", COMMIT)
async def test_with_a_single_turn_it_may_commit_at_once(server: ScriptedServer, tmp_path: Path, how: str) -> None:
    rules = [doctor(**COMMIT[how])]
    if how == "form":
        rules.insert(0, {"match": {"purpose": "doctor", "nth": 1}, "fault": "reject_tools"})
    played = await play(server, tmp_path, *rules, total_inferences=1)
    assert played.said == ["DIAGNOSIS READY: Gout"]


async def test_missing_images_teach_nothing(server: ScriptedServer, tmp_path: Path) -> None:
    rules = [doctor(1, **calls(step("a sore toe", "REQUEST IMAGES"))), doctor(**COMMIT["final_diagnosis"])]
    played = await play(server, tmp_path, *rules)
    assert played.said == ["REQUEST IMAGES", OPEN_QUESTION, "DIAGNOSIS READY: Gout"]


async def test_ready_concludes_in_the_same_turn_without_another_reply(server: ScriptedServer, tmp_path: Path) -> None:
    played = await play(server, tmp_path)
    roles = [turn["role"] for turn in played.record["transcript"]]
    assert roles == ["doctor", "patient", "doctor", "measurement", "doctor"]
    assert len(played.asked("synthesis")) == 1


async def test_the_last_turn_concludes_for_a_doctor_that_does_not(server: ScriptedServer, tmp_path: Path) -> None:
    played = await play(server, tmp_path, total_inferences=2)
    assert played.said == ["Since when?", "DIAGNOSIS READY: Gout"]
    assert played.facts == FACTS[:2], "and what it learned last counts"
    assert "last turn: concluded for the doctor" in played.notes
    assert "This is your final turn" in played.asked()[1]
    silent = [doctor([2, 3], fault="empty")]
    (tmp_path / "b").mkdir()
    played = await play(server, tmp_path / "b", *silent, total_inferences=2)
    assert played.record["status"] == "diagnosed"


@pytest.mark.parametrize("fault", ["500", "refusal", "empty", "context", "reset", "html"])
async def test_a_failed_synthesis_is_replaced_by_the_top_of_the_differential_and_marked(
    server: ScriptedServer, tmp_path: Path, fault: str
) -> None:
    played = await play(server, tmp_path, {"match": {"purpose": "synthesis"}, "fault": fault})
    assert played.record["diagnosis_text"] == "Gout"
    assert played.facts == FACTS
    assert played.session["final_diagnosis"] == "Gout"
    assert played.session["synthesis_error"]
    assert "uric acid high" in played.session["synthesis_prompt"]
    assert "synthesis failed, the top of the differential was taken" in played.notes
    assert played.record["transcript"][-1]["details"]["synthesis"]["failed"]


async def test_without_a_differential_a_failed_synthesis_is_the_endpoints_fault(
    server: ScriptedServer, tmp_path: Path
) -> None:
    rules = [{"match": {"purpose": "synthesis"}, "fault": "500"}, doctor(reply="And what else?")]
    played = await play(server, tmp_path, *rules, total_inferences=2)
    assert (played.record["status"], played.record["fault"]["error"]) == ("model_failed", "server")
    assert len(played.facts) == 2


@pytest.mark.parametrize("fault", ["auth", "quota", "no_model"])
async def test_an_error_that_the_user_must_fix_stops_the_run(
    server: ScriptedServer, tmp_path: Path, fault: str
) -> None:
    server.control(steps=STEPS, rules=[{"match": {"purpose": "synthesis"}, "fault": fault}])
    path = write_rows(tmp_path / "cases.jsonl", osce(), osce(truth="Flu"))
    finished, written = await run_here(settings_for(server, tmp_path, dataset=str(path), doctor="uncertainty"))
    assert written == []
    assert finished.missing == 2
    assert finished.reason


async def test_an_endpoint_without_tools_gives_the_same_record_with_structured_output(
    server: ScriptedServer, tmp_path: Path
) -> None:
    usual = await play(server, tmp_path)
    (tmp_path / "b").mkdir()
    server.reset()
    played = await play(server, tmp_path / "b", doctor(fault="reject_tools"))
    assert (played.said, played.facts) == (AS_USUAL, FACTS)
    keys = ("steps", "accumulated_notes", "current_uncertainties", "final_diagnosis")
    assert {key: played.session[key] for key in keys} == {key: usual.session[key] for key in keys}
    assert "tool calls were refused, structured output is used instead" in played.notes
    assert ['"tools"' in body for body in played.asked()] == [True, False, False, False], "it is not tried again"


async def test_tool_calls_written_as_text_are_used_and_structured_output_takes_over(
    server: ScriptedServer, tmp_path: Path
) -> None:
    usual = await play(server, tmp_path)
    (tmp_path / "b").mkdir()
    server.reset()
    first = usual.session["steps"][0]
    uncertain = [{"diagnosis": item["diagnosis"]} for item in first["differential"]]
    given = {key: first[key] for key in ("new_information", "next_step_action")} | {"current_uncertainties": uncertain}
    written = f"```json\n{json.dumps({'name': 'diagnosis_step', 'arguments': given})}\n```\n\n\n"
    played = await play(server, tmp_path / "b", doctor(1, reply=written))
    assert (played.said, played.facts) == (AS_USUAL, FACTS)
    assert "the tool call was written as text" in played.notes
    assert ['"tools"' in body for body in played.asked()] == [True, False, False]
    assert played.record["usage"]["doctor"]["input_tokens"], "what was not sent costs nothing"


async def test_a_doctor_that_goes_round_in_circles_is_told_so_and_then_to_conclude(
    server: ScriptedServer, tmp_path: Path
) -> None:
    again = doctor([1, 2, 3, 4, 5, 6], **calls(step("nothing new", "ASK PATIENT: Since when?")))
    texts = load_prompts(None, "uncertainty")["uncertainty"].texts
    played = await play(server, tmp_path, again, steps=[STEPS[-1]])
    told = [
        "stuck" if texts["stuck"] in body else "repeated" if texts["repeated"] in body else ""
        for body in played.asked()
    ]
    assert told == ["", "", "repeated", "repeated", "repeated", "stuck", "stuck"]
    (tmp_path / "b").mkdir()
    server.reset()
    played = await play(server, tmp_path / "b", again, steps=[STEPS[-1]], dialogue="transcript")
    assert not any(texts["repeated"] in body for body in played.asked()), "slips are only counted there"


async def test_invalid_structured_output_is_not_said_to_the_patient(server: ScriptedServer, tmp_path: Path) -> None:
    rules = [doctor(1, fault="reject_tools"), doctor([3, 4], fault="invalid_schema_json")]
    played = await play(server, tmp_path, *rules)
    assert played.said[1] == OPEN_QUESTION
    assert played.record["diagnosis_text"] == "Gout"
    assert not any("no_such_field" in said for said in played.said)


async def test_a_server_with_chat_completions_only(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(responses=False)
    played = await play(server, tmp_path, doctor(2, fault="prose_instead_of_tool"))
    assert (played.said, played.facts) == (AS_USUAL, FACTS)
    assert {e["api"] for e in server.log()[1:]} == {"chat"}


async def test_an_empty_answer_after_a_faulty_call_keeps_the_call(server: ScriptedServer, tmp_path: Path) -> None:
    rules = [doctor(2, **calls(step("hot", "Does it throb?"))), doctor([3, 4], fault="empty")]
    played = await play(server, tmp_path, *rules)
    assert (played.said[1], played.facts[1]) == ("Does it throb?", "hot")


async def test_a_doctor_that_refuses_is_at_fault_and_keeps_its_steps(server: ScriptedServer, tmp_path: Path) -> None:
    played = await play(server, tmp_path, doctor([2], fault="refusal"))
    assert (played.record["status"], played.record["fault"]["error"]) == ("doctor_failed", "refused")
    assert played.facts == FACTS[:1]


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_a_message_and_complete_files(tmp_path: Path) -> None:
    """A limit on file size stands in for a full disk: a write is cut short in the same way."""
    cases = write_rows(tmp_path / "cases.jsonl", osce())  # a session with a large chart may be smaller than the chart
    command = ["run", "--dataset", str(cases), "--doctor", "uncertainty", "--quiet", "--output_dir"]
    clinic(*command, "whole", cwd=tmp_path)
    whole = only_run(tmp_path / "whole")
    (session,) = (whole / "diagnosis_sessions").iterdir()
    limit = session.stat().st_size // 2
    assert all((whole / name).stat().st_size < limit for name in ("cases.jsonl", "config.used.json"))
    script = f"""
        import resource, signal, sys
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        from agentclinic.cli import main
        main(sys.argv[1:])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *command, "out"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stdout + done.stderr
    folder = only_run(tmp_path / "out")
    assert records(folder) == []
    (cut,) = (folder / "diagnosis_sessions").iterdir()
    assert 0 < len(json.loads(cut.read_text())["steps"]) < len(json.loads(session.read_text())["steps"])


async def test_a_session_damaged_during_an_encounter_ends_it_with_an_error_and_is_kept(tmp_path: Path) -> None:
    """As when someone edits the file of an encounter in progress."""

    class Damaging(Scripted):
        async def reply(self, request: Request) -> Reply:
            if self.requests:
                (tmp_path / "s1.json").write_text("{")
            return await super().reply(request)

    arguments = [json.dumps(each) for each in STEPS]
    model = Damaging(*(Reply("", tool_calls=(ToolCall("1", "diagnosis_step", given),)) for given in arguments))
    meeting = Meeting(model, Scripted("Since Monday."))
    doctor = UncertaintyDoctor(
        assigned(meeting.case.door, model, 9, "uncertainty", "synthesis"),
        load_agent(SHIPPED).settings,
        model,
        SessionStore(tmp_path, of_run=True),
        "s1",
    )
    with pytest.raises(SessionError, match=r"s1\.json line 1: not a session .*repair or remove it"):
        await encounter(Seat(meeting.build(), 9), doctor)
    assert (tmp_path / "s1.json").read_text() == "{"


async def test_a_run_replaces_its_own_damaged_session_when_the_unit_is_played_again(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(steps=STEPS)
    path = write_rows(tmp_path / "cases.jsonl", osce())
    done, _ = await run_here(settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty"))
    (session,) = (done.folder / "diagnosis_sessions").iterdir()
    whole = session.read_text()
    session.write_text("{")
    (done.folder / "scenarios.jsonl").write_text("")
    again = await resume(plan_again(done.folder), done.folder, Progress())
    assert again.missing == 0
    assert session.read_text() == whole
    assert [path.name for path in session.parent.iterdir()] == [session.name]
