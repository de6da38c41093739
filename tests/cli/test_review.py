"""`agentclinic data review`: what reviewers get, and what becomes of their verdicts."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers import osce, write_rows

from agentclinic.cases.registry import load_cases
from agentclinic.cli import main
from agentclinic.lint.review import QUESTIONS, digest
from agentclinic.report.review_sheet import NOT_VALIDATED

DATASET, CASE = "OpenOSCE_Demo", "demo-013"


class Page(HTMLParser):
    """The text of a page, in and before its fold, and whatever a browser would fetch."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.folded: list[str] = []
        self.open: list[str] = []
        self.fetched: list[str] = []
        self._in_fold = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_fold |= given.get("class") == "answer-fold"
        self.fetched += [str(given[name]) for name in ("src", "href", "action") if name in given]
        assert tag not in ("script", "link", "iframe", "form")

    def handle_endtag(self, tag: str) -> None:
        self._in_fold &= tag != "details"

    def handle_data(self, data: str) -> None:
        (self.folded if self._in_fold else self.open).append(data.replace("\u00a0", " "))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    main(["data", "review", "export", DATASET, "--scenarios", f"{CASE},3", "-o", str(tmp_path / "out")])
    return tmp_path / "out"


def test_a_sheet_has_the_whole_case_with_its_answer_behind_a_fold(folder: Path) -> None:
    (case,) = (case for case in load_cases(DATASET) if case.name == CASE)
    page = Page(folder / f"{CASE}.html")
    shown, answer = " ".join(page.open), " ".join(page.folded)
    for fact in case.facts:
        assert fact.text in shown
    for fact in case.patient_facts[1:]:
        assert fact.says is not None
        assert fact.says in shown
    assert "normal results that the laboratory adds" in shown
    assert page.fetched == []
    assert NOT_VALIDATED in shown
    notes = case.annotations
    key = [case.diagnosis, *case.answer_key.accept, *case.answer_key.partial, *dict(case.answer_key.reject).values()]
    key += [entry[part] for entry in notes["Differential"] for part in ("name", "why_considered", "refuted_by")]
    key += [entry["because"] for entry in notes["Must_Not_Miss"]] + [notes["tier"]]
    for text in key:
        assert text in answer
    for hidden in (case.diagnosis, *case.answer_key.accept):
        assert hidden not in shown
    for item, question in QUESTIONS.items():
        assert item.value in page.open
        assert question in page.open


def test_the_form_has_a_row_for_each_case_and_item(folder: Path) -> None:
    rows = list(csv.DictReader((folder / "verdicts.csv").read_text(encoding="utf-8-sig").splitlines()))
    cases = {case.name: digest(case) for case in load_cases(DATASET)}
    assert {(row["case_id"], row["digest"], row["item"]) for row in rows} == {
        (name, cases[name], item.value) for name in (CASE, "demo-004") for item in QUESTIONS
    }
    assert {(row["reviewer"], row["verdict"], row["severity"], row["remark"]) for row in rows} == {("", "", "", "")}
    index = Page(folder / "index.html")
    assert index.fetched == ["demo-004.html", f"{CASE}.html"]
    assert NOT_VALIDATED in index.open


def fill(folder: Path, **answers: str) -> None:
    """Write `verdict,severity,remark` into the rows of the first case."""
    file = folder / "verdicts.csv"
    text = file.read_text(encoding="utf-8-sig")
    for item, answer in answers.items():
        text = re.sub(rf"^({CASE},.*,{item},.*),,,$", rf"\1,{answer}", text, flags=re.MULTILINE)
    file.write_text(text, encoding="utf-8")


