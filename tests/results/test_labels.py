"""Labels decide what the judge could not read, wherever a run is read; they change nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judges_support import write_lines
from report_support import gathered, record, unread, write_run, wrong

import agentclinic
from agentclinic.cli import main
from agentclinic.report.files import render
from agentclinic.report.runs import describe_run
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import load_arm
from agentclinic.scoring.score import score
from agentclinic.viewer.data import Library, RunIndex


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Right, wrong, and four that the judge could not read."""
    folder = write_run(tmp_path / "run", [record(0), wrong(1), *(unread(n) for n in range(2, 6))])
    main(["score", str(folder), "--json", "--output", str(tmp_path / "score.json")])
    found = json.loads((tmp_path / "score.json").read_text())["outcome"]
    (folder / "summary.json").write_text(json.dumps({"correct": 1, "outcomes": found["outcomes"]}))
    return folder


def label(run: Path, who: str, **said: bool | None) -> None:
    entries = [
        {"scenario_id": int(n[1:]), "correct": correct, "labeler": who, "diagnosis": "Broken wing zzyzx of gout"}
        for n, correct in said.items()
    ]
    write_lines(run / "labels" / f"{who}.jsonl", entries)


def outcomes(run: Path, judge: str | None = None) -> list[tuple[str, bool | None]]:
    return [(one.status, one.correct) for one in load_run(run, judge).records()]


UNREAD = ("not_readable", None)
RIGHT, WRONG = ("diagnosed", True), ("diagnosed", False)


def test_most_labelers_decide_what_is_unread_and_a_tie_leaves_it_so(run: Path) -> None:
    label(run, "ann", n2=True, n3=False, n4=True, n5=None)
    label(run, "bob", n2=True, n3=False, n4=False)
    label(run, "cid", n2=False)
    assert outcomes(run) == [RIGHT, WRONG, RIGHT, WRONG, UNREAD, UNREAD]
    decided = list(load_run(run).records())[2].judgement
    assert decided is not None
    assert (decided.correct, decided.decided_by, decided.reason) == (True, "person", "labeled by ann, bob, cid")
    still = list(load_run(run).records())[4].judgement
    assert still is not None
    assert (still.decided_by, still.reason) == (None, "cannot read 'zzyzx'")


def test_a_label_neither_changes_a_verdict_nor_counts_for_other_words_another_case_or_repeat(run: Path) -> None:
    about = {"labeler": "ann", "diagnosis": "Broken wing zzyzx of gout"}
    entries: list[dict[str, Any]] = [
        {"scenario_id": 0, "correct": False, "labeler": "ann"},
        {"scenario_id": 1, "correct": True, "labeler": "ann"},
        {"scenario_id": 2, "correct": True, "labeler": "ann", "diagnosis": "Gout"},
        {"scenario_id": 3, "correct": True, "case_hash": "other", **about},
        {"scenario_id": 4, "correct": True, "repeat": 1, **about},
        {"scenario_id": 5, "correct": True, **about},
        {"scenario_id": 5, "correct": None, "undone": True, **about},
    ]
    write_lines(run / "labels" / "ann.jsonl", entries)
    assert outcomes(run) == [RIGHT, WRONG, *[UNREAD] * 4]


def test_labels_decide_what_another_judge_could_not_read(run: Path) -> None:
    said = [False, None, None, True, None, None]
    entries: list[dict[str, Any]] = [
        {"scenario_id": n, "case_hash": f"{n:016x}", "correct": verdict} for n, verdict in enumerate(said)
    ]
    entries[4]["fault"] = {"error": "timeout", "message": ""}
    write_lines(run / "judgements" / "other.jsonl", entries)
    label(run, "ann", n2=True, n3=False, n4=True)
    failed = ("judge_failed", None)
    assert outcomes(run, "other") == [WRONG, UNREAD, RIGHT, RIGHT, failed, UNREAD]


def test_labels_count_in_scores_reports_comparisons_lists_the_viewer_and_python(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index, library = RunIndex(run), Library(run.parent)
    assert not index.read()
    assert [row[1] for row in index.rows][2:4] == ["not_readable"] * 2
    assert library.runs()["runs"][0]["right"] == pytest.approx(1 / 6)
    label(run, "ann", n2=True, n3=False)
    assert score(load_run(run)).outcome.correct == 2
    assert load_arm(load_run(run)).mean("strict") == pytest.approx(2 / 6)
    assert agentclinic.load_run(run).summary.correct == 2
    assert agentclinic.load_run(run).records[2].correct is True
    rows = json.loads(render(gathered(run), "json"))
    assert rows["runs"][0]["score"]["outcome"]["correct"] == 2
    assert not index.read()
    assert [row[1] for row in index.rows][2:4] == ["diagnosed_right", "diagnosed_wrong"], "read again"
    assert index.encounter(index.rows[2][0])["verdict"]["correct"] is True
    listed = describe_run(run, run.parent)
    assert listed.accuracy is not None
    assert (listed.accuracy.count, listed.note) == (2, None), "summary.json has what the judge decided"
    assert library.runs()["runs"][0]["right"] == pytest.approx(2 / 6)
    main(["score", str(run), "--json"])
    assert json.loads(capsys.readouterr().out)["outcome"]["accuracy_lenient"] is not None, "the lenient rule stays"
