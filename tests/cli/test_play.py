"""People at a real terminal: whole cases as doctor and as patient, Ctrl-C, and what the screen shows."""

from __future__ import annotations

import io
import re
import termios
from pathlib import Path
from typing import Any

import pexpect
import pytest
from runs_support import CLINIC, environment, only_run, records
from scripted_server import LONG

WIDTH = 72
STYLE = re.compile(r"\x1b\[[0-9;]*[a-zA-Z]")


class Terminal:
    """A command on a terminal of its own, and everything that it showed."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self._shown = io.StringIO()
        self.child: Any = pexpect.spawn(
            CLINIC[0],
            [*CLINIC[1:], *arguments],
            cwd=str(cwd),
            env=environment(TERM="xterm"),
            dimensions=(40, WIDTH),
            encoding="utf-8",
            timeout=LONG,
        )
        self.child.logfile_read = self._shown
        self.child.delaybeforesend = None

    def type(self, prompt: str, line: str) -> None:
        self.child.expect_exact(prompt)
        self.child.sendline(line)

    def end(self) -> int:
        self.child.expect(pexpect.EOF)
        self.child.close()
        code: int = self.child.exitstatus
        return code

    @property
    def screen(self) -> str:
        return STYLE.sub("", self._shown.getvalue()).replace("\r\n", "\n")

    def said(self, speaker: str) -> list[str]:
        """What the screen shows someone to have said, put back on one line."""
        found = re.findall(rf"^{speaker}: +(.*(?:\n {{12}}.*)*)", self.screen, re.MULTILINE)
        return [" ".join(text.split()) for text in found]


@pytest.fixture(scope="module")
def as_doctor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Terminal, Path]:
    """One whole case as doctor; Ctrl-C in the middle of the next; and that one played on resume."""
    folder = tmp_path_factory.mktemp("doctor")
    first = Terminal("run", "--doctor-llm", "human", "--scenarios", "0,1", "--dataset", "OpenOSCE", cwd=folder)
    for prompt, line in (
        ("doctor 1/20> ", "What brings you in today?"),
        ("doctor 2/20> ", ":notes sudden onset"),
        ("doctor 2/20> ", ":differential myocardial infarction 70 %, aortic dissection 20 %"),
        ("doctor 2/20> ", ":test MRI of the toe"),
        ("doctor 3/20> ", ":undo"),
        ("doctor 2/20> ", ":test ECG and troponin"),
        ("doctor 3/20> ", ":diagnose Myocardial infarction"),
        ("doctor 1/20> ", "Where does it hurt?"),
    ):
        first.type(prompt, line)
    first.child.expect_exact("doctor 2/20> ")
    first.child.send("Is it wor")
    first.child.expect_exact("Is it wor")
    first.child.sendintr()
    first.child.expect_exact("agentclinic resume")
    echo = termios.tcgetattr(first.child.fileno())[3] & termios.ECHO
    assert first.end() == 130
    assert echo, "the terminal must be as it was before the prompt"
    return first, folder


@pytest.mark.slow
def test_a_whole_case_as_doctor_can_be_read_and_is_recorded(as_doctor: tuple[Terminal, Path]) -> None:
    terminal, folder = as_doctor
    screen = terminal.screen
    assert "━" not in screen, "no bar over the prompt"
    too_long = [line for line in screen.splitlines() if len(line) > WIDTH and "doctor 2/20> :diff" not in line]
    assert too_long == []
    assert terminal.said("Patient")[0] == "58-year-old man"
    assert terminal.said("Patient")[1].startswith("I've had a dreadful pain in the middle of my chest")
    assert terminal.said("Laboratory")[-1].startswith("Electrocardiogram: Findings: Sinus rhythm")
    assert "RESULTS:" not in screen
    assert "(taken back)" in screen
    assert "  - sudden onset\n" in screen
    assert "  - myocardial infarction 70%\n  - aortic dissection 20%\n" in screen
    after = screen.partition("=== The verdict: right ===")[2]
    for told in (
        "You said: Myocardial infarction\nThe truth: Acute myocardial infarction",
        "Key findings: 2 of 8 found\n  - ordered: Troponin: On arrival 46 ng/L",
        "  - MISSED: CT Angiography Chest: Ascending aorta 38 mm",
        "  - Allergies: No known drug allergies",
        "Not ordered: Vital Signs, ",
        "=== Case 2 of 2 ===\n\nYou are the doctor; :help lists the commands.",
    ):
        assert told in after
    (record,) = records(only_run(folder / "runs"))
    assert [turn["text"] for turn in record["transcript"] if turn["role"] == "doctor"] == [
        "What brings you in today?",
        "REQUEST TEST: ECG and troponin",
        "DIAGNOSIS READY: Myocardial infarction",
    ]
    assert record["transcript"][2]["notes"] == ["note: sudden onset"]
    assert [h["probability"] for h in record["differential"]["hypotheses"]] == [0.7, 0.2]
    assert record["differential"]["source"] == "stated"


@pytest.mark.slow
def test_after_ctrl_c_the_case_is_played_again(as_doctor: tuple[Terminal, Path]) -> None:
    _, folder = as_doctor
    again = Terminal("resume", str(only_run(folder / "runs")), cwd=folder)
    again.type("doctor 1/20> ", ":history")
    again.type("doctor 1/20> ", ":diagnose Gout")
    assert again.end() == 0
    assert "=== Case 2 of 2 ===" in again.screen
    assert "(nothing yet)" in again.screen
    assert "=== The verdict: wrong ===" in again.screen
    assert "Not ordered: " in again.screen
    assert [record["scenario_id"] for record in records(only_run(folder / "runs"))] == [0, 1]


@pytest.mark.slow
def test_a_whole_case_as_patient(tmp_path: Path) -> None:
    terminal = Terminal("run", "--patient-llm", "human", "--scenarios", "0", cwd=tmp_path)
    terminal.type("patient> ", ":script")
    terminal.type("patient> ", "My belly hurts a little.")
    terminal.type("patient> ", ":undo")
    terminal.type("patient> ", "My belly has hurt since yesterday.")
    while terminal.child.expect_exact(["patient> ", "=== The verdict"]) == 0:
        terminal.child.sendline("Yes.")
    assert terminal.end() == 0
    assert terminal.screen.count("Your script:\n  Demographics\n    - 23-year-old man\n") == 3
    assert "  Symptoms / Secondary Symptoms\n    - Nausea\n" in terminal.screen
    assert terminal.said("Doctor")[0].startswith("What brings you in today?")
    assert "The truth: Acute appendicitis" in terminal.screen
    assert "Not ordered: " in terminal.screen
    assert "and so did not say" not in terminal.screen, "no one knows which facts a person told"
    (record,) = records(only_run(tmp_path / "runs"))
    assert next(turn["text"] for turn in record["transcript"] if turn["role"] == "patient").startswith("My belly has")
