"""A user's own doctor, `FILE.py:Class`, through real runs of one or several units."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM, OSCE, case_of, plan_of

from agentclinic import sync_bridge
from agentclinic.doctors.custom import DoctorFactory, DoctorView
from agentclinic.errors import AgentClinicError, ConfigError
from agentclinic.models import recording
from agentclinic.models.base import Message, Purpose, Request
from agentclinic.results.record import Record
from agentclinic.runs.build import Models
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.runs.progress import Progress
from agentclinic.scoring.outcome import RunningSummary

pytestmark = pytest.mark.anyio


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(body: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(body))
        return f"{path}:Mine"

    return write


async def played(spec: str, **run: Any) -> Record:
    """One unit of the demonstration set with this doctor."""
    plan = plan_of(**{"doctor": spec, "scenarios": "0", **run})
    async with Models(plan.settings) as models:
        return await play(plan, plan.units[0], models)


SYNC = """
    class Mine:
        def __init__(self, scenario, backend_str, max_infs, bias_present=None, img_request=False):
            self.given = (scenario.examiner_information(), backend_str, max_infs, bias_present, img_request)
            self.heard = []

        def inference_doctor(self, question):
            self.heard.append(question)
            if len(self.heard) == 1:
                return f"Hello? {self.given!r}"
            if len(self.heard) == 2:
                return "REQUEST TEST: Vital Signs"
            return f"DIAGNOSIS READY: {self.heard!r}"
