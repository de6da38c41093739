"""The study of stress: the same cases at every dose, what changes per level, and whether the doctor asked again."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_support import Json, record
from runs_support import asked, lines, own_cases, settings_for
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.cli.stress import stress_command
from agentclinic.config import TRAITS, Settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.stress import (
    Persisted,
    persisted,
    plan_stress,
    read_levels,
    read_traits,
    slope,
    stress_report,
)
from agentclinic.results.record import Record

ENDPOINT_DOCTOR = {f"{role}_llm": "builtin" for role in ("patient", "measurement", "moderator")}
INSISTENT = """
QUESTIONS = ["What brings you in today?", "When did this start?", "What medicines do you take?",
             "Do you smoke, drink or take drugs?", "Do you have any dyspnea or edema?"]


class Once:
    times = 1

    def __init__(self, scenario):
        self.left = [question for question in QUESTIONS for _ in range(self.times)]

    def inference_doctor(self, question):
        return self.left.pop(0) if self.left else "DIAGNOSIS READY: Gout"


class Thrice(Once):
    times = 3
"""


def builtin(tmp_path: Path, cases: int = 6, **run: Any) -> Settings:
    """Our own cases in the builtin clinic, a few turns each."""
    data = tmp_path / f"{cases}" / "own_cases.jsonl"
    given = {"dataset": str(data if data.exists() else own_cases(data.parent, cases)), "total_inferences": 6, **run}
    return settings_for(None, tmp_path / "unused", **given)


def studied(folder: Path, given: Settings, traits: str = "recall,disclosure", levels: str = "0,3", **more: Any) -> Json:
    """Play a study to its end; what it wrote."""
    command = inspect.unwrap(stress_command)  # without the flags: the settings are given here
    command(read=lambda: given, traits=traits, levels=levels, output=folder, quiet=True, **more)
    report: Json = json.loads((folder / "study.json").read_text())
    return report


def responses(report: Json, measure: str) -> dict[str, Json]:
    return {each["dose"]: each for each in report["responses"] if each["measure"] == measure}


def rewrite(folder: Path, change: Callable[[Json], Json]) -> None:
    """Change the records of an arm; without their checksums they are taken as they are."""
    path = folder / "scenarios.jsonl"
    kept = [{key: each[key] for key in each if key not in ("checksum", "timing")} for each in lines(path)]
    path.write_text("".join(json.dumps(change(each)) + "\n" for each in kept))


def test_every_arm_plays_the_same_cases_and_only_the_dose_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    report = studied(folder, builtin(tmp_path), together=True)
    printed = capsys.readouterr().out
    assert printed == (folder / "study.md").read_text()
    arms = {path.name: lines(path / "scenarios.jsonl") for path in (folder / "runs").iterdir()}
    doses = {name: played[0]["patient_traits"] for name, played in arms.items()}
    assert doses == {
        "level_0": None,
        "recall_3": {"recall": 3},
        "disclosure_3": {"disclosure": 3},
        "all_together_3": {"recall": 3, "disclosure": 3},
    }
    units = [{(each["case_hash"], each["seed"]) for each in played} for played in arms.values()]
    assert units == [units[0]] * 4
    assert len(units[0]) == 6
    assert [each["dose"] for each in report["persistence"]] == ["recall", "disclosure", "all together"]
    assert report["persistence"][0]["facts"] > 0, "recall at level 3 withholds or blurs something"
    assert set(responses(report, "accuracy")) == {"recall", "disclosure", "all together"}
    for part in ("Change per level", "Accuracy at each level", "Did the doctor ask again?", "not fitted to real"):
        assert part in printed

    before = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    assert studied(folder, builtin(tmp_path), together=True) == report
    more = studied(folder, builtin(tmp_path), traits="recall", levels="2,3")
    assert {path: path.read_bytes() for path in before} == before, "what is there is not played again"
    assert more["levels"] == [0, 2, 3]
    assert (folder / "runs" / "recall_2").is_dir()
    with pytest.raises(InputError, match=r"was started with other settings \(run.seed\)"):
        studied(folder, builtin(tmp_path, seed=4))


def test_slopes_are_those_of_the_cases_and_clear_only_after_holm(tmp_path: Path) -> None:
    folder, given = tmp_path / "study", builtin(tmp_path, cases=12, total_inferences=2)
    studied(folder, given, traits="recall,literacy", levels="0,1,2")
    base = {each["case_hash"]: each["num_turns"] for each in lines(folder / "runs" / "level_0" / "scenarios.jsonl")}
    order = sorted(base)

    def dosed(level: int) -> Callable[[Json], Json]:
        def change(each: Json) -> Json:
            place = order.index(each["case_hash"])
            turns = base[each["case_hash"]] + (2 + place % 2) * level
            return {**each, "num_turns": turns, "correct": False if place < level else each["correct"]}

        return change

    for level in (1, 2):
        rewrite(folder / "runs" / f"recall_{level}", dosed(level))
    report = studied(folder, given, traits="recall,literacy", levels="0,1,2")
    turns = responses(report, "turns")["recall"]
    assert turns["slope"]["value"] == pytest.approx(2.5)
    assert 2 < turns["slope"]["low"] < 2.5 < turns["slope"]["high"] < 3
    assert [round(at["difference"]["value"], 6) for at in turns["levels"][1:]] == [2.5, 5.0]
    assert turns["clear"]
    assert turns["p"] < turns["p_holm"] < 0.05
    tested = [each for each in report["responses"] if not each["unchanged"]]
    assert all(each["p_holm"] >= each["p"] for each in tested)
    text = (folder / "study.md").read_text()
    assert "recall. Clear change per level: turns +2.50 (" in text
    assert "Not shown does not mean no effect" in text
    assert "no effect:" not in text.replace("Not shown does not mean no effect:", "")


def test_cases_that_belong_together_count_as_one_in_the_test(tmp_path: Path) -> None:
    folder, given = tmp_path / "study", builtin(tmp_path)
    studied(folder, given, traits="recall", levels="0,1")
    rewrite(folder / "runs" / "level_0", lambda each: {**each, "num_turns": 4})
    rewrite(folder / "runs" / "recall_1", lambda each: {**each, "num_turns": 6})
    report = studied(folder, given, traits="recall", levels="0,1")
    assert (report["cases"], report["clusters"]) == (6, 3), "three pairs of twins"
    turns = responses(report, "turns")["recall"]
    assert (turns["slope"]["value"], turns["p"]) == (2.0, 2 / 2**3)
    assert not turns["clear"]


def test_a_measure_counts_only_where_every_level_has_it(tmp_path: Path) -> None:
    folder, given = tmp_path / "study", builtin(tmp_path)
    studied(folder, given, traits="recall", levels="0,1")

    def without(each: Json) -> Json:
        said = [{**turn, "differential": None} for turn in each["transcript"]]
        return {**each, "differential": None, "transcript": said} if each["scenario_id"] < 2 else each

    rewrite(folder / "runs" / "recall_1", without)
    report = studied(folder, given, traits="recall", levels="0,1")
    assert responses(report, "Brier score of the truth")["recall"]["cases"] == 4
    assert responses(report, "turns")["recall"]["cases"] == 6
    assert "Brier score of the truth: 4 of 6 cases have one at every level." in (folder / "study.md").read_text()


def test_a_slope_is_least_squares_over_the_levels() -> None:
    assert slope([(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0)]) == pytest.approx(1.0)
    assert slope([(0, 1.0), (3, 0.0)]) == pytest.approx(-1 / 3)
    assert slope([(0, 0.0), (1, 0.0), (2, 0.0), (3, 1.0)]) == pytest.approx(0.3), "1.5 · 1 ÷ 5"


def test_a_doctor_that_asks_again_gets_more_facts_exactly(tmp_path: Path) -> None:
    (tmp_path / "insistent.py").write_text(INSISTENT)
    found = {}
    for name in ("Once", "Thrice"):
        given = builtin(tmp_path, doctor=f"{tmp_path / 'insistent.py'}:{name}", total_inferences=20)
        report = studied(tmp_path / name, given, traits="recall,literacy", levels="3")
        found[name] = {each["dose"]: each for each in report["persistence"]}
    once, thrice = found["Once"], found["Thrice"]
    assert once["recall"]["facts"] > 0
    assert thrice["recall"]["asked_again"]["value"] > 0.8, "all but what came up in the last of three questions"
    assert thrice["recall"]["exact"]["value"] > 0.8
    assert once["recall"]["exact"]["value"] < 0.5
    assert thrice["literacy"]["misunderstood"] > 0
    assert thrice["literacy"]["rephrased"]["value"] < 0.1, "the same words again are not other words"


HELD: Json = {"path": "P/a", "reason": "recall: not exact"}
STRANGE: Json = {"path": "P/a", "reason": "literacy: word not known"}


def told(*replies: Json) -> Record:
    """A record in which the patient gives these replies; each has one part."""
    transcript = [
        turn
        for number, reply in enumerate(replies, start=1)
        for turn in (
            {"turn": number, "role": "doctor", "text": "And?", "action": "question"},
            {
                "turn": number,
                "role": "patient",
                "text": "Well.",
                "disclosures": [{"topic": "x", "provenance": "chart", **reply}],
            },
        )
    ]
    return Record.model_validate(record(transcript=transcript))


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([], Persisted(False, 0, 0, 0, 0, 0)),  # a doctor that only orders tests
        ([{"paths": ["P/a"]}], Persisted(False, 0, 0, 0, 0, 0)),
        ([{"withheld": [HELD]}], Persisted(True, 1, 0, 0, 0, 0)),
        ([{"vague": [HELD]}, {"withheld": [HELD]}], Persisted(True, 1, 1, 0, 0, 0)),
        ([{"vague": [HELD]}, {}, {"paths": ["P/a"]}], Persisted(True, 1, 1, 1, 0, 0)),
        ([{"withheld": [HELD]}, {"paths": ["P/a"], "added": [HELD]}], Persisted(True, 1, 0, 1, 0, 0)),
        ([{"paths": ["P/a"]}, {"withheld": [HELD]}], Persisted(True, 0, 0, 0, 0, 0)),
        ([{"withheld": [STRANGE]}, {"paths": ["P/a"]}], Persisted(True, 1, 1, 1, 1, 1)),
        ([{"withheld": [STRANGE]}, {"withheld": [STRANGE]}], Persisted(True, 1, 1, 0, 2, 0)),
        ([{"withheld": [STRANGE]}, {}, {"paths": ["P/a"]}], Persisted(True, 1, 1, 1, 1, 0)),
        ([{"added": [{"path": "Manner/worry", "reason": "verbosity: feelings"}]}], Persisted(True, 0, 0, 0, 0, 0)),
    ],
)
def test_asking_again_is_read_from_the_replies(replies: list[Json], expected: Persisted) -> None:
    assert persisted(told(*replies)) == expected


def test_a_limit_on_tokens_is_for_all_arms_and_the_same_command_continues(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.control(doctor=["How are you?", "DIAGNOSIS READY: Gout"])
    data, folder = str(own_cases(tmp_path, 3)), tmp_path / "study"

    def play(limit: int | None) -> Json:
        run: Json = {"dataset": data, "total_inferences": 3, **ENDPOINT_DOCTOR}
        return studied(folder, settings_for(server, tmp_path, runtime={"token_limit": limit}, **run), traits="recall")

    with pytest.raises(SystemExit) as stopped:
        play(1)
    assert stopped.value.code == 3
    said = capsys.readouterr().err
    assert "encounters of the arm 'level 0' not played: the token limit of 1 is reached" in said
    assert "Run the same command again to continue." in said
    assert not (folder / "study.json").exists()
    report = play(None)
    assert report["doctor_llm"] == "scripted"
    before = asked(server)
    assert play(None) == report
    assert asked(server) == before, "nothing is left to ask"


def test_a_patient_that_only_has_a_prompt_is_not_called_a_dose(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(doctor=["How are you?", "DIAGNOSIS READY: Gout"], patient="I forget.")
    run: Json = {"dataset": str(own_cases(tmp_path, 3)), "total_inferences": 3, "moderator_llm": "builtin"}
    report = studied(tmp_path / "study", settings_for(server, tmp_path, **run), traits="recall")
    assert not report["controlled"]
    assert report["patient"] == "scripted (free)"
    assert report["persistence"] == [], "no one knows what was withheld"
    assert "The dose was not controlled" in report["findings"][0]
    sent = [json.dumps(entry["body"]) for entry in server.log() if entry["purpose"] == "patient"]
    assert len(set(sent)) > 3, "the prompt has the trait at level 3 and not at level 0"


def test_what_cannot_be_studied_is_refused(tmp_path: Path) -> None:
    refused: list[tuple[Json, str]] = [
        ({"patient_traits": {"recall": 2}}, "the study decides them"),
        ({"doctor": "door_only"}, "asks the patient nothing"),
        ({"doctor": "full_information"}, "asks the patient nothing"),
        ({"patient_llm": "human"}, "not a person"),
        ({"dataset": "Solvable:chest-pain", "total_inferences": 20}, "has no traits"),
        ({"memory": "x.jsonl"}, "are decided by the study"),
    ]
    for run, problem in refused:
        with pytest.raises(ConfigError, match=problem):
            plan_stress(tmp_path / "study", builtin(tmp_path, **run), TRAITS, (0, 1))
    with pytest.raises(ConfigError, match="needs two traits"):
        plan_stress(tmp_path / "study", builtin(tmp_path), ["recall"], (0, 1), together=True)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.txt").touch()
    with pytest.raises(InputError, match="not a study of stress"):
        plan_stress(tmp_path / "study", builtin(tmp_path), TRAITS, (0, 1))


def test_flags_are_read_strictly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_traits("recall, verbosity,recall") == ("recall", "verbosity")
    assert read_levels("3,1") == (0, 1, 3)
    for flags, problem in (
        (["--traits", "recal"], "--traits: there is no trait 'recal'; did you mean 'recall'?"),
        (["--traits", ","], "--traits names no trait"),
        (["--levels", "0"], "--levels names no level above 0"),
        (["--levels", "0,4"], "--levels: '4' is not a whole number from 0 to 3"),
        (["--patient-traits", "recall=2"], "--patient-traits: the study decides them"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["study", "stress", *flags, "-o", "study"])
        assert problem in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_the_report_can_be_made_again_from_the_records_alone(tmp_path: Path) -> None:
    folder, given = tmp_path / "study", builtin(tmp_path, cases=3)
    written = studied(folder, given, traits="verbosity", levels="0,1")
    study = plan_stress(folder, given, ("verbosity",), (0, 1))
    assert stress_report(study).model_dump(mode="json") == written
