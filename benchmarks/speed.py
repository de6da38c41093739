"""How fast the clinic is: encounters a second, a new question, a verdict, and what the harness adds to the models.

python benchmarks/speed.py                       this checkout
python benchmarks/speed.py --checkout DIR        beside the package in another checkout, in the same run
python benchmarks/speed.py question verdict      only these sections
python benchmarks/speed.py --runs 5              the median of several runs, in which the two take turns

Each section is measured in a process of its own, outside the checkout. Times are CPU times with the tables loaded, and
nothing is measured twice in a process, unless the figure says so. Labeled questions and verdicts about public cases
need `../shared/data`; without it, those on our own cases are measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [os.environ.get("BENCHMARK_CHECKOUT", str(ROOT)), str(ROOT / "benchmarks")]

import anyio
import judge as labeled

from agentclinic.cases.matcher import asked_of_patient
from agentclinic.cases.registry import load_cases
from agentclinic.config import RunSettings, Settings
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.play import play
from agentclinic.vocabulary.compare import compare

CASE = {
    "OSCE_Examination": {
        "Objective_for_Doctor": "Assess and diagnose the patient with a painful toe.",
        "Patient_Actor": {
            "Demographics": "50-year-old man",
            "History": "Pain in the right big toe since last night. He denies fever.",
            "Symptoms": {"Primary_Symptom": "Toe pain", "Secondary_Symptoms": ["Swelling", "Redness"]},
        },
        "Physical_Examination_Findings": {"Vital_Signs": {"Temperature": "37.1°C"}, "Foot": "Red, swollen toe."},
        "Test_Results": {"Blood_Tests": {"Uric_Acid": "9.1 mg/dL"}},
        "Correct_Diagnosis": "Gout",
    }
}
"""A case to load the tables with."""
SPOKEN = {
    "OSCE_Examination": {
        **CASE["OSCE_Examination"],
        "Patient_Facts": {"Patient_Actor/Demographics": {"says": "I'm 50.", "asked": ["How old are you?"]}},
    }
}
"""The same with the words and questions of an author, for which the patient has other tables."""
PAIRS = (("Pseudogout", "Gout"), ("Viral myocarditis", "Acute myocarditis due to a virus"), ("Asthma", "Lung cancer"))
"""Diagnoses and truths to load the judge's tables with."""
FIRST = "Is there any ringing in your ears?"
"""A first question that few charts answer: to deny it, all of a chart is read, and what it denies of other places."""
QUESTIONS = ("development", "second", "third", "test")
Figures = dict[str, float]


def play_all(plan: Plan) -> None:
    """Play every unit of a plan, one after another."""

    async def played() -> None:
        async with Models(plan.settings) as models:
            for unit in plan.units:
                await play(plan, unit, models)

    anyio.run(played)


def load_tables() -> None:
    """Use everything once, on a case that is in no data set."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.jsonl"
        path.write_text("".join(f"{json.dumps(case)}\n" for case in (CASE, SPOKEN)), encoding="utf-8")
        run = RunSettings(dataset=str(path), seed=1, missing_test="completed", pending_results=True)
        with warnings.catch_warnings(action="ignore"):  # this chart was not written to be completed
            play_all(make_plan(Settings(run=run)))
    for diagnosis, truth in PAIRS:
        compare(diagnosis, truth, ("one",), ("two",), (("three", "four"),), "Has a cough. No fever.")
    gc.collect()
    gc.set_threshold(10_000, 20, 50)  # as the command does


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def percentiles(times: Sequence[float], what: str = "") -> Figures:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(times)
    return {f"{what}p{p}, ms": 1000 * ordered[min(len(ordered) - 1, p * len(ordered) // 100)] for p in (50, 95)}


def encounters() -> Figures:
    """Builtin encounters a second and core on the development part of OpenOSCE."""
    plan = make_plan(Settings(run=RunSettings(dataset="OpenOSCE", seed=1)))
    load_tables()
    count = len(plan.units)
    return {
        "new cases": count / seconds(lambda: play_all(plan)),
        "the same cases again": count / seconds(lambda: play_all(plan)),
    }


def question() -> Figures:
    """The labeled questions, each asked once; a chart is read with its first question.

    Questions about version 1 of OpenOSCE are asked about the version that the checkout plays by default.
    """
    files = {"MedQA_Ext": str(labeled.DATA / "agentclinic" / labeled.FILES["MedQA_Ext"])}
    names = ("OpenOSCE", *(name for name in files if Path(files[name]).is_file()))
    known = {(name, case.scenario_id): case for name in names for case in load_cases(name, files)}
    rows = [row for part in QUESTIONS for row in labeled.lines(labeled.LABELS / f"questions3_{part}.jsonl")]
    named = ((row["dataset"].removesuffix("_1"), row["case"], row["question"]) for row in rows)
    asked = dict.fromkeys(key for key in named if key[0] in names)
    load_tables()
    charts = {key[:2]: known[key[:2]].patient_facts for key in asked}
    first = [seconds(partial(asked_of_patient, FIRST, chart)) for chart in charts.values()]
    later = [seconds(partial(asked_of_patient, key[2], charts[key[:2]])) for key in asked]
    return {**percentiles(later), **percentiles(first, "the first about a chart, ")}


def verdict() -> Figures:
    """The builtin judge's verdicts on the labeled diagnoses."""
    rows = [row for part in labeled.OPEN for row in labeled.read_rows(part) or ()]
    load_tables()
    return percentiles([seconds(row.judged) for row in rows])


SECTIONS: dict[str, Callable[[], Figures]] = {"encounters": encounters, "question": question, "verdict": verdict}
"""What is measured, and how; each returns its figures by name."""
if find_spec("speed_harness"):
    SECTIONS |= import_module("speed_harness").SECTIONS


def measured(section: str, checkout: Path) -> Figures:
    """A section's figures with the package of a checkout."""
    env = {**os.environ, "BENCHMARK_CHECKOUT": str(checkout), "PYTHONPATH": str(checkout)}
    with tempfile.TemporaryDirectory() as folder:
        child = [sys.executable, str(Path(__file__).resolve()), "--measure", section]
        done = subprocess.run(child, env=env, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Print a line per figure: before, now, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"only these: {', '.join(SECTIONS)}")
    parser.add_argument("--checkout", type=labeled.checkout, help="another checkout, measured as 'before'")
    parser.add_argument("--runs", type=int, default=1, help="repeat, and print medians")
    parser.add_argument("--measure", choices=SECTIONS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(SECTIONS[given.measure]()))
        return
    if unknown := set(given.sections) - SECTIONS.keys():
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    checkouts = [*([given.checkout] if given.checkout else []), ROOT]
    print(f"{'':60}{'before':>10}{'now':>10}{'ratio':>8}" if given.checkout else f"{'':60}{'now':>10}")
    for section in given.sections or SECTIONS:
        runs = [[measured(section, checkout) for checkout in checkouts] for _ in range(given.runs)]
        for name in runs[0][-1]:
            values = [median(run[at][name] for run in runs) for at in range(len(checkouts))]
            ratio = f"{values[1] / values[0]:>8.2f}" if len(values) > 1 and values[0] else ""
            print(f"{f'{section}: {name}':60}" + "".join(f"{value:>10.2f}" for value in values) + ratio, flush=True)


if __name__ == "__main__":
    main()
