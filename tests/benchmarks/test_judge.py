"""The judge benchmark: its baseline, and that it runs with and without the public data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmark_support import load_benchmark

from agentclinic.cases.registry import load_cases

benchmark = load_benchmark("judge")


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("gout", "gout", 100),
        ("acute gout", "gout", 100),  # all words of one are in the other
        ("gout", "xyz", 0),
        ("Type 1", "type 2", 200 * 5 / 12),  # "type ": 5 of 6 letters on each side
        ("hepatitis B", "hepatitis C", 200 * 10 / 22),
        ("heart failure", "renal failure", 200 * 10 / 26),  # "failure ea" of "failure heart" and "failure renal"
        ("pulmonary embolism", "embolism of the lung", 200 * 8 / 26),  # "embolism" in "embolism pulmonary"
    ],
)
def test_the_baseline_is_the_token_set_ratio(one: str, other: str, ratio: float) -> None:
    assert benchmark.token_set_ratio(one, other) == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("said", "truth", "verdict"),
    [
        ("Hepatitis B", "Hepatitis C", True),  # a near miss
        ("DIAGNOSIS READY: Type 1 diabetes mellitus", "Type 2 diabetes mellitus", True),
        ("Heart attack", "Myocardial infarction", False),  # the same in other words
        ("Gout", "Septic arthritis", False),
    ],
)
def test_the_baseline_compares_words_not_meanings(said: str, truth: str, verdict: bool) -> None:
    assert benchmark.naive(said, truth) is verdict


def test_without_the_public_data_the_pairs_still_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path)
    benchmark.main()
    printed = capsys.readouterr().out
    assert "skipped" in printed
    assert "holdout" in printed


@pytest.mark.skipif(not (benchmark.DATA / "judge").exists(), reason="needs ../shared/data")
@pytest.mark.slow
def test_with_the_public_data_disputes_are_listed_by_row_and_no_text_of_it_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    benchmark.main()
    printed = capsys.readouterr().out
    assert "reader A / reader B" in printed
    assert "Recorded rows: 80" in printed
    assert "Development rows: 134 of 67 cases" in printed
    assert "row 16" in printed
    for line in (benchmark.DATA / "judge" / "verdicts.jsonl").read_text("utf-8").splitlines():
        assert json.loads(line)["correct_diagnosis"] not in printed


def test_a_part_is_found_by_the_name_of_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("verdicts3_test", "verdicts3_test_reader_a", "verdicts3_test_reader_b", "verdicts_reader_a"):
        (tmp_path / f"{name}.jsonl").write_text("", encoding="utf-8")
    monkeypatch.setattr(benchmark, "LABELS", tmp_path)
    assert benchmark.fresh_parts() == ["test"]


def test_a_part_without_rows_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark, "LABELS", tmp_path)
    with pytest.raises(SystemExit) as stopped:
        benchmark.main(["--rows", "test"])
    assert stopped.value.code == 2
    assert "'test'" in capsys.readouterr().err


@pytest.mark.skipif(not (benchmark.DATA / "agentclinic").exists(), reason="needs ../shared/data")
def test_the_held_out_part_is_printed_when_asked_for_and_not_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cases = load_cases(
        "MedQA_Ext", {"MedQA_Ext": str(benchmark.DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl")}
    )
    rows = [{"row": n, "case": n, "says": cases[n].diagnosis if n % 2 else "Frobisher fever"} for n in range(30)]
    labels = [{"row": n, "relation": "same" if n % 2 else "different"} for n in range(30)]
    for name, lines in (("", rows), ("_reader_a", labels), ("_reader_b", labels)):
        path = tmp_path / f"verdicts3_test{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr(benchmark, "LABELS", tmp_path)
    benchmark.main(["--rows", "test"])
    printed = capsys.readouterr().out
    assert "Test rows: 30 of 30 cases" in printed
    assert "ours+chart  by reader A 0 Yes and 0 No" in printed
    assert "  row " not in printed
    benchmark.main(["--rows", "pairs"])
    assert "Test rows" not in capsys.readouterr().out
