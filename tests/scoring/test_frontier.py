"""Accuracy against a budget for tests: by hand, in `score`, in comparisons and in reports."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import numpy as np
import pytest
from prices_support import price_list, priced
from report_support import Json, gathered, in_the_originals_format, ordering, record, unread, write_run, wrong
from runs_support import run_here, settings_for

from agentclinic.cli import main
from agentclinic.report.comparison import compared
from agentclinic.report.files import render
from agentclinic.results.record import Record
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import Comparison, compare_arms, compare_two, load_arm
from agentclinic.scoring.frontier import BUDGETS, SHOWN, worth
from agentclinic.scoring.metrics import Budget, budget_section
from agentclinic.scoring.orders import ordered_in
from agentclinic.scoring.prices import estimate
from agentclinic.scoring.rows import row_of, with_clusters
from agentclinic.scoring.score import score
from agentclinic.scoring.stats import holm, paired_difference, proportion, share, shares
from agentclinic.vocabulary.base import knowledge


@pytest.fixture(autouse=True)
def prices() -> Iterator[None]:
    tests = {name: priced(name, usd, 1.0) for name, usd in {"a": 10.0, "b": 100.0, "c": 500.0, "d": 6000.0}.items()}
    with price_list(tests):
        yield


def done(number: int, *names: str, right: bool = True, **changes: object) -> Json:
    return ordering(number, *((name, "chart") for name in names), right=right, **changes)


def found(*entries: Json) -> Budget:
    return budget_section(with_clusters([row_of(Record.model_validate(entry)) for entry in entries]))


def counts(budget: Budget) -> dict[int, int]:
    return {one.usd: one.right.count for one in budget.within}


FOUR = [done(0, "a"), done(1, "b"), done(2, "c"), done(3, "a", right=False)]
"""Right for $10, $100 and $500; wrong for $10."""


# --- by hand --------------------------------------------------------------------------------------------------------


def test_a_price_is_worth_the_share_of_the_log_axis_above_it() -> None:
    assert [worth(usd) for usd in (0, 50, 500, 5000, 6000, math.inf)] == pytest.approx([1, 1, 0.5, 0, 0, 0])
    assert worth(100) == pytest.approx(math.log(50) / math.log(100))


def test_an_encounter_counts_from_the_budget_that_pays_for_its_tests() -> None:
    budget = found(*FOUR)
    assert counts(budget) == {50: 1, 70: 1, 100: 2, 150: 2, 200: 2, 300: 2} | {usd: 3 for usd in BUDGETS if usd >= 500}
    assert budget.within[2].right == proportion(2, 4), "with the interval that accuracy has"
    assert (budget.without_limit, budget.encounters) == (proportion(3, 4), 4)
    assert budget.accuracy_area.value == pytest.approx((1 + math.log(50) / math.log(100) + 0.5 + 0) / 4)


def test_the_area_is_the_integral_of_the_curve_over_log_dollars() -> None:
    budget = found(*FOUR)
    grid = np.exp(np.linspace(math.log(50), math.log(5000), 20_001))
    curve = [sum(usd <= most for usd in (10, 100, 500)) / 4 for most in grid]
    assert budget.accuracy_area.value == pytest.approx(float(np.mean(curve)), abs=1e-4)


def test_what_exceeds_the_largest_budget_is_right_only_without_a_limit() -> None:
    budget = found(done(0, "d"))
    assert (counts(budget)[5000], budget.without_limit.count, budget.accuracy_area.value) == (0, 1, 0)
    assert not budget.flat


def test_without_tests_every_budget_is_enough() -> None:
    budget = found(done(0), done(1, right=False))
    assert set(counts(budget).values()) == {1}
    assert (budget.accuracy_area.value, budget.flat) == (0.5, True)


def test_missing_data_are_left_out_and_what_is_not_right_counts_as_in_the_accuracy() -> None:
    gone: Json = {"correct": None, "judgement": None}
    budget = found(
        done(0, "a"),
        done(1, "a", status="judge_failed", **gone),
        done(2, "a", status="model_failed", **gone),
        {**done(3, "a"), "status": "doctor_failed", "correct": False},
        {**done(4, "a"), "status": "max_infs_reached", "correct": False},
        unread(5, transcript=done(5, "a")["transcript"]),
    )
    assert (budget.encounters, counts(budget)[50], budget.without_limit) == (4, 1, proportion(1, 4))


def test_records_without_a_transcript_say_nothing() -> None:
    budget = found(in_the_originals_format(record()))
    assert (budget.encounters, budget.within, budget.accuracy_area.value) == (0, [], None)


def test_a_test_that_was_not_done_costs_nothing_and_one_done_twice_is_charged_once() -> None:
    budget = found(ordering(0, ("a", "chart"), ("d", "unavailable"), ("a", "chart")))
    assert counts(budget)[50] == 1


def test_a_test_without_a_price_is_estimated_and_an_examination_is_free() -> None:
    budget = found(done(0, "Frobnication assay"), done(1, "Physical examination"), done(2, "MRI of the big toe"))
    assert budget.estimated == 2, "the examination costs time, not dollars"
    image = ordered_in(Record.model_validate(done(0, "MRI of the big toe", "MRI of the big toe")))
    assert image
    assert (image.bill.usd, image.bill.unpriced) == (0, 2), "the price itself stays unknown"
    assert image.bill.estimated == estimate("MRI of the big toe"), "charged once"
    assert counts(budget)[100] == 2, "the image is over $100"


def test_the_users_own_prices_count() -> None:
    own = {"name": "A", "usd": 700.0, "wait_minutes": 0, "duration_minutes": 0}
    table = {"file": "f", "digest": "0", "waiting": 1, "waiting_known": False, "tests": {"a": own}}
    assert [usd for usd, right in counts(found(done(0, "a", price_table=table))).items() if right] == [
        usd for usd in BUDGETS if usd >= 700
    ]


def test_repeats_widen_the_interval_as_they_do_for_accuracy() -> None:
    cases = [(case, repeat) for case in range(8) for repeat in (0, 1)]
    entries = [done(case, "a" if case % 2 else "b", right=case < 6, repeat=repeat) for case, repeat in cases]
    budget = found(*entries)
    expected = share((case, float(case < 6 and case % 2), 1) for case, _ in cases)
    assert budget.within[0].right == expected
    assert expected.clustered


def test_several_shares_of_the_same_outcomes_are_each_the_share_alone() -> None:
    draw = np.random.default_rng(1)
    clusters = draw.integers(0, 30, 100).tolist()
    counted = draw.random((100, 3)) < (0.0, 0.4, 1.0)
    expected = [share(zip(clusters, column, [1] * 100, strict=True)) for column in counted.T]
    assert shares(clusters, counted) == expected
    assert shares([], np.zeros((0, 2), dtype=np.bool_)) == [proportion(0, 0)] * 2


def test_a_solvable_world_has_its_own_prices(tmp_path: Path) -> None:
    settings = settings_for(None, tmp_path, dataset="Solvable:chest-pain", num_scenarios=8)
    run = load_run(anyio.run(run_here, settings)[0].folder)
    spent = {
        one.scenario_id: sum(entry["estimate_cost"] for entry in one.test_economics_log or ())
        for one in run.records()
        if one.correct
    }
    assert any(spent.values())
    assert counts(score(run).budget) == {most: sum(usd <= most for usd in spent.values()) for most in BUDGETS}


# --- comparisons ----------------------------------------------------------------------------------------------------


def versus(tmp_path: Path, before: list[Json], after: list[Json]) -> Comparison:
    arms = [load_arm(load_run(write_run(tmp_path / name, run))) for name, run in (("a", before), ("b", after))]
    return compare_two(*arms)


def test_runs_are_compared_at_equal_budget_case_by_case(tmp_path: Path) -> None:
    """The second run is right for less in case 1, wrong in case 2 and right for too much in case 3."""
    after = [done(0, "a"), done(1, "a"), done(2, "a", right=False), done(3, "d")]
    at = {one.usd: one for one in versus(tmp_path, FOUR, after).at_budgets}

    assert list(at) == [*SHOWN, None]
    assert [(at[usd].before, at[usd].after) for usd in SHOWN] == [(0.5, 0.5), (0.5, 0.5), (0.75, 0.5)]
    lost = paired_difference([(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 0, 0)])
    assert (at[1000].difference, at[1000].p) == (lost.estimate, lost.p)
    area = at[None]
    assert (area.before, area.after) == pytest.approx(((1.5 + math.log(50) / math.log(100)) / 4, 0.5))
    assert area.difference.value == pytest.approx(area.after - area.before)


def test_a_clear_difference_at_equal_budget_is_named_though_accuracy_is_the_same(tmp_path: Path) -> None:
    cheap = write_run(tmp_path / "cheap", [done(n, "a") for n in range(20)])
    dear = write_run(tmp_path / "dear", [done(n, "c") for n in range(20)])
    report = compare_arms([load_arm(load_run(run)) for run in (cheap, dear)])
    told = compared(report, report.comparisons)

    assert report.comparisons[0].verdicts[0].difference.value == 0
    assert "At equal budgets for tests (area under accuracy): clearly different from A: B -0.50" in told.sentences[-1]
    assert "Clear at a single budget: B $100 -100.0, B $300 -100.0 points." in told.sentences[-1]
    assert told.columns["right by budget: $100, $300, $1,000; area"] == [
        "100%, 100%, 100%; 1.00",
        "0%, 0%, 100%; 0.50",
    ]


def test_p_values_are_adjusted_over_all_budgets_and_runs_and_those_of_areas_apart(tmp_path: Path) -> None:
    outcomes = {"x": 3, "y": 9, "z": 14}
    runs = [
        write_run(tmp_path / name, [done(n, "b", right=n < most or n % 5 == 0) for n in range(24)])
        for name, most in outcomes.items()
    ]
    report = compare_arms([load_arm(load_run(run)) for run in runs])
    every = [one for comparison in report.comparisons for one in comparison.at_budgets]
    for of_areas in (True, False):
        members = [one for one in every if (one.usd is None) is of_areas]
        assert len({one.p for one in members}) > 1
        assert [one.p_holm for one in members] == list(holm({str(i): one.p for i, one in enumerate(members)}).values())


def test_runs_that_spend_little_are_not_compared_at_a_budget(tmp_path: Path) -> None:
    found = versus(tmp_path, [done(0), done(1)], [done(0, "a"), done(1, right=False)])
    assert found.at_budgets == []
    originals = [in_the_originals_format(one) for one in FOUR]
    assert versus(tmp_path / "other", originals, originals).at_budgets == []


def test_different_budgets_are_named_and_are_in_the_labels(tmp_path: Path) -> None:
    free = write_run(tmp_path / "runs_20260101_000000", FOUR, {"run": {"test_budget": None}})
    frugal = write_run(tmp_path / "runs_20260101_000001", FOUR, {"run": {"test_budget": 300.0, "order_limit": 3}})
    report = compare_arms([load_arm(load_run(run)) for run in (free, frugal)])
    assert report.comparisons[0].warnings == [
        "budget for tests, USD: no limit against 300",
        "items in an order: no limit against 3",
    ]
    assert [run.label for run in report.runs] == ["no budget for tests", "tests up to $300, 3 items an order"]


def test_estimates_and_the_prices_of_a_setting_are_not_a_table_of_the_users(tmp_path: Path) -> None:
    own = {"name": "x", "usd": 24.0, "wait_minutes": 0, "duration_minutes": 0}
    table = {"file": "estimates", "digest": "", "waiting": 1, "waiting_known": False, "tests": {"x": own}}
    assert versus(tmp_path / "ours", FOUR, [{**one, "price_table": table} for one in FOUR]).warnings == []
    users = [{**one, "price_table": {**table, "digest": "0123"}} for one in FOUR]
    assert versus(tmp_path / "own", FOUR, users).warnings == ["prices of tests: our table against estimates 0123"]


# --- what is shown --------------------------------------------------------------------------------------------------


def test_score_shows_accuracy_by_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", [*FOUR, done(4, "Frobnication assay", right=False)])
    main(["score", str(folder)])
    row = "right, by budget for tests  40.0% within $100, 40.0% within $300, 60.0% within $1,000; area 0.47 ("
    assert row in capsys.readouterr().out
    main(["score", str(folder), "--full"])
    full = " ".join(capsys.readouterr().out.split())
    assert "Accuracy by budget for tests (5 encounters)" in full
    assert "right within $100 40.0% (11.8% to 76.9%; 2 of 5)" in full
    assert "1 of 5 encounters had a test without a price" in full
    main(["score", str(folder), "--json"])
    printed = json.loads(capsys.readouterr().out)["budget"]
    assert [one["usd"] for one in printed["within"]] == list(BUDGETS)
    assert printed["accuracy_area"]["n"] == 5


def test_a_run_whose_budget_makes_no_difference_is_not_burdened_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "run", [done(0, "a"), wrong(1)])
    main(["score", str(folder), "--full"])
    assert "budget" not in capsys.readouterr().out
    assert "Accuracy by budget" not in render(gathered(folder), "html") + render(gathered(folder), "md")


def test_the_report_draws_all_runs_in_one_picture_and_says_the_same_in_numbers(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", FOUR)
    second = write_run(tmp_path / "second", [done(n, right=n == 0) for n in range(4)])
    collected = gathered(first, second)
    page = render(collected, "html").replace("\u00a0", " ")
    (chart,) = page.split('id="budget-t"')[1:]
    chart = chart.split("</svg>")[0]
    assert "A $50 25%, $70 25%, $100 50%" in chart, "in words, for screen readers"
    assert "B $50 25%" in chart
    assert chart.count("<polygon") == 2, "a band for each run"
    assert "<td>50% (15% to 85%)</td><td>25% (5% to 70%)</td>" in page

    text = render(collected, "md")
    assert "| budget | A right (95%) | B right (95%) |" in text
    assert "| $100 | 50% (15% to 85%) | 25% (5% to 70%) |" in text
    assert "| B against A | right within $100 of tests | -25.0 points" in text
    lines = list(csv.DictReader(io.StringIO(render(collected, "csv"))))
    assert [round(float(line["accuracy_area"]), 3) for line in lines[:4]] == [1.0, 0.849, 0.5, 0.0]


def test_the_log_axis_has_the_same_distance_from_50_to_500_as_from_500_to_5000(tmp_path: Path) -> None:
    page = render(gathered(write_run(tmp_path / "run", FOUR)), "html")
    chart = page.split('id="budget-t"')[1].split("</svg>")[0]
    drawn = re.findall(r'<circle cx="([\d.]+)"[^>]*><title>\$([\d,]+):', chart)
    places = {int(usd.replace(",", "")): float(x) for x, usd in drawn}
    assert list(places) == list(BUDGETS)
    assert places[500] - places[50] == pytest.approx(places[5000] - places[500], abs=0.2)


def test_our_table_has_no_test_beyond_the_largest_budget() -> None:
    assert max(test.price.usd for test in knowledge().tests.values()) < BUDGETS[-1]
