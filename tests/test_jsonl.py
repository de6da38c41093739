"""JSON Lines files: what is appended survives a crash, and what is read back is complete."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agentclinic.errors import AgentClinicError, InputError
from agentclinic.jsonl import JsonLines, drop_lines, loads, read_json_lines, read_lines, repair, sealed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


@pytest.fixture
def synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The content of the file each time it was forced to the disk."""
    contents: list[bytes] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        sync(descriptor)
        assert os.fstat(descriptor).st_ino == path.stat().st_ino
        contents.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    return contents


def test_each_appended_line_is_forced_to_the_disk(path: Path, synced: list[bytes]) -> None:
    with JsonLines(path) as sink:
        sink.append({"n": 1})
        assert synced == [b'{"n":1}\n']
        sink.append({"n": 2})
        assert synced[1:] == [b'{"n":1}\n{"n":2}\n']


def test_a_file_that_need_not_be_durable_is_not_forced_to_the_disk(path: Path, synced: list[bytes]) -> None:
    with JsonLines(path, durable=False) as sink:
        sink.append({"n": 1})
    assert synced == []
    assert path.read_bytes() == b'{"n":1}\n'


def test_an_entry_is_one_line_whatever_it_contains(path: Path) -> None:
    with JsonLines(path) as sink:
        sink.append({"text": "two\nlines, an é, half a surrogate pair \ud83d and both halves \ud83d\ude00"})
    (line,) = path.read_bytes().splitlines()
    assert json.loads(line) == {"text": "two\nlines, an é, half a surrogate pair \ufffd and both halves \U0001f600"}


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with JsonLines(path) as sink:
        sink.append({"n": 1})
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
        with pytest.raises(AgentClinicError, match=os.strerror(errno.ENOSPC)):
            sink.append({"n": 2})
        monkeypatch.undo()
        sink.append({"n": 3})
    assert path.read_text() == '{"n":1}\n{"n":3}\n'


def test_a_private_file_is_closed_to_others_even_if_it_was_open_before(path: Path) -> None:
    path.write_text("")
    path.chmod(0o644)
    with JsonLines(path, private=True):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_appending_continues_after_an_incomplete_last_line(path: Path) -> None:
    path.write_bytes(b'{"n":1}\n{"n":')
    with JsonLines(path) as sink:
        sink.append({"n": 2})
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'


@pytest.mark.parametrize(
    ("before", "after", "removed"),
    [
        (b"", b"", 0),
        (b'{"a":1}\n', b'{"a":1}\n', 0),
        (b'{"a":1}', b'{"a":1}\n', 0),
        (b'{"a":1}\n{"b"', b'{"a":1}\n', 4),
        (b'{"b"', b"", 4),
        (b'{"a":1}\n' + b'{"' + b"x" * 200_000, b'{"a":1}\n', 200_002),
        (b'{"a":1}\n\xff\x00\x00', b'{"a":1}\n', 3),
        (b'{"a":1}\n' + b"[" * 100_000, b'{"a":1}\n', 100_000),
    ],
)
def test_a_repaired_file_ends_with_a_complete_line(before: bytes, after: bytes, removed: int, path: Path) -> None:
    path.write_bytes(before)
    assert repair(path) == removed
    assert path.read_bytes() == after


def test_objects_are_read_with_their_line_numbers_and_blank_lines_are_skipped(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\n\n  \n{"b":2}\n')
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (4, {"b": 2})]


