"""Custom doctors: `FILE.py:Class`, a class or an instance, in real runs of one or several units."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM, OSCE, case_of, plan_of
from scripted_server import LONG, ScriptedServer

from agentclinic import evaluate
from agentclinic.cli import main
from agentclinic.clinic.doctor import Incoming, Utterance, utterance
from agentclinic.config import Given, OpenAISettings, RunSettings, Settings
from agentclinic.doctors.custom import DoctorFactory, DoctorView
from agentclinic.errors import AgentClinicError, ConfigError
from agentclinic.models import recording
from agentclinic.models.base import Message, Purpose, Reply, Request
from agentclinic.results.journal import read_records
from agentclinic.results.record import Record
from agentclinic.results.turn import Exchange, Hypothesis, Source, Turn, as_differential
from agentclinic.runs.build import Models
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.runs.progress import Progress

pytestmark = pytest.mark.anyio

HERE = Path(__file__).absolute()
PAGE = (HERE.parents[2] / "docs" / "custom-doctor.md").read_text(encoding="utf-8")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(body: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(body))
        return f"{path}:Mine"

    return write


async def played(doctor: str | object, **run: Any) -> Record:
    """One unit of the demonstration set with this doctor: a name, a class or an instance."""
    named = {"doctor": doctor} if isinstance(doctor, str) else {}
    settings = Settings(run=RunSettings(**{**named, "scenarios": "0", **run}), given=Given(flags=named))
    plan = make_plan(settings, doctor=None if isinstance(doctor, str) else doctor)
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
            return f"I heard {self.heard!r}. DIAGNOSIS READY: Gout"
"""


async def test_a_synchronous_doctor_leads_the_encounter(write: Any) -> None:
    record = await played(write(SYNC), total_inferences=7)
    assert record.status == "diagnosed"
    assert record.transcript is not None
    said = [turn.text for turn in record.transcript]
    assert said[0].startswith("Hello? ('Assess and diagnose a 23-year-old man")
    assert said[0].endswith("'builtin', 7, None, False)")
    assert said[4] == f"I heard {['', said[1], said[3]]!r}. DIAGNOSIS READY: Gout"
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


async def test_a_synchronous_method_may_return_an_awaitable(write: Any) -> None:
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


IN_THE_ORIGINALS_STYLE = """
    class Mine(DoctorAgentBase):
        def __init__(self, scenario, backend_str="x", max_infs=20, bias_present=None, img_request=False):
            self.scenario = scenario
            self.backend = backend_str
            self.MAX_INFS = max_infs
            self.bias_present = None if bias_present == "None" else bias_present
            self.img_request = img_request
            self.total_tokens = self.prompt_tokens = self.completion_tokens = 0
            self.reset()

        def reset(self):
            self.infs = 0
            self.agent_hist = ""
            self.presentation = self.scenario.examiner_information()

        def system_prompt(self):
            return f"Turn {self.infs + 1} of {self.MAX_INFS}. {self.presentation}"

        def inference_doctor(self, question, image_requested=False, memory_context=""):
            if self.infs == 0:
                return super().inference_doctor(question)  # the base class speaks, with this class's instructions
            answer, usage = query_model(self.backend, question, self.system_prompt(), return_usage=True)
            self.total_tokens += usage.total_tokens
            self.agent_hist += question + "\\n\\n" + answer + "\\n\\n"
            self.infs += 1
            assert CODE_DIR / "data" == DATA_DIR
            return answer
"""


async def test_a_doctor_in_the_style_of_the_originals_repository(write: Any, server: ScriptedServer) -> None:
    """It sets the attributes itself, and uses names that the original's loader puts into its module."""
    asked = {"match": {"purpose": "doctor"}, "reply": "What is wrong?"}
    server.control(rules=[asked, {"match": {"purpose": "query"}, "reply": "DIAGNOSIS READY: Gout"}])
    settings = Settings(
        run=RunSettings(doctor=write(IN_THE_ORIGINALS_STYLE), doctor_llm="some", scenarios="0", total_inferences=3),
        openai=OpenAISettings(base_url=server.base_url),
    )
    plan = make_plan(settings.model_copy(update={"given": Given(flags={"doctor": settings.run.doctor})}))
    async with Models(plan.settings) as models:
        record = await play(plan, plan.units[0], models)
    assert (record.status, record.diagnosis_text, record.fault) == ("diagnosed", "Gout", None)
    first, second = (json.dumps(body) for body in server.bodies())
    assert "Turn 1 of 3. Assess" in first
    assert "Turn 2 of 3. Assess" in second
    assert record.doctor_hist is not None
    assert record.doctor_hist.startswith("Doctor: What is wrong?")
    assert record.doctor_hist.endswith("DIAGNOSIS READY: Gout\n\n")


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("mine", "'mine' is not a doctor; write plain, uncertainty, prior_only"),
        ("mine.txt:Mine", "is not a doctor"),
        ("mine.py", "is not a doctor"),
        ("gone.py:Mine", "gone.py: cannot be read"),
        ("there.py:Other", "has no class 'Other'"),
        ("there.py:Idle", "Idle in .*there.py has no method inference_doctor.* or act"),
        ("python:Mine", "was passed to evaluate.*call evaluate.. again"),
        ("broken.py:Mine", r"broken.py cannot be imported\n.*\n    class Mine\(:\n[^T]*\nSyntaxError: "),
        ("exits.py:Mine", r"exits.py cannot be imported\nTraceback .*\n  File .exits.py., line 1[^C]*\nSystemExit: 3$"),
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
async def test_an_error_in_a_doctor_is_its_own_fault(write: Any, kind: str, body: str, message: str) -> None:
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


