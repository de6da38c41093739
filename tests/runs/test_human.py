"""A person at the terminal, typing through an injected keyboard."""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from fakes import NEJM, Meeting, Scripted, assigned, case_of, plan_of
from scripted_server import LONG

from agentclinic.cases.model import AnswerKey
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.encounter import Clinic, Seat, Transcript, encounter
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import JudgeMode
from agentclinic.doctors.custom import CustomDoctor, DoctorView
from agentclinic.doctors.plain import ConfidencePayload, PlainDoctor, StatedDifferential
from agentclinic.doctors.uncertainty.agent_config import SHIPPED, load_agent
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import Session, SessionStore
from agentclinic.models.base import BadRequestError, Message, Purpose, Request
from agentclinic.results.record import Status
from agentclinic.runs.human import Human, Leave, Tape

pytestmark = pytest.mark.anyio


def typing(*lines: str, undo: bool = True) -> tuple[Human, io.StringIO, list[str]]:
    """A person who types these lines and then closes the terminal; what the terminal shows; its prompts."""
    screen, waiting, prompts = io.StringIO(), list(lines), list[str]()

    def read(prompt: str) -> str:
        prompts.append(prompt)
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    return Human(read, screen, undo=undo), screen, prompts


async def test_a_person_as_doctor_asks_tests_and_diagnoses_by_command() -> None:
    human, screen, prompts = typing("Where does it hurt?", ":test  Chest X-ray ", "", ":diagnose Migraine")
    transcript = await Meeting(human, Scripted("Here."), Scripted("clear")).hold()
    assert [t.text for t in transcript.turns if t.role == "doctor"] == [
        "Where does it hurt?",
        "REQUEST TEST: Chest X-ray",
        "DIAGNOSIS READY: Migraine",
    ]
    assert prompts == ["doctor 1/20> ", "doctor 2/20> ", "doctor 3/20> ", "doctor 3/20> "]
    shown = screen.getvalue()
    assert "Patient:    35-year-old woman\nObjective:  Assess a patient with headache.\n" in shown
    assert shown.count("Patient:    Here.\n") == shown.count("Laboratory: clear\n") == 1
    assert "Migraine" not in shown
    assert transcript.turns[0].usage is not None
    assert transcript.turns[0].usage.input_tokens == 0


async def test_a_person_can_also_type_the_control_tokens() -> None:
    human, _, _ = typing("DIAGNOSIS READY: Migraine")
    assert (await Meeting(human).hold()).diagnosis == "Migraine"


async def test_images_are_shown_by_their_address() -> None:
    human, screen, _ = typing(":images", "Does it itch?", ":diagnose Psoriasis")
    await Meeting(human, Scripted("Yes"), case=case_of(NEJM), images=True).hold()
    assert screen.getvalue().count(str(NEJM["image_url"])) == 1


async def test_the_last_turn_is_announced() -> None:
    human, screen, _ = typing("Hello?", ":diagnose Migraine")
    await Meeting(human, Scripted("Hi"), limit=2).hold()
    before, _, after = screen.getvalue().partition("Hi\n")
    assert "This is your last turn" not in before
    assert "This is your last turn" in after


async def test_help_history_and_mistyped_commands_use_no_turn() -> None:
    human, screen, _ = typing(
        ":history", ":undo", "Hello?", ":help", ":history", ":test", ":diagnose", ":tset CBC", ":diagnose Migraine"
    )
    transcript = await Meeting(human, Scripted("Hi there")).hold()
    assert transcript.num_turns == 2
    shown = screen.getvalue()
    assert "(nothing yet)" in shown
    assert "There is nothing to take back." in shown
    assert shown.count("take back your last turn") == 2
    assert "Doctor:     Hello?\nPatient:    Hi there\n" in shown
    assert ":test needs a name" in shown
    assert ":diagnose needs a name" in shown
    assert ":tset is not a command" in shown


async def test_a_command_without_its_colon_is_not_said_to_the_patient_unless_it_is_repeated() -> None:
    human, screen, _ = typing("quit", "Test my eyes?", "Test my eyes?", "Diagnose: Migraine", ":diagnose Migraine")
    transcript = await Meeting(human, Scripted("Please")).hold()
    assert [t.text for t in transcript.turns] == ["Test my eyes?", "Please", "DIAGNOSIS READY: Migraine"]
    shown = screen.getvalue()
    for meant in (":quit", ":test my eyes?", ":diagnose Migraine"):
        assert shown.count(f"Commands start with a colon: {meant}\n") == 1


