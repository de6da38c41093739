"""Verdicts on a finished run: which diagnoses are judged, which verdicts still hold, and what they cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judges_support import UNREAD, write_lines
from runs_support import asked, lines, point_at, run_here, settings_for, without
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.errors import InputError
from agentclinic.results.run_data import load_run, read_judgements
from agentclinic.runs.execute import Finished
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade import regrade

pytestmark = pytest.mark.anyio


@pytest.fixture
async def finished(server: ScriptedServer, tmp_path: Path) -> Finished:
    """A run of four, all judged right by the scripted judge; the server has forgotten it."""
    done, _ = await run_here(settings_for(server, tmp_path / "out", num_scenarios=4))
    server.reset()
    return done


async def test_what_failed_tries_cost_is_never_forgotten(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    settings = settings_for(server, tmp_path, judge="model")
    server.control(rules=[{"match": {"purpose": "moderator"}, "fault": "invalid_schema_json", "times": 12}])
    spent, failed = 0, -1
    for _ in range(4):
        done = await regrade(finished.folder, settings)
        assert done.spent.tokens > spent or not failed
        spent, failed = done.spent.tokens, done.failed
    assert (done.judged, done.failed) == (4, 0)
    requests = sum(used["requests"] for entry in lines(done.path) for used in entry["usage"].values())
    assert requests == asked(server, "moderator"), "every request that was answered is in the file"
    assert [entry["correct"] for entry in read_judgements(done.path)] == [True] * 4, "only verdicts count"


@pytest.mark.slow
async def test_a_judgement_on_another_diagnosis_does_not_count(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    """As after `resume --retry-failed`, which plays a unit again."""
    settings = settings_for(server, tmp_path)
    path = (await regrade(finished.folder, settings)).path
    journal = finished.folder / "scenarios.jsonl"
    first, *rest = journal.read_text().splitlines()
    changed = json.dumps({**without(json.loads(first), ["checksum"]), "diagnosis_text": "Scurvy"})
    journal.write_text("\n".join([changed, *rest]) + "\n")
    server.reset()

    await regrade(finished.folder, settings)

    assert asked(server, "moderator") == 1
    assert "Scurvy" in json.dumps(server.bodies())
    assert len(lines(path)) == 4


async def test_two_judges_are_never_mixed_in_one_file(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    await regrade(finished.folder, settings_for(server, tmp_path, moderator_llm="strict"), "mine")

    with pytest.raises(InputError, match=r"moderator_llm strict, not kind.*--name"):
        await regrade(finished.folder, settings_for(server, tmp_path, moderator_llm="kind"), "mine")


@pytest.mark.parametrize("name", ["../escape", "a/b", ".hidden"])
async def test_a_name_that_leads_elsewhere_is_refused(
    name: str, finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="name"):
        await regrade(finished.folder, settings_for(server, tmp_path), name)


async def test_only_diagnoses_are_judged_also_those_whose_judge_failed(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(
        rules=[
            {"match": {"purpose": "moderator"}, "fault": "500"},
            {"match": {"purpose": "patient", "nth": [1, 2]}, "fault": "500"},
        ]
    )
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=2))
    assert [entry["status"] for entry in entries] == ["model_failed", "judge_failed"]
    server.reset()

    regraded = await regrade(finished.folder, settings_for(server, tmp_path))

    assert [(e["scenario_id"], e["correct"]) for e in lines(regraded.path)] == [(1, True)]
    assert [(r.scenario_id, r.correct, now) for r, now in regraded.changed] == [(1, None, True)]


async def test_what_cannot_be_known_without_the_cases_is_counted(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    whole = await regrade(finished.folder, settings_for(server, tmp_path), "whole")
    (finished.folder / "cases.jsonl").unlink()
    older = await regrade(finished.folder, settings_for(server, tmp_path), "older")
    assert (whole.without_chart, older.without_chart) == (0, 4)


# Who decides.

SAID = ("Gout", "Migraine", "Gout or lupus", UNREAD)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four diagnoses of gout, one of which code cannot read."""
    rows = [
        {"scenario_id": n, "status": "diagnosed", "correct": True, "ground_truth": "Gout", "diagnosis_text": said}
        | {"final_doctor_dialogue": f"His toe is red.\nDIAGNOSIS READY: {said}\nI am sure."}
        for n, said in enumerate(SAID)
    ]
    write_lines(tmp_path / "run" / "scenarios.jsonl", rows)
    return tmp_path / "run"


def outcomes(folder: Path, judge: str) -> list[tuple[str, bool | None, str | None]]:
    records = load_run(folder, judge).records()
    return [(r.status, r.correct, r.judgement.decided_by if r.judgement else None) for r in records]


