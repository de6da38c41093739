"""`--story model`: where no symptoms are on record, a language model makes up the story, marked and checked."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from generate_support import DEMO, source
from helpers import ORIGINAL, needs_original
from mimic_rows import ward
from runs_support import clinic, lines, point_at
from scripted_server import ScriptedServer

from agentclinic.cases.model import WrittenStory
from agentclinic.generate.case import case_row, prepare
from agentclinic.generate.checks import check
from agentclinic.generate.mimic.classify import MARKER
from agentclinic.generate.source import Measured, Truth
from agentclinic.lint.check import check_file

HOSP_ONLY = ("note/discharge", "ed/edstays", "ed/triage", "ed/vitalsign", "ed/medrecon")
TOLD = WrittenStory(
    objective="Assess and diagnose the patient, who has felt unwell for some days.",
    history="The patient has felt weak for 3 days. It became worse yesterday.",
    primary_symptom="Weakness",
    secondary_symptoms=["Poor appetite"],
    past_medical_history="",
    medications="",
    social_history="",
    family_history="",
    review_of_systems="The patient denies a rash.",
)
GENERATE = ("generate", "mimic", "--base-dir", "mimic-iv", "--output", "made.jsonl")
BY_MODEL = (*GENERATE, "--model", "m", "--story", "model")


def tables(folder: Path, **how: Any) -> None:
    ward().write(folder / "mimic-iv", without_tables=HOSP_ONLY, **how)


def writes(story: WrittenStory = TOLD, **match: Any) -> dict[str, Any]:
    return {"match": {"purpose": "writer", **match}, "reply": story.model_dump_json()}


def test_from_hosp_tables_alone_a_model_writes_symptoms_history_and_review_and_the_case_says_so(
    tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    server.control(rules=[writes()])
    said = clinic(*BY_MODEL, cwd=tmp_path).stdout
    assert "6 of 6 cases made, 0 in quarantine" in said
    assert "6  model" in said
    assert "without symptoms" not in said
    for row in lines(tmp_path / "made.jsonl"):
        assert (row["history_source"], row["labs_only"], row["generation"]["model"]) == ("model", False, "m")
        patient = row["OSCE_Examination"]["Patient_Actor"]
        assert patient["History"] == TOLD.history
        assert patient["Symptoms"] == {"Primary_Symptom": "Weakness", "Secondary_Symptoms": ["Poor appetite"]}
        assert patient["Review_of_Systems"] == TOLD.review_of_systems
        assert row["OSCE_Examination"]["Test_Results"], "results are still the record's"
    report = check_file(tmp_path / "made.jsonl", "made")
    assert (report.errors, report.leaks) == ([], [])
    refused = clinic(*GENERATE, "--model", "m", cwd=tmp_path, expect=2).stderr
    assert "changed: story" in refused, "stories on record and made-up ones are not mixed"


def test_the_model_is_told_codes_and_results_and_no_identifier_or_date(tmp_path: Path, server: ScriptedServer) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    server.control(rules=[writes()])
    clinic(*BY_MODEL, cwd=tmp_path)
    sent = [json.dumps(entry["body"], ensure_ascii=False) for entry in server.log()]
    kidney = next(body for body in sent if "Acute pyelonephritis" in body)
    for told in ("Essential (primary) hypertension", "Diabetes mellitus", "17.8 K/uL", "ESCHERICHIA COLI"):
        assert told in kidney, told
    for body in sent:
        assert "9000000" not in body, "a patient, admission or stay"
        assert "92000000" not in body
        assert "2150-" not in body
        assert "2149-" not in body


def test_what_is_on_record_is_told_as_before(tmp_path: Path, server: ScriptedServer) -> None:
    ward().write(tmp_path / "mimic-iv")
    point_at(tmp_path, server)
    server.control(rules=[writes(text_contains="Diagnosis (secret)")])
    clinic(*BY_MODEL, "--limit", "6", cwd=tmp_path, expect=None)
    bodies = [json.dumps(entry["body"]) for entry in server.log()]
    told = [body for body in bodies if "epigastric pain" in body or "Dyspnea" in body]
    assert told
    assert not any("Diagnosis (secret)" in body for body in told), "its writer is still not told the diagnosis"
    assert [row["history_source"] for row in lines(tmp_path / "made.jsonl")].count("model") == 4


BLOOD = (
    Measured("Hemoglobin", "13.9", "g/dL", "13.7", "17.5", "", "Blood Hematology", 1.0, ("labevents:1",)),
    Measured("Glucose", "512", "mg/dL", "70", "105", "abnormal", "Blood Chemistry", 1.0, ("labevents:2",)),
)
KIDNEY = Truth("Acute pyelonephritis", "N10", 10, "Genitourinary system")
PLANTED = [
    ("history", "She has a kidney infection.", "patient_leak"),
    ("objective", "Assess the patient with pyelonephritis.", "door_leak"),
    ("past_medical_history", "Earlier pyelonephritis.", "history_of_same"),
    ("history", "It may be acute appendicitis.", "names_disease"),
    ("history", "The patient has anemia.", "contradiction"),
    ("review_of_systems", "No hyperglycemia was noticed.", "contradiction"),
    ("history", "He has pain in the testicles.", "contradiction"),
    ("history", "A scan showed hydronephrosis.", "invented_finding"),
    ("history", "The temperature was 39.2 degrees.", "invented_number"),
    ("history", "It began on March 3.", "date"),
    ("past_medical_history", "Known asthma.", "invented_story"),
    ("history", "A 30-year-old man with belly pain.", "contradiction"),
    ("history", "A 30-year-old woman with belly pain for 2 days.", "contradiction"),
    ("history", "30-year-old woman with belly pain.", "contradiction"),
    ("history", "A 30-year-old with belly pain.", "contradiction"),
    ("history", "She is 30 years old.", "contradiction"),
    ("history", "The patient, a retired gentleman, has pain.", "contradiction"),
    ("history", "This young boy has pain.", "contradiction"),
    ("review_of_systems", "This girl sleeps badly.", "contradiction"),
    ("objective", "Assess and diagnose the man with belly pain.", "contradiction"),
    ("review_of_systems", "She has hepatitis.", "names_disease"),
    ("history", "She may have meningitis or cancer.", "names_disease"),
    ("primary_symptom", "", "no_symptoms"),
    ("history", "", "no_symptoms"),
]


@pytest.mark.parametrize(("part", "text", "kind"), PLANTED, ids=[f"{kind}: {text}" for _, text, kind in PLANTED])
def test_a_made_up_story_that_leaks_contradicts_or_invents_is_rejected(part: str, text: str, kind: str) -> None:
    stay = source(
        KIDNEY, history_source="codes", story=(), drugs=(), labs=BLOOD, past=("Essential (primary) hypertension",)
    )
    prepared = prepare(stay, "model")
    story = TOLD.model_copy(update={"past_medical_history": "High blood pressure: essential hypertension."})
    assert check(case_row(prepared, story, {}), prepared) == []
    planted = {part: text if part in ("objective", "primary_symptom") or not text else f"{getattr(story, part)} {text}"}
    if part == "primary_symptom":
        planted["secondary_symptoms"] = []  # type: ignore[assignment]
    found = check(case_row(prepared, story.model_copy(update=planted), {}), prepared)
    assert kind in {problem.kind for problem in found}
    assert all(problem.fixable for problem in found)
    assert not any("pyelonephritis" in problem.for_writer.lower() for problem in found)


TRUE = [
    "A 54-year-old woman with belly pain for 2 days.",
    "Her 30-year-old son is well.",
    "She was pushed. A man pushed her.",
    "She scratched a 3-day-old wound.",
    "A 3-day-old rash has spread.",
    "A male nurse took the temperature.",
    "She denies hepatitis.",
    "Her feet are cold.",
]


@pytest.mark.parametrize("text", TRUE)
def test_what_a_made_up_story_says_of_others_or_says_rightly_is_no_contradiction(text: str) -> None:
    prepared = prepare(source(KIDNEY, history_source="none", story=(), past=(), drugs=()), "model")
    story = TOLD.model_copy(update={"history": f"{TOLD.history} {text}"})
    assert check(case_row(prepared, story, {}), prepared) == []


@pytest.mark.parametrize(
    ("told", "kinds"), [("text", {"no_symptoms"}), ("N/A", {"no_symptoms"}), ("My tummy hurts.", set())]
)
def test_a_made_up_story_has_at_least_one_word_for_a_symptom(told: str, kinds: set[str]) -> None:
    prepared = prepare(source(KIDNEY, history_source="none", story=(), past=(), drugs=()), "model")
    filled = {name: [told] if name == "secondary_symptoms" else told for name in WrittenStory.model_fields}
    found = check(case_row(prepared, WrittenStory.model_validate(filled), {}), prepared)
    assert {problem.kind for problem in found} == kinds


def test_parts_of_which_nothing_is_on_record_are_left_out_whatever_the_model_writes() -> None:
    prepared = prepare(source(KIDNEY, history_source="none", story=(), past=(), drugs=()), "model")
    talkative = {
        "past_medical_history": "None known.", "medications": "Takes aspirin.",
        "social_history": "Works as a baker.", "family_history": "No family history is mentioned.",
    }  # fmt: skip
    row = case_row(prepared, TOLD.model_copy(update=talkative), {})
    assert check(row, prepared) == []
    assert set(row["OSCE_Examination"]["Patient_Actor"]) == {"Demographics", "History", "Symptoms", "Review_of_Systems"}


def test_a_case_whose_story_still_leaks_after_two_retries_is_quarantined_with_the_reason(
    tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    leaking = TOLD.model_copy(update={"history": "She surely has acute pyelonephritis."})
    server.control(rules=[writes(leaking, text_contains="Acute pyelonephritis"), writes()])
    said = clinic(*BY_MODEL, cwd=tmp_path).stdout
    assert "5 of 6 cases made, 1 in quarantine" in said
    (entry,) = lines(tmp_path / "made.quarantine.jsonl")
    assert (entry["history_source"], entry["attempts"]) == ("model", 3)
    assert "patient_leak" in {reason["kind"] for reason in entry["reasons"]}


def test_the_cases_can_be_checked_for_being_solvable_with_the_whole_chart(
    tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    doctor = {"match": {"purpose": "doctor"}, "reply": "DIAGNOSIS READY: Acute pyelonephritis"}
    server.control(rules=[writes(), doctor])
    next_command = clinic(*BY_MODEL, cwd=tmp_path).stdout.splitlines()[-1].split()
    assert next_command[:3] == ["agentclinic", "generate", "solvability"]
    kidney = [row["OSCE_Examination"]["Correct_Diagnosis"] for row in lines(tmp_path / "made.jsonl")].index(
        KIDNEY.title
    )
    said = clinic(*next_command[1:4], "--doctor-llm", "m", "--quiet", cwd=tmp_path).stdout
    others = ", ".join(str(row) for row in range(6) if row != kidney)
    assert f"not solved with the whole chart: rows {others}\n" in said
    assert f"solved at the door: rows {kidney}\n" in said


@pytest.mark.parametrize("reply", ["What is your pain like?", "DIAGNOSIS READY: Acute pyelonephritis"])
def test_solvability_ignores_what_a_config_says_for_other_doctors_and_pairs_the_cases(
    reply: str, tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    server.control(rules=[writes(), {"match": {"purpose": "doctor"}, "reply": reply}])
    command = clinic(*BY_MODEL, cwd=tmp_path).stdout.splitlines()[-1].split()
    config = {
        "doctor_test_policy_enabled": True, "policy_in_prompt": True, "memory": "m.jsonl",
        "memory_llm": "m", "elicit_confidence": True, "doctor": "uncertainty", "synthesis_llm": "m",
    }  # fmt: skip
    (tmp_path / "agentclinic.config.json").write_text(json.dumps({"run": config}))
    said = clinic(*command[1:4], "--doctor-llm", "m", "--quiet", cwd=tmp_path).stdout
    assert "the chart adds    +0.0 points (" in said, "a case without a diagnosis is wrong, not missing"
    assert {entry["headers"].get("x-agentclinic-purpose") for entry in server.log()} == {"writer", "doctor"}


@needs_original
def test_the_next_step_works_with_the_originals_own_config(tmp_path: Path, server: ScriptedServer) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    server.control(rules=[writes(), {"match": {"purpose": "doctor"}, "reply": "DIAGNOSIS READY: a cold"}])
    shutil.copyfile(ORIGINAL / "agentclinic.config.json", tmp_path / "agentclinic.config.json")
    command = clinic(*BY_MODEL, cwd=tmp_path).stdout.splitlines()[-1].split()
    assert "the chart adds    +0.0 points (" in clinic(*command[1:], cwd=tmp_path).stdout


def test_where_every_case_is_in_quarantine_the_end_says_so_and_names_the_setting_that_makes_symptoms_up(
    tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    point_at(tmp_path, server)
    server.control(rules=[writes()])  # symptoms, although none are on record
    told = clinic(*GENERATE, "--model", "m", "--mode", "targets", "--targets", "N10", cwd=tmp_path)
    assert "0 of 1 cases made, 1 in quarantine" in told.stdout
    assert "1 patient without symptoms: none are on record" in told.stdout
    assert "--story model" in told.stdout
    assert "No case was made." in told.stdout
    assert "Written to" not in told.stdout
    assert "reading hosp/labevents" in told.stderr
    assert "reading ed/" not in told.stderr, "there is no such folder"
    assert "reading note/" not in told.stderr
    about = " ".join(clinic("generate", "mimic", "--help", cwd=tmp_path).stdout.split())
    assert "cases in quarantine are not missing" in about


def test_facts_is_the_default_and_says_that_these_patients_know_no_symptoms(
    tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    said = clinic(*GENERATE, cwd=tmp_path).stdout
    assert "6 patients without symptoms: none are on record" in said
    assert "--story model" in said
    assert {row["history_source"] for row in lines(tmp_path / "made.jsonl")} == {"codes", "none"}
    ward().write(tmp_path / "whole")
    whole = clinic("generate", "mimic", "--base-dir", "whole", "--output", "w.jsonl", cwd=tmp_path).stdout
    assert "4 patients without symptoms" in whole


def test_builtin_makes_nothing_up(tmp_path: Path) -> None:
    tables(tmp_path)
    refused = clinic(*GENERATE, "--story", "model", cwd=tmp_path, expect=2).stderr
    assert refused.strip().endswith("story model: builtin makes nothing up; name a language model with --model")
    assert not (tmp_path / "made.jsonl").exists()


def own_address() -> str | None:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which of our addresses would be used
        except OSError:
            return None
        address: str = probe.getsockname()[0]
        return address


@pytest.mark.parametrize("flags", [(), ("--allow-host", "{host}")], ids=["plain", "allowed but not attested"])
def test_nothing_of_credentialed_tables_reaches_a_host_that_is_not_allowed(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    """The host listens: a single connection would be seen."""
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has no address besides loopback")
    tables(tmp_path)
    (tmp_path / "mimic-iv" / MARKER).unlink()  # without it, the tables have to be treated as real patients'
    with socket.create_server((address, 0)) as listener:
        host = f"{address}:{listener.getsockname()[1]}"
        (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": f"http://{host}/v1"}}))
        given = [flag.format(host=host) for flag in flags]
        refused = clinic(*BY_MODEL, *given, cwd=tmp_path, expect=2).stderr
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert "credentialed data may not go to" in refused or "privacy.hosts" in refused
    assert not (tmp_path / "made.jsonl").exists()


def test_on_loopback_the_made_up_cases_of_credentialed_tables_stay_credentialed(
    tmp_path: Path, server: ScriptedServer
) -> None:
    tables(tmp_path)
    (tmp_path / "mimic-iv" / MARKER).unlink()
    point_at(tmp_path, server)
    server.control(rules=[writes()])
    clinic(*BY_MODEL, cwd=tmp_path)
    assert {row["data_class"] for row in lines(tmp_path / "made.jsonl")} == {"credentialed"}
    assert (tmp_path / "made.jsonl").stat().st_mode & 0o077 == 0


@needs_original
def test_the_originals_generation_config_works_as_shipped_or_names_the_one_line_that_is_missing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    shutil.copytree(ORIGINAL / "generate_cases", tmp_path / "generate_cases", copy_function=shutil.copyfile)
    config = ("generate", "mimic", "--gen_config", "generate_cases/gen.config.json")
    missing = clinic(*config, cwd=tmp_path, expect=2).stderr
    assert len(missing.strip().splitlines()) == 1
    assert "common.llm_config: ../llm.config.json does not exist" in missing
    point_at(tmp_path, server)
    missing = clinic(*config, cwd=tmp_path, expect=2).stderr
    assert len(missing.strip().splitlines()) == 1
    assert "mimic.base_dataset_dir: datasets/mimic-iv-3.1/ does not exist" in missing
    asked = clinic("generate", "medqa", "--gen_config", config[-1], cwd=tmp_path, expect=2).stderr
    assert len(asked.strip().splitlines()) == 1
    assert "medqa.base_dataset_dir is not set" in asked
    ward().write(tmp_path / "datasets" / "mimic-iv-3.1", without_tables=HOSP_ONLY)
    server.control(rules=[writes()])
    clinic(*config, "--story", "model", cwd=tmp_path)
    made = lines(tmp_path / "processed_data" / "agentclinic_mimiciv.jsonl")
    assert {row["generation"]["model"] for row in made} == {"gpt-5"}
    assert {row["history_source"] for row in made} == {"model"}


@pytest.mark.slow
@pytest.mark.skipif(not DEMO.is_dir(), reason="the MIMIC-IV demo is not at ../shared/data/mimic-iv-demo")
def test_on_the_demo_stories_that_name_the_diagnosis_are_the_ones_in_quarantine(
    tmp_path: Path, server: ScriptedServer
) -> None:
    command = ("generate", "mimic", "--base-dir", str(DEMO), "--limit", "100", "--quiet", "--workers", "4")
    clinic(*command, "--output", "facts.jsonl", cwd=tmp_path)
    titles = sorted({row["OSCE_Examination"]["Correct_Diagnosis"] for row in lines(tmp_path / "facts.jsonl")})
    point_at(tmp_path, server)
    leaking = {title: replace_history(f"The patient was told that it is {title.lower()}.") for title in titles[::4]}
    # The line of the request that has the diagnosis: other stays may have it among their earlier ones.
    secret = "Diagnosis (secret):\n{}\n\n"
    rules = [writes(story, text_contains=secret.format(title)) for title, story in leaking.items()]
    server.control(rules=[*rules, writes()])
    clinic(*command, "--output", "made.jsonl", "--model", "m", "--story", "model", cwd=tmp_path)
    made = {row["OSCE_Examination"]["Correct_Diagnosis"] for row in lines(tmp_path / "made.jsonl")}
    quarantined = lines(tmp_path / "made.quarantine.jsonl")
    drafts = {entry["draft"]["OSCE_Examination"]["Correct_Diagnosis"] for entry in quarantined}
    assert (made | drafts, made & drafts) == (set(titles), set())
    assert drafts == set(leaking)
    for entry in quarantined:
        assert "patient_leak" in {reason["kind"] for reason in entry["reasons"]}


def replace_history(text: str) -> WrittenStory:
    return TOLD.model_copy(update={"history": text})
