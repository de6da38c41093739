"""The data class of a folder: open only if that can be shown, credentialed whenever in doubt."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from helpers import PUBLIC
from mimic_rows import SALT, Ward, settings, ward

from agentclinic.errors import InputError
from agentclinic.generate.mimic import choose, data_class, source_cases
from agentclinic.generate.mimic.classify import DEMO_LIST, MARKER, mark_synthetic
from agentclinic.privacy import DataClass

DEMO = PUBLIC / "mimic-iv-demo"
needs_demo = pytest.mark.skipif(not DEMO.is_dir(), reason="the MIMIC-IV demo is not at ../shared/data/mimic-iv-demo")


def test_invented_tables_are_synthetic_and_so_is_every_case(tmp_path: Path) -> None:
    folder = ward().write(tmp_path)
    assert data_class(folder) is DataClass.SYNTHETIC
    assert data_class(folder / "hosp") is DataClass.SYNTHETIC
    cases = source_cases(settings(folder), choose(settings(folder), SALT))
    assert {case.data_class for case in cases} == {DataClass.SYNTHETIC}


def test_an_unmarked_folder_is_credentialed(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    assert data_class(folder) is DataClass.CREDENTIALED
    cases = source_cases(settings(folder), choose(settings(folder), SALT))
    assert {case.data_class for case in cases} == {DataClass.CREDENTIALED}


@pytest.mark.parametrize(
    "change", ["a table changed", "a table added", "a table gone", "an empty marker", "no JSON", "deep"]
)
def test_a_marker_is_valid_only_for_the_tables_it_was_written_for(tmp_path: Path, change: str) -> None:
    folder = ward().write(tmp_path)
    marker = folder / MARKER
    if change == "a table changed":
        path = folder / "hosp/omr.csv.gz"
        path.write_bytes(
            gzip.compress(gzip.decompress(path.read_bytes()) + b"900000001,2150-01-01,1,Weight (Lbs),150\n")
        )
    elif change == "a table added":
        del (listed := json.loads(marker.read_text()))["tables"]["note/discharge"]
        marker.write_text(json.dumps(listed))
    elif change == "a table gone":
        (folder / "hosp/omr.csv.gz").unlink()
    else:
        written = {"an empty marker": "{}", "no JSON": "invented, honestly", "deep": "[" * 100_000}
        marker.write_text(written[change])
    assert data_class(folder) is DataClass.CREDENTIALED


def test_a_marker_cannot_be_moved_to_tables_with_mimic_numbers(tmp_path: Path) -> None:
    real = Ward()
    real.stay(real.patient(subject=10_000_032), ("N10", 10))
    folder = real.write(tmp_path, synthetic=False)
    with pytest.raises(InputError, match="a patient number is outside"):
        mark_synthetic(folder)
    assert not (folder / MARKER).exists()
    # Writing the hashes by hand does not help either.
    invented = ward().write(tmp_path / "invented")
    shutil.copytree(folder / "hosp", tmp_path / "both" / "hosp")
    from agentclinic.generate.mimic.classify import _hashes
    from agentclinic.generate.mimic.tables import Folder

    (tmp_path / "both" / MARKER).write_text(json.dumps({"tables": _hashes(Folder(tmp_path / "both"))}))
    assert data_class(tmp_path / "both") is DataClass.CREDENTIALED
    assert data_class(invented) is DataClass.SYNTHETIC


def test_one_row_of_another_patient_in_any_table_is_enough(tmp_path: Path) -> None:
    made = ward()
    made.row("hosp/labevents", labevent_id=999, subject_id=10_000_032, itemid=50912, charttime="2150-01-01 00:00:00")
    with pytest.raises(InputError, match="not invented"):
        made.write(tmp_path)


def test_a_row_without_a_patient_is_not_invented(tmp_path: Path) -> None:
    made = ward()
    made.row("hosp/labevents", labevent_id=999, itemid=50912, charttime="2150-01-01 00:00:00")
    with pytest.raises(InputError, match="not invented"):
        made.write(tmp_path)


def test_a_list_that_only_has_the_demos_name_does_not_count(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    subjects = {str(row["subject_id"]) for row in ward().rows["hosp/patients"]}
    (folder / DEMO_LIST).write_text("subject_id\n" + "\n".join(sorted(subjects)) + "\n")
    assert data_class(folder) is DataClass.CREDENTIALED


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A copy of the demo's tables that a test may change."""
    folder = tmp_path / "demo"
    (folder / "hosp").mkdir(parents=True)
    for path in DEMO.glob("hosp/*.gz"):
        if (
            path.stem.partition(".")[0]
            in "patients admissions diagnoses_icd d_icd_diagnoses labevents d_labitems omr".split()
        ):
            shutil.copyfile(path, folder / "hosp" / path.name)
    shutil.copyfile(DEMO / DEMO_LIST, folder / DEMO_LIST)
    return folder


@needs_demo
def test_the_published_demo_is_open() -> None:
    assert data_class(DEMO) is DataClass.OPEN_DEMO
    assert data_class(DEMO / "hosp") is DataClass.OPEN_DEMO


@needs_demo
def test_the_demo_with_one_row_of_another_patient_is_credentialed(demo: Path) -> None:
    assert data_class(demo) is DataClass.OPEN_DEMO
    path = demo / "hosp/omr.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"10000033,2150-01-01,1,Weight (Lbs),150\n"))
    assert data_class(demo) is DataClass.CREDENTIALED


@needs_demo
def test_the_demo_with_notes_is_credentialed(demo: Path) -> None:
    (demo / "note").mkdir()
    (demo / "note/discharge.csv").write_text("note_id,subject_id,hadm_id,note_type,note_seq,charttime,storetime,text\n")
    assert data_class(demo) is DataClass.CREDENTIALED


@needs_demo
def test_a_list_with_one_more_patient_is_not_the_demos(demo: Path) -> None:
    with (demo / DEMO_LIST).open("a") as file:
        file.write("10000033\n")
    assert data_class(demo) is DataClass.CREDENTIALED