"""


async def test_a_synchronous_doctor_leads_the_encounter(write: Any) -> None:
    record = await played(write(SYNC), total_inferences=7)
    assert record.status == "diagnosed"
    assert record.transcript is not None
    said = [turn.text for turn in record.transcript]
    assert said[0].startswith("Hello? ('Assess and diagnose a 23-year-old man")
    assert said[0].endswith("'builtin', 7, None, False)")
    assert said[4] == f"DIAGNOSIS READY: {['', said[1], said[3]]!r}"
    assert said[3].startswith("RESULTS:")
    assert record.doctor_hist.startswith("Doctor: Hello?")
    assert record.doctor_hist.count("\n\n") == 5


async def test_an_async_doctor_leads_the_encounter(write: Any) -> None:
    spec = write("""
        import asyncio

        class Mine:
            agent_hist = "my own notes"

            def __init__(self, scenario):
                pass

            async def inference_doctor(self, question):
                await asyncio.sleep(0)
                return "DIAGNOSIS READY: Acute appendicitis"
    """)
    record = await played(spec)
    assert (record.status, record.correct, record.num_turns) == ("diagnosed", True, 1)
    assert record.doctor_hist == "my own notes"
    assert record.usage is not None
    assert record.usage["doctor"]["input_tokens"] is None


async def test_a_plain_method_that_returns_an_awaitable_works_too(write: Any) -> None:
    spec = write("""
        class Mine:
            def __init__(self, scenario):
                pass

            def inference_doctor(self, question):
                return self.later()

            async def later(self):
                return "DIAGNOSIS READY: Flu"
    """)
    assert (await played(spec)).diagnosis_text == "Flu"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("mine", "'mine' is not a doctor; write plain, prior_only"),
        ("mine.txt:Mine", "is not a doctor"),
        ("mine.py", "is not a doctor"),
        ("gone.py:Mine", "gone.py cannot be read"),
        ("there.py:Other", "has no class 'Other'"),
        ("there.py:Idle", "Idle in .*there.py has no method inference_doctor"),
        ("broken.py:Mine", "broken.py cannot be imported .SyntaxError"),
        ("exits.py:Mine", "exits.py cannot be imported .SystemExit"),
    ],
)
def test_a_doctor_that_cannot_be_loaded_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.py").write_text("class Idle:\n    pass\n")
    Path("broken.py").write_text("class Mine(:\n")
    Path("exits.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(ConfigError, match=complaint):
        plan_of(doctor=spec)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('lost my mind')", "ValueError: lost my mind"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("next(iter(()))", "StopIteration"),
        ("return None", "inference_doctor returned NoneType, not text"),
        ("return ''", "inference_doctor returned an empty text"),
        ("return '  '", "inference_doctor returned an empty text"),
        ("return ['a']", "inference_doctor returned list, not text"),
        ("self.scenario.patient_information()", "PermissionError: patient_information is hidden"),
        ("self.scenario.exam_information()", "PermissionError: exam_information is hidden"),
        ("self.scenario.diagnosis_information()", "PermissionError: diagnosis_information is hidden"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_what_a_doctor_does_wrong_is_its_own_fault(write: Any, kind: str, body: str, message: str) -> None:
    spec = write(f"""
        class Mine:
            def __init__(self, scenario):
                self.scenario = scenario

            {kind} inference_doctor(self, question):
                {body}
    """)
    record = await played(spec)
    assert (record.status, record.correct, record.num_turns) == ("doctor_failed", False, 0)
    assert record.fault is not None
    assert (record.fault.role, record.fault.error) == ("doctor", "doctor_program")
    assert message in record.fault.message
    assert spec in record.fault.message


async def test_a_constructor_that_raises_is_the_doctors_fault(write: Any) -> None:
    spec = write("""
        class Mine:
            def __init__(self, scenario):
                raise KeyError("no weights")

            def inference_doctor(self, question):
                return "never"
    """)
    record = await played(spec)
    assert record.status == "doctor_failed"
    assert record.fault is not None
    assert "KeyError: 'no weights'" in record.fault.message


def test_the_view_shows_the_door_and_nothing_of_the_chart() -> None:
    view = DoctorView(case_of(OSCE))
    assert view.examiner_information() == "Assess a patient with headache."
    assert view.demographics == "35-year-old woman"
    assert "throbbing" not in repr(vars(view))
    assert "Migraine" not in repr(vars(view))
    assert DoctorView(case_of(NEJM)).has_images
    assert DoctorView(case_of(NEJM)).image_url is None


async def test_the_image_flag_and_address_come_with_the_images_and_stay(write: Any, tmp_path: Path) -> None:
    spec = write("""
        class Mine:
            def __init__(self, scenario, **everything):
                self.scenario, self.told = scenario, []
                assert everything["img_request"] is True

            def inference_doctor(self, question, image_requested=False):
                self.told.append((image_requested, self.scenario.image_url))
                if len(self.told) == 4:
                    return f"DIAGNOSIS READY: {self.told}"
                return "REQUEST IMAGES" if len(self.told) == 2 else "Does it itch?"
    """)
    (tmp_path / "nejm.jsonl").write_text(json.dumps(NEJM) + "\n")
    record = await played(spec, dataset=str(tmp_path / "nejm.jsonl"), doctor_image_request=True)
    shown = (True, NEJM["image_url"])
    assert record.final_doctor_dialogue == f"DIAGNOSIS READY: {[(False, None), (False, None), shown, shown]}"


async def test_query_model_goes_through_the_runs_models_and_is_recorded(write: Any, tmp_path: Path) -> None:
    """From the constructor, from a synchronous method, and from a thread that an async method started."""
    old = tmp_path / "old.jsonl"
    bodies = {
        "sync": "def inference_doctor(self, question): return query_model(self.backend, 'next?', 'be brief')",
        "async": (
            "async def inference_doctor(self, question): "
            "return await asyncio.to_thread(query_model, self.backend, 'next?', 'be brief')"
        ),
    }
    for kind, body in bodies.items():
        spec = write(
            f"""
            import asyncio
            from agentclinic import query_model

            class Mine:
                def __init__(self, scenario, backend_str):
                    self.backend = backend_str
                    self.plan = query_model(self.backend, 'plan?', 'be brief')

                {body}
            """,
            f"{kind}.py",
        )
        answers = {"plan?": ["Ask."], "next?": ["Hello?", "DIAGNOSIS READY: Acute appendicitis"]}
        write_recording(old, plan_of(scenarios="0").units[0].recording, answers)
        record = await played(spec, doctor_llm=f"replay:{old}", record=str(tmp_path / f"new-{kind}.jsonl"))
        assert (record.status, record.num_turns, record.correct) == ("diagnosed", 2, True), record.fault
        entries = [json.loads(line) for line in (tmp_path / f"new-{kind}.jsonl").read_text().splitlines()]
        asked = [e["request"] for e in entries if e["request"]["purpose"] == "query"]
        assert [e["messages"][1]["content"] for e in asked] == ["plan?", "next?", "next?"]
        assert asked[1]["messages"][0]["content"] == "be brief"
        assert record.usage is not None
        assert record.usage["doctor"]["requests"] == 3
        assert record.usage["doctor"]["input_tokens"] == 30


def write_recording(path: Path, unit: str, answers: dict[str, list[str]]) -> None:
    with path.open("w") as file:
        for prompt, texts in answers.items():
            recording.enter_unit(unit)
            for text in texts:
                request = Request(Purpose.QUERY, (Message("system", "be brief"), Message("user", prompt)))
                name, key, n = recording._place(request, "test")
                usage = {"input_tokens": 10, "output_tokens": 1, "cached_tokens": 0, "reasoning_tokens": 0}
                entry = {"unit": name, "key": key, "n": n, "reply": {"text": text, "usage": usage}}
                file.write(json.dumps(entry) + "\n")


async def test_a_model_that_fails_inside_a_doctor_is_not_the_doctors_fault(write: Any, tmp_path: Path) -> None:
    spec = write("""
        from agentclinic import query_model

        class Mine:
            def __init__(self, scenario, backend_str):
                self.backend = backend_str

            def inference_doctor(self, question):
                return query_model(self.backend, "p", "s")
    """)
    (tmp_path / "empty.jsonl").write_text("")
    record = await played(spec, doctor_llm=f"replay:{tmp_path / 'empty.jsonl'}")
    assert record.status == "model_failed"
    assert record.fault is not None
    assert (record.fault.role, record.fault.error) == ("doctor", "not_recorded")


async def test_a_door_called_in_an_async_doctor_explains_itself_instead_of_hanging(write: Any) -> None:
    spec = write("""
        from agentclinic import query_model

        class Mine:
            def __init__(self, scenario):
                pass

            async def inference_doctor(self, question):
                return query_model("builtin", "p", "s")
    """)
    record = await played(spec)
    assert record.status == "doctor_failed"
    assert record.fault is not None
    assert "called from inside a coroutine" in record.fault.message


async def test_a_doctor_may_build_on_the_seeds_doctor_agent(write: Any) -> None:
    spec = write("""
        from agentclinic import DoctorAgent

        class Mine(DoctorAgent):
            def inference_doctor(self, question, image_requested=False):
                return super().inference_doctor(question, image_requested)
    """)
    record = await played(spec)
    assert (record.status, record.correct) == ("diagnosed", True)
    assert record.doctor_hist.startswith("Doctor: ")
    assert "Patient: " in record.doctor_hist


class Quiet:
    def start(self, total: int, done: RunningSummary) -> None: ...

    def finished(self, running: RunningSummary) -> None: ...

    def say(self, message: str) -> None: ...

    def stop(self) -> None: ...


async def test_fifty_blocking_doctors_work_at_the_same_time(write: Any, tmp_path: Path) -> None:
    """Each waits for all the others: with fewer threads than workers none would ever finish."""
    spec = write("""
        import threading

        everybody = threading.Barrier(50)

        class Mine:
            def __init__(self, scenario):
                pass

            def inference_doctor(self, question):
                everybody.wait(timeout=30)
                return "DIAGNOSIS READY: Flu"
    """)
    row = json.dumps({"OSCE_Examination": OSCE})
    (tmp_path / "one.jsonl").write_text(row + "\n")
    plan = plan_of(
        doctor=spec, dataset=str(tmp_path / "one.jsonl"), repeats=50, workers=50, output_dir=str(tmp_path / "runs")
    )
    finished = await execute(plan, Progress())
    assert finished.summary.outcomes.get("doctor_failed", 0) == 0
    assert finished.missing == 0


async def test_a_doctor_that_hangs_loses_by_time_and_may_not_ask_models_afterwards(write: Any) -> None:
    spec = write("""
        import threading
        from agentclinic import query_model

        may_go_on, tried = threading.Event(), threading.Event()
        complaint = []

        class Mine:
            def __init__(self, scenario):
                pass

            def inference_doctor(self, question):
                may_go_on.wait(timeout=30)
                try:
                    return query_model("builtin", "p", "s")
                except Exception as error:
                    complaint.append(error)
                finally:
                    tried.set()
    """)
    plan = plan_of(doctor=spec, scenarios="0")
    runtime = plan.settings.llm.runtime.model_copy(update={"encounter_timeout": 0.05})
    settings = plan.settings.model_copy(update={"llm": plan.settings.llm.model_copy(update={"runtime": runtime})})
    plan = make_plan(settings)
    async with Models(plan.settings) as models:
        record = await play(plan, plan.units[0], models)
    assert record.status == "doctor_failed"
    assert record.fault is not None
    assert record.fault.error == "encounter_timeout"
    assert plan.custom_doctor is not None
    module = sys.modules[plan.custom_doctor._source.__module__]
    module.may_go_on.set()
    assert module.tried.wait(timeout=30)
    assert isinstance(module.complaint[0], AgentClinicError)
    assert "is over" in str(module.complaint[0])


def test_a_doctor_that_hangs_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    script = """
        import anyio, threading
        from agentclinic import sync_bridge

        async def main():
            with anyio.move_on_after(0.01):
                await sync_bridge.in_thread(threading.Event().wait)

        anyio.run(main)
        print("over")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("over\n", "")


async def test_in_thread_keeps_context_and_passes_exceptions_on() -> None:
    mood: ContextVar[str] = ContextVar("mood", default="unknown")
    mood.set("good")
    assert await sync_bridge.in_thread(mood.get) == "good"
    assert await sync_bridge.in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await sync_bridge.in_thread(lambda: 1 // 0)


def test_the_doctors_file_is_known_by_its_content(write: Any) -> None:
    first = DoctorFactory(write(SYNC)).digest
    assert DoctorFactory(write(SYNC)).digest == first
    assert DoctorFactory(write(SYNC + "\n    # changed\n")).digest != first
