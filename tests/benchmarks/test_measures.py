"""The benchmark of measures: the doctors of its panel differ in one thing each, and it ranks as it says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from benchmark_support import load_benchmark
from scipy.stats import spearmanr

from agentclinic.results.regret import Regret

benchmark = load_benchmark("measures")
PAGE = Path(__file__).parents[2] / "docs" / "measures.md"


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return benchmark.panel(tmp_path_factory.mktemp("prompts"))


def played(panel: Any, name: str, cases: int = 8) -> Any:
    plan = benchmark.plan_for("Solvable:chest-pain", cases, **panel[name].run)
    return anyio.run(benchmark.played, plan, panel[name])


def test_doctors_that_distort_what_they_state_play_as_greedy(panel: Any) -> None:
    greedy, sharpened, flattened = (played(panel, name) for name in ("greedy", "sharpened", "flattened"))
    assert greedy.lost.tolist() == sharpened.lost.tolist() == flattened.lost.tolist()
    divergence, confidence = "divergence of stated beliefs", "mean stated confidence"
    said = [benchmark.values(one) for one in (flattened, greedy, sharpened)]
    assert said[1][divergence] == 0 < min(said[0][divergence], said[2][divergence])
    assert said[0][confidence] < said[1][confidence] < said[2][confidence]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("wasteful", {"wasted"}),
        ("second best", {"wrong_commitment", "stopped_early"}),
        ("stop 0.5", {"stopped_early", "too_long"}),
        ("stop 0.99", {"too_long", "stopped_early"}),
    ],
)
def test_a_doctor_of_the_panel_loses_points_by_one_thing_only(panel: Any, name: str, kinds: set[str]) -> None:
    found = played(panel, name)
    lost = {turn.kind for one in found.regrets for turn in one.turns if turn.kind != "best"}
    assert lost
    assert lost <= kinds


def test_a_lower_threshold_lets_the_planner_end_encounters(panel: Any) -> None:
    low, high = played(panel, "policy 0.7"), played(panel, "policy 1")
    assert low.by_planner > high.by_planner == 0
    assert len(high.planner) > len(low.planner) > 0


def test_rank_correlation_is_spearmans_with_ties() -> None:
    left, right = [1.0, 2.0, 2.0, 5.0, 3.0], [0.1, 0.4, 0.3, 0.3, 0.9]
    assert benchmark.spearman(left, right) == pytest.approx(spearmanr(left, right).statistic)
    assert benchmark.spearman(left, [1.0] * 5) is None


def doctor(regret: float) -> Any:
    spread = [regret - 0.1, regret, regret + 0.1]
    regrets = [
        Regret(world="w", best_value=9, utility=0, regret=one, luck=0, ending=None, price=0, minutes=0, turns=())
        for one in spread
    ]
    return benchmark.Played(regrets=regrets)


def test_a_measure_is_judged_in_the_direction_in_which_it_is_read() -> None:
    found = {"good": doctor(0), "fair": doctor(1), "poor": doctor(5)}
    right = {"good": 0.9, "fair": 0.8, "poor": 0.1}
    turns = {"good": 9.0, "fair": 5.0, "poor": 1.0}
    values = {name: {"accuracy": right[name], "turns": turns[name]} for name in found}
    assert benchmark.agreement("accuracy", found, values) == pytest.approx(1)
    assert benchmark.agreement("turns", found, values) == pytest.approx(-1), "fewer turns count as better"
    assert benchmark.clear_pairs(found) == [("fair", "good"), ("poor", "good"), ("poor", "fair")]


def test_a_difference_within_its_interval_is_not_clear() -> None:
    assert not benchmark.clear(np.array([-1.0, 1.0, 0.5, -0.4]))
    assert benchmark.clear(np.array([1.0, 1.1, 0.9, 1.0]))
    assert not benchmark.clear(np.zeros(4))


def test_a_distorted_differential_still_adds_up_to_1(panel: Any) -> None:
    (first, *_) = played(panel, "flattened", 1).regrets[0].turns
    assert math.fsum(first.stated.values()) == pytest.approx(1)
    assert first.stated != first.posterior


def test_the_page_has_every_measure_and_every_doctor(panel: Any) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in (*benchmark.MEASURES, *panel):
        assert f"| {name} |" in text, "`python benchmarks/measures.py --write docs/measures.md` writes it again"
