"""gen.config.json, its flags, and the original's scripts in a folder made by `init`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from generate_support import question, write_questions
from helpers import ORIGINAL, needs_original
from runs_support import clinic, lines
from scripted_server import LONG

from agentclinic.compat.init import gen_config, write_folder
from agentclinic.errors import ConfigError
from agentclinic.generate.settings import GenFile, MimicSettings, load


def config(path: Path, **content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_flags_win_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = config(
        tmp_path / "gen.config.json",
        common={"model": "from-file", "sleep_seconds": 1.5},
        mimic={"limit": 7, "base_dataset_dir": "tables"},
    )
    (tmp_path / "tables").mkdir()
    common, section = load(path, "mimic", {"model": "from-flag", "workers": 30, "output": "here.jsonl"})
    assert (common.model, common.sleep_seconds, common.workers) == ("from-flag", 1.5, 30)
    assert (section.limit, section.output, section.base_dataset_dir) == (7, "here.jsonl", str(tmp_path / "tables"))
    _, defaults = load(None, "mimic", {})
    assert defaults == MimicSettings()


def test_what_is_read_is_next_to_the_file_or_in_the_working_folder_and_what_is_written_in_the_latter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original's own file: `../` from its folder, and data below the folder the command runs in."""
    path = config(
        tmp_path / "repo" / "generate_cases" / "gen.config.json",
        common={"llm_config": "../llm.config.json"},
        medqa={"base_dataset_dir": "datasets/medqa", "output": "processed_data/x.jsonl"},
    )
    (tmp_path / "repo" / "llm.config.json").write_text("{}")
    (tmp_path / "datasets" / "medqa").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    common, section = load(path, "medqa", {})

    assert Path(common.llm_config or "").samefile(tmp_path / "repo" / "llm.config.json")
    assert section.base_dataset_dir == str(tmp_path / "datasets" / "medqa")
    assert section.output == "processed_data/x.jsonl"
    (tmp_path / "datasets" / "medqa").rmdir()
    with pytest.raises(ConfigError) as missing:
        load(path, "medqa", {})
    assert f"{path}: medqa.base_dataset_dir: datasets/medqa does not exist" in str(missing.value)
    for place in (path.parent, path.parent.parent, tmp_path):
        assert str(place / "datasets" / "medqa") in str(missing.value)
    load(path, "medqa", {"base_dataset_dir": "a flag replaces it"})


@needs_original
def test_the_originals_config_makes_cases_as_it_is(tmp_path: Path) -> None:
    shutil.copytree(ORIGINAL / "generate_cases", tmp_path / "generate_cases")
    shutil.copy(ORIGINAL / "llm.config.json", tmp_path)
    write_questions(tmp_path / "q.jsonl", [question(n) for n in range(3)])
    flags = ("--gen_config", "generate_cases/gen.config.json", "--base-dir", "q.jsonl", "--model", "builtin")

    clinic("generate", "medqa", *flags, "--sleep_seconds", "0", cwd=tmp_path)

    assert len(lines(tmp_path / "processed_data" / "medqa_grounded.jsonl")) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"comon": {}}, "unknown key 'comon'; did you mean 'common'?"),
        ({"common": {"sleep_second": 1}}, "unknown key 'common.sleep_second'; did you mean 'sleep_seconds'?"),
        ({"mimic": {"base_dataset": "x"}}, "unknown key 'mimic.base_dataset'; did you mean 'base_dataset_dir'?"),
        ({"medqa": {"limit": 0}}, "medqa.limit: "),
        ({"mimic": {"mode": "most"}}, "mimic.mode: "),
    ],
)
def test_an_unknown_key_or_an_impossible_value_is_refused(
    content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = config(tmp_path / "gen.config.json", **content)
    with pytest.raises(ConfigError, match=re.escape(message)):
        load(path, "mimic", {})


def test_what_init_writes_can_be_read(tmp_path: Path) -> None:
    file = GenFile.model_validate(gen_config())
    assert file.common.model == "builtin"
    assert set(gen_config()["common"]) == {"model", "llm_config", "sleep_seconds"}  # type: ignore[call-overload]
    for source in ("mimic", "medqa"):
        assert set(gen_config()[source]) == {"limit", "output", "base_dataset_dir"}  # type: ignore[call-overload]


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True], ids=["inside", "from another folder"])
def test_the_originals_script_makes_cases_in_a_folder_made_by_init(elsewhere: bool, tmp_path: Path) -> None:
    folder = tmp_path / "my clinic"
    write_folder(folder, original=True)
    write_questions(folder / "medqa" / "q.jsonl", [question(n) for n in range(20)])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = folder / "generate_cases" / "gen_medqa_tutorial.py"
    done = subprocess.run(
        [sys.executable, str(script), "--workers", "30", "--limit", "12"],
        cwd=tmp_path if elsewhere else folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
    written = (tmp_path if elsewhere else folder) / "processed_data" / "agentclinic_medqa_generated.jsonl"
    assert len(lines(written)) == 12
    assert "12 of 12 cases made, 0 in quarantine" in done.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["mimic"], "mimic.base_dataset_dir is not set: name the source's folder with --base-dir"),
        (["mimic", "--base-dir", "nowhere"], "nowhere"),
        (["medqa", "--base-dir", "q.jsonl", "--model", "human"], "a person cannot write cases"),
        (["medqa", "--base-dir", "q.jsonl", "--model", "some-model"], "needs a key or a server"),
        (["medqa", "--base-dir", "q.jsonl", "--prompts-dir", "nowhere"], "--prompts-dir: nowhere is not a folder"),
        (["medqa", "--base-dir", "q.jsonl", "--config", "nowhere.json"], "nowhere.json: no such file"),
        (["medqa", "--base-dir", "q.jsonl", "--output", "q.jsonl"], "q.jsonl line 1: not a case made by"),
        (["medqa", "--base-dir", "q.jsonl", "--output", "."], "is a folder; name a file"),
        (["mimic", "--base-dir", ".", "--output", "q.jsonl/x.jsonl"], "q.jsonl cannot be created"),
    ],
)
def test_a_mistake_is_explained_in_one_line_with_exit_code_2(flags: list[str], message: str, tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", [question()])
    before = (tmp_path / "q.jsonl").read_bytes()
    done = clinic("generate", *flags, cwd=tmp_path, expect=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "q.jsonl").read_bytes() == before


def test_help_names_every_key_of_the_config(tmp_path: Path) -> None:
    shown = clinic("generate", "mimic", "--help", cwd=tmp_path).stdout
    for flag in ("--model", "--llm-config", "--sleep-seconds", "--limit", "--output", "--base-dir", "--workers"):
        assert flag in shown
