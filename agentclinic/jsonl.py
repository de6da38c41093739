"""JSON from outside, and JSON Lines files: one reader, and a writer that appends and survives a crash."""

from __future__ import annotations

import codecs
import errno
import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic_core import from_json

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import NO_LINK, lock_file, waited_lock

MOST_LEVELS = 100
"""Nesting accepted from outside: charts and configs have fewer than ten levels, and records are read up to 200."""
MOST_DIGITS = 300
"""Digits accepted in an integer: a float holds 308, so every number can be used in calculations."""
_TOO_DEEP = f"nested too deeply, over {MOST_LEVELS} levels"


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs replaced by U+FFFD: JSON can hold them, UTF-8 cannot."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


# Control characters can end strings early, bidirectional marks make text read as something else, and lone surrogates
# cannot be encoded. All are shown by their number.
ACTIVE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def inert(text: str) -> str:
    """The text with characters that act invisibly shown by their number, e.g. `⟨U+202E⟩`."""
    return ACTIVE.sub(by_number, text.replace("\r\n", "\n").replace("\r", "\n"))


def by_number(found: re.Match[str]) -> str:
    """A character by its number, e.g. `⟨U+202E⟩`."""
    return f"⟨U+{ord(found[0]):04X}⟩"


def clean(value: Any, level: int = 0) -> Any:
    """JSON data that can be written and read again: text made encodable; `ValueError` if it is nested too deeply."""
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, dict | list):
        return value
    if level == MOST_LEVELS:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list):
        return [clean(item, level + 1) for item in value]
    return {encodable(key): clean(item, level + 1) for key, item in value.items()}


def _refuse_deep(value: Any) -> None:
    """Raise a `ValueError` if JSON data is nested too deeply."""
    containers = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MOST_LEVELS):
        containers = [
            child
            for one in containers
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, _CONTAINERS)
        ]
    if containers:
        raise ValueError(_TOO_DEEP)


_CONTAINERS = (dict, list)


def integer(digits: str) -> int:
    """An integer in JSON; `ValueError` if it is too long."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number with more than {MOST_DIGITS} digits")
    return int(digits)


def loads(text: str | bytes, **options: Any) -> Any:
    """Read JSON from outside, cleaned; any problem is a `ValueError`, which `problem_in` explains."""
    try:
        value = json.loads(text, parse_int=integer, **options)
        if isinstance(text, str) and "\\u" not in text and encodable(text) is text:
            _refuse_deep(value)  # all text in it is encodable too
            return value
        return clean(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def problem_in(error: ValueError) -> str:
    """What is wrong with a text that `loads` refused."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    return "not UTF-8 text" if isinstance(error, UnicodeError) else str(error)


class JsonLines:
    """Appends objects to a file, each in a single write; opening it repairs an incomplete last line.

    A `journal` has only one writer at a time, its lines carry a checksum, and a change by anyone else is an error.
    Others who `wait` take turns.
    """

    def __init__(
        self, path: Path, *, durable: bool = True, private: bool = False, journal: bool = False, wait: bool = False
    ) -> None:
        """Open for appending; `private`: readable only by the owner, even if the file exists and others can read it."""
        self.path = path
        self._durable = durable
        self._journal = journal
        private = private or privacy.silent()
        try:
            if private and path.exists():
                path.chmod(0o600)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_LINK, 0o600 if private else 0o644)
        except OSError as error:
            raise InputError(f"{path}: cannot be opened for writing ({error.strerror})") from None
        if journal and not lock_file(self._file):
            self.close()
            raise InputError(f"{path}: another process is writing to it; wait for it or stop it")
        if wait:
            waited_lock(self._file)
        self.removed = repair(path)
        """Bytes of an incomplete last line that were removed."""
        self._size = os.fstat(self._file).st_size

    @property
    def size(self) -> int:
        return self._size

    def append(self, entry: Any) -> None:
        """Write one line; if `durable`, it is on the disk, not only in the system's cache, when this returns."""
        try:
            line = sealed(entry) if self._journal else _encoded(entry)
            from_json(line)
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentClinicError(
                f"{self.path}: an entry could not be read again ({error}), so it is not written"
            ) from None
        if self._journal:
            self._refuse_changes()
        try:
            written = os.write(self._file, line + b"\n")
            if written != len(line) + 1:  # a full disk may accept only part of a line
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._size += written
            if self._durable:
                os.fsync(self._file)
            if self._journal:
                os.lseek(self._file, -written, os.SEEK_END)
                if os.read(self._file, written) != line + b"\n":
                    raise OSError(errno.EIO, "the last line reads differently from what was written")
        except OSError as error:
            raise AgentClinicError(
                f"{self.path}: cannot be written ({error.strerror}); the lines already in it are safe"
            ) from None

    def _refuse_changes(self) -> None:
        ours = os.fstat(self._file)
        try:
            there = self.path.stat()
        except OSError:
            happened = "removed"
        else:
            if os.path.samestat(ours, there) and ours.st_size == self._size:
                return
            happened = "changed" if os.path.samestat(ours, there) else "replaced"
        raise AgentClinicError(
            f"{self.path}: was {happened} by another program during this run, so the run stops; restore the file, "
            "then resume the run"
        )

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _encoded(entry: Any) -> bytes:
    return encodable(json.dumps(entry, ensure_ascii=False, separators=(",", ":"))).encode()


def sealed(entry: dict[str, Any]) -> bytes:
    """The entry with a checksum of everything before it; only `timing`, in which equal runs may differ, follows.

    `timing` ends with its own checksum, which also covers the first.
    """
    content = _encoded({key: value for key, value in entry.items() if key != "timing"})
    found = _checksum(content)
    line = content[:-1] + _named(found)
    if "timing" in entry:
        timed = b',"timing":' + _encoded(entry["timing"])
        if entry["timing"] and isinstance(entry["timing"], dict):
            timed = timed[:-1] + _named(_checksum(found.encode() + timed[:-1])) + b"}"
        line += timed
    return line + b"}"


