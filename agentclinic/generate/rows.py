"""The rows of a data set on disk, as JSON Lines, JSON, Parquet, or Hugging Face's Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from agentclinic.cases import formats
from agentclinic.errors import ConfigError, InputError, how_to_install

_DESCRIPTIONS = frozenset({"dataset_info.json", "dataset_dict.json", "dataset_infos.json", "state.json"})
"""Files that Hugging Face's `datasets` writes next to the rows."""
_PER_BYTE = 16
"""The most values for each byte of an Arrow file: the smallest takes a bit, but nulls may take no space at all."""
_PARQUET_MEMORY = "2GB"
_AT_ONCE = 1000
"""Rows read from Parquet at a time: a small file can hold the same row a billion times."""
Rows = Iterator[tuple[str, dict[str, Any]]]


def read_rows(path: Path) -> Rows:
    """Each row and where it is. A folder's rows are in its files, or else in its subfolders (`train`, `test`)."""
    files = [path] if path.is_file() else _files(path, "*") or _files(path, "*/*")
    unknown = [file for file in files if file.suffix not in _READERS]
    if not files or unknown:
        endings = ", ".join(_READERS)
        raise InputError(
            f"{path}: not a file of questions ({endings}) or a folder with such files; name it with --base-dir"
        )
    for file in files:
        yield from _READERS[file.suffix](file)


def _files(folder: Path, pattern: str) -> list[Path]:
    found = (file for file in folder.glob(pattern) if file.suffix in _READERS and file.name not in _DESCRIPTIONS)
    return sorted(file for file in found if file.is_file())


def _json(file: Path) -> Rows:
    for row in formats.read_rows(file):
        yield f"{file} line {row.line}", dict(row.data)


def _parquet(file: Path) -> Rows:
    duckdb = installed("duckdb", "Parquet")
    counted = count()
    with duckdb.connect(config={"memory_limit": _PARQUET_MEMORY}) as connection:
        try:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(file)])
            names = [column[0] for column in found.description]
            while rows := found.fetchmany(_AT_ONCE):
                for row in rows:
                    yield f"{file} row {next(counted)}", dict(zip(names, row, strict=True))
        except duckdb.Error as error:
            raise InputError(f"{file}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None


def _arrow(file: Path) -> Rows:
    """Arrow's stream format, which `save_to_disk` and the cache of `datasets` use, or its file format."""
    arrow, ipc = installed("pyarrow", "Arrow"), installed("pyarrow.ipc", "Arrow")
    try:
        content = file.read_bytes()
        is_file = content.startswith(b"ARROW1")
        table = (ipc.open_file(content) if is_file else ipc.open_stream(content)).read_all()
        table.validate(full=True)  # without this, a damaged file can make PyArrow read out of bounds
        if sum(map(_values, table.columns), table.num_rows) > _PER_BYTE * len(content):  # it may have no columns
            raise ValueError("it claims to hold far more values than bytes")
        rows = table.to_pylist()
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise InputError(f"{file}: cannot be read as Arrow ({str(error).splitlines()[0]})") from None
    for number, row in enumerate(rows):
        yield f"{file} row {number}", row


def _values(array: Any) -> int:
    """How many values an Arrow array or column has, including those inside its lists and objects."""
    if hasattr(array, "chunks"):
        return sum(map(_values, array.chunks))
    inner = array.flatten() if array.type.num_fields and hasattr(array, "flatten") else []
    return len(array) + sum(map(_values, inner if isinstance(inner, list) else [inner]))


def installed(name: str, what: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"reading {what} needs {name}, which is not installed: {how_to_install('generate')}"
        ) from None


_READERS: Mapping[str, Callable[[Path], Rows]] = {
    ".jsonl": _json,
    ".json": _json,
    ".parquet": _parquet,
    ".arrow": _arrow,
}
