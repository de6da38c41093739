"""Writing files atomically and with the permissions of their folder, and locking a folder.

Once this process has held credentialed data, every new file is readable by its owner only, wherever it is.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError


def expanded(path: str | Path) -> Path:
    """The path with `~` and `~user` replaced by that home folder; an error if there is no such user."""
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # a zero byte in the user's name
        raise InputError(f"{path}: there is no home folder of that name; write the full path") from None


LARGEST = 256 * 2**20
"""Bytes of a file that is read as a whole. The largest we write, the note of a batch, has 5 MB for 50,000 requests."""


def read_limited(path: Path, most: int = LARGEST) -> bytes:
    """The content of a file; an `OSError` if it is larger than `most`, as a device or the wrong file may be."""
    with path.open("rb") as file:
        there = os.fstat(file.fileno())
        # Python allocates as much memory as it is asked to read.
        fits = stat.S_ISREG(there.st_mode) and there.st_size <= most
        content = file.read() if fits else file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most // 2**20} MB; is this the right file?")
    return content


def exists(path: Path) -> bool:
    """Whether a file or folder exists; False for a name that no file can have."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises an error if the name is too long


_ROOT_MARKS = (".git", "benchmarks/AgentClinic")
"""What the root of a repository has: the first in a clone, the second in a copy of the original without its history."""


def folders_up() -> list[Path]:
    """The working folder and those above it, up to the root of its repository; alone if it is in none."""
    here = Path.cwd()
    above = list(here.parents)
    roots = (place for place, folder in enumerate((here, *above)) if any(exists(folder / m) for m in _ROOT_MARKS))
    return [Path(), *above[: next(roots, 0)]]


def find_up(name: str | Path, *, folder: bool = False) -> Path | None:
    """A file (or a `folder`) of the user's in the nearest of these folders that has it.

    The original's scripts are started in a folder of the repository, and their settings are in its root. A warning
    names any others that are there and not used.
    """
    kind = os.path.isdir if folder else os.path.isfile  # Path's own raise an error if the name is too long
    there = [path for place in folders_up() if kind(path := place / name)]
    if len(there) > 1:
        warnings.warn(f"{', '.join(map(str, there[1:]))}: not used, because {there[0]} is nearer", stacklevel=2)
    return there[0] if there else None


def is_private(folder: Path) -> bool:
    """Whether only the owner may read what is written to a folder."""
    return privacy.silent() or not folder.stat().st_mode & 0o077


def make_folder(path: Path) -> None:
    """Create a folder, if it does not exist, with the permissions of its parent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700 if is_private(path.parent) else 0o777, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be created ({error.strerror})") from None


NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""For `os.open`: refuse a link, since a folder from someone else may have one that leads to a login script."""


def opener(name: str, flags: int) -> int:
    """For `open`: makes a new file private if files in its folder are."""
    return os.open(name, flags | NO_LINK, 0o600 if is_private(Path(name).parent) else 0o666)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags | NO_LINK, 0o600)


def write_whole(path: Path, content: str | bytes, *, durable: bool = True, private: bool = False) -> None:
    """Replace a file atomically; if `durable`, so that it survives a power cut.

    `private`: readable only by the owner, even in a folder that others can read.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    how = _private if private else opener
    try:
        with open(new, "wb", opener=how) as file:
            file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise AgentClinicError(f"{path}: cannot be written ({error.strerror}); its previous content is safe") from None


_LOOKS, _LOOK = 5, 0.02
"""How often a lock is tried, and the seconds between tries: `is_locked` holds it for an instant when it checks."""


class Lock:
    """Keeps other processes from working on a folder, or on one file in it; released when this process ends."""

    def __init__(self, folder: Path, name: str = ".lock", *, what: str = "run") -> None:
        self._path = folder / name
        self._what = what

    def __enter__(self) -> Self:
        try:
            self._file = open(self._path, "a+b", opener=opener)
        except OSError as error:
            raise InputError(f"{self._path.parent}: cannot be written to ({error.strerror})") from None
        for _ in range(_LOOKS):
            if lock_file(self._file.fileno()):
                return self
            time.sleep(_LOOK)
        self._file.close()
        raise InputError(
            f"{self._path.parent}: another process is working on this {self._what}; wait for it or stop it"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def lock_file(descriptor: int) -> bool:
    """Lock an open file until it is closed; False if someone else has locked it."""
    try:
        _lock(descriptor)
    except OSError:
        return False
    return True


def is_locked(folder: Path, name: str = ".lock") -> bool:
    """Whether a process is working on a folder; checks without creating anything."""
    try:
        descriptor = os.open(folder / name, os.O_RDWR)
    except OSError:
        return False
    try:
        _share(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 2**40, os.SEEK_SET)  # far past the content, because a locked byte cannot be read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    _share = _lock

    def waited_lock(descriptor: int) -> None:
        """Lock an open file, waiting for other processes; closing it releases the lock."""
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _share(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def waited_lock(descriptor: int) -> None:
        """Lock an open file, waiting for other processes; closing it releases the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
