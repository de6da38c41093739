"""`agentclinic memory`: list, show, check, merge and import."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fakes import plan_of
from helpers import case_of, osce, write_rows
from memory_support import COUNT, DURATION, ELSEWHERE, TOE, lesson, store_of, stories, story
from runs_support import lines

from agentclinic.cases.registry import load_cases
from agentclinic.cli import main
from agentclinic.memory.retrieval import Memory
from agentclinic.memory.split import make_split, write_split
from agentclinic.memory.store import load_store
from agentclinic.privacy import DataClass


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    """What a command prints; a refusal is on standard error."""
    if code:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in arguments])
        assert ended.value.code == code
        return capsys.readouterr().err
    main([str(word) for word in arguments])
    return capsys.readouterr().out


def test_list_and_show_print_experiences_and_where_they_come_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    listed = said(capsys, "memory", "list", store)
    assert f"{COUNT.id}  {COUNT.observation} -> {COUNT.suggestion}" in listed
    assert listed.splitlines()[-1].startswith("3 experiences")
    as_json = json.loads(said(capsys, "memory", "list", store, "--json"))
    assert [each["id"] for each in as_json] == [DURATION.id, COUNT.id, TOE.id]
    assert as_json[0]["source"]["case"] == ELSEWHERE.id
    assert "fingerprint" not in as_json[0]["source"]

    shown = said(capsys, "memory", "show", store, COUNT.id[:6])
    for part in (COUNT.suggestion, "test: Complete blood count (test:", f"case {ELSEWHERE.id}, failed", "scripted"):
        assert part in shown
    assert "no experience has the id nothing" in said(capsys, "memory", "show", store, "nothing", code=2)
    assert "several experiences begin with" in said(capsys, "memory", "show", store, "", code=2)
    assert "`agentclinic learn RUN -o" in said(capsys, "memory", "list", tmp_path / "none.jsonl", code=2)


def test_check_says_whether_a_file_respects_a_split_and_what_is_kept_off_a_data_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = stories(tmp_path / "stories.jsonl"), tmp_path / "split.json"
    cases = load_cases(str(data), {})
    split = make_split(cases, 1)
    write_split(path, split)
    (learned, *_), (tested, *_) = split.choose(cases, "train"), split.choose(cases, "test")
    store = store_of(tmp_path / "good.jsonl", lesson(learned, COUNT, TOE, split=split.checksum))

    found = json.loads(said(capsys, "memory", "check", store, "--split", path, "--dataset", data, "--json"))
    assert (found["lessons"], found["experiences"], found["repetitions"]) == (1, 2, 0)
    assert (found["cases"], found["cases_kept_apart"]) == (6, 1)
    assert found["splits"] == [split.checksum]
    assert "The file can be used." in said(capsys, "memory", "check", store)

    none = store_of(tmp_path / "none.jsonl", lesson(learned, COUNT))
    assert "made with another split, or none" in said(capsys, "memory", "check", none, "--split", path, code=2)
    store_of(store, lesson(tested, COUNT, split=split.checksum))
    refused = said(capsys, "memory", "check", store, "--split", path, code=2)
    assert "1 sources are not in its train part" in refused, "even if another case taught the same"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    assert "has been changed since it was made" in said(capsys, "memory", "check", store, "--split", path, code=2)
    with store.open("a") as file:
        file.write("{}\n")
    assert "line 3: source: Field required" in said(capsys, "memory", "check", store, code=2)


def test_check_refuses_what_is_too_long_with_its_line_and_list_still_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path / "experiences.jsonl", lesson(ELSEWHERE, TOE), lesson(ELSEWHERE, COUNT))
    store.write_text(store.read_text().replace("Order a complete", "Order a complete" + " and long" * 80))
    merge: list[str | Path] = ["merge", store, "-o", tmp_path / "merged.jsonl"]
    for command in (["check", store], merge):
        refused = " ".join(said(capsys, "memory", *command, code=2).split())
        assert "experiences.jsonl line 2: experiences.0.suggestion: " in refused
        assert "at most 600 are allowed: shorten it" in refused
        assert "Traceback" not in refused
    assert "Order a complete and long" in said(capsys, "memory", "list", store)


def test_merge_keeps_every_lesson_once_and_what_says_the_same_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = store_of(tmp_path / "one.jsonl", lesson(story("Gout"), TOE, COUNT))
    two = store_of(tmp_path / "two.jsonl", lesson(story("Gout"), TOE, COUNT), lesson(story("Asthma"), COUNT, DURATION))
    merged = tmp_path / "merged.jsonl"
    told = said(capsys, "memory", "merge", one, two, "-o", merged)
    assert told == f"3 experiences in 2 lessons, 3 repetitions dropped; written to {merged}\n"
    assert [len(line["experiences"]) for line in lines(merged)] == [2, 1]
    assert load_store(merged).experiences == (TOE, COUNT, DURATION)
    assert "exists; name a new file" in said(capsys, "memory", "merge", one, "-o", merged, code=2)


SHAPES = {
    "advice.json": [
        {
            "id": 1,
            "case_id": "OpenOSCE_Demo_0",
            "observation": "Fever and a stiff neck",
            "suggestion": "Look for a rash.",
        }
    ],
    "decisions.json": [
        {
            "id": 1,
            "case_id": "OpenOSCE_Demo_1",
            "situation": "Old woman with blurred vision",
            "uncertainty": ["Myeloma", "Stroke"],
            "action": "REQUEST TEST: Complete blood count",
            "rationale": "It shows anemia.",
            "timestamp": "2026-01-29T16:42:25",
        }
    ],
    "contexts.json": [
        {
            "context": "Young man with yellow eyes | no fever " + "and so on " * 80,
            "uncertainties": {"Hepatitis": "travel", "Gallstone": "pain"},
            "action": "ASK PATIENT: Where did you travel?",
            "action_reason": "Some regions have more of it.",
            "id": 7,
        }
    ],
    "by_case.json": {"OpenOSCE_Demo_3": [{"observation": "Swollen knee", "suggestion": "Ask about beer."}]},
    "by_id.json": {"e1": {"observation": "Itching", "suggestion": "Ask about cats.", "case": "OpenOSCE_Demo_4"}},
    "cases_of_ids.json": {"OpenOSCE_Demo_2": {"scenario_id": 2, "experience_ids": [7, 9], "model_correct": False}},
}


def test_import_reads_experiences_in_every_shape_and_finds_their_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, content in SHAPES.items():
        files.append(tmp_path / name)
        files[-1].write_text(json.dumps(content))
    files.append(tmp_path / "lines.jsonl")
    files[-1].write_text('{"observation": "Cough", "suggestion": "Ask about smoke."}\n' * 2)
    files.append(store_of(tmp_path / "ours.jsonl"))
    output = tmp_path / "all.jsonl"
    told = said(capsys, "memory", "import", *files, "-o", output)
    assert "9 experiences in 7 lessons, 1 repetition dropped, 1 shortened" in told
    assert "The case of 2 experiences was not found" in told
    store = load_store(output)
    demo = load_cases("OpenOSCE_Demo")
    case_of = {e.observation: s.case for e, s in zip(store.experiences, store.sources, strict=True)}
    assert case_of["Fever and a stiff neck"] == demo[0].id
    said(capsys, "memory", "import", files[0], "-o", tmp_path / "named.jsonl", "--dataset", "OpenOSCE")
    assert [source.case for source in load_store(tmp_path / "named.jsonl").sources] == [demo[0].id]
    assert case_of["Old woman with blurred vision. In question: Myeloma; Stroke."] == demo[1].id
    assert case_of["Swollen knee"] == demo[3].id
    assert case_of["Itching"] == demo[4].id
    assert case_of["Cough"] == "unknown"
    (young,) = (e for e in store.experiences if e.observation.startswith("Young man"))
    assert case_of[young.observation] == demo[2].id, "another file says so"
    assert len(young.observation) <= 600
    assert young.observation.endswith("… In question: Hepatitis; Gallstone.")
    assert young.suggestion == "Ask: Where did you travel? Some regions have more of it."
    assert young.step
    assert (young.step.kind, young.step.what) == ("question", "Where did you travel?")
    (old,) = (e for e in store.experiences if e.observation.startswith("Old woman"))
    assert old.step
    assert old.step.id == "test:complete_blood_count"
    again = said(capsys, "memory", "import", output, "-o", tmp_path / "again.jsonl")
    assert "9 experiences in 7 lessons, 0 repetitions dropped" in again


def test_experiences_from_the_lockbox_are_found_and_kept_off_their_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [osce(truth=truth, patient={"History": truth * 9}, lockbox=truth == "Croup") for truth in ("Croup", "Gout")]
    data = write_rows(tmp_path / "mine.jsonl", *rows)
    advice = tmp_path / "advice.json"
    advice.write_text(json.dumps([{"case_id": f"{data}_0", "observation": "Barking cough", "suggestion": "Listen."}]))
    said(capsys, "memory", "import", advice, "-o", tmp_path / "found.jsonl")
    assert load_store(tmp_path / "found.jsonl").sources[0].case == case_of(rows[0]).id
    found = json.loads(said(capsys, "memory", "check", tmp_path / "found.jsonl", "--dataset", data, "--json"))
    assert (found["cases"], found["cases_kept_apart"]) == (2, 1)


def test_imported_experiences_are_withheld_from_their_case_and_a_run_says_if_it_is_not_known(tmp_path: Path) -> None:
    source = tmp_path / "advice.json"
    source.write_text(json.dumps(SHAPES["advice.json"]))
    main(["memory", "import", str(source), "-o", str(tmp_path / "found.jsonl")])
    memory = Memory(load_store(tmp_path / "found.jsonl"), "bm25")
    allowed = [memory.allowed(case).all() for case in load_cases("OpenOSCE_Demo")]
    assert allowed == [False] + [True] * (len(allowed) - 1)
    unknown = json.dumps(SHAPES["advice.json"]).replace("OpenOSCE_Demo_0", "elsewhere")
    source.write_text(unknown)
    main(["memory", "import", str(source), "-o", str(tmp_path / "lost.jsonl")])
    with pytest.warns(UserWarning, match="the case of 1 of 1 experiences in .*lost.jsonl is not known, so they may be"):
        plan_of(memory=str(tmp_path / "lost.jsonl"), doctor_llm="m")


def test_an_imported_experience_from_mimic_is_credentialed(tmp_path: Path) -> None:
    source = tmp_path / "advice.json"
    source.write_text(json.dumps(SHAPES["advice.json"]).replace("OpenOSCE_Demo_0", "MIMICIV_3"))
    main(["memory", "import", str(source), "-o", str(tmp_path / "private.jsonl")])
    assert load_store(tmp_path / "private.jsonl").data_class is DataClass.CREDENTIALED
    assert (tmp_path / "private.jsonl").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("hello\n", "line 1: not an experience .*; expected experiences with observation and suggestion, or with situ"),
        ("[]", "other.json: expected experiences with"),
        ('{"a": 3}', r"entry 1 is not an experience \(it has a\); expected experiences with"),
        ('[{"observation": "x"}]', r"entry 1 is not an experience \(it has observation\); expected"),
        (json.dumps(SHAPES["cases_of_ids.json"]), "no experiences, only cases and their ids; name the file"),
    ],
)
def test_import_refuses_other_files_with_what_it_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, told: str
) -> None:
    (tmp_path / "other.json").write_text(content)
    refused = said(capsys, "memory", "import", tmp_path / "other.json", "-o", tmp_path / "new.jsonl", code=2)
    assert re.search(told, refused)
    assert not (tmp_path / "new.jsonl").exists()
