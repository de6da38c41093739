"""The original's `measurement_cost.json` in the prompts folder: a user's own prices, times and factors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import ORIGINAL, needs_original
from runs_support import clinic, only_run, records

from agentclinic.errors import ConfigError
from agentclinic.results.record import BriefRecord, Record
from agentclinic.results.turn import Disclosure, Provenance, Turn
from agentclinic.scoring.costs import FILE, Costs, load_costs
from agentclinic.scoring.orders import economics, ordered_in, price_of
from agentclinic.scoring.prices import priced_test

CBC = {"name": "Complete Blood Count (CBC)", "cost_min": 100, "cost_max": 300, "duration_min": 7, "wait_min": 40}
ZETA = {"name": "Zeta factor (fast)", "cost_min": 0, "cost_max": 5, "duration_min": 1, "wait_min": 2}
CONTENT: dict[str, Any] = {
    "instructions": "Estimate.",
    "scaling_rules": {"normal": 1.0, "busy": 1.5},
    "known_costs": [CBC, ZETA],
}


def written(folder: Path, content: object = CONTENT) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / FILE
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def loaded(folder: Path, content: object = CONTENT) -> Costs:
    written(folder, content)
    costs = load_costs(folder)
    assert costs
    return costs


def played(costs: Costs, *ordered: str, level: str | None = None) -> Record:
    turns = []
    for turn, name in enumerate(ordered, start=1):
        done = (Disclosure(name, Provenance("chart")),)
        turns += [
            Turn(turn=turn, role="doctor", text=f"REQUEST TEST: {name}"),
            Turn(turn=turn, role="measurement", text="RESULTS: ...", disclosures=done),
        ]
    record = Record(scenario_id=0, status="diagnosed", correct=True, transcript=turns, resource_level=level)
    record.price_table = costs.used_in(record)
    record.test_economics_log, record.test_economics_totals = economics(record)
    return record


def logged(record: Record) -> list[tuple[float | None, float | None, float | None]]:
    keys = ("estimate_cost", "expected_wait_time_minutes", "expected_duration_minutes")
    return [(entry[keys[0]], entry[keys[1]], entry[keys[2]]) for entry in record.test_economics_log or ()]


def test_a_test_has_the_middle_of_its_range_and_the_times_of_the_file(tmp_path: Path) -> None:
    record = played(loaded(tmp_path), "Complete blood count", "cbc", "zeta factor")
    assert logged(record) == [(200, 40, 7), (0, 40, 7), (2.5, 2, 1)]
    assert "Complete Blood Count (CBC); the middle of its range in measurement_cost.json" in assumptions(record)[0]
    assert "charged once per encounter" in assumptions(record)[1]
    assert (record.test_economics_totals or {})["total_estimated_cost_usd"] == 202.5


def assumptions(record: Record) -> list[str]:
    return [entry["assumptions"] for entry in record.test_economics_log or ()]


def test_what_the_file_lacks_is_priced_by_our_table_and_the_entry_says_so(tmp_path: Path) -> None:
    record = played(loaded(tmp_path), "Lipase", "Frobnication assay")
    lipase = priced_test("Lipase")
    assert lipase
    assert logged(record)[0] == (lipase.price.usd, lipase.wait_minutes, lipase.duration_minutes)
    assert "not in measurement_cost.json, so from our own table" in assumptions(record)[0]
    assert logged(record)[1] == (None, None, None)
    assert assumptions(record)[1] == "neither in measurement_cost.json nor in our table of tests"


@pytest.mark.parametrize(
    ("level", "factor", "by"),
    [(None, 1, ""), ("busy", 1.5, "level busy, measurement_cost.json"), ("scarce", 4, "level scarce, an assumption")],
)
def test_the_files_factor_lengthens_the_wait_and_a_level_it_lacks_has_ours(
    tmp_path: Path, level: str | None, factor: float, by: str
) -> None:
    record = played(loaded(tmp_path), "cbc", "Lipase", level=level)
    lipase = priced_test("Lipase")
    assert lipase
    assert logged(record) == [
        (200, 40 * factor, 7),
        (lipase.price.usd, lipase.wait_minutes * factor, lipase.duration_minutes),
    ]
    assert all(by in said for said in assumptions(record))


def test_a_record_needs_no_other_file_to_be_scored_at_its_prices(tmp_path: Path) -> None:
    costs = loaded(tmp_path)
    record = Record.model_validate_json(played(costs, "cbc", "Zeta factor", level="busy").model_dump_json())
    seen = ordered_in(record)
    assert seen
    assert (seen.bill.usd, round(seen.bill.hours * 60, 9), seen.bill.unpriced) == (202.5, 63, 0)
    assert [(item.name, item.usd) for item in seen.items] == [
        ("Complete Blood Count (CBC)", 200), ("Zeta factor (fast)", 2.5),
    ]  # fmt: skip
    brief = BriefRecord.model_validate_json(record.model_dump_json())
    assert str(brief.price_table) == f"{FILE} {hashlib.sha256((tmp_path / FILE).read_bytes()).hexdigest()[:16]}"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ([], "expected a JSON object"),
        ({"known_costs": 3}, "known_costs: must be a valid list"),
        ({"known_cost": [CBC]}, "unknown key 'known_cost'; did you mean 'known_costs'"),
        ({"known_costs": [CBC, {**CBC, "cost_min": -1}]}, "known_costs.1.cost_min: must be greater than or equal to 0"),
        ({"known_costs": [{**CBC, "cost_max": "300"}]}, "known_costs.0.cost_max: must be a valid number"),
        ({"known_costs": [{**CBC, "cost_max": 1}]}, "known_costs.0: cost_max 1 is below cost_min 100"),
        ({"known_costs": [{"name": "CBC"}]}, "known_costs.0.cost_min: field required"),
        ({"known_costs": [CBC, CBC]}, "known_costs: names 'Complete Blood Count .CBC.' twice"),
        ({"scaling_rules": {"bussy": 2}}, "scaling_rules.bussy"),
    ],
)
def test_a_mistake_is_refused_with_file_and_key(tmp_path: Path, content: object, complaint: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ConfigError, match=complaint) as refused:
        load_costs(tmp_path)
    assert str(refused.value).startswith(str(path))


def test_a_file_with_texts_only_has_no_table_and_the_run_says_so(tmp_path: Path) -> None:
    written(tmp_path, {"system_base": "Estimate what tests cost."})
    with pytest.warns(UserWarning, match="has no known_costs, so tests are priced by our own table"):
        assert load_costs(tmp_path) is None
    assert load_costs(None) is None


@needs_original
def test_the_originals_file_prices_our_names_of_its_tests() -> None:
    costs = load_costs(ORIGINAL / "prompts")
    assert costs
    assert len(costs.file.known_costs) == 26
    for ours, theirs, usd in (
        ("Electrocardiogram", "ECG / EKG", 40),
        ("EKG", "ECG / EKG", 40),
        ("CT head", "CT Head (non-contrast)", 750),
        ("KUB", "Abdominal X-Ray (KUB)", 85),
        ("MRI abdomen", "MRI Abdomen", 2400),
    ):
        found = costs.find(ours)
        assert found
        assert (found.name, found.usd) == (theirs, usd)
    assert costs.find("Vital signs") is None
    assert costs.file.scaling_rules == {"normal": 1.0, "busy": 1.5, "scarce": 2.5}


def test_from_the_folder_to_record_score_and_comparison(tmp_path: Path) -> None:
    """An edited table counts; the run's files name its hash; without the file, everything is as before."""
    runs = {}
    for name, content in {"none": None, "shipped": CONTENT, "edited": {**CONTENT, "known_costs": [ZETA]}}.items():
        folder = tmp_path / name
        folder.mkdir()
        if content:
            written(folder / "prompts", content)
        clinic("run", "--scenarios", "1", "--resource_level", "busy", cwd=folder)
        runs[name] = only_run(folder / "runs")
    (none,), (shipped,), (edited,) = map(records, runs.values())
    ordered = [entry["test_name"] for entry in none["test_economics_log"]]
    assert "Complete blood count" in ordered, "the case must order the test that the table has"
    place = ordered.index("Complete blood count")
    costs = [run["test_economics_log"][place]["estimate_cost"] for run in (none, shipped, edited)]
    ours = price_of("Complete blood count")
    assert ours
    assert costs == [ours.usd, 200, ours.usd]
    assert (none["price_table"], none["test_economics_log"][place]["expected_wait_time_minutes"]) == (
        None, 2 * ours.wait_minutes,
    )  # fmt: skip
    for run, record in (("shipped", shipped), ("edited", edited)):
        digest = hashlib.sha256((tmp_path / run / "prompts" / FILE).read_bytes()).hexdigest()[:16]
        used = json.loads((runs[run] / "config.used.json").read_text(encoding="utf-8"))
        assert record["price_table"]["digest"] == used["agentclinic"]["digest"]["price_table"] == digest
        assert f"Prices: {FILE} {digest}, else our table" in shown(runs[run])
    assert "Prices: our table of tests (US Medicare" in shown(runs["none"])
    said = clinic("compare", runs["none"], runs["shipped"], cwd=tmp_path).stdout
    assert f"prices of tests: our table against {FILE}" in " ".join(said.split())

    written(tmp_path / "shipped" / "prompts", {**CONTENT, "known_costs": [{**CBC, "cost_max": 1}]})
    refused = clinic("run", cwd=tmp_path / "shipped", expect=2).stderr
    assert f"{FILE}: known_costs.0: cost_max 1 is below cost_min 100" in refused
    assert "Traceback" not in refused


def shown(run: Path) -> str:
    return " ".join(clinic("score", run, "--full", cwd=run.parent).stdout.split())