@pytest.mark.parametrize(("last", "read"), [(b'{"b":2}', 2), (b'{"b":', 1), (b"\xff", 1)])
def test_only_an_incomplete_last_line_is_skipped(last: bytes, read: int, path: Path) -> None:
    path.write_bytes(b'{"a":1}\n' + last)
    assert len(list(read_json_lines(path))) == read


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "Expecting property name enclosed in double quotes, column 2"),
        (b"[1]", "expected a JSON object, found a list"),
        (b"\xff", "not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply, over 100 levels"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "nested too deeply, over 100 levels"),
        (b'{"a":1' + b"0" * 300 + b"}", "a number with more than 300 digits"),
    ],
)
def test_a_bad_line_is_an_error_that_names_file_line_and_problem(line: bytes, problem: str, path: Path) -> None:
    path.write_bytes(b'{"a":1}\n' + line + b"\n")
    with pytest.raises(InputError) as caught:
        list(read_json_lines(path, "a record"))
    assert str(caught.value) == f"{path} line 2: not a record ({problem})"


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(InputError, match=r"lines\.jsonl: cannot be read \(No such file"):
        list(read_lines(path))


@pytest.fixture
def filled(path: Path) -> Path:
    path.write_text('{"n": 1}\n\n{"n": 2, "text": "é"}\n{"n":3}\n', encoding="utf-8")
    return path


def test_unwanted_lines_are_removed_and_the_others_stay_byte_for_byte(filled: Path) -> None:
    assert drop_lines(filled, lambda number, line: number > 3 and json.loads(line)["n"] == 3) == 1
    assert filled.read_text(encoding="utf-8") == '{"n": 1}\n\n{"n": 2, "text": "é"}\n'
    assert [file.name for file in filled.parent.iterdir()] == [filled.name]


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_the_file_keeps_its_permissions(filled: Path, mode: int) -> None:
    filled.chmod(mode)
    drop_lines(filled, lambda _, line: b"2" in line)
    assert stat.S_IMODE(filled.stat().st_mode) == mode


def test_the_old_file_stays_if_a_line_cannot_be_judged(filled: Path) -> None:
    def unwanted(number: int, line: bytes) -> bool:
        if number == 3:
            raise InputError("not a record")
        return True

    before = filled.read_bytes()
    with pytest.raises(InputError):
        drop_lines(filled, unwanted)
    assert filled.read_bytes() == before


