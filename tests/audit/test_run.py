"""`agentclinic audit`: a run's replies against its own cases, rates, formats, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, osce, write_rows
from runs_support import Process
from runs_support import clinic as run_clinic

from agentclinic.audit.model import JUDGED_BY_CODE, Kind
from agentclinic.audit.run import AuditReport, audit_run
from agentclinic.errors import InputError
from agentclinic.results.run_cases import write_cases

PATIENT = {
    "Demographics": "40-year-old woman",
    "History": "The patient has had a sore toe for three days.",
    "Review_of_Systems": "Denies fever, cough.",
}
TESTS = {"Uric_Acid": "9.8 mg/dL (ref <7.0)"}


def case_row(number: int) -> dict[str, Any]:
    return osce(patient={**PATIENT, "Social_History": f"Baker number {number}."}, tests=TESTS, truth="Gouty arthritis")


def record(number: int, replies: list[tuple[str, str, str]], **changes: Any) -> dict[str, Any]:
    """A record of a case: (role, what the doctor says, the reply)."""
    case = case_of(case_row(number), number=number)
    transcript = []
    for turn, (role, asked, reply) in enumerate(replies, start=1):
        transcript += [{"turn": turn, "role": "doctor", "text": asked}, {"turn": turn, "role": role, "text": reply}]
    return {
        "scenario_id": number,
        "dataset": "own",
        "status": "diagnosed",
        "correct": True,
        "ground_truth": "Gouty arthritis",
        "case_hash": case.id,
        "patient_llm": "some/model",
        "measurement_llm": "builtin",
        "missing_test": "unavailable",
        "silent_symptom": "deny",
        "transcript": transcript,
        **changes,
    }


def clinic(*arguments: str | Path, expect: int = 0) -> Process:
    """The command, run from a folder without settings."""
    return run_clinic(*arguments, cwd=Path(tempfile.gettempdir()), expect=expect)


FAITHFUL = ("patient", "Any fever?", "No fever.")
LYING = ("patient", "Any fever?", "No fever. I have lost 14 pounds.")
REPORT = ("measurement", "REQUEST TEST: Uric Acid", "RESULTS: Uric Acid: 9.8 mg/dL")
WRONG = ("measurement", "REQUEST TEST: Uric Acid", "RESULTS: Uric Acid: 4.0 mg/dL")


def make_run(folder: Path, records: list[dict[str, Any]], *, cases: int = 8) -> Path:
    """A run that holds its cases; no cases, as in version 0.2, if `cases` is 0."""
    folder.mkdir(parents=True)
    write_rows(folder / "scenarios.jsonl", *records)
    if cases:
        write_cases(folder, [case_of(case_row(number), "own", number) for number in range(cases)])
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Eight encounters; two patients lie once, one laboratory reports a wrong value."""
    records = [record(number, [LYING if number < 2 else FAITHFUL, FAITHFUL, REPORT]) for number in range(7)]
    return make_run(tmp_path / "run", [*records, record(7, [FAITHFUL, FAITHFUL, WRONG])])


def rate(report: AuditReport, role: str, kind: Kind) -> Any:
    return next(r for r in report.rates if (r.role, r.kind) == (role, kind))


def test_rates_are_counted_by_reply(run: Path) -> None:
    report = audit_run(run)

    assert report.replies == {"patient": 16, "measurement": 8}
    lies = rate(report, "patient", Kind.INVENTED_NUMBER)
    assert (lies.found, lies.per_reply.value, lies.by) == (2, 2 / 16, "code")
    assert lies.per_reply.low < 2 / 16 < lies.per_reply.high
    assert rate(report, "measurement", Kind.INVENTED_NUMBER).found == 1
    assert rate(report, "patient", Kind.DISEASE_NAMED).found == 0
    assert report.reviewer is None
    assert report.models == {"patient": ["some/model"], "measurement": ["builtin"]}


def test_each_finding_says_where_it_is_and_what_it_is_based_on(run: Path) -> None:
    findings = [f for f in audit_run(run).findings if f.role == "patient"]

    assert [(f.scenario_id, f.turn, f.kind) for f in findings] == [(0, 1, "invented_number"), (1, 1, "invented_number")]
    assert findings[0].words == "I have lost 14 pounds."
    assert findings[0].asked == "Any fever?"
    assert "14" in findings[0].why


def test_each_rate_comes_with_the_errors_of_the_check(run: Path) -> None:
    judged = [found for found in audit_run(run).rates if found.kind in JUDGED_BY_CODE[found.role]]
    assert len(judged) == 10
    for found in judged:
        assert found.sensitivity["planted"].of > 0
        assert found.specificity["planted"].value is not None
        assert found.corrected is None, "code gives a lower bound, which is not corrected"


