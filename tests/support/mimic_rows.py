"""A small folder in MIMIC-IV's layout with invented patients: rows that a test adds one by one, or a ready ward."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agentclinic.generate.mimic.classify import RESERVED_FROM, mark_synthetic
from agentclinic.generate.settings import MimicSettings

SALT = "salt of the tests"

COLUMNS = {
    "hosp/patients": "subject_id gender anchor_age anchor_year anchor_year_group dod",
    "hosp/admissions": "subject_id hadm_id admittime dischtime deathtime admission_type admit_provider_id "
    "admission_location discharge_location insurance language marital_status race edregtime edouttime "
    "hospital_expire_flag",
    "hosp/diagnoses_icd": "subject_id hadm_id seq_num icd_code icd_version",
    "hosp/d_icd_diagnoses": "icd_code icd_version long_title",
    "hosp/labevents": "labevent_id subject_id hadm_id specimen_id itemid order_provider_id charttime storetime value "
    "valuenum valueuom ref_range_lower ref_range_upper flag priority comments",
    "hosp/d_labitems": "itemid label fluid category",
    "hosp/microbiologyevents": "microevent_id subject_id hadm_id micro_specimen_id order_provider_id chartdate "
    "charttime spec_itemid spec_type_desc test_seq storedate storetime test_itemid test_name org_itemid org_name "
    "isolate_num quantity ab_itemid ab_name dilution_text dilution_comparison dilution_value interpretation comments",
    "hosp/omr": "subject_id chartdate seq_num result_name result_value",
    "ed/edstays": "subject_id hadm_id stay_id intime outtime gender race arrival_transport disposition",
    "ed/triage": "subject_id stay_id temperature heartrate resprate o2sat sbp dbp pain acuity chiefcomplaint",
    "ed/vitalsign": "subject_id stay_id charttime temperature heartrate resprate o2sat sbp dbp rhythm pain",
    "ed/medrecon": "subject_id stay_id charttime name gsn ndc etc_rn etccode etcdescription",
    "note/discharge": "note_id subject_id hadm_id note_type note_seq charttime storetime text",
}
"""The tables we read and their columns as MIMIC-IV 2.2 and 3.1, MIMIC-IV-ED 2.2 and MIMIC-IV-Note 2.2 publish them."""

TITLES = {
    ("I214", 10): "Non-ST elevation (NSTEMI) myocardial infarction",
    ("K8510", 10): "Biliary acute pancreatitis without necrosis or infection",
    ("J189", 10): "Pneumonia, unspecified organism",
    ("R079", 10): "Chest pain, unspecified",
    ("Z5111", 10): "Encounter for antineoplastic chemotherapy",
    ("E1110", 10): "Type 2 diabetes mellitus with ketoacidosis without coma",
    ("I10", 10): "Essential (primary) hypertension",
    ("N10", 10): "Acute pyelonephritis",
    ("A4151", 10): "Sepsis due to Escherichia coli [E. coli]",
    ("41071", 9): "Subendocardial infarction, initial episode of care",
    ("5770", 9): "Acute pancreatitis",
    ("4019", 9): "Unspecified essential hypertension",
    ("E8859", 9): "Fall from other slipping, tripping, or stumbling",
    ("V5811", 9): "Encounter for antineoplastic chemotherapy",
    ("78650", 9): "Chest pain, unspecified",
    (
        "25000",
        9,
    ): "Diabetes mellitus without mention of complication, type II or unspecified type",
    ("3004", 9): "Dysthymic disorder",
    ("3004", 10): "A title of the other version, invented to show that a code alone does not say what is meant",
    ("G40901", 10): "Epilepsy, unspecified, not intractable, with status epilepticus",
    ("D62", 10): "Acute posthemorrhagic anemia",
    ("S72001A", 10): "Fracture of unspecified part of neck of right femur, initial encounter for closed fracture",
    ("L03115", 10): "Cellulitis of right lower limb",
}

ITEMS = {
    50912: ("Creatinine", "Blood", "Chemistry"),
    50956: ("Lipase", "Blood", "Chemistry"),
    51003: ("Troponin T", "Blood", "Chemistry"),
    51301: ("White Blood Cells", "Blood", "Hematology"),
    51222: ("Hemoglobin", "Blood", "Hematology"),
    50813: ("Lactate", "Blood", "Blood Gas"),
    50931: ("Glucose", "Blood", "Chemistry"),
    51466: ("Blood", "Urine", "Hematology"),
    50887: ("Blue Top Hold", "Blood", "Chemistry"),
}


def settings(folder: Path, limit: int | None = None, **changes: Any) -> MimicSettings:
    """Settings that read the tables of a folder."""
    return MimicSettings.model_validate({"base_dataset_dir": str(folder), "limit": limit, **changes})


def text_of(when: datetime | None) -> str:
    """A time as the tables write it."""
    return "" if when is None else when.strftime("%Y-%m-%d %H:%M:%S")


@dataclass
class Stay:
    """An invented admission that rows can be added to."""

    ward: Ward
    subject: int
    hadm: int
    admitted: datetime
    ed_stay: int | None = None

    def lab(
        self,
        item: int,
        value: str,
        *,
        hours: float = 1,
        unit: str = "mg/dL",
        low: str = "",
        high: str = "",
        flag: str = "",
        hadm: int | str | None = None,
        number: str | None = None,
        comments: str = "",
    ) -> int:
        """A lab row `hours` after admission; `hadm=""` leaves the admission out. Returns the labevent_id."""
        row = self.ward.next("labevent_id", 1)
        if number is None:
            number = value if value.replace(".", "", 1).isdigit() else ""
        when = text_of(self.admitted + timedelta(hours=hours))
        hadm = self.hadm if hadm is None else hadm
        self.ward.row(
            "hosp/labevents",
            labevent_id=row,
            subject_id=self.subject,
            hadm_id=hadm,
            specimen_id=row + 5000,
            itemid=item,
            charttime=when,
            storetime=when,
            value=value,
            valuenum=number,
            valueuom=unit,
            ref_range_lower=low,
            ref_range_upper=high,
            flag=flag,
            priority="STAT",
            comments=comments,
        )
        return row

    def culture(
        self,
        specimen: str = "BLOOD CULTURE",
        test: str = "Blood Culture, Routine",
        *,
        organism: str = "",
        sensitivities: Sequence[tuple[str, str]] = (),
        comments: str = "",
        hours: float | None = 1,
        hadm: int | str | None = None,
        specimen_id: int | None = None,
    ) -> list[int]:
        """A specimen's rows: one, or one for each antibiotic. Returns the microevent_ids."""
        specimen_id = specimen_id or self.ward.next("micro_specimen_id", 7000)
        when = None if hours is None else self.admitted + timedelta(hours=hours)
        rows = []
        for drug, verdict in sensitivities or [("", "")]:
            row = self.ward.next("microevent_id", 1)
            rows.append(row)
            self.ward.row(
                "hosp/microbiologyevents",
                microevent_id=row,
                subject_id=self.subject,
                hadm_id=self.hadm if hadm is None else hadm,
                micro_specimen_id=specimen_id,
                chartdate=text_of((when or self.admitted).replace(hour=0, minute=0, second=0)),
                charttime=text_of(when),
                spec_itemid=70012,
                spec_type_desc=specimen,
                test_seq=1,
                test_itemid=90201,
                test_name=test,
                org_itemid=80002 if organism else "",
                org_name=organism,
                isolate_num=1 if organism else "",
                ab_itemid=90004 if drug else "",
                ab_name=drug,
                interpretation=verdict,
                comments=comments,
            )
        return rows

    def triage(self, complaint: str, *, transport: str = "AMBULANCE", **vitals: str) -> int:
        """An emergency department stay before the admission, with its triage row. Returns the stay_id."""
        stay = self.ed_stay = self.ward.next("stay_id", RESERVED_FROM + 3_000_000)
        self.ward.row(
            "ed/edstays",
            subject_id=self.subject,
            hadm_id=self.hadm,
            stay_id=stay,
            intime=text_of(self.admitted - timedelta(hours=4)),
            outtime=text_of(self.admitted),
            arrival_transport=transport,
            disposition="ADMITTED",
        )
        self.ward.row("ed/triage", subject_id=self.subject, stay_id=stay, chiefcomplaint=complaint, **vitals)
        return stay

    def vitals(self, *, hours: float = -3, **values: str) -> None:
        """A row of vital signs in the emergency department; call `triage` first."""
        when = text_of(self.admitted + timedelta(hours=hours))
        self.ward.row("ed/vitalsign", subject_id=self.subject, stay_id=self.ed_stay, charttime=when, **values)

    def home_drug(self, name: str) -> None:
        """A drug that the patient takes at home; call `triage` first."""
        when = text_of(self.admitted - timedelta(hours=3))
        self.ward.row("ed/medrecon", subject_id=self.subject, stay_id=self.ed_stay, charttime=when, name=name)

    def note(self, text: str) -> None:
        """The discharge note."""
        self.ward.row(
            "note/discharge",
            note_id=f"{self.subject}-DS-1",
            subject_id=self.subject,
            hadm_id=self.hadm,
            note_type="DS",
            note_seq=1,
            charttime=text_of(self.admitted + timedelta(days=5)),
            text=text,
        )


