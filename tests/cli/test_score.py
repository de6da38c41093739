"""`agentclinic score` and what is said beside its figures; the same notices stand in reports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from report_support import gathered, record, write_run, wrong

from agentclinic.cli import main
from agentclinic.report.files import render
from agentclinic.scoring.judges.against_labels import FALSE_NO, FALSE_YES, RIGHT, WRONG


def scored(folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    main(["score", str(folder), *flags])
    return " ".join(capsys.readouterr().out.split())


def test_score_prints_one_table_and_one_sentence_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [record(0), record(1), wrong(2)]
    unfinished = write_run(tmp_path / "half", entries, {"agentclinic": {"units": 5}})
    broader = {"relation": "broader", "reason": "", "correct_lenient": True}
    failed = record(3, status="judge_failed", correct=None, judgement=None)
    lenient = write_run(tmp_path / "lenient", [record(0), wrong(2, judgement=broader), failed])

    short = scored(unfinished, capsys)
    assert "accuracy 66.7%" in short
    assert "lenient" not in short
    assert "tokens of the models 45" in short
    assert "cost of the models $0.0300" in short
    assert "Right in 2 of 3 encounters: 66.7% (95% " in short
    assert "the run is not finished: 3 of 5 encounters were played." in short
    assert "risk-coverage" not in short
    full = scored(unfinished, capsys, "--full")
    assert "risk-coverage" in full
    assert "3 of 5 encounters were played" in full

    both = scored(lenient, capsys)
    assert "accuracy, strict" in both
    assert "accuracy, lenient" in both
    assert "with 1 encounter missing, it could be 33.3% to 66.7%" in both


def test_rows_say_in_words_how_findings_were_learned_and_tests_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = [{"any_of": ["Patient_Actor/History#0"]}, {"any_of": ["Test_Results/Uric_Acid"]}]
    full = scored(write_run(tmp_path / "run", [record(annotations={"Key_Findings": key})]), capsys, "--full")
    for row in ("key findings volunteered", "key findings asked for", "key findings ordered"):
        assert row in full
    assert "answered by the chart" in full


def test_the_judge_and_its_measured_error_are_stated_beside_the_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builtin = write_run(tmp_path / "b", [record(n, moderator_llm="builtin") for n in range(3)])
    other = write_run(tmp_path / "other", [record(n) for n in range(3)])
    error = f"called {FALSE_NO} of {RIGHT} right diagnoses wrong and {FALSE_YES} of {WRONG} wrong ones right"
    for text in shown(builtin, capsys):
        assert f"Judged by builtin, which {error} in our measurement" in text.replace("\u00a0", " ")
    for text in shown(other, capsys):
        assert "Judged by j; how often it errs is not known (agentclinic judge label measures it)." in text
    main(["compare", str(builtin), str(other)])
    compared = capsys.readouterr().out
    assert f"A: Judged by builtin, which {error}" in compared
    assert "B: Judged by j; how often it errs" in compared


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [scored(folder, capsys), *(render(gathered(folder), kind) for kind in ("html", "md"))]


def test_reports_keep_the_cost_of_models_apart_from_the_price_of_tests(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / f"Made_2026010{n}_000000", [record(0, doctor_llm=m), wrong(1, doctor_llm=m)])
        for n, m in enumerate(("small", "large"))
    ]
    collected = gathered(*runs)
    rows = list(csv.DictReader(io.StringIO(render(collected, "csv"))))
    assert [row["label"] for row in rows] == ["small", "small", "large", "large"]
    assert {(row["input_tokens"], row["output_tokens"], row["models_usd"]) for row in rows} == {("10", "5", "0.01")}
    assert all(float(row["tests_usd"]) > 0 for row in rows)
    page = render(gathered(runs[0]), "html")
    assert "<b>$0.0200</b><span>for the models, $0.0100 per encounter; 30 tokens, 15 per encounter</span>" in page
    assert "for simulated tests, per encounter" in page
    text = render(collected, "md")
    assert "| A `small` |" in text
    assert "Made_2026" not in text.split("## Run A")[0]


def test_a_score_below_the_limit_ends_with_exit_code_1_after_the_result_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = write_run(tmp_path / "half", [record(0), wrong(1)])
    assert "accuracy 50.0%" in scored(half, capsys, "--fail-under", "0.5")

    with pytest.raises(SystemExit) as ended:
        main(["score", str(half), "--fail-under", "0.51", "--json", "--output", str(tmp_path / "score.json")])
    assert ended.value.code == 1
    assert "--fail-under 0.51: the strict accuracy is 50.00%\n" in capsys.readouterr().err
    assert json.loads((tmp_path / "score.json").read_text())["outcome"]["correct"] == 1

    unjudged = write_run(tmp_path / "none", [record(0, status="judge_failed", correct=None, judgement=None)])
    with pytest.raises(SystemExit, match="1"):
        scored(unjudged, capsys, "--fail-under", "0")
    with pytest.raises(SystemExit, match="2"):
        main(["score", str(half), "--fail-under", "60"])
    assert capsys.readouterr().err.endswith("--fail-under: must be between 0 and 1, e.g. 0.6, not 60\n")
