"""What is written about a credentialed run is private, whatever of its folder is damaged or missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_support import record, write_run

from agentclinic import privacy
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.cli import main
from agentclinic.jsonl import sealed
from agentclinic.privacy import DataClass
from agentclinic.results.run_cases import CASES, write_cases
from agentclinic.results.run_folder import write_used
from agentclinic.viewer.data import Library


def used(run: Path, **changes: Any) -> None:
    ours = {"units": 2, "data_class": "credentialed", **changes}
    kept = {key: value for key, value in ours.items() if value is not None}
    write_used(run, {"run": {"dataset": "Mine"}, "agentclinic": kept})


def journal(run: Path, **changes: Any) -> None:
    cases = load_cases("OpenOSCE_Demo")[:2]
    stated = {"data_class": "credentialed", **changes}
    entries = [record(case.scenario_id, case_hash=case.id, **stated) for case in cases]
    kept = [{key: value for key, value in entry.items() if value is not None} for entry in entries]
    (run / "scenarios.jsonl").write_bytes(b"".join(sealed(entry) + b"\n" for entry in kept))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A credentialed run whose names say nothing."""
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    used(folder)
    write_cases(folder, [_credentialed(case) for case in load_cases("OpenOSCE_Demo")[:2]])
    journal(folder)
    return folder


def _credentialed(case: Case) -> Case:
    return replace(case, data_class=DataClass.CREDENTIALED)


def gone(*names: str) -> Callable[[Path], None]:
    def remove(run: Path) -> None:
        for name in names:
            (run / name).unlink()

    return remove


def unsaid(run: Path) -> None:
    """Records that do not state their class."""
    journal(run, data_class=None)


def without_checksums(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "scenarios.jsonl").read_text().splitlines()]
    write_run(
        run, [{key: value for key, value in line.items() if key not in ("checksum", "data_class")} for line in lines]
    )


def broken(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        content = (run / name).read_bytes()
        assert old in content
        (run / name).write_bytes(content.replace(old, new, 1))

    return change


def written(text: str) -> Callable[[Path], None]:
    """Settings with this content."""

    def write(run: Path) -> None:
        (run / CONFIG).write_text(text)

    return write


def linked(run: Path) -> None:
    """The run is elsewhere under another name; here is only a link to it, and its records do not say what they are."""
    unsaid(run)
    (run / CASES).unlink()
    run.rename(run.parent.parent / "elsewhere")
    run.symlink_to(run.parent.parent / "elsewhere")


def only_records_linked(run: Path) -> None:
    unsaid(run)
    elsewhere = run.parent.parent / "elsewhere"
    run.rename(elsewhere)
    run.mkdir()
    (run / "scenarios.jsonl").symlink_to(elsewhere / "scenarios.jsonl")


CONFIG, RECORDS = "config.used.json", "scenarios.jsonl"
STATES: dict[str, list[Callable[[Path], None]]] = {
    "whole": [],
    "only the settings say it": [unsaid, gone(CASES)],
    "only the cases say it": [unsaid, gone(CONFIG)],
    "only the records say it": [gone(CASES, CONFIG)],
    "nothing says it": [unsaid, gone(CASES, CONFIG)],
    "nothing says it, and there are no checksums": [without_checksums, gone(CASES, CONFIG)],
    "settings that do not say it": [unsaid, gone(CASES), lambda run: used(run, data_class=None)],
    "settings that say something odd": [unsaid, gone(CASES), lambda run: used(run, data_class=["public"])],
    "settings that are no JSON": [unsaid, gone(CASES), written("{")],
    "settings that are a list": [unsaid, gone(CASES), written("[]")],
    "settings that were changed": [unsaid, gone(CASES), broken(CONFIG, b'"credentialed"', b'"public"')],
    "cases that were damaged": [unsaid, gone(CONFIG), broken(CASES, b'"credentialed"', b'"public"')],
    "cases that are no JSON": [unsaid, gone(CONFIG), broken(CASES, b"{", b"[")],
    "a damaged first record": [unsaid, gone(CASES, CONFIG), broken(RECORDS, b'"correct":true', b'"correct":false')],
    "records that are no JSON": [gone(CASES, CONFIG), broken(RECORDS, b"{", b"[")],
    "a link": [linked],
    "a link to the records alone": [only_records_linked],
}
UNREADABLE = (
    *("settings that are no JSON", "settings that are a list", "settings that were changed"),
    *("a damaged first record", "records that are no JSON", "cases that are no JSON"),
)
EXPORTS: dict[str, list[str]] = {
    "report.html": ["report", "RUN", "-o", "FILE"],
    "report.csv": ["report", "RUN", "-o", "FILE"],
    "report.json": ["report", "RUN/scenarios.jsonl", "-o", "FILE"],
    "card.md": ["card", "RUN", "-o", "FILE"],
    "score.json": ["score", "RUN", "--json", "-o", "FILE"],
    "compare.txt": ["compare", "RUN", "RUN", "-o", "FILE"],
    "runs.json": ["runs", "RUN", "--json", "-o", "FILE"],
    "viewer": ["view", "RUN", "--export", "FILE"],
}


@pytest.mark.parametrize("state", STATES)
def test_every_export_of_a_credentialed_run_is_private_in_every_damaged_state(
    state: str, run: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    for damage in STATES[state]:
        damage(run)
    refused = []
    for name, command in EXPORTS.items():
        privacy.reset()  # as in a process of its own
        words = [word.replace("RUN", str(run)).replace("FILE", str(shared / name)) for word in command]
        try:
            main(words)
        except SystemExit as ended:
            refused.append((name, ended.code))
    modes = {path.relative_to(shared): path.stat().st_mode & 0o777 for path in shared.rglob("*")}
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert {code for _, code in refused} <= {2}
    assert ("viewer", 2) not in refused, "what can be shown is shown, to the owner"
    assert bool(refused) == (state in UNREADABLE)

    privacy.reset()
    assert Library(run).runs()["private"], "so that it is not served to others"


def test_what_is_known_to_be_public_is_as_open_as_ever(run: Path, tmp_path: Path) -> None:
    used(run, data_class="public")
    journal(run, data_class="public")
    (run / CASES).unlink()
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    main(["report", str(run), "-o", str(shared / "report.html")])
    original = write_run(tmp_path / "original", [{"scenario_id": 0, "status": "diagnosed", "correct": True}])
    main(["report", str(original), "-o", str(shared / "original.html")])
    assert all((shared / name).stat().st_mode & 0o044 for name in ("report.html", "original.html"))


def test_where_only_judgements_are_left_there_is_nothing_to_export(run: Path, tmp_path: Path) -> None:
    (run / "judgements").mkdir()
    (run / RECORDS).rename(run / "judgements" / "one.jsonl")
    gone(CASES, CONFIG)(run)
    for command in (["report", str(run)], ["view", str(run), "--export", str(tmp_path / "out")]):
        with pytest.raises(SystemExit):
            main(command)
    assert not (tmp_path / "out").exists()