async def test_a_crash_is_in_the_record_with_its_place_and_its_traceback(write: Any) -> None:
    spec = write("""
        def helper(name):
            return {}[name]


        class Mine:
            def __init__(self, scenario):
                pass

            def inference_doctor(self, question):
                return helper("weights")
    """)
    record = await played(spec)
    assert record.fault is not None
    file = spec.rpartition(":")[0]
    assert f"{Path(file).name} line 3: KeyError: 'weights'" in record.fault.message
    trace = record.fault.traceback or ""
    assert trace.splitlines()[:2] == [
        "Traceback (most recent call last):",
        f'  File "{file}", line 11, in inference_doctor',
    ]
    assert f'  File "{file}", line 3, in helper\n    return {{}}[name]' in trace
    assert trace.endswith("KeyError: 'weights'\n")
    assert "custom.py" not in trace


def test_a_crash_shows_the_users_exceptions_and_calls_and_none_of_ours(write: Any, tmp_path: Path) -> None:
    spec = write("""
        class Mine:
            def __init__(self, scenario):
                self.scenario = scenario

            def inference_doctor(self, question):
                try:
                    self.scenario.exam_information()
                except PermissionError as error:
                    raise ValueError("nothing to go by") from error
    """)
    run = evaluate(spec, num_scenarios=1, output_dir=str(tmp_path / "out"), progress=False)
    fault = run.records[0].fault
    assert fault is not None
    lines = (fault.traceback or "").splitlines()
    file = spec.rpartition(":")[0]
    assert [line for line in lines if line.startswith("  File ")] == [
        f'  File "{file}", line {number}, in inference_doctor' for number in (8, 10)
    ]
    assert [line for line in lines if "Error: " in line] == [
        "PermissionError: exam_information is hidden from doctors: write REQUEST TEST: <test>",
        "ValueError: nothing to go by",
    ]


async def test_a_crash_is_shown_once_and_every_record_has_it(write: Any, tmp_path: Path) -> None:
    spec = write("""
        class Mine:
            def __init__(self, scenario):
                self.scenario = scenario

            def inference_doctor(self, question):
                raise ValueError("lost \\x1b[2J" + self.scenario.demographics)
    """)
    told: list[str] = []

    class Told(Progress):
        def say(self, message: str) -> None:
            told.append(message)

    plan = plan_of(doctor=spec, scenarios="0-2", output_dir=str(tmp_path / "out"))
    finished = await execute(plan, Told())
    (shown,) = told
    assert shown.startswith("demo-001: the doctor's program failed\nTraceback (most recent call last):\n")
    assert f'File "{spec.rpartition(":")[0]}", line 7, in inference_doctor' in shown
    assert "ValueError: lost \\x1b[2J23-year-old man" in shown, "no words act on the terminal"
    faults = [record.fault for record in read_records(finished.folder / "scenarios.jsonl")]
    found = [fault.traceback or "" for fault in faults if fault]
    assert len(found) == 3
    assert all("line 7, in inference_doctor" in trace for trace in found)
    assert len(set(found)) > 1, "each has its own words"