async def test_in_a_cascade_only_what_code_cannot_read_is_asked(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    done = await regrade(folder, settings_for(server, tmp_path, judge="cascade"))
    (request,) = server.bodies()
    assert UNREAD in json.dumps(request)
    assert [(e["correct"], e["decided_by"]) for e in sorted(lines(done.path), key=lambda e: e["scenario_id"])] == [
        (True, "code"),
        (False, "code"),
        (False, "code"),
        (True, "model"),
    ]
    assert (done.decided_by, done.saved, done.not_readable) == ({"code": 3, "model": 1}, 3, 0)
    assert outcomes(folder, "scripted")[3] == ("diagnosed", True, "model")

    every = await regrade(folder, settings_for(server, tmp_path, judge="model"))
    assert asked(server, "moderator") == 1 + 4
    assert (every.path.stem, every.decided_by, every.saved) == ("scripted_model", {"model": 4}, 0)


async def test_what_the_builtin_judge_cannot_read_stays_open_and_is_not_judged_again(
    folder: Path, tmp_path: Path
) -> None:
    class Counting(Progress):
        """Keeps how many were done before."""

        before = -1

        def start(self, total: int, done: int, what: str = "scenarios") -> None:
            self.before = done

    done = await regrade(folder, settings_for(None, tmp_path))
    assert (done.judged, done.failed, done.not_tried) == (4, 0, 0)
    assert (done.decided_by, done.not_readable, done.saved) == ({"code": 3}, 1, 0)
    assert [(r.scenario_id, now) for r, now in done.changed] == [(1, False), (2, False), (3, None)]
    assert outcomes(folder, "builtin")[3] == ("not_readable", None, None)
    written, shown = done.path.read_bytes(), Counting()

    again = await regrade(folder, settings_for(None, tmp_path), progress=shown)

    assert (again.judged, shown.before) == (4, 4)
    assert done.path.read_bytes() == written


async def test_a_judge_that_fails_is_not_an_answer_that_cannot_be_read(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "moderator"}, "fault": "500"}])
    done = await regrade(folder, settings_for(server, tmp_path, judge="cascade"))
    assert (done.judged, done.failed, done.not_readable) == (3, 1, 0)
    assert outcomes(folder, "scripted")[3] == ("judge_failed", None, None)


def test_an_answer_that_cannot_be_read_is_the_outcome_after_a_try_that_failed(tmp_path: Path) -> None:
    """As with --resynthesize, where the synthesis may fail first."""
    failed = {"scenario_id": 0, "correct": None, "fault": {"error": "server", "message": "down"}}
    unread = {"scenario_id": 0, "correct": None, "reason": "cannot read 'zzyzx'"}
    orders: list[list[dict[str, Any]]] = [[failed, unread], [unread, failed]]
    for written in orders:
        assert read_judgements(write_lines(tmp_path / "judge.jsonl", written)) == [unread]


async def test_verdicts_of_two_ways_of_judging_are_never_mixed(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    await regrade(folder, settings_for(server, tmp_path, judge="cascade"), "mine")
    with pytest.raises(InputError, match=r"holds verdicts with judge cascade, not model; choose .* --name"):
        await regrade(folder, settings_for(server, tmp_path, judge="model"), "mine")

    old = {"case_hash": None, "repeat": 0, "diagnosis": "Gout", "correct": True, "scenario_id": 0}
    write_lines(folder / "judgements" / "old.jsonl", [{**old, "moderator_llm": "scripted"}])
    with pytest.raises(InputError, match="holds verdicts with judge none, not cascade"):
        await regrade(folder, settings_for(server, tmp_path, judge="cascade"), "old")
    write_lines(folder / "judgements" / "rules.jsonl", [{**old, "moderator_llm": "builtin", "reason": "kept"}])
    done = await regrade(folder, settings_for(None, tmp_path), "rules")
    assert (lines(done.path)[0]["reason"], done.decided_by) == ("kept", {"code": 3})


async def test_the_original_judge_is_shown_the_whole_last_utterance(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    done = await regrade(folder, settings_for(server, tmp_path, judge="original"))
    assert [entry["correct"] for entry in lines(done.path)] == [True] * 4, "whatever code makes of them"
    for said, body in zip(SAID, server.bodies(), strict=True):
        assert json.dumps(f"His toe is red.\nDIAGNOSIS READY: {said}\nI am sure.")[1:-1] in json.dumps(body)
    assert "schema" not in json.dumps(server.bodies())


def test_the_command_says_who_decided_and_what_that_saved(
    folder: Path,
    server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    point_at(tmp_path, server)
    monkeypatch.chdir(tmp_path)
    main(["regrade", str(folder), "--moderator-llm", "scripted", "--quiet"])
    assert "Decided: 3 by code, 1 by the model; 3 requests saved." in capsys.readouterr().out
    main(["regrade", str(folder), "--full", "--quiet"])
    said = capsys.readouterr().out
    assert "3 verdicts changed (2 now wrong, 1 now not readable)" in said
    assert "Decided: 3 by code; 1 not readable." in said
    assert "row 3: was right, is now not readable" in said
    main(["regrade", str(folder), "--json", "--quiet"])
    found = json.loads(capsys.readouterr().out)
    assert (found["decided_by"], found["not_readable"], found["saved"]) == ({"code": 3}, 1, 0)
    assert found["changed"][2] == {"scenario_id": 3, "name": "row 3", "was": True, "is": None}
