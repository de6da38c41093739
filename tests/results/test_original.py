"""Files that the original wrote: run folders with histories, and result lines of `agentclinic_api_only.py`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import ORIGINAL, case_of, needs_original, needs_public_data, osce, public_path, write_rows
from runs_support import clinic

from agentclinic.config import load_settings
from agentclinic.errors import InputError
from agentclinic.results.journal import read_records
from agentclinic.results.original import turns_in_histories
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of

OLD_RUN = ORIGINAL / "runs" / "MedQA_20250912_100713"

ROW = osce(
    patient={"Demographics": "40-year-old woman", "History": "A sore toe for three days."},
    tests={"Uric_Acid": "9.8 mg/dL (ref <7.0)"},
    truth="Gouty arthritis",
)
ASKED = "Good morning.\n\nWhere does it hurt?"  # an entry may have blank lines itself
TOLD = "My toe.\n\nIt is red."
ORDER, RESULT = "REQUEST TEST: Uric Acid", "RESULTS: Uric Acid: 4.1 mg/dL"
FINAL = "DIAGNOSIS READY: Gout"


def old_record(**changes: Any) -> dict[str, Any]:
    """A record as the original's agents leave it: each appends what it was told and what it answered."""
    return {
        "scenario_id": 0,
        "dataset": "Own",
        "status": "diagnosed",
        "num_turns": 3,
        "correct": True,
        "ground_truth": "Gouty arthritis",
        "diagnosis_text": FINAL,
        "doctor_hist": f"\n\n{ASKED}\n\n{TOLD}\n\n{ORDER}\n\n{RESULT}(last turn)\n\n\n{FINAL}\n\n",
        "patient_hist": f"{ASKED}\n\n{TOLD}\n\n{RESULT}\n\n",
        "measurement_hist": f"{TOLD}\n\n{ORDER}\n\n{RESULT}\n\n",
        **changes,
    }


def result_line(number: int = 0, **changes: Any) -> dict[str, Any]:
    row = json.loads(json.dumps(ROW))
    # The script's scenario puts the test results into the examination, and then writes the row.
    row["OSCE_Examination"]["Physical_Examination_Findings"]["tests"] = row["OSCE_Examination"]["Test_Results"]
    tokens = {"total_tokens": 12, "prompt_tokens": 10, "completion_tokens": 2}
    return {
        "dataset": "Own",
        "scenario_id": number,
        "problem_info": row,
        "correct_diagnosis": "Gouty arthritis",
        "model_diagnosis": FINAL,
        "correct": True,
        "dialogue_history": [
            f"Doctor: {ASKED}", f"Patient: {TOLD}", f"Doctor: {ORDER}", f"Measurement: {RESULT}", f"Doctor: {FINAL}",
        ],
        "token_usage": dict.fromkeys(("doctor", "patient", "measurement", "total"), tokens),
        "session_id": "scenario_1_1770517052",
        **changes,
    }  # fmt: skip


UNDECIDED = {
    "model_diagnosis": "nothing was decided",
    "correct": False,
    "dialogue_history": [f"Doctor: {ASKED}", f"Patient: {TOLD}"],
}
SAID = [
    (1, "doctor", ASKED), (1, "patient", TOLD), (2, "doctor", ORDER), (2, "measurement", RESULT), (3, "doctor", FINAL),
]  # fmt: skip


def said(record: Record) -> list[tuple[int, str, str]]:
    return [(turn.turn, turn.role, turn.text) for turn in record.transcript or ()]


def test_the_dialogue_is_read_from_the_histories(tmp_path: Path) -> None:
    (record,) = read_records(write_rows(tmp_path / "scenarios.jsonl", old_record()))

    assert said(record) == SAID
    assert diagnosis_of(record) == "Gout"


def test_the_last_exchange_of_an_encounter_without_a_diagnosis_is_read_too() -> None:
    unfinished = old_record(status="max_infs_reached", num_turns=2, diagnosis_text=None, final_doctor_dialogue=ORDER)

    turns, whole = turns_in_histories(Record.model_validate(unfinished))

    assert ([(turn.turn, turn.role, turn.text) for turn in turns], whole) == (SAID[:4], True)


