"""The study of contamination: what gives a model away, what does not, and that it continues where it stopped."""

from __future__ import annotations

import inspect
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, osce, write_rows
from memory_support import Json, stories, story_rows
from runs_support import asked, clinic, lines, own_cases, point_at, settings_for, start, until
from scripted_server import ScriptedServer

from agentclinic.cases.registry import load_cases
from agentclinic.cli.contamination import contamination_command
from agentclinic.config import Settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.completion import VERBATIM, chosen_lines, controls, similarity
from agentclinic.learn.contamination import DOOR, GUESS, SHUFFLED, WHOLE, plan_contamination
from agentclinic.learn.shuffle import apart

BUILTIN = {f"{role}_llm": "builtin" for role in ("patient", "measurement", "moderator")}
FLUENT: Json = {"match": {"purpose": "completion"}, "reply": "and it has been getting slowly worse ever since then."}


def settings(server: ScriptedServer | None, tmp_path: Path, *, runtime: Json | None = None, **run: Any) -> Settings:
    """The doctor at the server; six cases that have nothing in common."""
    given = {"dataset": str(stories(tmp_path / "stories.jsonl")), "total_inferences": 4, **BUILTIN, **run}
    return settings_for(server, tmp_path / "unused", runtime=runtime, **given)


def studied(folder: Path, given: Settings) -> Json:
    """Play a study to its end; what it wrote."""
    command = inspect.unwrap(contamination_command)  # without the flags: the settings are given here
    command(read=lambda: given, output=folder, quiet=True)
    report: Json = json.loads((folder / "study.json").read_text())
    return report


def recites(tmp_path: Path) -> list[Json]:
    """Rules of a model that knows the charts by heart."""
    cases = load_cases(str(stories(tmp_path / "stories.jsonl")), {})
    return [
        {"match": {"purpose": "completion", "text_contains": line.beginning}, "reply": line.rest}
        for line in chosen_lines(cases)
    ]


def recognizes(dataset: str) -> list[Json]:
    """Rules of a doctor that knows each case by its door, whatever it is told."""
    return [
        {
            "match": {"purpose": "doctor", "text_contains": case.door.objective},
            "reply": f"DIAGNOSIS READY: {case.diagnosis}",
        }
        for case in load_cases(dataset, {})
    ]


def right(report: Json) -> dict[str, float]:
    return {each["arm"]: each["accuracy"]["value"] for each in report["accuracies"] if each["rule"] == "strict"}


def test_a_model_that_recites_charts_and_recognizes_doors_is_found(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.control(rules=[*recites(tmp_path), *recognizes(str(stories(tmp_path / "stories.jsonl")))])
    folder = tmp_path / "study"
    report = studied(folder, settings(server, tmp_path))
    printed = capsys.readouterr().out
    assert printed == (folder / "study.md").read_text()
    assert report["sign"]
    assert "There are signs that it may have." in printed
    found = report["completions"]
    assert len(found["recited"]) == found["lines"] == len(lines(folder / "completions.jsonl"))
    assert (found["verbatim"]["value"], found["verbatim_control"]["value"]) == (1.0, 0.0)
    assert found["similarity"]["value"] == 1.0 > found["control"]["value"]
    assert "it has probably seen them" in report["findings"][0]
    assert right(report) | {GUESS: 0} == {DOOR: 1.0, GUESS: 0, WHOLE: 1.0, SHUFFLED: 1.0}
    assert "still names the door's diagnosis in 100.0%" in report["findings"][1], "six cases are too few to say more"
    assert report["followed"] == 0, "it did not care about the chart"


def test_a_doctor_that_names_the_doors_diagnosis_with_any_chart_is_found(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[FLUENT, *recognizes("OpenOSCE_Demo")])
    report = studied(tmp_path / "study", settings(server, tmp_path, dataset="OpenOSCE_Demo"))
    assert report["sign"]
    assert report["completions"]["recited"] == []
    assert "clearly more often than the builtin doctor guesses it at the door" in report["findings"][1]


def test_fluent_text_and_a_doctor_that_follows_the_chart_are_no_sign(server: ScriptedServer, tmp_path: Path) -> None:
    rows = [row["OSCE_Examination"] for row in story_rows()]
    told = {row["Test_Results"]["Blood_Tests"]: row["Correct_Diagnosis"] for row in rows}
    reads = [
        {"match": {"purpose": "doctor", "text_contains": result}, "reply": f"DIAGNOSIS READY: {truth}"}
        for result, truth in told.items()
    ]
    server.control(rules=[FLUENT, *reads], doctor=["REQUEST TEST: Blood tests", "DIAGNOSIS READY: Scurvy"])
    folder = tmp_path / "study"
    report = studied(folder, settings(server, tmp_path, scenarios="0-4"))
    assert not report["sign"]
    assert report["completions"]["recited"] == []
    assert report["completions"]["similarity"]["value"] < 0.3
    assert right(report) | {GUESS: 0} == {DOOR: 0.0, GUESS: 0, WHOLE: 1.0, SHUFFLED: 0.0}
    assert report["followed"] == 5, "it named the disease of the chart that it was shown"
    assert "no proof" in (folder / "study.md").read_text()

    assert {warning for each in report["comparisons"] for warning in each["warnings"]} == set()
    (record, *_) = lines(folder / "runs" / "shuffled_chart" / "scenarios.jsonl")
    assert record["dataset"] == "stories with shuffled charts"
    assert record["annotations"]["chart_of"].startswith("stories/")
    assert record["case_hash"] != lines(folder / "runs" / "own_chart" / "scenarios.jsonl")[0]["case_hash"]


def test_one_line_that_matches_is_not_called_a_sign(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[recites(tmp_path)[0], FLUENT])
    report = studied(tmp_path / "study", settings(server, tmp_path))
    assert len(report["completions"]["recited"]) == 1
    assert not report["sign"]
    assert "too few to tell from stock phrases" in report["findings"][0]


def test_what_is_held_back_is_in_no_request_for_a_completion(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[FLUENT])
    given = settings(server, tmp_path)
    studied(tmp_path / "study", given)
    sent = [json.dumps(entry["body"]) for entry in server.log() if entry["purpose"] == "completion"]
    study = plan_contamination(tmp_path / "study", given)
    assert len(sent) == len(study.lines) >= 6
    for body, line in zip(sent, study.lines, strict=True):
        assert line.beginning in body
        assert line.rest not in body
        assert line.case.door.objective in body
        assert "stories" in body, "the data set is named"
        assert line.case.diagnosis not in body


def test_a_model_that_refuses_to_continue_has_recited_nothing(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "completion"}, "fault": "refusal"}])
    report = studied(tmp_path / "study", settings(server, tmp_path))
    assert report["completions"]["refused"] == report["completions"]["lines"]
    assert "it continues 0 of" in report["findings"][0]
    assert f"No usable answer: {report['completions']['lines']}." in (tmp_path / "study" / "study.md").read_text()


