"""A run with three judges."""

from __future__ import annotations

from pathlib import Path

import pytest
from judges_support import judge, original_run

Y, N = True, False


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = original_run(tmp_path / "MedQA_1")
    judge(folder, "a", [Y, Y, N, N, N, N, Y, None], reason="so it is")
    judge(folder, "b", [Y, N, Y, N, N, N, Y, Y])
    return folder
