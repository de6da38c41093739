from __future__ import annotations

from pathlib import Path

import pytest

from agentclinic import errors
from agentclinic.errors import how_to_install

ROOT = Path(__file__).parents[1]


def test_in_a_clone_an_extra_is_installed_with_the_clone() -> None:
    assert how_to_install("pandas").endswith(f"-m pip install -e '{ROOT}[pandas]'")


def test_elsewhere_what_the_extra_stands_for_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not by the name of the package, which belongs to someone else on the package index."""
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages" / "agentclinic" / "errors.py"))

    command = how_to_install("generate")

    assert "'duckdb>=" in command
    assert "'pyarrow>=" in command
    assert "agentclinic" not in command.partition(" install ")[2]
