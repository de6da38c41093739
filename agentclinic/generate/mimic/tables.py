"""Find MIMIC-IV's tables in a folder and read them with DuckDB: explicit types, bounded memory, a cache."""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.generate.rows import installed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ENDINGS = (".csv.gz", ".csv")
# Raised when the content of the cache changes: older files are then not found.
CACHE_FORMAT = 1
# Bytes read at a time: DuckDB's default of 32 MB takes twice the memory and as much time. No line is over 2 MB.
_BUFFER = 8_000_000
# Bytes unpacked at a time to compare the checksum.
_PIECE = 1 << 20


@dataclass(frozen=True)
class Table:
    """One of MIMIC-IV's tables: where it is and what we read of it."""

    module: str
    name: str
    columns: dict[str, str]
    """The columns we read, with their types. Everything shown is text, so that no digit is rewritten."""
    optional: frozenset[str] = frozenset()
    """Columns that some releases lack; they read as missing."""
    required: bool = True
    """Whether an absent table is an error."""
    long_text: bool = False
    """Fields contain line breaks: read by one thread, since a reader that starts in the middle could mistake one for
    the end of a row."""

    @property
    def path(self) -> str:
        """Module and name, such as hosp/labevents."""
        return f"{self.module}/{self.name}"


def _table(path: str, columns: str, optional: str = "", *, required: bool = True, long_text: bool = False) -> Table:
    """A table from words `name` or `name:type`; text if no type is given."""
    module, _, name = path.partition("/")
    pairs = [word.partition(":") for word in f"{columns} {optional}".split()]
    types = {column: (kind or "VARCHAR").upper() for column, _, kind in pairs}
    missing = frozenset(word.partition(":")[0] for word in optional.split())
    return Table(module, name, types, missing, required, long_text)


PATIENTS = _table("hosp/patients", "subject_id:bigint gender anchor_age:integer anchor_year:integer")
ADMISSIONS = _table(
    "hosp/admissions",
    "subject_id:bigint hadm_id:bigint admittime:timestamp dischtime:timestamp admission_type",
    "admission_location",
)
DIAGNOSES = _table(
    "hosp/diagnoses_icd", "subject_id:bigint hadm_id:bigint seq_num:integer icd_code icd_version:integer"
)
TITLES = _table("hosp/d_icd_diagnoses", "icd_code icd_version:integer long_title")
LABS = _table(
    "hosp/labevents",
    "labevent_id:bigint subject_id:bigint hadm_id:bigint itemid:bigint charttime:timestamp value valuenum",
    "valueuom ref_range_lower ref_range_upper flag comments",
)
LAB_ITEMS = _table("hosp/d_labitems", "itemid:bigint label", "fluid category")
CULTURES = _table(
    "hosp/microbiologyevents",
    "microevent_id:bigint subject_id:bigint hadm_id:bigint charttime:timestamp chartdate:timestamp spec_type_desc "
    "test_name org_name ab_name interpretation",
    "micro_specimen_id:bigint isolate_num comments",
    required=False,
)
OMR = _table("hosp/omr", "subject_id:bigint chartdate:timestamp result_name result_value", "seq_num", required=False)
ED_STAYS = _table(
    "ed/edstays",
    "subject_id:bigint hadm_id:bigint stay_id:bigint intime:timestamp",
    "arrival_transport",
    required=False,
)
_SIGNS = "temperature heartrate resprate o2sat sbp dbp pain"
TRIAGE = _table("ed/triage", "subject_id:bigint stay_id:bigint chiefcomplaint", _SIGNS, required=False)
ED_VITALS = _table("ed/vitalsign", "subject_id:bigint stay_id:bigint charttime:timestamp", _SIGNS, required=False)
ED_DRUGS = _table("ed/medrecon", "subject_id:bigint stay_id:bigint name", required=False)
NOTES = _table(
    "note/discharge", "subject_id:bigint hadm_id:bigint text", "note_id note_seq", required=False, long_text=True
)

READ = (
    *(PATIENTS, ADMISSIONS, DIAGNOSES, TITLES, LABS, LAB_ITEMS, CULTURES, OMR),
    *(ED_STAYS, TRIAGE, ED_VITALS, ED_DRUGS, NOTES),
)
"""Every table we ever open. DRG codes, procedures, prescriptions and radiology reports are not among them: they were
written with the diagnosis in mind, or after it."""