def test_verdicts_are_merged_and_summed_up(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(folder, blind_answer=",,Polymyalgia", blind_sure=",,90", tier="problem,major,Not hard", fair_key="ok,,")
    reviews = folder / "reviews.jsonl"
    arguments = ["data", "review", "import", str(folder), "--dataset", DATASET, "-o", str(reviews), "--reviewer"]
    main([*arguments, "ann"])
    main([*arguments, "ben"])  # the same form again, by someone else
    capsys.readouterr()
    main([*arguments, "ben"])
    told = capsys.readouterr().out
    assert "1 of 14 cases reviewed by 2 reviewers (ann, ben): 4 verdicts" in told
    assert f"{CASE}: tier (major), ann: Not hard" in told
    assert "Blind answers that the key accepts: 100.0%" in told
    assert "8 reviews in" in told
    assert "(new 0, replaced 0)" in told
    lines = [json.loads(line) for line in reviews.read_text(encoding="utf-8").splitlines()]
    assert {line["reviewer"] for line in lines} == {"ann", "ben"}
    main(["data", "review", "import", str(reviews), "--dataset", DATASET, "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert (summary["agreement"]["count"], summary["agreement"]["of"]) == (2, 2)
    assert [one["item"] for one in summary["open_problems"]] == ["tier", "tier"]


def test_an_import_that_fails_leaves_every_file_as_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(folder, tier="ok,,")
    reviews = folder / "reviews.jsonl"
    main(["data", "review", "import", str(folder), "--dataset", DATASET, "-o", str(reviews), "--reviewer", "ann"])
    fill(folder, fair_key="good,,")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(SystemExit, match="2"):
        main(["data", "review", "import", str(folder), "--dataset", DATASET, "-o", str(reviews), "--reviewer", "ben"])
    assert "verdicts.csv line 16: verdict: 'good': Input should be" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_lockbox_cases_are_reviewed_only_if_the_lockbox_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [osce(case_id=f"osce-t0{number}", lockbox=number == 2) for number in (1, 2)]
    cases, shut, opened = str(write_rows(tmp_path / "cases.jsonl", *rows)), tmp_path / "shut", tmp_path / "opened"
    main(["data", "review", "export", cases, "-o", str(shut)])
    assert sorted(page.name for page in shut.glob("osce*")) == ["osce-t01.html"]
    with pytest.raises(SystemExit, match="2"):
        main(["data", "review", "export", cases, "--scenarios", "osce-t02", "-o", str(tmp_path / "no")])
    assert "--lockbox opens it, once per release" in capsys.readouterr().err
    main(["data", "review", "export", cases, "--lockbox", "--reviewer", "ann", "-o", str(opened)])
    assert "The lockbox is scored once per release" in capsys.readouterr().out
    form = opened / "verdicts-ann.csv"
    form.write_text(form.read_text(encoding="utf-8").replace(",,,\n", ",unsure,,\n", 33), encoding="utf-8")
    kept = re.sub(r"^.*(?:blind|remarks).*\n", "", form.read_text(encoding="utf-8"), flags=re.MULTILINE)
    form.write_text(kept, encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["data", "review", "import", str(form), "--dataset", cases])
    assert "no case 'osce-t02' to review here" in capsys.readouterr().err
    main(["data", "review", "import", str(form), "--dataset", cases, "--lockbox"])
    assert "2 of 2 cases reviewed by 1 reviewer (ann): 16 verdicts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", DATASET, "--scenarios", "0", "-o", "here"], "here exists and is kept; name a new folder"),
        (["export", "twice.jsonl", "-o", "new"], "rows 0 and 1 are both called osce-t01; give each its own case_id"),
        (["import", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["import", "empty"], "empty: has no .csv or .jsonl file"),
    ],
)
def test_what_cannot_be_done_is_refused(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.txt").touch()
    (tmp_path / "empty").mkdir()
    write_rows(tmp_path / "twice.jsonl", osce(case_id="osce-t01"), osce(case_id="osce-t01", truth="Gout"))
    with pytest.raises(SystemExit, match="2"):
        main(["data", "review", *arguments])
    assert said in capsys.readouterr().err
