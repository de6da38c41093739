"""What commands print: no text acts on the terminal, and no closed stream ends a run."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from helpers import osce
from runs_support import AT_ENDPOINT, CLINIC, environment, only_run, point_at, records
from scripted_server import LONG, ScriptedServer

from agentclinic.cli import main
from agentclinic.cli.format import Stream
from agentclinic.results.run_cases import read_cases

ACTING = "\x1b]0;owned\x07\x1b[2JI have 41.7 degrees\r\x9b1A\u202e"
"""Sets the window's title, clears the screen, writes over a line and turns text around."""


def test_a_model_cannot_act_on_the_terminal_of_a_person_or_of_an_audit(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point_at(tmp_path, server)
    server.control(patient=ACTING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("How hot are you?\n:diagnose Flu\n"))
    person = ("--inf_type", "human_doctor", "--patient_llm", "scripted", "--simulator", "free", "--num_scenarios", "1")
    main(["run", *person, "--output_dir", "out"])
    played = capsys.readouterr().out
    main(["audit", str(only_run(tmp_path / "out")), "--list"])
    audited = capsys.readouterr().out
    main(["audit", str(only_run(tmp_path / "out")), "--json"])
    json.loads(capsys.readouterr().out)

    for shown in (played, audited):
        assert "41.7" in shown
        assert "⟨U+001B⟩[2J" in shown
        assert not set(shown) & set("\x1b\x07\r\x9b\u202e")


def test_lines_of_csv_keep_their_ends_and_rich_may_style() -> None:
    out = io.StringIO(newline="")
    stream = Stream(out)
    stream.write("a,b\r\n")
    stream.styled.write("\x1b[1mbold\x1b[0m")
    assert out.getvalue() == "a,b\r\n\x1b[1mbold\x1b[0m"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["reader gone", "closed"])
def test_a_run_goes_on_when_no_one_reads_what_it_says(way: str, tmp_path: Path) -> None:
    command = [*CLINIC, "run", "--num_scenarios", "3", "--output_dir", "out"]
    if way == "closed":
        command = ["sh", "-c", f"exec {shlex.join(command)} >&- 2>&-"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, cwd=tmp_path, env=environment(), stdout=writer, stderr=writer, timeout=LONG)
    os.close(writer)
    assert done.returncode == 0
    assert len(records(only_run(tmp_path / "out"))) == 3


def test_a_printed_command_can_be_pasted_whatever_the_folder_is_called(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point_at(tmp_path, server)
    server.fault("429_retry_after", seconds=86400)
    monkeypatch.chdir(tmp_path)
    output = "my runs; echo $HOME"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--num_scenarios", "2", "--output_dir", output, "--quiet", *AT_ENDPOINT])
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert "it asks to wait 24.0 hours" in said
    assert shlex.split(said.splitlines()[-1]) == ["agentclinic", "resume", f"{output}/{only_run(Path(output)).name}"]


def test_a_file_that_is_not_for_records_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    notes = Path("notes.txt")
    for flag in ("--record", "--output_file"):
        for content in ("my notes", "my notes\nmore", '{"a": 1}\nmy notes\n'):
            notes.write_text(content)
            with pytest.raises(SystemExit) as ended:
                main(["run", "--num_scenarios", "1", "--output_dir", "out", flag, str(notes)])
            assert ended.value.code == 2
            assert "notes.txt" in capsys.readouterr().err
            assert notes.read_text() == content
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--num_scenarios", "1", "--output_dir", "out", "--record", str(tmp_path)])
    assert not Path("out").exists()


@pytest.mark.slow
def test_cases_that_are_not_ascii_can_be_played_where_the_system_knows_only_ascii(tmp_path: Path) -> None:
    row = osce(truth="Ménière’s disease", objective="Assess a woman with “vertigo” – 37 °C.")
    (tmp_path / "fälle.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    (tmp_path / "other.json").write_text('{"run": {"output_dir": "läufe"}}', encoding="utf-8")
    plain = environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    def call(*flags: str) -> subprocess.CompletedProcess[str]:
        command = [*CLINIC, "run", "--dataset", "fälle.jsonl", "--total_inferences", "1", *flags]
        return subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=LONG)

    played = call("--inf_type", "human_doctor", "--output_dir", "runs")
    assert (played.returncode, "Traceback" in played.stderr) == (130, False), "no one is at the keyboard"
    assert "37 \\xb0C" in played.stdout
    assert call("--output_dir", "runs").returncode == 0
    (case,) = read_cases(sorted((tmp_path / "runs").iterdir())[-1])
    assert case.diagnosis == "Ménière’s disease"
    refused = call("--config", "other.json")
    assert (refused.returncode, refused.stderr) == (
        2, "Error: a file name cannot be written in this system's encoding, ascii; set LC_ALL=C.UTF-8\n"
    )  # fmt: skip
