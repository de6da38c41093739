"""Reading MIMIC-IV's tables: every published layout, damage named by its place, a cache used only while it is valid."""

from __future__ import annotations

import gzip
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mimic_rows import SALT, Ward, settings, ward

from agentclinic.config import parse_settings
from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.generate.mimic import choose, source_cases
from agentclinic.generate.mimic.tables import opened
from agentclinic.generate.settings import MimicSettings
from agentclinic.generate.source import SourceCase


def contexts(folder: Path, *, cache: Path | None = None, **changes: Any) -> list[SourceCase]:
    wanted = settings(folder, cache_dir=str(cache) if cache else None, **changes)
    return list(source_cases(wanted, choose(wanted, SALT)))


def test_compressed_and_plain_tables_give_the_same_cases(tmp_path: Path) -> None:
    packed = contexts(ward().write(tmp_path / "packed"))
    assert len(packed) == 6
    assert contexts(ward().write(tmp_path / "plain", gz=False)) == packed


@pytest.mark.parametrize("given", [".", "hosp", "ed"])
def test_the_release_or_one_of_its_modules_can_be_named(tmp_path: Path, given: str) -> None:
    folder = ward().write(tmp_path)
    assert contexts(folder / given) == contexts(folder)


def test_projects_side_by_side_are_found_below_their_parent(tmp_path: Path) -> None:
    folder = ward().write(tmp_path / "one", synthetic=False)
    expected = contexts(folder)
    apart = tmp_path / "files"
    for project, module in (("mimiciv/3.1", "hosp"), ("mimic-iv-ed/2.2", "ed"), ("mimic-iv-note/2.2", "note")):
        (apart / project).mkdir(parents=True)
        (folder / module).rename(apart / project / module)
    assert contexts(apart) == expected
    assert {case.history_source for case in expected} == {"note", "triage", "codes", "none"}


def test_two_releases_below_one_folder_are_not_mixed(tmp_path: Path) -> None:
    for release in ("2.2", "3.1"):
        ward().write(tmp_path / "mimiciv" / release)
    with pytest.raises(InputError, match=r"more than one hosp folder .*2\.2.*3\.1.*name one release"):
        contexts(tmp_path)


