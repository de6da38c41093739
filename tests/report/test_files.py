"""The formats of a report other than the page, and where reports are written."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from report_support import gathered, in_the_originals_format, record, write_run, wrong
from runs_support import clinic, only_run

from agentclinic.report.files import render
from agentclinic.report.statements import left_out, statements
from agentclinic.results.run_data import load_run
from agentclinic.scoring.score import score


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine encounters: right, wrong, failed, and one that attacks spreadsheets."""
    fault = {"role": "moderator", "error": "timeout", "message": "no answer | `x`"}
    entries = [
        *(record(number) for number in range(6)),
        wrong(6),
        wrong(7, '=HYPERLINK("https://attack.example")'),
        record(8, status="judge_failed", correct=None, judgement=None, fault=fault),
    ]
    config = {"agentclinic": {"version": "9.9", "units": 12}}
    return write_run(tmp_path_factory.mktemp("runs") / "Made_20260101_000000", entries, config)


def test_csv_has_a_line_per_encounter(played: Path) -> None:
    done = clinic("report", played, "--format", "csv", "-o", "-", cwd=played)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))

    assert [row["right"] for row in rows] == ["1"] * 6 + ["0", "0", ""]
    assert rows[0]["confidence"] == "0.7"
    assert rows[7]["diagnosis"].startswith("'=HYPERLINK")
    assert rows[8]["outcome"] == "judge_failed"
    assert rows[8]["reasons"] == "moderator failed: timeout"


@pytest.mark.slow
def test_json_has_the_numbers_of_score(played: Path) -> None:
    told = json.loads(clinic("report", played, "--format", "json", "-o", "-", cwd=played).stdout)
    printed = json.loads(clinic("score", played, "--json", cwd=played).stdout)

    (run,) = told["runs"]
    assert run["score"] == printed
    assert run["headline"]["value"] == pytest.approx(6 / 8)
    assert run["planned"] == 12
    assert [len(said) > 3 for said in told["statements"]] == [True]


def test_markdown_has_headline_bounds_failures_and_the_statement(played: Path) -> None:
    text = clinic("report", played, "--format", "md", "-o", "-", cwd=played).stdout

    assert "**75.0%** (40.9% to 92.9%) | 66.7% to 77.8%" in text
    assert "| moderator" not in text.replace("| `moderator", ""), "text from a record is quoted"
    assert '`=HYPERLINK("https://attack.example")`' in text
    assert "### What this run can and cannot show" in text
    assert "9 of 12 planned encounters were played" in text
    assert text.count("moderator.timeout") == 1, "a fault is listed once"
    assert "| `Made/7` | wrong |" in text, "a case is called by its name"
    widths = {row.count(" | ") for row in text.split("### Not right")[1].split("\n\n")[1].splitlines()}
    assert len(widths) == 1, "every row has as many cells as the header"


def test_the_page_and_markdown_say_how_the_counts_of_tests_add_up(tmp_path: Path) -> None:
    twice = [
        {"turn": turn, "role": role, "text": text, "disclosures": parts}
        for turn in (1, 2)
        for role, text, parts in (
            ("doctor", "REQUEST TEST: CBC", []),
            ("measurement", "RESULTS: normal", [{"topic": "CBC", "provenance": "chart"}]),
        )
    ]
    found = gathered(write_run(tmp_path / "run", [record(0, transcript=twice), record(1)]))
    line = "3 tests in 3 orders: 3 done; 1 was ordered before in the same encounter."
    page = render(found, "html").replace("\u00a0", " ")
    assert line in page
    numbers = "".join(f'<td class="num">{number}</td>' for number in (1, 2, 0))
    assert f'<th scope="row">Complete blood count</th>{numbers}' in page
    assert line in render(found, "md")


