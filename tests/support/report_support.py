"""What the tests of reports share: made-up runs on disk, and pages about them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentclinic.report.collect import Collected, collect
from agentclinic.report.page import page
from agentclinic.results.run_data import load_run

Json = dict[str, Any]
ORIGINALS_FIELDS = """scenario_id dataset status num_turns correct ground_truth diagnosis_text doctor_llm patient_llm
measurement_llm moderator_llm max_infs image_request_enabled doctor_hist patient_hist measurement_hist
llm_responses_config llm_runtime_config resource_level test_economics_log test_economics_totals""".split()


def write_run(folder: Path, records: Iterable[Json], config: Json | None = None) -> Path:
    """A run's folder with these records."""
    folder.mkdir(parents=True, exist_ok=True)
    written = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "scenarios.jsonl").write_text(written, encoding="utf-8")
    if config is not None:
        (folder / "config.used.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def differential(source: str = "posterior", other: float | None = 0.1, **odds: float) -> Json:
    hypotheses = [{"diagnosis": name.replace("_", " "), "probability": p} for name, p in odds.items()]
    return {"source": source, "hypotheses": hypotheses, "other": other}


def record(number: int = 0, **changes: Any) -> Json:
    """A record in our format: the doctor asks, orders a test, and rightly says Gout, 70% sure."""
    asked = differential(Gout=0.4, Septic_arthritis=0.5)
    sure = differential(Gout=0.7, Septic_arthritis=0.2)
    told = {"topic": "opening", "provenance": "chart", "paths": ["Patient_Actor/History#0"]}
    reported = {"topic": "Uric acid", "provenance": "chart", "paths": ["Test_Results/Uric_Acid"]}
    made = {
        "scenario_id": number, "dataset": "Made", "status": "diagnosed", "num_turns": 3, "correct": True,
        "ground_truth": "Gout", "diagnosis_text": "Gout", "doctor_llm": "d", "patient_llm": "p",
        "measurement_llm": "m", "moderator_llm": "j", "max_infs": 20, "case_hash": f"{number:016x}",
        "door": {"objective": "Find out.", "demographics": f"{40 + number}-year-old man"}, "doctor": "plain",
        "data_class": "public", "doctor_hist": f"dialogue {number}",
        "judgement": {"relation": "same", "reason": "equal", "correct_lenient": True},
        "differential": sure,
        "transcript": [
            {"turn": 1, "role": "doctor", "text": "What brings you in?", "action": "question", "differential": asked},
            {"turn": 1, "role": "patient", "text": "My toe hurts.", "disclosures": [told]},
            {"turn": 2, "role": "doctor", "text": "REQUEST TEST: Uric acid", "action": "test", "differential": asked},
            {"turn": 2, "role": "measurement", "text": "RESULTS: Uric acid: 9.1", "disclosures": [reported]},
            {"turn": 3, "role": "doctor", "text": "DIAGNOSIS READY: Gout", "action": "diagnosis", "differential": sure},
        ],
        "annotations": {"Specialty": "Rheumatology", "Difficulty": "easy", "Harm_If_Missed": 2},
        "usage": {"doctor": {"input_tokens": 10, "output_tokens": 5}}, "cost_usd": {"doctor": 0.01},
    }  # fmt: skip
    return {**made, **changes}


def wrong(number: int, said: str = "Septic arthritis", **changes: Any) -> Json:
    """A record in our format with a wrong diagnosis."""
    judged = {"relation": "different", "reason": "names another disease", "correct_lenient": False}
    return record(number, **{"diagnosis_text": said, "correct": False, "judgement": judged, **changes})


def unread(number: int, **changes: Any) -> Json:
    """A record in our format with an answer that the judge could not read."""
    judged = {"correct": None, "reason": "cannot read 'zzyzx'"}
    said = {"diagnosis_text": "Broken wing zzyzx of gout", "status": "not_readable", "correct": None}
    return record(number, **{**said, "judgement": judged, **changes})


def ordering(number: int, *orders: tuple[str, str], right: bool = True, **changes: Any) -> Json:
    """A record in our format whose doctor orders these tests, each answered in that way."""
    said: list[Json] = []
    for turn, (name, how) in enumerate(orders, start=1):
        said.append({"turn": turn, "role": "doctor", "text": f"REQUEST TEST: {name}"})
        parts = [{"topic": name, "provenance": how}]
        said.append({"turn": turn, "role": "measurement", "text": "RESULTS: so", "disclosures": parts})
    return (record if right else wrong)(number, **{"transcript": said, **changes})


def twin(number: int, right: bool = True, said: str = "Gout", **changes: Any) -> Json:
    """A record in our format of a case with a twin: 0 and 1 are a pair, 2 and 3, and so on."""
    ids = {"case_id": f"c{number}", "twin_of": f"c{number ^ 1}"}
    return (record if right else wrong)(number, **{"diagnosis_text": said, "annotations": ids, **changes})


def in_the_originals_format(entry: Json) -> Json:
    """The record with only the original's fields."""
    return {key: entry.get(key) for key in ORIGINALS_FIELDS if key in entry}


def gathered(*folders: Path) -> Collected:
    return collect([load_run(folder) for folder in folders], [folder.name for folder in folders])


def page_of(target: Path, *folders: Path) -> Path:
    """Write the page about these runs."""
    target.write_text(page(gathered(*folders)), encoding="utf-8")
    return target