def test_a_run_is_audited_with_its_own_cases_although_the_data_set_has_changed(tmp_path: Path) -> None:
    """The config names a data set under which another chart is found today: here, one with 14 pounds lost."""
    run = make_run(tmp_path / "run", [record(0, [FAITHFUL]), record(1, [LYING])])
    other = osce(patient={**PATIENT, "Review_of_Systems": "Lost 14 pounds."}, truth="Gouty arthritis")
    path = write_rows(tmp_path / "own.jsonl", other, other)
    used = {"run": {"dataset": "own"}, "datasets": {"own": str(path)}}
    (run / "config.used.json").write_text(json.dumps(used), encoding="utf-8")
    report = audit_run(run)

    assert [(f.scenario_id, f.kind) for f in report.findings] == [(1, Kind.INVENTED_NUMBER)]
    assert report.dataset == "own"
    path.unlink()
    assert audit_run(run) == report


def test_an_older_run_without_cases_needs_their_file(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [record(0, [LYING])], cases=0)
    (run / "config.used.json").write_text(json.dumps({"run": {"dataset": "OpenOSCE"}}), encoding="utf-8")
    for place in (run, run / "scenarios.jsonl"):
        with pytest.raises(InputError, match=r"does not contain its cases \(there is no cases.jsonl\).*--cases FILE"):
            audit_run(place)
    own = write_rows(tmp_path / "own.jsonl", *(case_row(number) for number in range(8)))
    assert [f.kind for f in audit_run(run, own).findings] == [Kind.INVENTED_NUMBER]


def test_a_record_of_a_lockbox_case_is_audited_with_the_file_of_its_cases(tmp_path: Path) -> None:
    sealed = osce(patient=PATIENT, tests=TESTS, truth="Gouty arthritis", lockbox=True)
    case = case_of(sealed)
    run = make_run(tmp_path / "run", [record(0, [LYING], case_hash=case.id)], cases=0)
    own = write_rows(tmp_path / "own.jsonl", sealed)
    assert [f.kind for f in audit_run(run, own).findings] == [Kind.INVENTED_NUMBER]


def test_cases_are_matched_by_content_and_records_of_others_are_counted(tmp_path: Path) -> None:
    strange = record(1, [LYING], case_hash="0" * 16)
    report = audit_run(make_run(tmp_path / "run", [record(0, [FAITHFUL]), strange]))

    assert report.encounters == 1
    assert any(note.startswith("case not in") and note.endswith(": 1 record") for note in report.notes)


def test_a_record_of_the_original_is_matched_by_row_and_truth(tmp_path: Path) -> None:
    old = record(0, [LYING], case_hash=None, silent_symptom=None, missing_test=None)
    other = record(1, [LYING], case_hash=None, ground_truth="Something else")
    report = audit_run(make_run(tmp_path / "run", [old, other]))

    assert report.encounters == 1
    assert report.findings[0].kind is Kind.INVENTED_NUMBER


def test_earlier_questions_count_as_asked(tmp_path: Path) -> None:
    work = ("patient", "What is your job?", "I am a baker.")
    again = ("patient", "Any fever?", "No fever. As I said: Baker number 0, at the mill.")
    rows = {**PATIENT, "Social_History": "Baker number 0, at the mill."}
    case = case_of(osce(patient=rows, tests=TESTS, truth="Gouty arthritis"), "own", 0)
    records = [record(0, [again], case_hash=case.id), record(0, [work, again], repeat=1, case_hash=case.id)]
    folder = make_run(tmp_path / "run", records, cases=0)
    write_cases(folder, [case])
    assert {(f.repeat, f.kind) for f in audit_run(folder).findings} == {(0, "unasked")}


TOLD = [{"topic": "Uric acid", "provenance": "chart", "paths": ["Test_Results/Uric_Acid"]}]


def recorded(number: int, simulator: str | None, suggested: list[str], **changes: Any) -> dict[str, Any]:
    """A record with one laboratory reply whose facts are recorded."""
    row = record(number, [("measurement", "REQUEST TEST: Serum urate", "RESULTS: Uric Acid: 9.8 mg/dL")], **changes)
    row["transcript"][1]["disclosures"] = TOLD
    if simulator:
        row["transcript"][1]["details"] = {"simulator": simulator, "suggested": suggested}
    return row