def test_a_report_on_a_run_in_the_originals_format_says_what_it_leaves_out(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", [in_the_originals_format(record(n)) for n in range(3)])
    (run,) = gathered(old).report.runs

    said = left_out(run)
    assert [text.split(":")[0].split(",")[0] for text in said][:2] == ["Questions", "Confidence"]
    assert any(text.startswith("Tokens and money") for text in said)
    assert run.score == score(load_run(old))
    whole = write_run(tmp_path / "whole", [record(n) for n in range(3)])
    assert [text.split(":")[0] for text in left_out(gathered(whole).report.runs[0])] == ["Key findings", "Twins"]


def test_the_statement_names_missing_encounters_and_the_luck_of_a_single_run(played: Path) -> None:
    (run,) = gathered(played).report.runs
    text = " ".join(statements(run)["cannot"])
    assert "1 encounter without a verdict" in text
    assert "no case was repeated" in text
    assert "agentclinic audit" in text, "the patient is a model"
    assert "not medical advice" in text


def test_runs_without_a_common_case_are_shown_but_not_compared(played: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", [record(number) for number in range(50, 53)])
    report = gathered(played, other).report
    assert report.comparison is None
    assert "no case in common" in (report.not_compared or "")


def test_a_report_is_written_to_its_runs_folder_and_may_be_overwritten(played: Path, tmp_path: Path) -> None:
    first = clinic("report", played, cwd=tmp_path)
    target = played / "report.html"
    assert first.stdout == f"Report written to {target}\n"
    before = target.read_bytes()
    clinic("report", played, cwd=tmp_path)
    assert target.read_bytes() == before, "the same run gives the same bytes"
    assert list(played.glob("*.new")) == []


@pytest.mark.slow
def test_a_report_on_several_runs_goes_to_the_current_folder_and_its_extension_sets_the_format(
    played: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "other", [record(number) for number in range(9)])
    clinic("report", played, other, cwd=tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    clinic("report", other / "scenarios.jsonl", "-o", "x.md", cwd=tmp_path)
    assert (tmp_path / "x.md").read_text(encoding="utf-8").startswith("<!-- agentclinic-report -->")
    for name in ("x.json", "x.csv", "x.md"):
        clinic("report", other, "-o", name, cwd=tmp_path)
        clinic("report", other, "-o", name, cwd=tmp_path)


@pytest.mark.slow
def test_a_file_that_is_not_a_report_is_never_overwritten(played: Path, tmp_path: Path) -> None:
    journal = played / "scenarios.jsonl"
    before = journal.read_bytes()
    precious = tmp_path / "thesis.md"
    precious.write_text("# agentclinic-report is mentioned here\n", encoding="utf-8")

    for target, message in (
        (journal, "contains the run's records"),
        (played / "config.used.json", "is not a report"),
        (precious, "is not a report"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "such" / "x.html", "there is no folder"),
    ):
        assert message in clinic("report", played, "-o", target, cwd=tmp_path, expect=2).stderr
    assert journal.read_bytes() == before
    assert precious.read_text(encoding="utf-8").startswith("# agentclinic")


@pytest.mark.slow
def test_a_run_that_cannot_be_reported_is_named(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", [])
    broken = write_run(tmp_path / "broken", [record()])
    (broken / "config.used.json").write_text("{", encoding="utf-8")
    assert "no such file or folder" in clinic("report", tmp_path / "nothing", cwd=tmp_path, expect=2).stderr
    assert "contains no records" in clinic("report", empty, cwd=tmp_path, expect=2).stderr
    assert "config.used.json line 1: not valid JSON" in clinic("report", broken, cwd=tmp_path, expect=2).stderr
    assert "html, md, json, csv" in clinic("report", empty, "--format", "pdf", cwd=tmp_path, expect=2).stderr
    assert (
        "no such judgements" in clinic("report", broken.parent / "empty", "--judge", "x", cwd=tmp_path, expect=2).stderr
    )


@pytest.mark.slow
def test_run_with_report_writes_one_and_the_run_stays_the_same(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "3", "--output_dir", "plain", cwd=tmp_path)
    done = clinic("run", "--num_scenarios", "3", "--output_dir", "told", "--report", cwd=tmp_path)
    plain, told = only_run(tmp_path / "plain"), only_run(tmp_path / "told")

    assert f"Report written to told/{told.name}/report.html" in done.stdout
    assert (told / "report.html").is_file()
    digests = [
        json.loads((f / "config.used.json").read_text(encoding="utf-8"))["agentclinic"]["digest"] for f in (plain, told)
    ]
    assert digests[0] == digests[1]
    again = clinic("resume", told, "--report", "--json", cwd=tmp_path)
    assert Path(json.loads(again.stdout)["run"]).name == told.name
    assert "Report written to" in again.stderr