@dataclass
class Ward:
    """Rows by table, to be written as a folder."""

    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def next(self, name: str, start: int) -> int:
        """The next number of a kind."""
        self.counters[name] = self.counters.get(name, start - 1) + 1
        return self.counters[name]

    def row(self, table: str, **values: object) -> None:
        """Add a row; an unknown column is an error in the test."""
        unknown = set(values) - set(COLUMNS[table].split())
        assert not unknown, f"{table} has no {unknown}"
        self.rows.setdefault(table, []).append(values)

    def patient(self, *, sex: str = "F", age: int = 60, year: int = 2150, subject: int | None = None) -> int:
        """A patient with an anchor age. Returns the subject_id."""
        subject = subject or self.next("subject_id", RESERVED_FROM)
        self.row(
            "hosp/patients",
            subject_id=subject,
            gender=sex,
            anchor_age=age,
            anchor_year=year,
            anchor_year_group="2014 - 2016",
        )
        return subject

    def stay(
        self,
        subject: int,
        *codes: tuple[str, int],
        admitted: str = "2150-03-04 10:00:00",
        days: float = 4,
        kind: str = "EW EMER.",
        location: str = "EMERGENCY ROOM",
    ) -> Stay:
        """An admission with its diagnoses in order of seq_num."""
        hadm = self.next("hadm_id", RESERVED_FROM + 20_000_000)
        start = datetime.fromisoformat(admitted)
        self.row(
            "hosp/admissions",
            subject_id=subject,
            hadm_id=hadm,
            admittime=admitted,
            dischtime=text_of(start + timedelta(days=days)),
            admission_type=kind,
            admission_location=location,
            hospital_expire_flag=0,
        )
        for place, (code, version) in enumerate(codes, start=1):
            self.row(
                "hosp/diagnoses_icd",
                subject_id=subject,
                hadm_id=hadm,
                seq_num=place,
                icd_code=code,
                icd_version=version,
            )
        return Stay(self, subject, hadm, start)

    def measured(self, subject: int, date: str, name: str, value: str) -> None:
        """An outpatient measurement (table omr)."""
        self.row("hosp/omr", subject_id=subject, chartdate=date, seq_num=1, result_name=name, result_value=value)

    def write(
        self,
        folder: Path,
        *,
        gz: bool = True,
        synthetic: bool = True,
        without_tables: Sequence[str] = (),
        without_columns: Sequence[str] = (),
        reverse: bool = False,
    ) -> Path:
        """Write the folder; `without_columns` as "hosp/labevents.comments"; `reverse` reverses the rows."""
        if not self.rows.get("hosp/d_icd_diagnoses"):
            for (code, version), title in TITLES.items():
                self.row("hosp/d_icd_diagnoses", icd_code=code, icd_version=version, long_title=title)
            for item, (label, fluid, category) in ITEMS.items():
                self.row("hosp/d_labitems", itemid=item, label=label, fluid=fluid, category=category)
        for table, names in COLUMNS.items():
            rows = self.rows.get(table, [])
            if table in without_tables or (not rows and not table.startswith("hosp/")):
                continue
            dropped = {name.partition(".")[2] for name in without_columns if name.partition(".")[0] == table}
            columns = [name for name in names.split() if name not in dropped]
            write_table(folder / table, columns, reversed(rows) if reverse else rows, gz=gz)
        if synthetic:
            mark_synthetic(folder)
        return folder


