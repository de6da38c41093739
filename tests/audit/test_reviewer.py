"""The reviewer: what it is asked, what becomes of its answer, and how reviews are kept."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, osce, write_rows
from runs_support import clinic, lines, point_at, settings_for
from scripted_server import ScriptedServer

from agentclinic.audit.model import AuditedReply, Kind
from agentclinic.audit.planted import Planted
from agentclinic.audit.reviewer import Review, findings_of, review_of
from agentclinic.audit.run import AuditReport, review_run
from agentclinic.errors import ConfigError
from agentclinic.results.run_cases import write_cases

pytestmark = pytest.mark.anyio
ROW = osce(
    patient={
        "Demographics": "40-year-old woman",
        "History": "Sore toe for three days.",
        "Review_of_Systems": "No fever.",
    },
    tests={"Uric_Acid": "9.8 mg/dL"},
    truth="Gouty arthritis",
)
CASE = case_of(ROW, "own")
CLEAN: dict[str, list[Any]] = {
    "told": [], "contradicted": [], "omitted": [], "unasked": [], "invented": [], "diseases": [],
    "contradicts_earlier": [],
}  # fmt: skip
MODEL = ("some/reviewer", None)


def review(**fields: Any) -> str:
    return json.dumps({**CLEAN, **fields})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """One encounter with three free-text replies, and one whose facts are recorded."""
    said = [
        ("Why are you here?", "My toe is sore."),
        ("Any fever?", "Yes, fever."),
        ("Any rash?", "No, and I am lost."),
    ]
    transcript: list[dict[str, Any]] = []
    for turn, (asked, text) in enumerate(said, start=1):
        transcript += [{"turn": turn, "role": "doctor", "text": asked}, {"turn": turn, "role": "patient", "text": text}]
    told = [{"topic": "uric acid", "provenance": "chart", "paths": ["Test_Results/Uric_Acid"]}]
    transcript += [
        {"turn": 4, "role": "doctor", "text": "REQUEST TEST: Uric Acid"},
        {"turn": 4, "role": "measurement", "text": "RESULTS: Uric Acid: 9.8 mg/dL.", "disclosures": told},
    ]
    record = {"scenario_id": 0, "dataset": "own", "status": "diagnosed", "correct": True, "case_hash": CASE.id,
              "ground_truth": "Gouty arthritis", "patient_llm": "m", "measurement_llm": "m", "transcript": transcript,
              "missing_test": "unavailable", "silent_symptom": "deny"}  # fmt: skip
    folder = tmp_path / "run"
    folder.mkdir()
    write_rows(folder / "scenarios.jsonl", record)
    write_cases(folder, [CASE])
    return folder


def rate(report: AuditReport, kind: Kind) -> Any:
    return next(r for r in report.rates if (r.role, r.by, r.kind) == ("patient", "reviewer", kind))


def answers(server: ScriptedServer, *rules: dict[str, Any]) -> None:
    server.control(rules=[*rules, {"match": {"purpose": "reviewer"}, "reply": review()}])


async def test_the_reviewer_is_shown_the_question_the_reply_and_the_numbered_chart_of_the_role(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    answers(server)
    await review_run(run, settings_for(server, tmp_path), MODEL)

    asked = [json.dumps(entry["body"]) for entry in server.log()]
    assert len(asked) == 3, "the reply with recorded facts is not reviewed"
    assert all(entry["purpose"] == "reviewer" for entry in server.log())
    fever = next(text for text in asked if "Yes, fever." in text)
    for shown in ("Any fever?", "3. Review of Systems: No fever", "My toe is sore.", "Denying a symptom"):
        assert shown in fever
    assert "Gouty" not in fever, "the reviewer does not know the diagnosis"
    assert "9.8" not in fever, "nor the laboratory's chart"


async def test_reviews_become_rates_and_findings(run: Path, server: ScriptedServer, tmp_path: Path) -> None:
    rule = {
        "match": {"text_contains": "[Reply to check]\nYes, fever."},
        "reply": review(contradicted=[3], invented=["x"]),
    }
    answers(server, rule)
    report = await review_run(run, settings_for(server, tmp_path), MODEL)

    contradicted = rate(report, Kind.CONTRADICTED)
    assert (contradicted.found, contradicted.per_reply.n) == (1, 3)
    found = [f for f in report.findings if f.by == "reviewer"]
    assert [(f.kind, f.turn) for f in found] == [(Kind.CONTRADICTED, 2), (Kind.INVENTED, 2)]
    assert found[0].path == "Patient_Actor/Review_of_Systems"
    assert contradicted.corrected is None
    assert any("--calibrate" in note for note in report.notes)
    assert report.reviewer is not None
    assert report.reviewer.usage.input_tokens


@pytest.mark.parametrize("fault", ["prose_instead_of_json", "invalid_schema_json", "refusal", "500"])
async def test_an_unreadable_review_is_a_failed_review_never_a_clean_reply(
    run: Path, server: ScriptedServer, tmp_path: Path, fault: str
) -> None:
    answers(server, {"match": {"text_contains": "[Reply to check]\nYes, fever."}, "fault": fault})
    report = await review_run(run, settings_for(server, tmp_path), MODEL)

    assert report.reviewer is not None
    assert (report.reviewer.reviewed, report.reviewer.failed, report.reviewer.not_tried) == (2, 1, 0)
    assert rate(report, Kind.INVENTED).per_reply.n == 2
    kept = lines(run / "reviews" / "some_reviewer.jsonl")
    assert sum(entry["review"] is None for entry in kept) == 1


async def test_a_number_that_is_no_statement_makes_a_review_unreadable(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    answers(server, {"match": {"text_contains": "[Reply to check]\nYes, fever."}, "reply": review(told=[4])})
    report = await review_run(run, settings_for(server, tmp_path), MODEL)
    assert report.reviewer is not None
    assert report.reviewer.failed == 1


async def test_a_second_audit_asks_only_for_what_is_missing(run: Path, server: ScriptedServer, tmp_path: Path) -> None:
    settings = settings_for(server, tmp_path)
    answers(server, {"match": {"text_contains": "[Reply to check]\nYes, fever."}, "fault": "refusal"})
    await review_run(run, settings, MODEL)
    server.reset()
    answers(server)
    report = await review_run(run, settings, MODEL)

    assert len(server.log()) == 1
    assert report.reviewer is not None
    assert (report.reviewer.reviewed, report.reviewer.failed) == (3, 0)
    server.reset()
    again = await review_run(run, settings, MODEL)
    assert server.log() == []
    assert again.reviewer is not None
    assert again.reviewer.usage.requests == 0


async def test_a_changed_prompt_is_reviewed_again(run: Path, server: ScriptedServer, tmp_path: Path) -> None:
    answers(server)
    await review_run(run, settings_for(server, tmp_path), MODEL)
    prompts = tmp_path / "own"
    prompts.mkdir()
    template = {"system_base": "Be strict.", "user_prompt_template": "{facts} {question} {reply}"}
    (prompts / "reviewer.json").write_text(json.dumps(template), encoding="utf-8")
    server.reset()
    answers(server)
    await review_run(run, settings_for(server, tmp_path, prompts_dir=str(prompts)), MODEL)
    assert len(server.log()) == 3
    assert "Be strict." in json.dumps(server.log()[0]["body"])


async def test_every_reply_is_reviewed_on_request_and_a_private_run_keeps_private_reviews(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    run.chmod(0o700)  # noqa: ASYNC240
    answers(server)
    report = await review_run(run, settings_for(server, tmp_path), MODEL, every_reply=True)
    assert report.reviewer is not None
    assert report.reviewer.reviewed == 4
    assert stat.S_IMODE((run / "reviews").stat().st_mode) == 0o700
    assert stat.S_IMODE(report.reviewer.path.stat().st_mode) == 0o600


async def test_an_error_that_every_request_would_meet_stops_the_reviews(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "reviewer"}, "fault": "auth"}])
    report = await review_run(run, settings_for(server, tmp_path, workers=1), MODEL)
    assert report.reviewer is not None
    assert (report.reviewer.failed, report.reviewer.not_tried) == (1, 2)
    assert len(server.log()) == 1


@pytest.mark.slow
async def test_calibration_corrects_the_rates_and_is_kept_with_the_run(
    run: Path, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reviewer that finds every planted "I have also had" and nothing else."""
    monkeypatch.setattr("agentclinic.audit.planted._BASES", 40)
    settings = settings_for(server, tmp_path, workers=8)
    answers(server, {"match": {"text_contains": "I have also had"}, "reply": review(invented=["it"])})
    report = await review_run(run, settings, MODEL, calibrate=True)

    invented = rate(report, Kind.INVENTED)
    assert invented.specificity["planted"].value == 1.0
    assert 0.3 < invented.sensitivity["planted"].value < 0.7, "numbers are invented, too"
    assert invented.corrected is not None
    assert invented.corrected.value == 0.0
    assert rate(report, Kind.OMITTED).sensitivity["planted"].value == 0.0
    assert rate(report, Kind.OMITTED).corrected.value is None
    server.reset()
    later = await review_run(run, settings, MODEL)
    assert server.log() == []
    assert rate(later, Kind.INVENTED).corrected == invented.corrected


