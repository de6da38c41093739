"""Files of JSON lines: removing lines."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from agentclinic.errors import InputError
from agentclinic.jsonl import drop_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "file.jsonl"
    file.write_text('{"n": 1}\n\n{"n": 2, "text": "é"}\n{"n":3}\n', encoding="utf-8")
    return file


def test_unwanted_lines_are_removed_and_the_others_stay_byte_for_byte(path: Path) -> None:
    assert drop_lines(path, lambda number, line: number > 3 and json.loads(line)["n"] == 3) == 1
    assert path.read_text(encoding="utf-8") == '{"n": 1}\n\n{"n": 2, "text": "é"}\n'
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_the_file_keeps_its_permissions(path: Path, mode: int) -> None:
    path.chmod(mode)
    drop_lines(path, lambda _, line: b"2" in line)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_old_file_stays_if_a_line_cannot_be_judged(path: Path) -> None:
    def unwanted(number: int, line: bytes) -> bool:
        if number == 3:
            raise InputError("not a record")
        return True

    before = path.read_bytes()
    with pytest.raises(InputError):
        drop_lines(path, unwanted)
    assert path.read_bytes() == before


def test_the_new_file_is_on_the_disk_before_it_replaces_the_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    sync, replace = os.fsync, Path.replace

    def recorded_sync(descriptor: int) -> None:
        calls.append(f"sync {os.fstat(descriptor).st_size}")
        sync(descriptor)

    def recorded_replace(self: Path, target: Path) -> Path:
        calls.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    drop_lines(path, lambda number, _: number == 1)
    assert calls == [f"sync {path.stat().st_size}", "replace"]


def test_a_missing_file_has_nothing_to_remove(tmp_path: Path) -> None:
    assert drop_lines(tmp_path / "none.jsonl", lambda *_: True) == 0