def write_table(path: Path, columns: Sequence[str], rows: object, *, gz: bool) -> None:
    """Write one table as published: quotes only if needed, an empty field for a missing value."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.getvalue().encode()
    if gz:
        path.with_name(path.name + ".csv.gz").write_bytes(gzip.compress(content, mtime=0))
    else:
        path.with_name(path.name + ".csv").write_bytes(content)


NOTE = """
Name:  ___                     Unit No:   ___

Sex:   F

Chief Complaint:
Abdominal pain

Major Surgical or Invasive Procedure:
ERCP

History of Present Illness:
Ms. ___ is a ___ year old woman who came with two days of
epigastric pain after a heavy meal. The pain goes through to the back. She vomited twice.
She was told at ___ that she has gallstones.
In the ED, initial vitals were 99.1 110 92/60. CT showed biliary acute pancreatitis.

Past Medical History:
Hypertension
Cholelithiasis

Social History:
___

Family History:
Mother with gallstones.

Physical Exam:
ADMISSION: tender epigastrium.

Pertinent Results:
Lipase 2400

Brief Hospital Course:
# Biliary pancreatitis: treated with fluids, ERCP.

Medications on Admission:
1. Lisinopril 10 mg PO DAILY
2. Omeprazole 20 mg PO DAILY

