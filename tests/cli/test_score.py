"""`agentclinic score` and what is said beside its figures; the same notices stand in reports."""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path

import pytest
from judges_support import UNREAD
from report_support import Json, gathered, record, twin, unread, write_run, wrong

from agentclinic import load_run
from agentclinic.cli import main
from agentclinic.report.card import card
from agentclinic.report.files import render
from agentclinic.scoring.judges.against_labels import MEASURED


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
    error = f"says when it cannot read a diagnosis; it {MEASURED}"
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


def test_every_page_says_what_the_accuracy_is_at_most_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"doctor_llm": "large", "moderator_llm": "large"}
    by = {"relation": "same", "correct_lenient": True, "decided_by": "code"}
    folder = write_run(tmp_path / "run", [record(0, **own), record(1, judgement=by), wrong(2), unread(3)])
    at_most, itself = "at most 75.0%: 1 of 4 not readable", "judged by the doctor's own model"
    texts = [
        *(scored(folder, capsys, *flags) for flags in ([], ["--full"])),
        *(render(gathered(folder), kind) for kind in ("html", "md")),
        *(render(gathered(folder, folder), kind) for kind in ("html", "md")),
        card(folder),
        repr(load_run(folder)),
        load_run(folder)._repr_html_(),
    ]
    for text in texts:
        plain = html.unescape(text).replace("\u00a0", " ")
        assert f"{at_most}; {itself}" in plain
        assert "agentclinic judge label" in plain
        assert "--unread, or judge them with a model" in plain
    main(["runs", str(tmp_path)])
    assert "50% (15% to 85%), at most 75%: 1 of 4 not readable" in capsys.readouterr().out

    result = json.loads(scored(folder, capsys, "--json"))["outcome"]
    assert (result["not_readable"], result["accuracy_at_most"], result["own_judge"]) == (1, 0.75, 1)
    assert "decided by code 1, not readable 1" in texts[1]
    assert "decided" not in scored(write_run(tmp_path / "old", [record(0)]), capsys, "--full")
    head, *rows = csv.reader(io.StringIO(render(gathered(folder), "csv")))
    assert head[-1] == "decided_by"
    assert [row[-1] for row in rows] == ["", "code", "", ""]
    assert [row[head.index("outcome")] for row in rows][-1] == "not_readable"
    read = write_run(tmp_path / "read", [record(0), wrong(1)])
    for text in (scored(read, capsys), *(render(gathered(read), kind) for kind in ("html", "md"))):
        assert "at most" not in text
        assert "--unread, or" not in text


def test_the_limit_is_compared_with_the_lower_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", [record(0), unread(1)])
    scored(folder, capsys, "--fail-under", "0.5")
    with pytest.raises(SystemExit, match="1"):
        scored(folder, capsys, "--fail-under", "0.6")
    assert "is 50.00%, at most 100.0%: 1 of 2 not readable\n" in capsys.readouterr().err


def test_a_chosen_judge_that_is_the_doctor_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", [record(0, doctor_llm="large")])
    (folder / "judgements").mkdir()
    entry = {"scenario_id": 0, "case_hash": f"{0:016x}", "repeat": 0, "correct": True, "moderator_llm": "large"}
    (folder / "judgements" / "own.jsonl").write_text(json.dumps(entry) + "\n")
    assert "judged by the doctor's own model" in scored(folder, capsys, "--judge", "own")
    assert "own model" not in scored(folder, capsys)


def test_a_run_in_which_nothing_could_be_read_ends_like_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor, runs = tmp_path / "doctor.py", tmp_path / "runs"
    doctor.write_text(
        "class Mine:\n"
        "    def __init__(self, scenario): pass\n"
        f"    def inference_doctor(self, question): return 'DIAGNOSIS READY: {UNREAD}'\n"
    )
    where = ["--dataset", "OpenOSCE_Demo", "--limit", "2", "--output-dir", str(runs)]
    main(["run", "--doctor", f"{doctor}:Mine", *where, "--quiet"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "accuracy (strict) 0.0% (95% interval 0.0% to 65.8%; 0 of 2), at most 100.0%: 2 of 2 not readable" in shown
    assert "not readable (counts as not right) 2" in shown
    (folder,) = runs.iterdir()
    assert "No answer could be read." in shown
    assert f"agentclinic judge label {folder} --unread" in shown


def test_pages_mark_an_unread_answer_as_neither_right_nor_wrong(tmp_path: Path) -> None:
    twins = [
        one | {"annotations": {"Specialty": "Gout", **twin(one["scenario_id"])["annotations"]}}
        for one in (record(0), unread(1))
    ]
    repeats = [record(2), unread(2, repeat=1)]
    collected = gathered(write_run(tmp_path / "run", [*twins, *repeats]))
    page = render(collected, "html")
    assert 'aria-label="not readable">?</span>' in page
    assert 'aria-label="wrong"' not in page
    assert "Transcript: ? Broken wing zzyzx of gout" in page
    assert '<option value="not_readable">not readable</option>' in page
    assert "2 of those not right could not be read." in page
    (group, _) = collected.report.runs[0].breakdown.groups["specialty"]
    assert (group.accuracy.count, group.accuracy.of, group.not_readable) == (1, 2, 1)


def test_twins_are_one_row_of_the_score_and_in_every_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two pairs: one told apart, one with the same answer to both."""
    pairs = [twin(0), twin(1, said="Septic arthritis"), twin(2), twin(3, right=False, said="gout")]
    folder = write_run(tmp_path / "run", pairs)
    share = "50.0% (9.5% to 90.5%; 1 of 2)"
    told = f"{share}; same answer to both in 1 of 2 pairs"
    for full in ((), ("--full",)):
        assert f"both twins right {told} " in scored(folder, capsys, *full)
    for text in (render(gathered(folder), "md"), card(folder)):
        assert text.count(f"| both twins right | {told} |") == 1
    page = html.unescape(render(gathered(folder), "html")).replace("\u00a0", " ")
    assert f"Both right: {share}. Same answer to both: {share}." in page
    assert "Both right in 1 of 2 pairs of twins." in page
    assert "both twins" not in scored(write_run(tmp_path / "none", [record(0), record(1)]), capsys, "--full")


def test_twins_that_gave_no_diagnosis_have_no_same_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended: Json = {"status": "max_infs_reached", "correct": None, "diagnosis_text": None, "judgement": None}
    folder = write_run(tmp_path / "run", [twin(0, **ended), twin(1, **ended)])
    short = scored(folder, capsys)
    assert "both twins right 0.0% (0.0% to 79.3%; 0 of 1) " in short
    assert "same answer" not in short
