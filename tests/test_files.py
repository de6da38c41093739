"""Files are replaced as a whole, get the permissions of their folder, and can be locked."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentclinic import files
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import Lock, exists, expanded, find_up, is_locked, is_private, make_folder, write_whole


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.mark.parametrize("durable", [True, False])
def test_a_durable_file_is_on_the_disk_before_it_replaces_the_old_one(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("old")
    synced: list[tuple[int, int, str]] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        found = os.fstat(descriptor)
        synced.append((found.st_ino, found.st_size, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(path, "newer", durable=durable)
    assert path.read_text() == "newer"
    assert synced == ([(path.stat().st_ino, 5, "old")] if durable else [])


def test_a_file_that_cannot_be_replaced_keeps_its_content_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(AgentClinicError, match=r"taken: cannot be written .*its previous content is safe"):
        write_whole(tmp_path / "taken", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_new_file_is_private_if_its_folder_is(private_folder: Path, open_folder: Path) -> None:
    for folder in (private_folder, open_folder):
        write_whole(folder / "notes.txt", "text")
    assert mode(private_folder / "notes.txt") == 0o600
    assert mode(open_folder / "notes.txt") & 0o044


def test_a_file_can_be_private_in_an_open_folder(open_folder: Path) -> None:
    write_whole(open_folder / "notes.txt", "text", private=True)
    assert mode(open_folder / "notes.txt") == 0o600


def test_a_new_folder_is_private_if_its_parent_is(private_folder: Path, open_folder: Path) -> None:
    for folder in (private_folder, open_folder):
        make_folder(folder / "inner")
        make_folder(folder / "inner")  # the second time it exists
    assert is_private(private_folder / "inner")
    assert not is_private(open_folder / "inner")


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/inner: cannot be created"):
        make_folder(tmp_path / "file" / "inner")


def test_a_second_process_cannot_lock_the_same_folder(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from agentclinic.files import Lock; Lock(Path({str(tmp_path)!r})).__enter__()"
    second = [sys.executable, "-c", code]
    with Lock(tmp_path):
        refused = subprocess.run(second, capture_output=True, text=True, check=False)
    assert "another process is working on this run; wait for it or stop it" in refused.stderr
    assert subprocess.run(second, check=False).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="looks with the same lock as it takes")
def test_looking_whether_a_folder_is_locked_gets_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A viewer that looked at the wrong moment made `resume` refuse."""
    with Lock(tmp_path):
        assert is_locked(tmp_path)
    with (tmp_path / ".lock").open("r+b") as looking:
        files._share(looking.fileno())
        assert not is_locked(tmp_path), "someone else who looks"
        monkeypatch.setattr("agentclinic.files.time.sleep", lambda _: looking.close())
        with Lock(tmp_path):
            assert is_locked(tmp_path)
    assert not is_locked(tmp_path)


def test_a_home_folder_that_does_not_exist_and_a_name_that_no_file_can_have() -> None:
    with pytest.raises(InputError, match=r"~nosuchuser/x: there is no home folder of that name"):
        expanded("~nosuchuser/x")
    with pytest.raises(InputError, match="there is no home folder of that name"):
        expanded("~\0")
    assert expanded("~/x") == Path.home() / "x"
    assert [exists(Path(name)) for name in ("/", "a" * 3000, "a\0b")] == [True, False, False]


@pytest.mark.parametrize("mark", [".git", "benchmarks/AgentClinic"])
def test_a_users_file_is_found_up_to_the_root_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    below = tmp_path / "repository" / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    for folder in (tmp_path, tmp_path / "repository"):
        (folder / "settings.json").write_text("{}")
    assert find_up("settings.json") is None, "without a repository, only the working folder counts"
    (tmp_path / "repository" / mark).mkdir(parents=True)
    assert find_up("settings.json") == tmp_path / "repository" / "settings.json", "and nothing above its root"
    (below / "settings.json").mkdir()
    assert find_up("settings.json") == tmp_path / "repository" / "settings.json", "a folder is no file"
    assert find_up("settings.json", folder=True) == Path("settings.json")
    (below.parent / "settings.json").write_text("{}")
    with pytest.warns(UserWarning, match=r"repository/settings\.json: not used, because .*a/settings\.json is nearer"):
        assert find_up("settings.json") == below.parent / "settings.json"
