"""`agentclinic export`: what it refuses, with or without the library (tests/envs/test_inspect.py has the rest)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from agentclinic import evaluate
from agentclinic.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs")
    return evaluate("plain", "OpenOSCE_Demo", progress=False, num_scenarios=1, output_dir=str(output)).folder


def refused(*arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["export", *map(str, arguments)])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_an_export_never_replaces_another_file_and_says_what_is_wrong(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.eval"
    other.write_text("mine")

    assert "exists; name another file" in refused(run, "-o", other, capsys=capsys)
    assert "ends in .eval" in refused(run, "-o", tmp_path / "log.txt", capsys=capsys)
    assert "there is no folder" in refused(run, "-o", tmp_path / "no" / "log.eval", capsys=capsys)
    assert "did you mean 'inspect'" in refused(run, "--format", "inpsect", capsys=capsys)
    assert other.read_text() == "mine"


@pytest.mark.skipif(find_spec("inspect_ai") is not None, reason="Inspect is installed")
def test_without_the_library_one_line_says_how_to_install_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(run, capsys=capsys)

    assert said.count("\n") == 1
    assert "needs inspect_ai 0.3.285 or newer, which is not installed: " in said
    assert "[inspect]" in said
