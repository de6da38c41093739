"""README and docs are followed line by line (`tests/support/docs_runner.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from docs_runner import PAGES, Clinic, Done, NotTrueError, check_text, follow, not_run
from runs_support import ROOT
from runs_support import clinic as run_command
from scripted_server import ScriptedServer


def call(arguments: list[str], folder: Path, variables: Mapping[str, str]) -> Done:
    process = run_command(*arguments, cwd=folder, env=variables, expect=None)
    return Done(process.wait(), process.stdout, process.stderr)


@pytest.fixture(scope="session")
def readers(server_process: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    return Clinic(call, server_process.base_url, tmp_path_factory.mktemp("readers"))


LONG = frozenset(
    "audit card custom-doctor datasets environments generate getting-started gymnasium inspect memory original "
    "privacy python reliability report runs scale scoring solvable test-policy uncertainty viewer".split()
)
"""Pages whose commands take more than a second or two; `make test-full` and `make docs-test` run them."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if page.stem in LONG else (), id=page.name) for page in PAGES]
)
def test_what_a_page_says_is_true(page: Path, readers: Clinic, server: ScriptedServer, tmp_path: Path) -> None:
    follow(page, readers, tmp_path)


def test_commands_that_contributors_read_about_exist() -> None:
    check_text(ROOT / "CONTRIBUTING.md")


def test_little_is_not_run_and_each_block_says_why() -> None:
    assert all(len(why) > 15 for _, why in not_run())
    assert len(not_run()) <= 15, "run it, or raise this number if it cannot be run"


FALSE = {
    "an unknown command": ("```\nagentclinic run\nagentclinic dance\n```", "page.md:3: agentclinic dance"),
    "a flag that the command does not have": ("```\nagentclinic runs --lockbox\n```", "page.md:2: .*has no --lockbox"),
    "a flag that no command has": ("Use `--tango` for this.", "page.md:1: --tango"),
    "a command in the text": ("First\n`agentclinic data dance`", "page.md:2: .*no command dance"),
    "a command that fails": (
        "\n```sh\nagentclinic score nowhere\n```",
        "page.md:3: agentclinic score nowhere: exit code 2",
    ),
    "other output": (
        "```console\n$ agentclinic --version\nagentclinic 9\n```",
        "page.md:2: .*the page shows\nagentclinic 9",
    ),
    "a program that is not ours": ("```\ncurl example.org\n```", "page.md:2: curl"),
    "a package that is not ours": ("```\npip install agentclinic\n```", "page.md:2: pip install agentclinic"),
    "a hidden command": ("```text\nagentclinic run\n```", "page.md:2: a command in a block of text"),
    "a wrong setting": ('```json\n"run": {"wrokers": 4}\n```', "page.md:2: .*did you mean 'workers'"),
    "broken JSON": ('```json\n{"run": \n```', "page.md:2: "),
    "a missing target": ("```\nmake coffee\n```", "page.md:2: make coffee"),
    "an open fence": ("text\n```\nagentclinic run", "page.md:2: a fence"),
}


def _answers(arguments: list[str], folder: Path, variables: Mapping[str, str]) -> Done:
    if arguments == ["score", "nowhere"]:
        return Done(2, "", "Error: nowhere: not a run")
    return Done(0, "agentclinic 1.0\nWritten to runs/X_20261116_050607 in 3.25 s\none\ntwo\n", "")


@pytest.mark.parametrize("what", FALSE)
def test_a_line_that_is_not_true_is_named(what: str, tmp_path: Path) -> None:
    text, said = FALSE[what]
    page = tmp_path / "page.md"
    page.write_text(text + "\n", encoding="utf-8")

    with pytest.raises(NotTrueError, match=f"(?s){said}"):
        follow(page, Clinic(_answers, "http://127.0.0.1:9/v1", tmp_path / "home"), tmp_path / "folder")


def test_shown_output_may_leave_out_lines_and_what_differs_each_time(tmp_path: Path) -> None:
    shown = "agentclinic 1.0\nWritten to runs/X_20260101_120000 in 0.10 s\n...\nt…"
    page = tmp_path / "page.md"
    page.write_text(
        f"```console\n$ agentclinic \\\n  --version\n{shown}\n$ agentclinic runs\n...\n```\n", encoding="utf-8"
    )

    ran = follow(page, Clinic(_answers, "http://127.0.0.1:9/v1", tmp_path / "home"), tmp_path / "folder")

    assert ran == 2
