"""What was known about each patient in the first hours; each table is read once for all chosen admissions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentclinic.cases.model import HistorySource
from agentclinic.errors import InputError
from agentclinic.generate.mimic import icd, results, story, tables
from agentclinic.generate.mimic.choose import Admission, Chosen, titles_table
from agentclinic.generate.mimic.classify import data_class
from agentclinic.generate.mimic.tables import Folder, Table, fill_cache, opened, run
from agentclinic.generate.settings import MimicSettings
from agentclinic.generate.source import SourceCase, Truth
from agentclinic.privacy import DataClass
from agentclinic.vocabulary.disease_names import Names

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Tables worth caching: those with many rows per patient, or much text.
_SMALL = (tables.PATIENTS, tables.ADMISSIONS, tables.TITLES, tables.LAB_ITEMS)
_CACHED = tuple(table for table in tables.READ if table not in _SMALL)
# Admissions held in memory at a time: a few hundred rows each, so about ten megabytes.
_BATCH = 128
# An older weight or blood pressure says little about the patient now.
_BODY_DAYS = 365
# A history, not a register: a patient with many stays has a hundred codes or more. Those coded most often are kept.
_PAST_LIMIT = 25
# The table of patients gives 91 for every age over 89.
_OVER_89 = 90
# No one is known to have lived longer; a greater age means a damaged or wrong table.
_OLDEST = 122

# How patients arrived, in our words. Places that reveal why (a procedure site, a recovery room) are left out.
_LOCATIONS = {
    "EMERGENCY ROOM": "came through the emergency department",
    "PHYSICIAN REFERRAL": "was sent by a physician",
    "CLINIC REFERRAL": "was sent from a clinic",
    "WALK-IN/SELF REFERRAL": "came unreferred",
    "TRANSFER FROM HOSPITAL": "was transferred from another hospital",
    "TRANSFER FROM SKILLED NURSING FACILITY": "came from a nursing facility",
}
_TRANSPORTS = {"AMBULANCE": "by ambulance", "WALK IN": "on foot", "HELICOPTER": "by helicopter"}


def source_cases(
    settings: MimicSettings, chosen: Chosen, *, tell: Callable[[str], None] = lambda _: None
) -> Generator[SourceCase, None, None]:
    """The context of each chosen admission, in the order chosen; the tables are read when the first one is needed.

    `tell` is called with a line before each table, which can take minutes. Closing the generator early removes what
    was read.
    """
    if not chosen.admissions:
        return
    folder = Folder(settings.base, settings.cache)
    source_class = data_class(settings.base)
    with opened(settings.memory_limit, settings.threads, settings.cache) as connection:
        fill_cache(connection, folder, _CACHED, tell)
        _collect(connection, folder, settings, chosen, tell)
        for start in range(0, len(chosen.admissions), _BATCH):
            batch = chosen.admissions[start : start + _BATCH]
            stays = _stays(connection, start, start + len(batch))
            for place, admission in enumerate(batch, start):
                yield _case(admission, stays[place], source_class)


def _collect(
    connection: DuckDBPyConnection, folder: Folder, settings: MimicSettings, chosen: Chosen, tell: Callable[[str], None]
) -> None:
    """Copy what belongs to the chosen admissions into our own tables, one pass per table."""
    connection.execute(
        "CREATE TABLE wanted AS SELECT unnest($place::INTEGER[]) AS place, unnest($subject::BIGINT[]) AS subject_id, "
        "unnest($hadm::BIGINT[]) AS hadm_id",
        {
            "place": list(range(len(chosen.admissions))),
            "subject": [one.subject_id for one in chosen.admissions],
            "hadm": [one.hadm_id for one in chosen.admissions],
        },
    )
    # DuckDB expects few rows in a compressed file and would hold all of it in memory to look the chosen ones up in it.
    # Without these two optimizers it joins as written: the file is streamed past what is to the right of JOIN.
    connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    for table, sql in _passes(folder, settings):
        if folder.file(table):
            tell(f"reading {table.path}")
        run(connection, folder, table, sql)


_HOURS = "round(date_diff('second', c.admittime, {time}) / 3600.0, 2)"
# Rows of the admission itself, or of the patient without an admission while this one was current; never another's.
_OWN = "(x.hadm_id = c.hadm_id OR (x.hadm_id IS NULL AND {time} <= coalesce(c.dischtime, {time})))"


def _passes(folder: Folder, settings: MimicSettings) -> Iterator[tuple[Table, str]]:
    """One statement per table, ordered so that each can use those before it."""
    source = folder.source
    yield (
        tables.ADMISSIONS,
        f"CREATE TABLE own AS SELECT a.* FROM {source(tables.ADMISSIONS)} a SEMI JOIN wanted USING (subject_id)",
    )
    sql = f"""
        CREATE TABLE chosen AS
        SELECT w.place, w.subject_id, w.hadm_id, a.admittime, a.dischtime, a.admission_location, p.gender,
               p.anchor_age, p.anchor_year,
               greatest(
                   a.admittime - to_seconds({settings.hours_before * 3600}),
                   coalesce((SELECT max(b.dischtime) FROM own b WHERE b.subject_id = w.subject_id
                             AND b.hadm_id <> w.hadm_id AND b.dischtime <= a.admittime), TIMESTAMP '0001-01-01')
               ) AS since,
               a.admittime + to_seconds({settings.hours * 3600}) AS until
        FROM wanted w JOIN own a USING (subject_id, hadm_id)
        LEFT JOIN (SELECT DISTINCT ON (subject_id) * FROM {source(tables.PATIENTS)}) p USING (subject_id)
    """
    yield tables.PATIENTS, sql
    yield tables.LAB_ITEMS, f"CREATE TABLE items AS SELECT DISTINCT ON (itemid) * FROM {source(tables.LAB_ITEMS)}"
    yield tables.TITLES, titles_table(folder)
    own, hours = _OWN.format(time="x.charttime"), _HOURS.format(time="x.charttime")
    sql = f"""
        CREATE TABLE labs AS
        SELECT c.place, x.charttime, x.labevent_id, x.itemid, {hours} AS hours, x.value, x.valuenum, x.valueuom,
               x.ref_range_lower, x.ref_range_upper, x.flag, x.comments
        FROM {source(tables.LABS)} x JOIN chosen c ON x.subject_id = c.subject_id
        WHERE x.charttime BETWEEN c.since AND c.until AND {own}
        ORDER BY c.place
    """
    yield tables.LABS, sql
    # A specimen with a date but no time counts if the whole day is within the hours read.
    day_own = _OWN.format(time="x.chartdate")
    sql = f"""
        CREATE TABLE cultures AS
        SELECT c.place, x.*, CASE WHEN x.charttime IS NOT NULL THEN {hours} END AS hours
        FROM {source(tables.CULTURES)} x JOIN chosen c ON x.subject_id = c.subject_id
        WHERE (x.charttime BETWEEN c.since AND c.until AND {own})
           OR (x.charttime IS NULL AND x.chartdate >= c.since AND x.chartdate + INTERVAL 1 DAY <= c.until AND {day_own})
        ORDER BY c.place
    """
    yield tables.CULTURES, sql
    sql = f"""
        CREATE TABLE body AS
        SELECT c.place, x.result_name, x.result_value, x.seq_num, x.chartdate,
               date_diff('day', x.chartdate, c.admittime) AS days
        FROM {source(tables.OMR)} x JOIN chosen c ON x.subject_id = c.subject_id
        WHERE date_diff('day', x.chartdate, c.admittime) BETWEEN 0 AND {_BODY_DAYS} AND x.result_value IS NOT NULL
          AND (x.result_name IN ('Height (Inches)', 'Weight (Lbs)', 'BMI (kg/m2)')
               OR x.result_name LIKE 'Blood Pressure%')
        ORDER BY c.place
    """
    yield tables.OMR, sql
    sql = f"""
        CREATE TABLE past AS
        SELECT c.place, b.hadm_id = c.hadm_id AS now, t.code, t.version, t.title,
               count(DISTINCT b.hadm_id) AS times, max(b.admittime) AS last, min(x.seq_num) AS rank
        FROM {source(tables.DIAGNOSES)} x
        JOIN chosen c ON x.subject_id = c.subject_id
        JOIN own b ON b.hadm_id = x.hadm_id AND b.subject_id = x.subject_id
                  AND (b.admittime < c.admittime OR b.hadm_id = c.hadm_id)
        JOIN titles t ON t.code = upper(trim(x.icd_code)) AND t.version = x.icd_version
        GROUP BY ALL ORDER BY c.place
    """
    yield tables.DIAGNOSES, sql
    sql = f"""
        CREATE TABLE arrivals AS
        SELECT c.place, x.stay_id, x.intime, x.arrival_transport, {_HOURS.format(time="x.intime")} AS hours
        FROM {source(tables.ED_STAYS)} x JOIN chosen c ON x.subject_id = c.subject_id AND x.hadm_id = c.hadm_id
    """
    yield tables.ED_STAYS, sql
    yield (
        tables.TRIAGE,
        f"CREATE TABLE triage AS SELECT s.place, s.intime, s.hours, x.* FROM {source(tables.TRIAGE)} x "
        "JOIN arrivals s ON x.stay_id = s.stay_id",
    )
    sql = f"""
        CREATE TABLE signs AS SELECT s.place, x.*, {hours} AS hours FROM {source(tables.ED_VITALS)} x
        JOIN arrivals s ON x.stay_id = s.stay_id JOIN chosen c ON c.place = s.place
        WHERE x.charttime <= c.until ORDER BY s.place
    """
    yield tables.ED_VITALS, sql
    yield (
        tables.ED_DRUGS,
        f"CREATE TABLE drugs AS SELECT DISTINCT s.place, x.name FROM {source(tables.ED_DRUGS)} x "
        "JOIN arrivals s ON x.stay_id = s.stay_id ORDER BY s.place",
    )
    sql = f"""
        CREATE TABLE notes AS SELECT c.place, x.note_id, x.note_seq, x.text FROM {source(tables.NOTES)} x
        JOIN chosen c ON x.subject_id = c.subject_id AND x.hadm_id = c.hadm_id ORDER BY c.place
    """
    yield tables.NOTES, sql


@dataclass
class _Stay:
    patient: tuple[Any, ...] = ()
    rows: defaultdict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))


# What is read back for each admission: its place, then the columns of the row types of `results`.
_READ_BACK = {
    "labs": "SELECT l.place, l.labevent_id, i.label, i.fluid, i.category, l.hours, l.value, l.valuenum, l.valueuom, "
    "l.ref_range_lower, l.ref_range_upper, l.flag, l.comments, l.charttime FROM labs l "
    "LEFT JOIN items i USING (itemid) WHERE {within} ORDER BY l.place, l.charttime, l.labevent_id",
    "cultures": "SELECT place, microevent_id, micro_specimen_id, hours, spec_type_desc, test_name, org_name, "
    "isolate_num, ab_name, interpretation, comments, coalesce(charttime, chartdate) FROM cultures "
    "WHERE {within} ORDER BY place, coalesce(charttime, chartdate), microevent_id",
    "body": "SELECT place, result_name, result_value, days, seq_num, chartdate FROM body WHERE {within} "
    "ORDER BY place, days, result_name, try_cast(seq_num AS INTEGER), result_value",
    "past": "SELECT place, code, version, title FROM past WHERE {within} AND NOT now "
    "ORDER BY place, times DESC, last DESC, version DESC, code",
    "coded": "SELECT place, code, version, title FROM past WHERE {within} AND now ORDER BY place, rank, code",
    "arrivals": "SELECT place, stay_id, arrival_transport, intime FROM arrivals WHERE {within} "
    "ORDER BY place, intime, stay_id",
    "triage": "SELECT place, 'triage', hours, temperature, heartrate, resprate, o2sat, sbp, dbp, pain, chiefcomplaint "
    "FROM triage WHERE {within} ORDER BY place, intime, stay_id",
    "signs": "SELECT place, 'vitalsign', hours, temperature, heartrate, resprate, o2sat, sbp, dbp, pain, charttime "
    "FROM signs WHERE {within} ORDER BY place, charttime, stay_id",
    "drugs": "SELECT place, name FROM drugs WHERE {within} ORDER BY place, name",
    "notes": "SELECT place, text, note_id FROM notes WHERE {within} "
    "ORDER BY place, try_cast(note_seq AS INTEGER), note_id",
}


def _stays(connection: DuckDBPyConnection, start: int, end: int) -> dict[int, _Stay]:
    within = f"place BETWEEN {start} AND {end - 1}"
    people = connection.execute(
        "SELECT place, gender, anchor_age, anchor_year, admittime, dischtime, admission_location "
        f"FROM chosen WHERE {within}"
    ).fetchall()
    stays = {place: _Stay(tuple(patient)) for place, *patient in people}
    for name, sql in _READ_BACK.items():
        for place, *row in connection.execute(sql.format(within=within)).fetchall():
            stays[place].rows[name].append(tuple(row))
    return stays


def _case(admission: Admission, stay: _Stay, source_class: DataClass) -> SourceCase:
    """One admission's context, without anything that names the diagnosis."""
    gender, anchor_age, anchor_year, admitted, _, location = stay.patient
    names = Names(admission.title, codes=(admission.code, icd.dotted(admission.code, admission.version)))

    def gives_away(text: str) -> bool:
        return any(names.find(text))

    past = _past(stay, admission, names)
    told, told_by = _story(stay, gives_away, past)
    drugs = story.drug_names((row[0] for row in stay.rows["drugs"]), gives_away)
    for row in stay.rows["notes"][:1]:
        drugs = drugs or story.note_drugs(row[0] or "", gives_away)
    signs = [results.VitalRow(*row[:-1]) for name in ("triage", "signs") for row in stay.rows[name]]
    return SourceCase(
        key=admission.key,
        source="mimic",
        data_class=source_class,
        truth=Truth(admission.title, admission.code, admission.version, admission.chapter),
        age=age(anchor_age, anchor_year, admitted),
        sex={"M": "Male", "F": "Female"}.get((gender or "").strip().upper(), ""),
        arrival=_arrival(location, [row[1] for row in stay.rows["arrivals"]]),
        history_source=told_by,
        story=told,
        past=past,
        coded=_coded(stay, admission),
        drugs=drugs,
        vitals=(*results.vitals(signs), *results.body(results.BodyRow(*row[:-1]) for row in stay.rows["body"])),
        labs=results.labs(results.LabRow(*row[:-1]) for row in stay.rows["labs"]),
        cultures=results.cultures(results.CultureRow(*row[:-1]) for row in stay.rows["cultures"]),
        identifiers=_identifiers(admission, stay),
    )