@pytest.mark.parametrize("name", ["builtin", "human"])
async def test_only_a_language_model_can_review(run: Path, server: ScriptedServer, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot review"):
        await review_run(run, settings_for(server, tmp_path), (name, None))


def test_code_decides_whether_a_disease_is_the_diagnosis() -> None:
    given = Review(**{**CLEAN, "diseases": ["gouty arthritis", "lupus"], "contradicts_earlier": ["no"]})
    found = findings_of(given, Planted(CASE, AuditedReply("patient", "Why?", "Because.")))
    assert [f.kind for f in found] == [Kind.DIAGNOSIS_REVEALED, Kind.DISEASE_NAMED, Kind.SELF_CONTRADICTED]


def test_a_review_is_bounded() -> None:
    for wrong in ({"told": [0]}, {"told": [1, 1, 1]}, {"invented": ["x" * 301]}, {"diseases": ["x"] * 13}, {"more": 1}):
        with pytest.raises(ValueError, match="validation error"):
            review_of(2).model_validate({**CLEAN, **wrong})
    assert review_of(0).model_validate(CLEAN)


@pytest.mark.slow
def test_the_command_shows_failed_reviews_and_tokens_and_ends_with_code_3(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    answers(server, {"match": {"text_contains": "[Reply to check]\nYes, fever."}, "fault": "refusal"})
    config = point_at(tmp_path, server)
    command = ("audit", run, "--reviewer", MODEL[0], "--llm-config", config)
    done = clinic(*command, cwd=tmp_path, expect=3)

    assert "(reviewer)" in done.stdout
    assert "2 replies reviewed, 1 review failed, 0 not tried" in done.stdout
    assert "tokens in" in done.stdout
    assert "Run the same command again" in done.stderr
    server.reset()
    answers(server)
    shown = json.loads(clinic(*command, "--json", "-q", cwd=tmp_path).stdout)
    assert (shown["reviewer"]["reviewed"], shown["reviewer"]["failed"]) == (3, 0)
    assert "by_id" not in shown["reviewer"]