def test_tables_without_a_hosp_folder_are_read(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    expected = contexts(folder)
    flat = (folder / "hosp").rename(tmp_path / "tables")
    for module in ("ed", "note"):
        (folder / module).rename(flat / module)
    assert contexts(flat) == expected


def test_columns_that_some_releases_lack_may_be_absent(tmp_path: Path) -> None:
    lacking = ["hosp/labevents.comments", "hosp/labevents.order_provider_id", "hosp/admissions.admit_provider_id"]
    lacking += ["hosp/microbiologyevents.order_provider_id", "hosp/admissions.admission_location"]
    cases = contexts(ward().write(tmp_path, without_columns=lacking))
    assert [len(case.labs) for case in cases] == [len(case.labs) for case in contexts(ward().write(tmp_path / "full"))]
    assert {case.arrival for case in cases} == {"", "came by ambulance"}


@pytest.mark.parametrize(
    "table", ["hosp/omr", "hosp/microbiologyevents", "ed/triage", "ed/vitalsign", "note/discharge"]
)
def test_an_optional_table_may_be_absent(tmp_path: Path, table: str) -> None:
    assert len(contexts(ward().write(tmp_path, without_tables=[table]))) == 6


@pytest.mark.parametrize("table", ["hosp/labevents", "hosp/patients", "hosp/d_icd_diagnoses", "hosp/d_labitems"])
def test_the_error_names_a_required_table_that_is_absent(tmp_path: Path, table: str) -> None:
    folder = ward().write(tmp_path, without_tables=[table], synthetic=False)
    with pytest.raises(InputError, match=rf"hosp: {table[5:]}\.csv\.gz \(or \.csv\) is missing"):
        contexts(folder)


def test_the_error_names_a_missing_column_and_its_file(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, without_columns=["hosp/labevents.charttime"], synthetic=False)
    with pytest.raises(InputError, match=r"labevents\.csv\.gz: column charttime is missing"):
        contexts(folder)


def test_the_error_names_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such folder.*hosp"):
        contexts(tmp_path / "nowhere")


def _spoil(folder: Path, table: str, old: str, new: str) -> None:
    path = folder / f"{table}.csv.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))


def test_a_packed_table_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    path = folder / "hosp/labevents.csv.gz"
    packed = bytearray(path.read_bytes())
    packed[-8] ^= 1
    path.write_bytes(packed)
    with pytest.raises(InputError, match=r"labevents\.csv\.gz: cannot be read .*; is the file complete"):
        contexts(folder)


def test_the_error_names_line_and_column_of_a_damaged_row_and_does_not_show_it(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    _spoil(folder, "hosp/labevents", "2150-03-04 11:00:00", "Tuesday")
    with pytest.raises(InputError) as caught:
        contexts(folder)
    said = str(caught.value)
    assert "labevents.csv.gz line 2: charttime has a value of another type" in said
    assert "Tuesday" not in said
    assert "900000000" not in said


def test_the_error_names_the_line_of_a_row_with_too_many_fields(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    _spoil(folder, "hosp/admissions", "EW EMER.", "EW EMER.,one more")
    with pytest.raises(InputError, match=r"admissions\.csv\.gz line 2: cannot be read as CSV"):
        contexts(folder)


def test_an_incomplete_download_is_an_error_not_a_smaller_table(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, synthetic=False)
    path = folder / "hosp/labevents.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match=r"labevents\.csv\.gz.*is the file complete"):
        contexts(folder)


def test_quotes_commas_and_line_breaks_in_fields_are_read_as_written(tmp_path: Path) -> None:
    made = Ward()
    stay = made.stay(made.patient(), ("N10", 10))
    stay.lab(51301, '12,5 "corrected"', unit="K/uL")
    stay.culture(comments='NO GROWTH, "FINAL".\n\nSecond line.')
    (case,) = contexts(made.write(tmp_path))
    assert case.labs[0].value == '12,5 "corrected"'
    assert case.cultures[0].comment == 'NO GROWTH, "FINAL". Second line.'


def test_the_cache_gives_the_same_cases_and_is_private(tmp_path: Path) -> None:
    folder, cache = ward().write(tmp_path / "mimic"), tmp_path / "cache"
    expected = contexts(folder)
    assert contexts(folder, cache=cache) == expected
    files = sorted(cache.iterdir())
    assert [path.name.partition("-")[0] for path in files] == sorted(
        "diagnoses_icd discharge edstays labevents medrecon microbiologyevents omr triage vitalsign".split()
    )
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    before = {path: path.stat().st_mtime_ns for path in files}
    assert contexts(folder, cache=cache) == expected
    assert {path: path.stat().st_mtime_ns for path in sorted(cache.iterdir())} == before


def test_a_changed_table_is_not_read_from_an_old_cache(tmp_path: Path) -> None:
    folder, cache = ward().write(tmp_path / "mimic", synthetic=False), tmp_path / "cache"
    contexts(folder, cache=cache)
    _spoil(folder, "hosp/labevents", ",2400,2400,", ",2999,2999,")
    values = {lab.value for case in contexts(folder, cache=cache) for lab in case.labs}
    assert "2999" in values
    assert "2400" not in values


def test_a_table_is_cached_completely_or_not_at_all(tmp_path: Path) -> None:
    folder, cache = ward().write(tmp_path / "mimic", synthetic=False), tmp_path / "cache"
    path = folder / "hosp/labevents.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match="is the file complete"):
        contexts(folder, cache=cache)
    assert not list(cache.glob("*labevents*"))
    assert not [left for left in cache.iterdir() if left.name.startswith((".", "agentclinic-mimic"))]


def test_no_patient_data_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ward().write(tmp_path / "mimic")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    half = source_cases(settings(folder), choose(settings(folder), SALT))
    next(half)
    (private,) = scratch.iterdir()
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    half.close()
    assert not list(scratch.iterdir())


@pytest.mark.slow
def test_files_of_a_killed_process_are_removed_and_those_of_a_running_one_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ward().write(tmp_path / "mimic")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = textwrap.dedent(
        f"""
        import os, signal, tempfile
        tempfile.tempdir = {str(scratch)!r}
        from agentclinic.generate.mimic import choose, source_cases
        from agentclinic.generate.settings import MimicSettings
        settings = MimicSettings(base_dataset_dir={str(folder)!r})
        next(source := source_cases(settings, choose(settings, "salt")))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    (left,) = scratch.iterdir()
    assert (left / "work.duckdb").exists()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    living = source_cases(settings(folder), choose(settings(folder), SALT))
    next(living)
    assert not left.exists()
    (own,) = scratch.iterdir()
    assert len(contexts(folder)) == 6
    assert own.exists()
    assert len(list(living)) == 5


def test_concurrent_connections_do_not_remove_each_others_folders(tmp_path: Path) -> None:
    def use(_: int) -> int:
        with opened("64MB", 1, tmp_path) as connection:
            connection.execute("CREATE TABLE numbers AS SELECT * FROM range(1000)")
            return len(connection.execute("FROM numbers").fetchall())

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(32))) == {1000}
    assert not list(tmp_path.iterdir())


def test_little_memory_is_enough(tmp_path: Path) -> None:
    folder = ward().write(tmp_path)
    assert contexts(folder, memory_limit="64MB", threads=1) == contexts(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_limit": "a lot"}, "memory limit 'a lot' cannot be used"),
        ({"threads": 0}, "threads: "),
        ({"hours": 0}, "hours: "),
        ({"hours": 20_000}, "hours: "),
        ({"limit": 0}, "limit: "),
        ({"mode": "secondary"}, "mode: must be 'principal', 'single' or 'targets'"),
        ({"mode": "targets"}, "belong together"),
        ({"targets": "I21"}, "belong together"),
    ],
)
def test_impossible_settings_are_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    folder = ward().write(tmp_path)
    with pytest.raises(ConfigError, match=said):
        choose(parse_settings(MimicSettings, {"base_dataset_dir": str(folder), **changes}, "the flags"), SALT)


def test_without_duckdb_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(AgentClinicError, match=r"pip install -e .*\[generate\]"):
        choose(settings(tmp_path), SALT)


def test_long_steps_are_announced_before_they_begin(tmp_path: Path) -> None:
    folder = ward().write(tmp_path / "mimic")
    told: list[str] = []
    wanted = settings(folder, cache_dir=str(tmp_path / "cache"))
    list(source_cases(wanted, choose(wanted, SALT, tell=told.append), tell=told.append))
    assert told.index("copying hosp/labevents to the cache") < told.index("reading hosp/labevents")


def test_a_header_that_is_no_csv_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    folder = ward().write(tmp_path, gz=False)
    for odd in (b"a" * 200_000, b"\xff\xfe"):
        (folder / "hosp/patients.csv").write_bytes(odd)
        with pytest.raises(InputError, match=r"patients\.csv: cannot be read"):
            contexts(folder)