def test_the_new_file_is_on_the_disk_before_it_replaces_the_old(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    drop_lines(filled, lambda number, _: number == 1)
    assert calls == [f"sync {filled.stat().st_size}", "replace"]


def test_a_missing_file_has_nothing_to_remove(path: Path) -> None:
    assert drop_lines(path, lambda *_: True) == 0


# --- journals -------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_in_a_journal_is_noticed_or_changes_nothing(path: Path) -> None:
    entry = {"scenario_id": 7, "correct": False, "text": "é", "timing": {"seconds": 1.5}}
    with JsonLines(path, journal=True) as sink:
        sink.append(entry)
    whole = path.read_bytes()
    for bit in range(8 * (len(whole) - 1)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(InputError, match=r"line 1: not valid JSON"):
            list(read_json_lines(path, journal=True))
    path.write_bytes(whole)
    assert list(read_json_lines(path, journal=True)) == [(1, entry)]


def test_a_line_whose_checksum_is_gone_is_refused_if_those_before_have_one(path: Path) -> None:
    timed = {"n": 1, "timing": {"seconds": 1}}
    old = json.dumps({"n": 0}).encode()
    older = sealed({"n": 2}).replace(b"}", b',"timing":{"seconds":1}}')
    path.write_bytes(b"\n".join([old, older, sealed(timed), b""]))
    assert [entry["n"] for _, entry in read_json_lines(path, journal=True)] == [0, 2, 1], "as versions wrote them"
    for later in (old, older):
        path.write_bytes(b"\n".join([sealed(timed), later, b""]))
        with pytest.raises(InputError, match=r"line 2: .*lacks the checksum that the lines before it have"):
            list(read_json_lines(path, journal=True))


@pytest.mark.parametrize("entry", [{"n": 1}, {"n": 1, "timing": {"seconds": 1}}])
def test_a_checksum_under_a_damaged_name_is_refused_even_on_the_only_line(path: Path, entry: dict[str, Any]) -> None:
    line = sealed(entry)
    for at in range(line.count(b"checksum")):
        parts = line.split(b"checksum")
        path.write_bytes(b"checksum".join(parts[: at + 1]) + b"checksun" + b"checksum".join(parts[at + 1 :]) + b"\n")
        with pytest.raises(InputError, match=r"line 1: .*changed since it was written"):
            list(read_json_lines(path, journal=True))


def test_an_incomplete_last_line_of_a_journal_is_skipped_with_a_warning(path: Path) -> None:
    path.write_bytes(sealed({"n": 1}) + b"\n" + sealed({"n": 2}) + b"J")
    with pytest.warns(UserWarning, match="line 2: skipped, because it is incomplete"):
        assert [entry["n"] for _, entry in read_json_lines(path, journal=True)] == [1]


def test_equal_entries_have_equal_checksums_whatever_their_timing(path: Path) -> None:
    with JsonLines(path, journal=True) as sink:
        for seconds in (1, 2):
            sink.append({"n": 1, "timing": {"seconds": seconds}})
        sink.append({"n": 2, "timing": {"seconds": 1}})
    first, second, third = (json.loads(line)["checksum"] for line in path.read_text().splitlines())
    assert first == second != third
    assert [entry["n"] for _, entry in read_json_lines(path, journal=True)] == [1, 1, 2]


def test_a_journal_has_one_writer(path: Path) -> None:
    with JsonLines(path, journal=True), pytest.raises(InputError, match="another process is writing to it"):
        JsonLines(path, journal=True)
    JsonLines(path, journal=True).close()


def test_a_journal_that_others_touch_is_not_written_any_more(path: Path) -> None:
    def remove() -> None:
        path.unlink()

    def replace() -> None:
        (path.parent / "other").write_bytes(path.read_bytes())
        (path.parent / "other").replace(path)

    def truncate() -> None:
        os.truncate(path, 3)

    def extend() -> None:
        with path.open("ab") as file:
            file.write(b'{"n":9}\n')

    for change, told in ((remove, "removed"), (replace, "replaced"), (truncate, "changed"), (extend, "changed")):
        path.unlink(missing_ok=True)
        with JsonLines(path, journal=True) as sink:
            sink.append({"n": 1})
            change()
            after = path.read_bytes() if path.exists() else None
            with pytest.raises(AgentClinicError, match=f"was {told} by another program"):
                sink.append({"n": 2})
        assert (path.read_bytes() if path.exists() else None) == after


def test_a_line_that_reads_differently_from_what_was_written_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad disk, made by writing something else of the same length."""
    write = os.write
    with JsonLines(path, journal=True) as sink:
        monkeypatch.setattr(os, "write", lambda file, data: write(file, b" " * len(data)))
        with pytest.raises(AgentClinicError, match="reads differently from what was written"):
            sink.append({"n": 1})


def test_what_could_not_be_read_again_is_not_written(path: Path) -> None:
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    with JsonLines(path) as sink:
        for entry in ({"a": deep}, {"a": 10**5000}, {"a": object()}):
            with pytest.raises(AgentClinicError, match="so it is not written"):
                sink.append(entry)
    assert path.read_bytes() == b""


def test_a_folder_cannot_be_opened_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened for writing"):
        JsonLines(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'{"half\ud800": ["\udc00x", 1]}', {"half\ufffd": ["\ufffdx", 1]}),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        ("[" * 100 + "]" * 100, None),
        ("[" * 101 + "]" * 101, ValueError),
        ("[" * 100_000, ValueError),
        ("1" * 300, int("1" * 300)),
        ("1" * 301, ValueError),
    ],
)
def test_json_from_outside_can_always_be_written_again(text: str | bytes, expected: object) -> None:
    if expected is ValueError:
        with pytest.raises(ValueError, match=r"nested too deeply|more than 300 digits"):
            loads(text)
    else:
        value = loads(text)
        assert expected in (None, value)
        json.dumps(value, ensure_ascii=False).encode()