@pytest.mark.parametrize(
    ("simulator", "model", "suggested", "audited"),
    [
        (None, "builtin", [], 0),
        ("voiced", "some/model", ["Test_Results/Uric_Acid"], 0),
        ("grounded", "some/model", ["Test_Results/Uric_Acid"], 0),
        ("grounded", "some/model", [], 1),
    ],
)
def test_facts_that_our_matcher_chose_are_not_audited_for_unasked(
    tmp_path: Path, simulator: str | None, model: str, suggested: list[str], audited: int
) -> None:
    row = recorded(0, simulator, suggested, measurement_llm=model)
    report = audit_run(make_run(tmp_path / "run", [row]))

    unasked = rate(report, "measurement", Kind.UNASKED)
    assert unasked.per_reply.n == audited
    assert unasked.found == (0 if audited else None)
    assert any("our matcher chose the facts of 1 reply" in note for note in report.notes) is not bool(audited)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([record(0, [LYING], transcript=None)], "have no turn-by-turn transcript"),
        ([record(0, [LYING], case_hash="f" * 16)], "none of its cases is in .*cases.jsonl"),
        ([], "no records to audit"),
    ],
)
def test_a_run_with_nothing_to_audit_is_refused(tmp_path: Path, records: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        audit_run(make_run(tmp_path / "run", records))


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_prints_rates_and_lists_findings(run: Path) -> None:
    short = clinic("audit", run).stdout
    assert "invented_number     2 of 16 (12.5%)" in short
    assert "Something was found in 2 of 16 replies of the patient and 1 of " in short
    assert "sensitivity" not in short

    done = clinic("audit", run, "--list", "--full")

    assert "invented_number    2 of 16: 12.5%" in done.stdout
    assert "sensitivity and specificity on planted replies 100% (of 15) and 100% (of 90)" in done.stdout
    assert "own/0, turn 1, patient: invented_number" in done.stdout
    assert "I have lost 14 pounds." in done.stdout


@pytest.mark.slow
def test_every_format_has_the_same_figures(run: Path, tmp_path: Path) -> None:
    parsed = json.loads(clinic("audit", run, "--json").stdout)
    assert {(r["role"], r["kind"]): r["found"] for r in parsed["rates"]}["patient", "invented_number"] == 2

    rows = list(csv.DictReader(io.StringIO(clinic("audit", run, "--format", "csv").stdout)))
    assert next(r for r in rows if (r["role"], r["kind"]) == ("patient", "invented_number"))["found"] == "2"

    out = tmp_path / "audit.md"
    done = clinic("audit", run, "--format", "md", "--list", "-o", out)
    assert str(out) in done.stdout
    assert "| patient | code | invented_number | 2 of 16" in out.read_text(encoding="utf-8")

    listed = list(csv.DictReader(io.StringIO(clinic("audit", run, "--list", "--format", "csv").stdout)))
    assert [row["kind"] for row in listed] == ["invented_number"] * 3
    only = clinic("audit", run, "--list", "--format", "csv", "--role", "measurement").stdout
    assert [row["scenario_id"] for row in csv.DictReader(io.StringIO(only))] == ["7"]


@pytest.mark.slow
def test_every_format_says_what_was_not_audited(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [recorded(number, None, []) for number in range(2)])
    short = clinic("audit", run, "--role", "measurement").stdout
    assert [line.split()[1:] for line in short.splitlines() if line.startswith("unasked ")] == [["not", "audited"]]
    assert "our matcher chose the facts of 2 replies of the laboratory, so code cannot judge whether they" in short
    assert "Nothing found in what could be audited of 2 replies" in short
    only = clinic("audit", run, "--role", "measurement", "--kind", "unasked").stdout
    assert "Nothing could be audited." in only
    assert "unasked            not audited" in clinic("audit", run, "--full").stdout
    assert "| measurement | code | unasked | not audited |" in clinic("audit", run, "--format", "md").stdout

    rows = list(csv.DictReader(io.StringIO(clinic("audit", run, "--format", "csv").stdout)))
    told = {(row["role"], row["kind"]): (row["found"], row["replies"]) for row in rows}
    assert told["measurement", "unasked"] == ("not audited", "0")
    assert told["measurement", "invented_number"] == ("0", "2")
    parsed = json.loads(clinic("audit", run, "--json").stdout)["rates"]
    found = {(entry["role"], entry["kind"]): entry["found"] for entry in parsed}
    assert found["measurement", "unasked"] is None
    assert found["measurement", "invented_number"] == 0


@pytest.mark.slow
def test_hostile_text_cannot_break_a_table_or_become_a_formula(tmp_path: Path) -> None:
    said = ("patient", "=HYPERLINK(1) | any fever?", "I have lost 14 pounds | <script>alert(1)</script>")
    run = make_run(tmp_path / "run", [record(0, [said])])
    table = clinic("audit", run, "--list", "--format", "md").stdout
    assert "<script>" not in table
    lines = [line for line in table.splitlines() if line.startswith("| own/0 |")]
    assert lines
    assert all(line.replace("\\|", "").count("|") == 9 for line in lines)
    row = next(csv.DictReader(io.StringIO(clinic("audit", run, "--list", "--format", "csv").stdout)))
    assert row["asked"].startswith("'=")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "invented_numbr"], "did you mean"),
        (["--calibrate"], "need a --reviewer"),
        (["--role", "doctor"], "is not audited"),
        (["--format", "xml"], "is not one of"),
        (["--cases", "nowhere.jsonl"], "nowhere.jsonl"),
        (["-o", "nowhere/audit.txt"], "there is no folder"),
    ],
)
def test_mistakes_end_with_code_2_and_a_plain_message(run: Path, arguments: list[str], message: str) -> None:
    assert message in clinic("audit", run, *arguments, expect=2).stderr


def test_a_folder_without_a_run_or_without_its_cases_is_refused(run: Path, tmp_path: Path) -> None:
    assert str(tmp_path / "nothing") in clinic("audit", tmp_path / "nothing", expect=2).stderr

    (run / "cases.jsonl").unlink()
    assert "--cases FILE" in clinic("audit", run, expect=2).stderr