async def test_a_doctor_takes_the_last_turn_back() -> None:
    human, _, prompts = typing("Wrong?", ":undo", "Right?", ":diagnose Migraine")
    meeting = Meeting(human, Scripted("no", "yes"))
    transcript = await meeting.hold(Tape())
    assert [t.text for t in transcript.turns] == ["Right?", "yes", "DIAGNOSIS READY: Migraine"]
    assert "Wrong?" not in meeting.patient_role.history.text
    assert prompts == ["doctor 1/20> ", "doctor 2/20> ", "doctor 1/20> ", "doctor 2/20> "]


async def test_a_person_as_patient_sees_the_script_and_answers() -> None:
    human, screen, _ = typing(":undo", ":script", "It throbs.", ":history", ":undo", "It pounds.", "Yes.")
    doctor = Scripted("REQUEST TEST: CBC", "How is it?", "Sick?", "Nauseous?", "DIAGNOSIS READY: Migraine")
    transcript = await Meeting(doctor, human, Scripted("13")).hold(Tape())
    assert [t.text for t in transcript.turns if t.role == "patient"] == ["It pounds.", "Yes."]
    shown = screen.getvalue()
    assert shown.count("throbbing headache") == 3  # at first, by command, and back at the first question
    assert "There is nothing to take back." in shown
    assert shown.count("Doctor:     How is it?\n") == 3  # asked, in the history, asked again
    assert shown.count("(The doctor orders: CBC)") == 2  # before the question and before it was asked again
    assert "Doctor:     (orders CBC)\nLaboratory: 13\n" in shown
    assert "Migraine" not in shown


@pytest.mark.parametrize("mode", ["cascade", "model", "original"])
async def test_a_person_as_judge_sees_answer_and_truth_and_says_yes_or_no(mode: JudgeMode) -> None:
    human, screen, prompts = typing("perhaps", "Y")
    said = JudgePayload("Torsion of the toe", "Gout", AnswerKey(accept=("Podagra",)), utterance="It is torsion!")
    verdict = await Judge(human, load_prompt("moderator"), mode).ask(said)
    assert (verdict.correct, verdict.decided_by) == (True, "person")
    assert screen.getvalue() == "\nDoctor:     It is torsion!\nTruth:      Gout; Podagra\n"
    assert len(prompts) == 2, "until it is an answer"
    with pytest.raises(Leave):
        await Judge(typing(":quit")[0], load_prompt("moderator"), mode).ask(said)


async def test_a_doctor_in_a_chat_sees_each_reply_once_and_none_of_the_prompts() -> None:
    human, screen, _ = typing("Where?", "Since when?", ":diagnose Migraine")
    meeting = Meeting(human, Scripted("Left.", "Monday."))
    clinic = meeting.build()
    doctor = PlainDoctor(assigned(meeting.case.door, human, 5))
    await encounter(Seat(clinic, 5), doctor)
    assert screen.getvalue().endswith("\n\nPatient:    Left.\n\n\nPatient:    Monday.\n\n")


async def test_notes_and_differentials_are_shown_and_go_with_the_turn_in_which_they_were_written() -> None:
    human, screen, _ = typing(
        ":notes", ":differential", ":notes old", "Where?",
        ":notes left side", ":differential migraine 60 %, tumour 10 %", "Wrong?", ":undo", ":notes",
        ":differential migraine 90 %", "Right?", ":diagnose Migraine", ":notes", ":diagnose Gout",
    )  # fmt: skip
    transcript = await Meeting(human, Scripted("Left.", "no", "yes")).hold(Tape())
    said = [turn for turn in transcript.turns if turn.role == "doctor"]
    assert [turn.notes for turn in said] == [("note: old",), ("note: left side",), ()]
    assert [turn.differential is not None for turn in said] == [False, True, False]
    assert transcript.differential is not None
    assert [(h.diagnosis, h.probability) for h in transcript.differential.hypotheses] == [("migraine", 0.9)]
    shown = screen.getvalue()
    assert "(no notes yet)" in shown
    assert "(no differential yet" in shown
    assert "(taken back)\n\nPatient:    Left.\n\n  - old\n  - left side\n  - migraine 90%\n" in shown
    await Meeting(human).hold(Tape())
    assert screen.getvalue().endswith("(no notes yet)\n"), "the next case starts with an empty pad"


