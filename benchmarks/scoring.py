"""Scoring and comparing many records: time relative to parsing them, growth, and memory.

python benchmarks/scoring.py              10,000 and 100,000 records
python benchmarks/scoring.py --records 2000 20000
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import compare_arms, load_arm
from agentclinic.scoring.score import score

TURNS = 6
TRUTHS = 200


def write_run(folder: Path, records: int, seed: int) -> None:
    """Write a run of made-up records: short transcripts with a differential in every turn."""
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    with (folder / "scenarios.jsonl").open("w", encoding="utf-8") as file:
        for number in range(records):
            file.write(json.dumps(_record(number, draw)) + "\n")


def _record(number: int, draw: random.Random) -> dict[str, object]:
    truth = f"Disease number {number % TRUTHS}"
    right = draw.random() < 0.6
    said = truth if right else f"Disease number {(number + 1) % TRUTHS}"
    sure = round(0.3 + 0.6 * draw.random(), 3)
    differential = {
        "source": "posterior",
        "hypotheses": [{"diagnosis": said, "probability": sure}, {"diagnosis": "Something else", "probability": 0.05}],
        "other": round(0.95 - sure, 3),
    }
    transcript: list[dict[str, object]] = []
    for turn in range(1, TURNS + 1):
        order = turn % 2 == 0
        text = f"REQUEST TEST: Complete blood count {turn}" if order else f"Do you have symptom {draw.randrange(99)}?"
        role = "measurement" if order else "patient"
        told = [{"topic": "x", "provenance": "chart", "paths": [f"Test_Results/A{turn}"]}]
        transcript.append({"turn": turn, "role": "doctor", "text": text, "action": "test" if order else "question",
                           "differential": differential})  # fmt: skip
        transcript.append({"turn": turn, "role": role, "text": "Some answer.", "disclosures": told})
    return {
        "scenario_id": number, "dataset": "Invented", "status": "diagnosed", "correct": right, "num_turns": TURNS,
        "ground_truth": truth, "diagnosis_text": said, "doctor_llm": "d", "patient_llm": "p", "measurement_llm": "m",
        "moderator_llm": "j", "max_infs": 20, "case_hash": f"{number:016x}", "repeat": 0, "differential": differential,
        "door": {"objective": "Assess.", "demographics": f"{20 + number % 60}-year-old woman"},
        "judgement": {"relation": "same" if right else "different", "correct_lenient": right},
        "transcript": transcript, "doctor_hist": f"dialogue {number}",
    }  # fmt: skip


def parse(folders: list[Path]) -> None:
    """The baseline: parse every record and discard it."""
    for folder in folders:
        for line in (folder / "scenarios.jsonl").open(encoding="utf-8"):
            json.loads(line)


def score_one(folders: list[Path]) -> None:
    """Score the first run."""
    score(load_run(folders[0]))


def compare_both(folders: list[Path]) -> None:
    """Compare the two runs."""
    compare_arms([load_arm(load_run(folder)) for folder in folders])


JOBS: dict[str, Callable[[list[Path]], None]] = {"parse": parse, "score": score_one, "compare": compare_both}


def measured(job: str, folders: list[Path]) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a job in its own process."""
    began = time.process_time()
    JOBS[job](folders)
    return time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure both sizes and print the growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs=2, default=[10_000, 100_000])
    sizes = parser.parse_args().records
    results: dict[str, list[tuple[float, float]]] = {job: [] for job in JOBS}
    with tempfile.TemporaryDirectory() as place:
        for size in sizes:
            folders = [Path(place) / f"{size}_{seed}" for seed in (1, 2)]
            for seed, folder in enumerate(folders):
                write_run(folder, size, seed)
            for job in JOBS:
                with ProcessPoolExecutor(1) as pool:
                    results[job].append(pool.submit(measured, job, folders).result())
    few, many = sizes
    print(f"{'job':8} {few:>9,} records {many:>15,} records   time per record   memory")
    for job, ((short, low), (long, high)) in results.items():
        growth = (long / many) / (short / few)
        shown = f"{short:7.1f} s {low:5.0f} MB {long:11.1f} s {high:6.0f} MB"
        print(f"{job:8} {shown}   x {growth:.2f}            x {high / low:.1f}")
    base = results["parse"][1][0]
    for job in ("score", "compare"):
        print(f"{job} takes {results[job][1][0] / base:.1f} times as long as parsing both runs")


if __name__ == "__main__":
    main()