@dataclass
class Folder:
    base: Path
    cache: Path | None = None
    _headers: dict[str, list[str]] = field(default_factory=dict)
    _modules: dict[str, Path | None] = field(default_factory=dict)

    def module(self, name: str) -> Path | None:
        if not self.base.is_dir():
            raise InputError(f"{self.base}: no such folder; name the one that contains MIMIC-IV's hosp folder")
        if name not in self._modules:
            self._modules[name] = _module(self.base, name)
        return self._modules[name]

    def file(self, table: Table) -> Path | None:
        """The table's file, `.csv.gz` or `.csv`; None if an optional table is absent."""
        folder = self.module(table.module)
        for ending in _ENDINGS:
            found = folder / f"{table.name}{ending}" if folder else None
            if found and found.is_file():
                return found
        if table.required:
            where = folder or self.base / table.module
            raise InputError(f"{where}: {table.name}.csv.gz (or .csv) is missing; MIMIC-IV 2.x and 3.x have it")
        return None

    def source(self, table: Table) -> str:
        """SQL that reads the table's columns, from the cache if possible."""
        path = self.file(table)
        if path is None:
            empty = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in table.columns.items())
            return f"(SELECT {empty} WHERE false)"
        cached = self.cached(table, path)
        return f"read_parquet({_text(cached)})" if cached and cached.exists() else self._csv(table, path)

    def cached(self, table: Table, path: Path) -> Path | None:
        """The table's file in the cache; if the table's file, place or columns change, so does the name."""
        if self.cache is None:
            return None
        stat = path.stat()
        known = (CACHE_FORMAT, str(path.resolve()), stat.st_size, stat.st_mtime_ns, sorted(table.columns.items()))
        return self.cache / f"{table.name}-{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}.parquet"

    def _csv(self, table: Table, path: Path) -> str:
        """SQL that reads a CSV file without guessing: every column is named and typed."""
        header = self._header(table, path)
        absent = [name for name in table.columns if name not in header and name not in table.optional]
        if absent:
            raise InputError(
                f"{path}: column {', '.join(absent)} is missing; MIMIC-IV 2.x and 3.x have it (is this another table?)"
            )
        types = ", ".join(f"{_text(name)}: {_text(table.columns.get(name, 'VARCHAR'))}" for name in header)
        wanted = ", ".join(
            name if name in header else f"CAST(NULL AS {kind}) AS {name}" for name, kind in table.columns.items()
        )
        parallel = "false" if table.long_text else "true"
        return (
            f"(SELECT {wanted} FROM read_csv({_text(path)}, auto_detect=false, header=true, delim=',', quote='\"', "
            f"escape='\"', nullstr='', buffer_size={_BUFFER}, parallel={parallel}, columns={{{types}}}))"
        )

    def _header(self, table: Table, path: Path) -> list[str]:
        if table.path not in self._headers:
            try:
                packed = path.suffix == ".gz"
                with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as file:
                    names = next(csv.reader(file), [])
                    if packed:  # DuckDB does not compare checksums
                        while file.buffer.read(_PIECE):
                            pass
            except (OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error) as error:
                reason = getattr(error, "strerror", None) or type(error).__name__
                raise InputError(
                    f"{path}: cannot be read ({reason}); is the file complete? Compare its SHA-256"
                ) from None
            self._headers[table.path] = [name.strip().lstrip("\ufeff").lower() for name in names]
        return self._headers[table.path]


_MODULES = {"hosp": "admissions", "ed": "edstays", "note": "discharge"}
"""The modules we read, and a table that identifies each."""


def _module(base: Path, module: str) -> Path | None:
    """The folder of a module: in `base`, next to it, `base` itself, or in a release somewhere below it.

    PhysioNet's downloads put each project into its own folder, with the version below: their common parent can be
    named, as long as it contains no module twice.
    """
    sibling = [base.parent / module] if base.name in _MODULES else []
    for found in (base / module, *sibling):
        if found.is_dir():
            return found
    if any((base / f"{_MODULES[module]}{ending}").is_file() for ending in _ENDINGS):
        return base
    for depth in range(1, 5):
        deeper = sorted(path for path in base.glob("/".join(["*"] * depth + [module])) if path.is_dir())
        if len(deeper) > 1:
            raise InputError(f"{base}: more than one {module} folder ({deeper[0]}, {deeper[1]}); name one release")
        if deeper:
            return deeper[0]
    return None


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


