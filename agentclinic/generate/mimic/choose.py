"""Choosing admissions: one for each patient, spread over the chapters of disease, the same for the same seed."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from agentclinic.errors import InputError
from agentclinic.generate.mimic import icd
from agentclinic.generate.mimic.options import MimicOptions
from agentclinic.generate.mimic.tables import ADMISSIONS, DIAGNOSES, PATIENTS, TITLES, Folder, fill_cache, opened, run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Planned stays: the patient came with the diagnosis.
_PLANNED = ("ELECTIVE", "SURGICAL SAME DAY ADMISSION")

OTHER_STAY = "another stay of the same patient was chosen"
BEYOND_LIMIT = "beyond the limit"


@dataclass(frozen=True)
class Admission:
    """A chosen admission and its principal diagnosis."""

    subject_id: int = field(repr=False)
    hadm_id: int = field(repr=False)
    key: str
    code: str
    version: int
    title: str
    chapter: str


class ChapterCount(NamedTuple):
    """What one chapter offers and gave."""

    chapter: str
    available: int
    """Admissions whose principal diagnosis is of this chapter."""
    eligible: int
    """Those that no rule excludes."""
    patients: int
    """The patients they belong to."""
    chosen: int


@dataclass(frozen=True)
class Coverage:
    """What was there, what was chosen, and why the rest was not."""

    admissions: int
    patients: int
    chapters: tuple[ChapterCount, ...]
    excluded: tuple[tuple[str, int], ...]
    """Reason and number of admissions, each counted under the first reason that applies."""

    @property
    def eligible(self) -> int:
        """Admissions that no rule excludes."""
        return sum(row.eligible for row in self.chapters)

    @property
    def chosen(self) -> int:
        """Admissions chosen."""
        return sum(row.chosen for row in self.chapters)

    def as_dict(self) -> dict[str, object]:
        """The report as it is written into a manifest."""
        return {
            "admissions": self.admissions,
            "patients": self.patients,
            "eligible": self.eligible,
            "chosen": self.chosen,
            "chapters": [row._asdict() for row in self.chapters],
            "excluded": dict(self.excluded),
        }

    def lines(self) -> list[str]:
        """The report for people to read."""
        width = max([7, *(len(row.chapter) for row in self.chapters)])
        table = [f"{'chapter':{width}}  available  eligible  patients  chosen"]
        table += [
            f"{row.chapter:{width}}  {row.available:9}  {row.eligible:8}  {row.patients:8}  {row.chosen:6}"
            for row in self.chapters
        ]
        table.append(f"{self.admissions} admissions of {self.patients} patients, {self.chosen} chosen. Not chosen:")
        return table + [f"{count:7}  {reason}" for reason, count in self.excluded]


@dataclass(frozen=True)
class Chosen:
    """The admissions cases are made from, in the order in which they were drawn."""

    admissions: tuple[Admission, ...]
    coverage: Coverage

    def without(self, keys: Collection[str]) -> Chosen:
        """The same choice less the admissions that are done; what was chosen stays as reported."""
        return replace(self, admissions=tuple(one for one in self.admissions if one.key not in keys))


def choose(options: MimicOptions, *, tell: Callable[[str], None] = lambda _: None) -> Chosen:
    """Choose admissions by the options' rules; equal options and tables give an equal choice.

    `tell` is given a line before anything that can take minutes.
    """
    folder = Folder(options.base_dir, options.cache_dir)
    with opened(options.memory_limit, options.threads, options.cache_dir) as connection:
        fill_cache(connection, folder, (DIAGNOSES,), tell)
        tell(f"reading {DIAGNOSES.path}")
        _read(connection, folder)
        _judge_codes(connection, options)
        _judge_stays(connection, options)
        return _chosen(connection, options)


def _read(connection: DuckDBPyConnection, folder: Folder) -> None:
    """The admissions with their principal diagnosis, and all diagnoses, in tables of our own."""
    run(
        connection,
        folder,
        DIAGNOSES,
        "CREATE TABLE diagnoses AS SELECT subject_id, hadm_id, seq_num, upper(trim(icd_code)) AS code, "
        f"icd_version AS version FROM {folder.source(DIAGNOSES)} WHERE icd_code IS NOT NULL",
    )
    run(
        connection,
        folder,
        TITLES,
        "CREATE TABLE titles AS SELECT upper(trim(icd_code)) AS code, icd_version AS version, "
        f"min(trim(long_title)) AS title FROM {folder.source(TITLES)} GROUP BY ALL",
    )
    run(connection, folder, PATIENTS, f"CREATE TABLE patients AS SELECT subject_id FROM {folder.source(PATIENTS)}")
    run(
        connection,
        folder,
        ADMISSIONS,
        f"""
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
        """,
    )


def _judge_codes(connection: DuckDBPyConnection, options: MimicOptions) -> None:
    """What each principal code is: chapter, kind, whether its title is vague, whether it is a target."""
    wanted = _targets(connection, options)
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


def _targets(connection: DuckDBPyConnection, options: MimicOptions) -> Callable[[str, int, str], bool]:
    """Whether a code is wanted; a target that no code or title answers to is an error."""
    if options.mode != "targets":
        return lambda _code, _version, _title: True
    tests = [(target, _target(target)) for target in options.targets]
    missing = {target for target, _ in tests}
    for code, version, title in connection.execute("SELECT code, version, title FROM titles").fetchall():
        missing -= {target for target in missing if _target(target)(code, version, title or "")}
        if not missing:
            break
    if missing:
        raise InputError(
            f"target {', '.join(sorted(missing))}: no code begins with it and no title has its words; "
            "give codes (I21, 9:410) or words of titles as d_icd_diagnoses has them"
        )
    return lambda code, version, title: any(test(code, version, title) for _, test in tests)


_CODE = re.compile(r"(?:(9|10):)?([A-Z]?\d[\dA-Z]*(?:\.[\dA-Z]*)?)", re.IGNORECASE)


def _target(target: str) -> Callable[[str, int, str], bool]:
    """What a target means: the beginning of a code, of one version where it says so, or words that a title has."""
    as_code = _CODE.fullmatch(target.strip())
    if as_code:
        only = int(as_code[1]) if as_code[1] else None
        start = as_code[2].replace(".", "").upper()
        return lambda code, version, _title: only in (None, version) and code.startswith(start)
    words = [re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE) for word in target.split()]
    return lambda _code, _version, title: bool(words) and all(word.search(title) for word in words)


def _judge_stays(connection: DuckDBPyConnection, options: MimicOptions) -> None:
    """Give each admission the first reason against it, or none."""
    kinds = {icd.Kind.SYMPTOM: "a symptom or finding", icd.Kind.FACTOR: "a factor, no disease"}
    kinds[icd.Kind.EXTERNAL] = "an external cause"
    rules = [
        ("no principal diagnosis", "s.code IS NULL"),
        ("no time of admission", "s.admittime IS NULL"),
        ("patient not in the table of patients", "s.subject_id NOT IN (SELECT subject_id FROM patients)"),
        ("principal code without a title", "c.title IS NULL"),
        ("principal code of no chapter", f"c.kind = '{icd.Kind.UNKNOWN}'"),
    ]
    if options.mode == "targets":
        rules.append(("not a target", "NOT c.wanted"))
    if options.mode == "single":
        rules.append(("more than one diagnosis", "s.number > 1"))
    if not options.include_symptoms:
        rules += [(f"principal diagnosis is {words}", f"c.kind = '{kind}'") for kind, words in kinds.items()]
    if not options.include_unspecified:
        rules.append(("title says other or unspecified", "c.vague"))
    if not options.include_elective:
        listed = ", ".join(f"'{kind}'" for kind in _PLANNED)
        rules.append(("planned admission", f"s.kind IN ({listed})"))
    if not options.include_recurrent:
        rules.append(("principal code was already coded at an earlier admission", "s.hadm_id IN (FROM recurrent)"))
    reasons = " ".join(f"WHEN {test} THEN '{reason}'" for reason, test in rules)
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


def _chosen(connection: DuckDBPyConnection, options: MimicOptions) -> Chosen:
    """Draw from the chapters in turn, the rarest first, until the limit is reached or nothing is left."""
    order = f"sha256('{int(options.seed)}:' || subject_id || ':' || hadm_id)"
    eligible: dict[str, deque[tuple[int, int]]] = {}
    for name, subject, hadm in connection.execute(
        f"SELECT chapter, subject_id, hadm_id FROM judged WHERE reason IS NULL ORDER BY chapter, {order}"
    ).fetchall():
        eligible.setdefault(name, deque()).append((subject, hadm))
    sizes = {name: (len(rows), len({subject for subject, _ in rows})) for name, rows in eligible.items()}
    drawn: list[tuple[int, int]] = []
    taken: set[int] = set()
    for subject, hadm in _in_turn(eligible, taken):
        if len(drawn) == options.limit:
            break
        taken.add(subject)
        drawn.append((subject, hadm))
    admissions = _admissions(connection, options, drawn)
    return Chosen(admissions, _coverage(connection, admissions, sizes, taken))


def _in_turn(eligible: dict[str, deque[tuple[int, int]]], taken: set[int]) -> Iterator[tuple[int, int]]:
    """One admission of each chapter after the other; whoever takes one says so in `taken`.

    A smaller limit gives the beginning of what a larger one gives, so a data set can be enlarged later.
    """
    chapters = sorted(eligible, key=lambda name: (len(eligible[name]), name))
    while chapters:
        for name in list(chapters):
            rows = eligible[name]
            while rows and rows[0][0] in taken:
                rows.popleft()
            if not rows:
                chapters.remove(name)
                continue
            yield rows.popleft()


def _admissions(
    connection: DuckDBPyConnection, options: MimicOptions, drawn: list[tuple[int, int]]
) -> tuple[Admission, ...]:
    found = connection.execute(
        "SELECT subject_id, hadm_id, code, version, title, chapter FROM judged "
        "WHERE hadm_id IN (SELECT unnest($hadm::BIGINT[]))",
        {"hadm": [hadm for _, hadm in drawn]},
    ).fetchall()
    rows = {
        (subject, hadm): Admission(subject, hadm, options.key(subject, hadm), code, version, title, chapter)
        for subject, hadm, code, version, title, chapter in found
    }
    return tuple(rows[stay] for stay in drawn)


def _coverage(
    connection: DuckDBPyConnection,
    admissions: tuple[Admission, ...],
    sizes: dict[str, tuple[int, int]],
    taken: set[int],
) -> Coverage:
    available = connection.execute("SELECT chapter, count(*) FROM judged GROUP BY chapter ORDER BY chapter").fetchall()
    excluded = connection.execute(
        "SELECT reason, count(*) FROM judged WHERE reason IS NOT NULL GROUP BY reason ORDER BY count(*) DESC, reason"
    ).fetchall()
    left_patients = connection.execute(
        "SELECT count(*) FROM judged WHERE reason IS NULL AND subject_id IN (SELECT unnest($taken::BIGINT[]))",
        {"taken": sorted(taken)},
    ).fetchall()[0][0]
    eligible = sum(size for size, _ in sizes.values())
    rest = [(OTHER_STAY, left_patients - len(admissions)), (BEYOND_LIMIT, eligible - left_patients)]
    total, patients = connection.execute("SELECT count(*), count(DISTINCT subject_id) FROM judged").fetchall()[0]
    chosen = Counter(one.chapter for one in admissions)
    chapters = tuple(ChapterCount(name, count, *sizes.get(name, (0, 0)), chosen[name]) for name, count in available)
    return Coverage(total, patients, chapters, (*excluded, *(row for row in rest if row[1])))