@pytest.mark.slow
def test_a_killed_study_continues_without_asking_again(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "completion", "nth": 4}, "fault": "hang"}, FLUENT])
    stories(tmp_path / "stories.jsonl")
    command = (
        "study contamination --dataset stories.jsonl --doctor-llm scripted --total-inferences 4 -o study -q".split()
    )
    process = start(*command, cwd=tmp_path)
    try:
        until(lambda: asked(server, "completion") >= 4, "three completions and one at work", process)
    finally:
        process.signal(signal.SIGKILL)
        process.wait()
    journal = tmp_path / "study" / "completions.jsonl"
    assert len(lines(journal)) == 3
    at_the_door = asked(server, "doctor")

    done = clinic(*command, "--json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert len(lines(journal)) == report["completions"]["lines"]
    assert asked(server, "completion") == report["completions"]["lines"] + 1, "only the one that was cut off, again"
    after, everything = asked(server, "doctor"), asked(server)
    assert after > at_the_door
    assert clinic(*command, "--json", cwd=tmp_path).stdout == done.stdout
    assert asked(server) == everything, "nothing is left to ask"
    refused = clinic(*command, "--doctor-llm", "other", cwd=tmp_path, expect=2)
    assert "was started with other settings (run.doctor_llm)" in refused.stderr


def test_a_limit_on_tokens_is_for_the_whole_study_and_the_same_command_continues(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.control(rules=[FLUENT])
    folder = tmp_path / "study"

    def used() -> int:
        files = [*folder.rglob("scenarios.jsonl"), *folder.glob("completions.jsonl")]
        return sum(_tokens(entry) for path in files for entry in lines(path))

    def stopped(limit: int) -> str:
        with pytest.raises(SystemExit):
            studied(folder, settings(server, tmp_path, runtime={"token_limit": limit}))
        return capsys.readouterr().err

    assert "of the arm 'door only' not played" in stopped(1)
    while "door only" in (told := stopped(used() + 1)):
        pass
    assert "chart lines not continued: the token limit of" in told
    assert lines(folder / "completions.jsonl") == [], "used up already"
    for number in (1, 2):
        assert "chart lines not continued" in stopped(used() + 1)
        assert len(lines(folder / "completions.jsonl")) == number
    report = studied(folder, settings(server, tmp_path))
    assert asked(server, "completion") == report["completions"]["lines"]


def _tokens(entry: Json) -> int:
    usage = [entry["usage"]] if "line" in entry else entry["usage"].values()
    return sum((used["input_tokens"] or 0) + (used["output_tokens"] or 0) for used in usage)


def test_an_endpoint_that_fails_stops_the_completion_and_the_same_command_continues(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.control(rules=[{"match": {"purpose": "completion", "nth": [2, 3]}, "fault": "500"}, FLUENT])
    with pytest.raises(SystemExit):
        studied(tmp_path / "study", settings(server, tmp_path))
    assert "chart lines not continued: doctor: " in capsys.readouterr().err
    assert studied(tmp_path / "study", settings(server, tmp_path))["completions"]["refused"] == 0


def test_the_builtin_doctor_has_no_completion_and_no_arm_to_compare_it_with(tmp_path: Path) -> None:
    data = own_cases(tmp_path, 6)
    done = clinic(
        "study", "contamination", "--dataset", data, "--total-inferences", "4", "-o", "study", "--quiet", cwd=tmp_path
    )
    assert "Completion of chart lines was left out" in done.stdout
    assert "canary" in done.stdout
    report = json.loads((tmp_path / "study" / "study.json").read_text())
    assert set(right(report)) == {DOOR, WHOLE, SHUFFLED}
    assert not (tmp_path / "study" / "completions.jsonl").exists()


def test_every_kind_of_doctor_is_reduced_to_its_model_at_the_door(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[FLUENT], doctor=["DIAGNOSIS READY: Migraine"])
    kinds: list[Json] = [
        {"doctor_test_policy_enabled": True, "elicit_confidence": True, "doctor_temperature": 0.3},
        {"moderator_llm": "scripted", "judge": "model", "temperature": 0.3, "doctor_bias": "recency"},
        {"doctor": "full_information"},
    ]
    for number, kind in enumerate(kinds):
        folder = tmp_path / f"study{number}"
        studied(folder, settings(server, tmp_path, scenarios="0-2", **kind))
        for arm in ("door_only", "builtin_at_the_door"):
            assert {record["num_turns"] for record in lines(folder / "runs" / arm / "scenarios.jsonl")} == {1}


def test_what_cannot_be_studied_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    refused: list[tuple[Json, str]] = [
        ({"doctor": "door_only"}, "reads no chart"),
        ({"doctor_llm": "human"}, "name models"),
        ({"memory": "x.jsonl"}, "are decided by the study"),
    ]
    for run, problem in refused:
        with pytest.raises(ConfigError, match=problem):
            plan_contamination(tmp_path / "study", settings(server, tmp_path, **run))
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.txt").touch()
    with pytest.raises(InputError, match="not a study of contamination"):
        plan_contamination(tmp_path / "study", settings(server, tmp_path))


def test_credentialed_lines_go_only_where_the_data_may_and_are_kept_private(
    server: ScriptedServer, tmp_path: Path
) -> None:
    rows = [{**row, "data_class": "credentialed"} for row in story_rows()]
    data = str(write_rows(tmp_path / "private.jsonl", *rows))
    near = settings(server, tmp_path, dataset=data)
    far = near.model_copy(update={"openai": near.openai.model_copy(update={"base_url": "http://10.0.0.7:8000/v1"})})
    with pytest.raises(InputError, match=r"credentialed data may not go to 10\.0\.0\.7:8000"):
        studied(tmp_path / "far", far)
    server.control(rules=[FLUENT])
    folder = tmp_path / "near"
    studied(folder, near)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "completions.jsonl").stat().st_mode & 0o777 == 0o600
    used = json.loads((folder / "runs" / "shuffled_chart" / "config.used.json").read_text())
    assert used["agentclinic"]["data_class"] == "credentialed"


def test_similarity_counts_words_in_order() -> None:
    assert similarity("The toe is red.", "the toe is red") == 1.0
    assert similarity("a b c d e", "a b x d e") == pytest.approx(0.8), "2 · 4 of 5 + 5 words"
    assert similarity("d c b a", "a b c d") == pytest.approx(0.25), "one of four in order"
    assert similarity("one two three and a long speech", "one two three") == 1.0, "what follows does not count"
    assert similarity("He says: one two", "one two", "He says:") == 1.0, "nor the beginning said again"
    assert similarity("", "one two") == similarity("one two", "") == 0.0


def test_a_line_alone_in_its_part_of_the_chart_has_a_control_from_another_part() -> None:
    told = "His left big toe became red, hot and very painful last night after a long dinner."
    scan = "Both lungs are clear with no shadow to be seen in any of the four films"
    rows = [osce(patient={"History": told}, truth="Gout"), osce(tests={"Scan": scan}, truth="Asthma")]
    cases = [case_of(row, "two", number) for number, row in enumerate(rows)]
    one, two = held = chosen_lines(cases)
    assert controls(held, apart(cases), 0) == [two.rest, one.rest]


def test_a_control_is_another_patients_line_and_never_nearly_the_same_on_openosce() -> None:
    cases = load_cases("OpenOSCE", {})[:24]
    held = chosen_lines(cases)
    assert len(held) == 72
    found = controls(held, apart(cases), 0)
    assert max(similarity(other, line.rest) for other, line in zip(found, held, strict=True)) < VERBATIM
    sections = {line.rest: line.section for line in held}
    assert sum(sections[other] is line.section for other, line in zip(found, held, strict=True)) > 60
    for other, line in zip(found, held, strict=True):
        assert other not in [each.rest for each in held if each.case is line.case]
