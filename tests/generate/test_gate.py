"""Text from a credentialed source stays on this machine, also while cases are written from it."""

from __future__ import annotations

import json
from pathlib import Path

from mimic_rows import ward
from runs_support import clinic, lines, point_at
from scripted_server import ScriptedServer

from agentclinic.generate.mimic.classify import MARKER

ELSEWHERE = "http://192.0.2.1:9/v1"  # an address reserved for documentation: nothing answers there


def source(folder: Path) -> Path:
    """Invented tables without the marker that says so: they have to be treated as real patients'."""
    ward().write(folder / "mimic-iv")
    (folder / "mimic-iv" / MARKER).unlink()
    return folder


def test_an_endpoint_elsewhere_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source(tmp_path)
    (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    refused = clinic(
        "generate", "mimic", "--base-dir", "mimic-iv", "--output", "made.jsonl", "--model", "m", cwd=tmp_path, expect=2
    )
    assert "credentialed data may not go to 192.0.2.1:9" in refused.stderr
    assert "--allow-host 192.0.2.1:9" in refused.stderr
    assert not (tmp_path / "made.jsonl").exists()


def test_a_host_on_the_command_line_is_not_enough(tmp_path: Path) -> None:
    source(tmp_path)
    (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    refused = clinic(
        *("generate", "mimic", "--base-dir", "mimic-iv", "--output", "made.jsonl", "--model", "m"),
        *("--allow-host", "192.0.2.1:9"),
        cwd=tmp_path,
        expect=2,
    )
    assert "privacy.hosts" in refused.stderr


def test_loopback_is_allowed_and_the_cases_are_credentialed(tmp_path: Path, server: ScriptedServer) -> None:
    source(tmp_path)
    point_at(tmp_path, server)
    made = clinic(
        "generate",
        "mimic",
        "--base-dir",
        "mimic-iv",
        "--output",
        "made.jsonl",
        "--model",
        "m",
        cwd=tmp_path,
        expect=None,
    )
    assert {entry["headers"]["x-agentclinic-purpose"] for entry in server.log()} == {"writer"}, made.stderr
    quarantine = tmp_path / "made.quarantine.jsonl"
    rows = lines(tmp_path / "made.jsonl") + (lines(quarantine) if quarantine.exists() else [])
    assert rows
    assert {row["data_class"] for row in rows} == {"credentialed"}
    assert (tmp_path / "made.jsonl").stat().st_mode & 0o077 == 0


def test_cases_made_from_it_are_guarded_in_runs_as_well(tmp_path: Path) -> None:
    source(tmp_path)
    clinic("generate", "mimic", "--base-dir", "mimic-iv", "--output", "made.jsonl", cwd=tmp_path)
    (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": ELSEWHERE}}))
    refused = clinic("run", "--dataset", "made.jsonl", "--doctor_llm", "m", cwd=tmp_path, expect=2)
    assert "credentialed data may not go to 192.0.2.1:9" in refused.stderr
