"""The benchmark of solvable worlds: its baseline solves them too, and its table shows what doctors earn."""

from __future__ import annotations

import anyio
import pytest
from benchmark_support import load_benchmark

from agentclinic.worlds.solve import solve

benchmark = load_benchmark("solvable")


def test_the_baseline_and_the_solver_agree_in_every_state() -> None:
    world = benchmark.random_world(5)
    values = benchmark.by_recursion(world)
    assert len(values) == 3**5
    assert benchmark.largest_difference(solve(world), values) < 1e-9
    asked = values[(0,) * 5] > max(solve(world).ending((0,) * 5).values()) + 1
    assert asked, "a world in which nothing is worth asking would compare nothing"


def test_a_row_of_the_table_has_the_regret_and_its_kinds() -> None:
    best, everything = (
        dict(zip(benchmark.COLUMNS, benchmark.row(anyio.run(benchmark.encounters, plan)), strict=True))
        for plan in (benchmark.plan_for("Solvable:headache", 4, doctor=name) for name in ("optimal", "ask_everything"))
    )
    assert best["regret"] == "0.0 ± 0.0"
    assert everything["turns"] == "11.0 ± 0.0", "ten findings and the answer"
    kinds = [float(everything[kind]) for kind in benchmark.KINDS.values()]
    assert float(everything["regret"].split()[0]) == pytest.approx(sum(kinds), abs=0.2) != 0


@pytest.mark.slow
def test_a_small_measurement_prints_solver_speed_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["--cases", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("| 12 | 531,441 |")]
    assert sum(line.startswith("| builtin, plain, table hidden |") for line in lines) == 4