@pytest.mark.parametrize(
    ("changes", "readable"),
    [
        ({"measurement_hist": f"{TOLD}\n\n{ORDER}\n\nRESULTS: something else\n\n"}, 2),
        ({"num_turns": 4}, 0),  # one reply was empty, and no one can say which
    ],
)
def test_histories_that_cannot_be_told_apart_are_no_transcript(
    changes: dict[str, Any], readable: int, tmp_path: Path
) -> None:
    (record,) = read_records(write_rows(tmp_path / "scenarios.jsonl", old_record(**changes)))

    assert record.transcript is None, "half a dialogue must not be scored as a whole one"
    assert len(turns_in_histories(record)[0]) == readable


def test_audit_reads_the_histories_and_says_what_it_could_not_read(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "own.jsonl", ROW, ROW, ROW)
    torn = old_record(scenario_id=1, measurement_hist=f"{TOLD}\n\n{ORDER}\n\nRESULTS: something else\n\n")
    lost = old_record(scenario_id=2, patient_hist="", measurement_hist="")
    (tmp_path / "run").mkdir()
    write_rows(tmp_path / "run" / "scenarios.jsonl", old_record(), torn, lost)

    report = json.loads(clinic("audit", "run", "--cases", cases, "--json", cwd=tmp_path).stdout)

    assert (report["encounters"], report["replies"]) == (2, {"patient": 2, "measurement": 1})
    assert [(f["kind"], f["role"], f["turn"]) for f in report["findings"]] == [("invented_number", "measurement", 2)]
    assert "no transcript, only the first turns read from the histories: 1 record" in report["notes"]
    assert "no transcript, not audited: 1 record" in report["notes"]


def test_result_lines_are_records(tmp_path: Path) -> None:
    """The case in the line is the published one, so that such a run pairs with ours by content."""
    path = write_rows(tmp_path / "results.jsonl", result_line(), result_line(4, **UNDECIDED), result_line())

    first, undecided, again = read_records(path)

    assert (said(first), first.status, first.num_turns, first.correct) == (SAID, "diagnosed", 3, True)
    assert (first.ground_truth, diagnosis_of(first)) == ("Gouty arthritis", "Gout")
    used = {"input_tokens": 10, "output_tokens": 2}
    assert first.usage == {"doctor": used, "patient": used, "measurement": used}
    assert first.case_hash == case_of(ROW, "Own").id
    assert (undecided.status, undecided.correct, diagnosis_of(undecided)) == ("max_infs_reached", False, None)
    assert (first.repeat, again.repeat) == (0, 1), "the script appends: the same scenario again is a repeat"


@pytest.mark.slow
def test_a_file_of_results_can_be_scored_reported_compared_and_audited(tmp_path: Path) -> None:
    write_rows(tmp_path / "results.jsonl", result_line(), result_line(1, **UNDECIDED))
    write_rows(tmp_path / "other.jsonl", result_line(correct=False), result_line(1, **UNDECIDED))

    scored = json.loads(clinic("score", "results.jsonl", "--json", cwd=tmp_path).stdout)
    assert (scored["outcome"]["presented"], scored["outcome"]["correct"]) == (2, 1)
    assert scored["orders"]["orders"]["value"] == 0.5
    table = clinic("report", "results.jsonl", "--format", "csv", "-o", "-", cwd=tmp_path).stdout
    assert [row["outcome"] for row in csv.DictReader(io.StringIO(table))] == ["diagnosed_right", "max_infs_reached"]
    assert "results" in clinic("compare", "other.jsonl", "results.jsonl", cwd=tmp_path).stdout
    assert "results.jsonl" in clinic("card", "results.jsonl", cwd=tmp_path).stdout
    audited = json.loads(clinic("audit", "results.jsonl", "--json", cwd=tmp_path).stdout)
    assert audited["replies"] == {"patient": 2, "measurement": 1}, "the lines hold their cases"
    assert "put it into a folder of its own" in clinic("regrade", "results.jsonl", cwd=tmp_path, expect=2).stderr
    (tmp_path / "run").mkdir()
    (tmp_path / "results.jsonl").rename(tmp_path / "run" / "scenarios.jsonl")
    assert "1 diagnosis judged by builtin, 0 failed" in clinic("regrade", "run", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"dialogue_history": ["Nurse: hello"]}, r"dialogue_history: entry 0 does not begin with Doctor, Patient"),
        ({"correct": "perhaps"}, r"not a scenario record \(correct"),
        ({"scenario_id": None}, r"not a scenario record \(scenario_id"),
        ({"token_usage": [12]}, r"not a scenario record \(token_usage"),
        ({"dialogue_history": "Doctor: hello"}, r"not a scenario record \(dialogue_history"),
        ({"model_diagnosis": ["Gout"]}, r"not a scenario record \(model_diagnosis"),
    ],
)
def test_a_bad_result_line_is_named(changes: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "results.jsonl", result_line(), result_line(1, **changes))

    with pytest.raises(InputError, match=rf"results\.jsonl line 2: .*{complaint}"):
        list(read_records(path))


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, "9" * 5000], ids=["deep", "long number"])
def test_a_result_line_that_python_cannot_read_is_named(value: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f'{{"model_diagnosis": {value}}}\n', encoding="utf-8")

    with pytest.raises(InputError, match=r"results\.jsonl line 1: not a result"):
        list(read_records(path))