async def test_a_person_is_asked_how_sure_they_are() -> None:
    human, _, prompts = typing("gout 60 %, cellulitis 20 %", "no idea")
    payload = ConfidencePayload(case_of(NEJM).door, (), "Gout")
    request = Request(Purpose.CONFIDENCE, (Message("user", "x"),), payload=payload)
    parsed = (await human.reply(request)).parsed
    assert isinstance(parsed, StatedDifferential)
    assert [(h.diagnosis, h.probability) for h in parsed.hypotheses] == [("gout", 0.6), ("cellulitis", 0.2)]
    assert (await human.reply(request)).parsed is None
    assert prompts[0].startswith("how sure are you?")


@pytest.mark.parametrize("lines", [(":quit",), ()], ids=["quit", "end of input"])
@pytest.mark.parametrize("role", ["doctor", "patient"])
async def test_a_person_leaves_by_command_or_by_closing_the_terminal(role: str, lines: tuple[str, ...]) -> None:
    human, _, _ = typing(*lines)
    meeting = Meeting(human) if role == "doctor" else Meeting(Scripted("Hello?"), human)
    with pytest.raises(Leave):
        await meeting.hold()


async def test_a_keyboard_that_breaks_is_not_waited_for_forever() -> None:
    def read(prompt: str) -> str:
        raise OSError("keyboard unplugged")

    with pytest.raises(OSError, match="unplugged"):
        await Meeting(Human(read, io.StringIO())).hold()


async def test_other_work_continues_while_a_person_thinks() -> None:
    asked, answered = threading.Event(), threading.Event()

    def read(prompt: str) -> str:
        asked.set()
        assert answered.wait(LONG)
        return ":diagnose Migraine"

    async def elsewhere() -> None:
        while not asked.is_set():
            await anyio.lowlevel.checkpoint()
        answered.set()

    async with anyio.create_task_group() as group:
        group.start_soon(elsewhere)
        transcript = await Meeting(Human(read, io.StringIO())).hold()
    assert transcript.status is Status.DIAGNOSED


async def test_a_person_cannot_play_the_laboratory() -> None:
    human, _, _ = typing("x")
    with pytest.raises(BadRequestError, match="can play the doctor, the patient or the judge, not the measurement"):
        await human.reply(Request(Purpose.MEASUREMENT, (Message("user", "x"),)))


async def test_a_patient_cannot_take_back_what_a_custom_doctor_remembers() -> None:
    """A user's program cannot be made to forget: the question is asked again instead."""

    class Program:
        said = 0

        def inference_doctor(self, question: str) -> str:
            self.said += 1
            return ["One?", "Two?", "DIAGNOSIS READY: Flu"][self.said - 1]

    human, screen, prompts = typing("1", ":undo", "2", undo=False)
    meeting = Meeting(Scripted(), human)
    doctor = CustomDoctor(lambda view: Program(), DoctorView(meeting.case), "mine")
    clinic = Clinic(meeting.case, meeting.patient_role, meeting.lab_role, meeting.prompts["doctor"])
    transcript = await encounter(Seat(clinic, 5), doctor)
    assert [t.text for t in transcript.turns] == ["One?", "1", "Two?", "2", "DIAGNOSIS READY: Flu"]
    assert "A custom doctor cannot go back." in screen.getvalue()
    assert len(prompts) == 3


@pytest.mark.parametrize("mode", ["human_doctor", "human_patient"])
def test_human_modes_play_one_scenario_at_a_time_and_say_so(mode: str) -> None:
    with pytest.warns(UserWarning, match="one scenario at a time; workers 8 is ignored"):
        plan = plan_of(inf_type=mode, workers=8)
    assert plan.settings.run.workers == 1
    role = mode.removeprefix("human_")
    assert getattr(plan.settings.run, f"{role}_llm") == "human"
    assert plan_of(inf_type=mode).people


def test_the_default_output_is_stdout() -> None:
    assert Human()._screen.out is sys.stdout


