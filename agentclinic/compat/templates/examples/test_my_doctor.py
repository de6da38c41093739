"""Tests of my_doctor.py, offline and in seconds: `python examples/test_my_doctor.py`, or pytest on this file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from agentclinic import Record, evaluate

DOCTOR = f"{Path(__file__).with_name('my_doctor.py')}:MyDoctor"


def played(cases: int = 2, turns: int = 20) -> list[Record]:
    """Records of the doctor on the first demonstration cases, with builtin patient, laboratory and judge."""
    with TemporaryDirectory() as folder:
        run = evaluate(DOCTOR, num_scenarios=cases, total_inferences=turns, output_dir=folder, progress=False)
        return run.records


def test_every_case_ends_with_a_diagnosis() -> None:
    """A crash would be `doctor_failed`, and `fault` would say where it happened."""
    assert [(record.status, record.fault) for record in played()] == [("diagnosed", None)] * 2


def test_it_asks_before_it_orders() -> None:
    """The kinds of what the doctor says, in order."""
    (record,) = played(cases=1)
    said = [turn.action.kind for turn in record.transcript or () if turn.action]
    assert said == ["question"] * 3 + ["test"] * 2 + ["diagnosis"]


def test_it_commits_in_time() -> None:
    """With few turns it asks less."""
    (record,) = played(cases=1, turns=2)
    assert (record.status, record.num_turns) == ("diagnosed", 2)


def test_it_says_how_sure_it_is() -> None:
    """So that its calibration can be measured."""
    (record,) = played(cases=1)
    assert record.differential is not None
    assert record.differential.hypotheses[0].probability == 0.05


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"passed: {name}")