def used_by_the_original(folder: Path) -> Path:
    """A `config.used.json` as the original writes it: both files in one, paths relative to where it ran."""
    path = folder / "runs" / "Own_20250101_000000" / "config.used.json"
    path.parent.mkdir(parents=True)
    used = {
        "openai": {"api_key": "not-a-key", "base_url": "http://127.0.0.1:9/v1"},
        "run": {"dataset": "Own", "doctor_bias": "None", "num_scenarios": 1},
        "llm": {"responses": {"max_output_tokens": 256}, "runtime": {"tries": 3}},
        "datasets": {"Own": "own.jsonl", "Gone": "gone.jsonl"},
    }
    path.write_text(json.dumps(used), encoding="utf-8")
    return path


def test_the_originals_used_config_plays_its_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = used_by_the_original(tmp_path)
    write_rows(tmp_path / "own.jsonl", ROW, ROW)

    settings = load_settings(config)
    assert (settings.llm.runtime.tries, settings.llm.responses) == (3, {"max_output_tokens": 256})
    assert settings.datasets == {name: str(tmp_path / f"{name.lower()}.jsonl") for name in ("Own", "Gone")}
    played = json.loads(clinic("run", "--config", config, "--json", "-q", cwd=tmp_path).stdout)
    assert played["presented"] == 1


@pytest.mark.slow
@needs_original
def test_a_run_of_the_original_can_be_used_except_for_resuming(tmp_path: Path) -> None:
    refused = clinic("resume", OLD_RUN, cwd=tmp_path, expect=2).stderr
    assert "does not say what the results depend on, so the run cannot be resumed" in refused
    assert f"agentclinic run --config {OLD_RUN / 'config.used.json'}" in refused
    records = list(read_records(OLD_RUN / "scenarios.jsonl"))
    assert [(record.num_turns, len(record.transcript or ())) for record in records] == [(10, 19)] * 3
    scored = json.loads(clinic("score", OLD_RUN, "--json", cwd=tmp_path).stdout)
    assert (scored["outcome"]["correct"], scored["orders"]["encounters"]) == (1, 3)
    clinic("report", OLD_RUN, "-o", tmp_path / "report.html", cwd=tmp_path)
    assert "MedQA_20250912_100713" in clinic("card", OLD_RUN, cwd=tmp_path).stdout
    unknown = clinic("audit", OLD_RUN, cwd=tmp_path, expect=2).stderr
    assert "name the file they were played from with --cases FILE" in unknown
    assert load_settings(OLD_RUN / "config.used.json").run.doctor_llm == "gpt-5-mini"


@needs_original
@needs_public_data
def test_a_run_of_the_original_is_audited_with_the_cases_it_was_played_from(tmp_path: Path) -> None:
    done = clinic("audit", OLD_RUN, "--cases", public_path("MedQA"), "--json", cwd=tmp_path)

    report = json.loads(done.stdout)
    assert (report["encounters"], report["replies"]) == (3, {"patient": 26, "measurement": 1})