def age(anchor_age: int | None, anchor_year: int | None, admitted: datetime) -> int | None:
    """The age at admission; 90 for everyone over 89, None if unknown.

    Patients over 89 have an anchor age of 91 whatever their age, so their age at an earlier admission is unknown.
    """
    if anchor_age is None or anchor_year is None:
        return None
    years = admitted.year - anchor_year
    if not (0 <= anchor_age <= _OLDEST and 0 <= anchor_age + years <= _OLDEST):
        raise InputError(
            "hosp/patients: an anchor_age and its anchor_year give an impossible age; is the file complete? "
            "Compare its SHA-256"
        )
    if anchor_age >= _OVER_89:
        return _OVER_89 if years >= 0 else None
    return min(anchor_age + years, _OVER_89)


def _past(stay: _Stay, admission: Admission, names: Names) -> tuple[str, ...]:
    """Titles of earlier admissions' diagnoses, without external causes and without what names this diagnosis."""
    titles = [
        title
        for code, version, title in stay.rows["past"]
        if icd.chapter(code, version).kind is not icd.Kind.EXTERNAL
        # The same three-character category is the same disease at another stage or site.
        and (version != admission.version or code[:3] != admission.code[:3])
        and not any(not found.broad for found in names.find(title))
    ]
    return tuple(dict.fromkeys(titles))[:_PAST_LIMIT]


