"""`agentclinic data new`: rows to start a data set from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from runs_support import ROOT

from agentclinic.cli import main

EXAMPLES = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("format_", "example"), list(zip(("OSCE", "nejm"), EXAMPLES, strict=True)))
def test_a_new_file_is_the_example_of_the_docs_and_passes_every_check(
    format_: str, example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cases.jsonl"
    main(["data", "new", format_, "-o", str(file)])
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(example)
    capsys.readouterr()
    main(["data", "check", str(file), "--quality", "--json"])
    (checked,) = json.loads(capsys.readouterr().out)["files"]
    assert checked.pop("path") == str(file)
    assert checked == {"rows": 1, "errors": [], "duplicates": [], "leaks": [], "problems": []}
    main(["data", "new", format_])
    assert capsys.readouterr().out == file.read_text(encoding="utf-8")
    for arguments, said in (([format_, "-o", str(file)], "exists and is kept"), (["OSEC"], "did you mean 'OSCE'")):
        with pytest.raises(SystemExit, match="2"):
            main(["data", "new", *arguments])
        assert said in capsys.readouterr().err