Discharge Medications:
1. Oxycodone 5 mg PO Q6H

Discharge Disposition:
Home

Discharge Diagnosis:
Biliary acute pancreatitis

Discharge Instructions:
You came with pancreatitis.
"""


def ward() -> Ward:
    """Six invented patients: one with a note, one with triage words, one with an earlier stay, three with less."""
    made = Ward()
    note = made.stay(made.patient(sex="F", age=54), ("K8510", 10), ("I10", 10))
    note.lab(50956, "2400", unit="IU/L", low="0", high="60", flag="abnormal")
    note.lab(51301, "14.2", unit="K/uL", low="4.0", high="10.0", flag="abnormal", hours=-2, hadm="")
    note.lab(50912, "1.1", low="0.4", high="1.1")
    note.note(NOTE)

    heart = made.stay(made.patient(sex="M", age=67), ("I214", 10), ("I10", 10))
    heart.triage(
        "Chest pain, Dyspnea", temperature="98.2", heartrate="96", resprate="18", o2sat="95", sbp="150", dbp="88"
    )
    heart.vitals(hours=-2, temperature="98.4", heartrate="90", resprate="17", o2sat="97", sbp="141", dbp="80")
    heart.home_drug("aspirin")
    heart.lab(51003, "0.42", unit="ng/mL", low="0.0", high="0.01", flag="abnormal")
    heart.lab(51003, "0.77", unit="ng/mL", low="0.0", high="0.01", flag="abnormal", hours=7)
    heart.lab(51222, "13.9", unit="g/dL", low="13.7", high="17.5")

    kidney = made.patient(sex="F", age=71)
    made.stay(kidney, ("25000", 9), ("4019", 9), admitted="2149-01-02 08:00:00")
    later = made.stay(kidney, ("N10", 10), ("I10", 10))
    later.lab(51301, "17.8", unit="K/uL", low="4.0", high="10.0", flag="abnormal")
    later.lab(50813, "2.9", unit="mmol/L", low="0.5", high="2.0", flag="abnormal")
    later.culture(
        "URINE",
        "URINE CULTURE",
        organism="ESCHERICHIA COLI",
        sensitivities=[("CIPROFLOXACIN", "S"), ("AMPICILLIN", "R")],
        comments="Cefazolin interpretative criteria. REPORTED TO ___.",
    )
    later.culture(comments="NO GROWTH.")
    made.measured(kidney, "2150-02-01", "Weight (Lbs)", "151")
    made.measured(kidney, "2149-12-01", "Weight (Lbs)", "149")
    made.measured(kidney, "2150-02-01", "Blood Pressure", "132/74")

    skin = made.stay(made.patient(sex="M", age=45), ("L03115", 10))
    skin.lab(51301, "12.6", unit="K/uL", low="4.0", high="10.0", flag="abnormal")
    pancreas = made.stay(made.patient(sex="M", age=38), ("5770", 9), ("3004", 9))
    pancreas.lab(50956, "1180", unit="IU/L", low="0", high="60", flag="abnormal")
    sugar = made.stay(made.patient(sex="M", age=91, year=2150), ("E1110", 10))
    sugar.lab(50931, "512", low="70", high="105", flag="abnormal")
    return made