def test_a_doctor_may_say_how_sure_it_is(write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = write("""
        from agentclinic import Utterance


        class Mine:
            turn = 0

            def __init__(self, scenario):
                pass

            def inference_doctor(self, question):
                self.turn += 1
                if self.turn == 1:
                    return Utterance("Where?", differential={"Flu": 0.2, "Gout": 0.6}, confidence=None)
                if self.turn == 2:
                    return Utterance("Since when?", differential=["Gout", "Flu"])
                return Utterance("DIAGNOSIS READY: Gout", confidence=0.7)
    """)
    main(["run", "--doctor", spec, "--scenarios", "0-2", "--output-dir", str(tmp_path / "out"), "-q"])
    (folder,) = (tmp_path / "out").iterdir()
    record = next(read_records(folder / "scenarios.jsonl"))
    given = [turn.differential for turn in record.transcript or () if turn.role == "doctor"]
    assert [[(h.diagnosis, h.probability) for h in each.hypotheses] for each in given if each] == [
        [("Gout", 0.6), ("Flu", 0.2)],
        [("Gout", None), ("Flu", None)],
        [("Gout", 0.7)],
    ]
    assert record.differential == given[-1]
    assert {each.source for each in given if each} == {Source.STATED}
    capsys.readouterr()
    main(["score", str(folder), "--json"])
    (scored,) = json.loads(capsys.readouterr().out)["calibration"]["sources"]
    assert (scored["source"], scored["n"], scored["risk_coverage"][-1]["threshold"]) == ("stated", 3, 0.7)


@pytest.mark.parametrize(
    "given",
    [{"confidence": 70}, {"confidence": -0.1}, {"differential": {"Flu": 1.2}}, {"differential": "Flu"}, {"text": " "}],
)
def test_an_utterance_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Utterance: "):
        Utterance(**{"text": "DIAGNOSIS READY: Flu", **given})
    with pytest.raises(ValueError, match="not both"):
        Utterance("DIAGNOSIS READY: Flu", {"Flu": 1}, 0.5)


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


async def test_query_model_in_an_async_doctor_explains_itself_instead_of_hanging(write: Any) -> None:
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


async def test_a_doctor_may_extend_the_originals_doctor_agent(write: Any) -> None:
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


async def test_fifty_blocking_doctors_work_concurrently(write: Any, tmp_path: Path) -> None:
    """Each waits for all the others: with fewer threads than workers none would ever finish."""
    spec = write("""
        import threading

        everyone = threading.Barrier(50)

        class Mine:
            def __init__(self, scenario):
                pass

            def inference_doctor(self, question):
                everyone.wait(timeout=600)
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
                may_go_on.wait(timeout=600)
                try:
                    return query_model("builtin", "p", "s")
                except Exception as error:
                    complaint.append(error)
                finally:
                    tried.set()
    """)
    plan = plan_of(doctor=spec, scenarios="0")
    runtime = plan.settings.llm.runtime.model_copy(update={"encounter_timeout": 0.5})
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
    assert module.tried.wait(LONG)
    assert isinstance(module.complaint[0], AgentClinicError)
    assert "is over" in str(module.complaint[0])


def test_the_digest_is_of_the_files_content(write: Any) -> None:
    first = DoctorFactory(write(SYNC)).digest
    assert DoctorFactory(write(SYNC)).digest == first
    assert DoctorFactory(write(SYNC + "\n    # changed\n")).digest != first


# Classes and instances passed in Python.


class Counting:
    """A doctor with state: it counts what it was asked, and the encounters of this very object."""

    def __init__(self, scenario: DoctorView | None = None, max_infs: int = 0) -> None:
        self.asked: list[str] = []
        self.started = 0
        self.objective = scenario.examiner_information() if scenario else ""
        self.limit = max_infs

    def inference_doctor(self, question: str) -> str:
        self.asked.append(question)
        if len(self.asked) == 1:
            return "Where does it hurt?"
        return f"DIAGNOSIS READY: {self.objective} {self.limit} {self.started} {len(self.asked)}"


class Starting(Counting):
    def start(self, scenario: DoctorView) -> None:
        self.started += 1
        self.objective = scenario.demographics


async def test_a_class_is_built_for_each_encounter_with_the_originals_arguments() -> None:
    record = await played(Counting, total_inferences=7)
    assert record.diagnosis_text is not None
    assert record.diagnosis_text.startswith("Assess and diagnose a 23-year-old man")
    assert record.diagnosis_text.endswith(" 7 0 2")
    assert record.doctor == f"{HERE}:Counting", "a name that a run can be resumed with"


@pytest.mark.parametrize(("doctor", "said"), [(Counting(), " 0 0 2"), (Starting(), "23-year-old man 0 1 2")])
async def test_an_instance_is_copied_for_each_encounter_and_started_if_it_can_be(doctor: Counting, said: str) -> None:
    for _ in range(2):
        record = await played(doctor)
        assert record.final_doctor_dialogue == f"DIAGNOSIS READY: {said}"
        assert record.doctor == f"python:{type(doctor).__qualname__}"
    assert (doctor.asked, doctor.started) == ([], 0), "the user's own object is not changed"


async def test_a_class_inside_a_function_works_but_its_run_cannot_be_resumed() -> None:
    class Inner:
        def __init__(self, scenario: DoctorView) -> None: ...

        def inference_doctor(self, question: str) -> str:
            return "DIAGNOSIS READY: Flu"

    record = await played(Inner)
    assert record.diagnosis_text == "Flu"
    assert (record.doctor or "").startswith("python:test_a_class_inside_a_function")


class Doubting:
    """A doctor with our own interface, which states a differential."""

    def __init__(self, scenario: DoctorView) -> None:
        self.seen: list[tuple[str, int, bool]] = []

    async def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> tuple[Turn, ...]:
        self.seen.append((incoming.speaker, len(exchanges), last))
        text = f"DIAGNOSIS READY: {self.seen}" if last else "REQUEST TEST: Vital signs"
        differential = as_differential(
            Source.STATED, [Hypothesis(diagnosis="Flu", probability=0.2), Hypothesis(diagnosis="Gout", probability=0.6)]
        )
        thought = Turn(turn=turn, role="planner", text="thinking aloud")
        return thought, utterance(Reply(text, differential=differential), turn=turn)


async def test_a_doctor_with_act_states_a_differential_and_may_add_side_work() -> None:
    record = await played(Doubting, total_inferences=2)
    assert record.final_doctor_dialogue == f"DIAGNOSIS READY: {[('', 0, False), ('Measurement', 1, True)]}"
    assert [turn.role for turn in record.transcript or ()] == ["planner", "doctor", "measurement", "planner", "doctor"]
    assert record.num_turns == 2
    assert record.differential is not None
    assert [(h.diagnosis, h.probability) for h in record.differential.hypotheses] == [("Gout", 0.6), ("Flu", 0.2)]
    assert record.doctor_hist.startswith("Doctor: REQUEST TEST: Vital signs\n\nMeasurement: RESULTS:")


class Answering:
    """A doctor with a synchronous `act` that returns what it was given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, incoming: Incoming, exchanges: tuple[Exchange, ...], **_: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer", ["DIAGNOSIS READY: Flu", utterance(Reply("DIAGNOSIS READY: Flu"), turn=1)], ids=["text", "a turn"]
)
async def test_act_may_be_synchronous_and_return_text_or_one_turn(answer: Any) -> None:
    assert (await played(Answering(answer))).diagnosis_text == "Flu"


ASIDE = Turn(turn=1, role="planner", text="hm")
OWN = utterance(Reply("Where?"), turn=1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "act must return text, an Utterance, or turns"),
        ("  ", "act must return text, an Utterance, or turns"),
        ((), "act must return text, an Utterance, or turns"),
        ((OWN, "Where?"), "act must return text, an Utterance, or turns"),
        ([OWN], "act must return text, an Utterance, or turns"),
        ((OWN, ASIDE), "side work, then the doctor's own"),
        ((OWN, OWN), "side work, then the doctor's own"),
        ((ASIDE.model_copy(update={"role": "patient"}), OWN), "side work, then the doctor's own"),
        (utterance(Reply("Where?"), turn=3), "turns numbered 1"),
        (KeyError("weights"), "KeyError: 'weights'"),
    ],
    ids=[
        "nothing",
        "blank",
        "no turns",
        "mixed",
        "a list",
        "not last",
        "two of its own",
        "the patient's",
        "another turn",
        "an exception",
    ],
)
async def test_an_error_in_act_or_an_unusable_result_is_the_doctors_fault(answer: Any, message: str) -> None:
    record = await played(Answering(answer))
    assert (record.status, record.num_turns) == ("doctor_failed", 0)
    assert record.fault is not None
    assert record.fault.error == "doctor_program"
    assert message in record.fault.message
    assert "python:Answering" in record.fault.message


@pytest.mark.parametrize("doctor", [object(), dict, 7])
def test_an_object_without_the_interface_is_refused_before_anything_is_played(doctor: object) -> None:
    with pytest.raises(ConfigError, match=r"has no method inference_doctor\(question\) or act"):
        make_plan(Settings(run=RunSettings(scenarios="0")), doctor=doctor)


async def test_the_doctor_with_act_on_the_docs_page_works() -> None:
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def act" in block]
    names: dict[str, Any] = {"__name__": "page"}
    exec(code, names)
    record = await played(names["Doubting"], total_inferences=2)
    assert (record.diagnosis_text, record.num_turns) == ("Gout", 2)
    assert record.differential is not None
    assert record.differential.hypotheses[0].probability == 0.6