def checksum_of(data: Mapping[str, Any]) -> str:
    """A checksum of an object, for files that are written as a whole."""
    return _checksum(_encoded(data))


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def take_checksums(line: bytes, entry: dict[str, Any], timing: object) -> tuple[str | None, int]:
    """Verify a line and remove its checksums, that of `entry` and that of `timing`.

    Returns the first, which equal entries share, and how much of the line is covered: 0 nothing, 1 all but `timing`,
    2 everything. `ValueError` if a checksum does not match, or is under another name.
    """
    line = line.rstrip()
    checksum = entry.pop("checksum", None)
    second = timing.pop("checksum", None) if isinstance(timing, dict) else None
    if checksum is None:
        if _misnamed(line, lambda content: content + b"}"):
            raise ValueError(CHANGED)
        return None, 0
    content, _, rest = line.rpartition(_named(checksum))
    if _checksum(content + b"}") != checksum or not (rest == b"}" or rest.startswith(b',"timing":')):
        raise ValueError(CHANGED)
    if not timing and second is None:
        return checksum, 2
    timed, _, end = rest.rpartition(_named(second))
    if second is None and not _misnamed(rest, lambda timed: checksum.encode() + timed):
        return checksum, 1
    if end != b"}}" or _checksum(checksum.encode() + timed) != second:
        raise ValueError(CHANGED)
    return checksum, 2


def _named(checksum: object) -> bytes:
    return f',"checksum":"{checksum}"'.encode("utf-8", "replace")


_ANY_NAME = re.compile(rb',"[^"]*":"([0-9a-f]{16})"(?=}+$|,"timing":)')


def _misnamed(part: bytes, covered: Callable[[bytes], bytes]) -> bool:
    """Whether there is a correct checksum under another name: then only the name was damaged."""
    found = _ANY_NAME.search(part)
    return found is not None and _checksum(covered(part[: found.start()])) == found[1].decode()


def repair(path: Path) -> int:
    """Add the newline that the last line lacks, or remove the line if it is incomplete; returns the bytes removed."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size == 0:
        return 0
    with path.open("r+b") as file:
        start = size = file.seek(0, os.SEEK_END)
        tail = b""
        while start > 0 and b"\n" not in tail:
            step = min(65536, start)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return 0
        try:
            json.loads(last)
        except (ValueError, RecursionError):
            file.truncate(size - len(last))
            return len(last)
        file.seek(size)
        file.write(b"\n")
        return 0


def refuse_other(path: Path, what: str) -> None:
    """Refuse a file that is not `what`: opening it for appending would remove an incomplete last line."""
    if sum(1 for _ in read_json_lines(path, what)) == 0 and path.stat().st_size:
        raise InputError(f"{path}: not {what}; name another file")


def drop_lines(path: Path, unwanted: Callable[[int, bytes], bool]) -> int:
    """Rewrite a file without the lines that `unwanted(number, line)` names; return how many were removed.

    The old file stays until the new one is complete and on the disk; the new one keeps its permissions.
    """
    if not path.exists():
        return 0
    new = path.with_name(path.name + ".new")
    dropped = 0
    new.unlink(missing_ok=True)  # what is left of an earlier call, or a link
    with path.open("rb") as source, open(new, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as target:
        for number, line in enumerate(source, start=1):
            if line.strip() and unwanted(number, line):
                dropped += 1
            else:
                target.write(line)
        target.flush()
        os.fsync(target.fileno())
    new.chmod(path.stat().st_mode & 0o777)
    new.replace(path)
    return dropped


_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


def kind_of(value: object) -> str:
    """What a JSON value is, in words for a message."""
    return _KINDS.get(type(value), "a number")


LONGEST_LINE = 512 * 2**20
"""Bytes: far more than any record has, and few enough to fit in memory."""
CHANGED = "it was changed since it was written: its checksum does not match"
LACKING = "it was changed since it was written: it lacks the checksum that the lines before it have"


def read_json_lines(
    path: Path, what: str = "valid JSON", *, journal: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in a file with their line numbers; in a `journal`, checksums are verified and left out.

    An incomplete last line, which a crash can leave behind, is skipped, in a journal with a warning. Any other line
    that is not a JSON object is an error, which calls the line "not `what`".
    """
    before = 0
    for number, line, complete in read_lines(path):
        try:
            entry = loads(line)
            if not isinstance(entry, dict):
                raise ValueError(f"expected a JSON object, found {kind_of(entry)}")
            if journal:
                _, found = take_checksums(line, entry, entry.get("timing"))
                if found < before:
                    raise ValueError(LACKING)
                before = found
        except ValueError as error:
            if not complete:
                if journal:
                    warnings.warn(f"{path} line {number}: skipped, because it is incomplete", stacklevel=2)
                return
            raise InputError(f"{path} line {number}: not {what} ({problem_in(error)})") from None
        yield number, entry


def read_lines(path: Path, error: type[InputError] = InputError) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of a file that are not blank: number, content, and whether the line is complete.

    Skips a byte order mark. Raises `error` if the file cannot be read.
    """
    try:
        file = path.open("rb")
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror})") from None
    with file:
        for number, raw in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), start=1):
            if len(raw) > LONGEST_LINE:
                raise error(f"{path} line {number}: more than {LONGEST_LINE // 2**20} MB long; is this the right file?")
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if line.strip():
                yield number, line.rstrip(b"\n"), line.endswith(b"\n")
