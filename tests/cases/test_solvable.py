"""Cases that are drawn from solvable worlds."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from solvable_support import CHEST_PAIN, plan_in

from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.cases.solvable import MOST, USUAL, Drawn, Spec, draw_rows, needed, spec
from agentclinic.errors import CaseError, ConfigError, InputError
from agentclinic.files import LARGEST
from agentclinic.results.run_cases import case_lines, read_cases, write_cases
from agentclinic.scoring.clusters import case_clusters
from agentclinic.worlds.model import BUNDLED, World, bundled


def rows(dataset: str = CHEST_PAIN, seed: int = 0, count: int = 20) -> list[dict[str, Any]]:
    given = spec(dataset)
    assert given is not None
    return list(draw_rows(given, seed, count))


def drawn_in(case: Case) -> Drawn:
    assert case.drawn is not None
    return case.drawn


@pytest.mark.parametrize("dataset", [CHEST_PAIN, f"{CHEST_PAIN},invented", f"{CHEST_PAIN},invented,hidden"])
def test_the_same_seed_draws_the_same_cases_and_a_row_does_not_depend_on_how_many_are_drawn(dataset: str) -> None:
    assert rows(dataset) == rows(dataset)
    assert rows(dataset, count=5) == rows(dataset, count=20)[:5]
    assert [row["case_id"] for row in rows(dataset, count=3)] == ["chest-pain-0-0", "chest-pain-0-1", "chest-pain-0-2"]


def test_another_seed_draws_other_cases() -> None:
    def truths(seed: int) -> list[str]:
        return [row["OSCE_Examination"]["Correct_Diagnosis"] for row in rows(seed=seed, count=50)]

    assert truths(0) != truths(1)
    ids = [{case.id for case in load_cases(CHEST_PAIN, seed=seed, count=50)} for seed in (0, 1)]
    assert not ids[0] & ids[1]


def test_another_seed_draws_other_invented_names() -> None:
    first, second = (load_cases(f"{CHEST_PAIN},invented", seed=seed, count=1)[0] for seed in (0, 1))
    assert not set(drawn_in(first).world.diseases) & set(drawn_in(second).world.diseases)
    assert not set(drawn_in(first).world.findings) & set(drawn_in(second).world.findings)


def test_two_draws_with_the_same_chart_are_two_cases_and_their_own_clusters() -> None:
    cases = load_cases(CHEST_PAIN, count=300)
    charts = Counter(json.dumps([case.diagnosis, drawn_in(case).findings]) for case in cases)
    assert charts.most_common(1)[0][1] > 1, "among 300 draws some are the same"
    assert len({case.id for case in cases}) == 300
    assert len(set(case_clusters(cases).values())) == 300


def test_a_patient_has_the_same_id_whatever_the_names_and_whether_or_not_the_numbers_are_shown() -> None:
    shown, hidden = load_cases(CHEST_PAIN, count=20), load_cases(f"{CHEST_PAIN},hidden", count=20)
    assert [case.id for case in shown] == [case.id for case in hidden]
    assert [(drawn_in(case).shown, drawn_in(other).shown) for case, other in zip(shown, hidden, strict=True)] == [
        (True, False)
    ] * 20
    assert {case.dataset for case in hidden} == {f"{CHEST_PAIN},hidden"}
    invented = load_cases(f"{CHEST_PAIN},invented", count=20)
    assert [case.id for case in shown] == [case.id for case in invented]
    assert not {case.diagnosis for case in shown} & {case.diagnosis for case in invented}
    ranks = [sorted(drawn_in(case).findings.values()) for case in shown]
    assert ranks == [sorted(drawn_in(case).findings.values()) for case in invented], "the same patients"


def test_a_hidden_world_is_told_without_a_single_probability() -> None:
    shown, hidden = (load_cases(f"{CHEST_PAIN}{marks}", count=1)[0].door for marks in ("", ",hidden"))
    assert "17% of the patients" in shown.told
    assert "%" not in hidden.told
    assert hidden.menu is not None
    assert not any(disease.prior for disease in hidden.menu.diseases.values())
    assert not any(finding.probability for finding in hidden.menu.findings.values())
    common = shown.told.partition("How common each is")[0]
    assert hidden.told.strip() == common.strip(), "nothing else differs"


@pytest.mark.parametrize("name", bundled())
def test_every_finding_is_in_the_chart_as_the_answer_says_it(name: str) -> None:
    ways: set[str] = set()
    for row in rows(f"Solvable:{name}", count=5):
        exam, found = row["OSCE_Examination"], row["Solvable"]["findings"]
        world = World.model_validate(row["Solvable"]["world"])
        chart = {
            "question": exam["Patient_Actor"]["Symptoms"],
            "examination": exam["Physical_Examination_Findings"],
            "test": exam["Test_Results"],
        }
        assert sum(map(len, chart.values())) == len(world.findings)
        for finding, one in world.findings.items():
            assert chart[one.by][finding] == one.says(found[finding])
            ways.add(one.by)
    assert ways == {"question", "examination", "test"}


@pytest.mark.parametrize("marks", ["", ",invented,hidden"])
def test_a_case_round_trips_through_the_case_file_of_a_run(marks: str, tmp_path: Path) -> None:
    cases = load_cases(f"{CHEST_PAIN}{marks}", count=5)
    write_cases(tmp_path, cases)
    assert read_cases(tmp_path) == cases
    assert [case.drawn for case in read_cases(tmp_path)] == [case.drawn for case in cases]


@pytest.mark.parametrize("broken", [{}, {"world": {}}, "chest-pain", {"shown": True, "findings": {}}])
def test_a_row_whose_world_cannot_be_read_is_refused(broken: object) -> None:
    (row,) = rows(count=1)
    with pytest.raises(CaseError, match="Solvable is not a world with its findings; draw the cases again"):
        read_case(Row(Path("cases.jsonl"), 1, 0, {**row, "Solvable": broken}), CHEST_PAIN)


# --- key findings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", [CHEST_PAIN, "Solvable:headache,invented"])
def test_key_findings_are_those_twice_as_likely_with_the_disease_as_without_it(dataset: str) -> None:
    """Here the chance without the disease is what the marginal chance leaves, not a mean over the others."""
    telling = 0
    for row in rows(dataset, count=60):
        world, found = World.model_validate(row["Solvable"]["world"]), row["Solvable"]["findings"]
        truth = row["OSCE_Examination"]["Correct_Diagnosis"]
        prior = dict(zip(world.diseases, world.priors, strict=True))
        ratios = {}
        for name, one in world.findings.items():
            chance = {d: p if found[name] else 1 - p for d, p in (one.probability or {}).items()}
            marginal = math.fsum(prior[d] * p for d, p in chance.items())
            without = (marginal - prior[truth] * chance[truth]) / (1 - prior[truth])
            ratios[name] = chance[truth] / without
        listed = {entry["any_of"][0].rpartition("/")[2]: entry["weight"] for entry in row["Key_Findings"]}
        assert listed.keys() == {name for name, ratio in ratios.items() if ratio >= 2}
        for name, weight in listed.items():
            assert weight == pytest.approx(math.log2(ratios[name]), abs=0.006)
        telling += len(listed)
    assert telling > 30


def test_a_key_finding_points_at_its_place_in_the_chart() -> None:
    for case in load_cases(CHEST_PAIN, count=20):
        paths = {fact.path for fact in case.facts}
        assert {path for entry in case.annotations["Key_Findings"] for path in entry["any_of"]} <= paths


# --- how many, and from where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenarios", "offset", "sample", "number", "count"),
    [
        (None, 0, None, None, USUAL),
        (None, 0, None, 30, 30),
        (None, 7, None, 30, 37),
        (None, 0, 12, None, 12),
        (None, 5, 12, 30, 35),
        ("3,7,10-20", 0, None, None, 21),
        ("0", 0, None, None, 1),
        ("chest-pain-0-4", 0, None, None, 5),
        (None, 0, None, MOST, MOST),
    ],
)
def test_as_many_cases_are_drawn_as_a_run_can_choose_from(
    scenarios: str | None, offset: int, sample: int | None, number: int | None, count: int
) -> None:
    assert needed(scenarios, offset, sample, number) == count


@pytest.mark.parametrize(
    ("chosen", "rows"), [({"scenarios": "3,7-8"}, [3, 7, 8]), ({"offset": 4, "num_scenarios": 2}, [4, 5])]
)
def test_a_run_chooses_rows_as_in_other_data_sets(chosen: dict[str, Any], rows: list[int]) -> None:
    plan = plan_in(**chosen)
    assert [case.scenario_id for case in plan.cases] == rows
    every = load_cases(CHEST_PAIN, count=20)
    assert [case.id for case in plan.cases] == [every[row].id for row in rows]
    assert [case.id for case in plan_in(scenarios="chest-pain-0-3").cases] == [every[3].id]


def test_too_many_cases_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most 20,000 cases of a world can be drawn, not 20,001; choose fewer"):
        plan_in(num_scenarios=MOST + 1)


def test_the_case_file_of_the_largest_run_can_still_be_read() -> None:
    for name in bundled():
        (line,) = case_lines(load_cases(f"Solvable:{name}", count=1))
        assert MOST * (len(line.encode()) + 100) < LARGEST


def test_all_cases_share_one_world(tmp_path: Path) -> None:
    """A World of its own for each of 20,000 cases would take 600 MB."""
    write_cases(tmp_path, load_cases(CHEST_PAIN, count=5))
    assert len({id(drawn_in(case).world) for case in read_cases(tmp_path)}) == 1


def test_an_unknown_world_is_refused_with_a_suggestion() -> None:
    with pytest.raises(
        CaseError, match="there is no world 'chest-pian', by name or as a file; did you mean 'chest-pain'"
    ):
        plan_in("Solvable:chest-pian")
    with pytest.raises(CaseError, match="there is no world ''"):
        plan_in("Solvable:")


@pytest.mark.parametrize("marks", ["hiden", "invented,secret", ""])
def test_an_unknown_mark_is_refused(marks: str) -> None:
    with pytest.raises(ConfigError, match="is unknown; write invented, hidden or both"):
        spec(f"{CHEST_PAIN},{marks}")


def test_marks_have_one_order_in_names() -> None:
    given = spec(f"{CHEST_PAIN}, hidden,invented")
    assert given == Spec("chest-pain", invented=True, hidden=True)
    assert given.name == f"{CHEST_PAIN},invented,hidden"
    assert spec("OpenOSCE_Demo") is None


def test_a_world_file_in_another_folder_is_found_and_named_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "worlds"
    folder.mkdir()
    (folder / "mine.json").write_bytes((BUNDLED / "headache.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    plan = plan_in("Solvable:worlds/mine.json,hidden", num_scenarios=2)
    assert plan.dataset == "Solvable:mine,hidden"
    assert plan.settings.run.dataset == f"Solvable:{folder / 'mine.json'},hidden"
    assert [case.diagnosis for case in plan.cases] == [c.diagnosis for c in load_cases("Solvable:headache", count=2)]


def test_a_folder_may_have_a_comma_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "worlds, old"
    folder.mkdir()
    (folder / "mine.json").write_bytes((BUNDLED / "headache.json").read_bytes())
    monkeypatch.chdir(folder)
    plan = plan_in("Solvable:mine.json,hidden,invented", num_scenarios=1)
    assert plan.settings.run.dataset == f"Solvable:{folder / 'mine.json'},invented,hidden"
    assert plan.dataset == "Solvable:mine,invented,hidden"


def test_a_broken_world_file_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text((BUNDLED / "headache.json").read_text().replace('"question"', '"guess"', 1))
    with pytest.raises(InputError, match=r"mine\.json.*by"):
        plan_in(f"Solvable:{path}")


# --- goodness of fit --------------------------------------------------------------------------------------------------

DRAWS = 5000


def bound(variance: float, tests: int) -> float:
    """How far a sum of independent terms, each within 1 of its mean, may be off: by Bernstein's inequality.

    P(|S| ≥ t) ≤ 2·exp(-t² ÷ (2·(variance + t/3))); all tests together fail by chance with probability 0.001 at most.
    """
    log = math.log(2 * tests / 0.001)
    return log / 3 + math.sqrt((log / 3) ** 2 + 2 * variance * log)


def chi_square_bound(degrees: int, chance: float) -> float:
    """Exceeded by a chi-square variable with at most this chance (Laurent and Massart 2000)."""
    return degrees + 2 * math.sqrt(-degrees * math.log(chance)) - 2 * math.log(chance)


def misfits(world: World, drawn: Iterable[tuple[str, Mapping[str, bool]]]) -> Iterator[str]:
    """What in these cases does not fit the world."""
    by_disease: dict[str, list[Mapping[str, bool]]] = {name: [] for name in world.diseases}
    for truth, found in drawn:
        by_disease[truth].append(found)
    total = sum(map(len, by_disease.values()))
    expected = {name: total * prior for name, prior in zip(world.diseases, world.priors, strict=True)}
    assert min(expected.values()) > 50, "so that the chi-square distribution holds"
    squares = math.fsum((len(by_disease[name]) - e) ** 2 / e for name, e in expected.items())
    if squares > chi_square_bound(len(expected) - 1, 0.001):
        yield "diseases"
    tests = len(world.diseases) * math.comb(len(world.findings) + 1, 2)
    for name, cases in by_disease.items():
        p = {finding: (one.probability or {})[name] for finding, one in world.findings.items()}
        spread = {finding: p[finding] * (1 - p[finding]) for finding in p}
        for one in p:
            if abs(math.fsum(c[one] - p[one] for c in cases)) > bound(len(cases) * spread[one], tests):
                yield f"{one} in {name}"
        for one, other in combinations(p, 2):
            together = math.fsum((c[one] - p[one]) * (c[other] - p[other]) for c in cases)
            if abs(together) > bound(len(cases) * spread[one] * spread[other], tests):
                yield f"{one} with {other} in {name}"


@pytest.mark.parametrize("name", bundled())
def test_drawn_cases_fit_the_table_and_findings_are_independent_given_the_disease(name: str) -> None:
    found = [
        (row["OSCE_Examination"]["Correct_Diagnosis"], row["Solvable"]["findings"])
        for row in rows(f"Solvable:{name}", count=DRAWS)
    ]
    world = drawn_in(load_cases(f"Solvable:{name}", count=1)[0]).world
    assert list(misfits(world, found)) == []


@pytest.mark.parametrize("first", [0, 1])
def test_a_case_does_not_depend_on_the_one_before(first: int) -> None:
    """Neighbors have the same disease as often as two cases drawn at random: Σ p²."""
    truths = [row["OSCE_Examination"]["Correct_Diagnosis"] for row in rows(count=2000)][first:]
    pairs = list(zip(truths[::2], truths[1::2], strict=False))
    same = math.fsum(p**2 for p in drawn_in(load_cases(CHEST_PAIN, count=1)[0]).world.priors)
    off = sum(one == other for one, other in pairs) - len(pairs) * same
    assert abs(off) < bound(len(pairs) * same * (1 - same), tests=2)


def test_the_check_of_the_fit_sees_a_wrong_prior_a_wrong_probability_and_dependence() -> None:
    world = drawn_in(load_cases(CHEST_PAIN, count=1)[0]).world
    found = [(row["OSCE_Examination"]["Correct_Diagnosis"], row["Solvable"]["findings"]) for row in rows(count=DRAWS)]
    swapped = {"Panic disorder": "Costochondritis", "Costochondritis": "Panic disorder"}
    assert "diseases" in misfits(world, [(swapped.get(truth, truth), state) for truth, state in found])
    common = "Costochondritis"
    assert f"Sweating in {common}" in misfits(
        world, [(truth, {**state, "Sweating": n % 10 == 0}) for n, (truth, state) in enumerate(found)]
    )
    copied = [(truth, {**state, "Chest wall tenderness": state["Pleuritic pain"]}) for truth, state in found]
    assert f"Chest wall tenderness with Pleuritic pain in {common}" in misfits(world, copied)
