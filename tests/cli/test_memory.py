"""`agentclinic memory`: list, show, check and merge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memory_support import COUNT, DURATION, ELSEWHERE, TOE, lesson, store_of, stories, story
from runs_support import lines

from agentclinic.cases.registry import load_cases
from agentclinic.cli import main
from agentclinic.memory.split import make_split, write_split
from agentclinic.memory.store import load_store


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
