"""Choose admissions: one per patient, spread over the chapters of disease, the same for the same seed.

A salt hides which patient a case was made from.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentclinic.errors import ConfigError, InputError
from agentclinic.generate.mimic import icd
from agentclinic.generate.mimic.tables import ADMISSIONS, DIAGNOSES, PATIENTS, TITLES, Folder, fill_cache, opened, run
from agentclinic.generate.settings import MimicSettings
from agentclinic.scoring.format import plural

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Planned stays: the diagnosis was known before the patient came.
_PLANNED = ("ELECTIVE", "SURGICAL SAME DAY ADMISSION")

OTHER_STAY = "another stay of the same patient was chosen"
BEYOND_LIMIT = "beyond the limit"


@dataclass(frozen=True)
class Admission:
    subject_id: int = field(repr=False)
    hadm_id: int = field(repr=False)
    key: str
    code: str
    version: int
    title: str
    chapter: str


class ChapterCount(NamedTuple):
    chapter: str
    available: int
    """Admissions whose principal diagnosis is in this chapter."""
    eligible: int
    """Those that no rule excludes."""
    patients: int
    """The patients they belong to."""
    chosen: int


@dataclass(frozen=True)
class Coverage:
    """What was available, what was chosen, and why the rest was not."""

    admissions: int
    patients: int
    chapters: tuple[ChapterCount, ...]
    excluded: tuple[tuple[str, int], ...]
    """Reason and number of admissions, each counted under the first reason that applies."""

    @property
    def chosen(self) -> int:
        return sum(row.chosen for row in self.chapters)

    def as_dict(self) -> dict[str, object]:
        return {
            "admissions": self.admissions,
            "patients": self.patients,
            "eligible": sum(row.eligible for row in self.chapters),
            "chosen": self.chosen,
            "chapters": [row._asdict() for row in self.chapters],
            "excluded": dict(self.excluded),
        }

    def lines(self) -> list[str]:
        width = max([7, *(len(row.chapter) for row in self.chapters)])
        return [
            f"{'chapter':{width}}  available  eligible  patients  chosen",
            *(f"{name:{width}}  {a:9}  {e:8}  {p:8}  {c:6}" for name, a, e, p, c in self.chapters),
            f"{plural(self.admissions, 'admission')} of {plural(self.patients, 'patient')}, "
            f"{self.chosen} chosen. Not chosen:",
            *(f"{count:7}  {reason}" for reason, count in self.excluded),
        ]


@dataclass(frozen=True)
class Chosen:
    """The admissions to make cases from, in the order in which they were drawn."""

    admissions: tuple[Admission, ...]
    coverage: Coverage

    def without(self, keys: Collection[str]) -> Chosen:
        """The same choice without the admissions that are done; the report stays the same."""
        return replace(self, admissions=tuple(one for one in self.admissions if one.key not in keys))


def choose(settings: MimicSettings, salt: str, *, tell: Callable[[str], None] = lambda _: None) -> Chosen:
    """Choose admissions by the settings' rules; equal settings and tables give an equal choice.

    `tell` is called with a line before anything that can take minutes.
    """
    if (settings.mode == "targets") != bool(settings.target_list):
        raise ConfigError("targets and mode targets belong together: give both or neither")
    folder = Folder(settings.base, settings.cache)
    with opened(settings.memory_limit, settings.threads, settings.cache) as connection:
        fill_cache(connection, folder, (DIAGNOSES,), tell)
        tell(f"reading {DIAGNOSES.path}")
        _read(connection, folder)
        _classify_codes(connection, settings)
        _apply_rules(connection, settings)
        drawn, sizes = _draw(connection, settings)
        admissions = _admissions(connection, salt, drawn)
        return Chosen(admissions, _coverage(connection, admissions, sizes))


def titles_table(folder: Folder) -> str:
    return (
        "CREATE TABLE titles AS SELECT upper(trim(icd_code)) AS code, icd_version AS version, "
        f"min(trim(long_title)) AS title FROM {folder.source(TITLES)} GROUP BY ALL"
    )


def _read(connection: DuckDBPyConnection, folder: Folder) -> None:
    """Copy the admissions with their principal diagnosis, and all diagnoses, into our own tables."""
    diagnoses = (
        "CREATE TABLE diagnoses AS SELECT subject_id, hadm_id, seq_num, upper(trim(icd_code)) AS code, "
        f"icd_version AS version FROM {folder.source(DIAGNOSES)} WHERE icd_code IS NOT NULL"
    )
    stays = f"""
        CREATE TABLE stays AS
        WITH principal AS (
            FROM diagnoses WHERE seq_num = 1 QUALIFY row_number() OVER (PARTITION BY hadm_id ORDER BY version, code) = 1
        ), counted AS (
            SELECT hadm_id, count(DISTINCT (code, version)) AS number FROM diagnoses GROUP BY hadm_id
        )
        SELECT a.subject_id, a.hadm_id, a.admittime, upper(trim(a.admission_type)) AS kind,
               p.code, p.version, coalesce(counted.number, 0) AS number
        FROM {folder.source(ADMISSIONS)} a
        LEFT JOIN principal p ON p.hadm_id = a.hadm_id AND p.subject_id = a.subject_id
        LEFT JOIN counted ON counted.hadm_id = a.hadm_id
    """
    run(connection, folder, DIAGNOSES, diagnoses)
    run(connection, folder, TITLES, titles_table(folder))
    run(connection, folder, PATIENTS, f"CREATE TABLE patients AS SELECT subject_id FROM {folder.source(PATIENTS)}")
    run(connection, folder, ADMISSIONS, stays)


def _classify_codes(connection: DuckDBPyConnection, settings: MimicSettings) -> None:
    """What each principal code is: chapter, kind, whether its title is vague, whether it is a target."""
    wanted = _targets(connection, settings.target_list)
    found = connection.execute(
        "SELECT DISTINCT s.code, s.version, t.title FROM stays s LEFT JOIN titles t USING (code, version) "
        "WHERE s.code IS NOT NULL"
    ).fetchall()
    chapters = [icd.chapter(code, version) for code, version, _ in found]
    columns = {
        "code": [code for code, _, _ in found],
        "version": [version for _, version, _ in found],
        "title": [title for _, _, title in found],
        "chapter": [chapter.name for chapter in chapters],
        "kind": [str(chapter.kind) for chapter in chapters],
        "vague": [icd.vague(title or "") for _, _, title in found],
        "wanted": [wanted(code, version, title or "") for code, version, title in found],
    }
    types = {"version": "INTEGER", "vague": "BOOLEAN", "wanted": "BOOLEAN"}
    listed = ", ".join(f"unnest(${name}::{types.get(name, 'VARCHAR')}[]) AS {name}" for name in columns)
    connection.execute(f"CREATE TABLE codes AS SELECT {listed}", columns)


_Target = Callable[[str, int, str], bool]
"""Whether a code, version and title match a target."""


def _targets(connection: DuckDBPyConnection, targets: tuple[str, ...]) -> _Target:
    """Whether a code is one of the targets; a target that matches no code at all is an error."""
    tests = {target: _target(target) for target in targets}
    titles = connection.execute("SELECT code, version, coalesce(title, '') FROM titles").fetchall() if tests else []
    missing = [target for target, test in tests.items() if not any(test(*row) for row in titles)]
    if missing:
        raise InputError(
            f"target {', '.join(sorted(missing))}: no code begins with it and no title contains its words; "
            "give codes (I21, 9:410) or words from titles in d_icd_diagnoses"
        )
    return lambda code, version, title: any(test(code, version, title) for test in tests.values())


_CODE = re.compile(r"(?:(9|10):)?([A-Z]?\d[\dA-Z]*(?:\.[\dA-Z]*)?)", re.IGNORECASE)


def _target(target: str) -> _Target:
    """Matches the beginning of a code, in one version if the target names it, or words in a title."""
    as_code = _CODE.fullmatch(target.strip())
    if as_code:
        only = int(as_code[1]) if as_code[1] else None
        start = as_code[2].replace(".", "").upper()
        return lambda code, version, _title: only in (None, version) and code.startswith(start)
    words = [re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE) for word in target.split()]
    return lambda _code, _version, title: all(word.search(title) for word in words)


def _apply_rules(connection: DuckDBPyConnection, settings: MimicSettings) -> None:
    """Give each admission the first reason that excludes it, if any."""
    planned = ", ".join(f"'{kind}'" for kind in _PLANNED)
    principal, first_only = "principal diagnosis is", not settings.include_recurrent
    rules = [
        ("no principal diagnosis", "s.code IS NULL", True),
        ("no time of admission", "s.admittime IS NULL", True),
        ("patient not in the table of patients", "s.subject_id NOT IN (SELECT subject_id FROM patients)", True),
        ("principal code without a title", "c.title IS NULL", True),
        ("principal code of no chapter", f"c.kind = '{icd.Kind.UNKNOWN}'", True),
        ("not a target", "NOT c.wanted", settings.mode == "targets"),
        ("more than one diagnosis", "s.number > 1", settings.mode == "single"),
        (f"{principal} a symptom or finding", f"c.kind = '{icd.Kind.SYMPTOM}'", not settings.include_symptoms),
        (f"{principal} a factor, not a disease", f"c.kind = '{icd.Kind.FACTOR}'", not settings.include_symptoms),
        (f"{principal} an external cause", f"c.kind = '{icd.Kind.EXTERNAL}'", not settings.include_symptoms),
        ("title says other or unspecified", "c.vague", not settings.include_unspecified),
        ("planned admission", f"s.kind IN ({planned})", not settings.include_elective),
        ("principal code was already coded at an earlier admission", "s.hadm_id IN (FROM recurrent)", first_only),
    ]
    reasons = " ".join(f"WHEN {test} THEN '{reason}'" for reason, test, applies in rules if applies)
    connection.execute(
        """
        CREATE TABLE recurrent AS
        SELECT DISTINCT s.hadm_id FROM stays s
        JOIN diagnoses d ON d.subject_id = s.subject_id AND d.code = s.code AND d.version = s.version
        JOIN stays earlier ON earlier.hadm_id = d.hadm_id AND earlier.admittime < s.admittime
        """
    )
    connection.execute(
        f"""
        CREATE TABLE judged AS
        SELECT s.*, c.title, coalesce(c.chapter, '{icd.UNKNOWN.name}') AS chapter, CASE {reasons} END AS reason
        FROM stays s LEFT JOIN codes c USING (code, version)
        """
    )


_Sizes = dict[str, tuple[int, int]]
"""By chapter: eligible admissions and their patients."""


def _draw(connection: DuckDBPyConnection, settings: MimicSettings) -> tuple[list[tuple[int, int]], _Sizes]:
    """Draw (subject, admission) from the chapters in turn, the rarest first, up to the limit."""
    order = f"sha256('{int(settings.seed)}:' || subject_id || ':' || hadm_id)"
    eligible: dict[str, deque[tuple[int, int]]] = {}
    for name, subject, hadm in connection.execute(
        f"SELECT chapter, subject_id, hadm_id FROM judged WHERE reason IS NULL ORDER BY chapter, {order}"
    ).fetchall():
        eligible.setdefault(name, deque()).append((subject, hadm))
    sizes = {name: (len(rows), len({subject for subject, _ in rows})) for name, rows in eligible.items()}
    return list(islice(_in_turn(eligible), settings.limit)), sizes


def _in_turn(eligible: dict[str, deque[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """One admission from each chapter in turn, one per patient.

    A smaller limit gives the beginning of what a larger one gives, so a data set can be enlarged later.
    """
    taken: set[int] = set()
    chapters = sorted(eligible, key=lambda name: (len(eligible[name]), name))
    while chapters:
        for name in list(chapters):
            rows = eligible[name]
            while rows and rows[0][0] in taken:
                rows.popleft()
            if not rows:
                chapters.remove(name)
                continue
            taken.add(rows[0][0])
            yield rows.popleft()


def _admissions(connection: DuckDBPyConnection, salt: str, drawn: list[tuple[int, int]]) -> tuple[Admission, ...]:
    found = connection.execute(
        "SELECT subject_id, hadm_id, code, version, title, chapter FROM judged "
        "WHERE hadm_id IN (SELECT unnest($hadm::BIGINT[]))",
        {"hadm": [hadm for _, hadm in drawn]},
    ).fetchall()
    rows = {(subject, hadm): rest for subject, hadm, *rest in found}
    return tuple(Admission(*stay, case_key(salt, *stay), *rows[stay]) for stay in drawn)


def _coverage(connection: DuckDBPyConnection, admissions: tuple[Admission, ...], sizes: _Sizes) -> Coverage:
    available = connection.execute("SELECT chapter, count(*) FROM judged GROUP BY chapter ORDER BY chapter").fetchall()
    excluded = connection.execute(
        "SELECT reason, count(*) FROM judged WHERE reason IS NOT NULL GROUP BY reason ORDER BY count(*) DESC, reason"
    ).fetchall()
    of_chosen_patients = connection.execute(
        "SELECT count(*) FROM judged WHERE reason IS NULL AND subject_id IN (SELECT unnest($taken::BIGINT[]))",
        {"taken": [one.subject_id for one in admissions]},
    ).fetchall()[0][0]
    eligible = sum(size for size, _ in sizes.values())
    rest = [(OTHER_STAY, of_chosen_patients - len(admissions)), (BEYOND_LIMIT, eligible - of_chosen_patients)]
    total, patients = connection.execute("SELECT count(*), count(DISTINCT subject_id) FROM judged").fetchall()[0]
    chosen = Counter(one.chapter for one in admissions)
    chapters = tuple(ChapterCount(name, count, *sizes.get(name, (0, 0)), chosen[name]) for name, count in available)
    return Coverage(total, patients, chapters, (*excluded, *(row for row in rest if row[1])))


def case_key(salt: str, subject_id: int, hadm_id: int) -> str:
    """The key of an admission: the same for the same salt, and meaningless without it."""
    return hmac.new(salt.encode(), f"mimic:{subject_id}:{hadm_id}".encode(), hashlib.sha256).hexdigest()[:32]


def load_salt(path: Path) -> str:
    """The salt in a file that only its owner can read; a random one is made if there is no file."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        if not path.exists():
            # Written in full under another name, then linked: two processes that start together read the same salt.
            with open(draft, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(secrets.token_hex(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        draft.unlink(missing_ok=True)
    salt = path.read_text(encoding="ascii", errors="replace").strip()
    if len(salt) < 16:
        raise InputError(f"{path}: contains no salt; remove the file (cases made with it will then be made again)")
    return salt
