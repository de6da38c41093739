"""`agentclinic world`: starting, checking and solving worlds; and worlds in `agentclinic data`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentclinic.cli import main
from agentclinic.worlds.model import bundled, read_world
from agentclinic.worlds.solve import random_value, solve


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "mine.json"
    main(["world", "new", str(path)])
    assert f"agentclinic world check {path}" in capsys.readouterr().out
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    main(["world", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def changed(file: Path, **sections: Any) -> None:
    """Write the file again with these keys changed, and without comments."""
    world = read_world(file).model_dump(exclude_defaults=True)
    file.write_text(json.dumps({**world, **sections}))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(list(arguments))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, "one line"
    return said.err


def test_a_new_world_is_complete_and_commented_and_is_not_overwritten(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = file.read_text(encoding="utf-8")
    given = json.loads(written)
    assert "made up" in given["_"]
    assert all("_" in given[section] for section in ("diseases", "findings", "utilities", "costs"))
    assert (len(given["diseases"]), len(given["findings"])) == (7, 9), "six and eight, with a comment each"

    main(["world", "check", str(file)])

    value = solve(read_world(file)).value((0,) * 8)
    assert capsys.readouterr().out == (
        f"{file}: 6 diseases, 8 findings, 6,561 states of knowledge; the best play is worth {value:.1f} points\n"
    )
    assert "exists and is kept" in refused(capsys, "world", "new", str(file))
    assert file.read_text(encoding="utf-8") == written


@pytest.mark.parametrize("name", bundled())
def test_everything_in_a_shipped_world_plays_a_part(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "check", name)["remarks"] == []


def test_a_check_says_what_the_best_play_never_does(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = read_world(file).model_dump(exclude_defaults=True)
    findings, utilities = world["findings"], world["utilities"]
    findings["Rapid strep test"]["price"] = 5000
    same = dict.fromkeys(world["diseases"], 0.3)
    findings["Cough"]["probability"] = {**same, "Influenza": 0.31}
    utilities["deferred"] = -40
    changed(file, findings=findings, utilities=utilities)

    remarks = printed(capsys, "check", str(file))["remarks"]

    solved = solve(read_world(file))
    asked, defers = remarks[1], next(remark for remark in remarks if "DEFER" in remark)
    assert remarks[0].startswith("The best play never asks for Cough: that would lose 1.1 points or more.")
    lost = float(asked.removeprefix("The best play never asks for Rapid strep test: that would lose ").split()[0])
    assert 450 < lost < solved.value(solved.start) - solved.asking(solved.start)["Rapid strep test"]
    assert defers.startswith("The best play never answers DEFER: that would lose ")
    assert remarks[-1] == "Cough hardly tells the diseases apart: it gives at most 0.000 bits."


def test_a_file_that_cannot_be_used_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = read_world(file).model_dump(exclude_defaults=True)["findings"]
    del findings["Cough"]["probability"]["Influenza"]
    changed(file, findings=findings)
    for command in ("check", "solve"):
        assert f"{file}: findings.Cough.probability has no number for Influenza" in refused(
            capsys, "world", command, str(file)
        )
    assert "did you mean 'chest-pain'?" in refused(capsys, "world", "check", "chestpain")


def test_the_values_are_those_of_the_solution(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "solve", str(file))

    solved = solve(read_world(file).in_order())
    values = found["values"]
    assert values["best_play"] == pytest.approx(solved.value(solved.start))
    assert values["answering_at_once"] == pytest.approx(max(solved.ending(solved.start).values()))
    assert values["acting_at_random"] == pytest.approx(random_value(solved.world))
    assert found["best"] == solved.best(solved.start)
    assert {one["action"]: one["value"] for one in found["actions"]} == pytest.approx(
        solved.asking(solved.start) | solved.ending(solved.start)
    )
    assert found["actions"][0] == {"action": found["best"], "by": "question", "value": values["best_play"]}
    worth = [one["value"] for one in found["actions"]]
    assert worth == sorted(worth, reverse=True)


def test_asking_everything_is_worth_the_best_answers_to_all_that_can_be_known(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a world where asking is free, nothing is worth more."""
    changed(file, costs={"dollar": 0, "minute": 0, "turn": 0})
    free = printed(capsys, "solve", str(file))["values"]
    assert free["asking_everything"] == pytest.approx(free["best_play"])

    changed(file, costs={"dollar": 0, "minute": 0, "turn": 2})
    priced = printed(capsys, "solve", str(file))["values"]
    assert priced["asking_everything"] == pytest.approx(free["best_play"] - 2 * 8)
    assert priced["best_play"] > priced["asking_everything"]


def test_a_state_of_knowledge_is_written_as_findings_with_their_answers(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, "solve", str(file), "--known", "cough=no, strep test=positive, Drooling=absent")

    solved = solve(read_world(file).in_order())
    known = {"Cough": False, "Rapid strep test": True, "Trouble swallowing saliva": False}
    state = solved.state(known)
    assert found["known"] == known
    assert found["posterior"] == pytest.approx(
        dict(zip(solved.world.diseases, solved.posterior(state).tolist(), strict=True))
    )
    assert next(iter(found["posterior"])) == "Streptococcal pharyngitis"
    assert found["actions"][0]["value"] == pytest.approx(solved.value(state))
    assert not known.keys() & {one["action"] for one in found["actions"]}


def test_the_tables_show_the_state_and_the_regret_of_each_action(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["world", "solve", str(file), "--known", "Rapid influenza test=yes"])

    shown = capsys.readouterr().out
    assert "Known: Rapid influenza test positive\n" in shown
    first, *others = shown.partition("regret\n")[2].splitlines()
    assert first.split()[-1] == "0.00"
    assert len(others) + 1 == 7 + 7, "findings that are left, diseases and DEFER"
    assert all(float(line.split()[-1]) > 0 for line in others)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("Cuogh=yes", "no finding is called 'Cuogh'; did you mean 'Cough'?"),
        ("Cough=maybe", "write Cough=yes or Cough=no"),
        ("Cough", "write Cough=yes or Cough=no"),
        ("Cough=yes,cough=no", "Cough appears twice"),
    ],
)
def test_knowledge_that_cannot_be_read_is_refused(
    known: str, said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "world", "solve", str(file), "--known", known)


def test_the_shipped_worlds_are_data_sets_that_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["data", "list", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    for name in bundled():
        row = rows[f"Solvable:{name}"]
        assert row["rows"] is None
        assert "drawn by seed; not validated by clinicians" in row["about"]
    main(["data", "list"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Solvable:chest-pain ")]
    assert line.split()[1] == "any"
    for command in ("check", "fetch"):
        assert "Solvable:chest-pain" in refused(capsys, "data", command, "Solvable:chest-pain")