def _coded(stay: _Stay, admission: Admission) -> tuple[str, ...]:
    """Titles of the stay's other diagnoses, in the order of the codes."""
    others = (row[2] for row in stay.rows["coded"] if row[:2] != (admission.code, admission.version))
    return tuple(dict.fromkeys(others))[:_PAST_LIMIT]


def _story(stay: _Stay, gives_away: story.Gives, past: tuple[str, ...]) -> tuple[tuple[str, ...], HistorySource]:
    """The best source for the patient's story, and its kind."""
    for row in stay.rows["notes"]:
        told = story.note_story(row[0] or "", gives_away)
        if told:
            return told, "note"
    for row in stay.rows["triage"]:
        complaints = story.complaints(row[-1] or "", gives_away)
        if complaints:
            return complaints, "triage"
    return ((), "codes") if past else ((), "none")


def _arrival(location: str | None, transports: list[str | None]) -> str:
    came = _LOCATIONS.get((location or "").strip().upper(), "")
    known = (_TRANSPORTS.get((one or "").strip().upper()) for one in transports)
    how = next(filter(None, known), "")
    return f"{came or 'came'} {how}" if how else came


def _identifiers(admission: Admission, stay: _Stay) -> tuple[str, ...]:
    """What must not appear in a case: numbers of the patient and stays, and the date of every row."""
    numbers = [admission.subject_id, admission.hadm_id, *(row[0] for row in stay.rows["arrivals"])]
    notes = [row[1] for row in stay.rows["notes"] if row[1]]
    times = [time for time in stay.patient if isinstance(time, datetime)]
    for name in ("labs", "cultures", "body", "arrivals", "signs"):
        times += [row[-1] for row in stay.rows[name] if row[-1]]
    days = sorted({time.strftime("%Y-%m-%d") for time in times})
    return (*map(str, numbers), *notes, *days)
