from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentclinic.worlds.solve import solution


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of kept solutions, empty and not the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    solution.cache_clear()
    yield tmp_path / "cache" / "agentclinic" / "worlds"
    solution.cache_clear()