@contextmanager
def opened(memory_limit: str, threads: int, scratch_in: Path | None = None) -> Iterator[DuckDBPyConnection]:
    """A DuckDB connection whose files are in a private folder that is removed at the end."""
    duckdb = installed("duckdb", "MIMIC-IV")
    with _scratch(scratch_in) as folder:
        settings = {
            "temp_directory": str(folder / "overflow"),
            "preserve_insertion_order": False,  # we sort where order matters, and preserving it takes memory
            "autoinstall_known_extensions": False,
        }
        try:
            connection = duckdb.connect(str(folder / "work.duckdb"), config=settings)
        except duckdb.Error:
            raise AgentClinicError(f"{folder.parent}: cannot create a database there; is the disk full?") from None
        try:
            try:
                connection.execute(f"SET memory_limit = {_text(memory_limit)}; SET threads = {int(threads)}")
            except duckdb.Error:
                raise ConfigError(f"memory limit {memory_limit!r} cannot be used; write it like 512MB or 2GB") from None
            yield connection
        finally:
            connection.close()


@contextmanager
def _scratch(parent: Path | None) -> Iterator[Path]:
    """A folder only we can read, removed at the end; folders that killed processes left behind are removed first."""
    import fcntl

    if parent is not None:
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{parent}: cannot be created ({error.strerror})") from None
    root = parent or Path(tempfile.gettempdir())
    for left in root.glob("agentclinic-mimic-*/lock"):
        with suppress(OSError), left.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its process holds the lock as long as it runs
            shutil.rmtree(left.parent, ignore_errors=True)
    # It gets its final name only once its lock is held: before that another process would remove it as left behind.
    draft = Path(tempfile.mkdtemp(prefix="agentclinic-draft-", dir=root))
    folder = draft.with_name(draft.name.replace("-draft-", "-mimic-"))
    with (draft / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft.rename(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run(connection: DuckDBPyConnection, folder: Folder, table: Table, sql: str) -> DuckDBPyConnection:
    """Run SQL that reads a table; errors name the place in the file but show none of its rows."""
    duckdb = installed("duckdb", "MIMIC-IV")
    try:
        return connection.execute(sql)
    except duckdb.OutOfMemoryException:
        raise AgentClinicError(f"{folder.file(table)}: the memory limit is too low; raise it (1GB)") from None
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise AgentClinicError(
                f"{table.path}: the disk is full; scratch files are in the cache folder, or in TMPDIR if there is none"
            ) from None
        raise InputError(
            f"{folder.file(table)}{_place(str(error))}; is the file complete? Compare its SHA-256"
        ) from None


# DuckDB's message quotes the row, which is patient data: only the place is taken from it.
_LINE = re.compile(r"Line: (\d+)")
_COLUMN = re.compile(r'converting column "(\w+)"')


def _place(message: str) -> str:
    line, column = _LINE.search(message), _COLUMN.search(message)
    where = f" line {line[1]}" if line else ""
    return where + (f": {column[1]} has a value of another type" if column else ": cannot be read as CSV")


def fill_cache(
    connection: DuckDBPyConnection, folder: Folder, tables: tuple[Table, ...], tell: Callable[[str], None]
) -> None:
    """Copy tables that are not yet in the cache, sorted by patient so that a few patients are found fast.

    The connection's scratch folder must be in the cache folder.
    """
    for table in tables:
        path = folder.file(table)
        target = folder.cached(table, path) if path else None
        if path is None or target is None or target.exists():
            continue
        tell(f"copying {table.path} to the cache")
        # Written to the scratch folder, so that the partial copy of a killed process is removed; on the same disk, so
        # that it appears complete under its name.
        (overflow,) = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0]
        draft = Path(overflow).parent / target.name
        rows = f"FROM {folder._csv(table, path)} ORDER BY subject_id"
        how = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880"
        run(connection, folder, table, f"COPY ({rows}) TO {_text(draft)} ({how})")
        draft.chmod(0o600)
        draft.replace(target)