async def with_session(human: Human, meeting: Meeting, folder: Path) -> tuple[Transcript, Session]:
    """An encounter with a person as the uncertainty-aware doctor."""
    store = SessionStore(folder)
    tape = Tape()
    model = tape.wrap(human, "doctor")

    async def once() -> Transcript:
        doctor = UncertaintyDoctor(
            assigned(meeting.case.door, model, 9, "uncertainty", "synthesis"),
            load_agent(SHIPPED).settings,
            model,
            store,
            "s1",
        )
        return await encounter(Seat(meeting.build(tape), 9), doctor)

    return await tape.play(once), store.load("s1")


async def test_a_person_can_play_the_uncertainty_aware_doctor(tmp_path: Path) -> None:
    human, screen, prompts = typing(
        "Where?", "headache", ":help", "migraine 60 %, tumour 10 %",
        ":test CT", "on the left", "migraine 70 %, tumour 5 %",
        ":diagnose Migraine", "CT normal", "migraine 95 %", "Migraine",
    )  # fmt: skip
    transcript, session = await with_session(human, Meeting(human, Scripted("Left."), Scripted("normal")), tmp_path)
    said = [turn.text for turn in transcript.turns if turn.role == "doctor"]
    assert said == ["Where?", "REQUEST TEST: CT", "DIAGNOSIS READY: Migraine"]
    assert session.facts == ["headache", "on the left", "CT normal"]
    assert session.steps[2].next_step_action == "DIAGNOSIS READY: Migraine"
    assert prompts[-1] == "diagnosis> "
    assert "The facts you recorded:\n  - headache\n  - on the left\n  - CT normal" in screen.getvalue()


async def test_a_person_is_told_why_a_step_is_sent_back(tmp_path: Path) -> None:
    human, screen, _ = typing(
        ":diagnose Migraine", "headache", "migraine", "Where?", "headache", "migraine, tumour",
        ":diagnose Migraine", "left", "migraine", "Migraine",
    )  # fmt: skip
    transcript, session = await with_session(human, Meeting(human, Scripted("Left.")), tmp_path)
    assert transcript.num_turns == 2
    assert "It is too early to conclude" in screen.getvalue()
    assert len(session.steps) == 2


async def test_undo_also_takes_back_the_step_in_the_session(tmp_path: Path) -> None:
    human, _, _ = typing(
        "Wrong?", "headache", "migraine, tumour", "Next?", "oops", ":undo",
        "Right?", "headache for days", "migraine, flu", ":diagnose Migraine", "yes", "migraine", "Migraine",
    )  # fmt: skip
    transcript, session = await with_session(human, Meeting(human, Scripted("no", "yes")), tmp_path)
    assert [turn.text for turn in transcript.turns] == ["Right?", "yes", "DIAGNOSIS READY: Migraine"]
    assert session.facts == ["headache for days", "yes"]


async def test_a_person_may_leave_while_writing_notes(tmp_path: Path) -> None:
    human, _, _ = typing("Where?", ":quit")
    with pytest.raises(Leave):
        await with_session(human, Meeting(human), tmp_path)


async def test_nothing_that_is_shown_to_a_person_acts_on_the_terminal_or_ends_the_run() -> None:
    shown = io.BytesIO()
    waiting = ["How hot are you?", ":diagnose Flu"]
    human = Human(lambda _: waiting.pop(0), io.TextIOWrapper(shown, encoding="ascii", write_through=True))
    transcript = await Meeting(human, Scripted("\x1b]0;owned\x07\x1b[2J39 °C\r\x9b1A")).hold()
    assert transcript.diagnosis == "Flu"
    assert not set(shown.getvalue()) & set(b"\x1b\x07\r\x9b")
    assert rb"\u27e8U+001B\u27e9[2J39 \xb0C" in shown.getvalue()


async def test_the_menu_of_a_solvable_world_keeps_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "60")
    (case,) = load_cases("Solvable:chest-pain", seed=0, count=1)
    screen = Terminal()
    await Meeting(Human(lambda _: ":diagnose DEFER", screen), case=case).hold()
    shown = screen.getvalue().splitlines()
    assert "            - Sweating (1 min)" in shown
    long = next(
        place for place, line in enumerate(shown) if line.startswith("            - CT angiography of the aorta: ")
    )
    assert shown[long + 1].startswith("              "), "the rest of an item is indented"
    assert all(len(line) < 60 for line in shown[shown.index("            - Sweating (1 min)") :])
    assert "" in shown
