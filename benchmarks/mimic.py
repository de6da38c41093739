"""Time and memory to read the laboratory rows of chosen admissions, compared with csv.DictReader and pandas.

Invented rows fill a folder in MIMIC-IV's layout, with 20 million in labevents. Every arm picks the rows of the same
admissions, in its own process; ours also builds the cases' whole context from them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from agentclinic.generate.mimic import choose, source_cases
from agentclinic.generate.mimic.classify import RESERVED_FROM
from agentclinic.generate.settings import MimicSettings

# MIMIC-IV 3.1 has about 158 million lab rows of 365 thousand patients: 430 each.
ROWS_EACH = 430
SALT = "a salt of the benchmark"
CODES = (("I214", "Non-ST elevation (NSTEMI) myocardial infarction"), ("N10", "Acute pyelonephritis"))
HOURS = 24


def make(folder: Path, rows: int) -> None:
    """Write the tables; a patient's rows are scattered over labevents, which is the hard case."""
    (folder / "hosp").mkdir(parents=True)
    patients = max(rows // ROWS_EACH, 10)
    con = duckdb.connect(config={"memory_limit": "2GB", "preserve_insertion_order": False})

    def write(name: str, select: str) -> None:
        con.execute(f"COPY ({select}) TO '{folder}/hosp/{name}.csv.gz' (FORMAT csv, HEADER, COMPRESSION gzip)")

    each = f"FROM range({patients}) t(i)"
    admitted = "TIMESTAMP '2150-01-01' + to_hours(((i * 7919) % 80000)::INTEGER)"
    write(
        "patients",
        f"SELECT {RESERVED_FROM} + i AS subject_id, 'F' AS gender, 60 AS anchor_age, 2150 AS anchor_year {each}",
    )
    write(
        "admissions",
        f"SELECT {RESERVED_FROM} + i AS subject_id, {RESERVED_FROM + 20_000_000} + i AS hadm_id, "
        f"{admitted} AS admittime, {admitted} + INTERVAL 5 DAY AS dischtime, 'URGENT' AS admission_type, "
        f"'EMERGENCY ROOM' AS admission_location {each}",
    )
    write(
        "diagnoses_icd",
        f"SELECT {RESERVED_FROM} + i AS subject_id, {RESERVED_FROM + 20_000_000} + i AS hadm_id, 1 AS seq_num, "
        f"CASE WHEN i % 2 = 0 THEN '{CODES[0][0]}' ELSE '{CODES[1][0]}' END AS icd_code, 10 AS icd_version {each}",
    )
    titles = " UNION ALL ".join(f"SELECT '{c}' AS icd_code, 10 AS icd_version, '{t}' AS long_title" for c, t in CODES)
    write("d_icd_diagnoses", titles)
    write(
        "d_labitems",
        "SELECT 50800 + i AS itemid, 'Test ' || i AS label, 'Blood' AS fluid, 'Chemistry' AS category "
        "FROM range(300) t(i)",
    )
    # A tenth of a patient's rows are on the first day of the stay; a quarter have no admission.
    taken = "admitted + to_seconds((CASE WHEN h % 10 = 0 THEN h % 86400 ELSE 200000 + h % 20000000 END)::BIGINT)"
    write(
        "labevents",
        f"""
        SELECT labevent_id, {RESERVED_FROM} + i AS subject_id,
               CASE WHEN h % 4 > 0 THEN {RESERVED_FROM + 20_000_000} + i END AS hadm_id, labevent_id AS specimen_id,
               50800 + (h // 7) % 300 AS itemid, 'P' || (h % 90000) AS order_provider_id,
               {taken} AS charttime, {taken} + INTERVAL 40 MINUTE AS storetime,
               (h % 1000) / 10.0 AS value, (h % 1000) / 10.0 AS valuenum, 'mg/dL' AS valueuom,
               '3.5' AS ref_range_lower, '72.0' AS ref_range_upper,
               CASE WHEN h % 1000 > 720 THEN 'abnormal' END AS flag, 'ROUTINE' AS priority,
               CASE WHEN h % 6 = 0 THEN 'An invented remark, with a comma.' END AS comments
        FROM (SELECT *, {admitted} AS admitted FROM (
            SELECT r AS labevent_id, hash(r) % {patients} AS i, hash(r + 1) % 1000000000000 AS h FROM range({rows}) t(r)
        ))
        """,
    )
    con.close()


def settings(folder: Path, admissions: int, cache: Path | None = None) -> MimicSettings:
    """The settings of all our arms."""
    cache_dir = str(cache) if cache else None
    return MimicSettings(base_dataset_dir=str(folder), limit=admissions, cache_dir=cache_dir, hours=HOURS)


def wanted(folder: Path, admissions: int) -> dict[str, tuple[str, str, str, str]]:
    """By patient: the chosen admission and the times that the baselines compare as text."""
    chosen = {str(one.subject_id): str(one.hadm_id) for one in choose(settings(folder, admissions), SALT).admissions}
    found = {}
    with gzip.open(folder / "hosp/admissions.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if chosen.get(row["subject_id"]) == row["hadm_id"]:
                start = datetime.fromisoformat(row["admittime"])
                since, until = start - timedelta(hours=24), start + timedelta(hours=HOURS)
                found[row["subject_id"]] = (row["hadm_id"], str(since), str(until), row["dischtime"])
    return found


def dict_reader(folder: Path, admissions: int) -> Callable[[], int]:
    """The original's way: every row a dict, in Python."""
    stays = wanted(folder, admissions)

    def read() -> int:
        kept = []
        with gzip.open(folder / "hosp/labevents.csv.gz", "rt") as file:
            for row in csv.DictReader(file):
                stay = stays.get(row["subject_id"])
                if stay and row["hadm_id"] in ("", stay[0]) and stay[1] <= row["charttime"] <= stay[2]:
                    kept.append(row)
        return len(kept)

    return read


def pandas_chunks(folder: Path, admissions: int) -> Callable[[], int]:
    """Chunks of half a million rows, with the columns that ours reads, as text."""
    import pandas as pd

    columns = "labevent_id subject_id hadm_id itemid charttime value valuenum valueuom ref_range_lower ref_range_upper"
    stays = wanted(folder, admissions)
    table = pd.DataFrame(
        [(key, *stay) for key, stay in stays.items()], columns=["subject_id", "own", "since", "until", "_"]
    )

    def read() -> int:
        count = 0
        for chunk in pd.read_csv(
            folder / "hosp/labevents.csv.gz",
            usecols=[*columns.split(), "flag", "comments"],
            dtype=str,
            keep_default_na=False,
            chunksize=500_000,
        ):
            rows = chunk[chunk["subject_id"].isin(stays)].merge(table, on="subject_id")
            own = rows["hadm_id"].isin([""]) | (rows["hadm_id"] == rows["own"])
            count += int((own & (rows["charttime"] >= rows["since"]) & (rows["charttime"] <= rows["until"])).sum())
        return count

    return read


def ours(folder: Path, admissions: int, cache: Path | None = None) -> Callable[[], int]:
    """Our reading, up to the finished contexts."""
    chosen = choose(settings(folder, admissions), SALT)

    def read() -> int:
        made = source_cases(settings(folder, admissions, cache), chosen)
        return sum(1 + lab.repeats for case in made for lab in case.labs)

    return read


def arms(folder: Path, admissions: int) -> dict[str, Callable[[], Callable[[], int]]]:
    """The arms by name; calling one prepares it, calling the result is timed."""
    cache = folder / "cache"
    return {
        "csv.DictReader": lambda: dict_reader(folder, admissions),
        "pandas chunks": lambda: pandas_chunks(folder, admissions),
        "ours, .csv.gz": lambda: ours(folder, admissions),
        "ours, making the cache": lambda: ours(folder, admissions, cache),
        "ours, cache": lambda: ours(folder, admissions, cache),
    }


def peak_mib() -> float:
    """The peak memory of this process (Linux; ru_maxrss would include the parent's at the fork)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure(folder: Path, arm: str, admissions: int) -> dict[str, Any]:
    """Run one arm in its own process."""
    command = [sys.executable, __file__, "--arm", arm, "--folder", str(folder), "--admissions", str(admissions)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def one_size(root: Path, rows: int, admissions: int) -> dict[str, dict[str, Any]]:
    """Make a folder and measure every arm on it."""
    folder = root / f"rows-{rows}"
    begun = time.perf_counter()
    if not folder.exists():
        make(folder, rows)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    size = (folder / "hosp/labevents.csv.gz").stat().st_size / 2**20
    took = time.perf_counter() - begun
    print(f"\n{rows:,} rows, {size:,.0f} MiB .csv.gz, made in {took:.0f} s; {admissions} admissions")
    print(f"{'arm':24} {'seconds':>8} {'CPU':>8} {'x DictReader':>13} {'peak MiB':>9} {'rows kept':>10}", flush=True)
    found: dict[str, dict[str, Any]] = {}
    for arm in arms(folder, admissions):
        found[arm] = measure(folder, arm, admissions)
        one = found[arm]
        ratio = found["csv.DictReader"]["seconds"] / one["seconds"]
        times = f"{one['seconds']:8.2f} {one['cpu']:8.2f}"
        print(f"{arm:24} {times} {ratio:13.1f} {one['mib']:9.0f} {one['kept']:10}", flush=True)
    return found


def main() -> None:
    """Measure two sizes and print how time and memory grow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--smaller", type=int, default=5_000_000, help="the size growth is measured from")
    parser.add_argument("--admissions", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="write the tables here and keep them for another run")
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.arm:
        read = arms(args.folder, args.admissions)[args.arm]()
        begun, used = time.perf_counter(), time.process_time()
        kept = read()
        seconds, cpu = time.perf_counter() - begun, time.process_time() - used
        print(json.dumps({"seconds": seconds, "cpu": cpu, "kept": kept, "mib": peak_mib()}))
        return
    with tempfile.TemporaryDirectory() as temporary:
        root = args.folder or Path(temporary)
        small = one_size(root, args.smaller, args.admissions)
        large = one_size(root, args.rows, args.admissions)
    print(f"\nfrom {args.smaller:,} to {args.rows:,} rows ({args.rows / args.smaller:g} times as many)")
    for arm, found in large.items():
        growth = found["seconds"] / small[arm]["seconds"]
        print(f"{arm:24} time x {growth:.2f}, peak memory x {found['mib'] / small[arm]['mib']:.2f}")
    print(json.dumps({"smaller": small, "rows": large}))


if __name__ == "__main__":
    main()
