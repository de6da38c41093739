"""What `serve-env` refuses before it serves anything; none of it needs OpenEnv."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from runs_support import CLINIC, ROOT, clinic, environment, own_rows
from scripted_server import LONG

from agentclinic.viewer.server import listen


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dataset", "OpenOSCY"], "OpenOSCE"),
        (["--lockbox"], "never serve the lockbox"),
        (["--reward", "rigth"], "there is no reward 'rigth'"),
        (["--reward", "right=1,price"], "write weights as right=1,price=0.2"),
        (["--reward", "right=1,prize=2"], "there is no part 'prize'"),
        (
            ["--dataset", "Solvable:chest-pain", "--reward", "right"],
            "in a solvable world, its parts are utility, regret",
        ),
        (["--host", "0.0.0.0"], "set AGENTCLINIC_PASSWORD"),
        (["--max-sessions", "100000"], "--max-sessions 100000: this process may open at most"),
    ],
    ids=str,
)
def test_what_cannot_be_served_is_refused_in_one_line(flags: list[str], said: str, tmp_path: Path) -> None:
    stderr = clinic("serve-env", *flags, cwd=tmp_path, expect=2).stderr

    assert said in stderr
    assert len(stderr.splitlines()) == 1


def test_credentialed_cases_are_not_served_to_other_machines(tmp_path: Path) -> None:
    row = json.loads(own_rows(1)[0])
    row["OSCE_Examination"]["data_class"] = "credentialed"
    (tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    flags = ("--dataset", "cases.jsonl", "--host", "0.0.0.0")

    done = clinic("serve-env", *flags, cwd=tmp_path, env={"AGENTCLINIC_PASSWORD": "a good password"}, expect=2)

    assert "credentialed data, which is served on this machine only" in done.stderr


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    with listen() as taken:
        done = clinic("serve-env", "--port", str(taken.getsockname()[1]), cwd=tmp_path, expect=2)

    assert "choose another --port" in done.stderr


def test_a_library_that_is_too_old_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    old = tmp_path / "openenv-0.9.1.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: openenv\nVersion: 0.9.1\n", encoding="utf-8")
    done = subprocess.run(
        [*CLINIC, "serve-env", "--port", "0"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"),
        capture_output=True,
        text=True,
        timeout=LONG,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("Error: this needs openenv 0.10 or newer, and 0.9.1 is installed: ")
    assert len(done.stderr.splitlines()) == 1
